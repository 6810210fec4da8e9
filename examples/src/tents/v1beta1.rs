//! The second version: `size` is `people`, the stoves are a part of the equipment, and nobody asks for the color.
//!
//! Its fields only moved, so the conversions are derived.

use kube::CustomResource;
use okt::{Desired, LifecycleSpec, Status};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::v1alpha1;
pub use super::v1alpha1::TentState;

/// A tent.
#[derive(CustomResource, LifecycleSpec, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "demo.okt.dev",
    version = "v1beta1",
    kind = "Tent",
    namespaced,
    status = "Status<TentState>"
)]
#[lifecycle(previous(v1alpha1::Tent), removed(color))]
pub struct TentSpec {
    /// The desired state.
    #[serde(default)]
    pub lifecycle: Desired<TentState>,
    /// For how many people it is.
    #[lifecycle(was(size))]
    pub people: u8,
    /// Where it stands: a field and a place on it (e.g. `river/12`).
    pub site: String,
    /// What is in it.
    #[serde(default)]
    #[lifecycle(holds(stoves))]
    pub equipment: Equipment,
    /// What guests are told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[lifecycle(new)]
    pub notice: Option<String>,
}

/// What is in a tent.
#[derive(Clone, Default, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Equipment {
    /// The number of its stoves.
    #[serde(default)]
    pub stoves: u8,
    /// Its lamps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lamps: Vec<Lamp>,
}

/// A lamp.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Lamp {
    /// Where it hangs.
    pub place: String,
    /// Its power.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watts: Option<u8>,
}
