//! Kubernetes Events about an object: jumps, and what a person should look at. All are warnings.
//!
//! They are published after the write that they are about succeeded, once for each reason, and never retried: the
//! conditions say the same.

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta};
use kube::Resource;
use kube::runtime::events::{Event, EventType};
use okt_core::decide::{By, Go};
use okt_core::{Lifecycle, reasons};

use crate::author::application::{Application, StateOf};
use crate::reconcile::shared::Shared;
use crate::texts::cut;
use crate::wire::object::has_lifecycle;
use crate::wire::status::{RecordedFailure, Status};

/// The longest note, in bytes: the API server takes 1024.
const NOTE_LIMIT: usize = 1024;

/// The reason and the message of something that a person should look at.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Trouble {
    reason: String,
    note: String,
}

/// Returns the troubles that a new status reports and the old one does not, each reason once: the object stalled or
/// holds, an attempt failed, a name belongs to another owner.
pub(super) fn troubles<S: Lifecycle, X, Y>(
    old: Option<&Status<S, X>>,
    new: &Status<S, Y>,
) -> Vec<Trouble> {
    let before = old.map_or(&[][..], |old| &old.conditions);
    let is_trouble = |it: &&Condition| match (it.type_.as_str(), it.status.as_str()) {
        ("Stalled", "True") => true,
        ("Ready", "False") => it.reason == reasons::resources::NOT_OWNED,
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
    let said = conditions
        .map(|condition| (&condition.reason, &condition.message))
        .chain(failed.map(|failure| (&failure.reason, &failure.message)));
    let mut troubles: Vec<Trouble> = Vec::new();
    for (reason, note) in said {
        if troubles.iter().all(|trouble| trouble.reason != *reason) {
            troubles.push(Trouble {
                reason: reason.clone(),
                note: note.clone(),
            });
        }
    }
    troubles
}

fn failure_of<S, X>(status: &Status<S, X>) -> Option<&RecordedFailure> {
    status.lifecycle.as_ref()?.action.as_ref()?.failure.as_ref()
}

impl<A: Application> Shared<A> {
    /// Publishes an event for each trouble.
    pub(super) fn warn_of_troubles(&self, object: &ObjectMeta, troubles: Vec<Trouble>) {
        for Trouble { reason, note } in troubles {
            self.warn(object, reason, "Reconcile", &note);
        }
    }

    /// Publishes an event for a jump: the application moved on its own, or a status was lost.
    pub(super) fn warn_of_jump(&self, object: &ObjectMeta, go: Go, from: &str) {
        if go.by == By::Jump {
            let to = StateOf::<A>::GRAPH.name_of(go.to);
            let note = if from.is_empty() {
                format!("found in {to}, with nothing recorded")
            } else {
                format!("was in {from} by the record, is in {to}; no edge leads there")
            };
            // Events are merged whatever their notes are, so the reason contains the state.
            self.warn(object, format!("JumpedTo{to}"), "Transition", &note);
        }
    }

    pub(super) fn warn_of_abandoning(&self, object: &ObjectMeta, state: &str) {
        let place = match state {
            "" if has_lifecycle::<A::Resource>() => " in an unknown state".to_owned(),
            "" => String::new(),
            state => format!(" in {state}"),
        };
        let note = format!("abandoned{place}; nothing cleans up what is left of the application");
        self.warn(object, "Abandoned".to_owned(), "Release", &note);
    }

    fn warn(&self, object: &ObjectMeta, reason: String, action: &str, note: &str) {
        let event = Event {
            type_: EventType::Warning,
            reason,
            note: Some(cut(note, NOTE_LIMIT)),
            action: action.to_owned(),
            secondary: None,
        };
        let about = ObjectReference {
            api_version: Some(A::Resource::api_version(&()).into_owned()),
            kind: Some(A::Resource::kind(&()).into_owned()),
            name: object.name.clone(),
            namespace: object.namespace.clone(),
            uid: object.uid.clone(),
            ..ObjectReference::default()
        };
        let recorder = self.recorder.clone();
        tokio::spawn(async move {
            if let Err(error) = recorder.publish(&event, &about).await {
                tracing::warn!(reason = event.reason, "cannot publish an event: {error}");
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use okt_core::{Graph, StateId};

    use super::*;

    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    enum NoState {}

    impl Lifecycle for NoState {
        const GRAPH: &'static Graph<'static> = &Graph {
            name: "",
            doc: "",
            kind: okt_core::Kind::Lifecycle,
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
        troubles.map(|trouble| trouble.reason).collect()
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
    fn a_name_of_another_owner_is_an_event_although_it_is_retried() {
        let taken = status(&[
            ("Ready", "False", "NotOwned"),
            ("Reconciling", "True", "NotOwned"),
        ]);
        assert_eq!(reasons(None, &taken), ["NotOwned"]);
        assert_eq!(reasons(Some(&taken), &taken), [""; 0]);
    }
}
