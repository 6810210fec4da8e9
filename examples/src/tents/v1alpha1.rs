//! The first version, with the operator of that time: a site is a text, and a tent that is not in use is `Packed`.

use kube::CustomResource;
use okt::{Action, Application, Desired, Failure, LifecycleSpec, Status, lifecycle_graph};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::work;

/// The life of a tent.
#[lifecycle_graph]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TentState {
    /// It is pitched.
    #[entry]
    #[child(Standing)]
    Pitching,
    /// Guests sleep in it.
    #[rest(idle)]
    #[child(Striking)]
    Standing,
    /// It is taken down.
    #[child(Packed)]
    Striking,
    /// It is in its bag.
    #[rest(idle)]
    #[child(Pitching)]
    #[child(Gone)]
    Packed,
    /// It is given away.
    #[leaf(idle)]
    Gone,
}

/// A tent.
#[derive(CustomResource, LifecycleSpec, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "demo.okt.dev",
    version = "v1alpha1",
    kind = "Tent",
    namespaced,
    status = "Status<TentState>"
)]
pub struct TentSpec {
    /// The desired state.
    #[serde(default)]
    pub lifecycle: Desired<TentState>,
    /// For how many people it is.
    pub size: u8,
    /// Where it stands: a field and a place on it (e.g. `river/12`).
    pub site: String,
    /// The number of its stoves.
    #[serde(default)]
    pub stoves: u8,
    /// Its color.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub color: Option<String>,
}

/// The operator of tents, in its first release.
#[derive(Clone, Debug)]
pub struct Camp;

impl TentStateHandler for Camp {
    type Context = Action<Tent>;
    type Error = Failure;

    async fn pitching(&self, action: &Action<Tent>) -> Result<tent_state::AfterPitching, Failure> {
        work(action.id(), "pitched").await;
        Ok(tent_state::AfterPitching::Standing)
    }

    async fn striking(&self, action: &Action<Tent>) -> Result<tent_state::AfterStriking, Failure> {
        work(action.id(), "taken down").await;
        Ok(tent_state::AfterStriking::Packed)
    }
}

impl Application for Camp {
    type Resource = Tent;
}
