//! The object and the operator as the machine reads them.

use std::time::Duration;

use okt_core::backoff::Backoff;
use okt_core::facts::{DesiredState, DesiredVisit, Named};
use okt_core::record::{Record, Recorded};
use okt_core::{GateId, Gates, StateId};

use crate::machine::{self, Facts, OperatorFacts, Readable, Setup, WorkId};
use crate::object::{Object, Request};
use crate::plant::Bug;
use crate::world::{Place, World};

/// The duration of every wait that a shell names.
pub(crate) const WAIT: Duration = Duration::from_secs(1);

/// Longer than every wait.
pub(crate) const LONG: Duration = Duration::from_hours(1);

impl World {
    /// Returns the gates of the object as they are now.
    pub(crate) fn gates(&self, object: &Object) -> machine::GateTimes {
        let is_bound =
            |place: &Place| place.version == object.version || self.bug == Some(Bug::OldPlaceUsed);
        let place = self.place.filter(is_bound);
        let is_limit = self.case.has_limit();
        let is_shut = if is_limit {
            !place.is_some_and(|place| place.granted)
        } else {
            self.shut
        };
        let the_gate = |is: bool| {
            if is {
                Gates::NONE.with(GateId(0))
            } else {
                Gates::NONE
            }
        };
        machine::GateTimes {
            shut: the_gate(is_shut && self.bug != Some(Bug::GateIgnored)),
            change: (!is_limit && (self.shut || self.budget.turns > 0)).then_some(WAIT),
            places: the_gate(place.is_some()),
            has_unused_place: place.is_some() && !self.is_inside(object),
        }
    }

    /// Returns whether the object is in the states of the first gate.
    pub(crate) fn is_inside(&self, object: &Object) -> bool {
        let gate = self.case.life.and_then(|life| life.gates.first());
        let record = object.status.recorded.at().zip(gate);
        record.is_some_and(|(record, gate)| gate.states.contains(&record.state))
    }

    /// Returns what all objects of the operator have in common.
    pub(crate) fn setup(&self) -> Setup<'static> {
        let mut graphs = self.case.graphs();
        if self.bug == Some(Bug::ReleasedWithoutPass) && self.process.object().spec.deleting {
            graphs.pass = None;
        }
        Setup {
            graphs,
            backoff: Backoff::default(),
            owns_kinds: !self.case.owns.is_empty(),
            mistake: self.bug.and_then(Bug::mistake),
        }
    }

    pub(crate) fn operator(&self) -> OperatorFacts {
        OperatorFacts {
            may_act: self.process.leads || self.bug == Some(Bug::TwoLeaders),
            draining: self.process.draining,
        }
    }

    /// Returns the facts of the machine; none between two reconciliations.
    pub(crate) fn facts(&self) -> Facts<'_> {
        self.process
            .machine
            .facts(&self.setup(), self.operator(), self.now)
    }

    /// Translates an object, as the shell of the product does.
    pub(crate) fn read(&self, object: &Object) -> machine::Object {
        let Object { spec, status, .. } = object;
        let record = status.recorded.at();
        let named = |request: Request| Named::Known(request.state);
        let number = |request: Option<Request>| request.map(|request| request.number);
        let in_state = if self.bug == Some(Bug::DeadlineStartLost) {
            Duration::ZERO
        } else {
            self.in_state(&status.recorded)
        };
        machine::Object {
            version: Some(object.version.of_machine()),
            recorded: if spec.garbled {
                Recorded::Nothing
            } else {
                status.recorded
            },
            in_flight: self.in_flight(&status.recorded),
            readable: if spec.garbled {
                Readable::No {
                    error: 1,
                    untouched: record.is_none(),
                }
            } else {
                Readable::Yes
            },
            desired: DesiredState {
                state: spec.desired.map(named),
                fresh: record.is_some() && status.desired != spec.desired,
                requested: number(status.desired) != number(spec.desired),
            },
            visit: spec.visit.map(|visit| DesiredVisit {
                state: named(visit),
                fresh: status.visit != spec.visit,
            }),
            requests: self.requests(object, &self.process.asked),
            gates: self.gates(object),
            uid: 1,
            approved: None,
            generation: spec.generation,
            revision: spec.revision,
            parts: status.changed_parts(spec),
            deleting: spec.deleting,
            abandoned: spec.abandoned,
            paused: spec.paused && self.bug != Some(Bug::PauseIgnored),
            newer: status.newer && record.is_some_and(|record| record.state == StateId::UNKNOWN),
            finalizer: object.finalizer,
            is_pause_news: spec.paused != status.report.is_paused,
            inherits: status.is_inherited,
            owns_any: record.is_none() && self.cluster.has_any(),
            in_state,
            in_deadline: in_state,
            absent: None,
            observe_every: Duration::from_secs(30),
            seed: 1,
        }
    }

    /// Returns how long the object has been in the state on record.
    pub(crate) fn in_state(&self, recorded: &Recorded) -> Duration {
        let transition = recorded.at().map(|record| record.transition);
        if transition.is_some() && transition == self.long_in {
            LONG
        } else {
            Duration::ZERO
        }
    }

    /// Returns the work that is in flight according to a record.
    pub(crate) fn in_flight(&self, recorded: &Recorded) -> Option<WorkId> {
        let record = recorded.at()?;
        record.in_flight(self.case.life?).then(|| work_of(record))?
    }
}

/// Returns the work of the state on record, unless the state is idle.
pub(crate) fn work_of(record: &Record) -> Option<WorkId> {
    let action = record.action?;
    Some(WorkId {
        transition: record.transition,
        run: action.run,
        token: 0,
    })
}
