//! This file lets many requests share two connections, and decides which documents are accepted.

use std::path::Path;
use std::sync::Arc;

use tokio::sync::{Mutex, RwLock};
use tokio::task;

use super::error::StoreError;
use super::store::Store;
use super::wire::{Document, Settings};

/// The longest body of a document if the settings name none, in bytes.
const DEFAULT_BODY_BYTES: usize = 1 << 20;
/// The property that holds the [`Settings`].
const SETTINGS: &str = "settings";

/// The documents of one directory, as the requests of one process see them.
///
/// One connection writes and one reads, so that a read never waits for a vacuum; requests wait for a connection in
/// order of arrival, as tasks and not as threads.
#[derive(Debug)]
pub(super) struct Library {
    writer: Arc<Mutex<Store>>,
    reader: Arc<Mutex<Store>>,
    /// Every request that writes holds a shared lock; a change takes the exclusive lock.
    entrance: Arc<RwLock<Entrance>>,
}

/// Decides whether a document is accepted.
#[derive(Debug)]
struct Entrance {
    settings: Settings,
    closed: bool,
}

/// Whether documents are accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// Documents are accepted.
    Open,
    /// Documents can only be read, permanently.
    ReadOnly,
    /// The process is about to end.
    Closed,
}

/// The outcome of adding a document.
#[derive(Debug)]
pub(super) enum Added {
    /// The document is stored.
    Kept(Document),
    /// Its body is longer than this, in bytes.
    TooLong(usize),
    /// No document is accepted any more.
    ReadOnly,
    /// The process is about to end.
    Closed,
}

impl Library {
    /// Opens the database after reading all of it, so that this call, and not a client, finds a damaged page.
    pub(super) fn open(database: &Path) -> Result<Self, StoreError> {
        let writer = Store::open(database)?;
        writer.check(false)?;
        // With unreadable settings of another version the server starts with the defaults.
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

    /// Stores a document if documents are accepted.
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
            // Held until the commit returns, even if the client disconnects and this request is dropped.
            let _inside = inside;
            store.insert(&title, &body).map(Added::Kept)
        })
        .await
    }

    /// Runs work on the connection that writes.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Store) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let store = Arc::clone(&self.writer).lock_owned().await;
        blocking(move || work(&store)).await
    }

    /// Runs work on the connection that reads.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Store) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let store = Arc::clone(&self.reader).lock_owned().await;
        blocking(move || work(&store)).await
    }

    /// Refuses new documents from now on; returns when those under way are stored.
    pub(super) async fn close(&self) {
        self.entrance.write().await.closed = true;
    }

    /// Replaces the settings once the documents under way are stored; the settings outlive the process.
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

    /// Empties the write-ahead log while no connection reads.
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

/// Runs blocking work away from the tasks that serve clients.
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
            "the library closed before the document was stored"
        );
        let second = add("late");

        drop(slow_disk);
        closing.await;
        assert!(matches!(first.await.expect("no panic"), Added::Kept(_)));
        assert!(matches!(second.await.expect("no panic"), Added::Closed));
        assert_eq!(library.read(Store::count).await.expect("a count"), 1);
    }
}
