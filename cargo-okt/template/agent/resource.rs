//! The custom resource and its lifecycle.

use okt::kube::CustomResource;
use okt::schemars::JsonSchema;
use okt::serde::{Deserialize, Serialize};
use okt::{Desired, LifecycleSpec, Status, lifecycle_graph};

/// The lifecycle of a `Widget`. An agent does the work of its states: `sidecar.yaml`.
///
/// A child is a regular edge; the last child is the default. A trigger is an edge for an event.
#[lifecycle_graph]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WidgetState {
    /// The application comes up.
    #[entry]
    #[trigger(Failed, on_error(attempts = 5))]
    #[child(Running)]
    Starting,

    /// The application runs.
    #[rest(idle)]
    #[condition(Available)]
    #[trigger(Reconfiguring, on_change)]
    #[child(Stopping)]
    Running,

    /// The spec has changed.
    #[condition(Available)]
    #[trigger(Failed, on_error(attempts = 5))]
    #[child(Running)]
    Reconfiguring,

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
    /// A message: the agent gets it with each piece of work, as a part of the spec.
    pub message: String,
}
