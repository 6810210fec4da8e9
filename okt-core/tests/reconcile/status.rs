//! This file renders the status of a draft.

use std::hash::{DefaultHasher, Hash, Hasher};

use okt_core::ConditionStatus;
use okt_core::conditions::{Condition, OwnedWords, Way, Words, conditions, of_pass_run};
use okt_core::reconcile::{Draft, Hold, RunEnd, Standing};
use okt_core::record::Recorded;

use crate::hands::ran;
use crate::object::{About, Report, Status};
use crate::operator::Round;
use crate::world::World;

impl World {
    /// Returns the status to be written for a draft.
    pub(crate) fn drafted(&self, draft: &Draft, round: &Round) -> Status {
        let object = &round.object;
        if self.case.life.is_none() && object.is_paused() {
            return self.drafted_while_paused(draft, round);
        }
        // Desired state and visit are stored with the position.
        let (desired, visit) = if draft.record == Recorded::Nothing {
            (object.status.desired, object.status.visit)
        } else {
            (object.spec.desired, object.spec.visit)
        };
        Status {
            recorded: draft.record,
            newer: object.status.newer,
            desired,
            visit,
            generation: object.spec.generation,
            report: self.report(draft, round),
            extra: self.extra,
        }
    }

    /// Renders the status of a paused object without a lifecycle: it stays as it is, except for the pause.
    fn drafted_while_paused(&self, draft: &Draft, round: &Round) -> Status {
        let object = &round.object;
        if object.status.report.about == About::Nothing {
            return Status {
                generation: object.spec.generation,
                report: self.report(draft, round),
                ..object.status
            };
        }
        Status {
            report: Report {
                is_paused: true,
                ..object.status.report
            },
            ..object.status
        }
    }

    fn report(&self, draft: &Draft, round: &Round) -> Report {
        let hold = match draft.hold {
            Hold::AsBefore => round.object.status.report.hold,
            hold => hold,
        };
        let conditions = self.conditions(draft, round, hold);
        let mut hasher = DefaultHasher::new();
        for Condition {
            name,
            status,
            reason,
            ..
        } in &conditions
        {
            (name, status.as_str(), reason).hash(&mut hasher);
        }
        let is_true = |name: &str| {
            let mut all = conditions.iter();
            all.any(|it| it.name == name && it.status == ConditionStatus::True)
        };
        Report {
            about: About::Life,
            hold,
            is_ready: is_true("Ready"),
            is_stalled: is_true("Stalled"),
            is_paused: is_true("Paused"),
            conditions: hasher.finish(),
        }
    }

    fn conditions(&self, draft: &Draft, round: &Round, hold: Hold) -> Vec<Condition> {
        let facts = self.facts(round);
        let facts = facts.for_conditions();
        let resources = resources(hold);
        if let Some(life) = self.case.life {
            let words = Words {
                resources,
                ..Words::default()
            };
            return conditions(life, &draft.record, &facts, &draft.step, &words);
        }
        let Some(pass) = self.case.pass else {
            return Vec::new();
        };
        let deleting = facts.deleting;
        let run = (round.run).map(|run| ran(pass, deleting, run.unusual, |_| {}));
        let way = match &run {
            Some(run) => Way::Ran(run),
            None if facts.is_paused() => Way::Paused,
            None => Way::Leaving,
        };
        of_pass_run(pass, way, resources, deleting, facts.paused)
    }
}

/// Returns how conditions report a hold.
fn resources(hold: Hold) -> OwnedWords<'static> {
    let failed = |reason, permanent| OwnedWords::Failed {
        reason,
        message: "",
        permanent,
    };
    match hold {
        Hold::None
        | Hold::AsBefore
        | Hold::Pass(RunEnd::Complete)
        | Hold::Resources(Standing::AsDeclared) => OwnedWords::AsDeclared,
        Hold::Unchecked | Hold::Resources(Standing::Awaited) => OwnedWords::Awaited("the object"),
        Hold::Stopping => failed("Stopping", false),
        Hold::Pass(RunEnd::GaveUp) => failed("GaveUp", true),
        Hold::Pass(RunEnd::Short) => failed("Short", false),
        Hold::Pass(RunEnd::Held) => failed("Held", false),
        Hold::Resources(Standing::Failed { permanent }) => failed("NotApplied", permanent),
    }
}
