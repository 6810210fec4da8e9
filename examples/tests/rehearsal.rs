//! A rehearsal of the notes operator with injected faults; the server is a model of the real one.
//!
//! The tour runs real servers through the same lifecycle; this test is about the operator.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use kube::ResourceExt;
use okt::{Action, Application, Context, Failure, Observation, StateOnRecord};
use okt_examples::notes_operator::{Notes, NotesExtra, NotesState, NotesStateHandler, notes_state};
use okt_testing::Rehearsal;
use serde_json::json;

/// The servers of one run; clones share them.
#[derive(Clone, Default)]
struct Servers(Arc<Mutex<BTreeMap<String, Server>>>);

/// A server as its operator observes it.
#[derive(Default)]
struct Server {
    runs: bool,
    /// The ids of finished work: a repeated request has no second effect.
    done: BTreeSet<String>,
    effects: Vec<String>,
}

impl Servers {
    fn of<T>(&self, cx: &Context<Notes>, act: impl FnOnce(&mut Server) -> T) -> T {
        self.named(&cx.object().name_any(), act)
    }

    fn named<T>(&self, name: &str, act: impl FnOnce(&mut Server) -> T) -> T {
        let mut servers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        act(servers.entry(name.to_owned()).or_default())
    }

    /// Runs an effect once per id.
    fn once(&self, cx: &Action<Notes>, effect: &str) {
        self.of(cx, |server| {
            if server.done.insert(cx.id().to_owned()) {
                server.effects.push(effect.to_owned());
            }
        });
    }

    /// Ends the process on its own.
    fn crash(&self, name: &str) {
        self.named(name, |server| server.runs = false);
    }

    fn effects(&self) -> Vec<String> {
        let servers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        servers
            .values()
            .flat_map(|server| server.effects.clone())
            .collect()
    }
}

impl NotesStateHandler for Servers {
    type Context = Action<Notes>;
    type Error = Failure;

    async fn start(&self, cx: &Action<Notes>) -> Result<notes_state::AfterStart, Failure> {
        self.once(cx, "prepared");
        self.of(cx, |server| server.runs = true);
        Ok(notes_state::AfterStart::Running)
    }

    async fn running(&self, cx: &Action<Notes>) -> Result<notes_state::AfterRunning, Failure> {
        self.once(cx, "configured");
        Ok(notes_state::AfterRunning::Stay)
    }

    async fn servicing(&self, cx: &Action<Notes>) -> Result<notes_state::AfterServicing, Failure> {
        self.of(cx, |server| server.runs = true);
        self.once(cx, "backed up");
        Ok(notes_state::AfterServicing::Next)
    }

    async fn read_only(&self, cx: &Action<Notes>) -> Result<notes_state::AfterReadOnly, Failure> {
        self.once(cx, "closed");
        Ok(notes_state::AfterReadOnly::Stay)
    }

    async fn stopping(&self, cx: &Action<Notes>) -> Result<notes_state::AfterStopping, Failure> {
        self.once(cx, "drained");
        self.of(cx, |server| server.runs = false);
        Ok(notes_state::AfterStopping::End)
    }

    async fn end(&self, cx: &Action<Notes>) -> Result<(), Failure> {
        self.once(cx, "archived");
        Ok(())
    }
}

impl Application for Servers {
    type Resource = Notes;

    async fn observe(&self, cx: &Context<Notes>) -> Result<Observation<NotesState>, Failure> {
        let runs = self.of(cx, |server| server.runs);
        Ok(match cx.state() {
            StateOnRecord::New | StateOnRecord::Unknown(_) if runs => {
                Observation::in_state(NotesState::Running)
            }
            StateOnRecord::New => Observation::absent(),
            StateOnRecord::Unknown(_) => Observation::unobserved(),
            StateOnRecord::Known(NotesState::Running) if !runs => {
                Observation::in_state(NotesState::Running).event(NotesState::Start)
            }
            StateOnRecord::Known(recorded) => Observation::in_state(recorded),
        })
    }

    async fn extra(&self, cx: &Context<Notes>) -> Result<NotesExtra, Failure> {
        let documents = self.of(cx, |server| server.done.len() as u64);
        Ok(NotesExtra { documents })
    }
}

#[test]
#[ignore = "takes a minute; run with --include-ignored"]
fn a_notebook_reaches_the_same_end_despite_every_fault() {
    Rehearsal::of(Servers::default)
        .object(json!({
            "apiVersion": "demo.okt.dev/v1",
            "kind": "Notes",
            "metadata": { "name": "diary" },
            "spec": {},
        }))
        .ask_for(json!({ "visit": { "state": "Servicing", "request": "nightly-1" } }))
        .patch(json!({ "spec": { "maximumBodyBytes": 4096 } }))
        .happens("a crash of the server", |servers| servers.crash("diary"))
        .ask_for(json!({ "state": "ReadOnly" }))
        .delete()
        .ends_in(NotesState::End)
        .effects(Servers::effects)
        .check();
}
