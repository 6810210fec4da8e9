//! Behaviors of creating, reading, changing and deleting objects.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::behaviour::behaviours;
use crate::world::{World, names, uid, version};

async fn a_created_object_has_identity_and_generation_one(world: &World) {
    let made = world.create("a", json!({})).await.ok();
    let metadata = &made["metadata"];
    assert!(metadata["uid"].is_string(), "{made}");
    assert!(metadata["creationTimestamp"].is_string(), "{made}");
    assert_eq!(metadata["generation"], 1);
    assert!(version(&made) > 0);
}

async fn creating_twice_is_409_already_exists(world: &World) {
    world.create("a", json!({})).await.ok();
    let again = world.create("a", json!({})).await;
    let status = again.refused(409, r#"widgets.demo.okt.dev "a" already exists"#);
    assert_eq!(status["reason"], "AlreadyExists");
}

async fn a_get_of_nothing_is_404(world: &World) {
    let nothing = world.get(&world.at("a")).await;
    nothing.refused(404, r#"widgets.demo.okt.dev "a" not found"#);
}

async fn a_list_has_a_resource_version(world: &World) {
    let made = world.create("a", json!({})).await.ok();
    let list = world.get(&world.path()).await.ok();
    assert!(version(&list) >= version(&made), "{list}");
    assert_eq!(names(&list), ["a"]);
}

async fn the_generation_moves_with_spec_alone(world: &World) {
    world.create("a", json!({})).await.ok();
    let labelled = world.mark("a", json!({ "labels": { "a": "b" } })).await;
    assert_eq!(labelled.ok()["metadata"]["generation"], 1);
    let observed = world.apply_status("m", "a", json!({ "phase": "Up" })).await;
    assert_eq!(observed.ok()["metadata"]["generation"], 1);
    let changed = world.set("a", json!({ "color": "red" })).await;
    assert_eq!(changed.ok()["metadata"]["generation"], 2);
}

async fn a_put_with_an_old_resource_version_is_409(world: &World) {
    let mut old = world.create("a", json!({})).await.ok();
    world.set("a", json!({ "color": "red" })).await.ok();
    old["spec"]["color"] = "blue".into();
    let status = world.replace(&old).await.refused(
        409,
        r#"Operation cannot be fulfilled on widgets.demo.okt.dev "a": the object has been modified; please apply your changes to the latest version and try again"#,
    );
    assert_eq!(status["reason"], "Conflict");
}

async fn a_put_of_a_custom_resource_without_a_version_is_422(world: &World) {
    let mut object = world.create("a", json!({})).await.ok();
    object["metadata"]["resourceVersion"] = Value::Null;
    let refused = world.replace(&object).await;
    refused.refused(422, "…metadata.resourceVersion: Invalid value: 0…");
}

async fn a_put_with_the_current_version_is_written(world: &World) {
    let mut object = world.create("a", json!({})).await.ok();
    object["spec"]["color"] = "red".into();
    let new = world.replace(&object).await.ok();
    assert_eq!(new["spec"]["color"], "red");
    assert_eq!(uid(&new), uid(&object));
    assert_ne!(version(&new), version(&object));
}

async fn a_put_that_changes_nothing_keeps_the_resource_version(world: &World) {
    let object = world.create("a", json!({})).await.ok();
    // The defaults of the status are written with the first update.
    let object = world.replace(&object).await.ok();
    let same = world.replace(&object).await.ok();
    assert_eq!(version(&same), version(&object));
}

async fn a_put_or_a_patch_of_nothing_is_404(world: &World) {
    let object = world.widget("a", json!({}));
    world.replace(&object).await.refused(404, "…");
    world.merge("a", json!({})).await.refused(404, "…");
}

async fn an_object_of_the_past_is_not_written_over_its_successor(world: &World) {
    let mut old = world.create("a", json!({})).await.ok();
    world.remove("a").await.ok();
    let new = world.create("a", json!({})).await.ok();
    old["metadata"]["resourceVersion"] = new["metadata"]["resourceVersion"].clone();
    let refused = world.replace(&old).await;
    refused.refused(409, "…Precondition failed: UID in precondition…");
}

async fn identity_cannot_be_patched_away(world: &World) {
    let object = world.create("a", json!({})).await.ok();
    let patch = json!({ "creationTimestamp": null, "generation": 9 });
    let patched = world.mark("a", patch).await.ok();
    let (before, after) = (&object["metadata"], &patched["metadata"]);
    assert_eq!(after["creationTimestamp"], before["creationTimestamp"]);
    assert_eq!(after["generation"], 1);
    let other = world.mark("a", json!({ "uid": "x" })).await;
    let immutable = r#"…metadata.uid: Invalid value: "x": field is immutable"#;
    other.refused(422, immutable);
}

async fn a_dry_run_is_not_persisted(world: &World) {
    let path = format!("{}?dryRun=All", world.path());
    let made = world.post(&path, &world.widget("a", json!({}))).await.ok();
    // The answer is what would have been stored.
    assert_eq!(made["spec"]["replicas"], 1);
    assert!(world.is_gone("a").await);

    world.create("b", json!({})).await.ok();
    let path = format!("{}?dryRun=All", world.at("b"));
    let patch = json!({ "spec": { "color": "red" } });
    world.merge_at(&path, &patch).await.ok();
    assert!(world.read("b").await["spec"].get("color").is_none());
    world.delete(&path).await.ok();
    world.read("b").await;
}

async fn generate_name_gives_each_object_its_own(world: &World) {
    let mut object = world.widget("x", json!({}));
    object["metadata"] = json!({ "generateName": "w-" });
    let mut names = BTreeSet::new();
    for _ in 0..100 {
        let made = world.post(&world.path(), &object).await.ok();
        let name = made["metadata"]["name"].as_str().expect("a name");
        assert!(name.starts_with("w-") && name.len() == 7, "{name}");
        names.insert(name.to_owned());
    }
    assert_eq!(names.len(), 100);
}

async fn a_name_that_is_no_dns_subdomain_is_422(world: &World) {
    for name in ["A", "a_b", "-a", "a-"] {
        let refused = world.create(name, json!({})).await;
        refused.refused(422, "…RFC 1123 subdomain…");
    }
}

async fn a_label_that_is_none_is_422(world: &World) {
    world.create("a", json!({})).await.ok();
    let label = json!({ "labels": { "a": "no spaces" } });
    world.mark("a", label).await.refused(422, "…");
}

async fn creating_in_a_namespace_that_is_not_there_is_404(world: &World) {
    let path = format!("/apis/{}/namespaces/nowhere/widgets", world.api_version());
    let refused = world.post(&path, &world.widget("a", json!({}))).await;
    refused.refused(404, r#"namespaces "nowhere" not found"#);
}

async fn a_resource_version_on_create_is_500(world: &World) {
    let mut object = world.widget("a", json!({}));
    object["metadata"]["resourceVersion"] = "5".into();
    world.post(&world.path(), &object).await.refused(500, "…");
}

async fn metadata_alone_is_served_where_it_is_asked_for(world: &World) {
    world.create("a", json!({ "color": "red" })).await.ok();
    let one = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    let found = world.get_as(&world.at("a"), one).await.ok();
    assert_eq!(found["kind"], "PartialObjectMetadata");
    assert_eq!(found["metadata"]["name"], "a");
    assert!(found.get("spec").is_none(), "{found}");
    let all = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    let list = world.get_as(&world.path(), all).await.ok();
    assert_eq!(names(&list), ["a"]);
}

async fn the_scale_reads_and_writes_the_replicas(world: &World) {
    world.create("a", json!({ "replicas": 2 })).await.ok();
    let status = json!({ "replicas": 1, "selector": "a=b" });
    world.apply_status("m", "a", status.clone()).await.ok();
    let path = format!("{}/scale", world.at("a"));
    let scale = world.get(&path).await.ok();
    assert_eq!(scale["spec"]["replicas"], 2);
    assert_eq!(scale["status"], status);
    let replicas = |number: i32| json!({ "spec": { "replicas": number } });
    let scale = world.merge_at(&path, &replicas(5)).await.ok();
    assert_eq!(scale["spec"]["replicas"], 5);
    let object = world.read("a").await;
    assert_eq!(object["spec"]["replicas"], 5);
    assert_eq!(object["metadata"]["generation"], 2);
    // The schema holds for the scale too.
    for number in [50, -1] {
        let refused = world.merge_at(&path, &replicas(number)).await;
        refused.refused(422, "…");
    }
}

behaviours! { "objects":
    a_created_object_has_identity_and_generation_one,
    creating_twice_is_409_already_exists,
    a_get_of_nothing_is_404,
    a_list_has_a_resource_version,
    the_generation_moves_with_spec_alone,
    a_put_with_an_old_resource_version_is_409,
    a_put_of_a_custom_resource_without_a_version_is_422,
    a_put_with_the_current_version_is_written,
    a_put_that_changes_nothing_keeps_the_resource_version,
    a_put_or_a_patch_of_nothing_is_404,
    an_object_of_the_past_is_not_written_over_its_successor,
    identity_cannot_be_patched_away,
    a_dry_run_is_not_persisted,
    generate_name_gives_each_object_its_own,
    a_name_that_is_no_dns_subdomain_is_422,
    a_label_that_is_none_is_422,
    creating_in_a_namespace_that_is_not_there_is_404,
    a_resource_version_on_create_is_500,
    metadata_alone_is_served_where_it_is_asked_for,
    the_scale_reads_and_writes_the_replicas,
}
