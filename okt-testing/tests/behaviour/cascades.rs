//! Tests cascading deletion of many objects of a CRD, a namespace and an owner, and the watches of a
//! kind that is created or deleted.

use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, ListParams, PostParams, WatchParams};
use kube::{Api, Client};
use okt_testing::{ApiServer, EventKind, Fault};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::support::{create_crd, server, version, widget, widget_crd, widgets};

/// More than fit on a stack in recursive calls.
const MANY: usize = 5000;

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
    assert_eq!(recorded(&server, "configmaps"), (2 * MANY, MANY));
}

#[tokio::test(start_paused = true)]
async fn an_owner_deleted_in_the_foreground_is_removed_after_its_dependents() {
    let (server, maps) = owned(false).await;
    maps.delete("m0", &DeleteParams::foreground())
        .await
        .expect("it is there");
    // The owner is marked once, and removed last.
    assert_eq!(recorded(&server, "configmaps"), (2 * MANY + 1, MANY));
    let last = server.versions().resource("configmaps");
    let last = last.iter().last().expect("a version");
    assert_eq!((last.name.as_str(), last.kind), ("m0", EventKind::Deleted));
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
