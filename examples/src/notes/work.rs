//! This file is the work of the agent in a server: observations of the server, and the work of its states.

use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use okt_agent::wire::Sighting;
use okt_agent::{Done, Fault, Leftover, Offer, Task, Work};
use tokio::sync::Mutex;

use super::backup::{Saved, back_up};
use super::error::{StoreError, sentence};
use super::files::{BACKUPS, DATABASE};
use super::library::{Library, Standing, blocking};
use super::store::Store;
use super::wire::Settings;

/// The largest body that can be configured, in bytes; with a larger one, requests would exceed the limit of axum.
const MAXIMUM_BODY_BYTES: usize = 8 << 20;

const RUNNING: &str = "Running";
const SERVICING: &str = "Servicing";
const READ_ONLY: &str = "ReadOnly";
const STOPPING: &str = "Stopping";

/// A server, as its agent knows it.
#[derive(Debug)]
pub(super) struct Service {
    library: Arc<Library>,
    data: PathBuf,
    /// The pause of backups if the settings name none.
    pause: Duration,
    /// Held while a backup is written, also by a thread whose caller is gone.
    writing: Arc<Mutex<()>>,
}

impl Service {
    pub(super) fn new(library: Arc<Library>, data: PathBuf, pause: Duration) -> Self {
        Self {
            library,
            data,
            pause,
            writing: Arc::default(),
        }
    }

    /// Accepts documents under the settings of the spec.
    async fn open(&self, task: &Task) -> Result<String, Fault> {
        // An operator that sends no spec does not manage notebooks; it must not reset the settings.
        let spec = (task.input().get("spec"))
            .ok_or_else(|| Fault::permanent("NoSpec", "the input has no spec"))?;
        let settings: Settings = serde_json::from_value(spec.clone())
            .map_err(|error| Fault::permanent("BadSettings", error.to_string()))?;
        if let Some(bytes) = settings.maximum_body_bytes
            && bytes > MAXIMUM_BODY_BYTES
        {
            let message = format!("maximumBodyBytes is {bytes}; use at most {MAXIMUM_BODY_BYTES}");
            return Err(Fault::permanent("BadSettings", message));
        }
        let settings = Settings {
            read_only: false,
            ..settings
        };
        self.library.configure(settings).await?;
        Ok("documents are taken".to_owned())
    }

    /// Writes the backup of this id, unless it exists.
    async fn back_up(&self, task: &Task) -> Result<String, Fault> {
        let database = self.data.join(DATABASE);
        let target = self.data.join(BACKUPS).join(format!("{}.db", task.id()));
        let pause = self.library.settings().await.backup_pause_ms;
        let pause = pause.map_or(self.pause, Duration::from_millis);
        let stop = Stop::default();
        let told = Arc::clone(&stop.0);
        let turn = Arc::clone(&self.writing).lock_owned().await;
        task.progress(None, "the backup is being written");
        let mut copying = pin!(blocking(move || {
            let _turn = turn;
            back_up(&database, &target, pause, &told)
        }));
        let copied = tokio::select! {
            copied = &mut copying => copied,
            () = task.cancelled() => {
                stop.0.store(true, Ordering::Relaxed);
                copying.await
            }
        };
        let documents = match copied? {
            Saved::Made(documents) => {
                tracing::info!(id = %task.id(), documents, "backup made");
                documents
            }
            Saved::Found(documents) => documents,
        };
        self.library.write(Store::vacuum).await?;
        // The vacuum wrote the whole database into the log; it is no failure if the log shrinks only at a later write.
        let _ = self.library.checkpoint().await;
        Ok(format!("{documents} documents are safe"))
    }

    /// Accepts no more documents, permanently.
    async fn shut(&self) -> Result<String, Fault> {
        let settings = Settings {
            read_only: true,
            ..self.library.settings().await
        };
        self.library.configure(settings).await?;
        Ok("documents can be read".to_owned())
    }

    /// Accepts no more documents for the rest of this process, and folds the journal into the file.
    async fn drain(&self) -> Result<String, Fault> {
        self.library.close().await;
        self.library.checkpoint().await?;
        let documents = self.library.read(Store::count).await?;
        Ok(format!("{documents} documents are on the disk"))
    }
}

impl Work for Service {
    /// All work is repeatable: settings replace settings, and an existing backup of an id stays.
    fn offers(&self) -> Vec<Offer> {
        [RUNNING, SERVICING, READ_ONLY, STOPPING]
            .map(|state| Offer {
                state: state.to_owned(),
                repeatable: true,
            })
            .into()
    }

    async fn observe(&self) -> Sighting {
        // A process whose database is gone still answers, but is not well.
        if let Err(error) = self.library.read(|store| store.get(0)).await {
            return Sighting::unreachable(sentence(&error));
        }
        match self.library.standing().await {
            Standing::Open => Sighting::in_state(RUNNING),
            Standing::ReadOnly => Sighting::in_state(READ_ONLY),
            // By an order, or by a signal, which is no request to archive the data.
            Standing::Closed => Sighting::unreachable("it is about to end"),
        }
    }

    async fn perform(&self, task: &Task) -> Result<Done, Fault> {
        let (id, attempt, resumed) = (task.id(), task.attempt(), task.resumed());
        tracing::info!(%id, state = task.state(), attempt, resumed, "work begins");
        let message = match task.state() {
            RUNNING => self.open(task).await?,
            SERVICING => self.back_up(task).await?,
            READ_ONLY => self.shut().await?,
            STOPPING => self.drain().await?,
            state => {
                let message = format!("a notebook does no work of {state}");
                return Err(Fault::permanent("NoSuchWork", message));
            }
        };
        Ok(Done {
            event: None,
            message,
        })
    }

    /// A killed process leaves only files, which the next one removes when it opens the directory; this process has at
    /// most the thread of a stopped backup left.
    async fn recover(&self, _: &Leftover) -> Result<(), Fault> {
        drop(self.writing.lock().await);
        Ok(())
    }
}

/// Stops the thread of a backup, at the latest when this value is dropped.
#[derive(Default)]
struct Stop(Arc<AtomicBool>);

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        let message = sentence(&error);
        if error.is_transient() {
            Self::retry("StoreTrouble", message)
        } else {
            Self::permanent("StoreBroken", message)
        }
    }
}
