//! The result of observing an application.

use std::fmt::Display;

use okt_core::Lifecycle;
use okt_core::facts::Observed;

use crate::wire::desired::StateName;

/// The result of observing an application: the state it is in, and events.
///
/// ```
/// # use okt::{lifecycle_graph, Observation};
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

    /// Reports that the application is in this state.
    pub fn in_state(state: S) -> Self {
        Self::of(Seen::In(StateName::Known(state)))
    }

    /// Reports that the application is in the state of this name, which the graph may not have.
    pub fn named(state: &str) -> Self {
        Self::of(Seen::In(StateName::of(state)))
    }

    /// Reports that there is no application: the object moves to its entry.
    ///
    /// If absence is right (a hibernated application), return [`in_state`](Self::in_state) instead.
    pub fn absent() -> Self {
        Self::of(Seen::Absent)
    }

    /// Reports that nothing was observed; OKT draws no conclusion from it.
    pub fn unobserved() -> Self {
        Self::of(Seen::Unobserved)
    }

    /// Reports that the application did not answer: the object does not move, and after three such observations
    /// conditions become Unknown.
    pub fn unreachable(why: impl Display) -> Self {
        Self::of(Seen::Unreachable(why.to_string()))
    }

    /// Adds an event that moves the object to this state, if an edge leads there from the present one.
    #[must_use]
    pub fn event(mut self, state: S) -> Self {
        self.events.push(state);
        self
    }

    /// Returns the observation as input of a decision, and as text; `failures` is the number of this failed
    /// observation, if it failed.
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
