//! The same controller written by hand on kube: one write per transition, and no write twice.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::api::{Patch, PatchParams};
use kube::runtime::controller::{Action, Config, applier, trigger_self};
use kube::runtime::{WatchStreamExt, reflector, watcher};
use kube::{Api, Client, CustomResource, ResourceExt};
use okt_tests::measured::Tally;
use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

const FINALIZER: &str = "bench.okt.dev/parcel";
/// The version of this controller, which is stored in each status; it is as long as the hash that OKT writes.
const VERSION: &str = "v1.0.0+sha256.5f2c8e0d4b1a69733f2d9c5e8a7b40116d3e9f2a5c8b7e0d";

#[derive(CustomResource, Clone, Debug, Serialize, Deserialize)]
#[kube(
    group = "bench.okt.dev",
    version = "v1",
    kind = "Parcel",
    namespaced,
    status = "ParcelStatus",
    schema = "disabled"
)]
pub(crate) struct ParcelSpec {
    recipient: String,
    address: String,
    grams: u32,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ParcelStatus {
    observed_generation: i64,
    lifecycle: Option<Position>,
    #[serde(default)]
    conditions: Vec<Condition>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum State {
    Packing,
    Travelling,
    Delivered,
    Returning,
    Gone,
}

/// The position of a parcel and its past; the fields are those of the CRD.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Position {
    state: State,
    since: Timestamp,
    transition: u64,
    jumps: u64,
    /// Identifies the work of the state, so that a repetition can be recognized.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    action: Option<Work>,
    desired: DesiredState,
    trail: String,
    history: Vec<Step>,
    /// The version of the controller that wrote the position.
    graph: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct DesiredState {
    state: State,
    reached: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Work {
    id: String,
    generation: i64,
    started_at: Timestamp,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Step {
    transition: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    from: Option<State>,
    to: State,
    at: Timestamp,
    cause: String,
}

struct Parcels {
    api: Api<Parcel>,
    /// The resource version of the controller's last write, by uid; the cache may be older.
    seen: Mutex<HashMap<String, u64>>,
    tally: Arc<Tally>,
}

/// Runs the controller in one namespace, forever.
pub(crate) async fn run(client: Client, namespace: &str, tally: Arc<Tally>) {
    let api: Api<Parcel> = Api::namespaced(client, namespace);
    let (store, writer) = reflector::store();
    let changed = watcher(api.clone(), watcher::Config::default().page_size(500))
        .default_backoff()
        .modify(|parcel| parcel.metadata.managed_fields = None)
        .reflect(writer)
        .applied_objects();
    let parcels = Arc::new(Parcels {
        api,
        seen: Mutex::default(),
        tally,
    });
    applier(
        |parcel, parcels: Arc<Parcels>| Box::pin(async move { parcels.reconcile(&parcel).await }),
        |_, _, _| Action::requeue(Duration::from_secs(5)),
        parcels,
        store,
        Box::pin(trigger_self(changed, ())),
        Config::default().concurrency(16),
    )
    .for_each(|reconciled| {
        if let Err(error) = reconciled {
            eprintln!("{error}");
        }
        std::future::ready(())
    })
    .await;
}

impl Parcels {
    async fn reconcile(&self, parcel: &Parcel) -> Result<Action, kube::Error> {
        self.tally.reconciled();
        let deleting = parcel.metadata.deletion_timestamp.is_some();
        let held = parcel.finalizers().iter().any(|name| name == FINALIZER);
        let settled = Ok(Action::await_change());
        if self.is_behind(parcel) {
            return settled;
        }
        let position = parcel.status.as_ref().and_then(|s| s.lifecycle.as_ref());
        let next = match position.map(|position| position.state) {
            _ if deleting && !held => return settled,
            _ if !held => return self.hold(parcel, true).await,
            None => State::Packing,
            // A real controller packs, carries and takes back parcels here.
            Some(State::Packing) => State::Travelling,
            Some(State::Travelling) => State::Delivered,
            Some(State::Delivered) if deleting => State::Returning,
            Some(State::Returning) => State::Gone,
            Some(State::Gone) if deleting => return self.hold(parcel, false).await,
            Some(State::Delivered | State::Gone) => return settled,
        };
        let status = json!({
            "apiVersion": "bench.okt.dev/v1",
            "kind": "Parcel",
            "metadata": { "resourceVersion": parcel.metadata.resource_version },
            "status": status(parcel, position, next),
        });
        let params = PatchParams::apply("by-hand").force();
        let (name, patch) = (parcel.name_any(), Patch::Apply(status));
        self.written(&self.api.patch_status(&name, &params, &patch).await?);
        settled
    }

    /// Adds or removes the finalizer.
    async fn hold(&self, parcel: &Parcel, held: bool) -> Result<Action, kube::Error> {
        let mut finalizers = parcel.finalizers().to_vec();
        finalizers.retain(|name| name != FINALIZER);
        finalizers.extend(held.then(|| FINALIZER.to_owned()));
        let version = &parcel.metadata.resource_version;
        let patch = json!({ "metadata": { "finalizers": finalizers, "resourceVersion": version } });
        let (name, patch) = (parcel.name_any(), Patch::Merge(patch));
        self.written(&(self.api.patch(&name, &PatchParams::default(), &patch)).await?);
        if !held {
            self.seen().remove(&parcel.uid().unwrap_or_default());
        }
        Ok(Action::await_change())
    }

    fn seen(&self) -> MutexGuard<'_, HashMap<String, u64>> {
        self.seen.lock()
    }

    fn is_behind(&self, parcel: &Parcel) -> bool {
        let seen = (parcel.uid()).and_then(|uid| self.seen().get(&uid).copied());
        seen.is_some_and(|seen| version(parcel) < seen)
    }

    fn written(&self, parcel: &Parcel) {
        let uid = parcel.uid().unwrap_or_default();
        self.seen().insert(uid, version(parcel));
    }
}

fn version(parcel: &Parcel) -> u64 {
    let version = parcel.metadata.resource_version.as_deref();
    version.unwrap_or_default().parse().unwrap_or(0)
}

fn status(parcel: &Parcel, old: Option<&Position>, to: State) -> Value {
    let now = Timestamp::now();
    let from = old.map(|old| old.state);
    let transition = old.map_or(0, |old| old.transition) + 1;
    let generation = parcel.metadata.generation.unwrap_or_default();
    let works = !matches!(to, State::Delivered | State::Gone);
    let mut history = old.map_or_else(Vec::new, |old| old.history.clone());
    history.push(Step {
        transition,
        from,
        to,
        at: now,
        cause: "Next".to_owned(),
    });
    history.drain(..history.len().saturating_sub(10));
    let position = Position {
        state: to,
        since: now,
        transition,
        jumps: 0,
        action: works.then(|| Work {
            id: format!("{}/{transition}", parcel.uid().unwrap_or_default()),
            generation,
            started_at: now,
        }),
        desired: DesiredState {
            state: State::Delivered,
            reached: to == State::Delivered,
        },
        trail: format!("{}>{to:?}", old.map_or("", |old| &old.trail)),
        graph: VERSION.to_owned(),
        history,
    };
    let condition = |name: &str, is: bool, reason: &str, message: &str| {
        let status = if is { "True" } else { "False" };
        let mut before = parcel.status.iter().flat_map(|status| &status.conditions);
        let same = before.find(|c| c.type_ == name && c.status == status);
        Condition {
            type_: name.to_owned(),
            status: status.to_owned(),
            reason: reason.to_owned(),
            message: message.to_owned(),
            observed_generation: Some(generation),
            last_transition_time: same.map_or(Time(now), |c| c.last_transition_time.clone()),
        }
    };
    let arrived = to == State::Delivered;
    let deleting = parcel.metadata.deletion_timestamp.is_some();
    let (here, leaving) = (
        format!("{to:?}"),
        if deleting { "Deleting" } else { "NotDeleted" },
    );
    let message = if arrived {
        "it is where it should be"
    } else {
        "it is on its way"
    };
    let mut conditions = vec![
        condition("Ready", arrived, &here, message),
        condition("Arrived", arrived, &here, message),
        condition("Deleting", deleting, leaving, ""),
        condition("Paused", false, "NotPaused", ""),
    ];
    if !arrived {
        conditions.push(condition("Reconciling", true, &here, message));
    }
    json!({ "observedGeneration": generation, "lifecycle": position, "conditions": conditions })
}
