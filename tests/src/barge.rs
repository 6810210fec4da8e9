//! Barges, of which a few are upgraded at a time.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{CustomResource, ResourceExt};
use okt::{
    Action, Application, Context, Declared, Desired, Failure, Lifecycle, LifecycleSpec, Limit,
    Resources, Status, Watches, lifecycle_graph,
};
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::cluster::Served;

/// The life of a barge.
#[lifecycle_graph]
#[limit(rollout, states(Upgrading, Failed), passes(triggers))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BargeState {
    /// It is built.
    #[entry]
    #[child(Running)]
    Start,
    /// It swims.
    #[rest]
    #[trigger(Failed, on_error)]
    #[trigger(Upgrading, on_change)]
    #[child(Gone)]
    Running,
    /// It gets another version.
    #[trigger(Failed, on_error)]
    #[trigger(Failed, after = "2h")]
    #[child(Running)]
    Upgrading,
    /// Somebody has to look at it; until then it keeps its place.
    #[rest(hold, idle)]
    #[child(Running)]
    #[child(Gone)]
    Failed,
    /// It is no more.
    #[leaf(idle)]
    Gone,
}

/// A barge.
#[derive(CustomResource, LifecycleSpec, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "demo.okt.dev",
    version = "v1",
    kind = "Barge",
    namespaced,
    status = "Status<BargeState>"
)]
pub struct BargeSpec {
    /// The desired state.
    #[serde(default)]
    pub lifecycle: Desired<BargeState>,
    /// The version.
    #[serde(default)]
    pub version: String,
    /// The zone; each has places of its own.
    #[serde(default)]
    pub zone: String,
    /// Its rank in the roll-out.
    #[serde(default)]
    pub rank: i32,
}

/// The operator of barges; clones share what they do.
#[derive(Clone)]
pub struct Barges {
    /// How many are upgraded at a time.
    pub places: Arc<Mutex<u32>>,
    /// How long an upgrade takes.
    pub takes: Arc<Mutex<Duration>>,
    /// The names of those whose upgrade fails.
    pub fail: Arc<Mutex<BTreeSet<String>>>,
    /// The names of those that were upgraded, in this order.
    pub upgraded: Arc<Mutex<Vec<String>>>,
    /// What this release of the operator writes into the `ConfigMap` of a barge; without it there is none.
    pub release: Arc<Mutex<Option<String>>>,
}

impl Default for Barges {
    fn default() -> Self {
        Self {
            places: Arc::new(Mutex::new(1)),
            takes: Arc::new(Mutex::new(Duration::from_mins(10))),
            fail: Arc::default(),
            upgraded: Arc::default(),
            release: Arc::default(),
        }
    }
}

impl BargeStateHandler for Barges {
    type Context = Action<Barge>;
    type Error = Failure;

    async fn start(&self, _: &Action<Barge>) -> Result<barge_state::AfterStart, Failure> {
        Ok(barge_state::AfterStart::Running)
    }

    async fn running(&self, cx: &Action<Barge>) -> Result<barge_state::AfterRunning, Failure> {
        if cx.object().spec.version == "sinking" {
            return Err(Failure::permanent("Leak", "water comes in"));
        }
        Ok(barge_state::AfterRunning::Stay)
    }

    async fn upgrading(&self, cx: &Action<Barge>) -> Result<barge_state::AfterUpgrading, Failure> {
        let name = cx.object().name_any();
        // A replica resumes what another one has begun.
        if !cx.resumed() {
            self.upgraded.lock().push(name.clone());
        }
        let takes = *self.takes.lock();
        tokio::time::sleep(takes).await;
        if self.fail.lock().contains(&name) {
            return Err(Failure::permanent("Stuck", "the new engine does not fit"));
        }
        Ok(barge_state::AfterUpgrading::Running)
    }
}

impl Application for Barges {
    type Resource = Barge;

    fn watches(watches: Watches<Barge>) -> Watches<Barge> {
        watches.owns::<ConfigMap>()
    }

    async fn resources(&self, cx: &Context<Barge>, _: BargeState) -> Result<Resources, Failure> {
        let release = self.release.lock().clone();
        let map = release.map(|release| {
            let map = json!({
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": { "name": cx.object().name_any() },
                "data": { "text": release },
            });
            Declared::dynamic(map).changes_in([BargeState::Upgrading])
        });
        Ok(map.into_iter().fold(Resources::new(), Resources::with))
    }

    fn limit(&self, barge: &Barge, gate: barge_state::Gate) -> Limit {
        match gate {
            barge_state::Gate::Rollout => Limit::of(*self.places.lock())
                .group(&barge.spec.zone)
                .rank(barge.spec.rank),
        }
    }
}

impl Served for Barges {}

impl Barge {
    /// Returns the state on record.
    pub fn state(&self) -> Option<BargeState> {
        let position = self.status.as_ref()?.lifecycle.as_ref()?;
        position.state.known()
    }

    /// Returns whether it is in the limit.
    pub fn is_inside(&self) -> bool {
        let graph = BargeState::GRAPH;
        let state = self.state().map(Lifecycle::id);
        state.is_some_and(|state| graph.gates[0].states.contains(&state))
    }
}
