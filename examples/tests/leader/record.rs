//! Records every version of every leaflet from a watch, and checks the rules.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use kube::api::{DynamicObject, ListParams, WatchEvent, WatchParams};
use kube::core::ApiResource;
use kube::{Api, Client};
use okt_core::{Lifecycle, StateId};
use okt_examples::leaflets::{Leaflet, LeafletState};
use okt_testing::rehearsal::Rules;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::task::JoinHandle;

/// The versions that a watch showed, in order.
pub(crate) struct Record {
    versions: Arc<Mutex<Vec<Value>>>,
    watch: JoinHandle<()>,
}

impl Drop for Record {
    fn drop(&mut self) {
        self.watch.abort();
    }
}

impl Record {
    /// Starts to watch.
    pub(crate) async fn begin(client: Client) -> Self {
        let kind = ApiResource::erase::<Leaflet>(&());
        let api: Api<DynamicObject> = Api::default_namespaced_with(client, &kind);
        let list = api.list(&ListParams::default()).await.unwrap();
        assert!(list.items.is_empty());
        let mut from = list.metadata.resource_version.unwrap();
        let versions = Arc::new(Mutex::new(Vec::new()));
        let into = Arc::clone(&versions);
        let watch = tokio::spawn(async move {
            loop {
                // A watch that ends continues where it ended, so nothing is missed.
                let Ok(watch) = api.watch(&WatchParams::default(), &from).await else {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                };
                let mut watch = watch.boxed();
                while let Ok(Some(event)) = watch.try_next().await {
                    let object = match event {
                        WatchEvent::Added(object) | WatchEvent::Modified(object) => object,
                        // A record with a gap proves nothing, so the tests that wait for it fail.
                        WatchEvent::Error(error) => panic!("versions were missed: {error:?}"),
                        WatchEvent::Deleted(_) | WatchEvent::Bookmark(_) => continue,
                    };
                    from = object.metadata.resource_version.clone().unwrap();
                    let mut versions = into.lock();
                    versions.push(serde_json::to_value(object).unwrap());
                }
            }
        });
        Self { versions, watch }
    }

    /// Ends the record.
    pub(crate) fn end(&self) {
        self.watch.abort();
    }

    fn versions(&self) -> Vec<Value> {
        self.versions.lock().clone()
    }

    /// Returns the histories of all leaflets by name, and all broken rules.
    ///
    /// A history has a uid and states, one per transition.
    pub(crate) fn histories(&self) -> (BTreeMap<String, History>, Vec<String>) {
        let rules = Rules::of::<LeafletState>();
        let mut histories = BTreeMap::<String, History>::new();
        let mut last = BTreeMap::<String, Value>::new();
        let mut broken = Vec::new();
        for after in self.versions() {
            let name = text(&after, "/metadata/name").to_owned();
            let before = last.insert(name.clone(), after.clone());
            let history = histories.entry(name.clone()).or_default();
            text(&after, "/metadata/uid").clone_into(&mut history.uid);
            if before.as_ref().map(|before| &before["status"]) == Some(&after["status"]) {
                continue;
            }
            if before.is_some() {
                history.writes += 1;
                let found = rules.broken(before.as_ref(), &after);
                broken.extend(found.iter().map(|rule| format!("{name}: {rule}")));
            }
            let Some(state) = after.pointer("/status/lifecycle/state") else {
                continue;
            };
            let state = state.as_str().unwrap();
            let number = |field: &str| {
                let number = after["status"]["lifecycle"][field].as_u64();
                usize::try_from(number.unwrap_or_default()).unwrap()
            };
            let (was, transition) = (history.states.len(), number("transition"));
            if number("jumps") != 0 {
                broken.push(format!("{name} jumped to {state}"));
            }
            if transition == was {
                if history.states.last().map(String::as_str) != Some(state) {
                    broken.push(format!("{name} is in {state} without a transition"));
                }
            } else if transition != was + 1 {
                broken.push(format!("{name} went from transition {was} to {transition}"));
            } else {
                let from = history.states.last().map(String::as_str);
                if !is_edge(from, state) {
                    broken.push(format!("{name} went from {from:?} to {state}"));
                }
                history.states.push(state.to_owned());
            }
        }
        (histories, broken)
    }
}

/// The history of one leaflet.
#[derive(Default, Debug)]
pub(crate) struct History {
    pub(crate) uid: String,
    pub(crate) states: Vec<String>,
    /// How often its status was written.
    pub(crate) writes: usize,
}

fn text<'a>(object: &'a Value, place: &str) -> &'a str {
    object
        .pointer(place)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

fn is_edge(from: Option<&str>, to: &str) -> bool {
    let graph = LeafletState::GRAPH;
    let id = |name| LeafletState::from_name(name).map(Lifecycle::id);
    let Some(to) = id(to) else { return false };
    let Some(from) = from else {
        return to == LeafletState::Typesetting.id();
    };
    let leads = |from: StateId| graph.get(from)?.targets().find(|target| *target == to);
    id(from).and_then(leads).is_some()
}
