//! A shelf: an application that owns kiosks, a kind with a free field, and refers to some here and elsewhere.

use std::sync::{Arc, Mutex, PoisonError};

use kube::runtime::reflector::ObjectRef;
use kube::runtime::watcher::Config;
use kube::{Api, Client, CustomResource, ResourceExt};
use okt_runtime::{
    Action, Application, Context, Desired, Failure, LifecycleSpec, Observation, Status, Watches,
    lifecycle_graph,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cluster::Served;
use crate::kiosk::Kiosk;

/// The life of a shelf.
#[lifecycle_graph]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ShelfState {
    /// Kiosks are put on it.
    #[entry]
    #[child(Filled)]
    Filling,

    /// They stand there.
    #[rest(idle)]
    #[child(Cleared)]
    Filled,

    /// No more.
    #[leaf(idle)]
    Cleared,
}

/// What a user asks for.
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
    /// Where the shelf should be in its life.
    #[serde(default)]
    pub lifecycle: Desired<ShelfState>,
    /// Names of kiosks that it refers to.
    #[serde(default)]
    pub kiosks: Vec<String>,
    /// Kiosks that it refers to in any namespace.
    #[serde(default)]
    pub across: Vec<Elsewhere>,
}

/// A kiosk, wherever it is.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Elsewhere {
    /// Its namespace; none means that of the shelf.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
}

impl Elsewhere {
    fn reference(&self) -> ObjectRef<Kiosk> {
        let mut reference = ObjectRef::new(&self.name);
        reference.namespace.clone_from(&self.namespace);
        reference
    }
}

/// The operator of shelves; clones share what they saw.
#[derive(Clone, Default)]
pub struct Shelves(Arc<Mutex<Vec<String>>>);

impl Shelves {
    /// The kiosks that were seen at the last look.
    pub fn sees_kiosks(&self) -> Vec<String> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
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
        let kiosks = cx.owned::<Kiosk>();
        let spec = &cx.object().spec;
        let names = ["referred"]
            .into_iter()
            .chain(spec.kiosks.iter().map(String::as_str));
        let across = spec.across.iter();
        let across = across.filter_map(|it| cx.referred_across(&it.reference()));
        let referred: Vec<Kiosk> = names
            .filter_map(|name| cx.referred(name))
            .chain(across)
            .collect();
        let seen = kiosks.iter().chain(&referred);
        let seen = seen.map(ResourceExt::name_any).collect();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = seen;
        Ok(Observation::unobserved())
    }
}

impl Served for Shelves {
    fn api(client: Client) -> Api<Shelf> {
        Api::namespaced(client, "default")
    }
}
