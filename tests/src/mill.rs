//! Mills, which are upgraded and cleaned in windows of maintenance, and upgraded with approval.
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{CustomResource, ResourceExt};
use okt::{
    Action, Application, Context, Declared, Desired, Failure, LifecycleSpec, Resources, Status,
    Watches, Window, Windows, lifecycle_graph,
};
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::cluster::Served;

/// The life of a mill.
#[lifecycle_graph(spec(MillSpec))]
#[window(maintenance, states(Upgrading, Cleaning), needs = "10m")]
#[approval(major, states(Upgrading))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MillState {
    /// It is built.
    #[entry]
    #[child(Running)]
    Starting,
    /// It grinds.
    #[rest]
    #[trigger(Upgrading, on_change(version))]
    #[trigger(Broken, on_error)]
    #[child(Cleaning)]
    #[child(Gone)]
    Running,
    /// It gets another version.
    #[child(Running)]
    Upgrading,
    /// It is cleaned.
    #[visit]
    #[child(Running)]
    Cleaning,
    /// It does not grind.
    #[rest(hold, idle)]
    #[child(Running)]
    #[child(Gone)]
    Broken,
    /// It is no more.
    #[leaf(idle)]
    Gone,
}

/// A mill.
#[derive(CustomResource, LifecycleSpec, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "demo.okt.dev",
    version = "v1",
    kind = "Mill",
    namespaced,
    status = "Status<MillState>"
)]
pub struct MillSpec {
    /// The desired state.
    #[serde(default)]
    pub lifecycle: Desired<MillState>,
    /// The version.
    #[serde(default)]
    pub version: String,
    /// The windows in which it may be upgraded and cleaned.
    #[serde(default)]
    pub maintenance: Vec<Window>,
    /// Whether a person approves each upgrade.
    #[serde(default)]
    pub careful: bool,
}

/// What the handler of `Running` answers.
#[derive(Clone, Copy)]
pub enum MillAnswer {
    /// It stays.
    Stays,
    /// It goes to `Cleaning`.
    Cleans,
    /// It fails.
    Fails,
}

/// The operator of mills; clones share what they do.
#[derive(Clone, Default)]
pub struct Mills {
    /// The next answers of `Running`; then it stays.
    pub answers: Arc<Mutex<VecDeque<MillAnswer>>>,
    /// The ids of the work in `Running`.
    pub asked: Arc<Mutex<Vec<String>>>,
    /// What this release of the operator writes into the `ConfigMap` of a mill; without it there is none.
    pub release: Arc<Mutex<Option<String>>>,
    /// The state in which the `ConfigMap` may change, if not `Upgrading`.
    pub changes_in: Arc<Mutex<Option<MillState>>>,
}

impl MillStateHandler for Mills {
    type Context = Action<Mill>;
    type Error = Failure;

    async fn starting(&self, _: &Action<Mill>) -> Result<mill_state::AfterStarting, Failure> {
        Ok(mill_state::AfterStarting::Running)
    }

    async fn running(&self, cx: &Action<Mill>) -> Result<mill_state::AfterRunning, Failure> {
        self.asked.lock().push(cx.id().to_owned());
        let answer = self.answers.lock().front().copied();
        match answer.unwrap_or(MillAnswer::Stays) {
            MillAnswer::Stays => Ok(mill_state::AfterRunning::Stay),
            MillAnswer::Cleans => Ok(mill_state::AfterRunning::Cleaning),
            MillAnswer::Fails => Err(Failure::permanent("Stuck", "a stone is in the way")),
        }
    }

    async fn upgrading(&self, _: &Action<Mill>) -> Result<mill_state::AfterUpgrading, Failure> {
        tokio::time::sleep(Duration::from_mins(30)).await;
        Ok(mill_state::AfterUpgrading::Running)
    }

    async fn cleaning(&self, _: &Action<Mill>) -> Result<mill_state::AfterCleaning, Failure> {
        // A mill is cleaned once.
        self.answers.lock().pop_front();
        Ok(mill_state::AfterCleaning::Running)
    }
}

impl Application for Mills {
    type Resource = Mill;

    fn watches(watches: Watches<Mill>) -> Watches<Mill> {
        watches.owns::<ConfigMap>()
    }

    async fn resources(&self, cx: &Context<Mill>, _: MillState) -> Result<Resources, Failure> {
        let release = self.release.lock().clone();
        let map = release.map(|release| {
            let map = json!({
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": { "name": cx.object().name_any() },
                "data": { "text": release },
            });
            let changes_in = self.changes_in.lock().unwrap_or(MillState::Upgrading);
            Declared::dynamic(map).changes_in([changes_in])
        });
        Ok(map.into_iter().fold(Resources::new(), Resources::with))
    }

    fn windows(&self, mill: &Mill, gate: mill_state::Gate) -> Windows {
        match gate {
            mill_state::Gate::Maintenance => Windows::of(&mill.spec.maintenance),
            mill_state::Gate::Major => Windows::always(),
        }
    }

    fn needs_approval(&self, mill: &Mill, _: mill_state::Gate) -> bool {
        mill.spec.careful
    }
}

impl Served for Mills {}
