//! [`Suite`]: creates the CRD and the namespaces of the behaviors, and deletes them.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::{StreamExt, stream};
use kube::Client;
use serde_json::Value;
use tokio::time::timeout;

use crate::behaviour::Behaviour;
use crate::world::{CRDS, LABEL, World, released};

/// The time limit for one behavior.
const LIMIT: Duration = Duration::from_mins(20);
/// The number of namespaces that are deleted at the same time.
const DELETES: usize = 16;

/// A server that is ready for the checks: the CRD that behaviors share is served.
pub(crate) struct Suite {
    /// The namespaces and the CRD of the suite, with its label.
    common: World,
    namespaces: AtomicUsize,
}

impl Suite {
    /// Creates the CRD, and waits until it is served.
    pub(crate) async fn start(client: Client) -> Self {
        // Several suites may run on one server at the same time.
        let number = RandomState::new().hash_one(0);
        let common = World::new(client, &format!("{:08x}", number >> 32));
        common.create_kind(&common.crd()).await;
        Self {
            common,
            namespaces: AtomicUsize::new(0),
        }
    }

    /// Checks one behavior, in a namespace of its own.
    pub(crate) async fn check(&self, behaviour: Behaviour) {
        let number = self.namespaces.fetch_add(1, Ordering::Relaxed);
        let world = self.common.in_namespace(number);
        world.create_namespace(&world.namespace).await;
        let checked = timeout(LIMIT, (behaviour.check)(&world)).await;
        checked.unwrap_or_else(|_| panic!("{behaviour} is not done within {LIMIT:?}"));
    }

    /// Deletes everything that the suite created, without waiting.
    pub(crate) async fn finish(&self) {
        // Finalizers are removed first, otherwise the deletions never finish.
        for crd in self.own(CRDS).await {
            let (spec, name) = (&crd["spec"], text(&crd["metadata"]["name"]));
            let (group, plural) = (text(&spec["group"]), text(&spec["names"]["plural"]));
            let version = text(&spec["versions"][0]["name"]);
            self.release(&format!("/apis/{group}/{version}"), plural)
                .await;
            self.common.delete(&format!("{CRDS}/{name}")).await;
        }
        let namespaces = self.own("/api/v1/namespaces").await;
        let deletions = stream::iter(&namespaces).for_each_concurrent(DELETES, async |namespace| {
            let path = format!(
                "/api/v1/namespaces/{}",
                text(&namespace["metadata"]["name"])
            );
            self.release(&path, "configmaps").await;
            self.common.delete(&path).await;
        });
        deletions.await;
    }

    /// Returns the objects with the label of the suite.
    async fn own(&self, path: &str) -> Vec<Value> {
        let selected = format!("{path}?labelSelector={LABEL}%3D{}", self.common.id);
        items(&self.common.get(&selected).await.ok())
    }

    /// Removes the finalizers of all objects of a kind. A CRD that is being deleted is not served, and an object may be
    /// gone by now.
    async fn release(&self, root: &str, plural: &str) {
        let list = self.common.get(&format!("{root}/{plural}")).await;
        if list.code != 200 {
            return;
        }
        for object in items(&list.json()) {
            let metadata = &object["metadata"];
            if metadata.get("finalizers").is_none() {
                continue;
            }
            let namespace = metadata["namespace"].as_str();
            let within = namespace.filter(|_| !root.contains("/namespaces/"));
            let within = within.map_or_else(String::new, |name| format!("/namespaces/{name}"));
            let path = format!("{root}{within}/{plural}/{}", text(&metadata["name"]));
            self.common.merge_at(&path, &released()).await;
        }
    }
}

fn items(list: &Value) -> Vec<Value> {
    list["items"].as_array().cloned().unwrap_or_default()
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}
