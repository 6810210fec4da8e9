//! A model of the servers of notebooks, in memory: for tests of the operator in virtual time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kube::ResourceExt;
use okt::{Action, Context, Failure, Observation};
use parking_lot::Mutex;

use super::{Notes, NotesState, Servers};

/// The servers of one run; clones share them.
#[derive(Clone, Debug, Default)]
pub struct Model(Arc<Mutex<BTreeMap<String, Server>>>);

/// A server as its operator observes it.
#[derive(Debug, Default)]
struct Server {
    is_prepared: bool,
    runs: bool,
    /// The state in which the agent put the server.
    at: Option<NotesState>,
    /// The ids of finished work: a repeated request has no second effect.
    done: BTreeSet<String>,
    effects: Vec<String>,
}

impl Model {
    fn of<T>(&self, notes: &Notes, act: impl FnOnce(&mut Server) -> T) -> T {
        self.named(&notes.name_any(), act)
    }

    fn named<T>(&self, name: &str, act: impl FnOnce(&mut Server) -> T) -> T {
        let mut servers = self.0.lock();
        act(servers.entry(name.to_owned()).or_default())
    }

    /// Ends the process on its own.
    pub fn crash(&self, name: &str) {
        self.named(name, |server| server.runs = false);
    }

    /// Returns the effects on all servers.
    #[must_use]
    pub fn effects(&self) -> Vec<String> {
        let servers = self.0.lock();
        let effects = servers.values().flat_map(|server| server.effects.clone());
        effects.collect()
    }
}

impl Servers for Model {
    async fn prepare(&self, notes: &Notes) -> Result<(), Failure> {
        self.of(notes, |server| server.is_prepared = true);
        Ok(())
    }

    async fn start(&self, notes: &Notes) -> Result<(), Failure> {
        self.of(notes, |server| {
            if !server.is_prepared {
                return Err(Failure::permanent(
                    "ServerBroken",
                    "there is no data directory",
                ));
            }
            server.runs = true;
            Ok(())
        })
    }

    async fn perform(&self, cx: &Action<Notes>) -> Result<(), Failure> {
        let Some(state) = cx.state().known() else {
            return Err(Failure::permanent("ServerBroken", "there is no such work"));
        };
        self.of(cx.object(), |server| {
            if !server.is_prepared {
                return Err(Failure::permanent(
                    "ServerBroken",
                    "there is no data directory",
                ));
            }
            // A server that ended meanwhile is restarted.
            server.runs = true;
            server.at = Some(state);
            if server.done.insert(cx.id().to_owned()) {
                server.effects.push(format!("the work of {state:?}"));
            }
            Ok(())
        })
    }

    async fn drain(&self, cx: &Action<Notes>) -> Result<(), Failure> {
        self.perform(cx).await
    }

    async fn stop(&self, notes: &Notes) -> Result<(), Failure> {
        self.of(notes, |server| server.runs = false);
        Ok(())
    }

    async fn archive(&self, notes: &Notes, _: &str) -> Result<(), Failure> {
        self.of(notes, |server| {
            if server.runs {
                return Err(Failure::permanent(
                    "ServerBroken",
                    "a process serves the directory",
                ));
            }
            if std::mem::take(&mut server.is_prepared) {
                server.effects.push("archived".to_owned());
            }
            Ok(())
        })
    }

    async fn runs(&self, notes: &Notes) -> Result<bool, Failure> {
        Ok(self.of(notes, |server| server.runs))
    }

    async fn observe(&self, cx: &Context<Notes>) -> Observation<NotesState> {
        let at = self.of(cx.object(), |server| server.at);
        at.map_or_else(Observation::unobserved, Observation::in_state)
    }

    async fn count(&self, notes: &Notes) -> Option<u64> {
        self.of(notes, |server| {
            server.runs.then_some(server.done.len() as u64)
        })
    }
}
