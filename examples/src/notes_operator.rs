//! This module is the operator of `notes`: the lifecycle of a document server and its handlers.
//!
//! The server itself is [`notes`](crate::notes), which knows nothing of Kubernetes: the operator starts and ends its
//! process, and the agent in that process does the rest. `tests/rehearsal.rs` rehearses this operator with a model of the
//! servers.

mod model;
mod processes;

use std::env;
use std::path::PathBuf;
use std::time::Duration;

use kube::{Client, CustomResource};
use okt::sidecar::id_at_agent;
use okt::{
    Action, Application, Context, Desired, Failure, LifecycleSpec, Observation, StateOnRecord,
    Status, lifecycle_graph,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::model::Model;
pub use self::processes::{HOME_VARIABLE, Processes};
use crate::notes::{Error, Instance, Program};

/// The life of a notes server.
#[lifecycle_graph]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotesState {
    /// The data directory is made and the server started.
    #[entry]
    #[trigger(Failed, on_error(attempts = 3))]
    #[child(Running)]
    Start,

    /// Documents are served.
    #[rest]
    #[condition(Available, reason = "Serving")]
    #[trigger(Start)]
    #[trigger(Failed, on_error(attempts = 3))]
    #[child(Servicing)]
    #[child(ReadOnly)]
    #[child(Stopping)]
    Running,

    /// A backup is made and checked while documents are served; then the file is vacuumed.
    #[visit]
    #[condition(Available, reason = "Serving")]
    #[trigger(Failed, after = "10m")]
    #[child(Running)]
    Servicing,

    /// Documents can be read; none is added any more.
    #[rest]
    #[condition(Available, reason = "ReadOnly")]
    #[no_route(
        Running,
        Servicing,
        reason = "a read-only notebook is never written again; delete it to have it archived"
    )]
    #[child(Stopping)]
    ReadOnly,

    /// Requests under way are finished, the journal is folded into the file.
    #[child(End)]
    Stopping,

    /// The server cannot run: a person has to check its data and then ask again.
    #[rest(hold, idle)]
    #[condition(Available, status = "False", reason = "Broken")]
    #[child(Start)]
    #[child(Stopping)]
    Failed,

    /// The documents are in the archive, the data directory is gone.
    #[leaf]
    End,
}

/// The desired state of a notebook.
#[derive(CustomResource, LifecycleSpec, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "demo.okt.dev",
    version = "v1",
    kind = "Notes",
    plural = "notes",
    singular = "notebook",
    namespaced,
    status = "Status<NotesState, NotesExtra>",
    printcolumn(name = "Documents", type_ = "integer", json_path = ".status.documents")
)]
#[serde(rename_all = "camelCase")]
pub struct NotesSpec {
    /// The desired lifecycle state of the server, and a visit.
    #[serde(default)]
    pub lifecycle: Desired<NotesState>,
    /// The longest body of a document, in bytes; 1 MiB by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maximum_body_bytes: Option<usize>,
    /// The pause after each step of a backup, in milliseconds; none by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backup_pause_ms: Option<u64>,
}

/// The status fields in addition to the lifecycle.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NotesExtra {
    /// How many documents the server holds.
    #[serde(default)]
    pub documents: u64,
}

/// The servers of notebooks: processes on this machine ([`Processes`]), or a [`Model`] of them in a test.
///
/// Every method can be called again after it was dropped, or its caller killed, at any point. The failures say whether a
/// retry helps.
pub trait Servers: Send + Sync + 'static {
    /// Creates the data directory of a server, if it does not exist.
    fn prepare(&self, notes: &Notes) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Starts a server, if it does not run.
    fn start(&self, notes: &Notes) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Lets the agent in the server do the work of a state, once for each id.
    fn perform(&self, cx: &Action<Notes>) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Does the same for the last work of a server, which is done as well when the server ends.
    fn drain(&self, cx: &Action<Notes>) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Stops a server, if it runs.
    fn stop(&self, notes: &Notes) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Moves the documents of a server to the archive, if there are any.
    fn archive(&self, notes: &Notes, id: &str) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Returns whether the process of a server exists.
    fn runs(&self, notes: &Notes) -> impl Future<Output = Result<bool, Failure>> + Send;

    /// Returns the observation of the agent in the server.
    fn observe(&self, cx: &Context<Notes>) -> impl Future<Output = Observation<NotesState>> + Send;

    /// Returns how many documents a server holds; none if it does not answer.
    fn count(&self, notes: &Notes) -> impl Future<Output = Option<u64>> + Send;
}

/// The operator of notebooks.
#[derive(Clone, Debug)]
pub struct Keeper<S = Processes> {
    servers: S,
}

impl Keeper {
    /// Creates an operator that keeps its servers below a directory and starts them by this command.
    pub fn new(home: impl Into<PathBuf>, server: Program) -> Self {
        Self::of(Processes::new(home.into(), server))
    }

    /// Creates the operator from the environment: data below `NOTES_HOME`, servers by `<this program> serve`.
    ///
    /// # Errors
    ///
    /// When the path of this program is unknown; a retry does not help.
    #[expect(
        clippy::unused_async,
        reason = "an operator that needs more than its environment connects here"
    )]
    pub async fn connect(_: Client) -> Result<Self, std::io::Error> {
        let home = env::var_os(HOME_VARIABLE).unwrap_or_else(|| "notes-home".into());
        let server = Program {
            exe: env::current_exe()?,
            args: vec!["serve".into()],
        };
        Ok(Self::new(home, server))
    }

    /// Returns the server of an object, in any state.
    ///
    /// # Errors
    ///
    /// When the name of the object cannot be part of a file name; a retry does not help.
    pub fn instance(&self, namespace: &str, name: &str) -> Result<Instance, Error> {
        self.servers.instance(namespace, name)
    }

    /// Returns the directory with the documents of servers that ended.
    pub fn archive(&self) -> PathBuf {
        self.servers.archive()
    }
}

impl<S: Servers> Keeper<S> {
    /// Creates an operator of these servers.
    pub fn of(servers: S) -> Self {
        Self { servers }
    }

    /// Returns the servers.
    pub fn servers(&self) -> &S {
        &self.servers
    }
}

impl<S: Servers> NotesStateHandler for Keeper<S> {
    type Context = Action<Notes>;
    type Error = Failure;

    async fn start(&self, cx: &Action<Notes>) -> Result<notes_state::AfterStart, Failure> {
        self.servers.prepare(cx.object()).await?;
        self.servers.start(cx.object()).await?;
        Ok(notes_state::AfterStart::Running)
    }

    async fn running(&self, cx: &Action<Notes>) -> Result<notes_state::AfterRunning, Failure> {
        self.servers.perform(cx).await?;
        Ok(notes_state::AfterRunning::Stay)
    }

    async fn servicing(&self, cx: &Action<Notes>) -> Result<notes_state::AfterServicing, Failure> {
        // The agent in the server makes the backup, once for this action, even if a process is restarted meanwhile.
        self.servers.perform(cx).await?;
        Ok(notes_state::AfterServicing::Next)
    }

    async fn read_only(&self, cx: &Action<Notes>) -> Result<notes_state::AfterReadOnly, Failure> {
        self.servers.perform(cx).await?;
        Ok(notes_state::AfterReadOnly::Stay)
    }

    async fn stopping(&self, cx: &Action<Notes>) -> Result<notes_state::AfterStopping, Failure> {
        if self.servers.runs(cx.object()).await? {
            self.servers.drain(cx).await?;
        }
        self.servers.stop(cx.object()).await?;
        Ok(notes_state::AfterStopping::End)
    }

    async fn end(&self, cx: &Action<Notes>) -> Result<(), Failure> {
        // A server that a killed operator started may have come up late.
        self.servers.stop(cx.object()).await?;
        self.servers
            .archive(cx.object(), &id_at_agent(cx.id()))
            .await
    }
}

impl<S: Servers> Application for Keeper<S> {
    type Resource = Notes;

    async fn observe(&self, cx: &Context<Notes>) -> Result<Observation<NotesState>, Failure> {
        if self.servers.runs(cx.object()).await? {
            return Ok(self.servers.observe(cx).await);
        }
        // No agent can answer, and there is no doubt: the kernel shows that no server runs.
        Ok(match cx.state() {
            StateOnRecord::New => Observation::absent(),
            StateOnRecord::Known(NotesState::Running) => {
                Observation::in_state(NotesState::Running).event(NotesState::Start)
            }
            // In these states a missing process does not contradict the record.
            StateOnRecord::Known(recorded) => Observation::in_state(recorded),
            // The release that knows the state decides what a missing process means.
            StateOnRecord::Unknown(_) => Observation::unobserved(),
        })
    }

    async fn extra(&self, cx: &Context<Notes>) -> Result<NotesExtra, Failure> {
        Ok(match self.servers.count(cx.object()).await {
            Some(documents) => NotesExtra { documents },
            // The last known number.
            None => (cx.object().status.as_ref())
                .map(|status| status.extra.clone())
                .unwrap_or_default(),
        })
    }

    /// An observation is a call on loopback, cheap enough for every second.
    fn observe_every(&self, _: NotesState) -> Duration {
        Duration::from_secs(1)
    }
}
