//! The application of stalls, which own, refer to and watch kinds in every supported way.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Secret, ServiceAccount};
use kube::core::{ApiResource, GroupVersionKind};
use kube::discovery::Scope;
use kube::runtime::reflector::ObjectRef;
use kube::runtime::watcher::Config;
use kube::{CustomResource, ResourceExt};
use okt::{
    Action, Application, Context, Desired, Failure, LifecycleSpec, Observation, Resources, Status,
    Watches, Which, lifecycle_graph,
};
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cluster::Served;

/// The life of a stall.
#[lifecycle_graph]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StallState {
    /// It is being set up.
    #[entry]
    #[child(Open)]
    Building,

    /// Customers come.
    #[rest(idle)]
    #[child(Closed)]
    Open,

    /// It is gone.
    #[leaf(idle)]
    Closed,
}

/// The spec of a stall.
#[derive(CustomResource, LifecycleSpec, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "demo.okt.dev",
    version = "v1",
    kind = "Stall",
    namespaced,
    status = "Status<StallState>"
)]
pub struct StallSpec {
    /// The desired state of the stall.
    #[serde(default)]
    pub lifecycle: Desired<StallState>,
}

/// The objects that an observation of a stall sees.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Surroundings {
    /// The number of observations.
    pub observations: usize,
    /// The owned Jobs, each as `kind/name`.
    pub jobs: Vec<String>,
    /// Whether the Secret `permit` is selected and exists.
    pub permit: bool,
    /// Whether the Service `plan` exists.
    pub plan: bool,
    /// The chosen objects that are not ready.
    pub unready: Vec<String>,
}

/// The operator of stalls; clones share their script and their observations.
#[derive(Clone, Default)]
pub struct Stalls(Arc<Mutex<Memory>>);

#[derive(Default)]
struct Memory {
    declared: Resources,
    chosen: Vec<Which>,
    seen: Surroundings,
}

/// The kind of Jobs as a dynamic kind.
pub fn jobs() -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk("batch", "v1", "Job"))
}

/// The kind of Services as a dynamic kind.
pub fn services() -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Service"))
}

impl Stalls {
    fn memory<T>(&self, of: impl FnOnce(&mut Memory) -> T) -> T {
        of(&mut self.0.lock())
    }

    /// Sets the objects that every stall declares, in every state but the last.
    pub fn declare(&self, resources: Resources) {
        self.memory(|memory| memory.declared = resources);
    }

    /// Sets the objects that the work of building waits for.
    pub fn wait_for(&self, which: impl IntoIterator<Item = Which>) {
        self.memory(|memory| memory.chosen = which.into_iter().collect());
    }

    /// Returns the objects of the last observation.
    pub fn seen(&self) -> Surroundings {
        self.memory(|memory| memory.seen.clone())
    }
}

impl StallStateHandler for Stalls {
    type Context = Action<Stall>;
    type Error = Failure;

    async fn building(&self, cx: &Action<Stall>) -> Result<stall_state::AfterBuilding, Failure> {
        let chosen = self.memory(|memory| memory.chosen.clone());
        cx.wait_ready(&chosen).await?;
        Ok(stall_state::AfterBuilding::Next)
    }
}

impl Application for Stalls {
    type Resource = Stall;

    fn watches(watches: Watches<Stall>) -> Watches<Stall> {
        const STALL: &str = "demo.okt.dev/stall";
        watches
            .owns::<Deployment>()
            .owns_meta::<ConfigMap>()
            .owns_dynamic(jobs(), &Scope::Namespaced)
            .refers_among::<Secret>(Config::default().labels("demo.okt.dev/permit"), |_| {
                vec!["permit".to_owned()]
            })
            .refers_dynamic(services(), &Scope::Namespaced, Config::default(), |_| {
                vec!["plan".to_owned()]
            })
            .watches::<ServiceAccount>(Config::default().labels(STALL), |account| {
                vec![ObjectRef::new(&account.labels()[STALL]).within("default")]
            })
    }

    async fn observe(&self, cx: &Context<Stall>) -> Result<Observation<StallState>, Failure> {
        let jobs = cx.owned_dynamic(&jobs())?;
        let job_names = jobs.iter().map(|job| {
            let kind = job.types.as_ref().map_or("", |types| &types.kind);
            format!("{kind}/{}", job.name_any())
        });
        let plan = cx.referred_dynamic(&services(), "plan")?;
        let permit = cx.referred::<Secret>("permit")?;
        self.memory(|memory| {
            memory.seen = Surroundings {
                observations: memory.seen.observations + 1,
                jobs: job_names.collect(),
                permit: permit.is_some(),
                plan: plan.is_some(),
                unready: cx
                    .unready(&memory.chosen)
                    .iter()
                    .map(ToString::to_string)
                    .collect(),
            };
        });
        Ok(Observation::unobserved())
    }

    async fn resources(&self, _: &Context<Stall>, state: StallState) -> Result<Resources, Failure> {
        Ok(match state {
            StallState::Closed => Resources::new(),
            StallState::Building | StallState::Open => {
                self.memory(|memory| memory.declared.clone())
            }
        })
    }
}

impl Served for Stalls {}
