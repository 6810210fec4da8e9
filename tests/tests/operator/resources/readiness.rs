//! Readiness of kinds that OKT does not know, and of rollouts that are stuck.

use std::marker::PhantomData;
use std::time::Duration;

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use kube::discovery::Scope;
use okt::{Declared, Operator, Resources, Watches};
use okt_tests::{OPERATOR, Objects, ShopState::Open, assert_contains};
use serde_json::{Value, json};

use super::release::{Owns, Release};
use super::{Shop, of};

/// Certificates, which nobody operates here, and `StatefulSet`s.
struct CertificatesAndSets;

impl Owns for CertificatesAndSets {
    fn watches(watches: Watches<okt_tests::Shop>) -> Watches<okt_tests::Shop> {
        watches
            .owns_dynamic(certificates(), &Scope::Namespaced)
            .owns::<StatefulSet>()
    }
}

fn certificates() -> ApiResource {
    let kind = GroupVersionKind::gvk("cert-manager.io", "v1", "Certificate");
    ApiResource::from_gvk(&kind)
}

async fn define_certificates(rig: &Shop) {
    let free = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let definition: CustomResourceDefinition = of(json!({
        "metadata": { "name": "certificates.cert-manager.io" },
        "spec": {
            "group": "cert-manager.io",
            "scope": "Namespaced",
            "names": { "plural": "certificates", "kind": "Certificate" },
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": {
                    "type": "object", "properties": { "spec": free, "status": free },
                } },
            }],
        },
    }));
    let definitions = rig.of::<CustomResourceDefinition>();
    definitions.make(json!(&definition)).await;
}

async fn start(declared: Declared) -> Shop {
    let rig = Shop::without_operator_of().await;
    define_certificates(&rig).await;
    rig.app.declare(Resources::new().with(declared));
    let release = Release(rig.app.clone(), PhantomData::<CertificatesAndSets>);
    let operator = Operator::new(rig.server.client_named(OPERATOR), release);
    tokio::spawn(operator.virtual_time().run(std::future::pending()));
    rig.create("shop", json!({})).await;
    rig.pass(Duration::from_mins(1)).await;
    rig
}

fn certificate() -> Declared {
    Declared::dynamic(json!({
        "apiVersion": "cert-manager.io/v1",
        "kind": "Certificate",
        "metadata": { "name": "web" },
        "spec": {},
    }))
}

async fn conditions(rig: &Shop, all: Value) {
    let api: Api<DynamicObject> =
        Api::namespaced_with(rig.client.clone(), "default", &certificates());
    api.edit_status("web", json!({ "conditions": all })).await;
    rig.pass(Duration::from_secs(10)).await;
}

fn condition(name: &str, status: &str, generation: i64) -> Value {
    json!({
        "type": name, "status": status, "reason": "Test", "message": "it says so",
        "lastTransitionTime": "2026-11-26T00:00:00Z", "observedGeneration": generation,
    })
}

async fn waits_for(rig: &Shop, what: &str) {
    rig.until_message("shop", "Ready", "WaitingForResources", what)
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_its_controller_has_not_seen_is_not_ready() {
    let rig = start(certificate().ready()).await;
    waits_for(
        &rig,
        "Certificate web: its controller has not written a status yet",
    )
    .await;
    conditions(&rig, json!([condition("Ready", "True", 0)])).await;
    waits_for(
        &rig,
        "Certificate web: its controller has not observed it yet",
    )
    .await;
    conditions(&rig, json!([condition("Ready", "True", 1)])).await;
    rig.until_ready("shop", Open).await;
}

#[tokio::test(start_paused = true)]
async fn a_resource_is_ready_when_the_condition_of_its_declaration_holds() {
    let rig = start(certificate().ready_when("Programmed")).await;
    waits_for(&rig, "its condition Programmed is not there yet").await;
    conditions(&rig, json!([condition("Ready", "True", 1)])).await;
    waits_for(&rig, "its condition Programmed is not there yet").await;
    conditions(&rig, json!([condition("Programmed", "False", 1)])).await;
    waits_for(&rig, "its condition Programmed is False: Test: it says so").await;
    conditions(&rig, json!([condition("Programmed", "True", 1)])).await;
    rig.until_ready("shop", Open).await;
}

#[tokio::test(start_paused = true)]
async fn a_rollout_that_waits_for_a_broken_pod_of_another_revision_stalls_with_the_remedy() {
    let set: StatefulSet = of(json!({
        "metadata": { "name": "servers" },
        "spec": {
            "replicas": 1,
            "serviceName": "servers",
            "selector": { "matchLabels": { "app": "servers" } },
            "template": {
                "metadata": { "labels": { "app": "servers" } },
                "spec": { "containers": [{ "name": "server", "image": "server:1" }] },
            },
        },
    }));
    let rig = start(Declared::of(set).ready()).await;
    let sets = rig.of::<StatefulSet>();
    let status = |revision: &str, ready: i64| {
        json!({
            "observedGeneration": 1, "replicas": 1, "readyReplicas": ready, "currentReplicas": 1,
            "updatedReplicas": ready, "currentRevision": "servers-a", "updateRevision": revision,
        })
    };
    sets.edit_status("servers", status("servers-b", 0)).await;
    rig.pass(Duration::from_mins(5)).await;
    waits_for(&rig, "waits until Pods of another revision are ready").await;
    let stalled = rig
        .until_reason("shop", "Stalled", "ResourceNotReady")
        .await;
    let remedy = "delete such a Pod if it cannot become ready";
    assert_contains(&stalled.message, remedy);
    sets.edit_status("servers", status("servers-a", 1)).await;
    rig.until_ready("shop", Open).await;
}
