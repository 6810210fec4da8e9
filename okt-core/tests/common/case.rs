//! One object at one moment: a record and facts with defaults, changed by what a test is about.

use std::time::Duration;

use okt_core::backoff::Backoff;
use okt_core::decide::{Decision, decide};
use okt_core::facts::{DesiredState, Facts, Named, Observed, Said, Task, Visit};
use okt_core::record::{Action, DesiredRecord, Outcome, Phase, Record, Recorded, VisitRecord};
use okt_core::{Graph, Mark, StateId};

/// The number of the transition in which a [`Case`] arrived; wishes of an earlier one are older.
pub(crate) const ARRIVAL: u64 = 5;

/// The revision under which it arrived.
pub(crate) const REVISION: u64 = 7;

#[derive(Clone)]
pub(crate) struct Case {
    pub(crate) graph: Graph<'static>,
    /// What is recorded, if anything is.
    pub(crate) record: Option<Record>,
    pub(crate) facts: Facts<'static>,
}

impl Case {
    /// A new object that wishes nothing, and that nobody has looked at.
    pub(crate) fn nothing(graph: &Graph<'static>) -> Self {
        Self {
            graph: *graph,
            record: None,
            facts: Facts {
                desired: DesiredState {
                    state: None,
                    fresh: false,
                    requested: false,
                },
                visit: None,
                generation: 1,
                revision: REVISION,
                deleting: false,
                abandoned: false,
                paused: false,
                newer: false,
                observed: Observed::Unobserved,
                events: &[],
                owned: false,
                task: Task::Absent,
                attempt: 1,
                started_under: 1,
                in_state: Duration::from_mins(1),
                backoff: Backoff::default(),
                seed: 1,
            },
        }
    }

    /// An object in a state, its work ended well, whose older wish is to be kept where the graph keeps it by default.
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

    /// The id of a state by its name.
    pub(crate) fn id(&self, name: &str) -> StateId {
        self.graph.named(name).unwrap_or(StateId::UNKNOWN)
    }

    /// Changes whatever else the test is about.
    pub(crate) fn with(mut self, change: impl FnOnce(&mut Record, &mut Facts<'static>)) -> Self {
        let record = self.record.as_mut().expect("a record to change");
        change(record, &mut self.facts);
        self
    }

    /// The work of the state is so far.
    pub(crate) fn phase(self, phase: Phase) -> Self {
        self.with(|record, _| {
            record.action = Some(Action {
                run: 1,
                attempt: 1,
                phase,
                generation: 1,
                leaving: false,
            });
        })
    }

    /// The work is in flight, and this is known of it.
    pub(crate) fn task(self, task: Task) -> Self {
        self.phase(Phase::Pending)
            .with(|_, facts| facts.task = task)
    }

    /// The work ends in this turn, and says this.
    pub(crate) fn said(self, said: Said) -> Self {
        self.task(Task::Ended(said))
    }

    /// The work ends in this turn and names a state.
    pub(crate) fn named(self, state: &str) -> Self {
        let to = self.id(state);
        self.said(Said::To(to))
    }

    /// A wish that was recorded in this transition.
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

    /// A wish that is seen for the first time.
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

    /// A visit that was recorded in this transition and is still to be made.
    pub(crate) fn visit(self, state: &str, transition: u64) -> Self {
        let state = Named::Known(self.id(state));
        self.with(|record, facts| {
            record.visit = Some(VisitRecord {
                state,
                transition,
                outcome: Outcome::Pending,
            });
            facts.visit = Some(Visit {
                state,
                fresh: false,
            });
        })
    }

    /// A visit that is seen for the first time.
    pub(crate) fn new_visit(self, state: &str) -> Self {
        let state = Named::Known(self.id(state));
        self.with(|_, facts| facts.visit = Some(Visit { state, fresh: true }))
    }

    /// The application is seen in a state.
    pub(crate) fn seen(mut self, state: &str) -> Self {
        self.facts.observed = Observed::In(self.id(state));
        self
    }

    /// The application is being deleted; the record says so already.
    pub(crate) fn deleting(self) -> Self {
        self.with(|record, facts| {
            record.deleting = true;
            facts.deleting = true;
        })
    }

    pub(crate) fn recorded(&self) -> Recorded {
        self.record.map_or(Recorded::Nothing, Recorded::At)
    }

    pub(crate) fn decide(&self) -> Decision {
        decide(&self.graph, &self.recorded(), &self.facts)
    }

    /// What is recorded once the decision was taken.
    pub(crate) fn after(&self) -> Record {
        let after = (self.recorded()).after(&self.graph, &self.facts, &self.decide());
        *after.at().expect("something recorded")
    }
}
