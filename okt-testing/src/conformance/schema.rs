//! Behaviours of CRD schemas.

use kube::core::Status;
use serde_json::{Value, json};

use super::{
    claim::{Failure, Given, Outcome, eventually, refusal},
    world::World,
};

async fn refuse(world: &World, spec: Value) -> Result<Status, Failure> {
    let status = refusal(world.create("a", spec).await)?;
    ensure_eq!((status.code, status.reason.as_str()), (422, "Invalid"));
    Ok(status)
}

/// Returns the one cause, after the head of the message.
async fn cause(world: &World, spec: Value) -> Result<String, Failure> {
    let message = refuse(world, spec).await?.message;
    let head = format!("Widget.{} \"a\" is invalid: ", world.group);
    let causes = message.strip_prefix(&head).given()?;
    // The server adds that rules on other fields were not checked.
    let first = causes
        .split_once(", <nil>: ")
        .map_or(causes, |(first, _)| first);
    Ok(first.trim_start_matches('[').to_owned())
}

async fn an_unknown_field_is_pruned(world: &World) -> Outcome {
    let made = world
        .create("a", json!({ "bogus": 1, "either": { "a": "x", "c": "y" } }))
        .await?;
    ensure!(made.data["spec"].get("bogus").is_none());
    ensure_eq!(made.data["spec"]["either"], json!({ "a": "x" }));
    Ok(())
}

async fn unknown_fields_are_kept_where_the_schema_says_so(world: &World) -> Outcome {
    let free = json!({ "any": [1, { "thing": true }] });
    let template = json!({ "apiVersion": "v1", "kind": "X", "metadata": { "name": "t" }, "y": 1 });
    let made = world
        .create("a", json!({ "free": free, "template": template }))
        .await?;
    ensure_eq!(made.data["spec"]["free"], free);
    ensure_eq!(made.data["spec"]["template"], template);
    Ok(())
}

async fn defaults_are_filled_in(world: &World) -> Outcome {
    let made = world.create("a", json!({})).await?;
    ensure_eq!(made.data["spec"]["replicas"], 1);
    let patched = world
        .merge("a", json!({ "spec": { "replicas": null } }))
        .await?;
    ensure_eq!(patched.data["spec"]["replicas"], 1);
    Ok(())
}

async fn nulls_are_dropped_but_where_they_are_allowed(world: &World) -> Outcome {
    let made = world
        .create("a", json!({ "color": null, "maybe": null }))
        .await?;
    ensure!(made.data["spec"].get("color").is_none());
    ensure_eq!(made.data["spec"].get("maybe"), Some(&Value::Null));
    Ok(())
}

async fn a_value_that_is_not_listed_is_refused(world: &World) -> Outcome {
    ensure_eq!(
        cause(world, json!({ "color": "pink" })).await?,
        "spec.color: Unsupported value: \"pink\": supported values: \"red\", \"green\", \"blue\""
    );
    Ok(())
}

async fn numbers_have_bounds(world: &World) -> Outcome {
    ensure_eq!(
        cause(world, json!({ "replicas": 11 })).await?,
        "spec.replicas: Invalid value: 11: spec.replicas in body should be less than or equal to 10"
    );
    ensure_eq!(
        cause(world, json!({ "minReplicas": -1, "replicas": -1 })).await?,
        "spec.replicas: Invalid value: -1: spec.replicas in body should be greater than or equal to 0, .spec.replicas: Invalid value: -1: should be a non-negative integer]"
    );
    refuse(world, json!({ "replicas": 1.5 })).await?;
    Ok(())
}

async fn texts_have_bounds_and_patterns(world: &World) -> Outcome {
    ensure_eq!(
        cause(world, json!({ "name": "ABC" })).await?,
        "spec.name: Invalid value: \"ABC\": spec.name in body should match '^[a-z]+$'"
    );
    ensure_eq!(
        cause(world, json!({ "name": "abcdef" })).await?,
        "spec.name: Too long: may not be more than 5 bytes"
    );
    ensure_eq!(
        cause(world, json!({ "name": "a" })).await?,
        "spec.name: Invalid value: \"a\": spec.name in body should be at least 2 chars long"
    );
    Ok(())
}

async fn a_time_must_be_one(world: &World) -> Outcome {
    ensure_eq!(
        cause(world, json!({ "started": "noon" })).await?,
        "spec.started: Invalid value: \"noon\": spec.started in body must be of type date-time: \"noon\""
    );
    world
        .create("a", json!({ "started": "2026-11-21T09:00:00Z" }))
        .await?;
    Ok(())
}

async fn a_list_passes_for_a_text_with_a_format(world: &World) -> Outcome {
    world.create("a", json!({ "started": ["noon"] })).await?;
    ensure_eq!(
        world.get("a").await?.data["spec"]["started"],
        json!(["noon"])
    );
    ensure_eq!(
        cause(world, json!({ "started": { "at": "noon" } })).await?,
        "spec.started: Invalid value: \"\": spec.started in body must be of type date-time: \"\""
    );
    Ok(())
}

async fn an_int_or_string_is_either(world: &World) -> Outcome {
    world.create("a", json!({ "port": 80 })).await?;
    world.create("b", json!({ "port": "http" })).await?;
    ensure_eq!(
        refusal(world.create("c", json!({ "port": true })).await)?.code,
        422
    );
    Ok(())
}

async fn lists_have_bounds_and_sets_have_no_twins(world: &World) -> Outcome {
    ensure!(
        cause(world, json!({ "tags": ["a", "b", "c", "d"] }))
            .await?
            .starts_with("spec.tags: Too many: 4")
    );
    ensure_eq!(
        cause(world, json!({ "tags": ["a", "a"] })).await?,
        "spec.tags[1]: Duplicate value: \"a\""
    );
    Ok(())
}

async fn a_list_keyed_by_type_has_each_type_once(world: &World) -> Outcome {
    world.create("a", json!({})).await?;
    let ready = json!({ "type": "Ready", "status": "True" });
    let twice = json!({ "status": { "conditions": [ready, ready] } });
    let message = refusal(world.merge_status("a", twice).await)?.message;
    let cause = "status.conditions[1]: Duplicate value: {\"type\":\"Ready\"}";
    ensure!(message.contains(cause), "{message}");
    Ok(())
}

async fn one_of_takes_one(world: &World) -> Outcome {
    world
        .create("ok", json!({ "either": { "a": "x" } }))
        .await?;
    ensure!(
        cause(world, json!({ "either": {} }))
            .await?
            .contains("Found none valid")
    );
    let both = json!({ "either": { "a": "x", "b": "y" } });
    ensure!(
        cause(world, both)
            .await?
            .contains("must validate one and only one schema (oneOf)")
    );
    Ok(())
}

async fn a_required_field_is_missed(world: &World) -> Outcome {
    let mut object = world.widget("a", json!({}));
    object.data = json!({});
    let params = kube::api::PostParams::default();
    let outcome = world.widgets().create(&params, &object).await;
    let status = refusal(outcome)?;
    ensure!(
        status.message.contains("spec: Required value"),
        "{}",
        status.message
    );
    ensure_eq!(
        status.details.given()?.causes[0].reason,
        "FieldValueRequired"
    );
    Ok(())
}

async fn several_faults_are_listed_together(world: &World) -> Outcome {
    let message = refuse(world, json!({ "color": "pink", "replicas": 11 }))
        .await?
        .message;
    ensure!(
        message.contains("spec.color: ") && message.contains("spec.replicas: "),
        "{message}"
    );
    ensure!(message.ends_with(']'));
    Ok(())
}

async fn a_changed_schema_shows_in_what_is_stored(world: &World) -> Outcome {
    let world = &world.own_kind().await?;
    world
        .create("a", json!({ "color": "red", "name": "abc" }))
        .await?;
    let mut crd = world.crd();
    let spec = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"];
    spec.as_object_mut().given()?.remove("name");
    spec["size"] = json!({ "type": "string", "default": "small" });
    spec["color"]["enum"] = json!(["blue"]);
    world.apply_crd(crd).await?;
    let shown = json!({ "color": "red", "replicas": 1, "size": "small" });
    eventually("the new schema is in use", || async {
        let object = world.get("a").await?;
        Ok((object.data["spec"] == shown).then_some(()))
    })
    .await?;
    let patch = json!({ "spec": { "replicas": 2 } });
    // Ratcheting: an invalid value that does not change is accepted.
    world.merge("a", patch).await?;
    let patch = json!({ "spec": { "color": "green" } });
    ensure_eq!(refusal(world.merge("a", patch).await)?.code, 422);
    Ok(())
}

behaviours! { "schema":
    26 an_unknown_field_is_pruned,
    further unknown_fields_are_kept_where_the_schema_says_so,
    further defaults_are_filled_in,
    further nulls_are_dropped_but_where_they_are_allowed,
    further a_value_that_is_not_listed_is_refused,
    further numbers_have_bounds,
    further texts_have_bounds_and_patterns,
    further a_time_must_be_one,
    further a_list_passes_for_a_text_with_a_format,
    further an_int_or_string_is_either,
    further lists_have_bounds_and_sets_have_no_twins,
    further a_list_keyed_by_type_has_each_type_once,
    further one_of_takes_one,
    further a_required_field_is_missed,
    further several_faults_are_listed_together,
    further a_changed_schema_shows_in_what_is_stored,
}
