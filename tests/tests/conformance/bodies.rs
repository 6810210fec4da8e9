//! Behaviors for malformed and unusual request bodies.

use serde_json::{Value, json};

use crate::behaviour::behaviours;
use crate::reply::Reply;
use crate::world::{MERGE, World, YAML};

async fn post(world: &World, body: &str) -> Reply {
    world.post(&world.path(), body).await
}

async fn a_body_that_is_too_large_is_413(world: &World) {
    let large = " ".repeat(4 * 1024 * 1024);
    let refused = post(world, &large).await;
    refused.refused(413, "Request entity too large: limit is 3145728");
}

async fn a_body_that_is_no_json_is_400(world: &World) {
    post(world, "{").await.refused(400, "…");
}

async fn a_body_of_another_kind_is_400(world: &World) {
    let map = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" } });
    let refused = world.post(&world.path(), &map).await;
    refused.refused(400, "…does not match the expected…");
}

async fn an_object_of_a_built_in_kind_need_not_name_its_kind(world: &World) {
    let maps = world.path_of("v1", "configmaps");
    for (name, mut object) in [
        ("a", json!({})),
        ("b", json!({ "kind": "ConfigMap" })),
        ("c", json!({ "apiVersion": "v1" })),
        ("d", json!({ "apiVersion": "", "kind": null })),
    ] {
        object["metadata"] = json!({ "name": name });
        let reply = world.post(&maps, &object).await;
        let made = reply.ok();
        assert_eq!(reply.code, 201);
        assert_eq!(made["apiVersion"], "v1", "{object}");
        assert_eq!(made["kind"], "ConfigMap", "{object}");
        let path = format!("{maps}/{name}");
        assert_eq!(world.put(&path, &object).await.code, 200, "{object}");
    }
    for (body, code) in [
        ("null", 422),
        ("1", 400),
        (r#"{"kind":"Other"}"#, 400),
        (r#"{"kind":1}"#, 400),
    ] {
        world.post(&maps, body).await.refused(code, "…");
    }
    let patch = json!({ "kind": null });
    world.merge_at(&format!("{maps}/a"), &patch).await.ok();
    // A custom resource needs a kind.
    let refused = post(world, r#"{"metadata":{"name":"a"},"spec":{}}"#).await;
    refused.refused(400, "…Object 'Kind' is missing in…");
}

async fn a_collection_is_not_written(world: &World) {
    let all = format!("/apis/{}/widgets", world.api_version());
    let maps = world.path_of("v1", "configmaps");
    let object = world.widget("a", json!({}));
    for (method, media) in [("PUT", "application/json"), ("PATCH", MERGE)] {
        let headers = [("content-type", media)];
        let own = world.send(method, &world.path(), &headers, &object).await;
        own.refused(400, "name must be provided");
        let all = world.send(method, &all, &headers, &object).await;
        all.refused(404, "…");
        let maps = world.send(method, &maps, &headers, "{}").await;
        maps.refused(405, "…");
    }
    assert!(world.is_gone("a").await);
}

async fn a_body_of_another_namespace_is_400(world: &World) {
    let mut object = world.widget("a", json!({ "bogus": 1 }));
    object["metadata"]["namespace"] = "default".into();
    let refused = world.post(&world.path(), &object).await;
    refused.refused(
        400,
        "the namespace of the provided object does not match the namespace sent on the request",
    );
    assert_eq!(refused.header("warning"), UNKNOWN);
}

async fn an_object_of_a_kind_that_nobody_declared_has_no_unknown_fields(world: &World) {
    let mut object = world.widget("a", json!({ "bogus": 1 }));
    object["kind"] = "Other".into();
    let refused = world.post(&world.path(), &object).await;
    refused.refused(422, r#"…kind: Invalid value: "Other"…"#);
    assert_eq!(refused.header("warning"), "");
}

async fn a_put_under_another_name_is_400(world: &World) {
    let mut object = world.create("a", json!({})).await.ok();
    object["metadata"]["name"] = "b".into();
    let refused = world.put(&world.at("a"), &object).await;
    refused.refused(
        400,
        "the name of the object (b) does not match the name on the URL (a)",
    );
}

async fn an_object_without_a_name_is_422(world: &World) {
    let mut object = world.widget("a", json!({}));
    object["metadata"] = json!({});
    let refused = world.post(&world.path(), &object).await;
    refused.refused(422, "…name or generateName is required…");
}

async fn a_body_may_be_yaml(world: &World) {
    let version = world.api_version();
    let body = format!("apiVersion: {version}\nkind: Widget\nmetadata:\n  name: a\nspec: {{}}\n");
    let headers = [("content-type", YAML)];
    let made = world.send("POST", &world.path(), &headers, &body).await;
    assert_eq!(made.code, 201);
}

/// The warning for a field that is not in the schema.
const UNKNOWN: &str = r#"299 - "unknown field \"spec.bogus\"""#;

async fn unknown_fields_are_warned_of_unless_something_else_is_wanted(world: &World) {
    let post = async |validation: &str| {
        let path = format!("{}?fieldValidation={validation}", world.path());
        let object = world.widget(&validation.to_lowercase(), json!({ "bogus": 1 }));
        world.post(&path, &object).await
    };
    for (validation, warning) in [("Warn", UNKNOWN), ("Ignore", "")] {
        let made = post(validation).await;
        assert_eq!((made.code, made.header("warning")), (201, warning));
    }
    let strict = post("Strict").await;
    strict.refused(400, r#"…strict decoding error: unknown field "spec.bogus""#);
    post("Other").await.refused(422, "…");
}

async fn a_field_twice_is_refused_by_strict_validation(world: &World) {
    let body = world.widget("a", json!({ "color": "red", "name": "blue" }));
    let body = body
        .to_string()
        .replace("\"name\":\"blue\"", "\"color\":\"blue\"");
    let path = format!("{}?fieldValidation=Strict", world.path());
    let refused = world.post(&path, &body).await;
    refused.refused(400, r#"…duplicate field "spec.color"…"#);
}

async fn annotations_and_data_have_a_maximum_size(world: &World) {
    let maps = world.path_of("v1", "configmaps");
    let secrets = world.path_of("v1", "secrets");
    let note = |size: usize| json!({ "annotations": { "k": "x".repeat(size) } });
    let data = |size: usize| json!({ "k": "x".repeat(size) });
    let post = async |path: &str, mut metadata: Value, data: Value| {
        metadata["generateName"] = "a-".into();
        let object = json!({ "metadata": metadata, "data": data });
        world.post(path, &object).await
    };
    post(&maps, note(262_143), json!({})).await.ok();
    let refused = post(&maps, note(262_144), json!({})).await;
    let long = "metadata.annotations: Too long: may not be more than 262144 bytes";
    refused.refused(422, &format!("…{long}"));
    post(&maps, json!({}), data(1_048_576)).await.ok();
    let refused = post(&maps, json!({}), data(1_048_577)).await;
    refused.refused(422, "…[]: Too long: may not be more than 1048576 bytes");
    let refused = post(&secrets, json!({}), data(1_500_000)).await;
    refused.refused(422, "…data: Too long: may not be more than 1048576 bytes");
}

async fn an_object_that_is_too_large_for_the_store_is_refused(world: &World) {
    for (name, size, refusal) in [
        ("a", 1_500_000, None),
        ("b", 1_600_000, Some("etcdserver: request is too large")),
        (
            "c",
            2_500_000,
            Some(
                "rpc error: code = ResourceExhausted desc = trying to send message larger than max (…",
            ),
        ),
    ] {
        let large = json!({ "free": { "large": "x".repeat(size) } });
        let reply = world.create(name, large).await;
        match refusal {
            Some(message) => drop(reply.refused(500, message)),
            None => drop(reply.ok()),
        }
    }
}

behaviours! { "bodies":
    a_body_that_is_too_large_is_413,
    a_body_that_is_no_json_is_400,
    a_body_of_another_kind_is_400,
    an_object_of_a_built_in_kind_need_not_name_its_kind,
    a_collection_is_not_written,
    a_body_of_another_namespace_is_400,
    an_object_of_a_kind_that_nobody_declared_has_no_unknown_fields,
    a_body_may_be_yaml,
    a_put_under_another_name_is_400,
    an_object_without_a_name_is_422,
    unknown_fields_are_warned_of_unless_something_else_is_wanted,
    a_field_twice_is_refused_by_strict_validation,
    an_object_that_is_too_large_for_the_store_is_refused,
    annotations_and_data_have_a_maximum_size,
}
