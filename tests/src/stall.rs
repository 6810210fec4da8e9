//! A stall: an application that owns, refers to and watches kinds in every way there is.

use std::sync::{Arc, Mutex, PoisonError};

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Secret, ServiceAccount};
use kube::core::{ApiResource, GroupVersionKind};
use kube::discovery::Scope;
use kube::runtime::reflector::ObjectRef;
use kube::runtime::watcher::Config;
use kube::{Api, Client, CustomResource, ResourceExt};
use okt_runtime::{
    Action, Application, Context, Desired, Failure, LifecycleSpec, Observation, Resources, Status,
    Watches, Which, lifecycle_graph,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cluster::Served;

/// The life of a stall.
#[lifecycle_graph]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StallState {
    /// It is put up.
    #[entry]
    #[child(Open)]
    Building,

    /// Customers come.
    #[rest(idle)]
    #[child(Closed)]
    Open,

    /// No more.
    #[leaf(idle)]
    Closed,
}

/// What a user asks for.
#[derive(CustomResource, LifecycleSpec, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "demo.okt.dev",
    version = "v1",
    kind = "Stall",
    namespaced,
    status = "Status<StallState>"
)]
pub struct StallSpec {
    /// Where the stall should be in its life.
    #[serde(default)]
    pub lifecycle: Desired<StallState>,
}

/// What a stall sees when it is looked at.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Surroundings {
    /// How often it was looked at.
    pub observations: usize,
    /// The Jobs that were made for it, each as `kind/name`.
    pub jobs: Vec<String>,
    /// Whether the Secret `permit` is among those that it may refer to.
    pub permit: bool,
    /// Whether there is a Service `plan`.
    pub plan: bool,
    /// What is not ready of what is chosen.
    pub unready: Vec<String>,
}

/// The operator of stalls; clones share what they declare and what they saw.
#[derive(Clone, Default)]
pub struct Stalls(Arc<Mutex<Memory>>);

#[derive(Default)]
struct Memory {
    declared: Resources,
    chosen: Vec<Which>,
    seen: Surroundings,
}

/// Jobs, as a kind that is no Rust type.
pub fn jobs() -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk("batch", "v1", "Job"))
}

/// Services, as a kind that is no Rust type.
pub fn services() -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Service"))
}

impl Stalls {
    fn memory<T>(&self, of: impl FnOnce(&mut Memory) -> T) -> T {
        of(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What every stall declares from now on, in every state but the last.
    pub fn declare(&self, resources: Resources) {
        self.memory(|memory| memory.declared = resources);
    }

    /// For what the work of building waits.
    pub fn wait_for(&self, which: impl IntoIterator<Item = Which>) {
        self.memory(|memory| memory.chosen = which.into_iter().collect());
    }

    /// What was seen at the last look.
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
        let jobs = cx.owned_dynamic(&jobs());
        let jobs = jobs.iter().map(|job| {
            let kind = job.types.as_ref().map_or("", |types| &types.kind);
            format!("{kind}/{}", job.name_any())
        });
        let plan = cx.referred_dynamic(&services(), "plan");
        self.memory(|memory| {
            memory.seen = Surroundings {
                observations: memory.seen.observations + 1,
                jobs: jobs.collect(),
                permit: cx.referred::<Secret>("permit").is_some(),
                plan: plan.is_some(),
                unready: (cx.unready(&memory.chosen).iter())
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

impl Served for Stalls {
    fn api(client: Client) -> Api<Stall> {
        Api::namespaced(client, "default")
    }
}
