//! The application of shops, which own the objects that a test declares and refer to a Secret.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::CustomResource;
use okt::{
    Action, Application, Context, Desired, Failure, LifecycleSpec, Observation, Resources, Status,
    Watches, lifecycle_graph,
};
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cluster::Served;

/// The life of a shop.
#[lifecycle_graph]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ShopState {
    /// Shelves are filled.
    #[entry]
    #[child(Open)]
    Opening,

    /// Customers come.
    #[rest]
    #[child(Closing)]
    Open,

    /// The last customers leave.
    #[child(Closed)]
    Closing,

    /// It is gone.
    #[leaf(idle)]
    Closed,
}

/// The spec of a shop.
#[derive(
    CustomResource, LifecycleSpec, Clone, Debug, Default, Serialize, Deserialize, JsonSchema,
)]
#[kube(
    group = "demo.okt.dev",
    version = "v1",
    kind = "Shop",
    namespaced,
    status = "Status<ShopState>"
)]
pub struct ShopSpec {
    /// The desired state of the shop.
    #[serde(default)]
    pub lifecycle: Desired<ShopState>,
    /// The name of the Secret that opening waits for.
    #[serde(default)]
    pub key: String,
}

/// The operator of shops; clones share their script and their record.
#[derive(Clone, Default)]
pub struct Shops(Arc<Mutex<Memory>>);

#[derive(Default)]
struct Memory {
    declared: Resources,
    fails: Option<Failure>,
    seen: Option<ShopState>,
    shut: Option<Failure>,
    ran: Vec<String>,
    asked: usize,
    to_the_end: bool,
}

impl Shops {
    fn memory<T>(&self, of: impl FnOnce(&mut Memory) -> T) -> T {
        of(&mut self.0.lock())
    }

    /// Sets the objects that every shop declares, in every state but the last.
    pub fn declare(&self, resources: Resources) {
        self.memory(|memory| memory.declared = resources);
    }

    /// Makes every shop declare its objects in the last state too.
    pub fn declare_to_the_end(&self) {
        self.memory(|memory| memory.to_the_end = true);
    }

    /// Makes `resources` fail.
    pub fn fail_to_declare(&self, failure: Option<Failure>) {
        self.memory(|memory| memory.fails = failure);
    }

    /// Sets the state in which every shop is observed.
    pub fn sees(&self, state: Option<ShopState>) {
        self.memory(|memory| memory.seen = state);
    }

    /// Makes the work of opening fail.
    pub fn fail_to_open(&self, failure: Option<Failure>) {
        self.memory(|memory| memory.shut = failure);
    }

    /// Returns the number of calls of `resources`.
    pub fn asked(&self) -> usize {
        self.memory(|memory| memory.asked)
    }

    /// Returns the calls of handlers, in order: the state, and the number of owned objects.
    pub fn ran(&self) -> Vec<String> {
        self.memory(|memory| memory.ran.clone())
    }

    fn note(&self, state: &str, cx: &Action<Shop>) -> Result<(), Failure> {
        let owned: usize = cx.owned::<ConfigMap>()?.len() + cx.owned::<Deployment>()?.len();
        self.memory(|memory| memory.ran.push(format!("{state} with {owned}")));
        Ok(())
    }
}

impl ShopStateHandler for Shops {
    type Context = Action<Shop>;
    type Error = Failure;

    async fn opening(&self, cx: &Action<Shop>) -> Result<shop_state::AfterOpening, Failure> {
        let key = &cx.object().spec.key;
        if !key.is_empty() && cx.referred::<Secret>(key)?.is_none() {
            return Ok(shop_state::AfterOpening::Wait(Duration::from_hours(2)));
        }
        if let Some(failure) = self.memory(|memory| memory.shut.clone()) {
            return Err(failure);
        }
        self.note("Opening", cx)?;
        Ok(shop_state::AfterOpening::Next)
    }

    async fn open(&self, cx: &Action<Shop>) -> Result<shop_state::AfterOpen, Failure> {
        self.note("Open", cx)?;
        Ok(shop_state::AfterOpen::Stay)
    }

    async fn closing(&self, cx: &Action<Shop>) -> Result<shop_state::AfterClosing, Failure> {
        self.note("Closing", cx)?;
        Ok(shop_state::AfterClosing::Next)
    }
}

impl Application for Shops {
    type Resource = Shop;

    fn watches(watches: Watches<Shop>) -> Watches<Shop> {
        watches
            .owns::<ConfigMap>()
            .owns::<Secret>()
            .owns::<Deployment>()
            .owns::<ClusterRole>()
            .refers::<Secret>(|shop| vec![shop.spec.key.clone()])
    }

    async fn observe(&self, _: &Context<Shop>) -> Result<Observation<ShopState>, Failure> {
        let seen = self.memory(|memory| memory.seen);
        Ok(seen.map_or_else(Observation::unobserved, Observation::in_state))
    }

    async fn resources(&self, _: &Context<Shop>, state: ShopState) -> Result<Resources, Failure> {
        self.memory(|memory| {
            memory.asked += 1;
            match (&memory.fails, state) {
                (Some(failure), _) => Err(failure.clone()),
                (None, ShopState::Closed) if !memory.to_the_end => Ok(Resources::new()),
                (None, _) => Ok(memory.declared.clone()),
            }
        })
    }
}

impl Served for Shops {}
