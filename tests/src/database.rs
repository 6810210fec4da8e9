//! The application of databases, whose handlers follow the script of a test.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use kube::{Api, Client, CustomResource};
use okt::{
    Action, Answer, Application, Cause, Context, Desired, Event, Failure, Lifecycle, LifecycleSpec,
    Observation, Status, lifecycle_graph,
};
use parking_lot::{Mutex, MutexGuard};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::cluster::Served;

/// The life of a database server.
#[lifecycle_graph]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DatabaseState {
    /// The data directory is being made.
    #[entry]
    #[trigger(Failed, on_error(attempts = 5))]
    #[child(Running)]
    Start,

    /// Clients may connect.
    #[rest]
    #[condition(Available, reason = "AcceptingConnections")]
    #[trigger(Failed, on_error(attempts = 3))]
    #[child(Servicing)]
    #[child(Stopping)]
    Running,

    /// A backup is under way.
    #[visit]
    #[condition(Available, reason = "AcceptingConnections")]
    #[trigger(Failed, after = "30m")]
    #[child(Running)]
    #[child(End)]
    Servicing,

    /// Clients are being asked to leave.
    #[child(End)]
    Stopping,

    /// Somebody has to look.
    #[rest(hold, idle)]
    #[condition(Available, status = "False", reason = "Broken")]
    #[child(Running)]
    #[child(Servicing)]
    #[child(Stopping)]
    Failed,

    /// The server is gone; its volume is kept.
    #[leaf(idle)]
    End,
}

/// What a user asks for.
#[derive(CustomResource, LifecycleSpec, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "demo.okt.dev",
    version = "v1",
    kind = "Database",
    namespaced,
    status = "Status<DatabaseState>"
)]
pub struct DatabaseSpec {
    /// Where the server should be in its life.
    #[serde(default)]
    pub lifecycle: Desired<DatabaseState>,
    /// The size of the volume.
    pub storage: String,
}

/// The next behavior of a handler.
#[derive(Clone, Debug)]
pub enum Reply {
    /// Returns this answer.
    Answer(Answer),
    /// Fails with a retryable error.
    Fail(&'static str),
    /// Fails with a permanent error.
    FailPermanently(&'static str),
    /// Fails with a retryable error with this reason and message.
    FailAs(String, String),
    /// Panics.
    Panic,
    /// Waits for this time, then returns the answer.
    After(Duration, Answer),
    /// Never returns, except after a cancellation.
    UntilCancelled,
    /// Returns after a cancellation, once this time has passed.
    CleansUpFor(Duration),
    /// Never returns, and ignores a cancellation.
    Hang,
    /// Reports progress, then continues with the next reply.
    Progress(String),
    /// Publishes an event, then continues with the next reply.
    Publish(Event),
    /// Waits for this time, then continues with the next reply.
    Pause(Duration),
}

/// One call of a handler.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ran {
    /// The name of the object.
    pub name: String,
    /// The state.
    pub state: DatabaseState,
    /// The id of the action.
    pub id: String,
    /// The attempt.
    pub attempt: u32,
    /// Whether it was resumed.
    pub resumed: bool,
    /// The cause of the last transition.
    pub cause: Option<Cause>,
    /// The epoch of the replica.
    pub epoch: Option<u64>,
    /// The time, on tokio's clock.
    pub at: Instant,
    /// The stored position at that time: the state and the id of the action. It is set after a call of
    /// [`Databases::observe_into`].
    pub stored: Option<(String, String)>,
}

/// The state that an observation of the database returns.
#[derive(Clone, Debug, Default)]
pub enum Sight {
    /// Nothing.
    #[default]
    Unobserved,
    /// The database does not exist.
    Absent,
    /// There is none, which counts after this time.
    AbsentFor(Duration),
    /// The database is in this state.
    In(DatabaseState),
    /// The database is in this state, with an event.
    Event(DatabaseState, DatabaseState),
    /// The database does not answer.
    Unreachable,
    /// The database is in a state with this name.
    Named(&'static str),
    /// The observation fails.
    Broken,
    /// The observation panics.
    Panics,
    /// The observation never ends.
    Hangs,
    /// The observation takes this time, and then returns the state of its beginning.
    Slow(Duration, DatabaseState),
}

/// The operator of databases. Clones share the script, so that it outlives a restart.
#[derive(Clone, Default)]
pub struct Databases(Arc<Mutex<Script>>);

#[derive(Default)]
struct Script {
    replies: HashMap<DatabaseState, VecDeque<Reply>>,
    ran: Vec<Ran>,
    sights: HashMap<String, Sight>,
    observed: Vec<String>,
    cancelled: u32,
    api: Option<Api<Database>>,
    at_work: HashMap<String, u32>,
    overlaps: u32,
    ended: u32,
    observe_every: Option<Duration>,
    attempt_limit: Option<Duration>,
}

/// Counts a running action until it ends, in whatever way.
struct AtWork(Databases, String);

impl AtWork {
    fn on(databases: &Databases, uid: &str) -> Self {
        let mut script = databases.script();
        let at_work = script.at_work.entry(uid.to_owned()).or_default();
        *at_work += 1;
        if *at_work > 1 {
            script.overlaps += 1;
        }
        drop(script);
        Self(databases.clone(), uid.to_owned())
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        let mut script = self.0.script();
        script.ended += 1;
        if let Some(at_work) = script.at_work.get_mut(&self.1) {
            *at_work -= 1;
        }
    }
}

impl Databases {
    fn script(&self) -> MutexGuard<'_, Script> {
        self.0.lock()
    }

    /// Sets the next behavior of a state's handler, once. By default it returns Next, or Stay in a resting state.
    pub fn next_time(&self, state: DatabaseState, reply: Reply) {
        self.script()
            .replies
            .entry(state)
            .or_default()
            .push_back(reply);
    }

    /// Sets the next replies of a state to the same one.
    pub fn next_times(&self, times: usize, state: DatabaseState, reply: &Reply) {
        for _ in 0..times {
            self.next_time(state, reply.clone());
        }
    }

    /// Forgets the replies that were not given yet.
    pub fn forget_replies(&self) {
        self.script().replies.clear();
    }

    /// Returns every call of a handler so far.
    pub fn ran(&self) -> Vec<Ran> {
        self.script().ran.clone()
    }

    /// Returns the number of handlers that received their cancellation.
    pub fn cancelled(&self) -> u32 {
        self.script().cancelled
    }

    /// Returns the number of times that two actions of one object ran at the same time.
    pub fn overlaps(&self) -> u32 {
        self.script().overlaps
    }

    /// Returns the number of handlers that have ended, successfully or not.
    pub fn ended(&self) -> u32 {
        self.script().ended
    }

    /// Returns the number of observations.
    pub fn observations(&self) -> u32 {
        u32::try_from(self.script().observed.len()).unwrap_or(u32::MAX)
    }

    /// Returns the names of the observed databases, in order.
    pub fn observed(&self) -> Vec<String> {
        self.script().observed.clone()
    }

    /// Returns the states whose handlers ran for the object, in order.
    pub fn states(&self, name: &str) -> Vec<DatabaseState> {
        let of = |ran: Ran| (ran.name == name).then_some(ran.state);
        self.ran().into_iter().filter_map(of).collect()
    }

    /// Makes handlers read the stored position when they start.
    pub fn observe_into(&self, client: Client) {
        self.script().api = Some(Self::api(client));
    }

    /// Sets the state that observations of this database return.
    pub fn sees(&self, name: &str, sight: Sight) {
        self.script().sights.insert(name.to_owned(), sight);
    }

    /// Sets the time until the next observation of every database.
    pub fn observe_again_after(&self, time: Duration) {
        self.script().observe_every = Some(time);
    }

    /// Sets the maximum time of an attempt; the default is five minutes.
    pub fn limit_attempts(&self, time: Duration) {
        self.script().attempt_limit = Some(time);
    }

    async fn stored(&self, name: &str) -> Option<(String, String)> {
        let api = self.script().api.clone()?;
        let database = api.get_opt(name).await.ok()??;
        let position = database.status?.lifecycle?;
        Some((position.state.to_string(), position.action?.id))
    }

    async fn work(&self, state: DatabaseState, cx: &Action<Database>) -> Result<Answer, Failure> {
        let meta = &cx.object().metadata;
        let _at_work = AtWork::on(self, meta.uid.as_deref().unwrap_or_default());
        let name = meta.name.clone().unwrap_or_default();
        let stored = self.stored(&name).await;
        self.script().ran.push(Ran {
            name,
            state,
            id: cx.id().to_owned(),
            attempt: cx.attempt(),
            resumed: cx.resumed(),
            cause: cx.cause(),
            epoch: cx.epoch(),
            at: Instant::now(),
            stored,
        });
        loop {
            let reply = self
                .script()
                .replies
                .get_mut(&state)
                .and_then(VecDeque::pop_front);
            return match reply {
                None if state == DatabaseState::Running => Ok(Answer::Stay),
                None => Ok(Answer::Next),
                Some(Reply::Answer(answer)) => Ok(answer),
                Some(Reply::Fail(message)) => Err(Failure::retry("Refused", message)),
                Some(Reply::FailPermanently(message)) => {
                    Err(Failure::permanent("Impossible", message))
                }
                Some(Reply::FailAs(reason, message)) => Err(Failure::retry(reason, message)),
                Some(Reply::Panic) => panic!("a handler that panics"),
                Some(Reply::After(time, answer)) => {
                    tokio::time::sleep(time).await;
                    Ok(answer)
                }
                Some(Reply::UntilCancelled) => {
                    cx.cancelled().await;
                    self.script().cancelled += 1;
                    Ok(Answer::Next)
                }
                Some(Reply::CleansUpFor(time)) => {
                    cx.cancelled().await;
                    self.script().cancelled += 1;
                    tokio::time::sleep(time).await;
                    Ok(Answer::Next)
                }
                Some(Reply::Hang) => std::future::pending().await,
                Some(Reply::Progress(text)) => {
                    cx.progress(text);
                    continue;
                }
                Some(Reply::Publish(event)) => {
                    cx.event(event);
                    continue;
                }
                Some(Reply::Pause(time)) => {
                    tokio::time::sleep(time).await;
                    continue;
                }
            };
        }
    }
}

/// Converts an answer for the handler of a state; a script must not name a target that the state does not have.
macro_rules! answer {
    ($answer:expr, $after:ty, $($state:ident),*) => {
        match $answer {
            $(Answer::To(to) if to == DatabaseState::$state.id() => Ok(<$after>::$state),)*
            Answer::Wait(time) => Ok(<$after>::Wait(time)),
            _ => Ok(<$after>::Next),
        }
    };
}

impl DatabaseStateHandler for Databases {
    type Context = Action<Database>;
    type Error = Failure;

    async fn start(&self, cx: &Action<Database>) -> Result<database_state::AfterStart, Failure> {
        answer!(
            self.work(DatabaseState::Start, cx).await?,
            database_state::AfterStart,
            Running,
            Failed
        )
    }

    async fn running(
        &self,
        cx: &Action<Database>,
    ) -> Result<database_state::AfterRunning, Failure> {
        let answer = self.work(DatabaseState::Running, cx).await?;
        if answer == Answer::Stay {
            return Ok(database_state::AfterRunning::Stay);
        }
        answer!(
            answer,
            database_state::AfterRunning,
            Servicing,
            Stopping,
            Failed
        )
    }

    async fn servicing(
        &self,
        cx: &Action<Database>,
    ) -> Result<database_state::AfterServicing, Failure> {
        answer!(
            self.work(DatabaseState::Servicing, cx).await?,
            database_state::AfterServicing,
            Running,
            End,
            Failed
        )
    }

    async fn stopping(
        &self,
        cx: &Action<Database>,
    ) -> Result<database_state::AfterStopping, Failure> {
        answer!(
            self.work(DatabaseState::Stopping, cx).await?,
            database_state::AfterStopping,
            End
        )
    }
}

impl Application for Databases {
    type Resource = Database;

    async fn observe(&self, cx: &Context<Database>) -> Result<Observation<DatabaseState>, Failure> {
        let name = cx.object().metadata.name.clone().unwrap_or_default();
        self.script().observed.push(name.clone());
        let sight = self.script().sights.get(&name).cloned().unwrap_or_default();
        Ok(match sight {
            Sight::Unobserved => Observation::unobserved(),
            Sight::Absent => Observation::absent(),
            Sight::AbsentFor(time) => Observation::absent_for(time),
            Sight::In(state) => Observation::in_state(state),
            Sight::Event(state, event) => Observation::in_state(state).event(event),
            Sight::Unreachable => Observation::unreachable("connection refused"),
            Sight::Named(name) => Observation::named(name),
            Sight::Broken => return Err(Failure::retry("ObservationFailed", "no such command")),
            Sight::Panics => panic!("an observation that panics"),
            Sight::Hangs => std::future::pending().await,
            Sight::Slow(time, state) => {
                tokio::time::sleep(time).await;
                Observation::in_state(state)
            }
        })
    }

    fn observe_every(&self, _: DatabaseState) -> Duration {
        self.script()
            .observe_every
            .unwrap_or(Duration::from_secs(30))
    }

    fn attempt_limit(&self, _: DatabaseState) -> Duration {
        self.script()
            .attempt_limit
            .unwrap_or(Duration::from_mins(5))
    }
}

impl Served for Databases {
    fn object(name: &str, lifecycle: Value) -> Value {
        json!({
            "apiVersion": "demo.okt.dev/v1",
            "kind": "Database",
            "metadata": { "name": name },
            "spec": { "storage": "1Gi", "lifecycle": lifecycle },
        })
    }
}
