//! The application of kiosks, whose spec names its owned objects and the code that hangs.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{CustomResource, ResourceExt};
use okt::{
    Action, Application, Context, Desired, Failure, LifecycleSpec, Observation, Resources, Status,
    Watches, lifecycle_graph,
};
use parking_lot::Mutex;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::cluster::Served;

/// The life of a kiosk.
#[lifecycle_graph]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KioskState {
    /// It is being set up.
    #[entry]
    #[child(Open)]
    Building,

    /// Customers come.
    #[rest(idle)]
    #[child(Closing)]
    Open,

    /// The last customers leave.
    #[child(Closed)]
    Closing,

    /// It is gone.
    #[leaf(idle)]
    Closed,
}

/// A part of the application code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Part {
    /// `observe`.
    Observe,
    /// `resources`.
    Resources,
    /// `extra`.
    Extra,
    /// The handler of the first state.
    Building,
}

/// The spec of a kiosk.
#[derive(CustomResource, LifecycleSpec, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "demo.okt.dev",
    version = "v1",
    kind = "Kiosk",
    namespaced,
    status = "Status<KioskState>"
)]
pub struct KioskSpec {
    /// The desired state of the kiosk.
    #[serde(default)]
    pub lifecycle: Desired<KioskState>,
    /// The text of each owned `ConfigMap`, by name.
    #[serde(default)]
    pub maps: BTreeMap<String, String>,
    /// The parts of the code that never return for this kiosk.
    #[serde(default)]
    pub hangs: Vec<Part>,
    /// Anything.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    #[schemars(schema_with = "anything")]
    pub free: Value,
}

fn anything(_: &mut SchemaGenerator) -> Schema {
    Schema::try_from(json!({ "x-kubernetes-preserve-unknown-fields": true })).unwrap_or_default()
}

/// The operator of kiosks; clones share their counters.
#[derive(Clone, Default)]
pub struct Kiosks(Arc<Mutex<Memory>>);

#[derive(Default)]
struct Memory {
    asked: HashMap<(String, Part), usize>,
    maps: HashMap<String, Vec<String>>,
}

impl Kiosks {
    fn memory<T>(&self, of: impl FnOnce(&mut Memory) -> T) -> T {
        of(&mut self.0.lock())
    }

    /// Returns the number of calls of a part of the code for the kiosk with this name.
    pub fn asked(&self, name: &str, part: Part) -> usize {
        self.memory(|memory| {
            let key = (name.to_owned(), part);
            memory.asked.get(&key).copied().unwrap_or_default()
        })
    }

    /// Returns the owned `ConfigMap`s at the last observation of the kiosk with this name.
    pub fn sees_maps(&self, name: &str) -> Vec<String> {
        self.memory(|memory| memory.maps.get(name).cloned().unwrap_or_default())
    }

    /// Counts a call; never returns if the spec says so.
    async fn ask(&self, kiosk: &Kiosk, part: Part) {
        self.memory(|memory| {
            let key = (kiosk.name_any(), part);
            *memory.asked.entry(key).or_default() += 1;
        });
        if kiosk.spec.hangs.contains(&part) {
            std::future::pending::<()>().await;
        }
    }
}

impl KioskStateHandler for Kiosks {
    type Context = Action<Kiosk>;
    type Error = Failure;

    async fn building(&self, cx: &Action<Kiosk>) -> Result<kiosk_state::AfterBuilding, Failure> {
        self.ask(cx.object(), Part::Building).await;
        Ok(kiosk_state::AfterBuilding::Next)
    }

    async fn closing(&self, _: &Action<Kiosk>) -> Result<kiosk_state::AfterClosing, Failure> {
        Ok(kiosk_state::AfterClosing::Next)
    }
}

impl Application for Kiosks {
    type Resource = Kiosk;

    fn watches(watches: Watches<Kiosk>) -> Watches<Kiosk> {
        watches.owns::<ConfigMap>()
    }

    async fn observe(&self, cx: &Context<Kiosk>) -> Result<Observation<KioskState>, Failure> {
        self.ask(cx.object(), Part::Observe).await;
        let maps = cx.owned::<ConfigMap>()?;
        let names = maps.iter().map(ResourceExt::name_any).collect();
        self.memory(|memory| memory.maps.insert(cx.object().name_any(), names));
        Ok(Observation::unobserved())
    }

    async fn resources(
        &self,
        cx: &Context<Kiosk>,
        state: KioskState,
    ) -> Result<Resources, Failure> {
        self.ask(cx.object(), Part::Resources).await;
        let maps = &cx.object().spec.maps;
        Ok(match state {
            KioskState::Closed => Resources::new(),
            KioskState::Building | KioskState::Open | KioskState::Closing => {
                let map = |(name, text): (&String, &String)| {
                    let map = json!({ "metadata": { "name": name }, "data": { "text": text } });
                    serde_json::from_value::<ConfigMap>(map)
                };
                let maps = maps.iter().map(map).collect::<Result<Vec<_>, _>>()?;
                maps.into_iter().fold(Resources::new(), Resources::apply)
            }
        })
    }

    async fn extra(&self, cx: &Context<Kiosk>) -> Result<(), Failure> {
        self.ask(cx.object(), Part::Extra).await;
        Ok(())
    }
}

impl Served for Kiosks {}
