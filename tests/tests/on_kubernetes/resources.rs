//! These tests check owned resources on a real API server with garbage collection.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client, Resource};
use okt::{Declared, Operator, Resources, crd};
use okt_tests::rollout::Place;
use okt_tests::{Cluster, Shop, ShopState::Open, Shops, Tap};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::on_kubernetes;

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

struct Scene {
    client: Client,
    cluster: Cluster<Shops>,
    tap: Tap,
    app: Shops,
    operator: JoinHandle<()>,
}

impl Scene {
    async fn set(place: &Place) -> Self {
        let cluster: Cluster<Shops> = place.cluster();
        cluster.define(crd::<Shop>().expect("a CRD")).await;
        let (tap, app) = (Tap::default(), Shops::default());
        Self {
            operator: run(&tap.on(&place.client), &app),
            client: place.client.clone(),
            cluster,
            tap,
            app,
        }
    }

    async fn restart(&mut self) {
        self.operator.abort();
        // An aborted task returns an error.
        let _ = (&mut self.operator).await;
        self.operator = run(&self.tap.on(&self.client), &self.app);
    }

    /// Declares other resources, and changes the spec to cause a reconciliation.
    async fn declare(&self, resources: Resources, number: u32) {
        self.app.declare(resources);
        let touch = json!({ "spec": { "key": number.to_string() } });
        self.cluster.patch("shop", touch).await;
    }

    async fn text(&self, name: &str) -> Option<String> {
        let maps: Api<ConfigMap> = Api::namespaced(self.client.clone(), "default");
        let map = maps.get_opt(name).await.expect("a read")?;
        map.data?.get("text").cloned()
    }

    /// Returns the writes to other objects than the shop.
    fn writes(&self) -> Vec<String> {
        let all = self.tap.writes().into_iter();
        all.filter(|write| !write.path.contains("/shops/"))
            .map(|write| format!("{} {}", write.method, write.path))
            .collect()
    }

    /// Waits until the expected number of writes was sent, and a moment longer, because an answer arrives after its
    /// effect.
    async fn wrote(&self, place: &Place, expected: &[&str]) {
        until(place, "it was written", async || {
            self.writes().len() >= expected.len()
        })
        .await;
        tokio::time::sleep(MOMENT).await;
        assert_eq!(self.writes(), expected);
        self.tap.clear();
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.operator.abort();
    }
}

fn run(client: &Client, app: &Shops) -> JoinHandle<()> {
    let operator = Operator::new(client.clone(), app.clone());
    tokio::spawn(async move {
        operator
            .run(std::future::pending())
            .await
            .expect("the operator runs");
    })
}

/// Waits until a condition holds.
pub(super) async fn until(place: &Place, what: &str, mut so: impl AsyncFnMut() -> bool) {
    let waited = async {
        while !so().await {
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
    };
    let waited = tokio::time::timeout(place.patience, waited).await;
    waited.unwrap_or_else(|_| panic!("waited in vain until {what}"));
}

#[tokio::test]
#[ignore = "needs a real API server; run with --include-ignored"]
async fn owned_resources_are_created_repaired_and_deleted_and_nothing_is_written_twice() {
    on_kubernetes("what an object owns", async |place| {
        let mut scene = Scene::set(&place).await;
        let both = |text: &str| Resources::new().apply(map("a", text)).with(role());
        scene
            .app
            .declare(both("x").apply(map("b", "x")).apply(deployment()));
        scene.cluster.create("shop", json!({})).await;
        scene.cluster.until_ready("shop", Open).await;
        let of = |kind: &str, name: &str| format!("PATCH /api/v1/namespaces/default/{kind}/{name}");
        let (a, b) = (of("configmaps", "a"), of("configmaps", "b"));
        let role = "PATCH /apis/rbac.authorization.k8s.io/v1/clusterroles/okt-test-shop";
        let web = "PATCH /apis/apps/v1/namespaces/default/deployments/web";
        // A resource without an owner reference is recorded before it is created.
        scene.wrote(&place, &[&a, &b, web, role]).await;

        // Nothing is written again, neither after the server's changes on storage nor after a restart.
        tokio::time::sleep(QUIET).await;
        scene.restart().await;
        tokio::time::sleep(QUIET).await;
        assert_eq!(scene.tap.writes(), []);

        // Another manager takes a field by force, and adds one.
        let theirs = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": { "name": "a" },
            "data": { "text": "theirs", "more": "theirs" },
        });
        let maps: Api<ConfigMap> = Api::namespaced(scene.client.clone(), "default");
        let params = PatchParams::apply("somebody").force();
        let taken = maps.patch("a", &params, &Patch::Apply(theirs)).await;
        taken.expect("it is taken");
        until(&place, "it is repaired", async || {
            scene.text("a").await.as_deref() == Some("x")
        })
        .await;
        let repaired = maps.get("a").await.expect("it is there");
        assert_eq!(repaired.data.expect("data")["more"], "theirs");
        scene.wrote(&place, &[&a]).await;

        // One resource is changed, and one is no longer declared.
        scene.declare(both("y").apply(deployment()), 1).await;
        until(&place, "what is declared no more is gone", async || {
            scene.text("b").await.is_none() && scene.text("a").await.as_deref() == Some("y")
        })
        .await;
        let gone = "DELETE /api/v1/namespaces/default/configmaps/b";
        scene.wrote(&place, &[&a, gone]).await;

        // The server collects the owned resources; the operator deletes the others before.
        scene.cluster.delete("shop").await;
        scene.cluster.until_gone("shop").await;
        let roles: Api<ClusterRole> = Api::all(scene.client.clone());
        assert!(
            roles
                .get_opt("okt-test-shop")
                .await
                .expect("a read")
                .is_none()
        );
        until(&place, "the rest is collected", async || {
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
        let scene = Scene::set(&place).await;
        scene.app.declare(Resources::new().apply_ready(deployment()));
        scene.cluster.create("shop", json!({})).await;
        let waits = scene.cluster.until_reason("shop", "Ready", "WaitingForResources");
        assert_eq!(
            waits.await.message,
            "Deployment web: its controller has not observed it yet"
        );
        assert_eq!(scene.app.ran(), [""; 0]);
        let deployments: Api<Deployment> = Api::namespaced(scene.client.clone(), "default");
        let status = json!({ "status": {
            "observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1,
        } });
        let patch = Patch::Merge(status);
        let patched = deployments.patch_status("web", &PatchParams::default(), &patch).await;
        patched.expect("the status is accepted");
        scene.cluster.until_ready("shop", Open).await;
        assert_eq!(scene.app.ran(), ["Opening with 1", "Open with 1"]);
        scene.cluster.delete("shop").await;
        scene.cluster.until_gone("shop").await;
    })
    .await;
}

#[tokio::test]
#[ignore = "needs a real API server; run with --include-ignored"]
async fn waves_are_deleted_in_order_with_their_dependents() {
    on_kubernetes("waves of deletion", async |place| {
        let scene = Scene::set(&place).await;
        let maps: Api<ConfigMap> = Api::namespaced(scene.client.clone(), "default");
        scene.app.declare(
            Resources::new()
                .with(Declared::of(map("first", "x")).wave(2))
                .with(Declared::of(map("second", "x")).wave(1))
                .apply(map("last", "x")),
        );
        scene.cluster.create("shop", json!({})).await;
        scene.cluster.until_ready("shop", Open).await;
        // A dependent of the first map, held by a foreign finalizer: the server deletes the map after its dependent.
        let owner = maps.get("first").await.expect("it is there");
        let mut owned = map("of-first", "x");
        let mut reference = owner.controller_owner_ref(&()).expect("it can be an owner");
        reference.block_owner_deletion = Some(true);
        owned.metadata.owner_references = Some(vec![reference]);
        owned.metadata.finalizers = Some(vec!["test.okt.dev/hold".to_owned()]);
        let made = maps.create(&PostParams::default(), &owned).await;
        made.expect("it is made");
        scene.tap.clear();
        scene.cluster.delete("shop").await;
        let waits = scene
            .cluster
            .until_reason("shop", "Ready", "WaitingForResources");
        let waits = waits.await.message;
        assert!(
            waits.starts_with("ConfigMap first is not gone yet"),
            "{waits}"
        );
        tokio::time::sleep(QUIET).await;
        let of = |name: &str| format!("DELETE /api/v1/namespaces/default/configmaps/{name}");
        assert_eq!(scene.writes(), [of("first")]);
        let free = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
        let freed = maps.patch("of-first", &PatchParams::default(), &free).await;
        freed.expect("it is freed");
        scene.cluster.until_gone("shop").await;
        assert_eq!(scene.writes()[..2], [of("first"), of("second")]);
        assert_eq!(
            (scene.text("first").await, scene.text("second").await),
            (None, None)
        );
        until(&place, "the rest is collected", async || {
            scene.text("last").await.is_none()
        })
        .await;
    })
    .await;
}
