//! These tests check owned resources on a real API server with garbage collection.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::Resource;
use kube::api::{Patch, PatchParams};
use okt::{Declared, Resources};
use okt_tests::{Objects, ShopState::Open, Shops, until};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::{Scene, on_kubernetes};

/// The maximum delay between an effect and the operator's receipt of the answer.
const MOMENT: Duration = Duration::from_millis(500);

/// The time for which a server must get no requests.
const QUIET: Duration = Duration::from_secs(3);

pub(super) fn of<T: DeserializeOwned>(object: Value) -> T {
    serde_json::from_value(object).expect("an object")
}

pub(super) fn map(name: &str, text: &str) -> ConfigMap {
    of(json!({ "metadata": { "name": name }, "data": { "text": text } }))
}

/// A Deployment that a server stores differently than it was sent: quantities, and defaults.
pub(super) fn deployment() -> Deployment {
    of(json!({
        "metadata": { "name": "web" },
        "spec": {
            "replicas": 1,
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{
                    "name": "web",
                    "image": "web:1",
                    "args": [],
                    "env": [{ "name": "A", "value": "" }],
                    "ports": [{ "containerPort": 80 }],
                    "resources": { "limits": { "cpu": "1000m", "memory": "0.5Gi" } },
                    "readinessProbe": { "httpGet": { "port": "http" } },
                }] },
            },
        },
    }))
}

fn role() -> Declared {
    Declared::of(of::<ClusterRole>(
        json!({ "metadata": { "name": "okt-test-shop" } }),
    ))
    .unowned()
}

impl Scene<Shops> {
    /// Declares other resources, and changes the spec to cause a reconciliation.
    pub(super) async fn declare(&self, resources: Resources, number: u32) {
        self.app.declare(resources);
        let touch = json!({ "spec": { "key": number.to_string() } });
        self.patch("shop", touch).await;
    }

    /// Returns the writes to other objects than the shop.
    fn writes(&self) -> Vec<String> {
        let all = self.working.tap.writes().into_iter();
        all.filter(|write| !write.path.contains("/shops/"))
            .map(|write| format!("{} {}", write.method, write.path))
            .collect()
    }

    /// Waits until the expected number of writes was sent, and a moment longer, because an answer arrives after its
    /// effect.
    async fn wrote(&self, expected: &[&str]) {
        until("it was written", async || {
            self.writes().len() >= expected.len()
        })
        .await;
        tokio::time::sleep(MOMENT).await;
        assert_eq!(self.writes(), expected);
        self.working.tap.clear();
    }
}

#[tokio::test]
#[ignore = "needs a real API server; run with --include-ignored"]
async fn owned_resources_are_created_repaired_and_deleted_and_nothing_is_written_twice() {
    on_kubernetes("what an object owns", async |place| {
        let mut scene = Scene::<Shops>::set(&place, |_| {}).await;
        let both = |text: &str| Resources::new().apply(map("a", text)).with(role());
        let declared = both("x").apply(map("b", "x")).apply(deployment());
        scene.app.declare(declared);
        scene.create_ready("shop", Open).await;
        let of = |kind: &str, name: &str| format!("PATCH /api/v1/namespaces/default/{kind}/{name}");
        let (a, b) = (of("configmaps", "a"), of("configmaps", "b"));
        let role = "PATCH /apis/rbac.authorization.k8s.io/v1/clusterroles/okt-test-shop";
        let web = "PATCH /apis/apps/v1/namespaces/default/deployments/web";
        // A resource without an owner reference is recorded before it is created.
        scene.wrote(&[&a, &b, web, role]).await;

        // Nothing is written again, neither after the server's changes on storage nor after a restart.
        tokio::time::sleep(QUIET).await;
        assert_eq!(scene.working.tap.writes(), []);
        scene.restart().await;
        tokio::time::sleep(QUIET).await;
        assert_eq!(scene.working.tap.writes(), []);

        // Another manager takes a field by force, and adds one.
        let theirs = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": { "name": "a" },
            "data": { "text": "theirs", "more": "theirs" },
        });
        let maps = scene.of::<ConfigMap>();
        let params = PatchParams::apply("somebody").force();
        let taken = maps.patch("a", &params, &Patch::Apply(theirs)).await;
        taken.expect("it is taken");
        until("it is repaired", async || {
            scene.text("a").await.as_deref() == Some("x")
        })
        .await;
        let repaired = maps.read("a").await;
        assert_eq!(repaired.data.expect("data")["more"], "theirs");
        scene.wrote(&[&a]).await;

        // One resource is changed, and one is no longer declared.
        scene.declare(both("y").apply(deployment()), 1).await;
        until("what is declared no more is gone", async || {
            scene.text("b").await.is_none() && scene.text("a").await.as_deref() == Some("y")
        })
        .await;
        let gone = "DELETE /api/v1/namespaces/default/configmaps/b";
        scene.wrote(&[&a, gone]).await;

        // The server collects the owned resources; the operator deletes the others before.
        scene.delete_until_gone("shop").await;
        let roles = scene.of::<ClusterRole>();
        assert!(!roles.has("okt-test-shop").await);
        until("the rest is collected", async || {
            scene.text("a").await.is_none()
        })
        .await;
    })
    .await;
}

#[tokio::test]
#[ignore = "needs a real API server; run with --include-ignored"]
async fn work_waits_until_the_status_of_a_deployment_is_ready() {
    on_kubernetes("what work waits for", async |place| {
        let scene = Scene::<Shops>::set(&place, |_| {}).await;
        scene.app.declare(Resources::new().apply_ready(deployment()));
        scene.create("shop", json!({})).await;
        let waits = scene.until_reason("shop", "Ready", "WaitingForResources");
        assert_eq!(
            waits.await.message,
            "Deployment web: its controller has not observed it yet"
        );
        assert_eq!(scene.app.ran(), [""; 0]);
        let status = json!({
            "observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1,
        });
        scene.of::<Deployment>().edit_status("web", status).await;
        scene.until_ready("shop", Open).await;
        assert_eq!(scene.app.ran(), ["Opening with 1", "Open with 1"]);
        scene.delete_until_gone("shop").await;
    })
    .await;
}

#[tokio::test]
#[ignore = "needs a real API server; run with --include-ignored"]
async fn waves_are_deleted_in_order_with_their_dependents() {
    on_kubernetes("waves of deletion", async |place| {
        let scene = Scene::<Shops>::set(&place, |_| {}).await;
        let maps = scene.of::<ConfigMap>();
        scene.app.declare(
            Resources::new()
                .with(Declared::of(map("first", "x")).wave(2))
                .with(Declared::of(map("second", "x")).wave(1))
                .apply(map("last", "x")),
        );
        scene.create_ready("shop", Open).await;
        // A dependent of the first map, held by a foreign finalizer: the server deletes the map after its dependent.
        let owner = maps.read("first").await;
        let mut owned = map("of-first", "x");
        let mut reference = owner.controller_owner_ref(&()).expect("it can be an owner");
        reference.block_owner_deletion = Some(true);
        owned.metadata.owner_references = Some(vec![reference]);
        owned.metadata.finalizers = Some(vec!["test.okt.dev/hold".to_owned()]);
        maps.make(json!(&owned)).await;
        scene.working.tap.clear();
        scene.delete("shop").await;
        let waits = scene.until_reason("shop", "Ready", "WaitingForResources");
        let waits = waits.await.message;
        assert!(
            waits.starts_with("ConfigMap first is not gone yet"),
            "{waits}"
        );
        tokio::time::sleep(QUIET).await;
        let of = |name: &str| format!("DELETE /api/v1/namespaces/default/configmaps/{name}");
        assert_eq!(scene.writes(), [of("first")]);
        maps.edit("of-first", json!({ "metadata": { "finalizers": null } }))
            .await;
        scene.until_gone("shop").await;
        assert_eq!(scene.writes()[..2], [of("first"), of("second")]);
        assert_eq!(
            (scene.text("first").await, scene.text("second").await),
            (None, None)
        );
        until("the rest is collected", async || {
            scene.text("last").await.is_none()
        })
        .await;
    })
    .await;
}
