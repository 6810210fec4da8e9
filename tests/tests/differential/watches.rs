//! The watches of a lane on one server, and their new events.

use std::time::Duration;

use futures::StreamExt;
use http::{Request, header};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::generator::Scene;
use crate::kinds::Kind;
use crate::operation::{Operation, Slot};
use crate::side::Side;

/// The time after which a watch counts as late.
const PATIENCE: Duration = Duration::from_mins(10);

/// The watches of one server: for each kind one without a selector, and one with a label selector.
pub(crate) struct Watches {
    feeds: Vec<Feed>,
    ticks: usize,
}

struct Feed {
    kind: usize,
    events: mpsc::UnboundedReceiver<Value>,
}

/// The events of a watch, with its kind and 0 or 1 for the selector.
pub(crate) type Events = Vec<(usize, usize, Vec<Value>)>;

/// Returns the object whose changes mark the progress of a watch.
pub(crate) fn marker(kind: &Kind, namespace: &str) -> Slot {
    let name = if kind.namespaced {
        "marker".to_owned()
    } else {
        format!("{namespace}-marker")
    };
    Slot {
        plural: kind.plural.clone(),
        name,
    }
}

impl Watches {
    /// Creates the markers and starts the watches.
    pub(crate) async fn start(side: &Side, kinds: &[Kind], namespace: &str) -> Self {
        let mut feeds = Vec::new();
        for (index, kind) in kinds.iter().enumerate() {
            let slot = marker(kind, namespace);
            let scene = Scene {
                kind,
                namespace,
                slot: slot.clone(),
            };
            let mut object = kind.bare();
            object["metadata"] = json!({ "name": slot.name, "labels": { "app": "marker" } });
            let mut create = scene.operation("create", "POST", "");
            create.path = kind.path(namespace);
            create.body = Some(object);
            let (code, _, made) = side.send(&create, None).await;
            assert_eq!(code, 201, "the marker is created: {made}");
            let version = made["metadata"]["resourceVersion"]
                .as_str()
                .unwrap_or_default();
            for selector in ["", "&labelSelector=app+in+(a,marker)"] {
                let path = format!(
                    "{}?watch=1&resourceVersion={version}{selector}",
                    kind.path(namespace)
                );
                let events = watch(side.client.clone(), path).await;
                feeds.push(Feed {
                    kind: index,
                    events,
                });
            }
        }
        Self { feeds, ticks: 0 }
    }

    /// Returns all events since the last call, in order.
    pub(crate) async fn gather(&mut self, side: &Side, kinds: &[Kind], namespace: &str) -> Events {
        self.ticks += 1;
        let tick = self.ticks.to_string();
        for kind in kinds {
            let scene = Scene {
                kind,
                namespace,
                slot: marker(kind, namespace),
            };
            let patch = Operation {
                media: "application/merge-patch+json",
                body: Some(json!({ "metadata": { "annotations": { "tick": tick } } })),
                ..scene.operation("mark", "PATCH", "")
            };
            let (code, _, body) = side.send(&patch, None).await;
            assert_eq!(code, 200, "the marker is marked: {body}");
        }
        let mut found = Vec::new();
        for (index, feed) in self.feeds.iter_mut().enumerate() {
            let kind = &kinds[feed.kind];
            let marker = marker(kind, namespace);
            let mut events = Vec::new();
            loop {
                let event = timeout(PATIENCE, feed.events.recv()).await;
                let Ok(Some(event)) = event else {
                    events.push(json!({ "type": "the watch is late or over" }));
                    break;
                };
                let name = event
                    .pointer("/object/metadata/name")
                    .and_then(Value::as_str)
                    .unwrap_or_default();
                if name == marker.name {
                    if event.pointer("/object/metadata/annotations/tick")
                        == Some(&tick.clone().into())
                    {
                        break;
                    }
                    continue;
                }
                // Cluster-scoped objects may belong to other lanes.
                if kind.namespaced || name.starts_with(namespace) {
                    events.push(event);
                }
            }
            found.push((feed.kind, index % 2, events));
        }
        found
    }
}

async fn watch(client: Client, path: String) -> mpsc::UnboundedReceiver<Value> {
    let request = Request::get(path)
        .header(header::ACCEPT, "application/json")
        .body(Body::empty())
        .expect("the request is well formed");
    let response = client.send(request).await.expect("the server answers");
    assert_eq!(response.status(), 200, "the watch begins");
    let mut stream = response.into_body().into_data_stream();
    let (sender, events) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut buffer = Vec::new();
        while let Some(Ok(bytes)) = stream.next().await {
            buffer.extend_from_slice(&bytes);
            while let Some(end) = buffer.iter().position(|&byte| byte == b'\n') {
                let line: Vec<u8> = buffer.drain(..=end).collect();
                if let Ok(event) = serde_json::from_slice(&line)
                    && sender.send(event).is_err()
                {
                    return;
                }
            }
        }
    });
    events
}
