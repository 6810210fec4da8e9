//! This file lists, corrupts and restores the files of a server.

use std::path::{Path, PathBuf};
use std::{fs, io};

use okt_examples::desk::Trouble;
use okt_examples::notes::Instance;

/// The name of the database file.
pub(crate) const DATABASE: &str = "notes.db";

/// The files of a database: the database itself and the files that `SQLite` keeps next to it.
const FILES: [&str; 3] = [DATABASE, "notes.db-wal", "notes.db-shm"];

/// Overwrites the database of a server that does not run.
pub(crate) fn spoil(server: &Instance) -> Result<(), Trouble> {
    remove_database(server)?;
    fs::write(
        server.data().join(DATABASE),
        "this was a database once".repeat(200),
    )?;
    Ok(())
}

/// Replaces the database with a backup.
pub(crate) fn restore(server: &Instance, backup: &Path) -> Result<(), Trouble> {
    remove_database(server)?;
    fs::copy(backup, server.data().join(DATABASE))?;
    Ok(())
}

fn remove_database(server: &Instance) -> Result<(), Trouble> {
    for file in FILES {
        match fs::remove_file(server.data().join(file)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

/// Returns the complete backups, the newest last.
pub(crate) fn backups(server: &Instance) -> Result<Vec<PathBuf>, Trouble> {
    let mut found = Vec::new();
    for entry in server.data().join("backups").read_dir()? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "db") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}
