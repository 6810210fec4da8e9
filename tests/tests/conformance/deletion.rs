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

/// Waits until an object is being deleted.
async fn is_marked(world: &World, path: &str) {
    eventually("what is owned is being deleted", async || {
        let object = world.get(path).await.ok();
        let time = &object["metadata"]["deletionTimestamp"];
        time.is_string().then_some(())
    })
    .await;
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
    is_marked(world, &map).await;
    world.read("a").await;
    world.merge_at(&map, &released()).await.ok();
    is_collected(world, &world.at("a")).await;
}

async fn an_owner_no_longer_waits_for_what_has_let_go(world: &World) {
    let owner = world.create("a", json!({})).await.ok();
    let map = owned_map(world, "m", uid(&owner), true).await;
    let held = json!({ "metadata": { "finalizers": ["okt.dev/m"] } });
    world.merge_at(&map, &held).await.ok();
    an_object_whose_owners_never_were_is_collected(world).await;
    world.remove("a?propagationPolicy=Foreground").await.ok();
    is_marked(world, &map).await;
    let free = json!({ "metadata": { "ownerReferences": null } });
    world.merge_at(&map, &free).await.ok();
    is_collected(world, &world.at("a")).await;
    world.merge_at(&map, &released()).await.ok();
}

async fn a_pod_on_a_node_has_its_time_to_end(world: &World) {
    let pods = world.path_of("v1", "pods");
    let pod = json!({
        "metadata": { "name": "p" },
        "spec": { "nodeName": "no-such-node", "containers": [{ "name": "p", "image": "p" }] },
    });
    let created = world.post(&pods, &pod).await.ok();
    let path = format!("{pods}/p");
    let mut last = String::new();
    for (query, left) in [
        ("", 30),
        ("?gracePeriodSeconds=60", 30),
        ("?gracePeriodSeconds=20", 20),
    ] {
        let ending = world.delete(&format!("{path}{query}")).await.ok();
        assert_eq!(uid(&ending), uid(&created));
        let metadata = &ending["metadata"];
        assert_eq!(metadata["deletionGracePeriodSeconds"], left, "{query}");
        let end = metadata["deletionTimestamp"].as_str().expect("a time");
        assert!(last.is_empty() || end <= last.as_str(), "{query}");
        end.clone_into(&mut last);
    }
    let gone = world
        .delete(&format!("{path}?gracePeriodSeconds=0"))
        .await
        .ok();
    assert_eq!(gone["metadata"]["deletionGracePeriodSeconds"], 0);
    world.get(&path).await.refused(404, "…");
}

async fn a_negative_time_to_end_is_the_shortest(world: &World) {
    let pods = world.path_of("v1", "pods");
    let pod = json!({
        "metadata": { "name": "p" },
        "spec": {
            "nodeName": "no-such-node",
            "containers": [{ "name": "p", "image": "p" }],
            "terminationGracePeriodSeconds": -1,
        },
    });
    world.post(&pods, &pod).await.ok();
    let ending = world.delete(&format!("{pods}/p")).await.ok();
    assert_eq!(ending["metadata"]["deletionGracePeriodSeconds"], 1);
    world
        .delete(&format!("{pods}/p?gracePeriodSeconds=0"))
        .await
        .ok();
    world.get(&format!("{pods}/p")).await.refused(404, "…");
}

async fn the_pods_of_a_deleted_job_stay(world: &World) {
    let jobs = world.path_of("batch/v1", "jobs");
    let pod = json!({ "restartPolicy": "Never", "containers": [{ "name": "p", "image": "p" }] });
    let job = json!({ "metadata": { "name": "j" }, "spec": { "template": { "spec": pod } } });
    let job = world.post(&jobs, &job).await.ok();
    let owned = json!({
        "metadata": { "name": "m", "ownerReferences": [{
            "apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": uid(&job),
        }] },
    });
    let maps = world.path_of("v1", "configmaps");
    world.post(&maps, &owned).await.ok();
    an_object_whose_owners_never_were_is_collected(world).await;
    let deleted = world.delete(&format!("{jobs}/j")).await;
    assert!(
        deleted
            .header("warning")
            .contains("child pods are preserved by default")
    );
    let finalizers = &deleted.ok()["metadata"]["finalizers"];
    assert_eq!(*finalizers, json!(["orphan"]));
    is_collected(world, &format!("{jobs}/j")).await;
    let map = world.get(&format!("{maps}/m")).await.ok();
    assert_eq!(map["metadata"].get("ownerReferences"), None);
}

async fn a_collection_is_deleted_in_one_namespace(world: &World) {
    let everywhere = "/api/v1/configmaps?labelSelector=no-such=label";
    world.delete(everywhere).await.refused(405, "…");
}

/// Creates a Pod with this name and the label `app=e`.
async fn labelled_pod(world: &World, name: &str) {
    let pod = json!({
        "metadata": { "name": name, "labels": { "app": "e" } },
        "spec": { "containers": [{ "name": "p", "image": "p" }] },
    });
    let pods = world.path_of("v1", "pods");
    world.post(&pods, &pod).await.ok();
    let ready = json!({ "status": {
        "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" }],
    } });
    let status = format!("{pods}/{name}/status");
    world.merge_at(&status, &ready).await.ok();
}

async fn an_eviction_uses_up_the_budget(world: &World) {
    for name in ["a", "b"] {
        labelled_pod(world, name).await;
    }
    let budgets = world.path_of("policy/v1", "poddisruptionbudgets");
    let budget = json!({
        "metadata": { "name": "e" },
        "spec": { "maxUnavailable": 1, "selector": { "matchLabels": { "app": "e" } } },
    });
    world.post(&budgets, &budget).await.ok();
    let evict = async |name: &str, named: &str| {
        let path = format!("{}/{name}/eviction", world.path_of("v1", "pods"));
        let eviction = json!({ "metadata": { "name": named } });
        world.post(&path, &eviction).await
    };
    evict("a", "a").await.refused(429, "…");
    let status = json!({ "status": {
        "observedGeneration": 1, "disruptionsAllowed": 1, "currentHealthy": 2,
        "desiredHealthy": 1, "expectedPods": 2,
    } });
    world
        .merge_at(&format!("{budgets}/e/status"), &status)
        .await
        .ok();
    let message = "name in URL does not match name in Eviction object";
    evict("a", "b").await.refused(400, message);
    evict("a", "a").await.ok();
    let status = &world.get(&format!("{budgets}/e")).await.ok()["status"];
    assert_eq!(status["disruptionsAllowed"], 0);
    assert!(status["disruptedPods"]["a"].is_string());
    assert_eq!(status["conditions"][0]["type"], "DisruptionAllowed");
    assert_eq!(status["conditions"][0]["status"], "False");
    evict("b", "b").await.refused(429, "…");
}

async fn some_namespaces_may_not_be_deleted(world: &World) {
    for name in ["default", "kube-public", "kube-system"] {
        let refused = world.delete(&format!("/api/v1/namespaces/{name}")).await;
        let message =
            format!("namespaces \"{name}\" is forbidden: this namespace may not be deleted");
        refused.refused(403, &message);
    }
}

async fn a_namespace_deleted_in_the_foreground_is_emptied_first(world: &World) {
    let name = format!("{}-front", world.namespace);
    world.create_namespace(&name).await;
    let namespace = format!("/api/v1/namespaces/{name}");
    let maps = format!("{namespace}/configmaps");
    let held = json!({ "metadata": { "name": "m", "finalizers": ["okt.dev/m"] } });
    world.post(&maps, &held).await.ok();
    world
        .delete(&format!("{namespace}?propagationPolicy=Foreground"))
        .await
        .ok();
    let held = format!("{maps}/m");
    eventually("the content is being deleted", async || {
        let map = world.get(&held).await.ok();
        map["metadata"]["deletionTimestamp"]
            .is_string()
            .then_some(())
    })
    .await;
    world.get(&namespace).await.ok();
    world.merge_at(&held, &released()).await.ok();
    is_collected(world, &namespace).await;
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
    let refusal = eventually("nothing is created any more", async || {
        let reply = world.post(&maps, &late).await;
        (reply.code == 403).then_some(reply)
    })
    .await;
    let cause = &refusal.json()["details"]["causes"][0];
    assert_eq!(cause["reason"], "NamespaceTerminating");
    assert_eq!(cause["field"], "metadata.namespace");
    let remaining = "Some resources are remaining: configmaps. has 1 resource instances";
    let finalizers =
        "Some content in the namespace has finalizers remaining: okt.dev/m in 1 resource instances";
    let conditions = eventually("the namespace says what keeps it", async || {
        let conditions = world.get(&namespace).await.ok()["status"]["conditions"].take();
        (conditions[3]["message"] == remaining).then_some(conditions)
    })
    .await;
    assert_eq!(conditions[3]["reason"], "SomeResourcesRemain");
    assert_eq!(conditions[4]["message"], finalizers);
    for (index, (kind, reason)) in [
        ("NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered"),
        (
            "NamespaceDeletionGroupVersionParsingFailure",
            "ParsedGroupVersions",
        ),
        ("NamespaceDeletionContentFailure", "ContentDeleted"),
    ]
    .into_iter()
    .enumerate()
    {
        let condition = &conditions[index];
        assert_eq!(condition["type"], kind);
        assert_eq!(condition["status"], "False");
        assert_eq!(condition["reason"], reason);
    }
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
    an_owner_no_longer_waits_for_what_has_let_go,
    a_pod_on_a_node_has_its_time_to_end,
    a_negative_time_to_end_is_the_shortest,
    the_pods_of_a_deleted_job_stay,
    a_collection_is_deleted_in_one_namespace,
    an_eviction_uses_up_the_budget,
    some_namespaces_may_not_be_deleted,
    a_namespace_deleted_in_the_foreground_is_emptied_first,
    a_namespace_takes_its_content_along,
}
