//! The contexts that your code receives: the object it acts upon, and the work it does.

use std::collections::BTreeSet;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use kube::Client;
use okt_core::backoff::Backoff;
use okt_core::{Visited, reasons};
use okt_reach::Failure;
use okt_sharding::gate::Gate;
use okt_telemetry::Telemetry;
use okt_telemetry::event::{Cause, Event, Occurrence};
use okt_wire::clock::Clock;
use okt_wire::desired::StateName;
use okt_wire::object::{LifecycleObject, memory_of, position_of};
use okt_wire::read;
use parking_lot::Mutex;
use serde::Serialize;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::author::progress::Progress;
use crate::author::recording::Recording;
use crate::requests::DecodedArgs;
use crate::resources::Cluster;

/// The state on record of an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StateOnRecord<'a, S> {
    /// The object is new, or its status was lost: nothing is recorded.
    New,
    /// A state of the graph.
    Known(S),
    /// A name that the graph does not have: another release of the operator recorded it.
    ///
    /// Do not treat the object as new: its application may be in use.
    Unknown(&'a str),
}

impl<S> StateOnRecord<'_, S> {
    /// Returns the state, if it is one of the graph.
    pub fn known(self) -> Option<S> {
        match self {
            Self::Known(state) => Some(state),
            Self::New | Self::Unknown(_) => None,
        }
    }
}

/// The object that your code observes or acts upon, with access to the cluster.
#[derive(Clone)]
pub struct Context<K: LifecycleObject> {
    object: Arc<K>,
    client: Client,
    pub(crate) cluster: Arc<Cluster>,
    clock: Clock,
    gate: Gate,
    telemetry: Telemetry,
}

impl<K: LifecycleObject> Context<K> {
    #[doc(hidden)]
    pub fn new(
        object: Arc<K>,
        client: Client,
        cluster: Arc<Cluster>,
        clock: Clock,
        gate: Gate,
        telemetry: Telemetry,
    ) -> Self {
        Self {
            object,
            client,
            cluster,
            clock,
            gate,
            telemetry,
        }
    }

    /// Returns the epoch of the replica that acts on the object: it grows whenever another replica takes over. None
    /// without [`Operator::replicas`](crate::Operator::replicas).
    ///
    /// Send it with requests to the application, and have the application refuse a lower one than it has seen: then a
    /// replica that was replaced changes nothing. Read it for each request.
    pub fn epoch(&self) -> Option<u64> {
        self.gate.epoch()
    }

    /// Returns the object as it was when this reconciliation began, or when the action was recorded.
    pub fn object(&self) -> &K {
        &self.object
    }

    /// Returns a client for other requests to the cluster.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Returns the state on record.
    ///
    /// ```
    /// # use okt_core::Lifecycle;
    /// # use okt_runtime::{Context, LifecycleObject, Observation, StateOnRecord};
    /// # fn look<K: LifecycleObject>(cx: &Context<K>) -> Observation<K::State> {
    /// match cx.state() {
    ///     // Nothing was done yet: the object enters the graph at the entry.
    ///     StateOnRecord::New => Observation::unobserved(),
    ///     StateOnRecord::Known(state) => Observation::in_state(state),
    ///     // The application may be in use. Only what you find out about it may move the object.
    ///     StateOnRecord::Unknown(_) => Observation::unobserved(),
    /// }
    /// # }
    /// ```
    pub fn state(&self) -> StateOnRecord<'_, K::State> {
        let position = position_of(&*self.object);
        match position.map(|position| &position.state) {
            None => StateOnRecord::New,
            Some(StateName::Known(state)) => StateOnRecord::Known(*state),
            Some(StateName::Unknown(name)) => StateOnRecord::Unknown(name),
        }
    }

    /// Returns how long the object has been in the state on record; none for a new object.
    ///
    /// The time goes on through restarts of the operator.
    pub fn time_in_state(&self) -> Option<Duration> {
        let since = position_of(&*self.object)?.since?;
        Some(self.clock.since(since))
    }

    /// Returns what the handlers remember of the object, as it is recorded; the default if they remember nothing yet.
    ///
    /// The type is the third one of the status: `#[kube(status = "Status<QueueState, QueueReport, QueueMemory>")]`.
    /// [`Action::remember`] changes it.
    pub fn memory(&self) -> K::Memory {
        // An object whose memory cannot be read is not acted upon.
        memory_of(&*self.object).unwrap_or_default()
    }

    /// Publishes a Kubernetes Event about the object, for people who run `kubectl describe`; it never waits.
    ///
    /// Kubernetes merges equal events of the last minutes. An object may have 25 events at once, and one more every five
    /// minutes; others are dropped. An event is not retried. What a user must act on belongs in the status as well:
    /// return a [`Failure`](crate::Failure).
    ///
    /// ```
    /// # use okt::{Context, Event, LifecycleObject};
    /// # fn example<K: LifecycleObject>(cx: &Context<K>) {
    /// cx.event(Event::normal("BackupTaken", "Backup", "wrote 1.2 GB to s3://backups/orders"));
    /// # }
    /// ```
    pub fn event(&self, event: Event) {
        let meta = self.object.meta();
        self.telemetry
            .record::<K>(meta, Occurrence::Published(event));
    }

    /// Returns whether the object is being deleted.
    pub fn is_deleting(&self) -> bool {
        self.object.meta().deletion_timestamp.is_some()
    }
}

/// The work of a state, as its handler receives it.
///
/// OKT may repeat the work under one id (after a crash, or when its outcome was lost), so it must be idempotent by
/// [`id`](Self::id).
pub struct Action<K: LifecycleObject> {
    context: Context<K>,
    id: String,
    attempt: u32,
    resumed: bool,
    pub(crate) began: Instant,
    /// Whether the handler has answered `Wait` in this attempt.
    pub(crate) continues: bool,
    pub(crate) cancellation: CancellationToken,
    pub(crate) progress: Progress,
    pub(crate) recording: Recording,
    /// How long attempts on a part wait.
    pub(crate) backoff: Backoff,
    /// The steps that this call of the handler has begun.
    pub(crate) steps: Mutex<BTreeSet<String>>,
    /// The arguments of the request that the work serves, or why there are none.
    pub(crate) args: Result<DecodedArgs, Failure>,
    /// Whether only another process does the work, and the next operator finds it there.
    pub(crate) is_elsewhere: Arc<AtomicBool>,
}

impl<K: LifecycleObject> Action<K> {
    pub(crate) fn new(
        context: Context<K>,
        id: String,
        attempt: u32,
        resumed: bool,
        cancellation: CancellationToken,
        progress: Progress,
        recording: Recording,
    ) -> Self {
        Self {
            context,
            id,
            attempt,
            resumed,
            began: Instant::now(),
            continues: false,
            cancellation,
            progress,
            recording,
            backoff: Backoff::default(),
            steps: Mutex::default(),
            args: Err(no_request()),
            is_elsewhere: Arc::default(),
        }
    }

    /// Returns the id of this piece of work, the same after every restart: `<uid>/<transition>@<time>`, with `/<k>`
    /// after the transition for the k-th revision.
    ///
    /// The time is the one at which the work was recorded, in milliseconds as hexadecimal digits. It tells work apart
    /// if a restored backup of the cluster repeats transition numbers. Do not parse it.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the number of this attempt, starting at 1; a hint, not part of the id.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Returns how long this attempt has been running, with the time that the handler waited after it answered `Wait`.
    pub fn attempt_age(&self) -> Duration {
        self.began.elapsed()
    }

    /// Returns the cause of the move into this state, also at a retry and after a restart; none if another writer wrote
    /// the history.
    pub fn cause(&self) -> Option<Cause> {
        read::cause(position_of(self.object())?)
    }

    /// Returns whether another operator process may have begun the work before.
    pub fn resumed(&self) -> bool {
        self.resumed
    }

    /// Completes when the work is cancelled: a trigger has come, or the object is gone.
    ///
    /// Clean up and return; the result is ignored.
    /// A handler that does not return is dropped at its next `.await` after 30 s.
    pub async fn cancelled(&self) {
        self.cancellation.cancelled().await;
    }

    /// Changes what is remembered of the object: what later states, `observe` and `resources` read with
    /// [`memory`](Context::memory), and what the work of this state needs after a crash.
    ///
    /// It is recorded with the end of the attempt, whether it succeeded or not, or with the transition out of the state:
    /// it costs no request of its own. Until then [`memory`](Context::memory) returns what is recorded, and `change` gets
    /// what this attempt has changed so far. If the operator crashes before, the work repeats, and remembers it again.
    ///
    /// # Errors
    ///
    /// If the memory takes more than 16 KiB as JSON, or cannot be written as JSON: then what was to be remembered before
    /// stays. A retry does not help.
    ///
    /// ```
    /// # use okt::{Action, Failure, LifecycleObject};
    /// # use okt::schemars::{self, JsonSchema};
    /// # use okt::serde::{self, Deserialize, Serialize};
    /// /// What the handlers of a queue remember of it.
    /// #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
    /// # #[serde(crate = "okt::serde")]
    /// # #[schemars(crate = "okt::schemars")]
    /// struct QueueMemory {
    ///     /// The number of brokers that may hold messages.
    ///     nodes: u32,
    /// }
    ///
    /// # fn example<K: LifecycleObject<Memory = QueueMemory>>(cx: &Action<K>) -> Result<(), Failure> {
    /// cx.remember(|memory| memory.nodes -= 1)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn remember(&self, change: impl FnOnce(&mut K::Memory)) -> Result<(), Failure> {
        self.recording.remember(|| self.memory(), change)
    }

    /// Changes what is remembered, as [`remember`](Self::remember) does, and waits until it is recorded: `observe` and
    /// `resources` read it from then on, although the work goes on.
    ///
    /// It costs a write of the status.
    ///
    /// # Errors
    ///
    /// As of [`remember`](Self::remember), or if the work is cancelled before it is recorded.
    pub async fn remember_now(
        &self,
        change: impl FnOnce(&mut K::Memory) + Send,
    ) -> Result<(), Failure> {
        self.remember(change)?;
        self.recording.recorded_now(&self.cancellation).await
    }

    /// Reports the progress of the work, for people, in `status.lifecycle.action.message`.
    ///
    /// A text of more than 256 bytes is cut. OKT writes the newest text, at most every ten seconds.
    pub fn progress(&self, text: impl Into<String>) {
        self.progress.set(text.into());
    }
}

impl<K: LifecycleObject, Args: 'static, R: Serialize> Visited<Args, R> for Action<K> {
    /// Returns the arguments as they were recorded when the request began: the same in each attempt, also after the request
    /// was deleted.
    ///
    /// # Panics
    ///
    /// If these are not the arguments of the state: only the handler of that state is given them.
    fn args(&self) -> &Args {
        let args = self.args.as_ref().ok().and_then(|args| args.downcast_ref());
        args.expect("a handler is called with the arguments of its state only")
    }

    fn finish(&self, result: &R) {
        self.recording.finish(result);
    }
}

/// The failure of work that needs a request, and serves none.
fn no_request() -> Failure {
    Failure::permanent(
        reasons::NO_REQUEST,
        "the work of this state serves requests, and the object is here without one",
    )
}

impl<K: LifecycleObject> Deref for Action<K> {
    type Target = Context<K>;

    fn deref(&self) -> &Context<K> {
        &self.context
    }
}
