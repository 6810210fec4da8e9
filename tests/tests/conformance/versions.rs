//! Behaviors of a kind in several versions that are converted by name alone.

use futures::{StreamExt, TryStreamExt};
use kube::api::WatchEvent;
use serde_json::{Value, json};

use crate::behaviour::behaviours;
use crate::versioned::{ALPHA, crd, duplicates, with};
use crate::world::{TABLE, World, events_only, eventually, names, owned, released, uid, version};

async fn an_object_is_one_in_all_versions(world: &World) {
    let [alpha, beta] = with(world, crd).await;
    let spec = json!({ "color": "red", "old": "x" });
    let made = alpha.create("a", spec).await.ok();
    assert_eq!(made["apiVersion"], alpha.api_version());
    let mut seen = beta.read("a").await;
    assert_eq!(seen["apiVersion"], beta.api_version());
    // A version shows what it knows.
    assert_eq!(seen["spec"], json!({ "color": "red" }));
    assert_eq!(uid(&seen), uid(&made));
    assert_eq!(version(&seen), version(&made));
    let list = beta.get(&beta.path()).await.ok();
    assert_eq!(names(&list), ["a"]);
    assert_eq!(list["items"][0]["apiVersion"], beta.api_version());
    beta.create("a", json!({})).await.refused(409, "…");
    seen["spec"]["color"] = "blue".into();
    let put = beta.replace(&seen).await.ok();
    let seen = alpha.read("a").await;
    assert_eq!(version(&seen), version(&put));
    assert_eq!(seen["spec"], json!({ "color": "blue" }));
}

async fn a_field_that_the_storage_version_does_not_have_is_lost(world: &World) {
    let [_, beta] = with(world, crd).await;
    // Also in the response to its writer; defaults are those of the storage version.
    let spec = json!({ "new": "x", "color": "red" });
    let made = beta.create("b", spec).await.ok();
    assert_eq!(made["spec"], json!({ "color": "red" }));
    let fields = owned(&made, "unknown");
    assert!(fields.contains(&"f:spec/f:new".to_owned()), "{fields:?}");
}

async fn an_object_is_checked_in_the_version_that_it_comes_in(world: &World) {
    let [alpha, beta] = with(world, crd).await;
    let yellow = json!({ "color": "yellow" });
    alpha.create("a", yellow.clone()).await.ok();
    let refused = beta.create("b", yellow).await;
    refused.refused(422, "…spec.color: Too long…");
    let object = alpha.widget("c", json!({}));
    beta.post(&beta.path(), &object).await.refused(
        400,
        "the API version in the data (demo.okt.dev/v1alpha1) does not match the expected API version (demo.okt.dev/v1beta1)",
    );
    let patch = json!({ "apiVersion": alpha.api_version() });
    beta.merge("a", patch).await.refused(
        422,
        r#"Widget.demo.okt.dev "a" is invalid: apiVersion: Invalid value: "demo.okt.dev/v1alpha1": must be demo.okt.dev/v1beta1"#,
    );
}

async fn each_version_is_watched_with_the_same_versions_of_objects(world: &World) {
    let worlds = with(world, crd).await;
    let [alpha, beta] = &worlds;
    let from = version(&beta.get(&beta.path()).await.ok()).to_string();
    alpha.create("a", json!({ "old": "x" })).await.ok();
    beta.set("a", json!({ "color": "red" })).await.ok();
    alpha.remove("a").await.ok();
    let mut versions = Vec::new();
    for world in &worlds {
        let params = events_only().timeout(60);
        let api = world.widgets();
        let watch = api.watch(&params, &from).await.expect("a watch");
        let events: Vec<_> = watch.take(3).try_collect().await.expect("events");
        let [
            WatchEvent::Added(added),
            WatchEvent::Modified(modified),
            WatchEvent::Deleted(deleted),
        ] = events.as_slice()
        else {
            panic!("{events:?}")
        };
        let seen = [added, modified, deleted].map(|object| {
            let types = object.types.as_ref().expect("types");
            assert_eq!(types.api_version, world.api_version());
            object.metadata.resource_version.clone()
        });
        let has_old = added.data["spec"].get("old").is_some();
        assert_eq!(has_old, world.version == ALPHA);
        versions.push(seen);
    }
    assert_eq!(versions[0], versions[1]);
}

async fn what_is_selected_and_printed_is_of_the_version(world: &World) {
    let worlds = with(world, crd).await;
    let [alpha, beta] = &worlds;
    alpha.create("a", json!({ "old": "x" })).await.ok();
    alpha.create("b", json!({ "old": "y" })).await.ok();
    let old = "?fieldSelector=spec.old%3Dx";
    let found = alpha.get(&format!("{}{old}", alpha.path())).await.ok();
    assert_eq!(names(&found), ["a"]);
    let refused = beta.get(&format!("{}{old}", beta.path())).await;
    refused.refused(400, "field label not supported: spec.old");
    for (world, expected) in [(alpha, ["Name", "Age"]), (beta, ["Name", "New"])] {
        let table = world.get_as(&world.path(), TABLE).await.ok();
        let columns = table["columnDefinitions"].as_array().expect("columns");
        let columns: Vec<_> = columns.iter().map(|column| &column["name"]).collect();
        assert_eq!(columns, expected);
    }
}

async fn who_applies_is_one_manager_and_who_updates_is_one_for_each_version(world: &World) {
    let [alpha, beta] = with(world, duplicates).await;
    let both = json!({ "color": "red", "old": "x" });
    alpha.apply("m", "a", both).await.ok();
    // A field that the manager no longer sets is removed, whatever the version.
    let applied = beta.apply("m", "a", json!({ "color": "red" })).await.ok();
    assert_eq!(applied["spec"], json!({ "color": "red" }));
    let versions = |object: &Value, manager: &str| -> Vec<Value> {
        let entries = object["metadata"]["managedFields"].as_array();
        let entries = entries.expect("entries").iter();
        let own = entries.filter(|entry| entry["manager"] == manager);
        own.map(|entry| entry["apiVersion"].clone()).collect()
    };
    assert_eq!(versions(&applied, "m"), [beta.api_version()]);
    for (world, spec) in [
        (&alpha, json!({ "color": "blue" })),
        (&beta, json!({ "old": "y" })),
    ] {
        let path = world.at("a?fieldManager=u");
        world.merge_at(&path, &json!({ "spec": spec })).await.ok();
    }
    let mut found = versions(&beta.read("a").await, "u");
    found.sort_by_key(Value::to_string);
    assert_eq!(found, [alpha.api_version(), beta.api_version()]);
    beta.apply("n", "a", json!({ "color": "green" })).await.refused(
        409,
        r#"Apply failed with 1 conflict: conflict with "u" using demo.okt.dev/v1alpha1: .spec.color"#,
    );
}

async fn a_deletion_in_one_version_is_one_in_all(world: &World) {
    let [alpha, beta] = with(world, duplicates).await;
    beta.create_held("a").await;
    let deleted = beta.remove("a").await.ok();
    assert_eq!(deleted["apiVersion"], beta.api_version());
    let seen = alpha.read("a").await;
    assert!(seen["metadata"]["deletionTimestamp"].is_string());
    alpha.merge("a", released()).await.ok();
    assert!(beta.is_gone("a").await);
}

async fn an_owner_by_any_version_is_an_owner(world: &World) {
    let [alpha, beta] = with(world, duplicates).await;
    let owner = alpha.create("a", json!({})).await.ok();
    let owner = json!({
        "apiVersion": beta.api_version(), "kind": "Widget",
        "name": "a", "uid": uid(&owner),
    });
    let map = json!({ "metadata": { "name": "owned", "ownerReferences": [owner] } });
    let maps = world.path_of("v1", "configmaps");
    world.post(&maps, &map).await.ok();
    alpha.remove("a").await.ok();
    eventually("what it owns is collected", async || {
        let map = world.get(&format!("{maps}/owned")).await;
        (map.code == 404).then_some(())
    })
    .await;
}

behaviours! { "versions":
    an_object_is_one_in_all_versions,
    a_field_that_the_storage_version_does_not_have_is_lost,
    an_object_is_checked_in_the_version_that_it_comes_in,
    each_version_is_watched_with_the_same_versions_of_objects,
    what_is_selected_and_printed_is_of_the_version,
    who_applies_is_one_manager_and_who_updates_is_one_for_each_version,
    a_deletion_in_one_version_is_one_in_all,
    an_owner_by_any_version_is_an_owner,
}
