//! Declares the other kinds that an application works with: kinds it owns, refers to, or watches.

use std::collections::BTreeSet;
use std::fmt;
use std::marker::PhantomData;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use kube::Resource;
use kube::core::ApiResource;
use kube::discovery::Scope;
use kube::runtime::reflector::ObjectRef;
use kube::runtime::watcher::Config;
use okt_wire::object::LifecycleObject;
use okt_wire::texts::panic_text;
use serde::de::DeserializeOwned;

use super::kept::{Kept, decoded};
use super::kind::ResourceKind;
use super::names::Name;
use super::owner::AnyObject;

/// The kinds that your application owns, refers to or watches.
///
/// OKT derives its caches and the RBAC roles from them.
///
/// ```
/// use k8s_openapi::api::{apps::v1::Deployment, core::v1::Secret};
/// use okt::Watches;
///
/// # fn example<K: 'static>(watches: Watches<K>, secret_of: fn(&K) -> String) -> Watches<K> {
/// watches
///     .owns::<Deployment>()
///     .refers::<Secret>(move |object| vec![secret_of(object)])
/// # }
/// ```
pub struct Watches<K> {
    #[doc(hidden)]
    pub kinds: WatchedKinds,
    object: PhantomData<fn(&K)>,
}

/// The kinds that an application owns, refers to or watches, whatever the type of its objects.
#[derive(Default)]
pub struct WatchedKinds {
    /// The owned kinds.
    pub owned: Vec<ResourceKind>,
    /// The indexes in `owned` of the kinds whose metadata alone is watched.
    pub(crate) bare: BTreeSet<usize>,
    /// The kinds that objects refer to.
    pub referred: Vec<Referred>,
    /// The other kinds whose changes enqueue objects.
    pub mapped: Vec<Mapped>,
    /// Whether handlers run commands in containers.
    pub execs: bool,
    /// Whether handlers connect to pods and Services through the API server.
    pub forwards: bool,
}

/// A function that returns the names an object refers to; one without a namespace means the object's own.
type NamesOf = Box<dyn Fn(&AnyObject) -> Vec<Name> + Send + Sync>;

/// A kind whose objects are referred to.
pub struct Referred {
    pub kind: ResourceKind,
    pub(crate) config: Config,
    pub(crate) names: NamesOf,
    /// Whether the names may be in any namespace, and not only in the object's own.
    pub(crate) is_across: bool,
    /// Whether the content of the objects is part of the revision.
    pub(crate) in_revision: bool,
}

/// A function that returns the objects to reconcile when an object changes.
type Concerned = dyn Fn(&Kept) -> Vec<Name> + Send + Sync;

/// A watched kind whose changes enqueue objects.
pub struct Mapped {
    pub kind: ResourceKind,
    pub(crate) config: Config,
    concerned: Arc<Concerned>,
}

impl Mapped {
    /// Returns the objects to reconcile; none if the operator's function panics.
    pub(crate) fn concerned(&self, kept: &Kept) -> Vec<Name> {
        let asked = AssertUnwindSafe(|| (self.concerned)(kept));
        std::panic::catch_unwind(asked).unwrap_or_else(|panic| {
            tracing::error!(kind = %self.kind, "cannot find the objects that a change concerns: {}", panic_text(&*panic));
            Vec::new()
        })
    }
}

impl<K> Default for Watches<K> {
    fn default() -> Self {
        Self {
            kinds: WatchedKinds::default(),
            object: PhantomData,
        }
    }
}

impl<K: 'static> Watches<K> {
    /// Declares that the application owns objects of this kind.
    ///
    /// You may declare such objects as resources, and a change of one reconciles its owner.
    /// If you declare a kind in several versions, the first one counts.
    #[must_use]
    pub fn owns<T: Resource<DynamicType = (), Scope: 'static>>(self) -> Self {
        self.with_owned(ResourceKind::of::<T>(), false)
    }

    /// Does the same as [`owns`](Self::owns), but caches only the metadata: for large objects whose content you do
    /// not read.
    ///
    /// OKT applies, repairs and deletes them like others.
    /// [`owned`](crate::Context::owned) returns none of them, and OKT cannot check whether one is ready.
    #[must_use]
    pub fn owns_meta<T: Resource<DynamicType = (), Scope: 'static>>(self) -> Self {
        self.with_owned(ResourceKind::of::<T>(), true)
    }

    /// Does the same as [`owns`](Self::owns) for a kind without a Rust type.
    #[must_use]
    pub fn owns_dynamic(self, api: ApiResource, scope: &Scope) -> Self {
        self.with_owned(ResourceKind::dynamic(api, scope), false)
    }

    fn with_owned(mut self, kind: ResourceKind, is_bare: bool) -> Self {
        // If a kind were watched twice, or in two versions, each of its objects would count as two, one undeclared.
        let kinds = &mut self.kinds;
        match kinds.owned.iter().position(|it| it.is_same(&kind)) {
            Some(_) if is_bare => {}
            Some(number) => {
                kinds.bare.remove(&number);
            }
            None => {
                if is_bare {
                    kinds.bare.insert(kinds.owned.len());
                }
                kinds.owned.push(kind);
            }
        }
        self
    }

    /// Declares that an object refers to the objects of this kind that `names` returns.
    ///
    /// A change of one of them reconciles the object. OKT reads them and never writes them.
    /// A name means an object in the same namespace, or a cluster-scoped one.
    /// OKT ignores a text that cannot be the name of an object (`namespace/name`), and logs it once.
    /// It ignores an empty text without a log line.
    /// For objects in other namespaces use [`refers_across`](Self::refers_across).
    /// OKT caches all objects of the kind that the operator may read: to limit them, use
    /// [`refers_among`](Self::refers_among).
    #[must_use]
    pub fn refers<T: Resource<DynamicType = (), Scope: 'static>>(
        self,
        names: impl Fn(&K) -> Vec<String> + Send + Sync + 'static,
    ) -> Self {
        self.refers_among::<T>(Config::default(), names)
    }

    /// Does the same as [`refers`](Self::refers), limited to objects that match the selectors of `config`.
    #[must_use]
    pub fn refers_among<T: Resource<DynamicType = (), Scope: 'static>>(
        self,
        config: Config,
        names: impl Fn(&K) -> Vec<String> + Send + Sync + 'static,
    ) -> Self {
        self.with_referred(ResourceKind::of::<T>(), config, beside(names))
    }

    /// Declares references to objects of this kind in any namespace that match the selectors of `config`.
    ///
    /// Read them with [`Context::referred_across`](crate::Context::referred_across).
    /// A reference without a namespace means the object's own.
    /// An operator that is limited to namespaces reads only the namespace of the object.
    ///
    /// **Anyone who may write the spec reaches every matching object that the operator may read**, even if Kubernetes
    /// does not let that person read it.
    /// Get the consent of the owners of the other namespaces: let `config` select a label that they set:
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::Secret;
    /// use kube::runtime::reflector::ObjectRef;
    /// use kube::runtime::watcher::Config;
    /// # use okt::Watches;
    /// # struct Issuer { namespace: String, name: String }
    /// # fn example<K: 'static>(watches: Watches<K>, issuer_of: fn(&K) -> Issuer) -> Watches<K> {
    /// let shared = Config::default().labels("demo.okt.dev/shared=true");
    /// watches.refers_across::<Secret>(shared, move |database| {
    ///     let issuer = issuer_of(database);
    ///     vec![ObjectRef::new(&issuer.name).within(&issuer.namespace)]
    /// })
    /// # }
    /// ```
    #[must_use]
    pub fn refers_across<T: Resource<DynamicType = (), Scope: 'static>>(
        self,
        config: Config,
        names: impl Fn(&K) -> Vec<ObjectRef<T>> + Send + Sync + 'static,
    ) -> Self {
        let names = move |object: &K| {
            let names = names(object).into_iter();
            names.map(|it| (it.namespace, it.name)).collect()
        };
        let mut declared = self.with_referred(ResourceKind::of::<T>(), config, names);
        if let Some(last) = declared.kinds.referred.last_mut() {
            last.is_across = true;
        }
        declared
    }

    /// Does the same as [`refers_among`](Self::refers_among) for a kind without a Rust type.
    #[must_use]
    pub fn refers_dynamic(
        self,
        api: ApiResource,
        scope: &Scope,
        config: Config,
        names: impl Fn(&K) -> Vec<String> + Send + Sync + 'static,
    ) -> Self {
        self.with_referred(ResourceKind::dynamic(api, scope), config, beside(names))
    }

    fn with_referred(
        mut self,
        kind: ResourceKind,
        config: Config,
        names: impl Fn(&K) -> Vec<Name> + Send + Sync + 'static,
    ) -> Self {
        self.kinds.referred.push(Referred {
            kind,
            config,
            names: Box::new(move |object: &AnyObject| {
                object.downcast_ref().map(&names).unwrap_or_default()
            }),
            is_across: false,
            in_revision: false,
        });
        self
    }

    /// Makes the objects of the reference that was declared last part of the revision of the object that refers to them:
    /// when the content of one changes, the work of a resting state runs again, or an `on_change` edge is taken, as after
    /// a change of the spec.
    ///
    /// Their content counts, without metadata and status, and so does whether they exist. OKT stores a hash of 64 bits of
    /// it in the status, not the content.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::Secret;
    /// use okt::Watches;
    ///
    /// # fn example<K: 'static>(watches: Watches<K>, password_of: fn(&K) -> String) -> Watches<K> {
    /// // A rotated password takes the database through its `on_change` edge.
    /// watches.refers::<Secret>(move |database| vec![password_of(database)]).in_revision()
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// If no reference was declared before.
    #[must_use]
    pub fn in_revision(mut self) -> Self {
        let Some(last) = self.kinds.referred.last_mut() else {
            panic!(
                "`in_revision` is about the reference before it: declare one with `refers` first"
            );
        };
        last.in_revision = true;
        self
    }

    /// Declares that handlers run commands in containers: the roles allow that, and reading pods.
    ///
    /// The permission covers all pods in the operator's scope: its holder can do whatever those pods can do.
    #[must_use]
    pub fn execs(mut self) -> Self {
        self.kinds.execs = true;
        self
    }

    /// Declares that handlers connect to pods and Services through the API server: the roles allow port forwarding,
    /// and reading pods and Services.
    ///
    /// An operator inside the cluster needs it only to look up the address of a pod.
    #[must_use]
    pub fn forwards(mut self) -> Self {
        self.kinds.forwards = true;
        self
    }
}

impl<K: LifecycleObject> Watches<K> {
    /// Watches objects of this kind that match the selectors of `config`: when one changes, OKT reconciles the objects
    /// that `concerned` returns for it.
    ///
    /// OKT does not cache them: your code requests from the API server what it needs.
    /// For events from outside the cluster use [`Operator::reconcile_on`](crate::Operator::reconcile_on).
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::Node;
    /// use kube::ResourceExt;
    /// use kube::runtime::reflector::ObjectRef;
    /// use kube::runtime::watcher::Config;
    /// # use okt::{LifecycleObject, Watches};
    /// # fn example<K: LifecycleObject>(watches: Watches<K>) -> Watches<K> {
    /// watches.watches::<Node>(Config::default().labels("demo.okt.dev/database"), |node| {
    ///     let database = &node.labels()["demo.okt.dev/database"];
    ///     vec![ObjectRef::new(database).within("databases")]
    /// })
    /// # }
    /// ```
    #[must_use]
    pub fn watches<T>(
        mut self,
        config: Config,
        concerned: impl Fn(&T) -> Vec<ObjectRef<K>> + Send + Sync + 'static,
    ) -> Self
    where
        T: Resource<DynamicType = (), Scope: 'static> + DeserializeOwned,
    {
        let kind = ResourceKind::of::<T>();
        let named = kind.clone();
        let concerned = move |kept: &Kept| {
            let object = decoded::<T>(&kind.api, &kept.text());
            let concerned = object.map(|object| concerned(&object)).unwrap_or_default();
            concerned
                .into_iter()
                .map(|it| (it.namespace, it.name))
                .collect()
        };
        self.kinds.mapped.push(Mapped {
            kind: named,
            config,
            concerned: Arc::new(concerned),
        });
        self
    }
}

/// Returns a function that returns names in the namespace of the object.
fn beside<K>(
    names: impl Fn(&K) -> Vec<String> + Send + Sync + 'static,
) -> impl Fn(&K) -> Vec<Name> + Send + Sync + 'static {
    move |object| names(object).into_iter().map(|it| (None, it)).collect()
}

impl<K> fmt::Debug for Watches<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds = &self.kinds;
        let referred = kinds.referred.iter().map(|referred| &referred.kind);
        let mapped = kinds.mapped.iter().map(|mapped| &mapped.kind);
        f.debug_struct("Watches")
            .field("owned", &kinds.owned)
            .field("bare", &kinds.bare)
            .field("referred", &referred.collect::<Vec<_>>())
            .field("mapped", &mapped.collect::<Vec<_>>())
            .field("execs", &kinds.execs)
            .field("forwards", &kinds.forwards)
            .finish()
    }
}
