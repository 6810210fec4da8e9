//! Stand-ins for the controllers of a cluster: they bring Pods, Deployments, `StatefulSets`, Jobs and
//! `PersistentVolumeClaims` to ready, or let them fail.
//!
//! [`ApiServer`](crate::ApiServer) stores objects and nothing else: no Pod starts there. Run these next to an
//! operator that waits for what it owns:
//!
//! ```
//! use k8s_openapi::api::core::v1::Pod;
//! use kube::{Api, api::PostParams, runtime::conditions::is_pod_running, runtime::wait::await_condition};
//! use okt_apiserver::{ApiServer, controllers::kubelet};
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() {
//! let server = ApiServer::new();
//! tokio::spawn(kubelet().run(server.client_named("kubelet")));
//!
//! let pods: Api<Pod> = Api::default_namespaced(server.client());
//! let pod = serde_json::json!({
//!     "metadata": { "name": "a" },
//!     "spec": { "containers": [{ "name": "a", "image": "a" }] },
//! });
//! pods.create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap();
//! await_condition(pods, "a", is_pod_running()).await.unwrap();
//! # }
//! ```
//!
//! They write statuses, and the kubelet deletes a Pod of a node once it has ended. It binds no Pod to a node: a Pod
//! without one is deleted at once. A Deployment is available without
//! `ReplicaSets` and Pods.

use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, join_all};
use futures::{FutureExt, StreamExt};
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, Preconditions};
use kube::core::{ApiResource, GroupVersionKind};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Client, Error, ResourceExt};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::object::items;

/// How long an object takes by default until it is ready.
const USUAL: Duration = Duration::from_secs(2);

/// Returns the status of an object that is ready, or that has failed.
type Status = fn(&Value, fails: bool) -> Value;

/// A stand-in for a controller of the cluster.
#[derive(Clone)]
#[must_use = "`run` runs it"]
pub struct Controller {
    kinds: &'static [(&'static str, &'static str, &'static str, Status)],
    takes: Duration,
    fails: Arc<dyn Fn(&DynamicObject) -> bool + Send + Sync>,
}

/// Returns a stand-in for the kubelet and the storage: Pods run and are ready, `PersistentVolumeClaims` are bound.
///
/// A Pod that fails ends as `Failed` where its restart policy is `Never`, and crashes again and again otherwise. A
/// claim that fails stays `Pending`.
pub fn kubelet() -> Controller {
    Controller::new(&[
        ("", "v1", "Pod", pod),
        ("", "v1", "PersistentVolumeClaim", claim),
    ])
}

/// Returns a stand-in for the controllers of Deployments and `StatefulSets`: their replicas are available.
pub fn deployment_controller() -> Controller {
    Controller::new(&[
        ("apps", "v1", "Deployment", deployment),
        ("apps", "v1", "StatefulSet", stateful_set),
    ])
}

/// Returns a stand-in for the controller of Jobs: they complete.
pub fn job_controller() -> Controller {
    Controller::new(&[("batch", "v1", "Job", job)])
}

impl Controller {
    fn new(kinds: &'static [(&'static str, &'static str, &'static str, Status)]) -> Self {
        Self {
            kinds,
            takes: USUAL,
            fails: Arc::new(|_| false),
        }
    }

    /// Sets how long an object takes until it is ready or has failed, by default two seconds.
    pub fn takes(mut self, time: Duration) -> Self {
        self.takes = time;
        self
    }

    /// Lets the objects fail for which `fails` is true; it is asked at each change of an object.
    pub fn fails(mut self, fails: impl Fn(&DynamicObject) -> bool + Send + Sync + 'static) -> Self {
        self.fails = Arc::new(fails);
        self
    }

    /// Runs it until the future is dropped.
    pub fn run(self, client: Client) -> BoxFuture<'static, ()> {
        async move {
            let runs = self
                .kinds
                .iter()
                .map(async |(group, version, kind, status)| {
                    let kind = GroupVersionKind::gvk(group, version, kind);
                    let resource = ApiResource::from_gvk(&kind);
                    self.run_kind(&client, &resource, *status).await;
                });
            join_all(runs).await;
        }
        .boxed()
    }

    async fn run_kind(&self, client: &Client, resource: &ApiResource, status: Status) {
        let all: Api<DynamicObject> = Api::all_with(client.clone(), resource);
        let events = watcher(all, watcher::Config::default()).default_backoff();
        let objects = events
            .applied_objects()
            .filter_map(|object| async { object.ok() });
        objects
            .for_each_concurrent(None, async |object| {
                let fails = (self.fails)(&object);
                let Ok(text) = serde_json::to_value(&object) else {
                    return;
                };
                let wanted = status(&text, fails);
                let namespace = object.namespace().unwrap_or_default();
                let api: Api<DynamicObject> =
                    Api::namespaced_with(client.clone(), &namespace, resource);
                if object.metadata.deletion_timestamp.is_some() {
                    if resource.kind == "Pod" {
                        self.end(&api, &object).await;
                    }
                    return;
                }
                if holds(&text["status"], &wanted) {
                    return;
                }
                sleep(self.takes).await;
                let patch = Patch::Merge(json!({ "status": wanted }));
                // The object may be gone; a newer version of it is another event.
                let _ = api
                    .patch_status(&object.name_any(), &PatchParams::default(), &patch)
                    .await;
            })
            .await;
    }

    /// Deletes a Pod whose containers have ended.
    async fn end(&self, pods: &Api<DynamicObject>, pod: &DynamicObject) {
        sleep(self.takes).await;
        let params = DeleteParams::default().grace_period(0);
        let params = params.preconditions(Preconditions {
            uid: pod.metadata.uid.clone(),
            resource_version: None,
        });
        while let Err(error) = pods.delete(&pod.name_any(), &params).await {
            // It is gone, or another one has its name.
            if matches!(&error, Error::Api(status) if matches!(status.code, 404 | 409)) {
                break;
            }
            sleep(self.takes).await;
        }
    }
}

/// Returns whether a status has all fields of another one.
fn holds(status: &Value, wanted: &Value) -> bool {
    match (status, wanted) {
        (Value::Object(status), Value::Object(wanted)) => wanted
            .iter()
            .all(|(name, wanted)| holds(status.get(name).unwrap_or(&Value::Null), wanted)),
        _ => status == wanted,
    }
}

/// Returns the time of everything that happens to an object, so that a status does not change by itself.
fn time(object: &Value) -> Value {
    object["metadata"]["creationTimestamp"].clone()
}

fn condition(object: &Value, name: &str, holds: bool, reason: &str) -> Value {
    json!({
        "type": name,
        "status": if holds { "True" } else { "False" },
        "reason": reason,
        "lastTransitionTime": time(object),
    })
}

fn pod(pod: &Value, fails: bool) -> Value {
    let ends = fails && pod["spec"]["restartPolicy"] == "Never";
    let state = match (fails, ends) {
        (false, _) => json!({ "running": { "startedAt": time(pod) } }),
        (true, true) => json!({ "terminated": { "exitCode": 1, "reason": "Error" } }),
        (true, false) => json!({ "waiting": { "reason": "CrashLoopBackOff" } }),
    };
    let containers = items(pod, &["spec", "containers"]).iter().map(|container| {
        json!({
            "name": container["name"],
            "image": container["image"],
            "imageID": "",
            "ready": !fails,
            "started": !fails,
            "restartCount": 0,
            "state": state,
        })
    });
    let ready = |name: &str| {
        let mut ready = condition(pod, name, !fails, "ContainersNotReady");
        if !fails && let Some(ready) = ready.as_object_mut() {
            ready.remove("reason");
        }
        ready
    };
    json!({
        "phase": if ends { "Failed" } else { "Running" },
        "startTime": time(pod),
        "podIP": "10.0.0.1",
        "conditions": [ready("ContainersReady"), ready("Ready")],
        "containerStatuses": containers.collect::<Vec<_>>(),
    })
}

fn claim(claim: &Value, fails: bool) -> Value {
    if fails {
        return json!({ "phase": "Pending" });
    }
    json!({
        "phase": "Bound",
        "accessModes": claim["spec"]["accessModes"],
        "capacity": claim["spec"]["resources"]["requests"],
    })
}

/// Returns the number of replicas that an object asks for, by default one.
fn replicas(object: &Value) -> i64 {
    object["spec"]["replicas"].as_i64().unwrap_or(1)
}

fn deployment(deployment: &Value, fails: bool) -> Value {
    let (all, ready) = (
        replicas(deployment),
        if fails { 0 } else { replicas(deployment) },
    );
    let (available, progressing) = if fails {
        ("MinimumReplicasUnavailable", "ProgressDeadlineExceeded")
    } else {
        ("MinimumReplicasAvailable", "NewReplicaSetAvailable")
    };
    json!({
        "observedGeneration": deployment["metadata"]["generation"],
        "replicas": all,
        "updatedReplicas": all,
        "readyReplicas": ready,
        "availableReplicas": ready,
        "unavailableReplicas": all - ready,
        "conditions": [
            condition(deployment, "Available", !fails, available),
            condition(deployment, "Progressing", !fails, progressing),
        ],
    })
}

fn stateful_set(set: &Value, fails: bool) -> Value {
    let (all, ready) = (replicas(set), if fails { 0 } else { replicas(set) });
    let name = set["metadata"]["name"].as_str().unwrap_or_default();
    let revision = format!("{name}-{}", set["metadata"]["generation"]);
    json!({
        "observedGeneration": set["metadata"]["generation"],
        "replicas": all,
        "currentReplicas": all,
        "updatedReplicas": all,
        "readyReplicas": ready,
        "availableReplicas": ready,
        "currentRevision": revision,
        "updateRevision": revision,
    })
}

fn job(job: &Value, fails: bool) -> Value {
    if fails {
        return json!({
            "failed": 1,
            "startTime": time(job),
            "conditions": [
                condition(job, "FailureTarget", true, "BackoffLimitExceeded"),
                condition(job, "Failed", true, "BackoffLimitExceeded"),
            ],
        });
    }
    json!({
        "succeeded": job["spec"]["completions"].as_i64().unwrap_or(1),
        "startTime": time(job),
        "completionTime": time(job),
        "conditions": [
            condition(job, "SuccessCriteriaMet", true, "CompletionsReached"),
            condition(job, "Complete", true, "CompletionsReached"),
        ],
    })
}
