//! The custom resource and its lifecycle.

use okt::kube::CustomResource;
use okt::schemars::JsonSchema;
use okt::serde::{Deserialize, Serialize};
use okt::{Desired, LifecycleSpec, Status, lifecycle_graph};

/// The lifecycle of a `Widget`.
///
/// A child is a regular edge; the last child is the default. A trigger is an edge for an event.
#[lifecycle_graph]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WidgetState {
    /// The application is being set up.
    #[entry]
    #[trigger(Failed, on_error(attempts = 5))]
    #[child(Running)]
    Starting,

    /// The application runs.
    #[rest]
    #[condition(Available)]
    #[trigger(Failed, on_error(attempts = 5))]
    #[child(Stopping)]
    Running,

    /// The application is being shut down.
    #[child(Gone)]
    Stopping,

    /// The application needs a person; a new `spec.lifecycle.request` retries it.
    #[rest(hold, idle)]
    #[condition(Available, status = "False", reason = "Broken")]
    #[child(Starting)]
    #[child(Stopping)]
    Failed,

    /// The application is gone.
    #[leaf(idle)]
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
    /// The message in the `ConfigMap`.
    pub message: String,
}
