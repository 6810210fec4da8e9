//! What an application says of itself.

use std::fmt::Display;

use okt_core::Lifecycle;
use okt_core::facts::Observed;

use crate::wire::desired::StateName;

/// What an application says of itself: where it is, and what happened to it.
///
/// ```
/// # use okt_runtime::{lifecycle_graph, Observation};
/// # #[lifecycle_graph]
/// # #[derive(Clone, Copy, Debug, PartialEq, Eq)]
/// # pub enum AppState { #[entry] #[trigger(End)] #[child(Up)] Start, #[rest] #[trigger(Broken)] #[child(End)] Up, #[rest] #[child(Up)] #[child(End)] Broken, #[leaf(idle)] End }
/// let fine = Observation::in_state(AppState::Up);
/// let broken = Observation::in_state(AppState::Up).event(AppState::Broken);
/// let by_its_own_name = Observation::<AppState>::named("Up");
/// let no_answer = Observation::<AppState>::unreachable("connection refused");
/// assert_eq!(fine, by_its_own_name);
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Observation<S> {
    seen: Seen<S>,
    events: Vec<S>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Seen<S> {
    Unobserved,
    Absent,
    In(StateName<S>),
    Unreachable(String),
}

impl<S: Lifecycle> Observation<S> {
    fn of(seen: Seen<S>) -> Self {
        Self {
            seen,
            events: Vec::new(),
        }
    }

    /// The application is in this state.
    pub fn in_state(state: S) -> Self {
        Self::of(Seen::In(StateName::Known(state)))
    }

    /// The application says it is in the state of this name, which the graph may not know.
    pub fn named(state: &str) -> Self {
        Self::of(Seen::In(StateName::of(state)))
    }

    /// There is no application: the object is led to its entry.
    ///
    /// Where absence is right (a hibernated application), say [`in_state`](Self::in_state) instead.
    pub fn absent() -> Self {
        Self::of(Seen::Absent)
    }

    /// Nobody looked, or there is nothing to see; nothing follows from it.
    pub fn unobserved() -> Self {
        Self::of(Seen::Unobserved)
    }

    /// The application did not answer; nothing moves, and after three looks conditions become Unknown.
    pub fn unreachable(why: impl Display) -> Self {
        Self::of(Seen::Unreachable(why.to_string()))
    }

    /// Something happened that leads to this state, if an edge out of the present one does.
    #[must_use]
    pub fn event(mut self, state: S) -> Self {
        self.events.push(state);
        self
    }

    /// What was seen as a decision takes it, with its words; `failures` is the number of this failed look, if it is one.
    pub(crate) fn facts(&self, failures: u32) -> (Observed, String) {
        match &self.seen {
            Seen::Unobserved => (Observed::Unobserved, String::new()),
            Seen::Absent => (Observed::Absent, String::new()),
            Seen::In(StateName::Known(state)) => {
                (Observed::In(state.id()), state.name().to_owned())
            }
            Seen::In(StateName::Unknown(name)) => (Observed::Unforeseen, name.clone()),
            Seen::Unreachable(why) => (Observed::Unreachable { failures }, why.clone()),
        }
    }

    pub(crate) fn is_unreachable(&self) -> bool {
        matches!(self.seen, Seen::Unreachable(_))
    }

    pub(crate) fn events(&self) -> impl Iterator<Item = S> + '_ {
        self.events.iter().copied()
    }
}
