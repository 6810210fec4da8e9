//! One object at one moment: a record and facts with defaults, which each test changes.

use std::time::Duration;

use okt_core::backoff::Backoff;
use okt_core::decide::{Verdict, decide};
use okt_core::facts::{
    ActionResult, DesiredState, DesiredVisit, LifecycleFacts, Named, Observed, Task,
};
use okt_core::record::{
    ActionRecord, DesiredRecord, Phase, Record, Recorded, VisitOutcome, VisitRecord,
};
use okt_core::{Graph, Mark, StateId};

/// The transition number of a [`Case`] at its arrival; a desired state with a lower number is older.
pub(crate) const ARRIVAL: u64 = 5;

/// The revision at the arrival.
pub(crate) const REVISION: u64 = 7;

#[derive(Clone)]
pub(crate) struct Case {
    pub(crate) graph: Graph<'static>,
    /// The record, if there is one.
    pub(crate) record: Option<Record>,
    pub(crate) facts: LifecycleFacts<'static>,
}

impl Case {
    /// A new object without a desired state, not observed yet.
    pub(crate) fn nothing(graph: &Graph<'static>) -> Self {
        Self {
            graph: *graph,
            record: None,
            facts: LifecycleFacts {
                desired: DesiredState {
                    state: None,
                    fresh: false,
                    requested: false,
                },
                visit: None,
                generation: 1,
                revision: REVISION,
                deleting: false,
                paused: false,
                observed: Observed::Unobserved,
                events: &[],
                owned: false,
                task: Task::Absent,
                attempt: 1,
                started_under: 1,
                in_state: Duration::from_mins(1),
                in_deadline: Duration::from_mins(1),
                backoff: Backoff::default(),
                seed: 1,
            },
        }
    }

    /// An object in a state, with its work done and the graph's default as its older desired state.
    pub(crate) fn at(graph: &Graph<'static>, state: &str) -> Self {
        let mut case = Self::nothing(graph);
        let state = case.id(state);
        case.record = Some(Record {
            state,
            left: StateId::UNKNOWN,
            transition: ARRIVAL,
            jumps: 0,
            jumped: false,
            rounds: 0,
            deleting: false,
            desired: DesiredRecord {
                state: graph.home().map_or(Named::Unknown, Named::Known),
                transition: 1,
                reached: false,
            },
            visit: None,
            revision: REVISION,
            changed: REVISION,
            action: None,
        });
        if graph.get(state).is_some_and(|state| !state.is(Mark::Idle)) {
            case = case.phase(Phase::Done);
        }
        case
    }

    /// Returns the id of a state by its name.
    pub(crate) fn id(&self, name: &str) -> StateId {
        self.graph.named(name).unwrap_or(StateId::UNKNOWN)
    }

    /// Changes record and facts.
    pub(crate) fn with(
        mut self,
        change: impl FnOnce(&mut Record, &mut LifecycleFacts<'static>),
    ) -> Self {
        let record = self.record.as_mut().expect("a record to change");
        change(record, &mut self.facts);
        self
    }

    /// Sets the phase of the state's work.
    pub(crate) fn phase(self, phase: Phase) -> Self {
        self.with(|record, _| {
            record.action = Some(ActionRecord {
                run: 1,
                attempt: 1,
                phase,
                generation: 1,
                leaving: false,
            });
        })
    }

    /// Puts the work in flight, with this task.
    pub(crate) fn task(self, task: Task) -> Self {
        self.phase(Phase::Pending)
            .with(|_, facts| facts.task = task)
    }

    /// Ends the work in this reconciliation, with this answer.
    pub(crate) fn said(self, said: ActionResult) -> Self {
        self.task(Task::Ended(said))
    }

    /// Ends the work in this reconciliation; the answer names a state.
    pub(crate) fn named(self, state: &str) -> Self {
        let to = self.id(state);
        self.said(ActionResult::To(to))
    }

    /// Sets a desired state that was recorded in this transition.
    pub(crate) fn desired(self, state: &str, transition: u64) -> Self {
        let state = Named::Known(self.id(state));
        self.with(|record, facts| {
            record.desired = DesiredRecord {
                state,
                transition,
                reached: false,
            };
            facts.desired.state = Some(state);
        })
    }

    /// Sets a desired state that is not recorded yet.
    pub(crate) fn newly_desired(self, state: &str) -> Self {
        let state = Named::Known(self.id(state));
        self.with(|_, facts| {
            facts.desired = DesiredState {
                state: Some(state),
                fresh: true,
                requested: false,
            };
        })
    }

    /// Sets a visit that was recorded in this transition and is still to be made.
    pub(crate) fn visit(self, state: &str, transition: u64) -> Self {
        let state = Named::Known(self.id(state));
        self.with(|record, facts| {
            record.visit = Some(VisitRecord {
                state,
                transition,
                outcome: VisitOutcome::Pending,
            });
            facts.visit = Some(DesiredVisit {
                state,
                fresh: false,
            });
        })
    }

    /// Sets a visit that is not recorded yet.
    pub(crate) fn new_visit(self, state: &str) -> Self {
        let state = Named::Known(self.id(state));
        self.with(|_, facts| facts.visit = Some(DesiredVisit { state, fresh: true }))
    }

    /// The application is observed in a state.
    pub(crate) fn seen(mut self, state: &str) -> Self {
        self.facts.observed = Observed::In(self.id(state));
        self
    }

    /// The object is being deleted, and the record has the deletion already.
    pub(crate) fn deleting(self) -> Self {
        self.with(|record, facts| {
            record.deleting = true;
            facts.deleting = true;
        })
    }

    pub(crate) fn recorded(&self) -> Recorded {
        self.record.map_or(Recorded::Nothing, Recorded::At)
    }

    pub(crate) fn decide(&self) -> Verdict {
        decide(&self.graph, &self.recorded(), &self.facts)
    }

    /// Returns the record after the decision.
    pub(crate) fn after(&self) -> Record {
        let after = (self.recorded()).after(&self.graph, &self.facts, &self.decide());
        *after.at().expect("something recorded")
    }
}
