//! Behaviors of CEL rules.

use serde_json::{Value, json};

use crate::behaviour::behaviours;
use crate::table::{cases, json_cases, parse};
use crate::world::World;

async fn a_rule_on_spec_is_422_with_its_message(world: &World) {
    let spec = json!({ "replicas": 1, "minReplicas": 3 });
    let refused = world.create("a", spec).await;
    let message = r#"Widget.demo.okt.dev "a" is invalid: spec: Invalid value: at least three"#;
    refused.refused(422, message);
}

async fn a_transition_rule_does_not_run_without_an_old_value(world: &World) {
    world.create("a", json!({ "fixed": "x" })).await.ok();
    let refused = world.set("a", json!({ "fixed": "y" })).await;
    let message = r#"…spec.fixed: Invalid value: "y": fixed is immutable"#;
    refused.refused(422, message);
}

fn lifecycle(state: &str, jumps: i32) -> Value {
    json!({ "lifecycle": { "state": state, "jumps": jumps } })
}

async fn the_first_state_is_the_entry_or_a_jump(world: &World) {
    world.create("a", json!({})).await.ok();
    let refused = world.apply_status("m", "a", lifecycle("Running", 0)).await;
    let message = r#"Widget.demo.okt.dev "a" is invalid: status.lifecycle: Forbidden: the first state is the entry"#;
    let status = refused.refused(422, message);
    let reason = &status["details"]["causes"][0]["reason"];
    assert_eq!(*reason, "FieldValueForbidden");
    world
        .apply_status("m", "a", lifecycle("Running", 1))
        .await
        .ok();
    world.create("b", json!({})).await.ok();
    world
        .apply_status("m", "b", lifecycle("Start", 0))
        .await
        .ok();
}

async fn a_change_of_state_follows_an_edge_or_jumps(world: &World) {
    world.create("a", json!({})).await.ok();
    for (state, jumps, refusal) in [
        ("Start", 0, None),
        (
            "End",
            0,
            Some("…status.lifecycle: Forbidden: no edge from Start to End"),
        ),
        ("Running", 0, None),
        ("Running", 0, None),
        ("End", 0, None),
        // A leaf has no edge out.
        ("Start", 0, Some("…")),
        ("Start", 1, None),
    ] {
        let reply = world.apply_status("m", "a", lifecycle(state, jumps)).await;
        match refusal {
            Some(message) => drop(reply.refused(422, message)),
            None => drop(reply.ok()),
        }
    }
}

async fn a_recorded_lifecycle_is_kept(world: &World) {
    world.create("a", json!({})).await.ok();
    world
        .apply_status("m", "a", lifecycle("Start", 0))
        .await
        .ok();
    let refused = world.set_status("a", json!({ "lifecycle": null })).await;
    refused.refused(422, "…status: Invalid value: lifecycle is kept");
}

async fn rules_wait_until_the_schema_holds(world: &World) {
    let spec = json!({ "replicas": "x", "minReplicas": 3 });
    let refused = world.create("a", spec).await;
    let status = refused.refused(422, "…some validation rules were not checked…");
    let message = status["message"].as_str().expect("a text");
    assert!(!message.contains("at least three"), "{message}");
}

/// Returns a world with a CRD that has these rules at a place in its schema.
fn with_rules(world: &World, place: &str, rules: Value) -> (World, Value) {
    let world = world.own_group();
    let mut crd = world.crd();
    let path = format!("/spec/versions/0/schema/openAPIV3Schema/properties/spec{place}");
    crd.pointer_mut(&path).expect("it is there")["x-kubernetes-validations"] = rules;
    (world, crd)
}

/// Rules, and the messages that refuse a CRD with them on its spec.
const NOT_COMPILED: &str = r#"
{"rule":"self.replicas >"} → compilation failed
{"rule":"self.nothing > 1"} → undefined field 'nothing'
{"rule":"other.replicas > 1"} → undeclared reference to 'other'
{"rule":"self.name.shout() == ''"} → undeclared reference to 'shout'
{"rule":"true","messageExpression":"self.nothing"} → x-kubernetes-validations[0].messageExpression
{"rule":"true","reason":"Because"} → Unsupported value: "Because"
{"rule":"self.plain.all(x, x.size() > 1) && self.labels.all(k, k.nothing)","optionalOldSelf":true} → optionalOldSelf
"#;

async fn a_rule_that_does_not_compile_refuses_the_crd(world: &World) {
    for (rule, message) in json_cases(NOT_COMPILED) {
        let (world, crd) = with_rules(world, "", json!([rule]));
        let refused = world.create_crd(&crd).await;
        refused.refused(422, &format!("…{message}…"));
    }
    // An old value needs a list that knows its items.
    let changed = json!([{ "rule": "self == oldSelf" }]);
    let (world, crd) = with_rules(world, "/properties/plain/items", changed);
    world
        .create_crd(&crd)
        .await
        .refused(422, "…uncorrelatable…");
}

/// Rules, and fields that do not keep them.
const BROKEN: &str = r#"
self.?snake_case.orValue('x') == 'x' → {"snake_case":"y"}
self.?dash__dash__ed.orValue('x') == 'x' → {"dash-ed":"y"}
self.?__namespace__.orValue('x') == 'x' → {"namespace":"y"}
self.started > timestamp('2020-01-01T00:00:00Z') → {"started":"2019-01-01T00:00:00Z"}
self.plain.all(x, x.startsWith('a')) → {"plain":["a","b"]}
isURL(self.maybe) → {"maybe":"okt"}
self.?color.orValue('red') == 'red' → {"color":"blue"}
"#;

async fn rules_know_escaped_names_times_lists_and_library_functions(world: &World) {
    let rules: Vec<_> = cases(BROKEN)
        .map(|(rule, _)| json!({ "rule": rule }))
        .collect();
    let (world, mut crd) = with_rules(world, "", rules.into());
    let schema = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let fields = &mut schema["properties"]["spec"]["properties"];
    for name in ["snake_case", "dash-ed", "namespace"] {
        fields[name] = json!({ "type": "string" });
    }
    world.create_kind(&crd).await;
    let good = json!({
        "snake_case": "x",
        "dash-ed": "x",
        "namespace": "x",
        "started": "2026-01-01T00:00:00Z",
        "plain": ["a", "ab"],
        "maybe": "https://okt.dev",
    });
    world.create("good", good.clone()).await.ok();
    for (rule, bad) in cases(BROKEN) {
        let mut spec = good.clone();
        for (name, value) in parse(bad).as_object().expect("fields") {
            spec[name] = value.clone();
        }
        let refused = world.create("bad", spec).await;
        let message = format!("…is invalid: spec: Invalid value: failed rule: {rule}");
        refused.refused(422, &message);
    }
}

behaviours! { "rules":
    a_rule_on_spec_is_422_with_its_message,
    a_transition_rule_does_not_run_without_an_old_value,
    the_first_state_is_the_entry_or_a_jump,
    a_change_of_state_follows_an_edge_or_jumps,
    a_recorded_lifecycle_is_kept,
    rules_wait_until_the_schema_holds,
    a_rule_that_does_not_compile_refuses_the_crd,
    rules_know_escaped_names_times_lists_and_library_functions,
}
