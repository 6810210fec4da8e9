//! Helpers for these tests; their objects are config maps.

use std::fmt::Debug;
use std::pin::Pin;
use std::time::Duration;

use futures::{Stream, StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::Status;
use kube::{Api, Client, Config, ResourceExt};
use okt_apiserver::{ApiServer, Served};
use serde_json::json;
use tokio::time::timeout;

/// Creates a server, and returns it with its config maps.
pub(crate) fn empty() -> (ApiServer, Api<ConfigMap>) {
    let server = ApiServer::new();
    let maps = maps(server.client());
    (server, maps)
}

/// Creates a server with the map `a`, and returns it with its config maps and this one.
pub(crate) async fn with_a() -> (ApiServer, Api<ConfigMap>, ConfigMap) {
    let (server, maps) = empty();
    let first = create(&maps, "a").await.unwrap();
    (server, maps, first)
}

pub(crate) fn maps(client: Client) -> Api<ConfigMap> {
    Api::default_namespaced(client)
}

pub(crate) fn map(name: &str) -> ConfigMap {
    let mut map = ConfigMap::default();
    map.metadata.name = Some(name.to_owned());
    map
}

pub(crate) async fn create(maps: &Api<ConfigMap>, name: &str) -> kube::Result<ConfigMap> {
    maps.create(&PostParams::default(), &map(name)).await
}

/// Whether a client sends failed requests again, as kube's do by default.
#[derive(PartialEq)]
pub(crate) enum Retries {
    Default,
    None,
}

pub(crate) async fn over_http(served: &Served, retries: Retries) -> Client {
    let kubeconfig = Kubeconfig::from_yaml(&served.kubeconfig()).unwrap();
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
    let mut config = config.unwrap();
    config.default_retry = retries == Retries::Default;
    Client::try_from(config).unwrap()
}

/// Sets `data.x`.
pub(crate) async fn set(maps: &Api<ConfigMap>, name: &str, x: &str) -> kube::Result<ConfigMap> {
    let patch = Patch::Merge(json!({ "data": { "x": x } }));
    maps.patch(name, &PatchParams::default(), &patch).await
}

/// Returns `data.x`; empty if there is none.
pub(crate) fn x(map: &ConfigMap) -> String {
    let data = map.data.as_ref();
    data.and_then(|data| data.get("x"))
        .cloned()
        .unwrap_or_default()
}

pub(crate) fn version(map: &ConfigMap) -> String {
    map.resource_version().expect("a version")
}

/// Returns the `Status` of a refused request.
pub(crate) fn refusal<T: Debug>(outcome: kube::Result<T>) -> Status {
    match outcome {
        Err(kube::Error::Api(status)) => *status,
        other => panic!("expected a refusal, got {other:?}"),
    }
}

pub(crate) type Events = Pin<Box<dyn Stream<Item = kube::Result<WatchEvent<ConfigMap>>> + Send>>;

/// Watches from a version on, without bookmarks.
pub(crate) async fn watch(maps: &Api<ConfigMap>, from: &str) -> Events {
    let params = WatchParams {
        bookmarks: false,
        ..WatchParams::default()
    };
    maps.watch(&params, from).await.expect("a watch").boxed()
}

/// Returns the next events in short form.
pub(crate) async fn take(events: &mut Events, count: usize) -> Vec<String> {
    let events = events.by_ref().take(count).map_ok(|event| short(&event));
    events.try_collect().await.expect("events")
}

/// Returns the events that come before a silence of three minutes.
pub(crate) async fn until_silence(events: &mut Events) -> Vec<String> {
    let mut seen = Vec::new();
    while let Ok(Some(event)) = timeout(Duration::from_mins(3), events.next()).await {
        seen.push(short(&event.expect("an event")));
    }
    seen
}

/// Returns whether no event comes within a minute.
pub(crate) async fn is_silent(events: &mut Events) -> bool {
    let next = timeout(Duration::from_mins(1), events.next());
    next.await.is_err()
}

/// Formats an event as `MODIFIED a=2`.
pub(crate) fn short(event: &WatchEvent<ConfigMap>) -> String {
    let (word, map) = match event {
        WatchEvent::Added(map) => ("ADDED", map),
        WatchEvent::Modified(map) => ("MODIFIED", map),
        WatchEvent::Deleted(map) => ("DELETED", map),
        WatchEvent::Bookmark(_) => return "BOOKMARK".to_owned(),
        WatchEvent::Error(status) => return format!("ERROR {}", status.code),
    };
    format!("{word} {}={}", map.name_any(), x(map))
}
