//! Tests the records of requests.

use kube::api::{DeleteParams, ListParams, WatchParams};
use okt_apiserver::{RequestRecord, Verb};
use serde_json::json;

use crate::support::{apply_status, create, merge, server, widgets};

#[tokio::test]
async fn each_request_is_recorded_with_its_rbac_verb() {
    let (server, client) = server().await;
    server.clear_requests();
    create(&client, "a", json!({})).await;
    widgets(&client).get("a").await.unwrap();
    widgets(&client).list(&ListParams::default()).await.unwrap();
    let _watch = widgets(&client)
        .watch(&WatchParams::default(), "0")
        .await
        .unwrap();
    merge(&client, "a", json!({})).await.unwrap();
    apply_status(&client, "m", "a", json!({})).await.unwrap();
    widgets(&client)
        .delete("a", &DeleteParams::default())
        .await
        .unwrap();
    let all = &ListParams::default();
    widgets(&client)
        .delete_collection(&DeleteParams::default(), all)
        .await
        .unwrap();
    let verbs: Vec<_> = server.requests().iter().map(|record| record.verb).collect();
    assert_eq!(
        verbs,
        [
            Verb::Create,
            Verb::Get,
            Verb::List,
            Verb::Watch,
            Verb::Patch,
            Verb::Apply,
            Verb::Delete,
            Verb::DeleteCollection,
        ]
    );
    let writes = server
        .requests()
        .into_iter()
        .filter(RequestRecord::is_write)
        .count();
    assert_eq!(writes, 5);
}

#[tokio::test]
async fn a_record_has_the_resource_the_manager_and_the_status() {
    let (server, client) = server().await;
    server.clear_requests();
    apply_status(&client, "boss", "a", json!({}))
        .await
        .unwrap_err();
    let requests = server.requests();
    let [record] = requests.as_slice() else {
        panic!("one request")
    };
    assert_eq!(record.group, "demo.okt.dev");
    assert_eq!(record.version, "v1");
    assert_eq!(record.resource, "widgets");
    assert_eq!(record.subresource.as_deref(), Some("status"));
    assert_eq!(record.namespace.as_deref(), Some("default"));
    assert_eq!(record.name.as_deref(), Some("a"));
    assert_eq!(record.field_manager.as_deref(), Some("boss"));
    assert_eq!(record.status, 404);
}
