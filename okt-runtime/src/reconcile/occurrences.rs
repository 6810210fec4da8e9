//! What happened to an object by a write: its transition, the end of an attempt, and what a person should look at.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::Resource;
use okt_core::decide::{Ending, Go, Verdict};
use okt_core::machine::{Cancel, Draft, WorkChange};
use okt_core::{Lifecycle, reasons};
use okt_telemetry::event::{Occurrence, Outcome};
use okt_wire::object::{LifecycleObject, StatusOf};
use okt_wire::status::{Position, RecordedFailure, Status};

use super::reconciliation::Reconciliation;
use crate::author::application::{Application, StateOf};
use crate::reconcile::work::ActionRun;

/// Returns the troubles that a new status reports and the old one does not, each reason once: the object stalled or
/// holds, an attempt failed, a name belongs to another owner.
pub(super) fn troubles<S: Lifecycle, X, Y, M>(
    old: Option<&Status<S, X, M>>,
    new: &Status<S, Y, M>,
) -> Vec<Occurrence> {
    let before = old.map_or(&[][..], |old| &old.conditions);
    let is_trouble = |it: &&Condition| match (it.type_.as_str(), it.status.as_str()) {
        ("Stalled", "True") => true,
        ("Ready", "False") => it.reason == reasons::resources::NOT_OWNED,
        ("Reconciling", "True") => it.reason == reasons::LOOP_DETECTED,
        _ => false,
    };
    let is_news = |it: &&Condition| {
        let is_same = |was: &Condition| {
            (&was.type_, &was.status, &was.reason) == (&it.type_, &it.status, &it.reason)
        };
        !before.iter().any(is_same)
    };
    let failed = failure_of(new).filter(|failure| {
        let was = old.and_then(failure_of);
        was.is_none_or(|was| was.reason != failure.reason)
    });
    let conditions = new.conditions.iter().filter(is_trouble).filter(is_news);
    let found = conditions
        .map(|condition| (&condition.reason, &condition.message))
        .chain(failed.map(|failure| (&failure.reason, &failure.message)));
    let mut reasons = Vec::new();
    let mut troubles = Vec::new();
    for (reason, message) in found {
        if !reasons.contains(&reason) {
            reasons.push(reason);
            troubles.push(Occurrence::Trouble {
                reason: reason.clone(),
                message: message.clone(),
            });
        }
    }
    troubles
}

fn failure_of<S, X, M>(status: &Status<S, X, M>) -> Option<&RecordedFailure> {
    status.lifecycle.as_ref()?.action.as_ref()?.failure.as_ref()
}

/// Logs a transition, and a wrong answer of a handler.
fn log<S: Lifecycle>(occurrence: &Occurrence, position: Option<&Position<S>>) {
    match occurrence {
        Occurrence::Transition { transition, .. } => tracing::info!(
            transition = transition.transition,
            from = transition.from,
            to = transition.to,
            cause = transition.cause_text(),
            trail = position.map(|it| &*it.trail),
            "transition"
        ),
        Occurrence::AttemptEnded {
            attempt,
            outcome: Outcome::Refused { to },
            ..
        } => tracing::error!(
            state = attempt.state,
            to,
            "a handler named a state that no edge leads to"
        ),
        _ => {}
    }
}

/// Logs a failed attempt whose reason no earlier attempt of the work had.
fn log_failure(occurrence: &Occurrence, run: Option<&ActionRun>) {
    let Occurrence::AttemptEnded {
        attempt,
        outcome: Outcome::Failed {
            reason, message, ..
        },
        ..
    } = occurrence
    else {
        return;
    };
    if run.is_none_or(|run| !run.has_reported(reason)) {
        tracing::warn!(
            state = attempt.state,
            attempt = attempt.number,
            reason,
            "an attempt failed: {message}"
        );
    }
}

/// Returns the last transition of a position.
fn transition<S: Lifecycle>(
    go: Go,
    before: Option<&Position<S>>,
    after: &Position<S>,
    trouble: Option<&Occurrence>,
) -> Option<Occurrence> {
    let transition = after.history.last()?.clone();
    let since = before.and_then(|it| it.since);
    let time_in_state = since
        .zip(transition.at)
        .and_then(|(since, at)| at.duration_since(since).try_into().ok());
    Some(Occurrence::Transition {
        transition,
        edge: go.by,
        cause: go.why,
        time_in_state,
        trouble: match trouble {
            Some(Occurrence::Trouble { reason, .. }) => Some(reason.clone()),
            _ => None,
        },
        action: after.action.as_ref().map(|it| it.id.clone()),
    })
}

impl<A: Application> Reconciliation<'_, A> {
    /// Returns what happens with this draft, in order; `written` is the status, if it is written.
    pub(super) fn occurrences(
        &self,
        draft: &Draft,
        written: Option<&StatusOf<A::Resource>>,
    ) -> Vec<Occurrence> {
        let mut all: Vec<_> = self.ended(draft).into_iter().collect();
        if let Some(status) = written {
            let troubles = troubles(self.object.status_of(), status);
            if let (Verdict::Go(go), Some(after)) = (draft.step, &status.lifecycle) {
                let moved = transition(go, self.position(), after, troubles.first());
                all.extend(moved);
            }
            all.extend(troubles);
        }
        all
    }

    /// Returns the attempt that ends with this draft, if one does. The task of a cancelled attempt reports its end; none
    /// runs where the handler waits for its next call.
    fn ended(&self, draft: &Draft) -> Option<Occurrence> {
        match draft.work {
            WorkChange::Keep | WorkChange::Wait => return None,
            WorkChange::None | WorkChange::New | WorkChange::Retry => {}
        }
        self.attempt_ended(match (draft.step, self.memory.result()) {
            (_, None) if self.memory.machine.waits_for_call() => Outcome::Cancelled,
            (_, None) => return None,
            (Verdict::End(Ending::Refused(to)), _) => Outcome::Refused {
                to: StateOf::<A>::from_id(to).map(Lifecycle::name),
            },
            (_, Some(Ok(_))) => Outcome::Succeeded,
            (_, Some(Err(failure))) => Outcome::Failed {
                reason: failure.reason().to_owned(),
                message: failure.message().to_owned(),
                permanent: failure.is_permanent(),
            },
        })
    }

    fn attempt_ended(&self, outcome: Outcome) -> Option<Occurrence> {
        Some(Occurrence::AttemptEnded {
            attempt: self.memory.attempt()?,
            outcome,
            took: self.memory.run()?.began.elapsed(),
        })
    }

    /// Cancels the work. Its task publishes that; if none runs, it is published here.
    pub(super) fn cancel(&mut self, effect: Cancel) {
        if effect.waited
            && let Some(cancelled) = self.attempt_ended(Outcome::Cancelled)
        {
            self.happened(cancelled);
        }
        self.memory.work.cancel(effect.task);
        self.memory.machine.cancelled(effect);
    }

    /// Records what happened to the object.
    pub(super) fn happened(&self, occurrence: Occurrence) {
        log(&occurrence, self.position());
        log_failure(&occurrence, self.memory.run());
        let meta = self.object.meta();
        self.shared
            .telemetry
            .record::<A::Resource>(meta, occurrence);
    }
}

#[cfg(test)]
mod tests {
    use okt_core::{Graph, StateId};

    use super::*;

    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    enum NoState {}

    impl Lifecycle for NoState {
        type Gate = okt_core::NoGate;

        const GRAPH: &'static Graph<'static> = &Graph {
            name: "",
            doc: "",
            kind: okt_core::Kind::Lifecycle,
            parts: &[],
            gates: &[],
            states: &[],
            routes: okt_core::routes::Routes::NONE,
        };

        fn id(self) -> StateId {
            match self {}
        }

        fn from_id(_: StateId) -> Option<Self> {
            None
        }
    }

    fn status(conditions: &[(&str, &str, &str)]) -> Status<NoState> {
        let conditions = conditions.iter().map(|(type_, status, reason)| Condition {
            type_: (*type_).to_owned(),
            status: (*status).to_owned(),
            reason: (*reason).to_owned(),
            message: format!("why {reason}"),
            last_transition_time: k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(
                k8s_openapi::jiff::Timestamp::UNIX_EPOCH,
            ),
            observed_generation: None,
        });
        Status {
            conditions: conditions.collect(),
            ..Status::default()
        }
    }

    fn reasons(old: Option<&Status<NoState>>, new: &Status<NoState>) -> Vec<String> {
        let troubles = troubles(old, new).into_iter();
        let reason = |trouble| match trouble {
            Occurrence::Trouble { reason, .. } => reason,
            other => panic!("{other:?}"),
        };
        troubles.map(reason).collect()
    }

    #[test]
    fn a_stalled_object_is_an_event_once_for_each_reason() {
        let fine = status(&[("Ready", "True", "Up")]);
        let full = status(&[("Ready", "False", "Full"), ("Stalled", "True", "Full")]);
        let lost = status(&[("Ready", "False", "Lost"), ("Stalled", "True", "Lost")]);
        assert_eq!(reasons(None, &fine), [""; 0]);
        assert_eq!(reasons(Some(&fine), &full), ["Full"]);
        assert_eq!(reasons(Some(&full), &full), [""; 0]);
        assert_eq!(reasons(Some(&full), &lost), ["Lost"]);
        assert_eq!(reasons(Some(&lost), &fine), [""; 0]);
    }

    #[test]
    fn a_loop_is_an_event_although_the_object_goes_on() {
        let going = status(&[("Reconciling", "True", "Progressing")]);
        let round = status(&[("Reconciling", "True", "LoopDetected")]);
        assert_eq!(reasons(Some(&going), &round), ["LoopDetected"]);
        assert_eq!(reasons(Some(&round), &round), [""; 0]);
        assert_eq!(reasons(Some(&round), &going), [""; 0]);
    }

    #[test]
    fn a_name_of_another_owner_is_an_event_although_it_is_retried() {
        let taken = status(&[
            ("Ready", "False", "NotOwned"),
            ("Reconciling", "True", "NotOwned"),
        ]);
        assert_eq!(reasons(None, &taken), ["NotOwned"]);
        assert_eq!(reasons(Some(&taken), &taken), [""; 0]);
    }
}
