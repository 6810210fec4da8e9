//! The application of shelves, which own kiosks and refer to kiosks in their own and other namespaces.

use std::sync::Arc;

use kube::runtime::reflector::ObjectRef;
use kube::runtime::watcher::Config;
use kube::{CustomResource, ResourceExt};
use okt::{
    Action, Application, Context, Desired, Failure, LifecycleSpec, Observation, Status, Watches,
    lifecycle_graph,
};
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cluster::Served;
use crate::kiosk::Kiosk;

/// The life of a shelf.
#[lifecycle_graph]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ShelfState {
    /// Kiosks are being put on it.
    #[entry]
    #[child(Filled)]
    Filling,

    /// All kiosks are on it.
    #[rest(idle)]
    #[child(Cleared)]
    Filled,

    /// It is gone.
    #[leaf(idle)]
    Cleared,
}

/// The spec of a shelf.
#[derive(CustomResource, LifecycleSpec, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "demo.okt.dev",
    version = "v1",
    kind = "Shelf",
    plural = "shelves",
    namespaced,
    status = "Status<ShelfState>"
)]
pub struct ShelfSpec {
    /// The desired state of the shelf.
    #[serde(default)]
    pub lifecycle: Desired<ShelfState>,
    /// The names of the kiosks that it refers to.
    #[serde(default)]
    pub kiosks: Vec<String>,
    /// The kiosks that it refers to in any namespace.
    #[serde(default)]
    pub across: Vec<Elsewhere>,
}

/// A reference to a kiosk in any namespace.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Elsewhere {
    /// The namespace; none means that of the shelf.
    pub namespace: Option<String>,
    /// The name.
    pub name: String,
}

impl Elsewhere {
    fn reference(&self) -> ObjectRef<Kiosk> {
        let mut reference = ObjectRef::new(&self.name);
        reference.namespace.clone_from(&self.namespace);
        reference
    }
}

/// The operator of shelves; clones share their observations.
#[derive(Clone, Default)]
pub struct Shelves(Arc<Mutex<Vec<String>>>);

impl Shelves {
    /// Returns the kiosks of the last observation.
    pub fn sees_kiosks(&self) -> Vec<String> {
        self.0.lock().clone()
    }
}

impl ShelfStateHandler for Shelves {
    type Context = Action<Shelf>;
    type Error = Failure;

    async fn filling(&self, _: &Action<Shelf>) -> Result<shelf_state::AfterFilling, Failure> {
        Ok(shelf_state::AfterFilling::Next)
    }
}

impl Application for Shelves {
    type Resource = Shelf;

    fn watches(watches: Watches<Shelf>) -> Watches<Shelf> {
        watches
            .owns::<Kiosk>()
            .refers::<Kiosk>(|_| vec!["referred".to_owned()])
            .refers::<Kiosk>(|shelf| shelf.spec.kiosks.clone())
            .refers_across::<Kiosk>(Config::default().labels("!private"), |shelf| {
                let across = shelf.spec.across.iter();
                across.map(Elsewhere::reference).collect()
            })
    }

    async fn observe(&self, cx: &Context<Shelf>) -> Result<Observation<ShelfState>, Failure> {
        let kiosks = cx.owned::<Kiosk>()?;
        let spec = &cx.object().spec;
        let names = ["referred"]
            .into_iter()
            .chain(spec.kiosks.iter().map(String::as_str));
        let elsewhere = spec.across.iter();
        let across = elsewhere.map(|it| cx.referred_across(&it.reference()));
        let referred: Result<Vec<Option<Kiosk>>, Failure> =
            names.map(|name| cx.referred(name)).chain(across).collect();
        let referred: Vec<Kiosk> = referred?.into_iter().flatten().collect();
        let all_kiosks = kiosks.iter().chain(&referred);
        let seen = all_kiosks.map(ResourceExt::name_any).collect();
        *self.0.lock() = seen;
        Ok(Observation::unobserved())
    }
}

impl Served for Shelves {}
