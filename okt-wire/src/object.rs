//! The traits of resources with a lifecycle.

use std::fmt::Debug;

use kube::core::object::{HasSpec, HasStatus};
use kube::{CustomResourceExt, Resource};
use okt_core::{Graph, Lifecycle, SpecParts};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::desired::Desired;
use crate::pruned::decode;
use crate::sealed::Sealed;
use crate::status::{Position, RecordedRequest, RecordedStep, Status};
use crate::version::PreviousVersion;

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
    type State: Lifecycle + SpecParts<Self>;

    /// Returns the lifecycle field.
    fn lifecycle(&self) -> &Desired<Self::State>;

    /// Resets the lifecycle field, where only the rest of the spec counts.
    fn forget_lifecycle(&mut self);

    /// Returns the version of the kind before this one, as `#[lifecycle(previous = ..)]` names it.
    fn previous() -> Option<PreviousVersion> {
        None
    }

    /// Returns the fields that stay as they were when an object was created (`#[lifecycle(immutable)]`), as they are
    /// called in YAML.
    fn immutable() -> &'static [&'static str] {
        &[]
    }

    /// Returns the fields that the API server fills in where they are left out (`#[lifecycle(default = "..")]`), as they
    /// are called in YAML, with the expressions of their values.
    fn defaults() -> &'static [(&'static str, &'static str)] {
        &[]
    }
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
    type State: Lifecycle + SpecParts<Self::Spec>;
    /// The fields that the application adds to the status.
    type Extra: StatusPart;
    /// What the handlers remember of an object.
    type Memory: StatusPart;
    /// The type of the spec.
    type Spec: LifecycleSpec<State = Self::State> + Clone + Serialize;

    /// Returns the spec.
    fn spec_of(&self) -> &Self::Spec;

    /// Returns the status, if there is one.
    fn status_of(&self) -> Option<&StatusOf<Self>>;
}

/// The status of the objects of a kind.
pub type StatusOf<K> = Status<
    <K as LifecycleObject>::State,
    <K as LifecycleObject>::Extra,
    <K as LifecycleObject>::Memory,
>;

// Otherwise the compiler reports each of the bounds, and not the note above.
#[diagnostic::do_not_recommend]
impl<K, S, E, M> LifecycleObject for K
where
    K: Resource<DynamicType = ()>
        + CustomResourceExt
        + HasSpec<Spec: LifecycleSpec<State = S> + Clone + Serialize>
        + HasStatus<Status = Status<S, E, M>>
        + Clone
        + Debug
        + DeserializeOwned
        + Serialize
        + Send
        + Sync
        + 'static,
    S: Lifecycle + SpecParts<K::Spec>,
    E: StatusPart,
    M: StatusPart,
{
    type State = S;
    type Extra = E;
    type Memory = M;
    type Spec = K::Spec;

    fn spec_of(&self) -> &Self::Spec {
        self.spec()
    }

    fn status_of(&self) -> Option<&Status<S, E, M>> {
        self.status()
    }
}

/// What an application may have in a status, fields of its own or its memory: a struct that is serializable and
/// comparable, with a schema.
pub trait StatusPart:
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

impl<P> StatusPart for P where
    P: Clone
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

/// Returns what the handlers remember of an object, as it is recorded; the default if nothing is.
///
/// # Errors
///
/// Why it does not decode, or that somebody else has changed it: nobody may act upon it, nor upon a default instead.
pub fn memory_of<K: LifecycleObject>(object: &K) -> Result<K::Memory, String> {
    let Some(sealed) = position_of(object).and_then(|position| position.memory.as_ref()) else {
        return Ok(K::Memory::default());
    };
    unsealed(sealed, "status.lifecycle.memory")
}

/// Returns the steps of the work on record that are done.
///
/// # Errors
///
/// As of [`memory_of`].
pub fn steps_of<K: LifecycleObject>(object: &K) -> Result<Vec<RecordedStep>, String> {
    let action = position_of(object).and_then(|position| position.action.as_ref());
    match action.and_then(|action| action.steps.as_ref()) {
        Some(sealed) => unsealed(sealed, "status.lifecycle.action.steps"),
        None => Ok(Vec::new()),
    }
}

/// Returns the request on record, with arguments and a result that nobody else has changed.
///
/// # Errors
///
/// That somebody else has changed them: nobody may act upon them.
pub fn request_of<K: LifecycleObject>(object: &K) -> Result<Option<&RecordedRequest>, String> {
    let request = position_of(object).and_then(|position| position.request.as_ref());
    if let Some(request) = request {
        unsealed::<Value>(&request.args, "status.lifecycle.request.args")?;
        if let Some(result) = &request.result {
            unsealed::<Value>(result, "status.lifecycle.request.result")?;
        }
    }
    Ok(request)
}

/// Reads a sealed value of the field at this path.
fn unsealed<T: DeserializeOwned>(sealed: &Sealed, path: &str) -> Result<T, String> {
    if sealed.is_intact() {
        return sealed.read().map_err(|why| format!("{path}.value: {why}"));
    }
    Err(format!(
        "{path}: somebody else than the operator has changed `value`; write back what it was, or remove `sum` to accept it"
    ))
}

/// Decodes the text of an object, with what its handlers remember.
///
/// # Errors
///
/// Where the text does not fit the type, and why; or why the memory cannot be used. A retry does not help.
pub fn decode_object<K: LifecycleObject>(text: &str) -> Result<K, String> {
    let object = decode(text)?;
    memory_of(&object)?;
    steps_of(&object)?;
    request_of(&object)?;
    Ok(object)
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
