//! The reference lifecycle: a database server, its handlers and one call of each.
#![deny(warnings, missing_docs)]

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use okt_core::{Answer, Dispatch, Event, Lifecycle};
use okt_macros::lifecycle_graph;

/// The life of a database server.
#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// The operator.
pub struct Databases;

impl DatabaseStateHandler for Databases {
    type Context = u32;
    type Error = String;

    async fn start(&self, cx: &u32) -> Result<database_state::AfterStart, String> {
        if *cx == 0 {
            return Err("no disk".into());
        }
        Ok(database_state::AfterStart::Running)
    }

    async fn running(&self, _: &u32) -> Result<database_state::AfterRunning, String> {
        Ok(database_state::AfterRunning::Stay)
    }

    async fn servicing(&self, cx: &u32) -> Result<database_state::AfterServicing, String> {
        Ok(match cx {
            1 => database_state::AfterServicing::Next,
            _ => database_state::AfterServicing::Wait(Duration::from_secs(1)),
        })
    }

    async fn stopping(&self, _: &u32) -> Result<database_state::AfterStopping, String> {
        Ok(database_state::AfterStopping::End)
    }
}

fn now<T>(work: impl Future<Output = T> + Send) -> T {
    match pin!(work).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => done,
        Poll::Pending => panic!("this work waits for nothing"),
    }
}

fn main() {
    use DatabaseState::{End, Failed, Running, Servicing, Start, Stopping};
    let graph = DatabaseState::GRAPH;
    assert_eq!(graph.name, "DatabaseState");
    assert_eq!(graph.doc, "The life of a database server.");
    assert_eq!(graph.states[1].doc, "Clients may connect.");

    for state in [Start, Running, Servicing, Stopping, Failed, End] {
        assert_eq!(DatabaseState::from_id(state.id()), Some(state));
        assert_eq!(DatabaseState::from_name(state.name()), Some(state));
    }
    assert_eq!(DatabaseState::from_name("Sleeping"), None);

    let next = |from: DatabaseState, events: &[Event]| {
        graph
            .next(from.id(), events)
            .and_then(DatabaseState::from_id)
    };
    assert_eq!(next(Running, &[Event::Next]), Some(Stopping));
    assert_eq!(
        next(Running, &[Event::Next, Event::To(Failed.id())]),
        Some(Failed)
    );
    assert_eq!(next(End, &[Event::Next]), None);
    assert_eq!(graph.home(), Some(Running.id()));
    assert_eq!(graph.hop(Running.id(), End.id()), Some(Stopping.id()));
    assert_eq!(graph.out(Failed.id()), Some(Stopping.id()));

    let run = |state: DatabaseState, cx: u32| now(state.dispatch(&Databases, &cx));
    assert_eq!(run(Start, 0), Err("no disk".into()));
    assert_eq!(run(Start, 1), Ok(Answer::To(Running.id())));
    assert_eq!(run(Running, 1), Ok(Answer::Stay));
    assert_eq!(run(Servicing, 1), Ok(Answer::Next));
    assert_eq!(run(Servicing, 2), Ok(Answer::Wait(Duration::from_secs(1))));
    assert_eq!(run(Stopping, 1), Ok(Answer::To(End.id())));
    assert_eq!(run(Failed, 1), Ok(Answer::Stay));
    assert_eq!(run(End, 1), Ok(Answer::Stay));

    assert_eq!(database_state::conditions::AVAILABLE, "Available");
}
