//! The traits of resources with a lifecycle.

use std::fmt::Debug;

use kube::core::object::{HasSpec, HasStatus};
use kube::{CustomResourceExt, Resource};
use okt_core::{Graph, Lifecycle};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::desired::Desired;
use crate::status::{Position, Status};

/// A spec with a lifecycle field; derive it with `#[derive(LifecycleSpec)]`.
///
/// ```
/// use okt::{Desired, LifecycleSpec};
/// # use okt::lifecycle_graph;
/// # #[lifecycle_graph]
/// # #[derive(Clone, Copy, Debug, PartialEq, Eq)]
/// # pub enum AppState { #[entry] #[child(End)] Start, #[leaf(idle)] End }
///
/// #[derive(Clone, LifecycleSpec)]
/// struct AppSpec {
///     lifecycle: Desired<AppState>,
///     size: u32,
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the spec of a resource of OKT",
    label = "no `LifecycleSpec`",
    note = "add `LifecycleSpec` to its derives, and a field `pub lifecycle: Desired<..>`; or `#[lifecycle(none)]` for a pass"
)]
pub trait LifecycleSpec {
    /// The states.
    type State: Lifecycle;

    /// Returns the lifecycle field.
    fn lifecycle(&self) -> &Desired<Self::State>;

    /// Resets the lifecycle field, where only the rest of the spec counts.
    fn forget_lifecycle(&mut self);
}

/// A custom resource whose spec has a lifecycle field and whose status is a [`Status`] of the same states.
///
/// OKT implements it for every such type; `#[derive(CustomResource, LifecycleSpec)]` generates one.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a resource that OKT can reconcile",
    label = "not a custom resource with a lifecycle",
    note = "it is the type that `#[derive(CustomResource, LifecycleSpec, Clone, Debug, Serialize, Deserialize, JsonSchema)]` generates, with `#[kube(.., status = \"Status<..>\")]`"
)]
pub trait LifecycleObject:
    Resource<DynamicType = ()>
    + CustomResourceExt
    + Clone
    + Debug
    + DeserializeOwned
    + Serialize
    + Send
    + Sync
    + 'static
{
    /// The states.
    type State: Lifecycle;
    /// The fields that the application adds to the status.
    type Extra: Extra;
    /// The type of the spec.
    type Spec: LifecycleSpec<State = Self::State> + Clone + Serialize;

    /// Returns the spec.
    fn spec_of(&self) -> &Self::Spec;

    /// Returns the status, if there is one.
    fn status_of(&self) -> Option<&Status<Self::State, Self::Extra>>;
}

// Otherwise the compiler reports each of the bounds, and not the note above.
#[diagnostic::do_not_recommend]
impl<K, S, E> LifecycleObject for K
where
    K: Resource<DynamicType = ()>
        + CustomResourceExt
        + HasSpec<Spec: LifecycleSpec<State = S> + Clone + Serialize>
        + HasStatus<Status = Status<S, E>>
        + Clone
        + Debug
        + DeserializeOwned
        + Serialize
        + Send
        + Sync
        + 'static,
    S: Lifecycle,
    E: Extra,
{
    type State = S;
    type Extra = E;
    type Spec = K::Spec;

    fn spec_of(&self) -> &Self::Spec {
        self.spec()
    }

    fn status_of(&self) -> Option<&Status<S, E>> {
        self.status()
    }
}

/// The fields that an application may add to its status: a struct that is serializable and comparable, with a schema.
pub trait Extra:
    Clone
    + Debug
    + Default
    + PartialEq
    + Serialize
    + DeserializeOwned
    + JsonSchema
    + Send
    + Sync
    + 'static
{
}

impl<E> Extra for E where
    E: Clone
        + Debug
        + Default
        + PartialEq
        + Serialize
        + DeserializeOwned
        + JsonSchema
        + Send
        + Sync
        + 'static
{
}

/// Returns the recorded position of an object; none before its first reconciliation.
pub fn position_of<K: LifecycleObject>(object: &K) -> Option<&Position<K::State>> {
    object.status_of()?.lifecycle.as_ref()
}

/// Returns whether objects of a kind have a lifecycle.
pub fn has_lifecycle<K: LifecycleObject>() -> bool {
    lifecycle_of::<K>().is_some()
}

/// Returns the graph of the objects of a kind, if they have a lifecycle.
pub fn lifecycle_of<K: LifecycleObject>() -> Option<&'static Graph<'static>> {
    let graph = K::State::GRAPH;
    (!graph.states.is_empty()).then_some(graph)
}
