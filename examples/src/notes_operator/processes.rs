//! The servers of notebooks as processes on this machine.

use std::path::{Path, PathBuf};

use kube::ResourceExt;
use okt::sidecar::Agents;
use okt::{Action, Context, Failure, Observation};

use super::{Notes, NotesState, Servers};
use crate::notes::{Error, Instance, Program, endpoint};

/// The environment variable that names the directory of all data.
pub const HOME_VARIABLE: &str = "NOTES_HOME";

/// Servers that are processes, each with its agent; their data is below one directory.
#[derive(Clone, Debug)]
pub struct Processes {
    home: PathBuf,
    server: Program,
    agents: Agents<Notes>,
}

impl Processes {
    /// Creates no process yet; `server` is the command that starts one.
    pub fn new(home: PathBuf, server: Program) -> Self {
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

    pub(super) fn instance(&self, namespace: &str, name: &str) -> Result<Instance, Error> {
        let data = data(&self.home, namespace, name);
        Instance::new(name, data, self.server.clone())
    }

    pub(super) fn archive(&self) -> PathBuf {
        self.home.join("archive")
    }

    fn of(&self, notes: &Notes) -> Result<Instance, Failure> {
        let namespace = notes.namespace().unwrap_or_default();
        (self.instance(&namespace, &notes.name_any())).map_err(|error| failure(&error))
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

impl Servers for Processes {
    async fn prepare(&self, notes: &Notes) -> Result<(), Failure> {
        let prepared = self.of(notes)?.prepare().await;
        prepared.map_err(|error| failure(&error))
    }

    async fn start(&self, notes: &Notes) -> Result<(), Failure> {
        let started = self.of(notes)?.start().await;
        started.map(drop).map_err(|error| failure(&error))
    }

    /// Restarts a server that ends meanwhile, and its agent continues.
    async fn perform(&self, cx: &Action<Notes>) -> Result<(), Failure> {
        let server = self.of(cx.object())?;
        tokio::select! {
            performed = self.agents.perform(cx) => {
                cx.progress(performed?.message);
                Ok(())
            }
            error = server.keep() => Err(failure(&error)),
        }
    }

    async fn drain(&self, cx: &Action<Notes>) -> Result<(), Failure> {
        let server = self.of(cx.object())?;
        tokio::select! {
            performed = self.agents.perform(cx) => performed.map(drop),
            // Every acknowledged document is on the disk, however its server ended.
            gone = server.gone() => gone.map_err(|error| failure(&error)),
        }
    }

    async fn stop(&self, notes: &Notes) -> Result<(), Failure> {
        let stopped = self.of(notes)?.stop().await;
        stopped.map(drop).map_err(|error| failure(&error))
    }

    async fn archive(&self, notes: &Notes, id: &str) -> Result<(), Failure> {
        match self.of(notes)?.archive(id, Self::archive(self)).await {
            // Without a preparation nothing was ever created.
            Ok(_) | Err(Error::NotPrepared { .. }) => Ok(()),
            Err(error) => Err(failure(&error)),
        }
    }

    async fn runs(&self, notes: &Notes) -> Result<bool, Failure> {
        let runs = self.of(notes)?.runs().await;
        runs.map_err(|error| failure(&error))
    }

    async fn observe(&self, cx: &Context<Notes>) -> Observation<NotesState> {
        self.agents.observe(cx).await
    }

    async fn count(&self, notes: &Notes) -> Option<u64> {
        self.of(notes).ok()?.count().await.ok()
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
