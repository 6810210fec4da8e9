//! The paths that generated code uses, in one place; not part of the public API.

pub use core;

use alloc::boxed::Box;
use core::fmt;
use core::pin::Pin;

pub use crate::answer::{Answer, Successor, VisitSuccessor};
pub use crate::gate::{Gate, GateId, GateKind, Passes};
use crate::graph::Mark;
pub use crate::graph::{
    Cause, ConditionStatus, Declared, Graph, Kind, Marks, NoRoute, Parts, State, StateId, Trigger,
};
pub use crate::lifecycle::{
    Delegate, Delegated, Dispatch, Lifecycle, LifecycleGate, NoGate, PassDispatch, Serves,
    SpecPart, SpecParts, Visited,
};
pub use crate::pass::Step;
pub use crate::routes::{Routes, Table};

/// Formats a successor like derived code, but with one function instead of code per state.
pub fn debug(
    successor: &dyn Successor,
    graph: &Graph<'_>,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    match successor.answer() {
        Answer::Stay => f.write_str("Stay"),
        Answer::Next => f.write_str("Next"),
        Answer::Wait(time) => f.debug_tuple("Wait").field(&time).finish(),
        Answer::To(to) => f.write_str(graph.get(to).map_or("?", |state| state.variant)),
    }
}

/// The work of some state.
pub type Work<'w, A, E> = Pin<Box<dyn Future<Output = Result<A, E>> + Send + 'w>>;

/// Boxes the work of a state of a lifecycle.
///
/// A match whose arms are boxes is checked much faster than one that awaits in each arm.
pub fn work<'w, S: Successor, E>(
    work: impl Future<Output = Result<S, E>> + Send + 'w,
) -> Work<'w, Answer, E> {
    Box::pin(async move { work.await.map(|successor| successor.answer()) })
}

/// Boxes the work of a visit with a result.
pub fn visited<'w, Args, S, C, E>(
    cx: &'w C,
    work: impl Future<Output = Result<S, E>> + Send + 'w,
) -> Work<'w, Answer, E>
where
    S: VisitSuccessor,
    C: Visited<Args, S::Result> + Sync,
{
    Box::pin(async move {
        let successor = work.await?;
        if let Some(result) = successor.result() {
            cx.finish(result);
        }
        Ok(successor.answer())
    })
}

/// Boxes the step of a state of a pass.
pub fn step<'w, S: Successor, E>(
    step: impl Future<Output = Result<Step<S>, E>> + Send + 'w,
) -> Work<'w, Step<Answer>, E> {
    Box::pin(async move {
        let step = step.await;
        step.map(|step| step.map(|successor| successor.answer()))
    })
}

/// Delegates the work of a state; an idle state has none.
pub async fn hand_on<S: Lifecycle, D: Delegate<S>>(
    state: S,
    delegated: &Delegated<D>,
    cx: &D::Context,
) -> Result<Answer, D::Error> {
    let is_idle = S::GRAPH
        .get(state.id())
        .is_some_and(|state| state.is(Mark::Idle));
    if is_idle {
        return Ok(Answer::Stay);
    }
    delegated.0.delegate(state, cx).await
}
