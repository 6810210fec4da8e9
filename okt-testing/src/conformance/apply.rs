//! This file says what server-side apply does.

use kube::{
    api::{DynamicObject, Patch, PatchParams},
    core::Status,
};
use serde_json::{Value, json};

use super::{
    claim::{Failure, Given, Outcome, refusal},
    world::{World, version},
};

fn by(manager: &str) -> PatchParams {
    PatchParams::apply(manager)
}

/// The fields of one manager.
fn fields(object: &DynamicObject, manager: &str) -> Option<Value> {
    let entries = object.metadata.managed_fields.as_ref()?;
    let entry = entries
        .iter()
        .find(|entry| entry.manager.as_deref() == Some(manager))?;
    Some(entry.fields_v1.as_ref()?.0.clone())
}

async fn an_apply_creates_what_is_not_there(world: &World) -> Outcome {
    let made = world
        .apply_spec(&by("m"), "a", json!({ "color": "red" }))
        .await?;
    ensure_eq!(made.metadata.generation, Some(1));
    ensure_eq!(made.data["spec"], json!({ "color": "red", "replicas": 1 }));
    ensure_eq!(
        fields(&made, "m"),
        Some(json!({ "f:spec": { "f:color": {} } }))
    );
    Ok(())
}

async fn an_identical_apply_keeps_the_resource_version(world: &World) -> Outcome {
    let made = world
        .apply_spec(&by("m"), "a", json!({ "color": "red" }))
        .await?;
    // The status that the schema gives is written with the first write.
    let settled = world
        .apply_spec(&by("m"), "a", json!({ "color": "red" }))
        .await?;
    ensure_ne!(version(&made)?, version(&settled)?);
    let again = world
        .apply_spec(&by("m"), "a", json!({ "color": "red" }))
        .await?;
    ensure_eq!(version(&settled)?, version(&again)?);
    let status = json!({ "phase": "Up" });
    let first = world.apply_status("m", "a", status.clone()).await?;
    let second = world.apply_status("m", "a", status).await?;
    ensure_eq!(version(&first)?, version(&second)?);
    ensure_eq!(
        first.metadata.managed_fields,
        second.metadata.managed_fields
    );
    Ok(())
}

async fn a_field_of_another_applier_is_409_with_its_name(world: &World) -> Outcome {
    world
        .apply_spec(&by("one"), "a", json!({ "color": "red" }))
        .await?;
    let status = refusal(
        world
            .apply_spec(&by("two"), "a", json!({ "color": "blue" }))
            .await,
    )?;
    ensure_eq!((status.code, status.reason.as_str()), (409, "Conflict"));
    ensure_eq!(
        status.message,
        "Apply failed with 1 conflict: conflict with \"one\": .spec.color"
    );
    let causes = status.details.given()?.causes;
    ensure_eq!(causes[0].reason, "FieldManagerConflict");
    ensure_eq!(causes[0].field, ".spec.color");
    Ok(())
}

async fn several_conflicts_are_listed_by_manager(world: &World) -> Outcome {
    world
        .apply_spec(&by("one"), "a", json!({ "color": "red", "replicas": 2 }))
        .await?;
    let spec = json!({ "color": "blue", "replicas": 3 });
    let status = refusal(world.apply_spec(&by("two"), "a", spec).await)?;
    ensure_eq!(
        status.message,
        "Apply failed with 2 conflicts: conflicts with \"one\":\n- .spec.color\n- .spec.replicas"
    );
    Ok(())
}

async fn a_field_written_by_an_update_is_409_too(world: &World) -> Outcome {
    world.create("a", json!({ "color": "red" })).await?;
    let status = refusal(
        world
            .apply_spec(&by("two"), "a", json!({ "color": "blue" }))
            .await,
    )?;
    ensure_eq!(
        status.message,
        format!(
            "Apply failed with 1 conflict: conflict with \"unknown\" using {}/v1: .spec.color",
            world.group
        )
    );
    Ok(())
}

async fn agreeing_on_a_value_shares_it(world: &World) -> Outcome {
    world
        .apply_spec(&by("one"), "a", json!({ "color": "red" }))
        .await?;
    let shared = world
        .apply_spec(&by("two"), "a", json!({ "color": "red" }))
        .await?;
    let own = Some(json!({ "f:spec": { "f:color": {} } }));
    ensure_eq!(
        (fields(&shared, "one"), fields(&shared, "two")),
        (own.clone(), own)
    );
    Ok(())
}

async fn force_takes_the_field_over(world: &World) -> Outcome {
    world
        .apply_spec(&by("one"), "a", json!({ "color": "red" }))
        .await?;
    let taken = world
        .apply_spec(&by("two").force(), "a", json!({ "color": "blue" }))
        .await?;
    ensure_eq!(taken.data["spec"]["color"], "blue");
    ensure_eq!(fields(&taken, "one"), None);
    ensure_eq!(
        fields(&taken, "two"),
        Some(json!({ "f:spec": { "f:color": {} } }))
    );
    Ok(())
}

async fn an_update_takes_the_field_over(world: &World) -> Outcome {
    world
        .apply_spec(&by("one"), "a", json!({ "color": "red", "name": "abc" }))
        .await?;
    let updated = world
        .merge("a", json!({ "spec": { "color": "blue" } }))
        .await?;
    ensure_eq!(
        fields(&updated, "one"),
        Some(json!({ "f:spec": { "f:name": {} } }))
    );
    ensure_eq!(
        fields(&updated, "unknown"),
        Some(json!({ "f:spec": { "f:color": {} } }))
    );
    Ok(())
}

async fn an_omitted_own_field_is_removed(world: &World) -> Outcome {
    let spec = json!({ "color": "red", "name": "abc" });
    world.apply_spec(&by("m"), "a", spec).await?;
    let applied = world
        .apply_spec(&by("m"), "a", json!({ "color": "red" }))
        .await?;
    ensure_eq!(
        applied.data["spec"],
        json!({ "color": "red", "replicas": 1 })
    );
    Ok(())
}

async fn an_omitted_field_that_another_owns_stays(world: &World) -> Outcome {
    world
        .apply_spec(&by("one"), "a", json!({ "color": "red", "name": "abc" }))
        .await?;
    world
        .apply_spec(&by("two"), "a", json!({ "name": "abc" }))
        .await?;
    let applied = world
        .apply_spec(&by("one"), "a", json!({ "color": "red" }))
        .await?;
    ensure_eq!(applied.data["spec"]["name"], "abc");
    Ok(())
}

async fn two_managers_keep_conditions_of_their_own(world: &World) -> Outcome {
    world.create("a", json!({})).await?;
    let ready = json!({ "type": "Ready", "status": "True" });
    let fast = json!({ "type": "Fast", "status": "False" });
    world
        .apply_status("one", "a", json!({ "conditions": [ready] }))
        .await?;
    let both = world
        .apply_status("two", "a", json!({ "conditions": [fast] }))
        .await?;
    ensure_eq!(
        both.data["status"]["conditions"].as_array().given()?.len(),
        2
    );
    ensure_eq!(
        fields(&both, "one"),
        Some(json!({ "f:status": { "f:conditions": {
            "k:{\"type\":\"Ready\"}": { ".": {}, "f:type": {}, "f:status": {} },
        } } }))
    );
    Ok(())
}

async fn an_omitted_own_condition_is_dropped_and_others_are_not(world: &World) -> Outcome {
    world.create("a", json!({})).await?;
    let condition = |kind: &str| json!({ "type": kind, "status": "True" });
    let own = json!({ "conditions": [condition("Ready"), condition("Fast")] });
    world.apply_status("one", "a", own).await?;
    let other = json!({ "conditions": [condition("Other")] });
    world.apply_status("two", "a", other).await?;
    let less = json!({ "conditions": [condition("Ready")] });
    let applied = world.apply_status("one", "a", less).await?;
    let conditions = applied.data["status"]["conditions"].as_array().given()?;
    let kinds: Vec<_> = conditions
        .iter()
        .map(|condition| &condition["type"])
        .collect();
    ensure_eq!(kinds, ["Ready", "Other"]);
    Ok(())
}

async fn an_emptied_list_is_dropped(world: &World) -> Outcome {
    world.create("a", json!({})).await?;
    let own = json!({ "conditions": [{ "type": "Ready", "status": "True" }], "phase": "Up" });
    world.apply_status("m", "a", own).await?;
    let applied = world
        .apply_status("m", "a", json!({ "phase": "Up" }))
        .await?;
    ensure!(applied.data["status"].get("conditions").is_none());
    Ok(())
}

async fn a_set_is_merged_by_value(world: &World) -> Outcome {
    world
        .apply_spec(&by("one"), "a", json!({ "tags": ["x", "y"] }))
        .await?;
    let both = world
        .apply_spec(&by("two"), "a", json!({ "tags": ["z"] }))
        .await?;
    ensure_eq!(both.data["spec"]["tags"], json!(["x", "y", "z"]));
    let less = world
        .apply_spec(&by("one"), "a", json!({ "tags": ["y"] }))
        .await?;
    ensure_eq!(less.data["spec"]["tags"], json!(["y", "z"]));
    Ok(())
}

async fn an_atomic_list_belongs_to_one(world: &World) -> Outcome {
    world
        .apply_spec(&by("one"), "a", json!({ "plain": ["x"] }))
        .await?;
    let outcome = world
        .apply_spec(&by("two"), "a", json!({ "plain": ["y"] }))
        .await;
    ensure!(refusal(outcome)?.message.ends_with(": .spec.plain"));
    let taken = world
        .apply_spec(&by("two").force(), "a", json!({ "plain": ["y"] }))
        .await?;
    ensure_eq!(taken.data["spec"]["plain"], json!(["y"]));
    Ok(())
}

async fn an_atomic_map_belongs_to_one(world: &World) -> Outcome {
    world
        .apply_spec(&by("one"), "a", json!({ "whole": { "a": "1" } }))
        .await?;
    let spec = json!({ "whole": { "b": "2" } });
    let taken = world.apply_spec(&by("two").force(), "a", spec).await?;
    ensure_eq!(taken.data["spec"]["whole"], json!({ "b": "2" }));
    Ok(())
}

async fn a_map_is_merged_by_key(world: &World) -> Outcome {
    world
        .apply_spec(&by("one"), "a", json!({ "labels": { "a": "1" } }))
        .await?;
    let both = world
        .apply_spec(&by("two"), "a", json!({ "labels": { "b": "2" } }))
        .await?;
    ensure_eq!(both.data["spec"]["labels"], json!({ "a": "1", "b": "2" }));
    Ok(())
}

async fn an_undeclared_field_is_500(world: &World) -> Outcome {
    world.create("a", json!({})).await?;
    let status = refusal(world.apply_status("m", "a", json!({ "bogus": 1 })).await)?;
    ensure_eq!(status.code, 500);
    ensure!(
        status
            .message
            .ends_with(".status.bogus: field not declared in schema"),
        "{}",
        status.message
    );
    Ok(())
}

async fn one_key_twice_is_500(world: &World) -> Outcome {
    world.create("a", json!({})).await?;
    let ready = json!({ "type": "Ready", "status": "True" });
    let outcome = world
        .apply_status("m", "a", json!({ "conditions": [ready, ready] }))
        .await;
    ensure_eq!(refusal(outcome)?.code, 500);
    Ok(())
}

/// Why an apply of this body is refused.
async fn refused(world: &World, body: Value) -> Result<Status, Failure> {
    refusal(
        world
            .widgets()
            .patch("a", &by("m"), &Patch::Apply(body))
            .await,
    )
}

async fn an_apply_without_kind_is_400(world: &World) -> Outcome {
    let bodies = [
        json!({ "spec": {} }),
        json!({ "kind": "Widget", "spec": {} }),
    ];
    world.create("a", json!({})).await?;
    for body in bodies {
        ensure_eq!(refused(world, body).await?.code, 400);
    }
    Ok(())
}

async fn an_apply_of_managed_fields_is_400(world: &World) -> Outcome {
    world.create("a", json!({})).await?;
    let body = json!({
        "apiVersion": world.api_version(),
        "kind": "Widget",
        "metadata": { "managedFields": [] },
    });
    let status = refused(world, body).await?;
    ensure_eq!(
        (status.code, status.message.as_str()),
        (400, "metadata.managedFields must be nil")
    );
    Ok(())
}

async fn apply_yaml(world: &World, name: &str, query: &str) -> kube::Result<Value> {
    let version = world.api_version();
    let body = format!(
        "apiVersion: {version}\nkind: Widget\nmetadata:\n  name: {name}\nspec:\n  color: red\n"
    );
    let request = http::Request::patch(format!("{}/{name}{query}", world.path()))
        .header("content-type", "application/apply-patch+yaml")
        .body(body.into_bytes());
    world.request(request).await
}

async fn an_apply_without_a_manager_is_refused(world: &World) -> Outcome {
    let status = refusal(apply_yaml(world, "a", "").await)?;
    ensure_eq!(status.code, 422);
    ensure!(status.message.contains("fieldManager"));
    Ok(())
}

async fn a_configuration_may_be_yaml(world: &World) -> Outcome {
    apply_yaml(world, "a", "?fieldManager=m").await?;
    ensure_eq!(world.get("a").await?.data["spec"]["color"], "red");
    Ok(())
}

async fn resetting_managed_fields_empties_them(world: &World) -> Outcome {
    world
        .apply_spec(&by("one"), "a", json!({ "color": "red" }))
        .await?;
    let reset = json!({ "metadata": { "managedFields": [{}] } });
    let object = world.merge("a", reset).await?;
    ensure_eq!(object.metadata.managed_fields, None);
    let status = refusal(
        world
            .apply_spec(&by("two"), "a", json!({ "color": "blue" }))
            .await,
    )?;
    ensure!(
        status.message.contains("before-first-apply"),
        "{}",
        status.message
    );
    Ok(())
}

async fn labels_and_finalizers_are_applied_item_by_item(world: &World) -> Outcome {
    world.create("a", json!({})).await?;
    let patch = |finalizer: &str, label: &str| {
        Patch::Apply(json!({
            "apiVersion": world.api_version(),
            "kind": "Widget",
            "metadata": { "finalizers": [finalizer], "labels": { label: "x" } },
        }))
    };
    let api = world.widgets();
    api.patch("a", &by("one"), &patch("okt.dev/one", "one"))
        .await?;
    let both = api
        .patch("a", &by("two"), &patch("okt.dev/two", "two"))
        .await?;
    ensure_eq!(both.metadata.finalizers.as_ref().given()?.len(), 2);
    ensure_eq!(both.metadata.labels.as_ref().given()?.len(), 2);
    ensure_eq!(
        fields(&both, "two"),
        Some(json!({ "f:metadata": {
            "f:finalizers": { "v:\"okt.dev/two\"": {} },
            "f:labels": { "f:two": {} },
        } }))
    );
    Ok(())
}

behaviours! { "apply":
    further an_apply_creates_what_is_not_there,
    9 an_identical_apply_keeps_the_resource_version,
    10 a_field_of_another_applier_is_409_with_its_name,
    further several_conflicts_are_listed_by_manager,
    further a_field_written_by_an_update_is_409_too,
    further agreeing_on_a_value_shares_it,
    11 force_takes_the_field_over,
    further an_update_takes_the_field_over,
    further an_omitted_own_field_is_removed,
    further an_omitted_field_that_another_owns_stays,
    18 two_managers_keep_conditions_of_their_own,
    19 an_omitted_own_condition_is_dropped_and_others_are_not,
    further an_emptied_list_is_dropped,
    further a_set_is_merged_by_value,
    further an_atomic_list_belongs_to_one,
    further an_atomic_map_belongs_to_one,
    further a_map_is_merged_by_key,
    further an_undeclared_field_is_500,
    further one_key_twice_is_500,
    further an_apply_without_kind_is_400,
    further an_apply_of_managed_fields_is_400,
    further an_apply_without_a_manager_is_refused,
    further a_configuration_may_be_yaml,
    further resetting_managed_fields_empties_them,
    further labels_and_finalizers_are_applied_item_by_item,
}
