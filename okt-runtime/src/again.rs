//! When an object is looked at again: the nearest of all the times at which something may be due.

use std::time::Duration;

use okt_core::decide::{Decision, Stand};
use okt_core::facts::Facts;
use okt_core::record::Recorded;
use okt_core::{Cause, Lifecycle, Mark};
use tokio::time::Instant;

use crate::application::{Application, StateOf};
use crate::memory::{Hold, Inner, Stage};

/// How long until an object is looked at again of which nothing is recorded, or whose state is unknown.
const UNSURE: Duration = Duration::from_secs(30);

/// The shortest time until an object is looked at again.
const SHORTEST: Duration = Duration::from_millis(10);

/// When an object is looked at again, unless something happens to it before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Again(Option<Duration>);

impl Again {
    /// After this time.
    pub(crate) fn after(time: Duration) -> Self {
        Self(Some(time))
    }

    /// Not before something happens.
    pub(crate) fn on_change() -> Self {
        Self(None)
    }

    /// After the shortest of these times; without any not before something happens.
    pub(crate) fn soonest(times: impl IntoIterator<Item = Duration>) -> Self {
        Self(times.into_iter().min().map(|time| time.max(SHORTEST)))
    }

    /// How long it takes, unless it is left to what happens.
    pub(crate) fn wait(self) -> Option<Duration> {
        self.0
    }
}

/// Computes every timer anew: one that lives only in the queue is lost.
pub(crate) fn again<A: Application>(
    application: &A,
    inner: &Inner,
    after: &Recorded,
    facts: &Facts<'_>,
    decision: &Decision,
    side_waits: bool,
) -> Again {
    let mut due = Vec::new();
    // Before that it is not asked anyway.
    let silence = inner.sight.silence.left().unwrap_or_default();
    let state = after
        .at()
        .and_then(|record| StateOf::<A>::from_id(record.state));
    match state {
        Some(state) => {
            due.extend(deadlines(state, facts, decision));
            let leaf = StateOf::<A>::GRAPH
                .get(state.id())
                .is_some_and(|state| state.is(Mark::Leaf));
            if !leaf {
                due.push(application.look_again(state).max(silence));
            }
        }
        None => due.push(UNSURE.max(silence)),
    }
    match (&inner.stage, decision) {
        // What is held back is due when it is let go, which is an event, or when the brake says so.
        (_, Decision::Stand(Stand::Paused)) => {}
        (_, Decision::Stand(Stand::Braking(left))) => due.push(*left),
        (
            Stage::Waiting { due: at, .. }
            | Stage::Held {
                why: Hold::Slot(at),
                ..
            },
            _,
        ) => due.push(at.saturating_duration_since(Instant::now())),
        (Stage::Absent | Stage::Running | Stage::Held { .. } | Stage::Ended(_), _) => {}
    }
    due.extend(inner.tended.due());
    due.extend(inner.walks.due());
    if side_waits {
        due.push(inner.side_wait());
    }
    Again::soonest(due)
}

/// The time to each deadline of the state that is yet to come; one that has passed and moved nothing is held back.
fn deadlines<S: Lifecycle>(
    state: S,
    facts: &Facts<'_>,
    decision: &Decision,
) -> impl Iterator<Item = Duration> {
    let in_state = match decision {
        Decision::Go(_) => Duration::ZERO,
        Decision::Stand(_)
        | Decision::Run(_)
        | Decision::Retry { .. }
        | Decision::End(_)
        | Decision::Release { .. } => facts.in_state,
    };
    let triggers = S::GRAPH
        .get(state.id())
        .map_or(&[][..], |state| state.triggers);
    triggers
        .iter()
        .filter_map(move |trigger| match trigger.cause {
            Cause::After(time) => time.checked_sub(in_state).filter(|left| !left.is_zero()),
            Cause::Named
            | Cause::OnError { .. }
            | Cause::OnDelete
            | Cause::OnChange
            | Cause::OnGiveUp => None,
        })
}
