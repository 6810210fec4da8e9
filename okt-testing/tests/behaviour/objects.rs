//! This file tests how objects are created, read, changed and deleted.

use kube::{Api, ResourceExt, api::ListParams};
use serde_json::json;

use crate::support::{apply_status, create, merge, refusal, server, try_create, version, widgets};

#[tokio::test]
async fn an_accepted_crd_is_established_at_once() {
    let (_server, client) = server().await;
    let crds: Api<
        k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    > = Api::all(client);
    let crd = crds.get("widgets.demo.okt.dev").await.unwrap();
    let conditions = crd.status.unwrap().conditions.unwrap();
    assert!(
        conditions
            .iter()
            .any(|condition| condition.type_ == "Established" && condition.status == "True")
    );
}

#[tokio::test]
async fn a_created_object_has_identity_and_generation_one() {
    let (_server, client) = server().await;
    let made = create(&client, "a", json!({})).await;
    assert!(made.uid().is_some());
    assert!(made.creation_timestamp().is_some());
    assert_eq!(made.metadata.generation, Some(1));
    version(&made).parse::<u64>().unwrap();
}

#[tokio::test]
async fn creating_twice_is_409_already_exists() {
    let (_server, client) = server().await;
    create(&client, "a", json!({})).await;
    let status = refusal(try_create(&client, "a", json!({})).await);
    assert_eq!(
        (status.code, status.reason.as_str()),
        (409, "AlreadyExists")
    );
    assert_eq!(status.message, "widgets.demo.okt.dev \"a\" already exists");
}

#[tokio::test]
async fn a_get_of_nothing_is_404() {
    let (_server, client) = server().await;
    let status = refusal(widgets(&client).get("a").await);
    assert_eq!((status.code, status.reason.as_str()), (404, "NotFound"));
    assert_eq!(status.message, "widgets.demo.okt.dev \"a\" not found");
}

#[tokio::test]
async fn a_list_has_a_resource_version() {
    let (_server, client) = server().await;
    let made = create(&client, "a", json!({})).await;
    let list = widgets(&client).list(&ListParams::default()).await.unwrap();
    assert_eq!(list.metadata.resource_version, Some(version(&made)));
    assert_eq!(list.items.len(), 1);
}

#[tokio::test]
async fn the_generation_moves_with_spec_alone() {
    let (_server, client) = server().await;
    create(&client, "a", json!({})).await;
    let labels = json!({ "metadata": { "labels": { "a": "b" } } });
    let patched = merge(&client, "a", labels).await.unwrap();
    assert_eq!(patched.metadata.generation, Some(1));
    let status = json!({ "phase": "Up" });
    let patched = apply_status(&client, "m", "a", status).await.unwrap();
    assert_eq!(patched.metadata.generation, Some(1));
    let spec = json!({ "spec": { "color": "red" } });
    let patched = merge(&client, "a", spec).await.unwrap();
    assert_eq!(patched.metadata.generation, Some(2));
}
