//! The status of a draft, rendered.

use std::hash::{DefaultHasher, Hash, Hasher};

use okt_core::conditions::{Condition, OwnedWords, Requested, Way, Words, conditions, of_pass_run};
use okt_core::decide::{By, Go, Verdict, Why};
use okt_core::record::Recorded;
use okt_core::{ConditionStatus, StateId};

use crate::machine::{Draft, NotReadyReason, ResourceStatus, RunEnd};
use crate::object::{About, Object, Report, Status, part};
use crate::plant::Bug;
use crate::process::AtHand;
use crate::shell::ran;
use crate::world::World;

impl World {
    /// Returns the status to be written for a draft.
    pub(crate) fn rendered(&self, draft: &Draft, at_hand: &AtHand) -> Status {
        let object = &at_hand.object;
        if self.case.life.is_none() && object.is_paused() {
            return self.rendered_while_paused(draft, at_hand);
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
            report: self.report(draft, at_hand),
            records: if self.in_flight(&draft.record) == self.in_flight(&object.status.recorded) {
                object.status.records
            } else {
                0
            },
            part: self.part(draft, object),
            extra: self.extra,
            is_inherited: false,
            has_leftovers: false,
        }
    }

    /// Returns the part of the spec that a draft records: the present one, where an edge has taken its change.
    fn part(&self, draft: &Draft, object: &Object) -> u64 {
        let taken = |go: Go| match (self.case.life, go.by) {
            (_, By::Entry | By::Reentry) => true,
            (Some(life), _) if go.why == Why::OnChange => {
                let left = draft.record.at().map_or(StateId::UNKNOWN, |it| it.left);
                life.taken(left, go.to).parts.has(0)
            }
            _ => self.bug == Some(Bug::PartTakenByAnyEdge),
        };
        match draft.step {
            Verdict::Go(go) if taken(go) => part(object.spec.revision),
            _ => object.status.part,
        }
    }

    /// Renders the status of a paused object without a lifecycle: it stays as it is, except for the pause.
    fn rendered_while_paused(&self, draft: &Draft, at_hand: &AtHand) -> Status {
        let object = &at_hand.object;
        if object.status.report.about == About::Nothing {
            return Status {
                generation: object.spec.generation,
                report: self.report(draft, at_hand),
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

    fn report(&self, draft: &Draft, at_hand: &AtHand) -> Report {
        let not_ready = match draft.not_ready {
            NotReadyReason::AsBefore => at_hand.object.status.report.not_ready,
            not_ready => not_ready,
        };
        let conditions = self.conditions(draft, at_hand, not_ready);
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
            not_ready,
            is_ready: is_true("Ready"),
            is_stalled: is_true("Stalled"),
            is_paused: is_true("Paused"),
            conditions: hasher.finish(),
        }
    }

    fn conditions(
        &self,
        draft: &Draft,
        at_hand: &AtHand,
        not_ready: NotReadyReason,
    ) -> Vec<Condition> {
        let facts = self.facts().life;
        let resources = resources(not_ready);
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
        let run = at_hand
            .run
            .map(|run| ran(pass, deleting, run.unusual, |_| {}));
        let way = match &run {
            Some(run) => Way::Ran(run),
            None if facts.is_paused() => Way::Paused,
            None => Way::Leaving,
        };
        let requested = Requested {
            deletion: deleting,
            pause: facts.paused,
        };
        of_pass_run(pass, way, resources, requested)
    }
}

/// Returns how conditions report why the object is not ready.
fn resources(not_ready: NotReadyReason) -> OwnedWords<'static> {
    let failed = |reason, permanent| OwnedWords::Failed {
        reason,
        message: "",
        permanent,
    };
    match not_ready {
        NotReadyReason::None
        | NotReadyReason::AsBefore
        | NotReadyReason::Pass(RunEnd::Complete)
        | NotReadyReason::Resources(ResourceStatus::AsDeclared) => OwnedWords::AsDeclared,
        NotReadyReason::Unchecked | NotReadyReason::Resources(ResourceStatus::Awaited) => {
            OwnedWords::Awaited("the object")
        }
        NotReadyReason::Stopping => failed("Stopping", false),
        NotReadyReason::Requests => failed("NotWritten", false),
        NotReadyReason::Pass(RunEnd::GaveUp) => failed("GaveUp", true),
        NotReadyReason::Pass(RunEnd::Short) => failed("Short", false),
        NotReadyReason::Pass(RunEnd::Held) => failed("Held", false),
        NotReadyReason::Resources(ResourceStatus::Failed { permanent }) => {
            failed("NotApplied", permanent)
        }
    }
}
