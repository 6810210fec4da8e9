//! The custom resource, and the pass over it.

use okt::kube::CustomResource;
use okt::schemars::JsonSchema;
use okt::serde::{Deserialize, Serialize};
use okt::{LifecycleSpec, PassStatus, lifecycle_graph};

/// One reconciliation of a `Widget`, from the entry to the leaf.
///
/// The last child of a state is the default. A condition is true when the step of its state is done.
#[lifecycle_graph(pass)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WidgetPass {
    /// The spec is checked before anything is changed.
    #[entry]
    #[condition(Valid)]
    #[child(Apply)]
    Check,

    /// The objects in the cluster are applied.
    #[condition(Applied)]
    #[child(End)]
    Apply,

    /// The object is as its spec asks.
    #[leaf(idle)]
    End,
}

/// The spec of a `Widget`.
#[okt::crates]
#[derive(CustomResource, LifecycleSpec, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "example.com",
    version = "v1alpha1",
    kind = "Widget",
    namespaced,
    status = "PassStatus"
)]
#[lifecycle(none)]
pub struct WidgetSpec {
    /// The message in the `ConfigMap`.
    pub message: String,
}
