//! Tests the server with webhooks that a real server cannot have in a test: slow ones, and those that never have enough.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::{Request, Response};
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{DeleteParams, EvictParams, ListParams, Patch, PatchParams, PostParams};
use kube::client::Body;
use kube::{Api, Client};
use okt_apiserver::ApiServer;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use tower::{BoxError, service_fn};

use crate::support::{create, server, try_create, widgets};

/// Lets a validating webhook, which first does something, allow these operations on widgets; counts its calls.
async fn allow<F: Future<Output = ()> + Send>(
    server: &ApiServer,
    fields: Value,
    before: impl Fn(Client) -> F + Clone + Send + Sync + 'static,
) -> Arc<AtomicUsize> {
    let calls = Arc::new(AtomicUsize::new(0));
    let (counted, client) = (Arc::clone(&calls), server.client());
    let answer = service_fn(move |request: Request<Body>| {
        counted.fetch_add(1, Ordering::Relaxed);
        let before = before(client.clone());
        async move {
            before.await;
            let body = request.into_body().collect_bytes().await?;
            let mut review: Value = serde_json::from_slice(&body)?;
            let uid = review["request"]["uid"].clone();
            review["response"] = json!({ "uid": uid, "allowed": true });
            Ok::<_, BoxError>(Response::new(review.to_string()))
        }
    });
    server.set_service("default", "guard", answer);
    let mut webhook = json!({
        "name": "guard.okt.dev",
        "clientConfig": { "service": { "namespace": "default", "name": "guard" } },
        "rules": [{
            "apiGroups": ["demo.okt.dev"], "apiVersions": ["*"], "operations": ["*"], "resources": ["widgets"],
        }],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    });
    for (key, value) in fields.as_object().into_iter().flatten() {
        webhook[key] = value.clone();
    }
    let configuration = json!({ "metadata": { "name": "guard" }, "webhooks": [webhook] });
    let configuration = serde_json::from_value(configuration).expect("a configuration");
    let all: Api<ValidatingWebhookConfiguration> = Api::all(server.client());
    let made = all.create(&PostParams::default(), &configuration).await;
    made.expect("it is created");
    calls
}

#[tokio::test(start_paused = true)]
async fn a_webhook_is_asked_once_about_each_object_of_a_collection() {
    let (server, client) = server().await;
    for number in 0..300 {
        create(&client, &format!("w{number}"), json!({})).await;
    }
    let calls = allow(&server, json!({}), async |_| {}).await;
    let all = widgets(&client);
    let (all_of_them, now) = (ListParams::default(), DeleteParams::default());
    let deleted = all.delete_collection(&now, &all_of_them).await;
    deleted.expect("they are deleted");
    assert_eq!(calls.load(Ordering::Relaxed), 300);
    let left = all.list(&ListParams::default()).await.expect("a list");
    assert_eq!(left.items.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_slow_webhook_is_given_up_after_its_time_which_is_virtual() {
    let (server, client) = server().await;
    let an_hour = async |_| sleep(Duration::from_hours(1)).await;
    allow(&server, json!({ "timeoutSeconds": 7 }), an_hour).await;
    let begun = Instant::now();
    let refused = try_create(&client, "a", json!({})).await;
    let refused = refused.expect_err("nobody answers").to_string();
    assert!(refused.contains("context deadline exceeded"), "{refused}");
    assert_eq!(begun.elapsed().as_secs(), 7);
}

/// Changes the widget that somebody asks about.
async fn change(client: Client, stamp: String) {
    let stamp = Patch::Merge(json!({ "status": { "phase": stamp } }));
    let params = PatchParams::default();
    let changed = widgets(&client).patch_status("a", &params, &stamp).await;
    changed.expect("it is changed");
    sleep(Duration::from_secs(1)).await;
}

#[tokio::test(start_paused = true)]
async fn a_webhook_that_changes_what_it_is_asked_about_is_not_asked_for_ever() {
    let (server, client) = server().await;
    create(&client, "a", json!({})).await;
    let stamps = Arc::new(AtomicUsize::new(0));
    let changes = move |client: Client| {
        let stamp = stamps.fetch_add(1, Ordering::Relaxed).to_string();
        change(client, stamp)
    };
    let calls = allow(&server, json!({}), changes).await;
    let patch = Patch::Merge(json!({ "spec": { "replicas": 3 } }));
    let params = PatchParams::default();
    let patched = widgets(&client).patch("a", &params, &patch).await;
    let refused = patched.expect_err("there is no end").to_string();
    assert!(refused.contains("did not complete within"), "{refused}");
    assert!(calls.load(Ordering::Relaxed) < 50);
}

/// Returns an object of a kind of `k8s-openapi`.
fn object<K: serde::de::DeserializeOwned>(json: Value) -> K {
    serde_json::from_value(json).expect("an object")
}

#[tokio::test(start_paused = true)]
async fn an_eviction_that_a_webhook_allows_uses_up_its_budget_once() {
    let (server, client) = server().await;
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let budgets: Api<PodDisruptionBudget> = Api::default_namespaced(client);
    let (new, labels) = (PostParams::default(), json!({ "app": "a" }));
    let pod = object(json!({
        "metadata": { "name": "a", "labels": labels },
        "spec": { "containers": [{ "name": "a", "image": "a" }] },
    }));
    pods.create(&new, &pod).await.expect("a Pod");
    let budget = object(json!({
        "metadata": { "name": "a" },
        "spec": { "minAvailable": 1, "selector": { "matchLabels": labels } },
    }));
    budgets.create(&new, &budget).await.expect("a budget");
    let merge = PatchParams::default();
    let running = Patch::Merge(json!({ "status": { "phase": "Running" } }));
    pods.patch_status("a", &merge, &running)
        .await
        .expect("a status");
    let counted = Patch::Merge(json!({
        "status": {
            "observedGeneration": 1, "disruptionsAllowed": 2, "currentHealthy": 3, "desiredHealthy": 1, "expectedPods": 3,
        },
    }));
    budgets
        .patch_status("a", &merge, &counted)
        .await
        .expect("a status");
    let left = async || {
        let budget = budgets.get("a").await.expect("a budget");
        budget.status.and_then(|status| status.disruptions_allowed)
    };
    let rules = json!([{
        "apiGroups": [""], "apiVersions": ["*"], "operations": ["DELETE"], "resources": ["pods"],
    }]);
    let calls = allow(&server, json!({ "rules": rules }), async |_| {}).await;
    let dry_run = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let tried = EvictParams {
        post_options: dry_run,
        delete_options: None,
    };
    pods.evict("a", &tried).await.expect("it may be evicted");
    assert!(pods.get_opt("a").await.expect("an answer").is_some());
    assert_eq!(left().await, Some(2));
    calls.store(0, Ordering::Relaxed);
    pods.evict("a", &EvictParams::default())
        .await
        .expect("it is evicted");
    assert!(pods.get_opt("a").await.expect("an answer").is_none());
    assert_eq!((left().await, calls.load(Ordering::Relaxed)), (Some(1), 1));
}
