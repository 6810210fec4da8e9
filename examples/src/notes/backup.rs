//! This file copies a database while it is written to, and checks copies.

use std::fs::{self, File};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};

use super::error::{Error, StoreError};
use super::files;
use super::store::{Store, refused};

/// Small, so that a small database in a demo takes several steps too.
const PAGES_PER_STEP: i32 = 4;
/// How long a step waits after it finds the database locked, which is rare for a reader of a write-ahead log.
const LOCKED_PAUSE: Duration = Duration::from_millis(10);
/// The longest time until a copy notices a request to stop between two steps.
const NAP: Duration = Duration::from_millis(50);
const COPY: &str = "copy database";

/// A complete copy, with its number of documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Saved {
    /// This call made it.
    Made(u64),
    /// An earlier call made it.
    Found(u64),
}

/// Opens a backup or an archived database read-only, checks it thoroughly, and counts its documents.
///
/// # Errors
///
/// When there is none, or it is damaged: a retry does not help.
pub fn open_backup(path: &Path) -> Result<u64, Error> {
    Ok(inspect(path)?)
}

/// Copies the database to `target`, where the copy appears only once it is whole and checked.
///
/// # Guarantees
///
/// The copy is the database at the moment when the backup began; writers never wait for it.
/// If `target` is a good copy already, it stays: an earlier process may have been killed right after making it.
///
/// # Caveats
///
/// The write-ahead log cannot be shortened meanwhile, so a slow backup of a busy database needs room for it.
pub(super) fn back_up(
    database: &Path,
    target: &Path,
    pause: Duration,
    stop: &AtomicBool,
) -> Result<Saved, StoreError> {
    // A file that fails the check is made again: it was good when it got its name, so the disk has damaged it since.
    if let Ok(documents) = inspect(target) {
        return Ok(Saved::Found(documents));
    }
    let partial = target.with_added_extension(files::PARTIAL);
    // Its journal has to go too: SQLite would otherwise play it back into the new copy.
    for left in [
        &partial,
        &target.with_added_extension(format!("{}-journal", files::PARTIAL)),
    ] {
        files::remove_file(left).map_err(StoreError::file("remove unfinished backup", left))?;
    }
    let result = copy(database, &partial, pause, stop).and_then(|expected| {
        let found = inspect(&partial)?;
        if found == expected {
            Ok(found)
        } else {
            Err(StoreError::Incomplete {
                path: partial.clone(),
                found,
                expected,
            })
        }
    });
    let publish = || {
        File::open(&partial)?.sync_all()?;
        fs::rename(&partial, target)?;
        files::sync_parent(target)
    };
    match result {
        Ok(documents) => publish()
            .map(|()| Saved::Made(documents))
            .map_err(StoreError::file("publish backup", target)),
        Err(error) => {
            // The first error is the one to report; the next attempt or start removes what is left.
            let _ = files::remove_file(&partial);
            Err(error)
        }
    }
}

/// Copies page by page; returns how many documents the copy must hold.
fn copy(
    database: &Path,
    partial: &Path,
    pause: Duration,
    stop: &AtomicBool,
) -> Result<u64, StoreError> {
    let source = Store::open(database)?;
    // SQLite restarts a backup whenever another connection writes, which under load is forever. A read transaction for
    // the whole backup keeps its snapshot, and no writer waits for a reader.
    source
        .connection
        .execute_batch("BEGIN")
        .map_err(source.refused(COPY))?;
    let expected = source.count()?;

    let mut target = Connection::open(partial).map_err(|error| refused(partial, COPY, error))?;
    {
        let backup = Backup::new(&source.connection, &mut target)
            .map_err(|error| refused(partial, COPY, error))?;
        loop {
            if stop.load(Ordering::Relaxed) {
                return Err(StoreError::Stopped { action: COPY });
            }
            match backup.step(PAGES_PER_STEP).map_err(source.refused(COPY))? {
                StepResult::Done => break,
                StepResult::More => rest(pause, stop),
                _ => thread::sleep(LOCKED_PAUSE),
            }
        }
    }
    // The copy is marked as having a write-ahead log; only a single file can be moved and opened read-only.
    target
        .pragma_update(None, "journal_mode", "DELETE")
        .and_then(|()| target.close().map_err(|(_, error)| error))
        .map_err(|error| refused(partial, COPY, error))?;
    Ok(expected)
}

/// Waits for the pause, or until the stop flag is set.
fn rest(pause: Duration, stop: &AtomicBool) {
    let mut left = pause;
    while !left.is_zero() && !stop.load(Ordering::Relaxed) {
        let nap = left.min(NAP);
        thread::sleep(nap);
        left -= nap;
    }
}

fn inspect(path: &Path) -> Result<u64, StoreError> {
    let store = Store::open_read_only(path)?;
    store.check(true)?;
    store.count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store_of(documents: usize, directory: &Path) -> Store {
        let store = Store::create(&directory.join(files::DATABASE)).expect("a database");
        for number in 0..documents {
            store
                .insert(&format!("title {number}"), &"text ".repeat(500))
                .expect("a document");
        }
        store
    }

    #[test]
    fn a_backup_holds_what_was_there_when_it_began_although_another_connection_writes() {
        let directory = tempfile::tempdir().expect("a directory");
        let store = store_of(40, directory.path());
        let target = directory.path().join("copy.db");

        let stop = AtomicBool::new(false);
        let database = directory.path().join(files::DATABASE);
        let copied = thread::scope(|scope| {
            let copied =
                scope.spawn(|| back_up(&database, &target, Duration::from_millis(50), &stop));
            // A backup that restarted with every document would last as long as the writer.
            for _ in 0..5000 {
                if copied.is_finished() {
                    break;
                }
                store
                    .insert("meanwhile", &"more ".repeat(500))
                    .expect("a document");
                thread::sleep(Duration::from_millis(2));
            }
            stop.store(true, Ordering::Relaxed);
            copied.join().expect("no panic").expect("a backup")
        });

        let Saved::Made(copied) = copied else {
            panic!("there was none before");
        };
        // The backup may begin after the first of the writer's documents.
        let written = store.count().expect("a count");
        assert!(copied >= 40 && copied < written, "{copied} of {written}");
        assert_eq!(open_backup(&target).expect("a good copy"), copied);
    }

    #[test]
    fn a_stopped_backup_leaves_no_file() {
        let directory = tempfile::tempdir().expect("a directory");
        let store = store_of(1, directory.path());
        let target = directory.path().join("copy.db");

        let result = back_up(
            &directory.path().join(files::DATABASE),
            &target,
            Duration::ZERO,
            &AtomicBool::new(true),
        );

        assert!(
            matches!(result, Err(StoreError::Stopped { .. })),
            "{result:?}"
        );
        drop(store);
        let left: Vec<_> = fs::read_dir(directory.path())
            .expect("a listing")
            .flatten()
            .map(|e| e.file_name())
            .collect();
        assert_eq!(left, [files::DATABASE]);
    }

    #[test]
    fn a_backup_that_lost_a_page_is_rejected() {
        let directory = tempfile::tempdir().expect("a directory");
        store_of(40, directory.path()).fold().expect("one file");
        let path = directory.path().join(files::DATABASE);
        let mut bytes = fs::read(&path).expect("the file");
        let end = bytes.len();
        bytes[end - 4096..].fill(0x5a);
        fs::write(&path, bytes).expect("damage");

        let error = open_backup(&path).expect_err("a page is missing");

        assert!(
            matches!(error, Error::Store(StoreError::Corrupt { .. })),
            "{error}"
        );
    }
}
