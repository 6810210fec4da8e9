//! This file lets many requests share two connections, and decides which documents are taken.

use std::path::Path;
use std::sync::Arc;

use tokio::sync::{Mutex, RwLock};
use tokio::task;

use super::error::StoreError;
use super::store::Store;
use super::wire::{Document, Settings};

/// The longest body of a document while the settings name none.
const DEFAULT_BODY_BYTES: usize = 1 << 20;
/// The property that holds the [`Settings`].
const SETTINGS: &str = "settings";

/// The documents of one directory, as the requests of one process see them.
///
/// One connection writes and one reads, so that reading never waits for a vacuum; who wants a connection waits for it
/// in order of arrival, as a task and not as a thread.
#[derive(Debug)]
pub(super) struct Library {
    writer: Arc<Mutex<Store>>,
    reader: Arc<Mutex<Store>>,
    /// Shared by every request that writes, for as long as it does; taken whole by who changes it.
    entrance: Arc<RwLock<Entrance>>,
}

/// Who is let in.
#[derive(Debug)]
struct Entrance {
    settings: Settings,
    closed: bool,
}

/// Whether documents are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// They are.
    Open,
    /// They can be read, for ever.
    ReadOnly,
    /// The process is about to end.
    Closed,
}

/// What became of a document that was handed in.
#[derive(Debug)]
pub(super) enum Added {
    /// It is kept.
    Kept(Document),
    /// Its body is longer than this.
    TooLong(usize),
    /// None is taken any more.
    ReadOnly,
    /// The process is about to end.
    Closed,
}

impl Library {
    /// Opens the database after reading all of it: a damaged page is found here and not by the client that needs it.
    pub(super) fn open(database: &Path) -> Result<Self, StoreError> {
        let writer = Store::open(database)?;
        writer.check(false)?;
        // Settings of a version that knew others are better left at their defaults than a reason not to serve.
        let settings = (writer.property(SETTINGS)?)
            .and_then(|settings| serde_json::from_str(&settings).ok())
            .unwrap_or_default();
        Ok(Self {
            writer: Arc::new(Mutex::new(writer)),
            reader: Arc::new(Mutex::new(Store::open(database)?)),
            entrance: Arc::new(RwLock::new(Entrance {
                settings,
                closed: false,
            })),
        })
    }

    /// Keeps a document where documents are taken.
    pub(super) async fn add(&self, title: String, body: String) -> Result<Added, StoreError> {
        let inside = Arc::clone(&self.entrance).read_owned().await;
        match inside.standing() {
            Standing::Open => {}
            Standing::ReadOnly => return Ok(Added::ReadOnly),
            Standing::Closed => return Ok(Added::Closed),
        }
        let maximum = inside.settings.maximum_body_bytes;
        let maximum = maximum.unwrap_or(DEFAULT_BODY_BYTES);
        if body.len() > maximum {
            return Ok(Added::TooLong(maximum));
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

    /// Refuses new documents from now on, and returns when those that were on their way are kept.
    pub(super) async fn close(&self) {
        self.entrance.write().await.closed = true;
    }

    /// Replaces the settings, when the documents that were on their way are kept; they outlive the process.
    pub(super) async fn configure(&self, settings: Settings) -> Result<(), StoreError> {
        let mut entrance = self.entrance.write().await;
        let json = serde_json::to_string(&settings).expect("settings have string keys only");
        self.write(move |store| store.set_property(SETTINGS, &json))
            .await?;
        entrance.settings = settings;
        Ok(())
    }

    pub(super) async fn settings(&self) -> Settings {
        self.entrance.read().await.settings.clone()
    }

    pub(super) async fn standing(&self) -> Standing {
        self.entrance.read().await.standing()
    }

    /// Empties the write-ahead log while nobody reads.
    pub(super) async fn checkpoint(&self) -> Result<(), StoreError> {
        // A reader would keep the log from being emptied.
        let _quiet = self.reader.lock().await;
        self.write(Store::checkpoint).await
    }
}

impl Entrance {
    fn standing(&self) -> Standing {
        match (self.closed, self.settings.read_only) {
            (true, _) => Standing::Closed,
            (false, true) => Standing::ReadOnly,
            (false, false) => Standing::Open,
        }
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
        assert!(matches!(second.await.expect("no panic"), Added::Closed));
        assert_eq!(library.read(Store::count).await.expect("a count"), 1);
    }
}
