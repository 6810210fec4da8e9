//! A cluster with the operator in it, as a user and the controller of Deployments see it.

use std::fmt::Debug;
use std::time::Duration;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, ReplicaSetSpec};
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::{DeleteParams, ObjectMeta, Patch, PatchParams, PostParams};
use kube::{Api, Client, Resource, ResourceExt};
use okt_examples::memcached::Memcached;
use okt_testing::ApiServer;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::Instant;

/// The name of all objects of these tests.
pub(crate) const NAME: &str = "cache";

/// How often a wait checks its condition.
const POLL: Duration = Duration::from_millis(50);

/// Counts writes.
pub(crate) enum Tally {
    /// A server in this process, which records every request.
    Recorded(ApiServer),
    /// A real server, which counts requests by kind and verb.
    Counted(Client),
}

impl Tally {
    /// Returns how many writes there were so far, by any client, of kinds that the operator writes to.
    async fn written(&self) -> usize {
        match self {
            Self::Recorded(server) => server.requests().iter().filter(|it| it.is_write()).count(),
            Self::Counted(client) => {
                let request = axum::http::Request::get("/metrics").body(Vec::new());
                let metrics = client.request_text(request.expect("a request")).await;
                let metrics = metrics.expect("it counts requests");
                let counts = metrics.lines().filter(|line| is_of_a_write(line));
                counts.map(|line| count(line).expect(line)).sum()
            }
        }
    }
}

fn is_of_a_write(line: &str) -> bool {
    let has = |label: &str, values: &[&str]| {
        (values.iter()).any(|value| line.contains(&format!("{label}=\"{value}\"")))
    };
    let kinds = [
        "memcacheds",
        "configmaps",
        "services",
        "deployments",
        "secrets",
        "events",
    ];
    line.starts_with("apiserver_request_total{")
        && has("resource", &kinds)
        && !has("verb", &["GET", "LIST", "WATCH"])
}

fn count(line: &str) -> Option<usize> {
    line.rsplit_once(' ')?.1.parse().ok()
}

/// A cluster.
pub(crate) struct Stage {
    /// The caches.
    pub(crate) caches: Api<Memcached>,
    /// Their Deployments.
    pub(crate) deployments: Api<Deployment>,
    /// Their settings.
    pub(crate) maps: Api<ConfigMap>,
    /// Their Services.
    pub(crate) services: Api<Service>,
    sets: Api<ReplicaSet>,
    /// The longest wait for a condition.
    pub(crate) patience: Duration,
    /// How long an idle server is watched for writes.
    pub(crate) quiet: Duration,
    tally: Tally,
}

impl Stage {
    /// Uses one namespace of a cluster.
    pub(crate) fn of(client: &Client, namespace: &str, tally: Tally) -> Self {
        Self {
            caches: Api::namespaced(client.clone(), namespace),
            deployments: Api::namespaced(client.clone(), namespace),
            maps: Api::namespaced(client.clone(), namespace),
            services: Api::namespaced(client.clone(), namespace),
            sets: Api::namespaced(client.clone(), namespace),
            patience: Duration::from_mins(10),
            quiet: Duration::from_secs(2),
            tally,
        }
    }

    /// Creates the example's cache, with these changes in its spec.
    pub(crate) async fn create(&self, but: &Value) -> Result<Memcached, kube::Error> {
        let mut cache = example();
        for (name, value) in but.as_object().into_iter().flatten() {
            cache["spec"][name] = value.clone();
        }
        let cache = serde_json::from_value(cache).expect("a cache");
        self.caches.create(&PostParams::default(), &cache).await
    }

    /// Changes the spec of the cache.
    pub(crate) async fn ask_for(&self, spec: Value) {
        patch(&self.caches, json!({ "spec": spec })).await;
    }

    /// Pauses the cache, or ends the pause.
    pub(crate) async fn pause(&self, paused: bool) {
        let paused = paused.then_some("true");
        let annotations = json!({ okt::PAUSED_ANNOTATION: paused });
        patch(
            &self.caches,
            json!({ "metadata": { "annotations": annotations } }),
        )
        .await;
    }

    /// Deletes the cache.
    pub(crate) async fn delete(&self, how: &DeleteParams) {
        let deleted = self.caches.delete(NAME, how).await;
        deleted.expect("a deletion");
    }

    /// Reports this many servers, all new and ready, as the controller of Deployments does.
    pub(crate) async fn servers(&self, number: i32) {
        let generation = self.deployment().await.metadata.generation;
        let status = json!({
            "observedGeneration": generation, "replicas": number, "updatedReplicas": number,
            "readyReplicas": number, "availableReplicas": number,
        });
        let patch = Patch::Merge(json!({ "status": status }));
        let patched = self
            .deployments
            .patch_status(NAME, &PatchParams::default(), &patch)
            .await;
        patched.expect("the status is accepted");
    }

    /// Creates a server that does not end at once, as the controller of Deployments does; returns its name.
    pub(crate) async fn server_that_takes_its_time(&self) -> String {
        let deployment = self.deployment().await;
        let mut owner = deployment.controller_owner_ref(&()).expect("it can own");
        owner.block_owner_deletion = Some(true);
        let set = ReplicaSet {
            metadata: ObjectMeta {
                name: Some(format!("{NAME}-1")),
                owner_references: Some(vec![owner]),
                finalizers: Some(vec!["test.okt.dev/ending".to_owned()]),
                ..ObjectMeta::default()
            },
            spec: ReplicaSetSpec {
                selector: deployment.spec.selector,
                template: Some(deployment.spec.template),
                ..ReplicaSetSpec::default()
            },
            ..ReplicaSet::default()
        };
        let made = self.sets.create(&PostParams::default(), &set).await;
        made.expect("it is accepted").name_any()
    }

    /// Ends that server.
    pub(crate) async fn server_has_ended(&self, name: &str) {
        let free = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
        let freed = self.sets.patch(name, &PatchParams::default(), &free).await;
        freed.expect("it is freed");
    }

    /// Returns the Deployment of the cache.
    pub(crate) async fn deployment(&self) -> Deployment {
        self.deployments.get(NAME).await.expect("it is there")
    }

    /// Returns a setting of the servers.
    pub(crate) async fn setting(&self, name: &str) -> String {
        let map = self.maps.get(NAME).await.expect("it is there");
        let data = map.data.unwrap_or_default();
        data.get(name).cloned().unwrap_or_default()
    }

    /// Returns a condition as `Status Reason: message`.
    pub(crate) async fn shows(&self, condition: &str) -> Option<String> {
        let cache = self.caches.get_opt(NAME).await.expect("an answer")?;
        let generation = cache.metadata.generation;
        let shown = |it: &Condition| format!("{} {}: {}", it.status, it.reason, it.message);
        (cache.status?.conditions.iter())
            .find(|it| it.type_ == condition && it.observed_generation == generation)
            .map(shown)
    }

    /// Waits until a condition reports this text for the current spec.
    pub(crate) async fn until_shows(&self, condition: &str, what: &str) {
        let so = async || self.shows(condition).await.as_deref() == Some(what);
        self.until_so(&format!("{condition} {what}"), so).await;
    }

    /// Waits until the cache is ready with this many servers.
    pub(crate) async fn until_ready(&self, servers: i32) {
        let shown = format!("True Complete: {servers} of {servers} servers are ready");
        self.until_shows("Ready", &shown).await;
        let cache = self.caches.get(NAME).await.expect("it is there");
        assert_eq!(cache.status.expect("a status").extra.ready_servers, servers);
    }

    /// Waits until the cache is gone.
    pub(crate) async fn until_gone(&self) {
        let gone = async || {
            let cache = self.caches.get_opt(NAME).await;
            cache.expect("an answer").is_none()
        };
        self.until_so("it is gone", gone).await;
    }

    /// Waits until a condition holds.
    pub(crate) async fn until_so(&self, what: &str, mut so: impl AsyncFnMut() -> bool) {
        let since = Instant::now();
        while !so().await {
            assert!(
                since.elapsed() < self.patience,
                "waited in vain until {what}; the cache is {:#?}",
                self.caches.get_opt(NAME).await
            );
            tokio::time::sleep(POLL).await;
        }
    }

    /// Asserts that no client writes anything for a while.
    ///
    /// A real server counts a write after it answers, and an Event comes after the status that it is about: such late writes may land first, but they end.
    pub(crate) async fn nothing_is_written(&self) {
        let rounds = match self.tally {
            Tally::Recorded(_) => 1,
            Tally::Counted(_) => 5,
        };
        let mut before = self.tally.written().await;
        assert_ne!(before, 0, "earlier writes were counted");
        for _ in 0..rounds {
            tokio::time::sleep(self.quiet).await;
            let now = self.tally.written().await;
            if now == before {
                return;
            }
            before = now;
        }
        panic!("something was written");
    }

    /// Returns the versions of the resources of the cache.
    pub(crate) async fn versions(&self) -> [Option<String>; 3] {
        [
            version(&self.maps).await,
            version(&self.services).await,
            version(&self.deployments).await,
        ]
    }
}

/// The cache of `examples/memcached/cache.yaml`.
pub(crate) fn example() -> Value {
    serde_saphyr::from_str(include_str!("../../memcached/cache.yaml")).expect("YAML")
}

/// Changes an object as `kubectl patch --type merge` does.
pub(crate) async fn patch<K>(objects: &Api<K>, change: Value)
where
    K: Clone + DeserializeOwned + Debug,
{
    let patch = Patch::Merge(change);
    let patched = objects.patch(NAME, &PatchParams::default(), &patch).await;
    patched.expect("it is accepted");
}

async fn version<K>(objects: &Api<K>) -> Option<String>
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    let object = objects.get_opt(NAME).await.expect("an answer");
    object.and_then(|object| object.resource_version())
}
