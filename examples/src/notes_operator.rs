//! This module is the operator of `notes`: the lifecycle of a document server and its handlers.
//!
//! The server itself is [`notes`](crate::notes), which knows nothing of Kubernetes: the operator starts and ends its
//! process, and the agent in that process does the rest.

use std::env;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kube::{Client, CustomResource, ResourceExt};
use okt::sidecar::{Agents, id_at_agent};
use okt::{
    Action, Application, Context, Desired, Failure, LifecycleSpec, Observation, StateOnRecord,
    Status, lifecycle_graph,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::notes::{Error, Instance, Program, endpoint};

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

/// The operator of notebooks.
#[derive(Clone, Debug)]
pub struct Keeper {
    home: PathBuf,
    server: Program,
    agents: Agents<Notes>,
}

/// The environment variable that names the directory of all data.
pub const HOME_VARIABLE: &str = "NOTES_HOME";

impl Keeper {
    /// Creates an operator that keeps its servers below a directory and starts them by this command.
    pub fn new(home: impl Into<PathBuf>, server: Program) -> Self {
        let home = home.into();
        let agents = Agents::at({
            let home = home.clone();
            move |notes: &Notes| {
                let namespace = notes.namespace().unwrap_or_default();
                Ok(endpoint(&data(&home, &namespace, &notes.name_any())))
            }
        });
        Self {
            home,
            server,
            agents,
        }
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
        let data = data(&self.home, namespace, name);
        Instance::new(name, data, self.server.clone())
    }

    /// Returns the directory with the documents of servers that ended.
    pub fn archive(&self) -> PathBuf {
        self.home.join("archive")
    }

    fn of(&self, cx: &Context<Notes>) -> Result<Instance, Failure> {
        let namespace = cx.object().namespace().unwrap_or_default();
        self.instance(&namespace, &cx.object().name_any())
            .map_err(|error| failure(&error))
    }

    /// Lets the agent do the work of a state; restarts a server that ends meanwhile, and its agent continues.
    async fn perform(&self, cx: &Action<Notes>) -> Result<(), Failure> {
        let server = self.of(cx)?;
        tokio::select! {
            performed = self.agents.perform(cx) => {
                cx.progress(performed?.message);
                Ok(())
            }
            error = server.keep() => Err(failure(&error)),
        }
    }
}

/// Returns the data directory of a server.
fn data(home: &Path, namespace: &str, name: &str) -> PathBuf {
    home.join("data").join(namespace).join(name)
}

/// Converts an error, which states whether a retry helps.
fn failure(error: &Error) -> Failure {
    // A killed server is started again, by the next attempt or after an observation.
    if error.is_transient() || matches!(error, Error::NotRunning { .. }) {
        Failure::retry("ServerTrouble", error.to_string())
    } else {
        Failure::permanent("ServerBroken", error.to_string())
    }
}

impl NotesStateHandler for Keeper {
    type Context = Action<Notes>;
    type Error = Failure;

    async fn start(&self, cx: &Action<Notes>) -> Result<notes_state::AfterStart, Failure> {
        let server = self.of(cx)?;
        server.prepare().await.map_err(|error| failure(&error))?;
        server.start().await.map_err(|error| failure(&error))?;
        Ok(notes_state::AfterStart::Running)
    }

    async fn running(&self, cx: &Action<Notes>) -> Result<notes_state::AfterRunning, Failure> {
        self.perform(cx).await?;
        Ok(notes_state::AfterRunning::Stay)
    }

    async fn servicing(&self, cx: &Action<Notes>) -> Result<notes_state::AfterServicing, Failure> {
        // The agent in the server makes the backup, once for this action, even if a process is restarted meanwhile.
        self.perform(cx).await?;
        Ok(notes_state::AfterServicing::Next)
    }

    async fn read_only(&self, cx: &Action<Notes>) -> Result<notes_state::AfterReadOnly, Failure> {
        self.perform(cx).await?;
        Ok(notes_state::AfterReadOnly::Stay)
    }

    async fn stopping(&self, cx: &Action<Notes>) -> Result<notes_state::AfterStopping, Failure> {
        let server = self.of(cx)?;
        if server.runs().await.map_err(|error| failure(&error))? {
            tokio::select! {
                performed = self.agents.perform(cx) => drop(performed?),
                // Every acknowledged document is on the disk, however its server ended.
                gone = server.gone() => gone.map_err(|error| failure(&error))?,
            }
        }
        server.stop().await.map_err(|error| failure(&error))?;
        Ok(notes_state::AfterStopping::End)
    }

    async fn end(&self, cx: &Action<Notes>) -> Result<(), Failure> {
        let server = self.of(cx)?;
        // A server that a killed operator started may have come up late.
        server.stop().await.map_err(|error| failure(&error))?;
        match server.archive(&id_at_agent(cx.id()), self.archive()).await {
            // Without a preparation nothing was ever created.
            Ok(_) | Err(Error::NotPrepared { .. }) => Ok(()),
            Err(error) => Err(failure(&error)),
        }
    }
}

impl Application for Keeper {
    type Resource = Notes;

    async fn observe(&self, cx: &Context<Notes>) -> Result<Observation<NotesState>, Failure> {
        let runs = self.of(cx)?.runs().await;
        if runs.map_err(|error| failure(&error))? {
            return Ok(self.agents.observe(cx).await);
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
        let server = self.of(cx)?;
        Ok(match server.count().await {
            Ok(documents) => NotesExtra { documents },
            // The last known number.
            Err(_) => (cx.object().status.as_ref())
                .map(|status| status.extra.clone())
                .unwrap_or_default(),
        })
    }

    /// An observation is a call on loopback, cheap enough for every second.
    fn observe_every(&self, _: NotesState) -> Duration {
        Duration::from_secs(1)
    }
}

#[cfg(test)]
mod tests {
    use super::{Error, failure};

    #[test]
    fn a_killed_server_is_not_broken() {
        let data = "data".into();
        assert!(!failure(&Error::NotRunning { data }).is_permanent());
        let data = "data".into();
        assert!(failure(&Error::NotPrepared { data }).is_permanent());
    }
}
