//! This file is what the agent in a server does for the operator: where the server is, and the work of its states.

use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use okt_sidecar::wire::Sighting;
use okt_sidecar::{Done, Fault, Leftover, Offer, Task, Work};
use tokio::sync::Mutex;

use super::backup::{Saved, back_up};
use super::error::{StoreError, sentence};
use super::files::{BACKUPS, DATABASE};
use super::library::{Library, Standing, blocking};
use super::store::Store;
use super::wire::Settings;

/// More than this and a request would not fit into what axum is told to read.
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
    /// The pause of backups while the settings name none.
    pause: Duration,
    /// Held while a backup is written, also by a thread that nobody waits for any more.
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

    /// Takes documents under the settings of the spec.
    async fn open(&self, task: &Task) -> Result<String, Fault> {
        // Without one the operator is no keeper of notebooks; its silence must not undo what was set.
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

    /// Writes the backup of this id, unless it is there.
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
        // The vacuum wrote the whole database into the log; whether it shrinks now or at a later write is no failure.
        let _ = self.library.checkpoint().await;
        Ok(format!("{documents} documents are safe"))
    }

    /// Takes no more documents, for ever.
    async fn shut(&self) -> Result<String, Fault> {
        let settings = Settings {
            read_only: true,
            ..self.library.settings().await
        };
        self.library.configure(settings).await?;
        Ok("documents can be read".to_owned())
    }

    /// Takes no more documents for the rest of this process, and folds the journal into the file.
    async fn drain(&self) -> Result<String, Fault> {
        self.library.close().await;
        self.library.checkpoint().await?;
        let documents = self.library.read(Store::count).await?;
        Ok(format!("{documents} documents are on the disk"))
    }
}

impl Work for Service {
    /// All of it may be begun again: settings replace settings, and a backup that is there under its id stays.
    fn offers(&self) -> Vec<Offer> {
        [RUNNING, SERVICING, READ_ONLY, STOPPING]
            .map(|state| Offer {
                state: state.to_owned(),
                repeatable: true,
            })
            .into()
    }

    async fn observe(&self) -> Sighting {
        // A process whose database is gone answers, and is not well.
        if let Err(error) = self.library.read(|store| store.get(0)).await {
            return Sighting::unreachable(sentence(&error));
        }
        match self.library.standing().await {
            Standing::Open => Sighting::in_state(RUNNING),
            Standing::ReadOnly => Sighting::in_state(READ_ONLY),
            // By order, or because somebody sent a signal, which is no wish to have it archived.
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

    /// A process that was killed leaves files only, which the next one removes when it opens the directory; what is
    /// left in this one is the thread of a backup, told to stop.
    async fn recover(&self, _: &Leftover) -> Result<(), Fault> {
        drop(self.writing.lock().await);
        Ok(())
    }
}

/// Tells the thread of a backup to stop, at the latest when nobody waits for it any more.
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
