//! This file says what the API makes of bodies that are not what they should be.

use serde_json::json;

use super::{
    claim::Outcome,
    world::{Reply, World},
};

const JSON: &str = "application/json";
const JSON_PATCH: &str = "application/json-patch+json";
const MERGE_PATCH: &str = "application/merge-patch+json";

async fn post(world: &World, body: impl Into<Vec<u8>>) -> Result<Reply, super::Failure> {
    let headers = [("content-type", JSON)];
    world.send("POST", &world.path(), &headers, body).await
}

/// Patches a widget that is there.
async fn patch(
    world: &World,
    media: &str,
    body: impl Into<Vec<u8>>,
) -> Result<Reply, super::Failure> {
    let path = format!("{}/a?fieldManager=m", world.path());
    let headers = [("content-type", media)];
    world.send("PATCH", &path, &headers, body).await
}

async fn a_body_that_is_too_large_is_413(world: &World) -> Outcome {
    let reply = post(world, vec![b' '; 4 * 1024 * 1024]).await?;
    ensure_eq!(reply.code, 413);
    ensure_eq!(reply.json()?["reason"], "RequestEntityTooLarge");
    Ok(())
}

async fn a_body_that_is_no_json_is_400(world: &World) -> Outcome {
    let reply = post(world, "{").await?;
    ensure_eq!(reply.code, 400);
    ensure_eq!(reply.json()?["reason"], "BadRequest");
    Ok(())
}

async fn a_body_of_another_kind_is_400(world: &World) -> Outcome {
    let object = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" } });
    let reply = post(world, object.to_string()).await?;
    ensure_eq!(reply.code, 400);
    let message = reply.message()?;
    ensure!(message.contains("does not match the expected"), "{message}");
    Ok(())
}

async fn a_body_of_another_namespace_is_400(world: &World) -> Outcome {
    let object = json!({
        "apiVersion": world.api_version(),
        "kind": "Widget",
        "metadata": { "name": "a", "namespace": "default" },
        "spec": {},
    });
    let reply = post(world, object.to_string()).await?;
    ensure_eq!(reply.code, 400);
    ensure_eq!(
        reply.message()?,
        "the namespace of the provided object does not match the namespace sent on the request"
    );
    Ok(())
}

async fn a_put_under_another_name_is_400(world: &World) -> Outcome {
    let mut object = world.create("a", json!({})).await?;
    object.metadata.name = Some("b".to_owned());
    let body = serde_json::to_vec(&object)?;
    let path = format!("{}/a", world.path());
    let headers = [("content-type", JSON)];
    let reply = world.send("PUT", &path, &headers, body).await?;
    ensure_eq!(reply.code, 400);
    ensure_eq!(
        reply.message()?,
        "the name of the object (b) does not match the name on the URL (a)"
    );
    Ok(())
}

async fn an_object_without_a_name_is_422(world: &World) -> Outcome {
    let object = json!({ "apiVersion": world.api_version(), "kind": "Widget", "spec": {} });
    let reply = post(world, object.to_string()).await?;
    ensure_eq!(reply.code, 422);
    let message = reply.message()?;
    ensure!(
        message.contains("name or generateName is required"),
        "{message}"
    );
    Ok(())
}

async fn a_patch_of_an_unknown_media_type_is_415(world: &World) -> Outcome {
    world.create("a", json!({})).await?;
    for media in [JSON, "text/plain", "application/patch"] {
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

async fn to_replace_what_is_not_there_is_to_add_it(world: &World) -> Outcome {
    world.create("a", json!({})).await?;
    let body = json!([{ "op": "replace", "path": "/spec/color", "value": "red" }]);
    let reply = patch(world, JSON_PATCH, body.to_string()).await?;
    ensure_eq!(reply.json()?["spec"]["color"], "red");
    Ok(())
}

async fn a_body_may_be_yaml(world: &World) -> Outcome {
    let version = world.api_version();
    let body = format!("apiVersion: {version}\nkind: Widget\nmetadata:\n  name: a\nspec: {{}}\n");
    let headers = [("content-type", "application/yaml")];
    let reply = world.send("POST", &world.path(), &headers, body).await?;
    ensure_eq!(reply.code, 201);
    Ok(())
}

/// Posts a widget with a field that nobody declared.
async fn post_unknown(world: &World, validation: &str) -> Result<Reply, super::Failure> {
    let path = format!("{}?fieldValidation={validation}", world.path());
    let object = json!({
        "apiVersion": world.api_version(),
        "kind": "Widget",
        "metadata": { "name": validation.to_lowercase() },
        "spec": { "bogus": 1 },
    });
    let headers = [("content-type", JSON)];
    world
        .send("POST", &path, &headers, object.to_string())
        .await
}

async fn strict_validation_refuses_unknown_fields(world: &World) -> Outcome {
    let reply = post_unknown(world, "Strict").await?;
    ensure_eq!(reply.code, 400);
    let message = reply.message()?;
    ensure!(
        message.ends_with("strict decoding error: unknown field \"spec.bogus\""),
        "{message}"
    );
    Ok(())
}

async fn unknown_fields_are_warned_of_unless_that_is_not_wanted(world: &World) -> Outcome {
    let warned = post_unknown(world, "Warn").await?;
    ensure_eq!(warned.code, 201);
    ensure_eq!(
        warned.header("warning"),
        "299 - \"unknown field \\\"spec.bogus\\\"\""
    );
    let ignored = post_unknown(world, "Ignore").await?;
    ensure_eq!((ignored.code, ignored.header("warning")), (201, ""));
    let reply = post_unknown(world, "Other").await?;
    ensure_eq!(reply.code, 422);
    Ok(())
}

async fn a_field_twice_is_refused_by_strict_validation(world: &World) -> Outcome {
    let path = format!("{}?fieldValidation=Strict", world.path());
    let version = world.api_version();
    let body = format!(
        r#"{{"apiVersion":"{version}","kind":"Widget","metadata":{{"name":"a"}},"spec":{{"color":"red","color":"blue"}}}}"#
    );
    let headers = [("content-type", JSON)];
    let reply = world.send("POST", &path, &headers, body).await?;
    ensure_eq!(reply.code, 400);
    let message = reply.message()?;
    ensure!(
        message.contains("duplicate field \"spec.color\""),
        "{message}"
    );
    Ok(())
}

async fn annotations_of_more_than_256_kib_are_422(world: &World) -> Outcome {
    let mut object = world.widget("a", json!({}));
    let annotations = object.metadata.annotations.get_or_insert_default();
    annotations.insert("okt.dev/large".to_owned(), "x".repeat(256 * 1024));
    let reply = post(world, serde_json::to_vec(&object)?).await?;
    ensure_eq!(reply.code, 422);
    let message = reply.message()?;
    ensure!(
        message.contains("metadata.annotations: Too long: may not be more than 262144 bytes"),
        "{message}"
    );
    Ok(())
}

behaviours! { "bodies":
    further a_body_that_is_too_large_is_413,
    further a_body_that_is_no_json_is_400,
    further a_body_of_another_kind_is_400,
    further a_body_of_another_namespace_is_400,
    further a_body_may_be_yaml,
    further a_put_under_another_name_is_400,
    further an_object_without_a_name_is_422,
    further a_patch_of_an_unknown_media_type_is_415,
    further a_malformed_patch_is_400,
    further a_json_patch_that_cannot_be_done_is_422,
    further to_replace_what_is_not_there_is_to_add_it,
    further strict_validation_refuses_unknown_fields,
    further unknown_fields_are_warned_of_unless_that_is_not_wanted,
    further a_field_twice_is_refused_by_strict_validation,
    further annotations_of_more_than_256_kib_are_422,
}
