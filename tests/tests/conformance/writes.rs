//! Further behaviors of writes that random operations revealed: whether a write counts as a change, the resulting
//! object, and the resulting field ownership.

use core::pin::pin;
use core::time::Duration;

use futures::StreamExt;
use kube::api::WatchEvent;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::behaviour::behaviours;
use crate::world::{JSON_PATCH, World, events_only, managers, names, owned, released, version};

async fn an_applied_null_is_422(world: &World) {
    let refused = world.apply("m", "a", json!({ "color": null })).await;
    refused.refused(422, "…spec.color…");
    // It is not held against alternatives.
    let refused = world.apply("m", "a", json!({ "either": null })).await;
    let status = refused.refused(422, "…");
    assert!(!status.to_string().contains("oneOf"), "{status}");
}

async fn a_removal_by_the_last_finalizer_carries_what_was_stored(world: &World) {
    world.create_held("a").await;
    let marked = world.remove("a").await.ok();
    world.merge("a", released()).await.ok();
    let api = world.widgets();
    let from = version(&marked).to_string();
    let mut events = pin!(api.watch(&events_only(), &from).await.expect("a watch"));
    let event = events.next().await.expect("an event").expect("no error");
    let WatchEvent::Deleted(last) = event else {
        panic!("{event:?}")
    };
    let finalizers = last.metadata.finalizers;
    assert_eq!(finalizers, Some(vec!["okt.dev/a".to_owned()]));
}

async fn an_apply_that_changes_nothing_keeps_its_version_in_later_seconds_too(world: &World) {
    let apply = async || {
        let applied = world.apply("m", "a", json!({ "color": "red" })).await;
        version(&applied.ok())
    };
    // A creation stores fewer fields than it shows: defaults are stored with the next write.
    apply().await;
    let first = apply().await;
    sleep(Duration::from_millis(1100)).await;
    assert_eq!(apply().await, first);
}

async fn an_apply_of_an_empty_map_is_a_change_each_time(world: &World) {
    let mut config = world.widget("a", json!({}));
    config["metadata"]["labels"] = json!({});
    let first = world.apply_at(&world.at("a"), "m", &config).await.ok();
    // The server compares with the object in its cache.
    world.caught_up().await;
    sleep(Duration::from_millis(1100)).await;
    let again = world.apply_at(&world.at("a"), "m", &config).await.ok();
    assert_ne!(version(&again), version(&first));
}

/// Creates a widget with three managers, in the order of their names.
async fn of_three_managers(world: &World) -> Value {
    world.apply("a", "a", json!({ "color": "red" })).await.ok();
    for manager in ["b", "c"] {
        let path = world.at(&format!("a?fieldManager={manager}"));
        let label = json!({ "metadata": { "labels": { manager: "v" } } });
        world.merge_at(&path, &label).await.ok();
    }
    // The server compares with the object in its cache.
    world.caught_up().await;
    world.read("a").await
}

fn entries(object: &mut Value) -> &mut Vec<Value> {
    let entries = object["metadata"]["managedFields"].as_array_mut();
    entries.expect("entries")
}

async fn another_order_of_managed_fields_is_no_change(world: &World) {
    let before = of_three_managers(world).await;
    let mut reversed = before.clone();
    let entries = entries(&mut reversed);
    assert_eq!(entries.len(), 3);
    entries.reverse();
    let after = world.replace(&reversed).await.ok();
    assert_eq!(after["metadata"], before["metadata"]);
}

async fn other_times_of_managed_fields_are_no_change_unless_they_change_the_order(world: &World) {
    let before = of_three_managers(world).await;
    let mut later = before.clone();
    for (second, entry) in entries(&mut later).iter_mut().enumerate() {
        entry["time"] = format!("2026-01-01T00:00:0{second}Z").into();
    }
    let after = world.replace(&later).await.ok();
    assert_eq!(after["metadata"], before["metadata"]);

    entries(&mut later)[1]["time"] = "2026-01-01T00:00:03Z".into();
    let after = world.replace(&later).await.ok();
    assert_ne!(version(&after), version(&before));
    assert_eq!(managers(&after), ["a Apply", "c Update", "b Update"]);
}

async fn replicas_go_to_who_scales_them(world: &World) {
    let both = json!({ "color": "red", "replicas": 2 });
    world.apply("m", "a", both).await.ok();
    let path = world.at("a/scale?fieldManager=scaler");
    let patch = json!({ "spec": { "replicas": 5 } });
    world.merge_at(&path, &patch).await.ok();
    let scaled = world.read("a").await;
    assert_eq!(owned(&scaled, "scaler"), ["f:spec/f:replicas"]);
    assert_eq!(owned(&scaled, "m"), ["f:spec/f:color"]);
}

async fn a_null_in_a_secret_is_an_empty_value_that_is_owned(world: &World) {
    let path = format!("{}/a", world.path_of("v1", "secrets"));
    let config = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": { "name": "a" },
        "data": { "k": "" },
    });
    world.apply_at(&path, "m", &config).await.ok();
    let steps = json!([{ "op": "add", "path": "/data/k", "value": null }]);
    let path = format!("{path}?fieldManager=n");
    let patched = world.patch(&path, JSON_PATCH, &steps).await.ok();
    assert_eq!(patched["data"], json!({ "k": "" }));
    assert_eq!(managers(&patched), ["n Update"]);
}

async fn more_than_ten_updaters_are_one_of_old(world: &World) {
    let maps = world.path_of("v1", "configmaps");
    let map = json!({ "metadata": { "name": "many" }, "data": { "k": "v" } });
    world.post(&maps, &map).await.ok();
    for number in 0..12 {
        let path = format!("{maps}/many?fieldManager=m{number}");
        let patch = json!({ "data": { format!("k{number}"): "v" } });
        world.merge_at(&path, &patch).await.ok();
    }
    let managers = managers(&world.get(&format!("{maps}/many")).await.ok());
    assert_eq!(managers.len(), 10);
    assert!(managers.contains(&"ancient-changes Update".to_owned()));
}

async fn a_custom_resource_is_created_at_the_path_of_any_object(world: &World) {
    let path = world.at("a");
    let empty = "the object provided is unrecognized (must be of type Widget): couldn't get version/kind; json parse error: unexpected end of JSON input (<empty>)";
    world.post(&path, "").await.refused(400, empty);
    for name in ["a", "b"] {
        let widget = world.widget(name, json!({}));
        world.post(&path, &widget).await.ok();
    }
    assert_eq!(names(&world.get(&world.path()).await.ok()), ["a", "b"]);

    let widget = world.widget("c", json!({}));
    let refused = world.post(&format!("{path}/status"), &widget).await;
    let message = r#"create is not supported on resources of kind "widgets.demo.okt.dev""#;
    refused.refused(405, message);
    let cluster = format!("/apis/{}/widgets/a", world.api_version());
    world.post(&cluster, &widget).await.refused(404, "…");
    let maps = world.path_of("v1", "configmaps");
    let map = json!({ "metadata": { "name": "a" } });
    let refused = world.post(&format!("{maps}/a"), &map).await;
    refused.refused(405, "…");
}

behaviours! { "writes":
    an_applied_null_is_422,
    a_removal_by_the_last_finalizer_carries_what_was_stored,
    an_apply_that_changes_nothing_keeps_its_version_in_later_seconds_too,
    an_apply_of_an_empty_map_is_a_change_each_time,
    another_order_of_managed_fields_is_no_change,
    other_times_of_managed_fields_are_no_change_unless_they_change_the_order,
    replicas_go_to_who_scales_them,
    a_null_in_a_secret_is_an_empty_value_that_is_owned,
    more_than_ten_updaters_are_one_of_old,
    a_custom_resource_is_created_at_the_path_of_any_object,
}
