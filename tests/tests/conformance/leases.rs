//! Behaviors of Leases that processes rely on when they agree about who does what.

use std::collections::BTreeMap;

use futures::future::join_all;
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::WatchEvent;
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use crate::behaviour::behaviours;
use crate::reply::Reply;
use crate::world::{OTHER_UID, World, events_only, uid, version};

fn path(world: &World) -> String {
    world.path_of("coordination.k8s.io/v1", "leases")
}

fn at(world: &World, name: &str) -> String {
    format!("{}/{name}", path(world))
}

async fn create(world: &World, name: &str) -> Value {
    let lease = json!({ "metadata": { "name": name }, "spec": { "holderIdentity": "me" } });
    world.post(&path(world), &lease).await.ok()
}

/// Renews a Lease of this uid by a merge patch.
async fn renew(world: &World, name: &str, uid: &str, holder: &str) -> Reply {
    let patch = json!({ "metadata": { "uid": uid }, "spec": { "holderIdentity": holder } });
    world.merge_at(&at(world, name), &patch).await
}

async fn holder(world: &World, name: &str) -> Value {
    let lease = world.get(&at(world, name)).await.ok();
    lease["spec"]["holderIdentity"].clone()
}

async fn a_patch_for_another_uid_is_422_and_changes_nothing(world: &World) {
    let first = create(world, "a").await;
    renew(world, "a", uid(&first), "again").await.ok();
    world.delete(&at(world, "a")).await.ok();
    create(world, "a").await;
    for uid in [uid(&first), OTHER_UID] {
        let immutable = format!("Invalid value: \"{uid}\": field is immutable");
        let refused = renew(world, "a", uid, "former").await;
        let message =
            format!("Lease.coordination.k8s.io \"a\" is invalid: metadata.uid: {immutable}");
        let status = refused.refused(422, &message);
        // The server checks it twice.
        let causes = status["details"]["causes"].as_array().expect("causes");
        assert_eq!(causes.len(), 2);
        for cause in causes {
            assert_eq!(cause["field"], "metadata.uid");
            assert_eq!(cause["message"], immutable);
        }
    }
    assert_eq!(holder(world, "a").await, "me");
}

async fn a_put_for_another_uid_is_409_with_or_without_a_version(world: &World) {
    let lease = create(world, "a").await;
    let widget = world.create("a", json!({})).await.ok();
    for version in [Value::Null, json!("1")] {
        for (path, object) in [(at(world, "a"), &lease), (world.at("a"), &widget)] {
            let mut other = object.clone();
            other["metadata"]["uid"] = OTHER_UID.into();
            other["metadata"]["resourceVersion"] = version.clone();
            let refused = world.put(&path, &other).await;
            let own = uid(object);
            let message = format!("…UID in precondition: {OTHER_UID}, UID in object meta: {own}");
            refused.refused(409, &message);
        }
    }
}

async fn a_patch_of_an_absent_lease_is_404_while_an_apply_or_a_put_creates_it(world: &World) {
    let refused = renew(world, "a", OTHER_UID, "me").await;
    refused.refused(404, r#"leases.coordination.k8s.io "a" not found"#);
    assert_eq!(world.get(&at(world, "a")).await.code, 404);
    let config = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": { "name": "a" },
    });
    world.apply_at(&at(world, "a"), "m", &config).await.ok();
    let put = json!({ "metadata": { "name": "b", "uid": OTHER_UID }, "spec": {} });
    // Only an object that exists has a uid.
    let refused = world.put(&at(world, "b"), &put).await;
    refused.refused(409, "…UID in object meta:");
    let put = json!({ "metadata": { "name": "b" }, "spec": {} });
    world.put(&at(world, "b"), &put).await.ok();
    for name in ["a", "b"] {
        world.get(&at(world, name)).await.ok();
    }
}

/// Deletes a Lease under both preconditions.
async fn delete(world: &World, name: &str, uid: &str, version: u64) -> Reply {
    let preconditions = json!({ "uid": uid, "resourceVersion": version.to_string() });
    let options = json!({ "preconditions": preconditions });
    world.delete_with(&at(world, name), &options).await
}

async fn a_lease_is_deleted_only_under_its_uid_and_its_version(world: &World) {
    let lease = create(world, "a").await;
    let (uid, old) = (uid(&lease), version(&lease));
    let current = version(&renew(world, "a", uid, "again").await.ok());
    let wrong_uid = format!(
        "the UID in the precondition ({OTHER_UID}) does not match the UID in record ({uid}). The object might have been deleted and then recreated"
    );
    let wrong_version = format!(
        "the ResourceVersion in the precondition ({old}) does not match the ResourceVersion in record ({current}). The object might have been modified"
    );
    for (uid, version, message) in [
        (OTHER_UID, current, &wrong_uid),
        (OTHER_UID, old, &wrong_uid),
        (uid, old, &wrong_version),
    ] {
        let message =
            format!("Operation cannot be fulfilled on Lease.coordination.k8s.io \"a\": {message}");
        delete(world, "a", uid, version)
            .await
            .refused(409, &message);
    }
    assert_eq!(holder(world, "a").await, "again");
    let status = delete(world, "a", uid, current).await.ok();
    assert_eq!(status["details"]["uid"], uid);
    let again = delete(world, "a", uid, current).await;
    again.refused(404, "…");
}

async fn a_stale_put_of_a_lease_is_409(world: &World) {
    let old = create(world, "a").await;
    renew(world, "a", uid(&old), "again").await.ok();
    world.put(&at(world, "a"), &old).await.refused(409, "…");
}

async fn a_watch_of_several_leases_is_in_the_order_of_their_commits(world: &World) {
    const NAMES: [&str; 4] = ["a", "b", "c", "d"];
    let first = create(world, "first").await;
    let lives = NAMES.map(async |name| {
        let mut lease = create(world, name).await;
        let mut written = vec![(version(&lease), name.to_owned())];
        for round in 0..5 {
            let renewed = renew(world, name, uid(&lease), &round.to_string()).await;
            lease = renewed.ok();
            written.push((version(&lease), name.to_owned()));
        }
        // The answer of a deletion does not contain its version.
        delete(world, name, uid(&lease), version(&lease)).await.ok();
        written
    });
    let written = join_all(lives).await.concat();
    let written: BTreeMap<u64, String> = written.into_iter().collect();

    let leases: Api<Lease> = Api::namespaced(world.client(), &world.namespace);
    let params = events_only().timeout(60);
    let from = version(&first).to_string();
    let events = leases.watch(&params, &from).await.expect("a watch");
    let events: Vec<_> = events
        .take(NAMES.len() * 7)
        .try_collect()
        .await
        .expect("events");
    let mut found = BTreeMap::new();
    let mut last = 0;
    for event in events {
        let (lease, is_deletion) = match event {
            WatchEvent::Added(lease) | WatchEvent::Modified(lease) => (lease, false),
            WatchEvent::Deleted(lease) => (lease, true),
            other => panic!("unexpected: {other:?}"),
        };
        let version = lease.resource_version().expect("a version");
        let version = version.parse().expect("a number");
        assert!(version > last, "{version} after {last}");
        last = version;
        if !is_deletion {
            found.insert(version, lease.name_any());
        }
    }
    assert_eq!(found, written);
}

behaviours! { "leases":
    a_patch_for_another_uid_is_422_and_changes_nothing,
    a_put_for_another_uid_is_409_with_or_without_a_version,
    a_patch_of_an_absent_lease_is_404_while_an_apply_or_a_put_creates_it,
    a_lease_is_deleted_only_under_its_uid_and_its_version,
    a_stale_put_of_a_lease_is_409,
    a_watch_of_several_leases_is_in_the_order_of_their_commits,
}
