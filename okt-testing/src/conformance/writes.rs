//! Further behaviours of writes that random operations revealed: whether a write counts as a change,
//! the resulting object, and the resulting field ownership.

use core::{pin::pin, time::Duration};

use futures::StreamExt;
use k8s_openapi::api::{
    coordination::v1::Lease,
    core::v1::{ConfigMap, Secret},
};
use kube::{
    Api,
    api::{
        DeleteParams, DynamicObject, Patch, PatchParams, PostParams, PropagationPolicy, WatchEvent,
    },
};
use serde_json::{Value, json};

use super::{
    claim::{Failure, Given, Outcome, refusal},
    world::{World, by, events_only, fields_of, released, version},
};

const JSON: [(&str, &str); 1] = [("content-type", "application/json")];

async fn an_applied_null_is_422(world: &World) -> Outcome {
    let applied = world
        .apply_spec(&by("m"), "a", json!({ "color": null }))
        .await;
    let status = refusal(applied)?;
    ensure_eq!(status.code, 422);
    ensure!(status.message.contains("spec.color"), "{}", status.message);
    Ok(())
}

async fn an_applied_null_is_not_held_against_alternatives(world: &World) -> Outcome {
    let applied = world
        .apply_spec(&by("m"), "a", json!({ "either": null }))
        .await;
    let causes = refusal(applied)?.details.given()?.causes;
    let alternatives = causes.iter().any(|cause| cause.message.contains("oneOf"));
    ensure!(!alternatives, "{causes:?}");
    Ok(())
}

async fn a_removal_by_the_last_finalizer_carries_what_was_stored(world: &World) -> Outcome {
    let mut object = world.widget("a", json!({ "color": "red" }));
    object.metadata.finalizers = Some(vec!["okt.dev/a".to_owned()]);
    let api = world.widgets();
    api.create(&PostParams::default(), &object).await?;
    let marked = api.delete("a", &DeleteParams::default()).await?;
    let from = version(&marked.left().given()?)?;
    api.patch("a", &PatchParams::default(), &released()).await?;
    let mut events = pin!(api.watch(&events_only(), &from).await?);
    let WatchEvent::Deleted(last) = events.next().await.given()?? else {
        return Err(Failure::new("expected a removal"));
    };
    ensure_eq!(last.metadata.finalizers, Some(vec!["okt.dev/a".to_owned()]));
    Ok(())
}

async fn an_apply_that_changes_nothing_keeps_its_version_in_later_seconds_too(
    world: &World,
) -> Outcome {
    // A creation stores fewer fields than it shows: defaults are stored with the next write.
    world
        .apply_spec(&by("m"), "a", json!({ "color": "red" }))
        .await?;
    let first = world
        .apply_spec(&by("m"), "a", json!({ "color": "red" }))
        .await?;
    tokio::time::sleep(Duration::from_millis(1100)).await;
    let again = world
        .apply_spec(&by("m"), "a", json!({ "color": "red" }))
        .await?;
    ensure_eq!(version(&again)?, version(&first)?);
    Ok(())
}

async fn an_apply_of_an_empty_map_is_a_change_each_time(world: &World) -> Outcome {
    let config = Patch::Apply(json!({
        "apiVersion": world.api_version(),
        "kind": "Widget",
        "metadata": { "name": "a", "labels": {} },
        "spec": {},
    }));
    let api = world.widgets();
    let first = api.patch("a", &by("m"), &config).await?;
    // The server compares with the object in its cache.
    world.caught_up().await?;
    tokio::time::sleep(Duration::from_millis(1100)).await;
    let again = api.patch("a", &by("m"), &config).await?;
    ensure!(version(&again)? != version(&first)?);
    Ok(())
}

/// Creates a widget with several managers, in the order of their names.
async fn of_two_managers(world: &World) -> Result<DynamicObject, Failure> {
    let two = |manager: &str| PatchParams {
        field_manager: Some(manager.to_owned()),
        ..PatchParams::default()
    };
    world
        .apply_spec(&by("a"), "a", json!({ "color": "red" }))
        .await?;
    let api = world.widgets();
    let label = |key: &str| Patch::Merge(json!({ "metadata": { "labels": { key: "v" } } }));
    api.patch("a", &two("b"), &label("b")).await?;
    let object = api.patch("a", &two("c"), &label("c")).await?;
    // The server compares with the object in its cache.
    world.caught_up().await?;
    Ok(object)
}

async fn another_order_of_managed_fields_is_no_change(world: &World) -> Outcome {
    let before = of_two_managers(world).await?;
    let mut turned = before.clone();
    let entries = turned.metadata.managed_fields.as_mut().given()?;
    ensure_eq!(entries.len(), 3);
    entries.reverse();
    let after = world.replace(&turned).await?;
    ensure_eq!(version(&after)?, version(&before)?);
    ensure_eq!(
        after.metadata.managed_fields,
        before.metadata.managed_fields
    );
    Ok(())
}

async fn other_times_of_managed_fields_are_no_change_unless_they_change_the_order(
    world: &World,
) -> Outcome {
    let before = of_two_managers(world).await?;
    let mut later = before.clone();
    let times = [
        "2026-01-01T00:00:00Z",
        "2026-01-01T00:00:01Z",
        "2026-01-01T00:00:02Z",
    ];
    let entries = later.metadata.managed_fields.as_mut().given()?;
    for (entry, time) in entries.iter_mut().zip(times) {
        entry.time = Some(serde_json::from_value(json!(time))?);
    }
    let after = world.replace(&later).await?;
    ensure_eq!(version(&after)?, version(&before)?);
    ensure_eq!(
        after.metadata.managed_fields,
        before.metadata.managed_fields
    );

    let entries = later.metadata.managed_fields.as_mut().given()?;
    entries[1].time = Some(serde_json::from_value(json!("2026-01-01T00:00:03Z"))?);
    let after = world.replace(&later).await?;
    ensure!(version(&after)? != version(&before)?);
    let entries = after.metadata.managed_fields.given()?;
    let managers: Vec<_> = entries
        .iter()
        .map(|entry| entry.manager.as_deref())
        .collect();
    ensure_eq!(managers, [Some("a"), Some("c"), Some("b")]);
    Ok(())
}

async fn replicas_go_to_who_scales_them(world: &World) -> Outcome {
    world
        .apply_spec(&by("m"), "a", json!({ "color": "red", "replicas": 2 }))
        .await?;
    let params = PatchParams {
        field_manager: Some("scaler".to_owned()),
        ..PatchParams::default()
    };
    let patch = Patch::Merge(json!({ "spec": { "replicas": 5 } }));
    world.widgets().patch_scale("a", &params, &patch).await?;
    let scaled = world.get("a").await?;
    let replicas = json!({ "f:spec": { "f:replicas": {} } });
    ensure_eq!(fields_of(&scaled, "scaler"), Some(replicas));
    let left = fields_of(&scaled, "m").given()?;
    ensure!(left["f:spec"].get("f:replicas").is_none(), "{left}");
    Ok(())
}

async fn options_in_the_body_of_a_deletion_are_those_that_count(world: &World) -> Outcome {
    world.create("a", json!({})).await?;
    let path = format!("{}/a?dryRun=All", world.path());
    let options = json!({ "apiVersion": "v1", "kind": "DeleteOptions" });
    let reply = world
        .send("DELETE", &path, &JSON, options.to_string())
        .await?;
    ensure_eq!(reply.code, 200);
    ensure!(world.widgets().get_opt("a").await?.is_none());
    Ok(())
}

async fn a_deletion_that_waits_for_dependents_answers_the_marked_object(world: &World) -> Outcome {
    for (name, policy, finalizer) in [
        ("a", PropagationPolicy::Foreground, "foregroundDeletion"),
        ("b", PropagationPolicy::Orphan, "orphan"),
    ] {
        world.create(name, json!({})).await?;
        let params = DeleteParams {
            propagation_policy: Some(policy),
            ..DeleteParams::default()
        };
        let marked = world
            .widgets()
            .delete(name, &params)
            .await?
            .left()
            .given()?;
        ensure!(marked.metadata.deletion_timestamp.is_some());
        let finalizers = marked.metadata.finalizers.unwrap_or_default();
        ensure_eq!(finalizers, [finalizer]);
    }
    Ok(())
}

async fn a_put_that_would_create_is_409_if_it_has_a_uid(world: &World) -> Outcome {
    let uid = "00000000-0000-4000-8000-999999999999";
    let lease = json!({ "metadata": { "name": "a", "uid": uid }, "spec": {} });
    let lease = serde_json::from_value(lease)?;
    let leases: Api<Lease> = world.namespaced();
    let outcome = leases.replace("a", &PostParams::default(), &lease).await;
    let status = refusal(outcome)?;
    ensure_eq!(status.code, 409);
    let end = "UID in object meta: ";
    ensure!(status.message.ends_with(end), "{}", status.message);
    Ok(())
}

async fn a_null_in_a_secret_is_an_empty_value_that_is_owned(world: &World) -> Outcome {
    let secrets: Api<Secret> = world.namespaced();
    let config = Patch::Apply(json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": { "name": "a" },
        "data": { "k": "" },
    }));
    secrets.patch("a", &by("m"), &config).await?;
    let patch = serde_json::from_value(json!([{ "op": "add", "path": "/data/k", "value": null }]))?;
    let params = PatchParams {
        field_manager: Some("n".to_owned()),
        ..PatchParams::default()
    };
    let patched = secrets
        .patch("a", &params, &Patch::Json::<()>(patch))
        .await?;
    ensure_eq!(patched.data.given()?["k"].0, b"");
    let entries = patched.metadata.managed_fields.given()?;
    let owners: Vec<_> = entries
        .iter()
        .map(|entry| entry.manager.as_deref())
        .collect();
    ensure_eq!(owners, [Some("n")]);
    Ok(())
}

async fn a_finalizer_that_comes_too_late_is_named_once(world: &World) -> Outcome {
    let mut object = world.widget("a", json!({}));
    object.metadata.finalizers = Some(vec!["okt.dev/a".to_owned()]);
    let api = world.widgets();
    api.create(&PostParams::default(), &object).await?;
    api.delete("a", &DeleteParams::default()).await?;
    let finalizers = json!(["okt.dev/a", "okt.dev/c", "okt.dev/b", "okt.dev/c"]);
    let patched = world
        .merge("a", json!({ "metadata": { "finalizers": finalizers } }))
        .await;
    let status = refusal(patched)?;
    let end = "found new finalizers []string{\"okt.dev/b\", \"okt.dev/c\"}";
    ensure!(status.message.contains(end), "{}", status.message);
    Ok(())
}

async fn more_than_ten_updaters_are_one_of_old(world: &World) -> Outcome {
    let maps: Api<ConfigMap> = world.namespaced();
    maps.create(
        &PostParams::default(),
        &serde_json::from_value(json!({ "metadata": { "name": "many" }, "data": { "k": "v" } }))?,
    )
    .await?;
    let mut last = None;
    for number in 0..12 {
        let params = PatchParams {
            field_manager: Some(format!("m{number}")),
            ..PatchParams::default()
        };
        let patch = Patch::Merge(json!({ "data": { format!("k{number}"): "v" } }));
        last = Some(maps.patch("many", &params, &patch).await?);
    }
    let entries: Value = serde_json::to_value(last.given()?.metadata.managed_fields)?;
    let entries = entries.as_array().given()?;
    ensure_eq!(entries.len(), 10);
    ensure!(
        entries
            .iter()
            .any(|entry| entry["manager"] == "ancient-changes")
    );
    Ok(())
}

behaviours! { "writes":
    further an_applied_null_is_422,
    further an_applied_null_is_not_held_against_alternatives,
    further a_removal_by_the_last_finalizer_carries_what_was_stored,
    further an_apply_that_changes_nothing_keeps_its_version_in_later_seconds_too,
    further an_apply_of_an_empty_map_is_a_change_each_time,
    further another_order_of_managed_fields_is_no_change,
    further other_times_of_managed_fields_are_no_change_unless_they_change_the_order,
    further replicas_go_to_who_scales_them,
    further options_in_the_body_of_a_deletion_are_those_that_count,
    further a_deletion_that_waits_for_dependents_answers_the_marked_object,
    further a_put_that_would_create_is_409_if_it_has_a_uid,
    further a_null_in_a_secret_is_an_empty_value_that_is_owned,
    further a_finalizer_that_comes_too_late_is_named_once,
    further more_than_ten_updaters_are_one_of_old,
}
