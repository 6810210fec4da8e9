//! Tests cascading deletion of many objects of a CRD, a namespace and an owner, and the watches of a
//! kind that is created or deleted.

use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, PersistentVolumeClaim, Pod};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchParams};
use kube::{Api, Client};
use okt_apiserver::controllers::kubelet;
use okt_apiserver::{ApiServer, EventKind, Fault};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::support::{create_crd, server, version, widget, widget_crd, widgets};

/// More than fit on a stack in recursive calls.
const MANY: usize = 5000;

/// Longer than the controllers of Kubernetes itself take until they act.
const MOMENT: Duration = Duration::from_secs(1);

fn map(metadata: &Value) -> ConfigMap {
    serde_json::from_value(json!({ "metadata": metadata })).expect("a config map")
}

async fn delete_crd(client: &Client) {
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    crds.delete("widgets.demo.okt.dev", &DeleteParams::default())
        .await
        .expect("it is there");
}

/// Returns the number of recorded versions of a resource, and the number of removals among them.
fn recorded(server: &ApiServer, resource: &str) -> (usize, usize) {
    let versions = server.versions().resource(resource);
    let removed = versions
        .iter()
        .filter(|version| version.kind == EventKind::Deleted)
        .count();
    (versions.len(), removed)
}

#[tokio::test(start_paused = true)]
async fn deleting_a_crd_removes_each_of_its_objects_once() {
    let (server, client) = server().await;
    let mut template = widget("w", json!({}));
    for number in 0..MANY {
        template.metadata.name = Some(format!("w{number}"));
        widgets(&client)
            .create(&PostParams::default(), &template)
            .await
            .expect("new");
    }
    delete_crd(&client).await;
    let again = create_crd(&client, widget_crd()).await;
    assert!(again.is_err(), "it is still being deleted");
    assert_eq!(recorded(&server, "widgets"), (MANY, 0));
    sleep(MOMENT).await;
    assert_eq!(recorded(&server, "widgets"), (2 * MANY, MANY));
    assert!(
        create_crd(&client, widget_crd()).await.is_ok(),
        "it is gone"
    );
}

#[tokio::test(start_paused = true)]
async fn deleting_a_namespace_removes_each_of_its_objects_once() {
    let server = ApiServer::new();
    let client = server.client();
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let namespace = json!({ "metadata": { "name": "shop" } });
    let namespace = serde_json::from_value(namespace).expect("a namespace");
    namespaces
        .create(&PostParams::default(), &namespace)
        .await
        .expect("new");
    let maps: Api<ConfigMap> = Api::namespaced(client, "shop");
    let before = recorded(&server, "configmaps");
    for number in 0..MANY {
        let map = map(&json!({ "name": format!("m{number}") }));
        maps.create(&PostParams::default(), &map)
            .await
            .expect("new");
    }
    namespaces
        .delete("shop", &DeleteParams::default())
        .await
        .expect("it is there");
    let terminating = namespaces.get("shop").await.expect("it is still there");
    let phase = terminating.status.and_then(|status| status.phase);
    assert_eq!(phase.as_deref(), Some("Terminating"));
    maps.create(&PostParams::default(), &map(&json!({ "name": "late" })))
        .await
        .expect_err("no object is created there any more");
    sleep(MOMENT).await;
    let (all, removed) = recorded(&server, "configmaps");
    assert_eq!(removed - before.1, all - before.0 - removed + before.1);
    assert!(
        namespaces
            .get_opt("shop")
            .await
            .expect("an answer")
            .is_none()
    );
}

/// Creates a chain of owners, or one owner of all other objects.
async fn owned(is_row: bool) -> (ApiServer, Api<ConfigMap>) {
    let server = ApiServer::new();
    let maps: Api<ConfigMap> = Api::default_namespaced(server.client());
    let mut owner = Value::Null;
    for number in 0..MANY {
        let mut metadata = json!({ "name": format!("m{number}") });
        if !owner.is_null() {
            metadata["ownerReferences"] = json!([owner]);
        }
        let made = maps
            .create(&PostParams::default(), &map(&metadata))
            .await
            .expect("new");
        if is_row || owner.is_null() {
            owner = json!({
                "apiVersion": "v1", "kind": "ConfigMap", "blockOwnerDeletion": true,
                "name": made.metadata.name, "uid": made.metadata.uid,
            });
        }
    }
    (server, maps)
}

#[tokio::test(start_paused = true)]
async fn a_chain_of_owners_is_removed_one_by_one() {
    let (server, maps) = owned(true).await;
    maps.delete("m0", &DeleteParams::default())
        .await
        .expect("it is there");
    assert_eq!(recorded(&server, "configmaps"), (MANY + 1, 1));
    sleep(MOMENT).await;
    assert_eq!(recorded(&server, "configmaps"), (2 * MANY, MANY));
}

#[tokio::test(start_paused = true)]
async fn an_owner_deleted_in_the_foreground_is_removed_after_its_dependents() {
    let (server, maps) = owned(false).await;
    maps.delete("m0", &DeleteParams::foreground())
        .await
        .expect("it is there");
    sleep(MOMENT).await;
    // The owner is marked once, and removed last.
    assert_eq!(recorded(&server, "configmaps"), (2 * MANY + 1, MANY));
    let last = server.versions().resource("configmaps");
    let last = last.iter().last().expect("a version");
    assert_eq!((last.name.as_str(), last.kind), ("m0", EventKind::Deleted));
}

#[tokio::test(start_paused = true)]
async fn a_dependent_that_was_given_to_nobody_meanwhile_stays() {
    let server = ApiServer::new();
    let maps: Api<ConfigMap> = Api::default_namespaced(server.client());
    let owner = map(&json!({ "name": "owner" }));
    let owner = maps
        .create(&PostParams::default(), &owner)
        .await
        .expect("new");
    let owners = json!([{
        "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner.metadata.uid,
    }]);
    let owned = map(&json!({ "name": "owned", "ownerReferences": owners }));
    maps.create(&PostParams::default(), &owned)
        .await
        .expect("new");
    maps.delete("owner", &DeleteParams::default())
        .await
        .expect("it is there");
    maps.replace(
        "owned",
        &PostParams::default(),
        &map(&json!({ "name": "owned" })),
    )
    .await
    .expect("it is there");
    sleep(MOMENT).await;
    assert!(maps.get_opt("owned").await.expect("an answer").is_some());
}

#[tokio::test(start_paused = true)]
async fn a_crd_that_loses_its_finalizers_takes_its_kind_along() {
    let (_, client) = server().await;
    widgets(&client)
        .create(&PostParams::default(), &widget("w", json!({})))
        .await
        .expect("new");
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    let params = DeleteParams::foreground();
    let deleted = crds.delete("widgets.demo.okt.dev", &params);
    let deleted = deleted.await.expect("it is there").left().expect("the CRD");
    let expected = ["customresourcecleanup.apiextensions.k8s.io"];
    assert_eq!(deleted.metadata.finalizers.expect("one"), expected);
    let conditions = deleted.status.and_then(|status| status.conditions);
    let conditions = conditions.expect("conditions");
    let last = conditions.last().expect("a condition");
    let reason = last.reason.as_deref();
    assert_eq!(
        (&*last.type_, reason),
        ("Terminating", Some("InstanceDeletionPending"))
    );
    let freed = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    crds.patch("widgets.demo.okt.dev", &PatchParams::default(), &freed)
        .await
        .expect("it is still there");
    let missing = widgets(&client).list(&ListParams::default()).await;
    assert!(missing.is_err(), "the kind is gone with its CRD");
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_marked_before_it_is_removed() {
    let server = ApiServer::new();
    let pods: Api<Pod> = Api::default_namespaced(server.client());
    let pod = json!({
        "metadata": { "name": "p" },
        "spec": { "containers": [{ "name": "p", "image": "p" }] },
    });
    let pod = serde_json::from_value(pod).expect("a Pod");
    pods.create(&PostParams::default(), &pod)
        .await
        .expect("new");
    pods.delete("p", &DeleteParams::default())
        .await
        .expect("it is there");
    let versions = server.versions().resource("pods");
    let kinds: Vec<_> = versions.iter().map(|version| version.kind).collect();
    assert_eq!(
        kinds,
        [EventKind::Added, EventKind::Modified, EventKind::Deleted]
    );
}

#[tokio::test(start_paused = true)]
async fn a_patch_leaves_an_object_in_its_namespace() {
    let server = ApiServer::new();
    let maps: Api<ConfigMap> = Api::default_namespaced(server.client());
    let new = map(&json!({ "name": "a" }));
    maps.create(&PostParams::default(), &new)
        .await
        .expect("new");
    let nowhere = Patch::Merge(json!({ "metadata": { "namespace": null } }));
    let patched = maps.patch("a", &PatchParams::default(), &nowhere).await;
    let namespace = patched.expect("it is there").metadata.namespace;
    assert_eq!(namespace.as_deref(), Some("default"));
    let everywhere: Api<ConfigMap> = Api::all(server.client());
    let all = everywhere
        .list(&ListParams::default().fields("metadata.name=a"))
        .await;
    assert_eq!(all.expect("a list").items.len(), 1);
}

/// Creates a Pod that mounts the claim `data`, and the claim.
async fn pod_with_claim(server: &ApiServer) -> (Api<Pod>, Api<PersistentVolumeClaim>) {
    let (pods, claims) = (
        Api::default_namespaced(server.client()),
        Api::default_namespaced(server.client()),
    );
    let claim = json!({
        "metadata": { "name": "data" },
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": { "requests": { "storage": "1Gi" } },
        },
    });
    let claim = serde_json::from_value(claim).expect("a claim");
    claims
        .create(&PostParams::default(), &claim)
        .await
        .expect("new");
    let pod = json!({
        "metadata": { "name": "db" },
        "spec": {
            "nodeName": "node-1",
            "containers": [{ "name": "db", "image": "db" }],
            "volumes": [{ "name": "data", "persistentVolumeClaim": { "claimName": "data" } }],
        },
    });
    let pod = serde_json::from_value(pod).expect("a Pod");
    pods.create(&PostParams::default(), &pod)
        .await
        .expect("new");
    (pods, claims)
}

#[tokio::test(start_paused = true)]
async fn a_pod_on_a_node_ends_when_its_kubelet_says_so() {
    let server = ApiServer::new();
    let (pods, _) = pod_with_claim(&server).await;
    let usual = DeleteParams::default();
    let ending = pods.delete("db", &usual).await.expect("it is there");
    let ending = ending.left().expect("the Pod").metadata;
    assert_eq!(ending.deletion_grace_period_seconds, Some(30));
    sleep(Duration::from_mins(1)).await;
    assert!(pods.get_opt("db").await.expect("an answer").is_some());
    // A second deletion can only make the time shorter.
    // Half a minute has passed, so one second is left of any.
    for (asked, left) in [(60, 30), (10, 1)] {
        let sooner = pods
            .delete("db", &DeleteParams::default().grace_period(asked))
            .await;
        let metadata = sooner
            .expect("it is there")
            .left()
            .expect("the Pod")
            .metadata;
        assert_eq!(metadata.deletion_grace_period_seconds, Some(left));
    }
    pods.delete("db", &DeleteParams::default().grace_period(0))
        .await
        .expect("it is there");
    assert!(pods.get_opt("db").await.expect("an answer").is_none());
}

#[tokio::test(start_paused = true)]
async fn the_stand_in_for_the_kubelet_ends_the_pods_of_a_node() {
    let server = ApiServer::new();
    let kubelet = tokio::spawn(kubelet().run(server.client_named("kubelet")));
    let (pods, _) = pod_with_claim(&server).await;
    pods.delete("db", &DeleteParams::default())
        .await
        .expect("it is there");
    sleep(Duration::from_secs(10)).await;
    assert!(pods.get_opt("db").await.expect("an answer").is_none());
    kubelet.abort();
}

#[tokio::test(start_paused = true)]
async fn a_claim_is_kept_while_a_pod_uses_it() {
    let server = ApiServer::new();
    let (pods, claims) = pod_with_claim(&server).await;
    let deleted = claims.delete("data", &DeleteParams::default()).await;
    let deleted = deleted.expect("it is there").left().expect("the claim");
    assert!(deleted.metadata.deletion_timestamp.is_some());
    sleep(MOMENT).await;
    assert!(claims.get_opt("data").await.expect("an answer").is_some());
    pods.delete("db", &DeleteParams::default().grace_period(0))
        .await
        .expect("it is there");
    sleep(MOMENT).await;
    assert!(claims.get_opt("data").await.expect("an answer").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_the_cache_has_not_seen_yet_is_empty() {
    let server = ApiServer::new();
    let client = server.client();
    server.set_watch_lag(Duration::from_mins(1));
    create_crd(&client, widget_crd()).await.expect("a CRD");
    let api = widgets(&client);
    let cached = ListParams::default().match_any();
    let list = api.list(&cached).await.expect("no version was named");
    assert_eq!(list.items.len(), 0);
    let params = WatchParams::default();
    let mut events = api.watch(&params, "0").await.expect("a watch").boxed();
    let made = api
        .create(&PostParams::default(), &widget("a", json!({})))
        .await
        .expect("new");
    let event = events.try_next().await.expect("no error").expect("no end");
    match event {
        kube::api::WatchEvent::Added(seen) => assert_eq!(version(&seen), version(&made)),
        other => panic!("expected the widget, got {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_whose_kind_is_deleted_sends_pending_events_and_ends() {
    let (server, client) = server().await;
    let api = widgets(&client);
    let made = api
        .create(&PostParams::default(), &widget("a", json!({})))
        .await
        .expect("new");
    let params = WatchParams::default().disable_bookmarks();
    let from = version(&made);
    let mut events = api.watch(&params, &from).await.expect("a watch").boxed();
    server.inject(Fault::merge_events(Duration::from_mins(1)).name("a").nth(1));
    delete_crd(&client).await;
    let seen = timeout(Duration::from_mins(5), async {
        let mut seen = Vec::new();
        while let Some(event) = events.next().await {
            seen.push(event.expect("no error"));
        }
        seen
    });
    let seen = seen.await.expect("it ends");
    assert!(
        matches!(seen.as_slice(), [kube::api::WatchEvent::Deleted(_)]),
        "{seen:?}"
    );
}
