//! Behaviors of CRD schemas.

use serde_json::{Value, json};

use crate::behaviour::behaviours;
use crate::table::json_cases;
use crate::world::{World, eventually};

/// What the server adds to a cause of the schema: rules on other fields were not checked.
const UNCHECKED: &str = ", <nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation]";

async fn an_unknown_field_is_pruned_unless_the_schema_keeps_it(world: &World) {
    let free = json!({ "any": [1, { "thing": true }] });
    let template = json!({ "apiVersion": "v1", "kind": "X", "metadata": { "name": "t" }, "y": 1 });
    let spec = json!({
        "bogus": 1,
        "either": { "a": "x", "c": "y" },
        "free": free,
        "template": template,
    });
    let made = world.create("a", spec).await.ok();
    let kept = json!({
        "either": { "a": "x" },
        "free": free,
        "replicas": 1,
        "template": template,
    });
    assert_eq!(made["spec"], kept);
}

async fn defaults_are_filled_in(world: &World) {
    let made = world.create("a", json!({})).await.ok();
    assert_eq!(made["spec"]["replicas"], 1);
    let patched = world.set("a", json!({ "replicas": null })).await.ok();
    assert_eq!(patched["spec"]["replicas"], 1);
}

async fn nulls_are_dropped_but_where_they_are_allowed(world: &World) {
    let spec = json!({ "color": null, "maybe": null });
    let made = world.create("a", spec).await.ok();
    assert_eq!(made["spec"].get("color"), None);
    assert_eq!(made["spec"].get("maybe"), Some(&Value::Null));
}

/// Specs, and the causes that refuse them.
const REFUSED: &str = r#"
{"color":"pink"} → spec.color: Unsupported value: "pink": supported values: "red", "green", "blue"
{"replicas":11} → spec.replicas: Invalid value: 11: spec.replicas in body should be less than or equal to 10
{"minReplicas":-1,"replicas":-1} → spec.replicas: Invalid value: -1: spec.replicas in body should be greater than or equal to 0, .spec.replicas: Invalid value: -1: should be a non-negative integer…
{"replicas":1.5} → …
{"name":"ABC"} → spec.name: Invalid value: "ABC": spec.name in body should match '^[a-z]+$'
Of several errors of a text only the first is reported.
{"name":"ABCDEF"} → spec.name: Too long: may not be more than 5 bytes
{"name":"A"} → spec.name: Invalid value: "A": spec.name in body should be at least 2 chars long
{"started":"noon"} → spec.started: Invalid value: "noon": spec.started in body must be of type date-time: "noon"
{"started":{"at":"noon"}} → spec.started: Invalid value: "": spec.started in body must be of type date-time: ""
{"port":true} → …
{"tags":["a","b","c","d"]} → spec.tags: Too many: 4…
{"tags":["a","a"]} → spec.tags[1]: Duplicate value: "a"
{"either":{}} → …Found none valid…
{"either":{"a":"x","b":"y"}} → …must validate one and only one schema (oneOf)…
Several faults are listed together, in any order.
{"color":"pink","replicas":11} → […spec.color: …]
{"color":"pink","replicas":11} → […spec.replicas: …]
"#;

async fn a_value_that_breaks_the_schema_is_refused_with_its_cause(world: &World) {
    for (spec, cause) in json_cases(REFUSED) {
        let refused = world.create("a", spec).await;
        let message = format!("Widget.demo.okt.dev \"a\" is invalid: …{cause}…");
        let status = refused.refused(422, &message);
        let message = status["message"].as_str().expect("a text");
        let message = message.strip_suffix(UNCHECKED).unwrap_or(message);
        assert!(cause.contains('…') || message.ends_with(cause), "{message}");
    }
}

async fn a_value_that_fits_the_schema_is_accepted(world: &World) {
    for (name, spec) in [
        ("time", json!({ "started": "2026-11-21T09:00:00Z" })),
        ("number", json!({ "port": 80 })),
        ("text", json!({ "port": "http" })),
        ("either", json!({ "either": { "a": "x" } })),
        // A list passes for a text with a format.
        ("list", json!({ "started": ["noon"] })),
    ] {
        let mut expected = spec.clone();
        expected["replicas"] = 1.into();
        world.create(name, spec).await.ok();
        assert_eq!(world.read(name).await["spec"], expected, "{name}");
    }
}

async fn a_list_keyed_by_type_has_each_type_once(world: &World) {
    world.create("a", json!({})).await.ok();
    let ready = json!({ "type": "Ready", "status": "True" });
    let twice = world
        .set_status("a", json!({ "conditions": [ready, ready] }))
        .await;
    let cause = r#"…status.conditions[1]: Duplicate value: {"type":"Ready"}…"#;
    twice.refused(422, cause);
}

async fn a_required_field_is_missed(world: &World) {
    let mut object = world.widget("a", json!({}));
    object.as_object_mut().expect("an object").remove("spec");
    let refused = world.post(&world.path(), &object).await;
    let status = refused.refused(422, "…spec: Required value…");
    let reason = &status["details"]["causes"][0]["reason"];
    assert_eq!(*reason, "FieldValueRequired");
}

async fn a_changed_schema_shows_in_what_is_stored(world: &World) {
    let world = &world.own_kind().await;
    let spec = json!({ "color": "red", "name": "abc" });
    world.create("a", spec).await.ok();
    let mut crd = world.crd();
    let schema = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let fields = &mut schema["properties"]["spec"]["properties"];
    fields.as_object_mut().expect("fields").remove("name");
    fields["size"] = json!({ "type": "string", "default": "small" });
    fields["color"]["enum"] = json!(["blue"]);
    world.apply_crd(&crd).await.ok();
    let shown = json!({ "color": "red", "replicas": 1, "size": "small" });
    eventually("the new schema is in use", async || {
        (world.read("a").await["spec"] == shown).then_some(())
    })
    .await;
    // Ratcheting: an invalid value that does not change is accepted.
    world.set("a", json!({ "replicas": 2 })).await.ok();
    world
        .set("a", json!({ "color": "green" }))
        .await
        .refused(422, "…");
}

behaviours! { "schema":
    an_unknown_field_is_pruned_unless_the_schema_keeps_it,
    defaults_are_filled_in,
    nulls_are_dropped_but_where_they_are_allowed,
    a_value_that_breaks_the_schema_is_refused_with_its_cause,
    a_value_that_fits_the_schema_is_accepted,
    a_list_keyed_by_type_has_each_type_once,
    a_required_field_is_missed,
    a_changed_schema_shows_in_what_is_stored,
}
