//! One object of any OKT operator, read without its Rust types.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta};
use kube::api::DynamicObject;
use okt_core::reasons::{self, resources};
use okt_core::record::{Phase, VisitOutcome};
use okt_core::request::RequestOutcome;
use okt_core::{Cause, Graph, StateId};
use okt_wire::desired::{Desired, StateName};
use okt_wire::keys::PAUSED_ANNOTATION;
use okt_wire::parts;
use okt_wire::status::{Position, RecordedAction, RecordedRequest, Status};
use okt_wire::texts::qualified;
use serde_json::{Map, Value};

use super::kind::Kind;
use super::stranger::UNREADABLE;
use super::text::{clean, way};
use crate::untyped::Untyped;

/// One object, with the lifecycle in its status.
#[derive(Clone, Debug)]
pub struct View<'k> {
    /// Its kind.
    pub kind: &'k Kind,
    /// Its metadata.
    pub meta: ObjectMeta,
    /// What its spec asks for.
    pub desired: Desired<Untyped>,
    /// Its status, with fields that the application adds.
    pub status: Status<Untyped, Map<String, Value>>,
    /// Why the spec or the status cannot be read.
    pub unreadable: Option<String>,
}

/// Where an object is to go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Goal {
    /// To a leaf, because it is being deleted.
    Deletion,
    /// To a state that it is to visit once.
    Visit(StateId),
    /// To the desired state.
    Desired(StateId),
}

/// The next trigger that time raises.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Deadline {
    /// The state that the trigger leads to.
    pub to: StateId,
    /// When the trigger is raised.
    pub at: Timestamp,
}

impl<'k> View<'k> {
    /// Reads an object; what cannot be read is left out, and noted.
    pub fn of(kind: &'k Kind, object: DynamicObject) -> Self {
        let mut unreadable = None;
        let DynamicObject {
            metadata, mut data, ..
        } = object;
        if let Some(why) = data.get(UNREADABLE).and_then(Value::as_str) {
            unreadable = Some(format!("it cannot be read: {why}"));
        }
        let mut note = |field: String, error: serde_json::Error| {
            unreadable.get_or_insert_with(|| format!("{field} cannot be read: {error}"));
        };
        // Indexing a value that is no mapping is a panic.
        let stored = data.get_mut("spec").and_then(|it| it.get_mut(&kind.field));
        let field = stored.map(Value::take).unwrap_or_default();
        let status = data.get_mut("status").map(Value::take).unwrap_or_default();
        let mut data = Value::Object(Map::from_iter([
            ("spec".to_owned(), field),
            ("status".to_owned(), status),
        ]));
        clean(&mut data);
        let desired = match data["spec"].take() {
            Value::Null => Desired::default(),
            value => serde_json::from_value(value).unwrap_or_else(|error| {
                note(format!("spec.{}", kind.field), error);
                Desired::default()
            }),
        };
        let status = match data["status"].take() {
            Value::Null => Status::default(),
            value => serde_json::from_value(value).unwrap_or_else(|error| {
                note("status".to_owned(), error);
                Status::default()
            }),
        };
        Self {
            kind,
            meta: metadata,
            desired,
            status,
            unreadable,
        }
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        self.meta.name.as_deref().unwrap_or_default()
    }

    /// Returns the namespace; none for a cluster-scoped object.
    pub fn namespace(&self) -> Option<&str> {
        self.meta.namespace.as_deref()
    }

    /// Returns the name for people (e.g. `Database demo/orders`).
    pub fn title(&self) -> String {
        let name = qualified(self.namespace(), self.name());
        format!("{} {name}", self.kind.resource.kind)
    }

    /// Returns the name for machines, as `kubectl -o name` (e.g. `databases.demo.okt.dev/orders`).
    pub fn id(&self) -> String {
        format!("{}/{}", self.kind.id(), self.name())
    }

    /// Returns what names this object in a command, wherever it is typed (e.g. `-n demo databases.demo.okt.dev/orders`).
    pub fn arguments(&self) -> String {
        match self.namespace() {
            Some(namespace) => format!("-n {namespace} {}", self.id()),
            None => self.id(),
        }
    }

    /// Returns the position; none before the first reconciliation.
    pub fn position(&self) -> Option<&Position<Untyped>> {
        self.status.lifecycle.as_ref()
    }

    /// Returns the name of the state; none before the first reconciliation.
    pub fn state(&self) -> Option<&str> {
        Some(self.position()?.state.as_str())
    }

    /// Returns the graph and the state in it.
    pub fn place(&self) -> Option<(&'static Graph<'static>, StateId)> {
        let graph = self.kind.graph()?;
        Some((graph, graph.named(self.state()?)?))
    }

    /// Returns whether the object is being deleted.
    pub fn is_deleting(&self) -> bool {
        self.meta.deletion_timestamp.is_some()
    }

    /// Returns whether the object is paused.
    pub fn is_paused(&self) -> bool {
        let annotations = self.meta.annotations.as_ref();
        let paused = annotations.and_then(|all| all.get(PAUSED_ANNOTATION));
        paused.is_some_and(|paused| paused == "true")
    }

    /// Returns the desired state, from the spec or the default of the graph.
    pub fn desired(&self) -> Option<&str> {
        let named = self.desired.state.as_ref().map(StateName::as_str);
        let home = || {
            self.kind
                .graph()
                .and_then(|graph| Some(graph.name_of(graph.home()?)))
        };
        named.or_else(home)
    }

    /// Returns the recorded outcome of the visit that the spec asks for; none if it asks for none, or it is not recorded.
    pub fn visit_outcome(&self) -> Option<VisitOutcome> {
        let asked = self.desired.visit.as_ref()?;
        let recorded = self.position()?.visit.as_ref()?;
        let is_it = recorded.state == asked.state.as_str() && recorded.request == asked.request;
        is_it.then_some(recorded.outcome)
    }

    /// Returns the request that the object serves, until its outcome is recorded.
    pub fn served(&self) -> Option<&RecordedRequest> {
        let request = self.position()?.request.as_ref();
        request.filter(|it| it.outcome == RequestOutcome::Running)
    }

    /// Returns the visit that is not over: of the request that the object serves, or that the spec asks for.
    pub fn pending_visit(&self) -> Option<&str> {
        if let Some(request) = self.served() {
            return Some(&request.state);
        }
        let asked = self.desired.visit.as_ref()?;
        let is_over = self
            .visit_outcome()
            .is_some_and(|it| it != VisitOutcome::Pending);
        (!is_over).then(|| asked.state.as_str())
    }

    /// Returns where the object is to go; none if the graph does not have that state.
    pub fn goal(&self) -> Option<Goal> {
        let graph = self.kind.graph()?;
        if self.is_deleting() {
            return Some(Goal::Deletion);
        }
        let at = self.place().map(|(_, at)| at);
        let visit = self.pending_visit().and_then(|to| graph.named(to));
        // From where no route leads to the visit, the desired state counts.
        let visit =
            visit.filter(|to| at.is_none_or(|at| at == *to || graph.hop(at, *to).is_some()));
        visit
            .map(Goal::Visit)
            .or_else(|| Some(Goal::Desired(graph.named(self.desired()?)?)))
    }

    /// Returns the states from the present one to the goal, without the present one; empty where it is reached or where
    /// there is no route.
    pub fn route(&self) -> Vec<StateId> {
        match (self.place(), self.goal()) {
            (Some((graph, at)), Some(goal)) => route(graph, at, goal),
            _ => Vec::new(),
        }
    }

    /// Returns the route with the present state, as a way (e.g. `Running → Stopping → End`); none if it is empty.
    pub fn way(&self) -> Option<String> {
        let (graph, at) = self.place()?;
        let route = self.route();
        (!route.is_empty()).then(|| way(graph, std::iter::once(at).chain(route)))
    }

    /// Returns how long the object has been in its state.
    pub fn time_in_state(&self, now: Timestamp) -> Option<SignedDuration> {
        Some(now.duration_since(self.position()?.since?))
    }

    /// Returns the trigger that time raises first.
    pub fn deadline(&self) -> Option<Deadline> {
        let (graph, at) = self.place()?;
        let position = self.position()?;
        let state = graph.get(at)?;
        let raised = state.triggers.iter().filter_map(|trigger| {
            let counted = |time: u64| Duration::from_millis(time);
            let (since, after) = match (trigger.cause, &position.acting) {
                (Cause::After(after), Some(acting)) => {
                    (acting.at, after.saturating_sub(counted(acting.in_state)))
                }
                (Cause::After(after), None) => (position.since?, after),
                (Cause::Deadline(after), Some(acting)) => {
                    (acting.at, after.saturating_sub(counted(acting.in_deadline)))
                }
                (Cause::Deadline(after), None) => {
                    (position.deadline_since.or(position.since)?, after)
                }
                (
                    Cause::Named
                    | Cause::OnError { .. }
                    | Cause::OnDelete
                    | Cause::OnChange
                    | Cause::OnChangeOf(_)
                    | Cause::OnGiveUp
                    | Cause::OnAbort,
                    _,
                ) => return None,
            };
            let at = since.checked_add(after).ok()?;
            Some(Deadline { to: trigger.to, at })
        });
        raised.min_by_key(|deadline| deadline.at)
    }

    /// Returns the parts of the spec whose change led into the state, if that was the cause.
    pub fn change_that_led_here(&self) -> Option<&str> {
        let position = self.position()?;
        let last = position.history.last()?;
        let is_it = last.transition == position.transition && !last.changed.is_empty();
        is_it.then_some(last.changed.as_str())
    }

    /// Returns the parts of the spec that have changed, and whose change no edge has taken yet.
    pub fn waiting_parts(&self) -> Vec<&'static str> {
        let graph = self.kind.graph();
        let waiting = graph.zip(self.position());
        waiting.map_or_else(Vec::new, |(graph, position)| {
            parts::waiting(graph, position)
        })
    }

    /// Returns the work of the state, unless it succeeded.
    pub fn action(&self) -> Option<&RecordedAction> {
        let action = self.position()?.action.as_ref();
        action.filter(|action| action.phase != Phase::Done)
    }

    /// Returns the condition of this name.
    pub fn condition(&self, name: &str) -> Option<&Condition> {
        let mut conditions = self.status.conditions.iter();
        conditions.find(|condition| condition.type_ == name)
    }

    /// Returns whether the condition of this name is true.
    pub fn is_true(&self, condition: &str) -> bool {
        self.condition(condition)
            .is_some_and(|it| it.status == "True")
    }

    /// Returns the status, the reason and the message of `Ready`.
    pub fn ready(&self) -> (&str, &str, &str) {
        match (&self.unreadable, self.condition("Ready")) {
            (Some(why), _) => ("Unknown", "Unreadable", why),
            (None, Some(ready)) => (&ready.status, &ready.reason, &ready.message),
            (None, None) => (
                "Unknown",
                "NotReported",
                "no operator has reported on the object yet",
            ),
        }
    }

    /// Returns whether a person should look: the object does not get on by itself, or nothing is known of it.
    pub fn is_stuck(&self) -> bool {
        let needs_a_person = |ready: &Condition| {
            ready.status == "Unknown" || NEEDS_A_PERSON.contains(&ready.reason.as_str())
        };
        let ready = self.condition("Ready");
        self.unreadable.is_some() || self.is_true("Stalled") || ready.is_none_or(needs_a_person)
    }
}

/// The reasons of objects that the operator tries to move again and again, and that only a person can help.
const NEEDS_A_PERSON: [&str; 7] = [
    reasons::FORBIDDEN,
    reasons::LOOP_DETECTED,
    reasons::REFUSED,
    reasons::WRITE_FAILED,
    resources::FORBIDDEN,
    resources::NOT_OWNED,
    resources::REFUSED,
];

/// Returns the states on the way to a goal, without the first.
pub fn route(graph: &Graph<'_>, from: StateId, goal: Goal) -> Vec<StateId> {
    let hop = |at: &StateId| match goal {
        Goal::Deletion => graph.out(*at),
        Goal::Visit(to) | Goal::Desired(to) => graph.hop(*at, to),
    };
    std::iter::successors(hop(&from), hop)
        // A graph of another source may lead in a circle.
        .take(graph.states.len())
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn lamps() -> Kind {
        let crd = json!({
            "metadata": { "name": "lamps.demo.okt.dev" },
            "spec": {
                "group": "demo.okt.dev", "scope": "Namespaced", "names": { "kind": "Lamp", "plural": "lamps" },
                "versions": [{ "name": "v1", "served": true, "storage": true }],
            },
        });
        let crd = serde_json::from_value(crd).expect("a definition");
        Kind::of_crd(&crd).expect("it is served")
    }

    #[test]
    fn an_object_whose_spec_is_no_mapping_is_read_as_one_without_wishes() {
        let kind = lamps();
        for other in [json!("text"), json!(["a"]), json!(1)] {
            let object = json!({
                "apiVersion": "demo.okt.dev/v1", "kind": "Lamp",
                "metadata": { "name": "hall", "namespace": "home" }, "spec": other, "status": other,
            });
            let object = serde_json::from_value(object).expect("an object");
            let view = View::of(&kind, object);
            assert_eq!((view.state(), view.desired()), (None, None));
            assert_eq!(view.arguments(), "-n home lamps.demo.okt.dev/hall");
        }
    }

    #[test]
    fn a_person_should_look_at_what_does_not_get_on_by_itself() {
        let kind = lamps();
        for (status, reason, is_stuck) in [
            ("True", "Ready", false),
            ("False", "Working", false),
            ("False", reasons::PAUSED, false),
            ("False", reasons::WAITING_FOR_WINDOW, false),
            ("False", resources::WAITING, false),
            ("False", resources::NOT_OWNED, true),
            ("False", resources::FORBIDDEN, true),
            ("False", reasons::LOOP_DETECTED, true),
            ("False", reasons::REFUSED, true),
            ("Unknown", reasons::UNREACHABLE, true),
        ] {
            let ready = json!({ "type": "Ready", "status": status, "reason": reason, "message": "",
                "lastTransitionTime": "2026-11-29T00:00:00Z" });
            let object = json!({
                "apiVersion": "demo.okt.dev/v1", "kind": "Lamp",
                "metadata": { "name": "hall", "namespace": "home" }, "spec": {},
                "status": { "conditions": [ready] },
            });
            let object = serde_json::from_value(object).expect("an object");
            let view = View::of(&kind, object);
            assert_eq!(view.is_stuck(), is_stuck, "{status} {reason}");
        }
    }
}
