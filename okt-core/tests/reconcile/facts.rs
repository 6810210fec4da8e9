//! This file collects the facts for `decide`.

use std::time::Duration;

use okt_core::StateId;
use okt_core::backoff::Backoff;
use okt_core::facts::{DesiredState, DesiredVisit, Named, Task};
use okt_core::reconcile::{
    Asked, Decision, Facts, ObservedFacts, OperatorFacts, OwnedFacts, PassFacts, Readable,
    Standing, TimeFacts, Waits, WorkFacts, WriteFacts, decide,
};
use okt_core::record::Recorded;

use crate::memory::{Due, Memory, Phase, WorkId};
use crate::object::{About, Object, Request};
use crate::operator::Round;
use crate::plant::Bug;
use crate::world::World;

/// The duration of every wait that is not over.
pub(crate) const WAIT: Duration = Duration::from_secs(1);

/// Longer than every wait.
const LONG: Duration = Duration::from_hours(1);

impl World {
    /// Returns the decision, with the planted bug if there is one.
    pub(crate) fn decision(&self, round: &Round) -> Decision {
        let (mut graphs, mut facts) = (self.case.graphs(), self.facts(round));
        if let Some(bug) = self.bug {
            bug.spoil_facts(&mut graphs, &mut facts);
        }
        let decision = decide(graphs, &round.object.status.recorded, &facts);
        match self.bug {
            Some(bug) => bug.spoil_decision(decision, &facts),
            None => decision,
        }
    }

    /// Returns the facts of a reconciliation, as far as the operator knows them.
    pub(crate) fn facts(&self, round: &Round) -> Facts<'static> {
        let memory = &self.operator.memory;
        Facts {
            asked: asked(&round.object),
            sight: ObservedFacts {
                observed: round.observed,
                events: &[],
                spent: round.is_observation_spent,
            },
            work: self.work(round),
            pass: self.pass(round),
            owned: OwnedFacts {
                kinds: !self.case.owns.is_empty(),
                // It counts if nothing is recorded.
                any: round.object.status.recorded.at().is_none() && self.cluster.has_any(),
                standing: round.standing,
                last: self.last_standing(&round.object),
                cleared: round.cleared,
                due: memory.owned.due.left(),
            },
            operator: OperatorFacts {
                may_act: self.operator.leads,
                draining: self.operator.draining,
            },
            writes: writes(memory, round),
            time: TimeFacts {
                in_state: self.in_state(&round.object.status.recorded),
                in_deadline: self.in_state(&round.object.status.recorded),
                observe_after: Duration::from_secs(30),
                backoff: Backoff::default(),
                seed: 1,
            },
        }
    }

    /// Returns the status of the owned resources for the state on record, if this process knows it.
    fn last_standing(&self, object: &Object) -> Option<Standing> {
        let (transition, standing) = self.operator.memory.owned.last?;
        let record = object.status.recorded.at()?;
        let is_of_state = record.transition == transition;
        (is_of_state || self.bug == Some(Bug::StandingOfFormerStateKept)).then_some(standing)
    }

    fn work(&self, round: &Round) -> WorkFacts {
        let Memory {
            piece, is_ending, ..
        } = self.operator.memory;
        let task = match piece.map(|piece| piece.phase) {
            None => Task::Absent,
            Some(Phase::New) => Task::New,
            Some(Phase::Running) => Task::Running,
            Some(Phase::Waiting { .. }) => Task::Waiting,
            Some(Phase::Due) => Task::Due,
            Some(Phase::Ended(said)) => Task::Ended(said),
        };
        let recorded = &round.object.status.recorded;
        let action = recorded.at().and_then(|record| record.action);
        let recorded_attempt = action.map_or(1, |action| action.attempt);
        let is_stale = |id| Some(id) != self.in_flight(recorded);
        WorkFacts {
            task,
            stale: piece.is_some_and(|piece| is_stale(piece.id)),
            waits: if is_ending {
                Some(Waits::Ending)
            } else {
                round.waits
            },
            attempt: piece.map_or(1, |piece| piece.attempt).max(recorded_attempt),
            started_under: piece.map_or(0, |piece| piece.started_under),
            due: match task {
                Task::Waiting => Some(WAIT),
                Task::Due => Some(Duration::ZERO),
                Task::Absent | Task::New | Task::Running | Task::Ended(_) => None,
            },
        }
    }

    /// Returns the work that is in flight according to a record.
    pub(crate) fn in_flight(&self, recorded: &Recorded) -> Option<WorkId> {
        let record = recorded.at()?;
        record
            .in_flight(self.case.life?)
            .then(|| WorkId::of(record))?
    }

    fn pass(&self, round: &Round) -> PassFacts {
        let Memory { seen, pass, .. } = self.operator.memory;
        let Object {
            version,
            spec,
            status,
            ..
        } = round.object;
        let is_pause_news = spec.paused != status.report.is_paused;
        let is_alone = self.case.life.is_none();
        PassFacts {
            ran: round.run.map(|run| run.ran),
            last: pass.last,
            backoff: (pass.backoff)
                .filter(|generation| *generation == spec.generation)
                .map(|_| WAIT),
            due: pass.due.left(),
            named: round.is_named || (is_alone && (pass.is_unwritten || is_pause_news)),
            changed: !seen.reported || version != seen.version,
        }
    }

    /// Returns how long the object has been in the state on record.
    fn in_state(&self, recorded: &Recorded) -> Duration {
        let transition = recorded.at().map(|record| record.transition);
        if transition.is_some() && transition == self.long_in {
            LONG
        } else {
            Duration::ZERO
        }
    }
}

impl Due {
    fn left(self) -> Option<Duration> {
        match self {
            Self::Nothing => None,
            Self::Ahead => Some(WAIT),
            Self::Come => Some(Duration::ZERO),
        }
    }
}

fn asked(object: &Object) -> Asked {
    let Object { spec, status, .. } = object;
    let record = status.recorded.at();
    let named = |request: Request| Named::Known(request.state);
    let number = |request: Option<Request>| request.map(|request| request.number);
    let is_reported = status.report.about == About::Garbled && status.generation == spec.generation;
    Asked {
        readable: if spec.garbled {
            Readable::No {
                reported: is_reported,
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
        generation: spec.generation,
        revision: spec.revision,
        deleting: spec.deleting,
        abandoned: spec.abandoned,
        paused: spec.paused,
        newer: status.newer && record.is_some_and(|record| record.state == StateId::UNKNOWN),
        finalizer: object.finalizer,
    }
}

fn writes(memory: &Memory, round: &Round) -> WriteFacts {
    let failed = memory.failed;
    let waits = failed.is_some_and(|failed| failed.waits(&round.object));
    WriteFacts {
        behind: round.object.version < memory.seen.version,
        wait: waits.then_some(WAIT),
        unshown: failed.is_some_and(|failed| failed.is_unshown()),
        refused: failed.is_some_and(|failed| failed.is_refused),
        written: round.written,
        draft: round.draft,
        side_wait: if memory.seen.side {
            WAIT
        } else {
            Duration::ZERO
        },
    }
}
