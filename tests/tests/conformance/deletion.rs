//! Behaviors of deletion: finalizers, preconditions, owners, collections.

use serde_json::{Value, json};

use crate::behaviour::behaviours;
use crate::world::{World, eventually, names, released, uid, version};

async fn a_deletion_answers_with_a_status(world: &World) {
    let made = world.create("a", json!({})).await.ok();
    let status = world.remove("a").await.ok();
    assert_eq!(status["kind"], "Status");
    let details = &status["details"];
    assert_eq!(details["name"], "a");
    assert_eq!(details["kind"], "widgets");
    assert_eq!(details["uid"], uid(&made));
    assert!(world.is_gone("a").await);
}

async fn a_finalizer_is_added_where_none_is_and_a_deletion_only_marks(world: &World) {
    world.create("a", json!({})).await.ok();
    let none = json!({ "op": "test", "path": "/metadata/finalizers", "value": null });
    let one = json!({ "op": "add", "path": "/metadata/finalizers", "value": ["okt.dev/a"] });
    let held = world.json_patch("a", json!([none, one])).await.ok();
    assert_eq!(held["metadata"]["finalizers"], json!(["okt.dev/a"]));
    world.json_patch("a", json!([none])).await.refused(422, "…");
    let marked = world.remove("a").await.ok();
    let metadata = &marked["metadata"];
    assert!(metadata["deletionTimestamp"].is_string());
    assert_eq!(metadata["deletionGracePeriodSeconds"], 0);
    assert_eq!(metadata["generation"], 2);
    let again = world.remove("a").await.ok();
    assert_eq!(version(&again), version(&marked));
}

async fn no_finalizer_is_added_while_deleting_and_the_last_one_lets_go(world: &World) {
    world.create_held("a").await;
    world.remove("a").await.ok();
    // Each is named once.
    let finalizers = json!(["okt.dev/a", "okt.dev/c", "okt.dev/b", "okt.dev/c"]);
    let refused = world.mark("a", json!({ "finalizers": finalizers })).await;
    let message = r#"…no new finalizers can be added if the object is being deleted, found new finalizers []string{"okt.dev/b", "okt.dev/c"}"#;
    refused.refused(422, message);
    world.merge("a", released()).await.ok();
    assert!(world.is_gone("a").await);
}

async fn a_deletion_under_another_uid_or_version_is_409(world: &World) {
    let made = world.create("a", json!({})).await.ok();
    let delete = async |preconditions: Value| {
        let options = json!({ "preconditions": preconditions });
        world.delete_with(&world.at("a"), &options).await
    };
    let other = delete(json!({ "uid": "other" })).await;
    let message = "…the UID in the precondition (other) does not match the UID in record…";
    other.refused(409, message);
    let old = delete(json!({ "resourceVersion": "1" })).await;
    old.refused(409, "…");
    delete(json!({ "uid": uid(&made) })).await.ok();
}

async fn a_collection_is_deleted_by_selector(world: &World) {
    for (name, color) in [("a", "blue"), ("b", "red"), ("c", "blue")] {
        world.create(name, json!({ "color": color })).await.ok();
    }
    let path = format!("{}?fieldSelector=spec.color%3Dblue", world.path());
    world.delete(&path).await.ok();
    let left = world.get(&world.path()).await.ok();
    assert_eq!(names(&left), ["b"]);
}

async fn a_deletion_of_nothing_is_404(world: &World) {
    world.remove("a").await.refused(404, "…");
}

async fn an_owner_is_named_in_full(world: &World) {
    let owner = json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": "a" });
    world.create("a", json!({})).await.ok();
    let refused = world.mark("a", json!({ "ownerReferences": [owner] })).await;
    let message = r#"…metadata.ownerReferences.uid: Invalid value: "": must not be empty"#;
    refused.refused(422, message);
}

async fn an_unknown_propagation_policy_is_422(world: &World) {
    world.create("a", json!({})).await.ok();
    let path = world.at("a?propagationPolicy=Upwards");
    world.delete(&path).await.refused(422, "…");
    world.read("a").await;
}

/// Creates a config map that an object owns, and returns its path.
async fn owned_map(world: &World, name: &str, owner: &str, blocks: bool) -> String {
    let map = json!({
        "metadata": {
            "name": name,
            "ownerReferences": [{
                "apiVersion": world.api_version(),
                "kind": "Widget",
                "name": "a",
                "uid": owner,
                "blockOwnerDeletion": blocks,
            }],
        },
    });
    let maps = world.path_of("v1", "configmaps");
    world.post(&maps, &map).await.ok();
    format!("{maps}/{name}")
}

async fn is_collected(world: &World, path: &str) {
    eventually("the garbage is collected", async || {
        (world.get(path).await.code == 404).then_some(())
    })
    .await;
}

/// Makes a map whose owner never was, and waits until it is collected.
///
/// The collector watches each kind on its own, and may see that an owner goes before it sees what is owned. Events of a
/// kind arrive in order, so it then knows all maps that were made before.
async fn an_object_whose_owners_never_were_is_collected(world: &World) {
    let path = owned_map(world, "n", "no-such-uid", false).await;
    is_collected(world, &path).await;
}

async fn owned_objects_go_with_their_owner(world: &World) {
    let owner = world.create("a", json!({})).await.ok();
    let map = owned_map(world, "m", uid(&owner), false).await;
    world.remove("a?propagationPolicy=Background").await.ok();
    is_collected(world, &map).await;
}

async fn orphans_stay_without_their_reference(world: &World) {
    let owner = world.create("a", json!({})).await.ok();
    let map = owned_map(world, "m", uid(&owner), false).await;
    an_object_whose_owners_never_were_is_collected(world).await;
    world.remove("a?propagationPolicy=Orphan").await.ok();
    is_collected(world, &world.at("a")).await;
    let map = world.get(&map).await.ok();
    assert_eq!(map["metadata"].get("ownerReferences"), None);
}

async fn a_foreground_deletion_waits_for_what_blocks_it(world: &World) {
    let owner = world.create("a", json!({})).await.ok();
    let map = owned_map(world, "m", uid(&owner), true).await;
    let held = json!({ "metadata": { "finalizers": ["okt.dev/m"] } });
    world.merge_at(&map, &held).await.ok();
    an_object_whose_owners_never_were_is_collected(world).await;
    world.remove("a?propagationPolicy=Foreground").await.ok();
    let finalizers = &world.read("a").await["metadata"]["finalizers"];
    assert_eq!(*finalizers, json!(["foregroundDeletion"]));
    eventually("what is owned is being deleted", async || {
        let map = world.get(&map).await.ok();
        map["metadata"]["deletionTimestamp"]
            .is_string()
            .then_some(())
    })
    .await;
    world.read("a").await;
    world.merge_at(&map, &released()).await.ok();
    is_collected(world, &world.at("a")).await;
}

async fn a_namespace_takes_its_content_along(world: &World) {
    let name = format!("{}-other", world.namespace);
    world.create_namespace(&name).await;
    let namespace = format!("/api/v1/namespaces/{name}");
    let maps = format!("{namespace}/configmaps");
    let held = json!({ "metadata": { "name": "m", "finalizers": ["okt.dev/m"] } });
    world.post(&maps, &held).await.ok();
    world.delete(&namespace).await.ok();
    let status = &world.get(&namespace).await.ok()["status"];
    assert_eq!(status["phase"], "Terminating");
    let late = json!({ "metadata": { "generateName": "n-" } });
    eventually("nothing is created any more", async || {
        (world.post(&maps, &late).await.code == 403).then_some(())
    })
    .await;
    let held = format!("{maps}/m");
    world.merge_at(&held, &released()).await.ok();
    is_collected(world, &namespace).await;
}

behaviours! { "deletion":
    a_deletion_answers_with_a_status,
    a_deletion_of_nothing_is_404,
    an_owner_is_named_in_full,
    an_unknown_propagation_policy_is_422,
    a_finalizer_is_added_where_none_is_and_a_deletion_only_marks,
    no_finalizer_is_added_while_deleting_and_the_last_one_lets_go,
    a_deletion_under_another_uid_or_version_is_409,
    a_collection_is_deleted_by_selector,
    owned_objects_go_with_their_owner,
    orphans_stay_without_their_reference,
    a_foreground_deletion_waits_for_what_blocks_it,
    an_object_whose_owners_never_were_is_collected,
    a_namespace_takes_its_content_along,
}
