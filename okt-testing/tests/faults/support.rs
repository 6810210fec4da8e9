//! Helpers for these tests; their objects are config maps.

use std::{fmt::Debug, pin::Pin};

use futures::{Stream, StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client, ResourceExt,
    api::{Patch, PatchParams, PostParams, WatchEvent, WatchParams},
    core::Status,
};
use serde_json::json;

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
