//! The custom resource and its lifecycle.

use okt::kube::CustomResource;
use okt::schemars::JsonSchema;
use okt::serde::{Deserialize, Serialize};
use okt::{Desired, LifecycleSpec, Status, lifecycle_graph};

/// The lifecycle of a `Widget`, which is one resource of a service outside the cluster.
///
/// A child is a regular edge; the last child is the default. A trigger is an edge for an event.
#[lifecycle_graph]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WidgetState {
    /// The resource is created, or adopted if it exists.
    #[entry]
    #[child(Present)]
    Creating,

    /// The resource is as the spec asks.
    #[rest]
    #[condition(Available)]
    #[trigger(Repairing)]
    #[child(Gone)]
    Present,

    /// Others changed the resource: it is updated.
    #[no_transit]
    #[child(Gone)]
    #[child(Present)]
    Repairing,

    /// The resource is deleted.
    #[leaf]
    Gone,
}

/// The spec of a `Widget`.
#[okt::crates]
#[derive(CustomResource, LifecycleSpec, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "example.com",
    version = "v1alpha1",
    kind = "Widget",
    namespaced,
    status = "Status<WidgetState>"
)]
pub struct WidgetSpec {
    /// The desired state.
    #[serde(default)]
    pub lifecycle: Desired<WidgetState>,
    /// The message that the resource holds.
    pub message: String,
}
