//! This file tests deletion: finalizers, preconditions, owners, collections.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, DynamicObject, ListParams, PostParams, Preconditions, PropagationPolicy},
};
use serde_json::{Value, json};

use crate::support::{
    create, create_namespace, get, json_patch, merge, refusal, server, version, widgets,
};

async fn delete(client: &Client, name: &str, params: &DeleteParams) -> kube::Result<()> {
    widgets(client).delete(name, params).await.map(drop)
}

async fn is_gone(client: &Client, name: &str) -> bool {
    widgets(client).get_opt(name).await.unwrap().is_none()
}

#[tokio::test]
async fn a_deletion_answers_with_a_status() {
    let (_server, client) = server().await;
    let made = create(&client, "a", json!({})).await;
    let answer = widgets(&client)
        .delete("a", &DeleteParams::default())
        .await
        .unwrap();
    let status = answer.right().expect("a status");
    let details = status.details.unwrap();
    assert_eq!(
        (details.name.as_str(), details.kind.as_str()),
        ("a", "widgets")
    );
    assert_eq!(Some(details.uid), made.metadata.uid);
    assert!(is_gone(&client, "a").await);
}

#[tokio::test]
async fn a_finalizer_is_added_by_a_json_patch_that_tests_for_null() {
    let (_server, client) = server().await;
    create(&client, "a", json!({})).await;
    let patch = json!([
        { "op": "test", "path": "/metadata/finalizers", "value": null },
        { "op": "add", "path": "/metadata/finalizers", "value": ["okt.dev/a"] },
    ]);
    let patched = json_patch(&client, "a", patch.clone()).await.unwrap();
    assert_eq!(patched.finalizers(), ["okt.dev/a"]);
    assert_eq!(refusal(json_patch(&client, "a", patch).await).code, 422);
}

async fn with_finalizer(client: &Client) -> DynamicObject {
    create(client, "a", json!({})).await;
    let patch = json!({ "metadata": { "finalizers": ["okt.dev/a"] } });
    merge(client, "a", patch).await.unwrap()
}

#[tokio::test]
async fn with_a_finalizer_a_deletion_only_marks() {
    let (_server, client) = server().await;
    let held = with_finalizer(&client).await;
    let answer = widgets(&client)
        .delete("a", &DeleteParams::default())
        .await
        .unwrap();
    let marked = answer.left().expect("the object");
    assert!(marked.metadata.deletion_timestamp.is_some());
    assert_eq!(marked.metadata.deletion_grace_period_seconds, Some(0));
    assert_eq!(
        marked.metadata.generation,
        held.metadata.generation.map(|g| g + 1)
    );
    let again = widgets(&client)
        .delete("a", &DeleteParams::default())
        .await
        .unwrap();
    assert_eq!(version(&again.left().unwrap()), version(&marked));
}

#[tokio::test]
async fn no_finalizer_is_added_while_deleting() {
    let (_server, client) = server().await;
    with_finalizer(&client).await;
    delete(&client, "a", &DeleteParams::default())
        .await
        .unwrap();
    let patch = json!({ "metadata": { "finalizers": ["okt.dev/a", "okt.dev/b"] } });
    let status = refusal(merge(&client, "a", patch).await);
    assert_eq!(status.code, 422);
    assert!(status.message.ends_with(
        "no new finalizers can be added if the object is being deleted, found new finalizers []string{\"okt.dev/b\"}"
    ));
}

#[tokio::test]
async fn an_object_goes_with_its_last_finalizer() {
    let (_server, client) = server().await;
    with_finalizer(&client).await;
    delete(&client, "a", &DeleteParams::default())
        .await
        .unwrap();
    let patch = json!({ "metadata": { "finalizers": null } });
    merge(&client, "a", patch).await.unwrap();
    assert!(is_gone(&client, "a").await);
}

#[tokio::test]
async fn another_uid_is_409() {
    let (_server, client) = server().await;
    let made = create(&client, "a", json!({})).await;
    let with = |uid: &str| DeleteParams {
        preconditions: Some(Preconditions {
            uid: Some(uid.to_owned()),
            resource_version: None,
        }),
        ..DeleteParams::default()
    };
    let status = refusal(delete(&client, "a", &with("other")).await);
    assert_eq!((status.code, status.reason.as_str()), (409, "Conflict"));
    assert!(
        status
            .message
            .contains("the UID in the precondition (other) does not match the UID in record")
    );
    delete(&client, "a", &with(&made.uid().unwrap()))
        .await
        .unwrap();
}

#[tokio::test]
async fn another_version_is_409() {
    let (_server, client) = server().await;
    create(&client, "a", json!({})).await;
    let params = DeleteParams {
        preconditions: Some(Preconditions {
            uid: None,
            resource_version: Some("1".to_owned()),
        }),
        ..DeleteParams::default()
    };
    assert_eq!(refusal(delete(&client, "a", &params).await).code, 409);
}

#[tokio::test]
async fn a_collection_is_deleted_by_selector() {
    let (_server, client) = server().await;
    for name in ["a", "b", "c"] {
        create(
            &client,
            name,
            json!({ "color": if name == "b" { "red" } else { "blue" } }),
        )
        .await;
    }
    let params = ListParams::default().fields("spec.color=blue");
    widgets(&client)
        .delete_collection(&DeleteParams::default(), &params)
        .await
        .unwrap();
    assert!(is_gone(&client, "a").await && is_gone(&client, "c").await);
    get(&client, "b").await;
}

async fn owned_map(client: &Client, name: &str, owner: &DynamicObject, blocks: bool) {
    let map: ConfigMap = serde_json::from_value(json!({
        "metadata": {
            "name": name,
            "ownerReferences": [{
                "apiVersion": "demo.okt.dev/v1",
                "kind": "Widget",
                "name": owner.name_any(),
                "uid": owner.uid(),
                "blockOwnerDeletion": blocks,
            }],
        },
    }))
    .unwrap();
    maps(client)
        .create(&PostParams::default(), &map)
        .await
        .unwrap();
}

fn maps(client: &Client) -> Api<ConfigMap> {
    Api::default_namespaced(client.clone())
}

#[tokio::test]
async fn owned_objects_go_with_their_owner() {
    let (_server, client) = server().await;
    let owner = create(&client, "a", json!({})).await;
    owned_map(&client, "m", &owner, false).await;
    delete(&client, "a", &DeleteParams::background())
        .await
        .unwrap();
    assert!(maps(&client).get_opt("m").await.unwrap().is_none());
}

#[tokio::test]
async fn orphans_stay_without_their_reference() {
    let (_server, client) = server().await;
    let owner = create(&client, "a", json!({})).await;
    owned_map(&client, "m", &owner, false).await;
    delete(&client, "a", &DeleteParams::orphan()).await.unwrap();
    assert!(is_gone(&client, "a").await);
    let map = maps(&client).get("m").await.unwrap();
    assert_eq!(map.owner_references(), []);
}

#[tokio::test]
async fn a_foreground_deletion_waits_for_what_blocks_it() {
    let (_server, client) = server().await;
    let owner = create(&client, "a", json!({})).await;
    owned_map(&client, "m", &owner, true).await;
    let finalizers = |list: Value| json!({ "metadata": { "finalizers": list } });
    let patch = |list: Value| kube::api::Patch::Merge(finalizers(list));
    let params = kube::api::PatchParams::default();
    maps(&client)
        .patch("m", &params, &patch(json!(["okt.dev/m"])))
        .await
        .unwrap();
    delete(&client, "a", &DeleteParams::foreground())
        .await
        .unwrap();
    assert_eq!(get(&client, "a").await.finalizers(), ["foregroundDeletion"]);
    assert!(
        maps(&client)
            .get("m")
            .await
            .unwrap()
            .metadata
            .deletion_timestamp
            .is_some()
    );
    maps(&client)
        .patch("m", &params, &patch(Value::Null))
        .await
        .unwrap();
    assert!(is_gone(&client, "a").await);
    let _ = PropagationPolicy::Foreground;
}

#[tokio::test]
async fn an_object_whose_owners_never_were_is_collected() {
    let (_server, client) = server().await;
    let mut owner = create(&client, "a", json!({})).await;
    owner.metadata.uid = Some("no-such-uid".to_owned());
    owned_map(&client, "m", &owner, false).await;
    assert!(maps(&client).get_opt("m").await.unwrap().is_none());
}

#[tokio::test]
async fn a_namespace_takes_its_content_along() {
    let (_server, client) = server().await;
    create_namespace(&client, "other").await;
    let other: Api<ConfigMap> = Api::namespaced(client.clone(), "other");
    let mut map = ConfigMap::default();
    map.metadata.name = Some("m".to_owned());
    map.metadata.finalizers = Some(vec!["okt.dev/m".to_owned()]);
    other.create(&PostParams::default(), &map).await.unwrap();
    let namespaces: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(client.clone());
    namespaces
        .delete("other", &DeleteParams::default())
        .await
        .unwrap();
    let namespace = namespaces.get("other").await.unwrap();
    assert_eq!(
        namespace.status.unwrap().phase.as_deref(),
        Some("Terminating")
    );
    map.metadata.name = Some("n".to_owned());
    assert_eq!(
        refusal(other.create(&PostParams::default(), &map).await).code,
        403
    );
    let patch = kube::api::Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    other
        .patch("m", &kube::api::PatchParams::default(), &patch)
        .await
        .unwrap();
    assert!(namespaces.get_opt("other").await.unwrap().is_none());
}
