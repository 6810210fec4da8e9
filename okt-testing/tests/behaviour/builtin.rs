//! This file tests the kinds that need no CRD.

use k8s_openapi::api::{
    apps::v1::Deployment,
    coordination::v1::Lease,
    core::v1::{ConfigMap, Event, Namespace, ObjectReference, Pod, Secret, Service},
    events::v1::Event as NewEvent,
};
use kube::{
    Api, Client,
    api::{ListParams, Patch, PatchParams, PostParams},
    runtime::events::{self, EventType, Recorder, Reporter},
};
use okt_testing::ApiServer;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::support::refusal;

fn client() -> Client {
    ApiServer::new().client()
}

async fn make<K>(client: &Client, object: Value) -> K
where
    K: kube::Resource<Scope = kube::core::NamespaceResourceScope, DynamicType = ()>
        + Clone
        + std::fmt::Debug
        + Serialize
        + DeserializeOwned,
{
    let object: K = serde_json::from_value(object).unwrap();
    Api::default_namespaced(client.clone())
        .create(&PostParams::default(), &object)
        .await
        .unwrap()
}

#[tokio::test]
async fn namespaces_are_there_from_the_start() {
    let namespaces: Api<Namespace> = Api::all(client());
    let default = namespaces.get("default").await.unwrap();
    assert_eq!(default.status.unwrap().phase.as_deref(), Some("Active"));
    assert_eq!(
        namespaces
            .list(&ListParams::default())
            .await
            .unwrap()
            .items
            .len(),
        4
    );
}

#[tokio::test]
async fn a_config_map_is_stored_as_it_is() {
    let client = client();
    let made: ConfigMap = make(
        &client,
        json!({ "metadata": { "name": "a" }, "data": { "k": "v" } }),
    )
    .await;
    assert_eq!(made.data.unwrap()["k"], "v");
    assert_eq!(made.metadata.generation, None);
}

#[tokio::test]
async fn string_data_of_a_secret_becomes_data() {
    let client = client();
    let object = json!({ "metadata": { "name": "a" }, "stringData": { "k": "v" } });
    let made: Secret = make(&client, object).await;
    assert_eq!(made.data.unwrap()["k"].0, b"v");
    assert_eq!(made.string_data, None);
}

#[tokio::test]
async fn a_stale_put_of_a_lease_is_409() {
    let client = client();
    let mut lease: Lease = make(&client, json!({ "metadata": { "name": "l" }, "spec": {} })).await;
    let api: Api<Lease> = Api::default_namespaced(client);
    let old = lease.clone();
    lease.spec.as_mut().unwrap().holder_identity = Some("a".to_owned());
    api.replace("l", &PostParams::default(), &lease)
        .await
        .unwrap();
    let outcome = api.replace("l", &PostParams::default(), &old).await;
    assert_eq!(refusal(outcome).code, 409);
}

#[tokio::test]
async fn ports_of_a_service_are_merged_by_port_and_protocol() {
    let client = client();
    let api: Api<Service> = Api::default_namespaced(client);
    let ports = |port: i32| {
        Patch::Apply(json!({
            "apiVersion": "v1", "kind": "Service", "metadata": { "name": "s" },
            "spec": { "ports": [{ "port": port, "name": format!("p{port}") }] },
        }))
    };
    api.patch("s", &PatchParams::apply("one"), &ports(80))
        .await
        .unwrap();
    let both = api
        .patch("s", &PatchParams::apply("two"), &ports(81))
        .await
        .unwrap();
    assert_eq!(both.spec.unwrap().ports.unwrap().len(), 2);
}

fn deployment() -> Value {
    json!({
        "metadata": { "name": "d" },
        "spec": {
            "replicas": 2,
            "selector": { "matchLabels": { "a": "b" } },
            "template": {
                "metadata": { "labels": { "a": "b" } },
                "spec": { "containers": [{ "name": "one", "image": "x" }, { "name": "two", "image": "y" }] },
            },
        },
    })
}

#[tokio::test]
async fn a_strategic_merge_patch_merges_containers_by_name() {
    let client = client();
    make::<Deployment>(&client, deployment()).await;
    let api: Api<Deployment> = Api::default_namespaced(client);
    let patch = Patch::Strategic(json!({
        "spec": { "template": { "spec": {
            "$setElementOrder/containers": [{ "name": "one" }, { "name": "two" }],
            "containers": [{ "name": "two", "image": "z" }, { "name": "one", "$patch": "delete" }],
        } } },
    }));
    let patched = api
        .patch("d", &PatchParams::default(), &patch)
        .await
        .unwrap();
    assert_eq!(patched.metadata.generation, Some(2));
    let containers = patched.spec.template.spec.unwrap().containers;
    assert_eq!(containers.len(), 1);
    assert_eq!(
        (containers[0].name.as_str(), containers[0].image.as_deref()),
        ("two", Some("z"))
    );
}

#[tokio::test]
async fn a_deployment_has_a_scale_and_a_status_of_its_own() {
    let client = client();
    make::<Deployment>(&client, deployment()).await;
    let api: Api<Deployment> = Api::default_namespaced(client);
    let scale = api.get_scale("d").await.unwrap();
    assert_eq!(scale.status.unwrap().selector.as_deref(), Some("a=b"));
    let patch =
        Patch::Merge(json!({ "spec": { "replicas": 9 }, "status": { "readyReplicas": 2 } }));
    let patched = api
        .patch_status("d", &PatchParams::default(), &patch)
        .await
        .unwrap();
    assert_eq!(patched.spec.replicas, Some(2));
    assert_eq!(patched.status.unwrap().ready_replicas, Some(2));
}

#[tokio::test]
async fn items_of_a_built_in_list_do_not_say_what_they_are() {
    let client = client();
    make::<ConfigMap>(&client, json!({ "metadata": { "name": "a" } })).await;
    let request = http::Request::get("/api/v1/namespaces/default/configmaps")
        .body(vec![])
        .unwrap();
    let list: Value = client.request(request).await.unwrap();
    assert_eq!(list["kind"], "ConfigMapList");
    assert!(list["items"][0].get("kind").is_none());
}

#[tokio::test]
async fn what_a_real_server_has_beyond_this_is_501() {
    let client = client();
    let nodes: Api<k8s_openapi::api::core::v1::Node> = Api::all(client.clone());
    let status = refusal(nodes.list(&ListParams::default()).await);
    assert_eq!(status.code, 501);
    assert_eq!(
        status.message,
        "okt-testing does not serve this: the resource nodes of /v1"
    );
    let pods: Api<Pod> = Api::default_namespaced(client);
    let status = refusal(pods.evict("a", &kube::api::EvictParams::default()).await);
    assert_eq!(status.code, 405, "a POST to a subresource");
}

#[tokio::test]
async fn a_recorder_that_says_a_thing_twice_makes_one_event_with_a_series() {
    let client = client();
    let recorder = Recorder::new(client.clone(), Reporter::from("okt"));
    let regarding = ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("ConfigMap".to_owned()),
        name: Some("a".to_owned()),
        namespace: Some("default".to_owned()),
        uid: Some("u".to_owned()),
        ..ObjectReference::default()
    };
    let event = events::Event {
        type_: EventType::Normal,
        reason: "Moved".to_owned(),
        note: Some("it moved".to_owned()),
        action: "Move".to_owned(),
        secondary: None,
    };
    recorder.publish(&event, &regarding).await.unwrap();
    recorder.publish(&event, &regarding).await.unwrap();
    let events: Api<NewEvent> = Api::default_namespaced(client.clone());
    let list = events.list(&ListParams::default()).await.unwrap();
    assert_eq!(list.items.len(), 1);
    assert_eq!(
        list.items[0].series.as_ref().map(|series| series.count),
        Some(2)
    );
    assert_eq!(list.items[0].note.as_deref(), Some("it moved"));

    let old: Api<Event> = Api::default_namespaced(client);
    let by = ListParams::default().fields("involvedObject.name=a,involvedObject.uid=u");
    let list = old.list(&by).await.unwrap();
    assert_eq!(list.items.len(), 1, "the core group shows the same event");
    assert_eq!(list.items[0].message.as_deref(), Some("it moved"));
}
