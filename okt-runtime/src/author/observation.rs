//! The result of observing an application.

use std::fmt::Display;
use std::time::Duration;

use okt_core::Lifecycle;
use okt_core::machine::ObservationResult;

use okt_wire::desired::StateName;

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
    seen: ObservedState<S>,
    events: Vec<S>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum ObservedState<S> {
    Unobserved,
    /// There is no application; it counts once it has been so for this time.
    Absent(Duration),
    In(StateName<S>),
    Unreachable(String),
}

impl<S: Lifecycle> Observation<S> {
    fn of(seen: ObservedState<S>) -> Self {
        Self {
            seen,
            events: Vec::new(),
        }
    }

    /// Reports that the application is in this state.
    pub fn in_state(state: S) -> Self {
        Self::of(ObservedState::In(StateName::Known(state)))
    }

    /// Reports that the application is in the state of this name, which the graph may not have.
    pub fn named(state: &str) -> Self {
        Self::of(ObservedState::In(StateName::of(state)))
    }

    /// Reports that there is no application: an object at rest moves to its entry at once.
    ///
    /// If the application may only be starting, use [`absent_for`](Self::absent_for).
    /// If absence is right (a hibernated application), return [`in_state`](Self::in_state) instead.
    pub fn absent() -> Self {
        Self::absent_for(Duration::ZERO)
    }

    /// Reports that there is no application: an object at rest moves to its entry once it has been in its state for this
    /// time, and every observation of this time has reported so.
    ///
    /// Until then the observation counts as [`unobserved`](Self::unobserved). An observation that fails neither counts
    /// nor interrupts. A restart of the operator begins the time anew.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use okt::{lifecycle_graph, Observation};
    /// # #[lifecycle_graph]
    /// # #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    /// # pub enum AppState { #[entry] #[child(Up)] Start, #[rest] #[child(End)] Up, #[leaf(idle)] End }
    /// # fn look(pods: usize) -> Observation<AppState> {
    /// match pods {
    ///     // A Pod that was evicted comes back within two minutes.
    ///     0 => Observation::absent_for(Duration::from_mins(2)),
    ///     _ => Observation::in_state(AppState::Up),
    /// }
    /// # }
    /// # assert_ne!(look(0), look(1));
    /// ```
    pub fn absent_for(time: Duration) -> Self {
        Self::of(ObservedState::Absent(time))
    }

    /// Reports that nothing was observed; OKT draws no conclusion from it.
    pub fn unobserved() -> Self {
        Self::of(ObservedState::Unobserved)
    }

    /// Reports that the application did not answer: the object does not move, and after three such observations
    /// conditions become Unknown.
    pub fn unreachable(why: impl Display) -> Self {
        Self::of(ObservedState::Unreachable(why.to_string()))
    }

    /// Adds an event that moves the object to this state, if an edge leads there from the present one.
    #[must_use]
    pub fn event(mut self, state: S) -> Self {
        self.events.push(state);
        self
    }

    /// Returns the observation for the machine, and as text.
    pub(crate) fn result(&self) -> (ObservationResult, String) {
        match &self.seen {
            ObservedState::Unobserved => {
                (ObservationResult::Unobserved { again: true }, String::new())
            }
            ObservedState::Absent(tolerance) => {
                let tolerance = *tolerance;
                (ObservationResult::Absent { tolerance }, String::new())
            }
            ObservedState::In(StateName::Known(state)) => {
                (ObservationResult::In(state.id()), state.name().to_owned())
            }
            ObservedState::In(StateName::Unknown(name)) => {
                (ObservationResult::Unforeseen, name.clone())
            }
            ObservedState::Unreachable(why) => (ObservationResult::Unreachable, why.clone()),
        }
    }

    pub(crate) fn events(&self) -> impl Iterator<Item = S> + '_ {
        self.events.iter().copied()
    }
}
