//! What users ask for, and the life of it.

use kube::CustomResource;
use okt_runtime::{Desired, LifecycleSpec, Status, lifecycle_graph};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The life of a `Widget`.
///
/// A child is the normal way on, the last one where nothing else is asked for; a trigger is what happens to it.
#[lifecycle_graph]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WidgetState {
    /// It is being set up.
    #[entry]
    #[trigger(Failed, on_error(attempts = 5))]
    #[child(Running)]
    Starting,

    /// It does what it is for.
    #[rest]
    #[condition(Available)]
    #[trigger(Failed, on_error(attempts = 5))]
    #[child(Stopping)]
    Running,

    /// It is being taken down.
    #[child(Gone)]
    Stopping,

    /// Somebody has to look; a new `spec.lifecycle.request` has it tried again.
    #[rest(hold, idle)]
    #[condition(Available, status = "False", reason = "Broken")]
    #[child(Starting)]
    #[child(Stopping)]
    Failed,

    /// There is nothing left of it.
    #[leaf(idle)]
    Gone,
}

/// What a user asks for.
#[derive(CustomResource, LifecycleSpec, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "example.com",
    version = "v1alpha1",
    kind = "Widget",
    namespaced,
    status = "Status<WidgetState>"
)]
pub struct WidgetSpec {
    /// Where it should be in its life.
    #[serde(default)]
    pub lifecycle: Desired<WidgetState>,
    /// What it says.
    pub message: String,
}
