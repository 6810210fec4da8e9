//! Behaviors of JSON, merge and strategic merge patches.

use serde_json::json;

use crate::behaviour::behaviours;
use crate::table::{json_cases, parse};
use crate::world::{APPLY, JSON_PATCH, MERGE, STRATEGIC, World, version};

async fn a_json_patch_is_done_only_if_its_test_holds(world: &World) {
    world.create("a", json!({ "color": "red" })).await.ok();
    let patch = |color: &str| {
        json!([
            { "op": "test", "path": "/spec/color", "value": color },
            { "op": "replace", "path": "/spec/color", "value": "green" },
        ])
    };
    let refused = world.json_patch("a", patch("blue")).await;
    refused.refused(422, "…");
    assert_eq!(world.read("a").await["spec"]["color"], "red");
    let patched = world.json_patch("a", patch("red")).await.ok();
    assert_eq!(patched["spec"]["color"], "green");
}

async fn a_merge_patch_with_an_old_version_is_409(world: &World) {
    let old = world.create("a", json!({})).await.ok();
    world.set("a", json!({ "color": "red" })).await.ok();
    let version = version(&old).to_string();
    let patch = json!({ "metadata": { "resourceVersion": version }, "spec": { "color": "blue" } });
    world.merge("a", patch).await.refused(409, "…");
}

async fn a_merge_patch_replaces_lists_and_drops_what_is_null(world: &World) {
    let spec = json!({ "tags": ["x", "y"], "labels": { "a": "1", "b": "2" } });
    world.create("a", spec).await.ok();
    let patch = json!({ "tags": ["z"], "labels": { "a": null, "c": "3" } });
    let patched = world.set("a", patch).await.ok();
    assert_eq!(patched["spec"]["tags"], json!(["z"]));
    let labels = json!({ "b": "2", "c": "3" });
    assert_eq!(patched["spec"]["labels"], labels);
}

/// Steps that cannot be done, or are none.
const NO_STEPS: &str = r#"
{ "op": "remove", "path": "/spec/nothing" }
{ "op": "replace", "path": "/spec/nothing/inner", "value": 1 }
{ "op": "add", "path": "/spec/nothing/inner", "value": 1 }
{ "op": "paint", "path": "/spec/color" }
{ "path": "/spec/color", "value": "blue" }
{ "op": "move", "path": "/spec/color" }
{ "op": "copy", "from": "spec", "path": "/spec/free" }
{ "op": "copy", "from": "", "path": "/spec/free" }
{ "op": "add", "path": "spec", "value": {} }
{ "op": "add", "path": "", "value": {} }
{ "op": "add", "value": 1 }
{ "op": "remove", "path": "" }
{ "op": "replace", "path": "", "value": 1 }
{ "op": "test", "path": "/spec/color" }
{ "op": "remove", "path": "/spec/color" }, {}
null
"#;

async fn a_json_patch_with_a_step_that_is_none_is_422(world: &World) {
    world.create("a", json!({ "color": "red" })).await.ok();
    for steps in NO_STEPS.trim().lines() {
        let steps = parse(&format!("[{steps}]"));
        let message = "the server rejected our request due to an error in our request";
        world.json_patch("a", steps).await.refused(422, message);
    }
    // All or nothing.
    assert_eq!(world.read("a").await["spec"]["color"], "red");
}

/// Bodies that are no lists of steps, and the ends of the messages that refuse them.
const NO_LISTS: &str = r#"
{} → object into Go value of type []handlers.jsonPatchOp
"a" → string into Go value of type []handlers.jsonPatchOp
[1] → number into Go value of type handlers.jsonPatchOp
[[]] → array into Go value of type handlers.jsonPatchOp
[{"op":1}] → number into Go struct field jsonPatchOp.op of type string
[{"path":true}] → bool into Go struct field jsonPatchOp.path of type string
[{"from":{}}] → object into Go struct field jsonPatchOp.from of type string
"#;

async fn a_json_patch_that_is_no_list_of_steps_is_400(world: &World) {
    world.create("a", json!({})).await.ok();
    for (body, problem) in json_cases(NO_LISTS) {
        let message = format!("error decoding patch: json: cannot unmarshal …{problem}");
        world.json_patch("a", body).await.refused(400, &message);
    }
    let step = json!({ "op": "test", "path": "/spec/color", "value": null });
    let many = world.json_patch("a", vec![step; 10_001].into()).await;
    many.refused(
        413,
        "…maximum operations in a JSON patch is 10000, got 10001",
    );
}

async fn a_json_patch_may_leave_out_what_it_should_have(world: &World) {
    world.create("a", json!({})).await.ok();
    for steps in [json!(null), json!([])] {
        world.json_patch("a", steps).await.ok();
    }
    let steps = json!([
        { "op": "add", "path": "/metadata/annotations" },
        { "op": "test", "path": "/metadata/annotations" },
        { "op": "add", "path": "of/spec/color", "value": "red" },
        { "op": "add", "path": "/spec/labels", "value": {} },
        { "op": "add", "path": "/spec/labels/a~2b~", "value": "c" },
    ]);
    let patched = world.json_patch("a", steps).await.ok();
    assert_eq!(patched["spec"]["color"], "red");
    assert_eq!(patched["spec"]["labels"], json!({ "a~2b~": "c" }));
}

async fn to_replace_what_is_not_there_is_to_add_it(world: &World) {
    world.create("a", json!({})).await.ok();
    let steps = json!([{ "op": "replace", "path": "/spec/color", "value": "red" }]);
    let patched = world.json_patch("a", steps).await.ok();
    assert_eq!(patched["spec"]["color"], "red");
}

async fn a_strategic_merge_patch_that_is_no_object_is_400(world: &World) {
    let path = world.path_of("v1", "configmaps");
    let map = json!({ "metadata": { "name": "a" }, "data": { "k": "v" } });
    world.post(&path, &map).await.ok();
    let path = format!("{path}/a");
    for (body, found) in [("[]", "array"), ("1", "number"), ("\"a\"", "string")] {
        let message = format!(
            "json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"
        );
        let reply = world.patch(&path, STRATEGIC, body).await;
        reply.refused(400, &message);
    }
    let same = world.patch(&path, STRATEGIC, "null").await.ok();
    assert_eq!(same["data"], json!({ "k": "v" }));
}

async fn a_malformed_patch_is_400(world: &World) {
    world.create("a", json!({})).await.ok();
    let path = format!("{}?fieldManager=m", world.at("a"));
    for (media, body) in [
        (MERGE, "{"),
        (MERGE, "[]"),
        (MERGE, "\"a\""),
        (JSON_PATCH, "["),
        (APPLY, "a: [b"),
    ] {
        world.patch(&path, media, body).await.refused(400, "…");
    }
}

async fn a_patch_of_an_unknown_media_type_is_415(world: &World) {
    world.create("a", json!({})).await.ok();
    for media in [
        "application/json",
        "text/plain",
        "application/patch",
        STRATEGIC,
    ] {
        let message = "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml";
        let reply = world.patch(&world.at("a"), media, "{}").await;
        reply.refused(415, message);
    }
}

behaviours! { "patches":
    a_json_patch_is_done_only_if_its_test_holds,
    a_merge_patch_with_an_old_version_is_409,
    a_merge_patch_replaces_lists_and_drops_what_is_null,
    a_json_patch_with_a_step_that_is_none_is_422,
    a_json_patch_that_is_no_list_of_steps_is_400,
    a_json_patch_may_leave_out_what_it_should_have,
    to_replace_what_is_not_there_is_to_add_it,
    a_strategic_merge_patch_that_is_no_object_is_400,
    a_malformed_patch_is_400,
    a_patch_of_an_unknown_media_type_is_415,
}
