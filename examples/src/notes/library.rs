//! This file lets many requests share two connections, and has a door that a drain closes.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{Mutex, RwLock};
use tokio::task;

use super::error::StoreError;
use super::store::Store;
use super::wire::{Document, Door};

/// The documents of one directory, as the requests of one process see them.
///
/// One connection writes and one reads, so that reading never waits for a vacuum; who wants a connection waits for it
/// in order of arrival, as a task and not as a thread.
#[derive(Debug)]
pub(super) struct Library {
    writer: Arc<Mutex<Store>>,
    reader: Arc<Mutex<Store>>,
    /// Shared by every request that writes, for as long as it does; taken whole by who closes the door.
    entrance: Arc<RwLock<()>>,
    closed: AtomicBool,
}

/// What became of a document that was handed in.
#[derive(Debug)]
pub(super) enum Added {
    /// It is kept.
    Kept(Document),
    /// The door is closed.
    Refused,
}

impl Library {
    /// Opens the database after reading all of it: a damaged page is found here and not by the client that needs it.
    pub(super) fn open(database: &Path) -> Result<Self, StoreError> {
        let writer = Store::open(database)?;
        writer.check(false)?;
        Ok(Self {
            writer: Arc::new(Mutex::new(writer)),
            reader: Arc::new(Mutex::new(Store::open(database)?)),
            entrance: Arc::default(),
            closed: AtomicBool::new(false),
        })
    }

    /// Keeps a document unless the door is closed.
    pub(super) async fn add(&self, title: String, body: String) -> Result<Added, StoreError> {
        let inside = Arc::clone(&self.entrance).read_owned().await;
        if self.door() == Door::Draining {
            return Ok(Added::Refused);
        }
        self.write(move |store| {
            // Kept until the commit returned, also when the client hangs up and this request is dropped.
            let _inside = inside;
            store.insert(&title, &body).map(Added::Kept)
        })
        .await
    }

    /// Works on the connection that writes.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Store) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let store = Arc::clone(&self.writer).lock_owned().await;
        blocking(move || work(&store)).await
    }

    /// Works on the connection that reads.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Store) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let store = Arc::clone(&self.reader).lock_owned().await;
        blocking(move || work(&store)).await
    }

    /// Refuses new documents and returns when those that were on their way are kept.
    pub(super) async fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        drop(self.entrance.write().await);
    }

    /// Takes documents again.
    pub(super) fn reopen(&self) {
        self.closed.store(false, Ordering::SeqCst);
    }

    pub(super) fn door(&self) -> Door {
        if self.closed.load(Ordering::SeqCst) {
            Door::Draining
        } else {
            Door::Accepting
        }
    }

    /// Empties the write-ahead log while nobody reads.
    pub(super) async fn checkpoint(&self) -> Result<(), StoreError> {
        // A reader would keep the log from being emptied.
        let _quiet = self.reader.lock().await;
        self.write(Store::checkpoint).await
    }
}

/// Runs work that waits for a disk away from the tasks that wait for clients.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    match task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(_) => Err(StoreError::Stopped {
            action: "use database",
        }),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn closing_waits_for_documents_on_their_way_and_refuses_later_ones() {
        let directory = tempfile::tempdir().expect("a directory");
        let database = directory.path().join("notes.db");
        drop(Store::create(&database).expect("a database"));
        let library = Arc::new(Library::open(&database).expect("a library"));
        let add = |title: &'static str| {
            let library = Arc::clone(&library);
            tokio::spawn(async move {
                library
                    .add(title.into(), String::new())
                    .await
                    .expect("an answer")
            })
        };

        let slow_disk = Arc::clone(&library.writer).lock_owned().await;
        let first = add("on its way");
        while library.entrance.try_write().is_ok() {
            task::yield_now().await;
        }
        let mut closing = std::pin::pin!(library.close());
        let early = tokio::time::timeout(Duration::from_millis(50), &mut closing).await;
        assert!(
            early.is_err(),
            "the door closed before the document was kept"
        );
        let second = add("late");

        drop(slow_disk);
        closing.await;
        assert!(matches!(first.await.expect("no panic"), Added::Kept(_)));
        assert!(matches!(second.await.expect("no panic"), Added::Refused));
        assert_eq!(library.read(Store::count).await.expect("a count"), 1);
    }
}
