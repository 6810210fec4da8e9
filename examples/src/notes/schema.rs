//! This file creates the schema of a database, and refuses a file with another one.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use super::error::StoreError;
use super::store::{Store, refused};

/// The schema version of this program, kept in `user_version`.
pub(super) const SCHEMA_VERSION: i64 = 1;
/// Distinguishes a database of notes from that of another program: `note` in ASCII, kept in `application_id`.
const APPLICATION_ID: i64 = 0x6e6f_7465;
/// Longer than any transaction of this program except a vacuum of a large database.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// `AUTOINCREMENT` keeps an id from being used twice, so that `after` in a list never skips a document.
/// The identity distinguishes a directory from a later one with the same name.
const SCHEMA: &str = "
    CREATE TABLE documents (
        id      INTEGER PRIMARY KEY AUTOINCREMENT,
        title   TEXT NOT NULL,
        body    TEXT NOT NULL,
        created TEXT NOT NULL
    ) STRICT;
    CREATE TABLE properties (
        name  TEXT PRIMARY KEY,
        value TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;
    INSERT INTO properties VALUES ('identity', lower(hex(randomblob(16))));
";

impl Store {
    /// Opens a database, and creates it first if it does not exist; safe to repeat after any interruption.
    ///
    /// # Errors
    ///
    /// When the file holds something else, which is never overwritten, or the disk refuses.
    pub fn create(path: &Path) -> Result<Self, StoreError> {
        let mut store = Self::connect(
            path,
            OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE,
        )?;
        // Before anything is written, so that the file of another program stays as it is.
        match store.recognise() {
            Ok(()) | Err(StoreError::Unprepared { .. }) => {}
            Err(error) => return Err(error),
        }
        store.tune()?;
        store.make_schema()?;
        store.recognise()?;
        Ok(store)
    }

    /// Opens a database that was created before.
    ///
    /// # Errors
    ///
    /// When there is none, or not one of this program: a retry does not help.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let store = Self::connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        store.recognise()?;
        store.tune()?;
        Ok(store)
    }

    /// Opens a database that no process writes, such as a backup.
    pub(super) fn open_read_only(path: &Path) -> Result<Self, StoreError> {
        let store = Self::connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        store.recognise()?;
        Ok(store)
    }

    fn connect(path: &Path, flags: OpenFlags) -> Result<Self, StoreError> {
        let file = |source| StoreError::File {
            action: "look for database",
            path: path.into(),
            source,
        };
        if !flags.contains(OpenFlags::SQLITE_OPEN_CREATE) && !path.try_exists().map_err(file)? {
            return Err(StoreError::Missing { path: path.into() });
        }
        let connection = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)
            .and_then(|connection| connection.busy_timeout(BUSY_TIMEOUT).map(|()| connection))
            .map_err(|source| refused(path, "open connection", source))?;
        Ok(Self {
            connection,
            path: path.into(),
        })
    }

    fn tune(&self) -> Result<(), StoreError> {
        self.connection
            .pragma_update(None, "journal_mode", "WAL")
            .and_then(|()| self.connection.pragma_update(None, "synchronous", "FULL"))
            .map_err(self.refused("set journal mode"))
    }

    fn make_schema(&mut self) -> Result<(), StoreError> {
        let path = self.path.clone();
        let refused = |source| refused(&path, "make schema", source);
        // Immediate: of two concurrent callers the second one finds the schema of the first.
        let transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(refused)?;
        let tables: i64 = transaction
            .query_one("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
            .map_err(refused)?;
        if tables == 0 {
            transaction
                .execute_batch(SCHEMA)
                .and_then(|()| transaction.pragma_update(None, "application_id", APPLICATION_ID))
                .and_then(|()| transaction.pragma_update(None, "user_version", SCHEMA_VERSION))
                .map_err(refused)?;
        }
        transaction.commit().map_err(refused)
    }

    /// Checks the version in the first page, where `SQLite` also detects that a file is no database.
    fn recognise(&self) -> Result<(), StoreError> {
        let pragma = |name| {
            self.connection
                .pragma_query_value(None, name, |row| row.get::<_, i64>(0))
                .map_err(self.refused("read version"))
        };
        match (pragma("application_id")?, pragma("user_version")?) {
            (APPLICATION_ID, SCHEMA_VERSION) => Ok(()),
            (APPLICATION_ID, found) => Err(StoreError::Version {
                path: self.path.clone(),
                found,
            }),
            (0, 0) if self.is_empty()? => Err(StoreError::Unprepared {
                path: self.path.clone(),
            }),
            (id, _) => Err(self.corrupt(format!("application id {id:#x}"))),
        }
    }

    fn is_empty(&self) -> Result<bool, StoreError> {
        self.connection
            .query_one("SELECT count(*) = 0 FROM sqlite_schema", [], |row| {
                row.get(0)
            })
            .map_err(self.refused("read schema"))
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn place() -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("notes.db");
        (directory, path)
    }

    #[test]
    fn creating_again_keeps_documents_and_identity() {
        let (_directory, path) = place();
        let store = Store::create(&path).expect("a database");
        let document = store.insert("a", "b").expect("a document");
        let identity = store.property("identity").expect("a property");

        let again = Store::create(&path).expect("the same database");

        assert_eq!(again.get(document.id).expect("a read"), Some(document));
        assert_eq!(again.property("identity").expect("a property"), identity);
    }

    #[test]
    fn opening_names_what_is_wrong_with_the_file() {
        let (_directory, path) = place();
        assert!(matches!(
            Store::open(&path),
            Err(StoreError::Missing { .. })
        ));

        std::fs::write(&path, b"").expect("an interrupted creation");
        assert!(matches!(
            Store::open(&path),
            Err(StoreError::Unprepared { .. })
        ));

        std::fs::write(&path, b"no database ".repeat(100)).expect("another file");
        assert!(matches!(
            Store::open(&path),
            Err(StoreError::Corrupt { .. })
        ));
        assert!(matches!(
            Store::create(&path),
            Err(StoreError::Corrupt { .. })
        ));
    }

    #[test]
    fn the_database_of_another_program_is_refused_and_left_alone() {
        let (_directory, path) = place();
        let other = Connection::open(&path).expect("a database");
        other
            .execute_batch("CREATE TABLE other (id INTEGER)")
            .expect("a table");

        assert!(matches!(
            Store::create(&path),
            Err(StoreError::Corrupt { .. })
        ));

        let tables: i64 = other
            .query_one("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
            .expect("a count");
        assert_eq!(tables, 1);
    }

    #[test]
    fn a_newer_schema_is_refused() {
        let (_directory, path) = place();
        let store = Store::create(&path).expect("a database");
        store
            .connection
            .pragma_update(None, "user_version", 7)
            .expect("another version");

        assert!(matches!(
            Store::open(&path),
            Err(StoreError::Version { found: 7, .. })
        ));
    }
}
