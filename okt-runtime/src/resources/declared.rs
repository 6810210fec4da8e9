//! What should exist in the cluster, as an application declares it.

use kube::Resource;
use kube::core::ApiResource;
use kube::runtime::reflector::ObjectRef;
use serde::Serialize;
use serde_json::Value;

use super::names::Name;

/// What should exist in the cluster for an object in a state.
///
/// It is applied in this order, and what was declared before and is no longer is deleted.
///
/// ```
/// use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim};
/// use okt_runtime::{Declared, Resources};
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
    /// Nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Should exist as declared here; what others change of it is changed back, what they add is left alone.
    #[must_use]
    pub fn apply<T: Resource<DynamicType = ()> + Serialize>(self, object: T) -> Self {
        self.with(Declared::of(object))
    }

    /// The same, and the work of the state does not begin before it is ready.
    #[must_use]
    pub fn apply_ready<T: Resource<DynamicType = ()> + Serialize>(self, object: T) -> Self {
        self.with(Declared::of(object).ready())
    }

    /// Should exist; as long as it does it is never changed.
    #[must_use]
    pub fn create_only<T: Resource<DynamicType = ()> + Serialize>(self, object: T) -> Self {
        self.with(Declared::of(object).once())
    }

    /// Leaves the object of this kind and name as it is: OKT neither applies nor deletes it.
    ///
    /// It is the one in the namespace of the object itself; a text that cannot be a name keeps nothing, and the log
    /// says so.
    #[must_use]
    pub fn keep<T: Resource<DynamicType = (), Scope: 'static>>(
        self,
        name: impl Into<String>,
    ) -> Self {
        self.keep_dynamic(&ApiResource::erase::<T>(&()), name)
    }

    /// The same for a kind that is no Rust type.
    #[must_use]
    pub fn keep_dynamic(mut self, api: &ApiResource, name: impl Into<String>) -> Self {
        self.kept.push((api.clone(), (None, name.into())));
        self
    }

    /// The same for an object that may be in another namespace, of any kind.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::Secret;
    /// use kube::runtime::reflector::ObjectRef;
    /// use okt_runtime::Resources;
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

    /// Whether Kubernetes would not delete all of it with the object, in the order that is wanted.
    pub(crate) fn leaves_something(&self) -> bool {
        let mut declared = self.declared.iter();
        declared.any(|declared| declared.owner == Owner::None || declared.wave.is_some())
    }

    /// These, and others.
    pub(crate) fn and(mut self, others: Self) -> Self {
        self.declared.extend(others.declared);
        self.kept.extend(others.kept);
        self
    }

    /// Adds an object with options of its own.
    #[must_use]
    pub fn with(mut self, declared: Declared) -> Self {
        self.declared.push(declared);
        self
    }
}

/// An object that should exist, and how.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of its own; no combination is excluded"
)]
#[derive(Clone, PartialEq, Debug)]
pub struct Declared {
    /// What it is, or why that cannot be said.
    pub(crate) object: Result<Value, String>,
    /// The file that it comes from, where it comes from one.
    pub(crate) file: Option<String>,
    pub(crate) owner: Owner,
    pub(crate) once: bool,
    pub(crate) ready: bool,
    pub(crate) prunable: bool,
    pub(crate) adopts: bool,
    pub(crate) wave: Option<u32>,
}

/// Whether an object goes with the one that it was made for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Owner {
    /// As the one that controls it.
    Controller,
    /// As one of several.
    Plain,
    /// Not by Kubernetes: the operator deletes it.
    None,
}

impl Declared {
    /// An object of a type.
    pub fn of<T: Resource<DynamicType = ()> + Serialize>(object: T) -> Self {
        Self::typed(
            serde_json::to_value(object),
            &T::api_version(&()),
            &T::kind(&()),
        )
    }

    /// An object as data: `apiVersion`, `kind`, `metadata` and what it says.
    pub fn dynamic(object: Value) -> Self {
        Self {
            object: Ok(object),
            file: None,
            owner: Owner::Controller,
            once: false,
            ready: false,
            prunable: false,
            adopts: false,
            wave: None,
        }
    }

    /// An object as data, of a kind that it need not name itself.
    pub fn dynamic_of(api: &ApiResource, object: impl Serialize) -> Self {
        Self::typed(serde_json::to_value(object), &api.api_version, &api.kind)
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

    /// The work of the state does not begin before it is ready.
    #[must_use]
    pub fn ready(mut self) -> Self {
        self.ready = true;
        self
    }

    /// As long as it exists it is never changed.
    #[must_use]
    pub fn once(mut self) -> Self {
        self.once = true;
        self
    }

    /// It goes with the object, which does not control it: others may own it too.
    #[must_use]
    pub fn plainly_owned(mut self) -> Self {
        self.owner = Owner::Plain;
        self
    }

    /// Kubernetes does not delete it with the object; the operator does.
    ///
    /// For what lives in another namespace, or in none while the object does: there Kubernetes allows no owner.
    #[must_use]
    pub fn unowned(mut self) -> Self {
        self.owner = Owner::None;
        self
    }

    /// What has its name already is taken over, whosever it was.
    #[must_use]
    pub fn adopting(mut self) -> Self {
        self.adopts = true;
        self
    }

    /// It may be deleted when it is no longer declared, although its kind holds data.
    #[must_use]
    pub fn prunable(mut self) -> Self {
        self.prunable = true;
        self
    }

    /// In which wave it is deleted: the highest goes first, and the next one when all of it is gone.
    ///
    /// What has a wave is waited for, with all that it owns, when it is no longer declared; and when the object is
    /// deleted, it goes before the finalizer does instead of after it.
    /// What has none goes with wave 0, and is not waited for.
    /// It is made in the order of declaration, whatever its wave.
    #[must_use]
    pub fn wave(mut self, wave: u32) -> Self {
        self.wave = Some(wave);
        self
    }
}
