//! A database operator whose database is a script: handlers answer what a test tells them.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kube::{Api, Client, CustomResource};
use okt_runtime::{
    Action, Answer, Application, Cause, Context, Desired, Failure, Lifecycle, LifecycleSpec,
    Observation, Status, lifecycle_graph,
};
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

/// What a handler does next time.
#[derive(Clone, Debug)]
pub enum Reply {
    /// Answers.
    Say(Answer),
    /// Fails; trying again may help.
    Fail(&'static str),
    /// Fails for good.
    FailForGood(&'static str),
    /// Fails with this reason and message; trying again may help.
    FailAs(String, String),
    /// Panics.
    Panic,
    /// Takes that long, then answers.
    After(Duration, Answer),
    /// Never answers, but heeds a cancellation.
    UntilCancelled,
    /// Heeds a cancellation, but takes that long to clean up.
    CleansUpFor(Duration),
    /// Never answers, and heeds nothing.
    Hang,
    /// Says how far it is, then goes on with the next reply.
    Progress(String),
    /// Takes that long, then goes on with the next reply.
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
    /// What led there.
    pub cause: Option<Cause>,
    /// When, on tokio's clock.
    pub at: Instant,
    /// The position in the API at that moment: the state and the id of the action; where [`Databases::observe_into`] was called.
    pub stored: Option<(String, String)>,
}

/// What the database says of itself.
#[derive(Clone, Debug, Default)]
pub enum Sight {
    /// Nothing.
    #[default]
    Unobserved,
    /// There is none.
    Absent,
    /// It is in this state.
    In(DatabaseState),
    /// It is in this state, and this happened.
    Event(DatabaseState, DatabaseState),
    /// It does not answer.
    Unreachable,
    /// It is in a state of its own.
    Named(&'static str),
    /// Looking fails.
    Broken,
    /// Looking panics.
    Panics,
    /// Looking never ends.
    Hangs,
    /// Looking takes that long, and then says how it was at the beginning.
    Slow(Duration, DatabaseState),
}

/// The operator; clones share the script, so that one outlives a restart.
#[derive(Clone, Default)]
pub struct Databases(Arc<Mutex<Script>>);

#[derive(Default)]
struct Script {
    replies: HashMap<DatabaseState, VecDeque<Reply>>,
    ran: Vec<Ran>,
    sights: HashMap<String, Sight>,
    observations: u32,
    cancelled: u32,
    api: Option<Api<Database>>,
    at_work: HashMap<String, u32>,
    overlaps: u32,
    ended: u32,
    observe_every: Option<Duration>,
    attempt_limit: Option<Duration>,
}

/// Counts a piece of work for as long as it runs, however it ends.
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
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the handler of a state do this next, once; by default it says Next, or Stay at rest.
    pub fn next_time(&self, state: DatabaseState, reply: Reply) {
        self.script()
            .replies
            .entry(state)
            .or_default()
            .push_back(reply);
    }

    /// Forgets what handlers were told to do next.
    pub fn forget_replies(&self) {
        self.script().replies.clear();
    }

    /// Every call of a handler so far.
    pub fn ran(&self) -> Vec<Ran> {
        self.script().ran.clone()
    }

    /// How many handlers have seen their cancellation.
    pub fn cancelled(&self) -> u32 {
        self.script().cancelled
    }

    /// How often two pieces of work of one object ran at the same time.
    pub fn overlaps(&self) -> u32 {
        self.script().overlaps
    }

    /// How many handlers have ended, well or otherwise.
    pub fn ended(&self) -> u32 {
        self.script().ended
    }

    /// How often databases were looked at.
    pub fn observations(&self) -> u32 {
        self.script().observations
    }

    /// The states whose handlers ran for the object, in order.
    pub fn states(&self, name: &str) -> Vec<DatabaseState> {
        let of = |ran: Ran| (ran.name == name).then_some(ran.state);
        self.ran().into_iter().filter_map(of).collect()
    }

    /// From now on handlers read what is stored when they begin.
    pub fn observe_into(&self, client: Client) {
        self.script().api = Some(Self::api(client));
    }

    /// What the database of this name says from now on.
    pub fn sees(&self, name: &str, sight: Sight) {
        self.script().sights.insert(name.to_owned(), sight);
    }

    /// From now on every database is looked at again after this time.
    pub fn observe_again_after(&self, time: Duration) {
        self.script().observe_every = Some(time);
    }

    /// From now on an attempt may take this long; five minutes by default.
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
                Some(Reply::Say(answer)) => Ok(answer),
                Some(Reply::Fail(message)) => Err(Failure::retry("Refused", message)),
                Some(Reply::FailForGood(message)) => Err(Failure::permanent("Impossible", message)),
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
                Some(Reply::Pause(time)) => {
                    tokio::time::sleep(time).await;
                    continue;
                }
            };
        }
    }
}

/// An answer that only a handler of the given state could give; a script that names another is wrong.
macro_rules! answer {
    ($said:expr, $after:ty, $($state:ident),*) => {
        match $said {
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
        let said = self.work(DatabaseState::Running, cx).await?;
        if said == Answer::Stay {
            return Ok(database_state::AfterRunning::Stay);
        }
        answer!(
            said,
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
        self.script().observations += 1;
        let sight = self.script().sights.get(&name).cloned().unwrap_or_default();
        Ok(match sight {
            Sight::Unobserved => Observation::unobserved(),
            Sight::Absent => Observation::absent(),
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
        (self.script().observe_every).unwrap_or(Duration::from_secs(30))
    }

    fn attempt_limit(&self, _: DatabaseState) -> Duration {
        (self.script().attempt_limit).unwrap_or(Duration::from_mins(5))
    }
}

impl Served for Databases {
    fn api(client: Client) -> Api<Database> {
        Api::namespaced(client, "default")
    }

    fn object(name: &str, lifecycle: Value) -> Value {
        json!({
            "apiVersion": "demo.okt.dev/v1",
            "kind": "Database",
            "metadata": { "name": name },
            "spec": { "storage": "1Gi", "lifecycle": lifecycle },
        })
    }
}
