//! A shelf: an application that owns kiosks and refers to some, a kind with a free field.

use std::sync::{Arc, Mutex, PoisonError};

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
    }

    async fn observe(&self, cx: &Context<Shelf>) -> Result<Observation<ShelfState>, Failure> {
        let kiosks = cx.owned::<Kiosk>();
        let referred = cx.referred::<Kiosk>("referred");
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
