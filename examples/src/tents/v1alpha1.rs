//! The first version: a site is a text, and a tent that is not in use is `Packed`.

use kube::CustomResource;
use okt::{Desired, LifecycleSpec, Status, lifecycle_graph};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
