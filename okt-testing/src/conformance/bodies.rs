//! Behaviours for malformed and unusual request bodies.

use serde_json::json;

use super::{
    claim::{Failure, Outcome},
    reply::RawReply,
    world::World,
};

const JSON: &str = "application/json";

async fn post(world: &World, body: impl Into<Vec<u8>>) -> Result<RawReply, Failure> {
    let headers = [("content-type", JSON)];
    world.send("POST", &world.path(), &headers, body).await
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

async fn an_object_of_a_built_in_kind_need_not_say_what_it_is(world: &World) -> Outcome {
    let maps = format!("/api/v1/namespaces/{}/configmaps", world.namespace);
    let headers = [("content-type", JSON)];
    for (name, said) in [
        ("a", json!({})),
        ("b", json!({ "kind": "ConfigMap" })),
        ("c", json!({ "apiVersion": "v1" })),
        ("d", json!({ "apiVersion": "", "kind": null })),
    ] {
        let mut object = said.clone();
        object["metadata"]["name"] = name.into();
        let body = object.to_string();
        let made = world.send("POST", &maps, &headers, body.as_str()).await?;
        ensure_eq!(made.code, 201, "{body}");
        let made = made.json()?;
        ensure_eq!(
            (&made["apiVersion"], &made["kind"]),
            (&json!("v1"), &json!("ConfigMap"))
        );
        let path = format!("{maps}/{name}");
        ensure_eq!(
            world.send("PUT", &path, &headers, body).await?.code,
            200,
            "{said}"
        );
    }
    for (body, code) in [
        ("null", 422),
        ("1", 400),
        (r#"{"kind":"Other"}"#, 400),
        (r#"{"kind":1}"#, 400),
    ] {
        let reply = world.send("POST", &maps, &headers, body).await?;
        ensure_eq!(reply.code, code, "{body}");
    }
    let merge = [("content-type", "application/merge-patch+json")];
    let path = format!("{maps}/a");
    let reply = world
        .send("PATCH", &path, &merge, r#"{"kind":null}"#)
        .await?;
    ensure_eq!(reply.code, 200);
    // A custom resource needs a kind.
    let reply = post(world, r#"{"metadata":{"name":"a"},"spec":{}}"#).await?;
    ensure_eq!(reply.code, 400);
    let message = reply.message()?;
    ensure!(message.contains("Object 'Kind' is missing in"), "{message}");
    Ok(())
}

async fn a_collection_is_not_written(world: &World) -> Outcome {
    let widgets = world.path();
    let all = format!("/apis/{}/v1/widgets", world.group);
    let maps = format!("/api/v1/namespaces/{}/configmaps", world.namespace);
    let object = serde_json::to_string(&world.widget("a", json!({})))?;
    for (method, media) in [("PUT", JSON), ("PATCH", "application/merge-patch+json")] {
        let headers = [("content-type", media)];
        let reply = world
            .send(method, &widgets, &headers, object.as_str())
            .await?;
        ensure_eq!(reply.code, 400, "{method}");
        ensure_eq!(reply.message()?, "name must be provided", "{method}");
        let reply = world.send(method, &all, &headers, object.as_str()).await?;
        ensure_eq!(reply.code, 404, "{method}");
        let reply = world.send(method, &maps, &headers, "{}").await?;
        ensure_eq!(reply.code, 405, "{method}");
        ensure_eq!(reply.json()?["reason"], "MethodNotAllowed", "{method}");
    }
    ensure!(world.widgets().get_opt("a").await?.is_none());
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

async fn a_body_of_another_namespace_is_warned_of_its_unknown_fields_too(world: &World) -> Outcome {
    let object = json!({
        "apiVersion": world.api_version(),
        "kind": "Widget",
        "metadata": { "name": "a", "namespace": "default" },
        "spec": { "bogus": 1 },
    });
    let reply = post(world, object.to_string()).await?;
    ensure_eq!(reply.code, 400);
    ensure_eq!(
        reply.header("warning"),
        "299 - \"unknown field \\\"spec.bogus\\\"\""
    );
    Ok(())
}

async fn an_object_of_a_kind_that_nobody_declared_has_no_unknown_fields(world: &World) -> Outcome {
    let object = json!({
        "apiVersion": world.api_version(),
        "kind": "Other",
        "metadata": { "name": "a" },
        "spec": { "bogus": 1 },
    });
    let reply = post(world, object.to_string()).await?;
    ensure_eq!(reply.code, 422);
    let message = reply.message()?;
    ensure!(
        message.contains("kind: Invalid value: \"Other\""),
        "{message}"
    );
    ensure_eq!(reply.header("warning"), "");
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

async fn a_body_may_be_yaml(world: &World) -> Outcome {
    let version = world.api_version();
    let body = format!("apiVersion: {version}\nkind: Widget\nmetadata:\n  name: a\nspec: {{}}\n");
    let headers = [("content-type", "application/yaml")];
    let reply = world.send("POST", &world.path(), &headers, body).await?;
    ensure_eq!(reply.code, 201);
    Ok(())
}

/// Posts a widget with an undeclared field.
async fn post_unknown(world: &World, validation: &str) -> Result<RawReply, Failure> {
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

async fn an_object_that_is_too_large_for_the_store_is_refused(world: &World) -> Outcome {
    let large = "x".repeat(1_800_000);
    let object = world.widget("a", json!({ "free": { "large": large } }));
    let reply = post(world, serde_json::to_vec(&object)?).await?;
    let message = reply.message()?;
    ensure_eq!(reply.code, 500, "{message}");
    ensure_eq!(message, "etcdserver: request is too large");
    Ok(())
}

behaviours! { "bodies":
    further a_body_that_is_too_large_is_413,
    further a_body_that_is_no_json_is_400,
    further a_body_of_another_kind_is_400,
    further an_object_of_a_built_in_kind_need_not_say_what_it_is,
    further a_collection_is_not_written,
    further a_body_of_another_namespace_is_400,
    further a_body_of_another_namespace_is_warned_of_its_unknown_fields_too,
    further an_object_of_a_kind_that_nobody_declared_has_no_unknown_fields,
    further a_body_may_be_yaml,
    further a_put_under_another_name_is_400,
    further an_object_without_a_name_is_422,
    further strict_validation_refuses_unknown_fields,
    further unknown_fields_are_warned_of_unless_that_is_not_wanted,
    further a_field_twice_is_refused_by_strict_validation,
    further an_object_that_is_too_large_for_the_store_is_refused,
    further annotations_of_more_than_256_kib_are_422,
}
