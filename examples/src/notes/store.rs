//! This file keeps documents in `SQLite`.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use rusqlite::{Connection, ErrorCode, OptionalExtension, Row};

use super::error::StoreError;
use super::wire::{Document, Page};

/// One connection to a database of documents.
///
/// # Guarantees
///
/// A document that [`Store::insert`] returned survives SIGKILL and a loss of power: the journal is a write-ahead log
/// with `synchronous = FULL`, which syncs the log before a commit returns. `NORMAL` would save that sync and would lose
/// acknowledged documents when the machine stops.
#[derive(Debug)]
pub struct Store {
    pub(super) connection: Connection,
    pub(super) path: PathBuf,
}

impl Store {
    /// Stores a document.
    ///
    /// # Errors
    ///
    /// When the disk is full or damaged; the document is not stored then.
    pub fn insert(&self, title: &str, body: &str) -> Result<Document, StoreError> {
        let created = Timestamp::now().to_string();
        self.connection
            .execute(
                "INSERT INTO documents (title, body, created) VALUES (?1, ?2, ?3)",
                (title, body, &created),
            )
            .map_err(self.refused("insert document"))?;
        Ok(Document {
            id: self.connection.last_insert_rowid(),
            title: title.into(),
            body: body.into(),
            created,
        })
    }

    /// Returns the document with this id, if there is one.
    ///
    /// # Errors
    ///
    /// When the database is damaged.
    pub fn get(&self, id: i64) -> Result<Option<Document>, StoreError> {
        self.connection
            .query_one(
                "SELECT id, title, body, created FROM documents WHERE id = ?1",
                [id],
                document,
            )
            .optional()
            .map_err(self.refused("read document"))
    }

    /// Returns at most `limit` documents whose id is above `after`, in order of id.
    ///
    /// # Errors
    ///
    /// When the database is damaged.
    pub fn list(&self, after: i64, limit: u16) -> Result<Page, StoreError> {
        let read = || {
            // One more than requested shows whether there is a next page.
            self.connection
                .prepare_cached("SELECT id, title, body, created FROM documents WHERE id > ?1 ORDER BY id LIMIT ?2")?
                .query_map((after, u32::from(limit) + 1), document)?
                .collect::<Result<Vec<_>, _>>()
        };
        let mut documents = read().map_err(self.refused("list documents"))?;
        let more = documents.len() > usize::from(limit);
        documents.truncate(usize::from(limit));
        let next = if more {
            documents.last().map(|document| document.id)
        } else {
            None
        };
        Ok(Page { documents, next })
    }

    /// Returns how many documents there are.
    ///
    /// # Errors
    ///
    /// When the database is damaged.
    pub fn count(&self) -> Result<u64, StoreError> {
        // SQLite has no unsigned numbers, and a count is never negative.
        let count: i64 = self
            .connection
            .query_one("SELECT count(*) FROM documents", [], |row| row.get(0))
            .map_err(self.refused("count documents"))?;
        Ok(count.unsigned_abs())
    }

    /// Checks the integrity of every page; with indexes too when `thorough`.
    pub(super) fn check(&self, thorough: bool) -> Result<(), StoreError> {
        let pragma = if thorough {
            "PRAGMA integrity_check(1)"
        } else {
            "PRAGMA quick_check(1)"
        };
        let verdict: String = self
            .connection
            .query_one(pragma, [], |row| row.get(0))
            .map_err(self.refused("check integrity"))?;
        if verdict == "ok" {
            Ok(())
        } else {
            Err(self.corrupt(verdict))
        }
    }

    /// Returns the pages of removed rows to the disk; writers wait meanwhile.
    pub(super) fn vacuum(&self) -> Result<(), StoreError> {
        self.connection
            .execute_batch("VACUUM")
            .map_err(self.refused("vacuum"))
    }

    /// Moves the write-ahead log into the database file and empties it.
    pub(super) fn checkpoint(&self) -> Result<(), StoreError> {
        let busy: bool = self
            .connection
            .query_one("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))
            .map_err(self.refused("checkpoint"))?;
        if busy {
            Err(self.busy("checkpoint"))
        } else {
            Ok(())
        }
    }

    /// Makes the database one file that can be moved and opened read-only, until it is opened for writing again.
    ///
    /// # Errors
    ///
    /// When another connection is open: a retry helps once it is closed.
    pub fn fold(&self) -> Result<(), StoreError> {
        let mode = self
            .connection
            .pragma_update_and_check(None, "journal_mode", "DELETE", |row| {
                row.get::<_, String>(0)
            })
            .map_err(self.refused("fold the write-ahead log"))?;
        if mode == "delete" {
            Ok(())
        } else {
            Err(self.busy("fold the write-ahead log"))
        }
    }

    /// Returns the property with this name.
    pub(super) fn property(&self, name: &str) -> Result<Option<String>, StoreError> {
        self.connection
            .query_one(
                "SELECT value FROM properties WHERE name = ?1",
                [name],
                |row| row.get(0),
            )
            .optional()
            .map_err(self.refused("read property"))
    }

    /// Stores a property under this name; replaces an earlier value.
    pub(super) fn set_property(&self, name: &str, value: &str) -> Result<(), StoreError> {
        self.connection
            .execute(
                "INSERT OR REPLACE INTO properties VALUES (?1, ?2)",
                [name, value],
            )
            .map(drop)
            .map_err(self.refused("write property"))
    }

    pub(super) fn refused(
        &self,
        action: &'static str,
    ) -> impl Fn(rusqlite::Error) -> StoreError + '_ {
        move |source| refused(&self.path, action, source)
    }

    /// An error for pragmas that report a lock in their result, where a statement would fail.
    fn busy(&self, action: &'static str) -> StoreError {
        let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY);
        let source =
            rusqlite::Error::SqliteFailure(code, Some("another connection is reading".into()));
        self.refused(action)(source)
    }

    pub(super) fn corrupt(&self, why: String) -> StoreError {
        StoreError::Corrupt {
            path: self.path.clone(),
            why,
        }
    }
}

/// Adds the path to an error of `SQLite`; distinguishes the two codes that mean a damaged file.
pub(super) fn refused(path: &Path, action: &'static str, source: rusqlite::Error) -> StoreError {
    match source.sqlite_error_code() {
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => StoreError::Corrupt {
            path: path.into(),
            why: source.to_string(),
        },
        _ => StoreError::Refused {
            action,
            path: path.into(),
            source,
        },
    }
}

fn document(row: &Row<'_>) -> rusqlite::Result<Document> {
    Ok(Document {
        id: row.get(0)?,
        title: row.get(1)?,
        body: row.get(2)?,
        created: row.get(3)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_ends_where_the_next_one_begins() {
        let directory = tempfile::tempdir().expect("a directory");
        let store = Store::create(&directory.path().join("notes.db")).expect("a database");
        for title in ["a", "b", "c"] {
            store.insert(title, "").expect("a document");
        }

        let first = store.list(0, 2).expect("a page");
        let second = store
            .list(first.next.expect("there is more"), 2)
            .expect("a page");

        let titles = |page: &Page| {
            page.documents
                .iter()
                .map(|document| document.title.clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            (titles(&first), titles(&second), second.next),
            (vec!["a".into(), "b".into()], vec!["c".into()], None)
        );
    }
}
