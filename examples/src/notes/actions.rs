//! This file runs one action at a time, each at most once under its id.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tokio::sync::{Mutex, Notify};

use super::backup::back_up;
use super::error::{StoreError, sentence};
use super::files::{self, BACKUPS, DATABASE};
use super::library::{Library, blocking};
use super::store::Store;
use super::wire::{Action, ActionState, Detail, Door, Order, RunningAction, Settings};

/// More than this and a request would not fit into what axum is told to read.
const MAXIMUM_BODY_BYTES: usize = 8 << 20;
const DEFAULT_BODY_BYTES: usize = 1 << 20;
/// The property that holds the [`Settings`].
const SETTINGS: &str = "settings";

/// The actions of one process.
///
/// Their results are rows of the database. What runs is known here: a row that says `Running` without an entry here is
/// of a process that ended, or of a result that could not be written, and is reported as `Unknown`.
#[derive(Debug)]
pub(super) struct Actions {
    library: Arc<Library>,
    data: PathBuf,
    /// The pause of backups while the settings name none.
    pause: Duration,
    settings: RwLock<Settings>,
    /// Held while a row of an action is read or written, so that row and entry agree.
    running: Mutex<Option<RunningAction>>,
    stop: Arc<AtomicBool>,
    idle: Notify,
    drained: Notify,
    told: Notify,
}

/// What becomes of an order.
#[derive(Debug)]
pub(super) enum Verdict {
    /// It begins now.
    Begun(Action),
    /// It is under way or done.
    Known(Action),
    /// Another one is under way.
    Busy(RunningAction),
    /// The process is about to end.
    Draining,
    /// It makes no sense, for this reason.
    Nonsense(String),
}

impl Actions {
    /// Takes over from the process before, which was killed if it left something running.
    pub(super) async fn take_over(
        library: Arc<Library>,
        data: PathBuf,
        pause: Duration,
    ) -> Result<Arc<Self>, StoreError> {
        let (disowned, settings) = library
            .write(|store| Ok((store.disown_running()?, store.property(SETTINGS)?)))
            .await?;
        if disowned > 0 {
            tracing::warn!(disowned, "an action of the process before did not end");
        }
        // Settings of a version that knew others are better left at their defaults than a reason not to serve.
        let settings = settings
            .and_then(|settings| serde_json::from_str(&settings).ok())
            .unwrap_or_default();
        Ok(Arc::new(Self {
            library,
            data,
            pause,
            settings: RwLock::new(settings),
            running: Mutex::default(),
            stop: Arc::default(),
            idle: Notify::new(),
            drained: Notify::new(),
            told: Notify::new(),
        }))
    }

    /// Begins the action, or says why not.
    pub(super) async fn order(
        self: &Arc<Self>,
        id: String,
        order: Order,
    ) -> Result<Verdict, StoreError> {
        if let Some(reason) = nonsense(&id, &order) {
            return Ok(Verdict::Nonsense(reason));
        }
        let mut running = self.running.lock().await;
        let kind = order.kind();
        if let Some(action) = self.recorded(&id, running.as_ref()).await? {
            if action.kind != kind {
                let reason = format!("action {id} is a {}; use another id", action.kind.as_str());
                return Ok(Verdict::Nonsense(reason));
            }
            match action.state {
                ActionState::Running | ActionState::Succeeded { .. } => {
                    return Ok(Verdict::Known(action));
                }
                // A retry has the id of the attempt before: without this, what failed once would fail for ever.
                ActionState::Failed { .. } | ActionState::Unknown => {}
            }
        }
        if let Some(other) = &*running {
            return Ok(Verdict::Busy(other.clone()));
        }
        if self.library.door() == Door::Draining {
            return Ok(Verdict::Draining);
        }
        let begun = RunningAction {
            id: id.clone(),
            kind,
        };
        self.library
            .write(move |store| store.begin(&begun.id, begun.kind))
            .await?;
        *running = Some(RunningAction {
            id: id.clone(),
            kind,
        });
        tokio::spawn(Arc::clone(self).run(id.clone(), order));
        Ok(Verdict::Begun(Action {
            id,
            kind,
            state: ActionState::Running,
        }))
    }

    /// What is known of an action.
    pub(super) async fn report(&self, id: &str) -> Result<Option<Action>, StoreError> {
        let running = self.running.lock().await;
        self.recorded(id, running.as_ref()).await
    }

    pub(super) async fn running(&self) -> Option<RunningAction> {
        self.running.lock().await.clone()
    }

    pub(super) fn maximum_body_bytes(&self) -> usize {
        self.settings()
            .maximum_body_bytes
            .unwrap_or(DEFAULT_BODY_BYTES)
    }

    /// Returns once an ordered drain is done.
    pub(super) async fn drained(&self) {
        self.drained.notified().await;
    }

    /// Notes that a client was told the end of an action.
    pub(super) fn tell(&self, action: &Action) {
        if self.library.door() == Door::Draining
            && matches!(action.state, ActionState::Succeeded { .. })
        {
            self.told.notify_one();
        }
    }

    /// Returns once a client was told the end of an action after the door was closed.
    pub(super) async fn told(&self) {
        self.told.notified().await;
    }

    /// Stops what is under way, then drains; for a process that was asked to end by a signal.
    pub(super) async fn finish(&self) -> Result<(), StoreError> {
        self.stop.store(true, Ordering::SeqCst);
        self.library.close().await;
        while self.running.lock().await.is_some() {
            self.idle.notified().await;
        }
        self.library.checkpoint().await
    }

    async fn recorded(
        &self,
        id: &str,
        running: Option<&RunningAction>,
    ) -> Result<Option<Action>, StoreError> {
        let wanted = id.to_owned();
        let mut action = self
            .library
            .read(move |store| store.action(&wanted))
            .await?;
        if let Some(action) = &mut action
            && action.state == ActionState::Running
            && running.is_none_or(|running| running.id != id)
        {
            action.state = ActionState::Unknown;
        }
        Ok(action)
    }

    async fn run(self: Arc<Self>, id: String, order: Order) {
        tracing::info!(id, kind = order.kind().as_str(), "action begins");
        let draining = matches!(order, Order::Drain {});
        let result = match order {
            Order::Backup {} => self.back_up(&id).await,
            Order::Drain {} => self.drain().await,
            Order::Configure(settings) => self.configure(settings).await,
        };
        let state = match result {
            Ok(detail) => ActionState::Succeeded { detail },
            Err(error) => ActionState::Failed {
                message: sentence(&error),
            },
        };
        let succeeded = matches!(state, ActionState::Succeeded { .. });
        let mut running = self.running.lock().await;
        let ended = {
            let (id, state) = (id.clone(), state.clone());
            let end = move |store: &Store| store.end(&id, &state);
            self.library.write(end).await
        };
        // Only what was written down has ended: the rest is done again.
        match &ended {
            Ok(()) => tracing::info!(id, ?state, "action ends"),
            Err(error) => {
                tracing::error!(id, error = sentence(error), "result of action is lost");
            }
        }
        *running = None;
        drop(running);
        self.idle.notify_one();
        if draining {
            if succeeded && ended.is_ok() {
                // The result itself went into the log that the drain had emptied; it is replayed if this fails.
                let _ = self.library.checkpoint().await;
                self.drained.notify_one();
            } else if !self.stop.load(Ordering::SeqCst) {
                self.library.reopen();
            }
        }
    }

    async fn back_up(&self, id: &str) -> Result<Detail, StoreError> {
        let file = format!(
            "{}.db",
            files::name_of(id).expect("an id is checked before its action begins")
        );
        let target = self.data.join(BACKUPS).join(&file);
        let database = self.data.join(DATABASE);
        let pause = self
            .settings()
            .backup_pause_ms
            .map_or(self.pause, Duration::from_millis);
        let stop = Arc::clone(&self.stop);
        let documents = blocking(move || back_up(&database, &target, pause, &stop)).await?;
        self.library.write(Store::vacuum).await?;
        // The vacuum wrote the whole database into the log; whether it shrinks now or at a later write is no failure.
        let _ = self.library.checkpoint().await;
        Ok(Detail {
            documents,
            file: Some(file),
        })
    }

    async fn drain(&self) -> Result<Detail, StoreError> {
        self.library.close().await;
        self.library.checkpoint().await?;
        let documents = self.library.read(Store::count).await?;
        Ok(Detail {
            documents,
            file: None,
        })
    }

    async fn configure(&self, settings: Settings) -> Result<Detail, StoreError> {
        let json = serde_json::to_string(&settings).expect("settings have string keys only");
        self.library
            .write(move |store| store.set_property(SETTINGS, &json))
            .await?;
        *self
            .settings
            .write()
            .unwrap_or_else(PoisonError::into_inner) = settings;
        let documents = self.library.read(Store::count).await?;
        Ok(Detail {
            documents,
            file: None,
        })
    }

    fn settings(&self) -> Settings {
        self.settings
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

fn nonsense(id: &str, order: &Order) -> Option<String> {
    if files::name_of(id).is_none() {
        return Some(format!(
            "the id {id:?} cannot name a file: {}",
            files::NAMEABLE
        ));
    }
    match order {
        Order::Configure(Settings {
            maximum_body_bytes: Some(bytes),
            ..
        }) if *bytes > MAXIMUM_BODY_BYTES => Some(format!(
            "maximumBodyBytes is {bytes}; use at most {MAXIMUM_BODY_BYTES}"
        )),
        Order::Backup {} | Order::Drain {} | Order::Configure(_) => None,
    }
}
