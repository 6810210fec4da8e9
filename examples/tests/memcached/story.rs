//! The story of a cache, from its creation to its end, on any API server.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Container;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;

use crate::stage::{NAME, Stage, patch};

/// Why a Deployment that changed a moment ago is not ready.
const UNSEEN: &str = "its controller has not observed it yet";

/// Returns the text of `Ready` for a Deployment that is not ready.
fn waits(why: &str) -> String {
    format!("False WaitingForResources: Deployment {NAME}: {why}")
}

/// Runs the whole story; the operator runs, and there is no cache yet.
pub(crate) async fn of_a_cache(stage: &Stage) {
    is_made_and_waited_for(stage).await;
    is_scaled(stage).await;
    is_repaired(stage).await;
    has_other_settings(stage).await;
    is_not_sound(stage).await;
    is_paused(stage).await;
    goes(stage).await;
}

async fn is_made_and_waited_for(stage: &Stage) {
    stage.create(&json!({})).await.expect("it is accepted");
    let unseen = waits(UNSEEN);
    stage.until_shows("Ready", &unseen).await;
    assert_eq!(stage.shows("UpToDate").await, Some(unseen));
    assert_eq!(stage.setting("MEMORY").await, "128");
    let service = stage.services.get(NAME).await.expect("it is there");
    let selector = service.spec.and_then(|spec| spec.selector);
    let labels = BTreeMap::from([("demo.okt.dev/memcached".to_owned(), NAME.to_owned())]);
    assert_eq!(selector, Some(labels));
    let container = container(stage).await;
    assert_eq!(container.image.as_deref(), Some("memcached:1.6"));
    assert_eq!(
        container.args,
        Some(vec!["-m$(MEMORY)".to_owned(), "-I$(MAX_ITEM)".to_owned()])
    );

    stage.servers(1).await;
    let some = waits("1 of 3 replicas are updated");
    stage.until_shows("Ready", &some).await;
    stage.servers(3).await;
    stage.until_ready(3).await;
    stage.nothing_is_written().await;
}

async fn is_scaled(stage: &Stage) {
    let to = async |size: i32| {
        let scale = Patch::Merge(json!({ "spec": { "replicas": size } }));
        let scaled = stage
            .caches
            .patch_scale(NAME, &PatchParams::default(), &scale)
            .await;
        scaled.expect("it is accepted");
        until_replicas(stage, size).await;
    };
    // As an autoscaler does it: it reads the scale, and finds the servers by its selector.
    let mut scale = stage.caches.get_scale(NAME).await.expect("it has a scale");
    let status = scale.status.as_ref().and_then(|it| it.selector.as_deref());
    assert_eq!(status, Some("demo.okt.dev/memcached=cache"));
    scale.spec.get_or_insert_default().replicas = Some(5);
    let posting = PostParams::default();
    let replaced = stage.caches.replace_scale(NAME, &posting, &scale).await;
    replaced.expect("it is accepted");
    until_replicas(stage, 5).await;
    stage.servers(5).await;
    stage.until_ready(5).await;
    to(2).await;
    // The controller has observed it, but the servers are not gone yet.
    stage.servers(5).await;
    let too_many = waits("3 replicas too many are not gone yet");
    stage.until_shows("Ready", &too_many).await;
    stage.servers(2).await;
    stage.until_ready(2).await;
}

/// Declared fields are restored, and additions of others are kept.
async fn is_repaired(stage: &Stage) {
    let containers = json!([{ "name": "memcached", "image": "memcached:0" }]);
    let other_image = json!({ "spec": { "template": { "spec": { "containers": containers } } } });
    let strategic = Patch::Strategic(other_image);
    let patched = stage
        .deployments
        .patch(NAME, &PatchParams::default(), &strategic)
        .await;
    patched.expect("it is accepted");
    patch(&stage.maps, json!({ "data": { "MEMORY": "1" } })).await;
    let deleted = stage.services.delete(NAME, &DeleteParams::default()).await;
    deleted.expect("a deletion");
    let so = async || {
        container(stage).await.image.as_deref() == Some("memcached:1.6")
            && stage.setting("MEMORY").await == "128"
            && stage
                .services
                .get_opt(NAME)
                .await
                .expect("an answer")
                .is_some()
    };
    stage.until_so("all of it is repaired", so).await;
    // The earlier status was about the earlier state.
    stage.until_shows("Ready", &waits(UNSEEN)).await;
    stage.servers(2).await;
    stage.until_ready(2).await;

    patch(&stage.maps, json!({ "data": { "NOTE": "of others" } })).await;
    let patience =
        json!({ "spec": { "minReadySeconds": 3 }, "metadata": { "labels": { "team": "a" } } });
    patch(&stage.deployments, patience).await;
    stage.until_shows("Ready", &waits(UNSEEN)).await;
    stage.servers(2).await;
    stage.until_ready(2).await;
    stage.nothing_is_written().await;
    assert_eq!(stage.setting("NOTE").await, "of others");
    let deployment = stage.deployment().await;
    assert_eq!(deployment.spec.min_ready_seconds, Some(3));
    assert_eq!(deployment.metadata.labels.unwrap_or_default()["team"], "a");
}

async fn has_other_settings(stage: &Stage) {
    stage.ask_for(json!({ "memoryMib": 256 })).await;
    let so = async || stage.setting("MEMORY").await == "256";
    stage.until_so("the settings are other ones", so).await;
    let other_servers = async || {
        let template = stage.deployment().await.spec.template;
        let annotations = template.metadata.and_then(|it| it.annotations);
        let shown = annotations.unwrap_or_default();
        shown["demo.okt.dev/settings"] == r#"{"MAX_ITEM":"1m","MEMORY":"256"}"#
    };
    stage
        .until_so("the servers are others too", other_servers)
        .await;
    stage.servers(2).await;
    stage.until_ready(2).await;
}

/// An invalid spec changes nothing and is not retried.
async fn is_not_sound(stage: &Stage) {
    let before = stage.versions().await;
    stage.ask_for(json!({ "maxItemMib": 200, "size": 9 })).await;
    let why = "spec.maxItemMib: 200 is more than half of spec.memoryMib, 256";
    let stalled = format!("True ItemsTooLarge: {why}; it is retried when something changes");
    stage.until_shows("Stalled", &stalled).await;
    let valid = stage.shows("Valid").await;
    assert_eq!(valid, Some(format!("False ItemsTooLarge: {why}")));
    stage.nothing_is_written().await;
    assert_eq!(stage.versions().await, before);
    stage.ask_for(json!({ "maxItemMib": 1, "size": 2 })).await;
    stage.until_ready(2).await;
    assert_eq!(stage.shows("Stalled").await, None);
}

async fn is_paused(stage: &Stage) {
    stage.pause(true).await;
    let paused = async || is(stage, "Paused", "True").await;
    stage.until_so("it is paused", paused).await;
    stage.ask_for(json!({ "size": 4 })).await;
    stage.nothing_is_written().await;
    assert_eq!(replicas(stage).await, Some(2));
    stage.pause(false).await;
    let so = async || replicas(stage).await == Some(4);
    stage.until_so("what was asked for is done", so).await;
    stage.servers(4).await;
    stage.until_ready(4).await;
}

/// The service goes first, so that no client is sent to the servers; then the servers, the cache, and what is left.
async fn goes(stage: &Stage) {
    // The controller lets a server end gracefully.
    let rest = stage.server_that_takes_its_time().await;
    stage.delete(&DeleteParams::default()).await;
    let waits = "False WaitingForResources: Deployment cache is not gone yet";
    let so = async || {
        let shown = stage.shows("Ready").await.unwrap_or_default();
        shown.starts_with(waits)
    };
    stage.until_so("the servers are waited for", so).await;
    stage.nothing_is_written().await;
    let [settings, service, deployment] = stage.versions().await;
    assert_eq!(service, None);
    assert!(settings.is_some() && deployment.is_some());
    stage.server_has_ended(&rest).await;
    let gone = async || {
        let cache = stage.caches.get_opt(NAME).await.expect("an answer");
        cache.is_none() && stage.versions().await == [None, None, None]
    };
    stage.until_so("all of it is gone", gone).await;
}

/// Returns whether a condition has a status, for any generation.
async fn is(stage: &Stage, condition: &str, status: &str) -> bool {
    let cache = stage.caches.get(NAME).await.expect("it is there");
    let conditions = cache.status.map(|it| it.conditions).unwrap_or_default();
    (conditions.iter()).any(|it| it.type_ == condition && it.status == status)
}

async fn replicas(stage: &Stage) -> Option<i32> {
    stage.deployment().await.spec.replicas
}

pub(crate) async fn until_replicas(stage: &Stage, size: i32) {
    let so = async || replicas(stage).await == Some(size);
    stage.until_so("the Deployment is scaled", so).await;
}

async fn container(stage: &Stage) -> Container {
    let pod = stage.deployment().await.spec.template.spec;
    let pod = pod.expect("a pod");
    pod.containers.into_iter().next().expect("a container")
}
