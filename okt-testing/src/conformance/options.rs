//! Behaviours of the options of a deletion, in its body and in its query.

use serde_json::{Value, json};

use super::{
    claim::{Failure, Given, Outcome},
    reply::RawReply,
    world::World,
};

/// Deletes the widget `a`; `query` is empty or begins with a question mark.
async fn delete(world: &World, query: &str, body: &str) -> Result<RawReply, Failure> {
    let path = format!("{}/a{query}", world.path());
    let headers = [("content-type", "application/json")];
    let headers = if body.is_empty() { &[] } else { &headers[..] };
    world.send("DELETE", &path, headers, body).await
}

/// Returns whether the widget `a` exists and is not being deleted.
async fn is_untouched(world: &World) -> Result<bool, Failure> {
    let found = world.widgets().get_opt("a").await?;
    Ok(found.is_some_and(|found| found.metadata.deletion_timestamp.is_none()))
}

async fn a_deletion_with_options_that_cannot_be_read_is_400(world: &World) -> Outcome {
    world.create("a", json!({})).await?;
    let number = "json: cannot unmarshal number into Go struct field";
    for (body, message) in [
        (json!([]), "couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of type struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }".to_owned()),
        (json!({ "kind": 1 }), format!("couldn't get version/kind; json parse error: {number} .kind of type string")),
        (json!({ "gracePeriodSeconds": "1" }), "json: cannot unmarshal string into Go struct field DeleteOptions.gracePeriodSeconds of type int64".to_owned()),
        (json!({ "gracePeriodSeconds": 1.0 }), "json: cannot unmarshal number 1.0 into Go struct field DeleteOptions.gracePeriodSeconds of type int64".to_owned()),
        (json!({ "dryRun": "All" }), "json: cannot unmarshal string into Go struct field DeleteOptions.dryRun of type []string".to_owned()),
        (json!({ "dryRun": [1] }), format!("{number} DeleteOptions.dryRun of type string")),
        (json!({ "propagationPolicy": 1 }), format!("{number} DeleteOptions.propagationPolicy of type v1.DeletionPropagation")),
        (json!({ "orphanDependents": "x" }), "json: cannot unmarshal string into Go struct field DeleteOptions.orphanDependents of type bool".to_owned()),
        (json!({ "preconditions": [] }), "json: cannot unmarshal array into Go struct field DeleteOptions.preconditions of type v1.Preconditions".to_owned()),
        (json!({ "preconditions": { "uid": 1 } }), format!("{number} Preconditions.preconditions.uid of type types.UID")),
        (json!({ "preconditions": { "resourceVersion": 1 } }), format!("{number} Preconditions.preconditions.resourceVersion of type string")),
        (json!({ "ignoreStoreReadErrorWithClusterBreakingPotential": 1 }), format!("{number} DeleteOptions.ignoreStoreReadErrorWithClusterBreakingPotential of type bool")),
    ] {
        let body = body.to_string();
        let reply = delete(world, "", &body).await?;
        ensure_eq!(reply.code, 400, "{body}");
        ensure_eq!(reply.message()?, message, "{body}");
        ensure!(is_untouched(world).await?, "{body}");
    }
    Ok(())
}

async fn a_deletion_with_a_body_of_another_kind_is_400(world: &World) -> Outcome {
    world.create("a", json!({})).await?;
    for (body, message) in [
        (
            json!({ "kind": "Pod", "apiVersion": "v1" }),
            "no kind \"Pod\" is registered for version \"v1\" in scheme \"pkg/runtime/scheme.go:111\"",
        ),
        (
            json!({ "kind": "Widget" }),
            "no kind \"Widget\" is registered for version \"meta.k8s.io/v1\" in scheme \"pkg/runtime/scheme.go:111\"",
        ),
        (
            json!({ "kind": "DeleteOptions", "apiVersion": "a/b/c" }),
            "unexpected GroupVersion string: a/b/c",
        ),
    ] {
        let reply = delete(world, "", &body.to_string()).await?;
        ensure_eq!(reply.code, 400, "{body}");
        ensure_eq!(reply.message()?, message, "{body}");
        ensure!(is_untouched(world).await?, "{body}");
    }
    Ok(())
}

/// Sends invalid options, once in the body and once in the query.
async fn invalid(world: &World, body: Value, query: &str, problem: &str) -> Outcome {
    for (query, body) in [("", body.to_string().as_str()), (query, "")] {
        let reply = delete(world, query, body).await?;
        ensure_eq!(reply.code, 422, "{query} {body}");
        let message = format!("DeleteOptions.meta.k8s.io \"\" is invalid: {problem}");
        ensure_eq!(reply.message()?, message, "{query} {body}");
        ensure!(is_untouched(world).await?, "{query} {body}");
    }
    Ok(())
}

async fn a_deletion_with_options_that_mean_nothing_is_422(world: &World) -> Outcome {
    world.create("a", json!({})).await?;
    let supported = "supported values: \"All\"";
    let some = format!("dryRun: Unsupported value: [\"Some\"]: {supported}");
    invalid(world, json!({ "dryRun": ["Some"] }), "?dryRun=Some", &some).await?;
    let both = format!("dryRun: Unsupported value: [\"All\",\"Some\"]: {supported}");
    let query = "?dryRun=All&dryRun=Some";
    invalid(world, json!({ "dryRun": ["All", "Some"] }), query, &both).await?;
    let empty = format!("dryRun: Unsupported value: [\"\"]: {supported}");
    invalid(world, json!({ "dryRun": [""] }), "?dryRun=", &empty).await?;
    let supported = "supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\"";
    let policy = format!("propagationPolicy: Unsupported value: \"\": {supported}");
    let query = "?propagationPolicy=";
    invalid(world, json!({ "propagationPolicy": "" }), query, &policy).await
}

async fn a_propagation_in_the_old_words_and_the_new_is_422(world: &World) -> Outcome {
    world.create("a", json!({})).await?;
    invalid(
        world,
        json!({ "orphanDependents": true, "propagationPolicy": "Orphan" }),
        "?orphanDependents=true&propagationPolicy=Orphan",
        "propagationPolicy: Invalid value: \"Orphan\": orphanDependents and deletionPropagation cannot be both set",
    )
    .await
}

async fn a_dry_run_in_the_body_deletes_nothing_and_one_beside_a_body_is_not_seen(
    world: &World,
) -> Outcome {
    world.create("a", json!({})).await?;
    ensure_eq!(
        delete(world, "", r#"{"dryRun":["All","All"]}"#).await?.code,
        200
    );
    ensure!(is_untouched(world).await?);
    ensure_eq!(delete(world, "?dryRun=All", "{}").await?.code, 200);
    ensure!(world.widgets().get_opt("a").await?.is_none());
    Ok(())
}

async fn a_deletion_takes_options_of_any_version_and_what_it_does_not_know(
    world: &World,
) -> Outcome {
    for body in [
        json!({ "kind": "DeleteOptions", "apiVersion": "v1" }),
        json!({ "kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1" }),
        json!({ "kind": "DeleteOptions", "apiVersion": "apps/v9" }),
        json!({ "unknown": 1, "DryRun": ["All"] }),
        json!({ "dryRun": [], "propagationPolicy": null, "preconditions": { "uid": null } }),
        json!(null),
    ] {
        world.create("a", json!({})).await?;
        let reply = delete(
            world,
            "?dryRun=Some&gracePeriodSeconds=x",
            &body.to_string(),
        )
        .await?;
        ensure_eq!(reply.code, 200, "{body}");
        ensure!(world.widgets().get_opt("a").await?.is_none(), "{body}");
    }
    Ok(())
}

async fn an_empty_precondition_is_one(world: &World) -> Outcome {
    world.create("a", json!({})).await?;
    for field in ["uid", "resourceVersion"] {
        let body = json!({ "preconditions": { field: "" } });
        let reply = delete(world, "", &body.to_string()).await?;
        ensure_eq!(reply.code, 409, "{field}");
        let message = reply.message()?;
        ensure!(
            message.contains("in the precondition () does not match"),
            "{message}"
        );
    }
    ensure!(is_untouched(world).await?);
    Ok(())
}

/// Creates a widget with a finalizer and deletes it.
async fn held(world: &World, query: &str, body: &str) -> Result<RawReply, Failure> {
    let mut object = world.widget("a", json!({}));
    object.metadata.finalizers = Some(vec!["okt.dev/a".to_owned()]);
    world
        .widgets()
        .create(&kube::api::PostParams::default(), &object)
        .await?;
    let reply = delete(world, query, body).await?;
    let patch = json!({ "metadata": { "finalizers": null } });
    world.merge("a", patch).await?;
    Ok(reply)
}

async fn to_orphan_dependents_in_the_old_words_is_to_orphan_them(world: &World) -> Outcome {
    let query = "?orphanDependents=true";
    for (query, body) in [("", r#"{"orphanDependents":true}"#), (query, "")] {
        let reply = held(world, query, body).await?;
        ensure_eq!(reply.code, 200);
        let finalizers = &reply.json()?["metadata"]["finalizers"];
        ensure_eq!(*finalizers, json!(["okt.dev/a", "orphan"]));
    }
    Ok(())
}

async fn what_waits_is_202_for_who_says_in_the_old_words_not_to_orphan(world: &World) -> Outcome {
    let query = "?orphanDependents=false";
    for (query, body) in [("", r#"{"orphanDependents":false}"#), (query, "")] {
        let reply = held(world, query, body).await?;
        ensure_eq!(reply.code, 202);
        let finalizers = &reply.json()?["metadata"]["finalizers"];
        ensure_eq!(*finalizers, json!(["okt.dev/a"]));
    }
    world.create("a", json!({})).await?;
    ensure_eq!(delete(world, query, "").await?.code, 200);
    Ok(())
}

async fn a_collection_is_not_deleted_with_wrong_options(world: &World) -> Outcome {
    world.create("a", json!({})).await?;
    for (query, body, code, message) in [
        ("", "[]", 400, "couldn't get version/kind"),
        (
            "",
            r#"{"dryRun":["Some"]}"#,
            422,
            "DeleteOptions.meta.k8s.io \"\" is invalid",
        ),
        (
            "?dryRun=Some",
            "",
            422,
            "DeleteOptions.meta.k8s.io \"\" is invalid",
        ),
        (
            "?gracePeriodSeconds=",
            "",
            400,
            "strconv.ParseInt: parsing \"\"",
        ),
        ("?limit=x", "{}", 400, "strconv.ParseInt: parsing \"x\""),
        (
            "?sendInitialEvents=true",
            r#"{"dryRun":["Some"]}"#,
            422,
            "ListOptions.meta.k8s.io \"\" is invalid",
        ),
        (
            "?fieldSelector=x=y",
            r#"{"dryRun":["Some"]}"#,
            400,
            "field label not supported: x",
        ),
    ] {
        let path = format!("{}{query}", world.path());
        let headers = [("content-type", "application/json")];
        let headers = if body.is_empty() { &[] } else { &headers[..] };
        let reply = world.send("DELETE", &path, headers, body).await?;
        ensure_eq!(reply.code, code, "{query} {body}");
        let says = reply.json()?["message"].as_str().given()?.to_owned();
        ensure!(says.contains(message), "{query} {body}: {says}");
        ensure!(is_untouched(world).await?, "{query} {body}");
    }
    Ok(())
}

behaviours! { "options":
    further a_deletion_with_options_that_cannot_be_read_is_400,
    further a_deletion_with_a_body_of_another_kind_is_400,
    further a_deletion_with_options_that_mean_nothing_is_422,
    further a_propagation_in_the_old_words_and_the_new_is_422,
    further a_dry_run_in_the_body_deletes_nothing_and_one_beside_a_body_is_not_seen,
    further a_deletion_takes_options_of_any_version_and_what_it_does_not_know,
    further an_empty_precondition_is_one,
    further to_orphan_dependents_in_the_old_words_is_to_orphan_them,
    further what_waits_is_202_for_who_says_in_the_old_words_not_to_orphan,
    further a_collection_is_not_deleted_with_wrong_options,
}
