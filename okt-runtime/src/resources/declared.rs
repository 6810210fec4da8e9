//! The resources that an application declares.

use kube::Resource;
use kube::api::PropagationPolicy;
use kube::core::ApiResource;
use kube::runtime::reflector::ObjectRef;
use okt_core::{Lifecycle, StateId};
use serde::Serialize;
use serde_json::Value;

use super::kind::ResourceKind;
use super::names::Name;

/// The resources that should exist in the cluster for an object in a state.
///
/// OKT applies them in the order of declaration, and prunes objects that are no longer declared.
///
/// ```
/// use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim};
/// use okt::{Declared, Resources};
///
/// # fn example(settings: ConfigMap, volume: PersistentVolumeClaim, guest: ConfigMap) -> Resources {
/// Resources::new()
///     .create_only(volume)
///     .apply(settings)
///     .with(Declared::of(guest).unowned())
/// # }
/// ```
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Resources {
    pub(crate) declared: Vec<Declared>,
    pub(crate) kept: Vec<(ApiResource, Name)>,
}

impl Resources {
    /// Declares no resources.
    pub fn new() -> Self {
        Self::default()
    }

    /// Declares an object that OKT applies and keeps as declared.
    ///
    /// OKT reverts changes to declared fields, and leaves other fields alone.
    #[must_use]
    pub fn apply<T: Resource<DynamicType = ()> + Serialize>(self, object: T) -> Self {
        self.with(Declared::of(object))
    }

    /// Does the same as [`apply`](Self::apply), and the work of the state does not begin before the object is ready.
    #[must_use]
    pub fn apply_ready<T: Resource<DynamicType = ()> + Serialize>(self, object: T) -> Self {
        self.with(Declared::of(object).ready())
    }

    /// Declares an object that OKT creates and never changes while it exists.
    #[must_use]
    pub fn create_only<T: Resource<DynamicType = ()> + Serialize>(self, object: T) -> Self {
        self.with(Declared::of(object).once())
    }

    /// Leaves the object of this kind and name as it is: OKT neither applies nor deletes it.
    ///
    /// The name means an object in the namespace of the owner. OKT ignores a text that cannot be a name, and logs it.
    #[must_use]
    pub fn keep<T: Resource<DynamicType = (), Scope: 'static>>(
        self,
        name: impl Into<String>,
    ) -> Self {
        self.keep_dynamic(&ApiResource::erase::<T>(&()), name)
    }

    /// Does the same as [`keep`](Self::keep) for a kind without a Rust type.
    #[must_use]
    pub fn keep_dynamic(mut self, api: &ApiResource, name: impl Into<String>) -> Self {
        self.kept.push((api.clone(), (None, name.into())));
        self
    }

    /// Does the same as [`keep`](Self::keep) for an object of any kind that may be in another namespace.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::Secret;
    /// use kube::runtime::reflector::ObjectRef;
    /// use okt::Resources;
    ///
    /// let certificate = ObjectRef::<Secret>::new("certificate").within("gateway");
    /// let resources = Resources::new().keep_across(&certificate);
    /// # drop(resources);
    /// ```
    #[must_use]
    pub fn keep_across<T: Resource>(mut self, object: &ObjectRef<T>) -> Self {
        let api = ApiResource::erase::<T>(&object.dyntype);
        let name = (object.namespace.clone(), object.name.clone());
        self.kept.push((api, name));
        self
    }

    /// Returns the declared objects as JSON, in the order of their declaration: for tests.
    ///
    /// # Errors
    ///
    /// Why an object cannot be serialized.
    pub fn objects(&self) -> Result<Vec<Value>, String> {
        let objects = self.declared.iter().map(|it| it.object.clone());
        objects.collect()
    }

    /// Returns whether the operator has to delete some of the resources itself: unowned ones, or ones with a wave.
    pub(crate) fn leaves_something(&self) -> bool {
        let mut declared = self.declared.iter();
        declared.any(|declared| declared.owner == DeclaredOwner::None || declared.wave.is_some())
    }

    /// Adds other resources.
    pub(crate) fn and(mut self, others: Self) -> Self {
        self.declared.extend(others.declared);
        self.kept.extend(others.kept);
        self
    }

    /// Adds an object with its own options.
    #[must_use]
    pub fn with(mut self, declared: Declared) -> Self {
        self.declared.push(declared);
        self
    }
}

/// An object that should exist, with its options.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of its own; no combination is excluded"
)]
#[derive(Clone, PartialEq, Debug)]
pub struct Declared {
    /// The object, or why it could not be serialized.
    pub(crate) object: Result<Value, String>,
    /// The template file that it comes from, if any.
    pub(crate) file: Option<String>,
    pub(crate) owner: DeclaredOwner,
    pub(crate) once: bool,
    pub(crate) ready: bool,
    /// The condition by which it is ready: its name, or `Name=Status`.
    pub(crate) ready_when: Option<String>,
    pub(crate) recreate: bool,
    pub(crate) prunable: bool,
    pub(crate) adopts: bool,
    /// The managers whose fields become those of the operator.
    pub(crate) takes_over: Vec<String>,
    /// Pointers to the fields that are only set at first.
    pub(crate) initial: Vec<String>,
    pub(crate) wave: Option<u32>,
    /// Whether it is also made while its owner is being deleted.
    pub(crate) in_deletion: bool,
    /// What happens to its dependents when the operator deletes it.
    pub(crate) propagation: Option<PropagationPolicy>,
    /// The states in which its content may change; all, if none is named.
    pub(crate) changes_in: Vec<StateId>,
}

/// The kind of owner reference that an object gets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum DeclaredOwner {
    /// A reference that marks the owner as the controller.
    Controller,
    /// A reference to one of several owners.
    Plain,
    /// No reference: the operator deletes the object, not Kubernetes.
    None,
}

impl Declared {
    /// Declares an object of a Rust type.
    pub fn of<T: Resource<DynamicType = ()> + Serialize>(object: T) -> Self {
        Self::typed(
            serde_json::to_value(object),
            &T::api_version(&()),
            &T::kind(&()),
        )
    }

    /// Declares an object as JSON, with its `apiVersion`, `kind` and `metadata`.
    pub fn dynamic(object: Value) -> Self {
        Self {
            object: Ok(object),
            file: None,
            owner: DeclaredOwner::Controller,
            once: false,
            ready: false,
            ready_when: None,
            recreate: false,
            prunable: false,
            adopts: false,
            takes_over: Vec::new(),
            initial: Vec::new(),
            wave: None,
            in_deletion: false,
            propagation: None,
            changes_in: Vec::new(),
        }
    }

    /// Returns whether another content may be applied in a state; always without one.
    pub(super) fn may_change_in(&self, state: Option<StateId>) -> bool {
        let is_named = |state| self.changes_in.contains(&state);
        self.changes_in.is_empty() || state.is_none_or(is_named)
    }

    /// Returns whether what the object does is done when it has finished, also if it is gone then.
    pub(super) fn is_done_once(&self, kind: &ResourceKind, body: &Value) -> bool {
        let vanishes = || body["spec"].get("ttlSecondsAfterFinished").is_some();
        kind.has_fixed_spec() && (self.once || vanishes())
    }

    fn typed(object: serde_json::Result<Value>, api_version: &str, kind: &str) -> Self {
        let named = |mut object: Value| {
            if let Some(fields) = object.as_object_mut() {
                fields.insert("apiVersion".to_owned(), api_version.into());
                fields.insert("kind".to_owned(), kind.into());
            }
            object
        };
        Self {
            object: object
                .map(named)
                .map_err(|error| format!("a {kind} cannot be written: {error}")),
            ..Self::dynamic(Value::Null)
        }
    }

    /// Delays the work of the state until the object is ready.
    #[must_use]
    pub fn ready(mut self) -> Self {
        self.ready = true;
        self
    }

    /// Delays the work of the state until a condition of the object's status has this value: `Programmed`, which means
    /// `Programmed=True`, or `Name=Status`.
    ///
    /// It replaces what OKT knows of the readiness of the kind, also for `wait_ready` and `unready`; OKT records it on the
    /// object. Use it for a kind whose conditions do not say `Ready`, and for one whose status comes late. A condition
    /// that is about an earlier generation does not count.
    ///
    /// ```
    /// use okt::Declared;
    /// use serde_json::json;
    ///
    /// let gateway = json!({
    ///     "apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "metadata": { "name": "web" },
    /// });
    /// let declared = Declared::dynamic(gateway).ready_when("Programmed");
    /// # drop(declared);
    /// ```
    #[must_use]
    pub fn ready_when(mut self, condition: impl Into<String>) -> Self {
        self.ready = true;
        self.ready_when = Some(condition.into());
        self
    }

    /// Never changes the object while it exists.
    ///
    /// A Job or a Pod that has finished is not made again when it is gone, unless its declaration changes: the status of
    /// the owner records that. The same holds without `once` for a Job with `ttlSecondsAfterFinished`. A Job that is
    /// deleted before it has finished is made again.
    #[must_use]
    pub fn once(mut self) -> Self {
        self.once = true;
        self
    }

    /// Deletes and creates the object again if a declared field differs that cannot change, or if the object has failed
    /// (a Pod, a Job).
    ///
    /// For fields that cannot change this is the default of Pods and Jobs; [`once`](Self::once) turns it off. For other
    /// kinds such a field stalls the object otherwise.
    /// OKT deletes in the foreground: the new object comes when the old one and its dependents are gone. Each time OKT
    /// waits longer. Meanwhile the work of the state waits, and the conditions say `ResourceImmutable` or
    /// `ResourceNotReady`; give up with a trigger `after`.
    ///
    /// A volume claim that is deleted may take its data with it.
    #[must_use]
    pub fn recreate(mut self) -> Self {
        self.recreate = true;
        self
    }

    /// Gives the object an owner reference that does not mark the owner as controller: other owners are possible.
    #[must_use]
    pub fn plainly_owned(mut self) -> Self {
        self.owner = DeclaredOwner::Plain;
        self
    }

    /// Gives the object no owner reference: the operator deletes it, not Kubernetes.
    ///
    /// Use it for an object in another namespace than its owner, or for a cluster-scoped object of a namespaced owner:
    /// Kubernetes allows no owner reference there.
    #[must_use]
    pub fn unowned(mut self) -> Self {
        self.owner = DeclaredOwner::None;
        self
    }

    /// Makes the object also while its owner is being deleted: a Job that the work on the way out needs, for example.
    ///
    /// Otherwise OKT makes and repairs nothing then: whoever deletes the owner may want the rest left as it is. If such an
    /// object has to be [`ready`](Self::ready) and is not there, that is an error.
    /// With `kubectl delete --cascade=foreground` the garbage collector deletes it again, unless it is
    /// [`unowned`](Self::unowned).
    #[must_use]
    pub fn during_deletion(mut self) -> Self {
        self.in_deletion = true;
        self
    }

    /// Applies another content than before in these states only: a template that a new release or spec changes waits for
    /// them.
    ///
    /// Elsewhere OKT creates the object if it is missing, and repairs it as long as the declared content is the applied one.
    /// If it is not, the object is *outdated*: that raises the `on_change` of the state which leads to one of these states,
    /// as a change of the spec does, and waits before a gate like it. An object that is being deleted does not wait.
    ///
    /// Declare the object with the same content in every state. It is an error if no `on_change` of the graph leads to these
    /// states.
    ///
    /// ```
    /// # use okt::Declared;
    /// # fn example<S: okt::Lifecycle>(web: okt::k8s_openapi::api::apps::v1::StatefulSet, upgrading: S) -> Declared {
    /// Declared::of(web).changes_in([upgrading]) // e.g. `DatabaseState::Upgrading`
    /// # }
    /// ```
    #[must_use]
    pub fn changes_in<S: Lifecycle>(mut self, states: impl IntoIterator<Item = S>) -> Self {
        self.changes_in = states.into_iter().map(Lifecycle::id).collect();
        self
    }

    /// Takes over an existing object of the same name that nobody owns: a person or a chart made it, or its owner is gone.
    ///
    /// An object that has another owner stays with it, and the conditions name that owner (`NotOwned`).
    /// Fields of the object that the declaration does not have stay: see [`taking_over`](Self::taking_over).
    #[must_use]
    pub fn adopting(mut self) -> Self {
        self.adopts = true;
        self
    }

    /// Makes the fields that these managers have set those of the operator: what the declaration does not have of them is
    /// removed, a side container of a former chart for example. Otherwise fields of others stay.
    ///
    /// The names are those in `metadata.managedFields`: `helm`, `kubectl-client-side-apply` (`kubectl apply`),
    /// `kubectl-edit`, or the field manager of another operator. Use it with [`adopting`](Self::adopting), or later.
    ///
    /// ```
    /// use okt::Declared;
    ///
    /// # fn example(web: okt::k8s_openapi::api::apps::v1::Deployment) -> Declared {
    /// Declared::of(web).adopting().taking_over(["helm", "kubectl-client-side-apply"])
    /// # }
    /// ```
    #[must_use]
    pub fn taking_over(mut self, managers: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.takes_over.extend(managers.into_iter().map(Into::into));
        self
    }

    /// Sets the field at this place only when the object is created, and leaves it to others from then on: the replicas of
    /// a Deployment that an autoscaler sets. A field that an earlier declaration has set keeps its value.
    ///
    /// The place is a JSON pointer (RFC 6901) that leads through no list; another one is a `BadResource`.
    ///
    /// ```
    /// use okt::Declared;
    ///
    /// # fn example(web: okt::k8s_openapi::api::apps::v1::Deployment) -> Declared {
    /// Declared::of(web).initially("/spec/replicas")
    /// # }
    /// ```
    #[must_use]
    pub fn initially(mut self, place: impl Into<String>) -> Self {
        self.initial.push(place.into());
        self
    }

    /// Allows pruning the object when it is no longer declared, although its kind holds data.
    #[must_use]
    pub fn prunable(mut self) -> Self {
        self.prunable = true;
        self
    }

    /// Sets what happens to the dependents of the object when OKT deletes it, also to create it again: by default they go
    /// before it (`Foreground`).
    ///
    /// With `Orphan` the Pods of a `StatefulSet` that is created again run on, and the new one takes them over, as after
    /// `kubectl delete --cascade=orphan`. OKT records the policy on the object, for when it is declared no longer.
    ///
    /// ```
    /// use okt::Declared;
    /// use okt::kube::api::PropagationPolicy;
    ///
    /// # fn example(set: okt::k8s_openapi::api::apps::v1::StatefulSet) -> Declared {
    /// Declared::of(set).recreate().propagation(PropagationPolicy::Orphan)
    /// # }
    /// ```
    #[must_use]
    pub fn propagation(mut self, policy: PropagationPolicy) -> Self {
        self.propagation = Some(policy);
        self
    }

    /// Sets the deletion wave: OKT deletes the highest wave first, and the next one when all of that wave is gone.
    ///
    /// OKT waits until a pruned object with a wave is gone, with all its dependents.
    /// When the owner is deleted, OKT deletes objects with a wave before it removes the finalizer, not after it.
    /// An object without a wave goes with wave 0, and OKT does not wait for it.
    /// The wave does not change the order of creation.
    #[must_use]
    pub fn wave(mut self, wave: u32) -> Self {
        self.wave = Some(wave);
        self
    }
}
