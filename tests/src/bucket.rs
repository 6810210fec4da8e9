//! The application of buckets: each is one resource of an external service.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kube::{CustomResource, ResourceExt};
use okt::{
    Action, AsResource, Context, Delegated, Desired, External, Failure, Found, LifecycleSpec,
    Status, lifecycle_graph,
};
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::cluster::Served;

/// The life of a bucket.
#[lifecycle_graph]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BucketState {
    /// It is being created.
    #[entry]
    #[child(Kept)]
    Made,

    /// It holds what it is given.
    #[rest]
    #[trigger(Mended)]
    #[child(Gone)]
    Kept,

    /// Changes by others are reverted.
    #[no_transit]
    #[child(Gone)]
    #[child(Kept)]
    Mended,

    /// It is gone.
    #[leaf]
    Gone,
}

/// The spec of a bucket.
#[derive(CustomResource, LifecycleSpec, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "demo.okt.dev",
    version = "v1",
    kind = "Bucket",
    namespaced,
    status = "Status<BucketState>"
)]
pub struct BucketSpec {
    /// The desired state of the bucket.
    #[serde(default)]
    pub lifecycle: Desired<BucketState>,
    /// The size of the bucket.
    #[serde(default)]
    pub size: u32,
}

/// The service that holds the buckets. It outlives the operator; clones share it.
#[derive(Clone, Default)]
pub struct Buckets(Arc<Mutex<Service>>);

#[derive(Default)]
struct Service {
    /// The size of each bucket, and the number of observations for which it is still pending.
    buckets: BTreeMap<String, (u32, u32)>,
    calls: Vec<String>,
    slowness: u32,
    refusals: u32,
    silent: bool,
}

impl Buckets {
    fn service<T>(&self, of: impl FnOnce(&mut Service) -> T) -> T {
        of(&mut self.0.lock())
    }

    /// Returns the calls other than observations, in order.
    pub fn calls(&self) -> Vec<String> {
        self.service(|service| service.calls.clone())
    }

    /// Returns the size of a bucket; `None` if it does not exist.
    pub fn size(&self, name: &str) -> Option<u32> {
        self.service(|service| service.buckets.get(name).map(|it| it.0))
    }

    /// Changes a bucket from outside, or deletes it.
    pub fn spoil(&self, name: &str, size: Option<u32>) {
        self.service(|service| match size {
            Some(size) => drop(service.buckets.insert(name.to_owned(), (size, 0))),
            None => drop(service.buckets.remove(name)),
        });
    }

    /// Makes a bucket pending for this number of observations after each change.
    pub fn take_observations(&self, observations: u32) {
        self.service(|service| service.slowness = observations);
    }

    /// Refuses this number of next changes.
    pub fn refuse(&self, times: u32) {
        self.service(|service| service.refusals = times);
    }

    /// Sets whether the service executes calls but never answers.
    pub fn be_silent(&self, silent: bool) {
        self.service(|service| service.silent = silent);
    }

    async fn ask(
        &self,
        what: &str,
        cx: &Action<Bucket>,
        change: impl FnOnce(&mut Service, String) + Send,
    ) -> Result<(), Failure> {
        let is_silent = self.service(|service| {
            service
                .calls
                .push(format!("{what} {}", cx.object().spec.size));
            if service.refusals > 0 {
                service.refusals -= 1;
                return Err(Failure::retry("Busy", "the service is busy"));
            }
            change(service, cx.object().name_any());
            Ok(service.silent)
        })?;
        if is_silent {
            std::future::pending::<()>().await;
        }
        Ok(())
    }
}

impl External for Buckets {
    type Resource = Bucket;

    async fn get(&self, cx: &Context<Bucket>) -> Result<Found, Failure> {
        let size = cx.object().spec.size;
        Ok(self.service(
            |service| match service.buckets.get_mut(&cx.object().name_any()) {
                None => Found::Absent,
                Some((_, observations)) if *observations > 0 => {
                    *observations -= 1;
                    Found::Pending("it is being made".to_owned())
                }
                Some((there, _)) if *there != size => Found::Outdated,
                Some(_) => Found::Ready,
            },
        ))
    }

    async fn create(&self, cx: &Action<Bucket>) -> Result<(), Failure> {
        let size = cx.object().spec.size;
        self.ask("create", cx, |service, name| {
            service.buckets.insert(name, (size, service.slowness));
        })
        .await
    }

    async fn update(&self, cx: &Action<Bucket>) -> Result<(), Failure> {
        let size = cx.object().spec.size;
        self.ask("update", cx, |service, name| {
            service.buckets.insert(name, (size, service.slowness));
        })
        .await
    }

    async fn delete(&self, cx: &Action<Bucket>) -> Result<(), Failure> {
        self.ask("delete", cx, |service, name| {
            service.buckets.remove(&name);
        })
        .await
    }

    fn repaired_in(&self, state: BucketState) -> Option<BucketState> {
        (state == BucketState::Kept).then_some(BucketState::Mended)
    }

    fn observe_every(&self, _: BucketState) -> Duration {
        Duration::from_secs(5)
    }
}

impl Served for Delegated<AsResource<Buckets>> {
    fn object(name: &str, lifecycle: Value) -> Value {
        json!({
            "apiVersion": "demo.okt.dev/v1",
            "kind": "Bucket",
            "metadata": { "name": name },
            "spec": { "lifecycle": lifecycle, "size": 1 },
        })
    }
}
