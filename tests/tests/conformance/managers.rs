//! Behaviors of `managedFields`.

use serde_json::json;

use crate::behaviour::behaviours;
use crate::world::{JSON, World, managers, owned};

async fn a_create_is_an_update_by_its_manager(world: &World) {
    let mut object = world.widget("a", json!({ "color": "red", "tags": ["x"] }));
    object["metadata"]["labels"] = json!({ "l": "v" });
    let path = format!("{}?fieldManager=maker", world.path());
    let made = world.post(&path, &object).await.ok();
    assert_eq!(managers(&made), ["maker Update"]);
    let entry = &made["metadata"]["managedFields"][0];
    assert_eq!(entry["fieldsType"], "FieldsV1");
    assert_eq!(entry["apiVersion"], world.api_version());
    assert!(entry["time"].is_string());
    let fields = json!({
        "f:metadata": { "f:labels": { ".": {}, "f:l": {} } },
        "f:spec": {
            ".": {},
            "f:color": {},
            "f:replicas": {},
            "f:tags": { ".": {}, "v:\"x\"": {} },
        },
    });
    assert_eq!(entry["fieldsV1"], fields);
}

async fn a_manager_without_a_name_is_named_by_its_user_agent(world: &World) {
    let agent = ("user-agent", "brewer/v1.2 (linux/amd64)");
    let headers = [("content-type", JSON), agent];
    let object = world.widget("a", json!({}));
    let made = world.send("POST", &world.path(), &headers, &object).await;
    assert_eq!(managers(&made.ok()), ["brewer Update"]);
}

async fn a_status_has_an_entry_of_its_own(world: &World) {
    world.create("a", json!({})).await.ok();
    let path = world.at("a/status?fieldManager=watcher");
    let patch = json!({ "status": { "phase": "Up" } });
    let patched = world.merge_at(&path, &patch).await.ok();
    let expected = ["unknown Update", "watcher Update status"];
    assert_eq!(managers(&patched), expected);
    assert_eq!(owned(&patched, "watcher"), ["f:status/f:phase"]);
}

async fn appliers_come_first(world: &World) {
    world.create("a", json!({ "color": "red" })).await.ok();
    let applied = world.apply("zoe", "a", json!({ "name": "abc" })).await;
    assert_eq!(managers(&applied.ok()), ["zoe Apply", "unknown Update"]);
}

async fn an_update_adds_to_the_entry_of_its_manager(world: &World) {
    world.create("a", json!({ "color": "red" })).await.ok();
    let patched = world.set("a", json!({ "name": "abc" })).await.ok();
    assert_eq!(managers(&patched), ["unknown Update"]);
    let fields = owned(&patched, "unknown");
    for field in ["f:spec/f:color", "f:spec/f:name"] {
        assert!(fields.contains(&field.to_owned()), "{fields:?}");
    }
}

async fn a_manager_of_nothing_but_an_empty_spec_owns_no_field_in_it(world: &World) {
    world.create("a", json!({})).await.ok();
    world
        .apply("zoe", "a", json!({ "color": "red" }))
        .await
        .ok();
    let applied = world.apply("zoe", "a", json!({})).await.ok();
    assert_eq!(owned(&applied, "zoe"), ["f:spec"]);
    assert_eq!(applied["spec"].get("color"), None);
}

async fn a_manager_name_of_more_than_128_bytes_is_422(world: &World) {
    let path = format!("{}?fieldManager={}", world.path(), "x".repeat(129));
    let refused = world.post(&path, &world.widget("a", json!({}))).await;
    refused.refused(
        422,
        r#"CreateOptions.meta.k8s.io "" is invalid: fieldManager: Too long: may not be more than 128 bytes"#,
    );
}

behaviours! { "managers":
    a_create_is_an_update_by_its_manager,
    a_manager_without_a_name_is_named_by_its_user_agent,
    a_status_has_an_entry_of_its_own,
    appliers_come_first,
    an_update_adds_to_the_entry_of_its_manager,
    a_manager_of_nothing_but_an_empty_spec_owns_no_field_in_it,
    a_manager_name_of_more_than_128_bytes_is_422,
}
