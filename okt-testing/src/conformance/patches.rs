//! Behaviours of JSON, merge and strategic merge patches.

use kube::api::{Patch, PatchParams};
use serde_json::json;

use super::{
    claim::{Failure, Outcome, refusal},
    reply::RawReply,
    world::{World, version},
};

const JSON_PATCH: &str = "application/json-patch+json";
const MERGE_PATCH: &str = "application/merge-patch+json";

async fn a_json_patch_whose_test_fails_is_422(world: &World) -> Outcome {
    world.create("a", json!({ "color": "red" })).await?;
    let patch = json!([
        { "op": "test", "path": "/spec/color", "value": "blue" },
        { "op": "replace", "path": "/spec/color", "value": "green" },
    ]);
    let status = refusal(world.json_patch("a", patch).await)?;
    ensure_eq!((status.code, status.reason.as_str()), (422, "Invalid"));
    ensure_eq!(world.get("a").await?.data["spec"]["color"], "red");
    Ok(())
}

async fn a_json_patch_whose_test_holds_is_done(world: &World) -> Outcome {
    world.create("a", json!({ "color": "red" })).await?;
    let patch = json!([
        { "op": "test", "path": "/spec/color", "value": "red" },
        { "op": "replace", "path": "/spec/color", "value": "green" },
    ]);
    let patched = world.json_patch("a", patch).await?;
    ensure_eq!(patched.data["spec"]["color"], "green");
    Ok(())
}

async fn a_merge_patch_with_an_old_version_is_409(world: &World) -> Outcome {
    let old = world.create("a", json!({})).await?;
    world
        .merge("a", json!({ "spec": { "color": "red" } }))
        .await?;
    let patch =
        json!({ "metadata": { "resourceVersion": version(&old)? }, "spec": { "color": "blue" } });
    ensure_eq!(refusal(world.merge("a", patch).await)?.code, 409);
    Ok(())
}

async fn a_strategic_merge_patch_of_a_custom_resource_is_415(world: &World) -> Outcome {
    world.create("a", json!({})).await?;
    let patch = Patch::Strategic(json!({ "spec": { "color": "red" } }));
    let outcome = world
        .widgets()
        .patch("a", &PatchParams::default(), &patch)
        .await;
    let status = refusal(outcome)?;
    ensure_eq!(
        (status.code, status.reason.as_str()),
        (415, "UnsupportedMediaType")
    );
    Ok(())
}

async fn a_merge_patch_replaces_lists_and_drops_what_is_null(world: &World) -> Outcome {
    world
        .create(
            "a",
            json!({ "tags": ["x", "y"], "labels": { "a": "1", "b": "2" } }),
        )
        .await?;
    let patch = json!({ "spec": { "tags": ["z"], "labels": { "a": null, "c": "3" } } });
    let patched = world.merge("a", patch).await?;
    ensure_eq!(patched.data["spec"]["tags"], json!(["z"]));
    ensure_eq!(
        patched.data["spec"]["labels"],
        json!({ "b": "2", "c": "3" })
    );
    Ok(())
}

async fn a_json_patch_that_cannot_be_done_is_422(world: &World) -> Outcome {
    world.create("a", json!({})).await?;
    for body in [
        json!([{ "op": "remove", "path": "/spec/nothing" }]),
        json!([{ "op": "replace", "path": "/spec/nothing/inner", "value": 1 }]),
        json!([{ "op": "add", "path": "/spec/nothing/inner", "value": 1 }]),
    ] {
        let reply = patch(world, JSON_PATCH, body.to_string()).await?;
        ensure_eq!(reply.code, 422, "{body}");
    }
    Ok(())
}

async fn a_json_patch_with_a_step_that_is_none_is_422(world: &World) -> Outcome {
    world.create("a", json!({ "color": "red" })).await?;
    for body in [
        json!([{ "op": "paint", "path": "/spec/color" }]),
        json!([{ "path": "/spec/color", "value": "blue" }]),
        json!([{ "op": "move", "path": "/spec/color" }]),
        json!([{ "op": "copy", "from": "spec", "path": "/spec/free" }]),
        json!([{ "op": "copy", "from": "", "path": "/spec/free" }]),
        json!([{ "op": "add", "path": "spec", "value": {} }]),
        json!([{ "op": "add", "path": "", "value": {} }]),
        json!([{ "op": "add", "value": 1 }]),
        json!([{ "op": "remove", "path": "" }]),
        json!([{ "op": "replace", "path": "", "value": 1 }]),
        json!([{ "op": "test", "path": "/spec/color" }]),
        json!([null]),
        // All or nothing.
        json!([{ "op": "remove", "path": "/spec/color" }, {}]),
    ] {
        let reply = patch(world, JSON_PATCH, body.to_string()).await?;
        ensure_eq!(reply.code, 422, "{body}");
        let message = "the server rejected our request due to an error in our request";
        ensure_eq!(reply.message()?, message, "{body}");
    }
    ensure_eq!(world.get("a").await?.data["spec"]["color"], "red");
    Ok(())
}

async fn a_json_patch_that_is_no_list_of_steps_is_400(world: &World) -> Outcome {
    world.create("a", json!({})).await?;
    let many = vec![json!({ "op": "test", "path": "/spec/color", "value": null }); 10_001];
    for (body, code, problem) in [
        (
            json!({}),
            400,
            "object into Go value of type []handlers.jsonPatchOp",
        ),
        (
            json!("a"),
            400,
            "string into Go value of type []handlers.jsonPatchOp",
        ),
        (
            json!([1]),
            400,
            "number into Go value of type handlers.jsonPatchOp",
        ),
        (
            json!([[]]),
            400,
            "array into Go value of type handlers.jsonPatchOp",
        ),
        (
            json!([{ "op": 1 }]),
            400,
            "number into Go struct field jsonPatchOp.op of type string",
        ),
        (
            json!([{ "path": true }]),
            400,
            "bool into Go struct field jsonPatchOp.path of type string",
        ),
        (
            json!([{ "from": {} }]),
            400,
            "object into Go struct field jsonPatchOp.from of type string",
        ),
        (
            json!(many),
            413,
            "maximum operations in a JSON patch is 10000, got 10001",
        ),
    ] {
        let reply = patch(world, JSON_PATCH, body.to_string()).await?;
        ensure_eq!(reply.code, code, "{problem}");
        let message = reply.message()?;
        ensure!(message.ends_with(problem), "{problem}: {message}");
        let unread = message.starts_with("error decoding patch: json: cannot unmarshal ");
        ensure_eq!(unread, code == 400, "{problem}: {message}");
    }
    Ok(())
}

async fn a_json_patch_may_say_less_than_it_should(world: &World) -> Outcome {
    world.create("a", json!({})).await?;
    for body in [json!(null), json!([])] {
        let reply = patch(world, JSON_PATCH, body.to_string()).await?;
        ensure_eq!(reply.code, 200, "{body}");
    }
    let body = json!([
        { "op": "add", "path": "/metadata/annotations" },
        { "op": "test", "path": "/metadata/annotations" },
        { "op": "add", "path": "of/spec/color", "value": "red" },
        { "op": "add", "path": "/spec/labels", "value": {} },
        { "op": "add", "path": "/spec/labels/a~2b~", "value": "c" },
    ]);
    let reply = patch(world, JSON_PATCH, body.to_string()).await?;
    ensure_eq!(reply.code, 200);
    let spec = &reply.json()?["spec"];
    ensure_eq!(spec["color"], "red");
    ensure_eq!(spec["labels"], json!({ "a~2b~": "c" }));
    Ok(())
}

async fn a_strategic_merge_patch_that_is_no_object_is_400(world: &World) -> Outcome {
    let path = format!("/api/v1/namespaces/{}/configmaps", world.namespace);
    let json = [("content-type", "application/json")];
    let map = r#"{"metadata":{"name":"a"},"data":{"k":"v"}}"#;
    world.send("POST", &path, &json, map).await?;
    let path = format!("{path}/a");
    let strategic = [("content-type", "application/strategic-merge-patch+json")];
    for (body, found) in [("[]", "array"), ("1", "number"), ("\"a\"", "string")] {
        let reply = world.send("PATCH", &path, &strategic, body).await?;
        ensure_eq!(reply.code, 400, "{body}");
        let expected = format!(
            "json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"
        );
        ensure_eq!(reply.message()?, expected);
    }
    let reply = world.send("PATCH", &path, &strategic, "null").await?;
    ensure_eq!(reply.code, 200);
    ensure_eq!(reply.json()?["data"], json!({ "k": "v" }));
    Ok(())
}

async fn to_replace_what_is_not_there_is_to_add_it(world: &World) -> Outcome {
    world.create("a", json!({})).await?;
    let body = json!([{ "op": "replace", "path": "/spec/color", "value": "red" }]);
    let reply = patch(world, JSON_PATCH, body.to_string()).await?;
    ensure_eq!(reply.json()?["spec"]["color"], "red");
    Ok(())
}

async fn a_malformed_patch_is_400(world: &World) -> Outcome {
    world.create("a", json!({})).await?;
    for (media, body) in [
        (MERGE_PATCH, "{"),
        (MERGE_PATCH, "[]"),
        (MERGE_PATCH, "\"a\""),
        (JSON_PATCH, "["),
        (JSON_PATCH, "{}"),
        ("application/apply-patch+yaml", "a: [b"),
    ] {
        let reply = patch(world, media, body).await?;
        ensure_eq!(reply.code, 400, "{media} {body}");
        ensure_eq!(reply.json()?["reason"], "BadRequest", "{media} {body}");
    }
    Ok(())
}

async fn a_patch_of_an_unknown_media_type_is_415(world: &World) -> Outcome {
    world.create("a", json!({})).await?;
    for media in ["application/json", "text/plain", "application/patch"] {
        let reply = patch(world, media, "{}").await?;
        ensure_eq!(reply.code, 415, "{media}");
        ensure_eq!(reply.json()?["reason"], "UnsupportedMediaType", "{media}");
        ensure_eq!(
            reply.message()?,
            "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
            "{media}"
        );
    }
    Ok(())
}

/// Patches the widget `a`.
async fn patch(world: &World, media: &str, body: impl Into<Vec<u8>>) -> Result<RawReply, Failure> {
    let path = format!("{}/a?fieldManager=m", world.path());
    let headers = [("content-type", media)];
    world.send("PATCH", &path, &headers, body).await
}

behaviours! { "patches":
    16 a_json_patch_whose_test_fails_is_422,
    17 a_json_patch_whose_test_holds_is_done,
    further a_merge_patch_with_an_old_version_is_409,
    further a_strategic_merge_patch_of_a_custom_resource_is_415,
    further a_merge_patch_replaces_lists_and_drops_what_is_null,
    further a_json_patch_that_cannot_be_done_is_422,
    further a_json_patch_with_a_step_that_is_none_is_422,
    further a_json_patch_that_is_no_list_of_steps_is_400,
    further a_json_patch_may_say_less_than_it_should,
    further a_strategic_merge_patch_that_is_no_object_is_400,
    further to_replace_what_is_not_there_is_to_add_it,
    further a_malformed_patch_is_400,
    further a_patch_of_an_unknown_media_type_is_415,
}
