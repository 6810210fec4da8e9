//! What generated code implements: a state enum that knows its graph, and the way from a state to its handler.

use core::fmt::Debug;
use core::future::Future;
use core::time::Duration;

use crate::graph::{Graph, StateId};

/// A state enum that was declared with `#[lifecycle_graph]`.
pub trait Lifecycle: Copy + Eq + Debug + Send + Sync + 'static {
    /// The checked graph, with its routes.
    const GRAPH: &'static Graph<'static>;

    /// The position of this state in the graph.
    fn id(self) -> StateId;

    /// The state at a position; none for an id of another graph.
    fn from_id(id: StateId) -> Option<Self>;

    /// The wire name.
    fn name(self) -> &'static str {
        Self::GRAPH.name_of(self.id())
    }

    /// The state with this wire name, or with this former one.
    fn from_name(name: &str) -> Option<Self> {
        Self::GRAPH.named(name).and_then(Self::from_id)
    }
}

/// What a handler answers, whatever the state.
///
/// Handlers themselves answer with the successor enum of their state (e.g. `AfterRunning`), which holds
/// the declared targets only and converts into this.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// The work is done and names no state.
    Stay,
    /// The work is done: on towards what is wished.
    Next,
    /// Call the same handler again after this time, or when something it depends on changes.
    Wait(Duration),
    /// The work is done: go to this state.
    To(StateId),
}

/// What the handler of one state answers: the successor enum of that state, written by `#[lifecycle_graph]`.
pub trait Successor: Copy {
    /// The same, whatever the state.
    fn answer(self) -> Answer;
}

// One conversion for all of them: one per enum would be compared with every other by the compiler.
impl<S: Successor> From<S> for Answer {
    fn from(successor: S) -> Self {
        successor.answer()
    }
}

/// The way from a state to the method of its handler; written by `#[lifecycle_graph]`.
#[diagnostic::on_unimplemented(
    message = "`{H}` does not handle the states of `{Self}`",
    label = "no handler for `{Self}`",
    note = "implement the generated handler trait of `{Self}` for `{H}`: one method per state that is not idle"
)]
pub trait Dispatch<H>: Lifecycle {
    /// What a handler is given.
    type Context;
    /// What a handler fails with.
    type Error;

    /// Runs the handler of this state; an idle state answers [`Answer::Stay`] at once.
    fn dispatch(
        self,
        handler: &H,
        cx: &Self::Context,
    ) -> impl Future<Output = Result<Answer, Self::Error>> + Send;
}

/// Work that is handed on: stands where a handler with one method for each state would.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Delegated<D>(pub D);

/// Does the work of every state of `S` in one way, such as by asking an agent; used as [`Delegated`].
///
/// The types do not say where a state leads to, so an answer that no edge allows is found at run time, and refused.
pub trait Delegate<S: Lifecycle>: Sync {
    /// What it is given.
    type Context: Sync;
    /// What it fails with.
    type Error;

    /// Does the work of a state; never called for an idle one.
    fn delegate(
        &self,
        state: S,
        cx: &Self::Context,
    ) -> impl Future<Output = Result<Answer, Self::Error>> + Send;
}
