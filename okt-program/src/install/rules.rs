//! An admission policy of what the graph and the spec know of an object: an answer before the write instead of a condition
//! after it.

use kube::Resource;
use okt_core::{Graph, Lifecycle, Mark, State, StateId};
use okt_runtime::__program::lifecycle_field;
use okt_runtime::{Application, StateOf};
use okt_wire::object::{LifecycleObject, LifecycleSpec};
use serde_json::{Value, json};

use super::policy::{PolicyScope, is_visited, policy, present_names};

/// Returns the `ValidatingAdmissionPolicy` of what an object of the application may not become, and its binding; nothing
/// if there is nothing of that kind:
///
/// - a desired state or a visit without a route from the state in which the object rests (`no_route`);
/// - another visit while one is still to be made;
/// - another value of a field with `#[lifecycle(immutable)]`, once it has one.
///
/// The operator does not depend on it: it reports the first two itself. The API server evaluates the policy for objects,
/// not for their statuses, nor for those that are being deleted.
///
/// ```no_run
/// # fn example<A: okt::Application>() {
/// for object in okt::rule_policy::<A>() {
///     println!("{object}");
/// }
/// # }
/// ```
pub fn rule_policy<A: Application>() -> Vec<Value> {
    let mut rules = Rules::default();
    if let Some(field) = lifecycle_field::<A::Resource>() {
        rules.of_graph(StateOf::<A>::GRAPH, &field);
    }
    for field in <<A::Resource as LifecycleObject>::Spec as LifecycleSpec>::immutable() {
        rules.immutable(field);
    }
    if rules.validations.is_empty() {
        return Vec::new();
    }
    let name = format!(
        "{}-rules.{}",
        A::Resource::plural(&()),
        A::Resource::group(&())
    );
    // In other versions, fields have other names: their objects are converted first.
    let scope = PolicyScope {
        name: &name,
        resource: &A::Resource::plural(&()),
        version: &A::Resource::version(&()),
    };
    let mut objects = policy::<A>(&scope, &json!(rules.variables), &json!(rules.validations));
    // Where an object of another version cannot be converted, because no replica answers, its write is not refused.
    objects[0]["spec"]["failurePolicy"] = json!("Ignore");
    objects[0]["spec"]["matchConditions"] = json!([{
        "name": "its-spec-is-new",
        "expression": "oldObject != null && !has(object.metadata.deletionTimestamp) && object.?spec != oldObject.?spec",
    }]);
    objects
}

#[derive(Default)]
struct Rules {
    variables: Vec<Value>,
    validations: Vec<Value>,
}

impl Rules {
    fn of_graph(&mut self, graph: &Graph<'_>, field: &str) {
        let present = present_names(graph);
        let home = graph.home().map_or("", |home| graph.name_of(home));
        let part = |object: &str, path: &str, otherwise: &str| {
            format!("{object}.?spec.?{field}{path}.orValue('{otherwise}')")
        };
        let at = "oldObject.?status.?lifecycle.?state.orValue('')";
        self.note("at", &present(at));
        let wanted =
            |to: StateId, state: &State<'_>| !state.is_passing() && graph.may_be_desired(to);
        if let Some(without) = without_route(graph, wanted) {
            self.note("wanted", &present(&part("object", ".?state", home)));
            self.note(
                "wantedBefore",
                &present(&part("oldObject", ".?state", home)),
            );
            self.refuse_route(
                "variables.wanted == variables.wantedBefore",
                "wanted",
                &without,
            );
        }
        if !graph.states.iter().any(is_visited) {
            return;
        }
        self.note("visit", &present(&part("object", ".?visit.?state", "")));
        for (name, object) in [("visitAsked", "object"), ("visitAskedBefore", "oldObject")] {
            let asked = [".?visit.?state", ".?visit.?request"].map(|path| part(object, path, ""));
            self.note(name, &asked.join(" + ' ' + "));
        }
        let same = "variables.visit == '' || variables.visitAsked == variables.visitAskedBefore";
        if let Some(without) = without_route(graph, |_, state| is_visited(state)) {
            self.refuse_route(same, "visit", &without);
        }
        let outcome = "oldObject.?status.?lifecycle.?visit.?outcome.orValue('')";
        self.refuse(
            &format!("{same} || {outcome} != 'Pending'"),
            "'the visit to ' + oldObject.status.lifecycle.visit.state + ' is still to be made: take it back first'",
        );
    }

    fn immutable(&mut self, field: &str) {
        let [new, old] = ["object", "oldObject"].map(|it| format!("{it}.spec[?'{field}']"));
        // What was left out may be completed later.
        self.refuse(
            &format!("!{old}.hasValue() || {new} == {old}"),
            &format!("'spec.{field} stays as it is once it is set'"),
        );
    }

    fn note(&mut self, name: &str, expression: &str) {
        self.variables
            .push(json!({ "name": name, "expression": expression }));
    }

    /// Refuses to go from where an object rests to what a variable names, if no route leads there.
    fn refuse_route(&mut self, but: &str, to: &str, without: &str) {
        self.refuse(
            &format!("{but} || !(variables.{to} in {without}[?variables.at].orValue([]))"),
            &format!("'no route leads from ' + variables.at + ' to ' + variables.{to}"),
        );
    }

    fn refuse(&mut self, but: &str, why: &str) {
        self.validations
            .push(json!({ "expression": but, "messageExpression": why, "reason": "Invalid" }));
    }
}

/// Returns a map in CEL: the states to which no route leads, by the resting state from which none does. None if there is
/// no such pair.
fn without_route(
    graph: &Graph<'_>,
    counts: impl Fn(StateId, &State<'_>) -> bool,
) -> Option<String> {
    let rests = graph.iter().filter(|(_, state)| state.is(Mark::Rest));
    let rows = rests.filter_map(|(from, state)| {
        let to = graph.iter().filter(|(to, state)| {
            counts(*to, state) && *to != from && graph.hop(from, *to).is_none()
        });
        let to: Vec<_> = to.map(|(_, to)| format!("'{}'", to.name)).collect();
        (!to.is_empty()).then(|| format!("'{}': [{}]", state.name, to.join(", ")))
    });
    let rows: Vec<_> = rows.collect();
    (!rows.is_empty()).then(|| format!("{{{}}}", rows.join(", ")))
}
