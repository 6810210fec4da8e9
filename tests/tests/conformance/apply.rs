//! Behaviors of server-side apply.

use serde_json::json;

use crate::behaviour::behaviours;
use crate::reply::Reply;
use crate::world::{APPLY, World, managers, owned, version};

async fn an_apply_creates_what_is_not_there(world: &World) {
    let made = world.apply("m", "a", json!({ "color": "red" })).await.ok();
    assert_eq!(made["metadata"]["generation"], 1);
    assert_eq!(made["spec"], json!({ "color": "red", "replicas": 1 }));
    assert_eq!(owned(&made, "m"), ["f:spec/f:color"]);
}

async fn an_apply_with_a_version_creates_what_is_not_there_and_changes_nothing_else(world: &World) {
    let apply = async |color: &str| {
        let mut config = world.widget("a", json!({ "color": color }));
        // No object has this version: it is that of the empty store.
        config["metadata"]["resourceVersion"] = "1".into();
        world
            .apply_at(&world.at("a"), "m&force=true", &config)
            .await
    };
    let made = apply("red").await.ok();
    assert_eq!(owned(&made, "m"), ["f:spec/f:color"]);
    apply("blue").await.refused(409, "…");
    assert_eq!(version(&world.read("a").await), version(&made));
}

async fn an_identical_apply_keeps_the_resource_version(world: &World) {
    let apply = async || {
        let applied = world.apply("m", "a", json!({ "color": "red" })).await;
        version(&applied.ok())
    };
    // The defaults of the status are written with the first update.
    let (made, settled, again) = (apply().await, apply().await, apply().await);
    assert_ne!(made, settled);
    assert_eq!(settled, again);
    let status = json!({ "phase": "Up" });
    let first = world.apply_status("m", "a", status.clone()).await.ok();
    let second = world.apply_status("m", "a", status).await.ok();
    assert_eq!(first["metadata"], second["metadata"]);
}

async fn a_field_of_another_applier_is_409_with_its_name(world: &World) {
    let both = json!({ "color": "red", "replicas": 2 });
    world.apply("one", "a", both).await.ok();
    let refused = world.apply("two", "a", json!({ "color": "blue" })).await;
    let status = refused.refused(
        409,
        r#"Apply failed with 1 conflict: conflict with "one": .spec.color"#,
    );
    assert_eq!(status["reason"], "Conflict");
    let cause = &status["details"]["causes"][0];
    assert_eq!(cause["reason"], "FieldManagerConflict");
    assert_eq!(cause["field"], ".spec.color");
    let both = json!({ "color": "blue", "replicas": 3 });
    let refused = world.apply("two", "a", both).await;
    refused.refused(
        409,
        "Apply failed with 2 conflicts: conflicts with \"one\":\n- .spec.color\n- .spec.replicas",
    );
}

async fn a_field_written_by_an_update_is_409_too(world: &World) {
    world.create("a", json!({ "color": "red" })).await.ok();
    let refused = world.apply("two", "a", json!({ "color": "blue" })).await;
    refused.refused(
        409,
        r#"Apply failed with 1 conflict: conflict with "unknown" using demo.okt.dev/v1: .spec.color"#,
    );
}

async fn agreeing_on_a_value_shares_it(world: &World) {
    world
        .apply("one", "a", json!({ "color": "red" }))
        .await
        .ok();
    let shared = world
        .apply("two", "a", json!({ "color": "red" }))
        .await
        .ok();
    for manager in ["one", "two"] {
        assert_eq!(owned(&shared, manager), ["f:spec/f:color"]);
    }
}

async fn force_takes_the_field_over(world: &World) {
    world
        .apply("one", "a", json!({ "color": "red" }))
        .await
        .ok();
    let taken = world
        .force("two", "a", json!({ "color": "blue" }))
        .await
        .ok();
    assert_eq!(taken["spec"]["color"], "blue");
    assert_eq!(managers(&taken), ["two Apply"]);
    assert_eq!(owned(&taken, "two"), ["f:spec/f:color"]);
}

async fn an_update_takes_the_field_over(world: &World) {
    let both = json!({ "color": "red", "name": "abc" });
    world.apply("one", "a", both).await.ok();
    let updated = world.set("a", json!({ "color": "blue" })).await.ok();
    assert_eq!(owned(&updated, "one"), ["f:spec/f:name"]);
    assert_eq!(owned(&updated, "unknown"), ["f:spec/f:color"]);
}

async fn an_omitted_own_field_is_removed_unless_another_owns_it(world: &World) {
    let both = json!({ "color": "red", "name": "abc" });
    let color = json!({ "color": "red" });
    world.apply("one", "a", both.clone()).await.ok();
    let applied = world.apply("one", "a", color.clone()).await.ok();
    assert_eq!(applied["spec"], json!({ "color": "red", "replicas": 1 }));
    world.apply("one", "a", both).await.ok();
    world.apply("two", "a", json!({ "name": "abc" })).await.ok();
    let applied = world.apply("one", "a", color).await.ok();
    assert_eq!(applied["spec"]["name"], "abc");
}

async fn an_undeclared_field_is_500(world: &World) {
    world.create("a", json!({})).await.ok();
    let refused = world.apply_status("m", "a", json!({ "bogus": 1 })).await;
    refused.refused(500, "….status.bogus: field not declared in schema");
}

async fn an_apply_without_kind_is_400(world: &World) {
    world.create("a", json!({})).await.ok();
    for body in [
        json!({ "spec": {} }),
        json!({ "kind": "Widget", "spec": {} }),
    ] {
        let refused = world.apply_at(&world.at("a"), "m", &body).await;
        refused.refused(400, "…");
    }
}

async fn an_apply_of_managed_fields_is_400(world: &World) {
    world.create("a", json!({})).await.ok();
    let mut body = world.widget("a", json!({}));
    body["metadata"]["managedFields"] = json!([]);
    let refused = world.apply_at(&world.at("a"), "m", &body).await;
    refused.refused(400, "metadata.managedFields must be nil");
}

async fn apply_yaml(world: &World, query: &str) -> Reply {
    let version = world.api_version();
    let body =
        format!("apiVersion: {version}\nkind: Widget\nmetadata:\n  name: a\nspec:\n  color: red\n");
    world
        .patch(&format!("{}{query}", world.at("a")), APPLY, &body)
        .await
}

async fn a_configuration_may_be_yaml_and_needs_a_manager(world: &World) {
    apply_yaml(world, "").await.refused(422, "…fieldManager…");
    apply_yaml(world, "?fieldManager=m").await.ok();
    assert_eq!(world.read("a").await["spec"]["color"], "red");
}

async fn resetting_managed_fields_empties_them(world: &World) {
    world
        .apply("one", "a", json!({ "color": "red" }))
        .await
        .ok();
    let object = world.mark("a", json!({ "managedFields": [{}] })).await;
    assert_eq!(managers(&object.ok()), [""; 0]);
    let refused = world.apply("two", "a", json!({ "color": "blue" })).await;
    refused.refused(409, "…before-first-apply…");
}

async fn an_apply_to_what_has_not_the_types_of_its_schema_is_500(world: &World) {
    let color = json!({ "color": "red" });
    world.apply("m", "a", color.clone()).await.ok();
    // A list is accepted for a string with a format; such an object gets no managed fields.
    let patched = world.set("a", json!({ "started": ["noon"] })).await.ok();
    assert_eq!(managers(&patched), [""; 0]);
    let message = format!(
        "failed to create manager for existing fields: failed to convert new object ({}/a; demo.okt.dev/v1, Kind=Widget) to smd typed: .spec.started: expected any scalar, got &{{[noon]}}",
        world.namespace,
    );
    world.apply("m", "a", color).await.refused(500, &message);
}

behaviours! { "apply":
    an_apply_creates_what_is_not_there,
    an_apply_with_a_version_creates_what_is_not_there_and_changes_nothing_else,
    an_identical_apply_keeps_the_resource_version,
    a_field_of_another_applier_is_409_with_its_name,
    a_field_written_by_an_update_is_409_too,
    agreeing_on_a_value_shares_it,
    force_takes_the_field_over,
    an_update_takes_the_field_over,
    an_omitted_own_field_is_removed_unless_another_owns_it,
    an_undeclared_field_is_500,
    an_apply_without_kind_is_400,
    an_apply_of_managed_fields_is_400,
    a_configuration_may_be_yaml_and_needs_a_manager,
    resetting_managed_fields_empties_them,
    an_apply_to_what_has_not_the_types_of_its_schema_is_500,
}
