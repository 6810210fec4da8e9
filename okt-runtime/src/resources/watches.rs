//! What an application declares beside its own kind: what it owns in the cluster, and what it refers to.

use std::collections::BTreeSet;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use kube::Resource;
use kube::core::ApiResource;
use kube::discovery::Scope;
use kube::runtime::reflector::ObjectRef;
use kube::runtime::watcher::Config;
use serde::de::DeserializeOwned;

use super::kept::{Kept, decoded};
use super::kind::Kind;
use super::names::Name;
use crate::texts::panic_text;
use crate::wire::object::LifecycleObject;

/// The kinds that an application owns and refers to; caches and permissions come from here.
///
/// ```
/// use k8s_openapi::api::{apps::v1::Deployment, core::v1::Secret};
/// use okt_runtime::Watches;
///
/// # fn example<K: 'static>(watches: Watches<K>, secret_of: fn(&K) -> String) -> Watches<K> {
/// watches
///     .owns::<Deployment>()
///     .refers::<Secret>(move |object| vec![secret_of(object)])
/// # }
/// ```
pub struct Watches<K> {
    pub(crate) owned: Vec<Kind>,
    /// Which of them are watched by their metadata only.
    pub(crate) bare: BTreeSet<usize>,
    pub(crate) referred: Vec<Referred<K>>,
    pub(crate) mapped: Vec<Mapped>,
    pub(crate) execs: bool,
    pub(crate) forwards: bool,
}

/// What an object says of others.
type Says<K, T> = Box<dyn Fn(&K) -> Vec<T> + Send + Sync>;

/// To what an object refers.
pub(crate) enum Names<K> {
    /// By name, in its own namespace.
    Beside(Says<K, String>),
    /// In any namespace.
    Across(Says<K, Name>),
}

impl<K> Names<K> {
    pub(crate) fn is_across(&self) -> bool {
        matches!(self, Self::Across(_))
    }

    /// What an object names; without a namespace it means its own.
    pub(crate) fn of(&self, object: &K) -> Vec<Name> {
        match self {
            Self::Beside(names) => names(object).into_iter().map(|it| (None, it)).collect(),
            Self::Across(names) => names(object),
        }
    }
}

/// A kind of which objects are referred to.
pub(crate) struct Referred<K> {
    pub(crate) kind: Kind,
    pub(crate) config: Config,
    pub(crate) names: Names<K>,
}

/// Whom an object concerns.
type Concerned = dyn Fn(&Kept) -> Vec<Name> + Send + Sync;

/// A kind whose objects concern others.
pub(crate) struct Mapped {
    pub(crate) kind: Kind,
    pub(crate) config: Config,
    concerned: Arc<Concerned>,
}

impl Mapped {
    /// Whom an object concerns; where the author's code panics, nobody.
    pub(crate) fn concerned(&self, kept: &Kept) -> Vec<Name> {
        let asked = AssertUnwindSafe(|| (self.concerned)(kept));
        std::panic::catch_unwind(asked).unwrap_or_else(|panic| {
            tracing::error!(kind = %self.kind, "cannot say whom an object concerns: {}", panic_text(&*panic));
            Vec::new()
        })
    }
}

impl<K> Default for Watches<K> {
    fn default() -> Self {
        Self {
            owned: Vec::new(),
            bare: BTreeSet::new(),
            referred: Vec::new(),
            mapped: Vec::new(),
            execs: false,
            forwards: false,
        }
    }
}

impl<K> Watches<K> {
    /// Objects of this kind may be declared as resources; a change of one is looked at.
    ///
    /// Of a kind in several versions the first one counts.
    #[must_use]
    pub fn owns<T: Resource<DynamicType = (), Scope: 'static>>(self) -> Self {
        self.with_owned(Kind::of::<T>(), false)
    }

    /// The same, of which only the metadata is cached: for large objects of whose content nobody asks.
    ///
    /// They are made, repaired and deleted like others; but [`owned`](crate::Context::owned) has none of them, and
    /// whether one is ready cannot be said.
    #[must_use]
    pub fn owns_meta<T: Resource<DynamicType = (), Scope: 'static>>(self) -> Self {
        self.with_owned(Kind::of::<T>(), true)
    }

    /// The same for a kind that is no Rust type.
    #[must_use]
    pub fn owns_dynamic(self, api: ApiResource, scope: &Scope) -> Self {
        self.with_owned(Kind::dynamic(api, scope), false)
    }

    fn with_owned(mut self, kind: Kind, is_bare: bool) -> Self {
        // Watched twice, or in two versions, its objects would be taken for two: of which one is not declared.
        match self.owned.iter().position(|it| it.is_same(&kind)) {
            Some(_) if is_bare => {}
            Some(number) => {
                self.bare.remove(&number);
            }
            None => {
                if is_bare {
                    self.bare.insert(self.owned.len());
                }
                self.owned.push(kind);
            }
        }
        self
    }

    /// Objects of this kind that `names` names are read, and a change of one is looked at; they are never written.
    ///
    /// A name is one in the object's own namespace, or of an object that lives in none.
    /// A text that no object can have as its name (`namespace/name`) refers to nothing, and the log says so once.
    /// An empty text refers to nothing.
    /// For objects in other namespaces use [`refers_across`](Self::refers_across).
    /// All objects of the kind that the operator may see are cached: see [`refers_among`](Self::refers_among).
    #[must_use]
    pub fn refers<T: Resource<DynamicType = (), Scope: 'static>>(
        self,
        names: impl Fn(&K) -> Vec<String> + Send + Sync + 'static,
    ) -> Self {
        self.refers_among::<T>(Config::default(), names)
    }

    /// The same, among those objects only that the selectors of `config` let through.
    #[must_use]
    pub fn refers_among<T: Resource<DynamicType = (), Scope: 'static>>(
        self,
        config: Config,
        names: impl Fn(&K) -> Vec<String> + Send + Sync + 'static,
    ) -> Self {
        self.with_referred(Kind::of::<T>(), config, Names::Beside(Box::new(names)))
    }

    /// Objects of this kind in any namespace, among those that the selectors of `config` let through.
    ///
    /// Read them with [`Context::referred_across`](crate::Context::referred_across).
    /// A reference without a namespace means the object's own.
    /// An operator that is limited to namespaces sees only the namespace of the object.
    ///
    /// **Whoever may write the spec reaches every object here that the operator may read**, also where Kubernetes
    /// would not let that person read it.
    /// Let the owners of the other namespaces agree first, by a label that `config` selects:
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::Secret;
    /// use kube::runtime::reflector::ObjectRef;
    /// use kube::runtime::watcher::Config;
    /// # use okt_runtime::Watches;
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
        self.with_referred(Kind::of::<T>(), config, Names::Across(Box::new(names)))
    }

    /// The same as [`refers_among`](Self::refers_among) for a kind that is no Rust type.
    #[must_use]
    pub fn refers_dynamic(
        self,
        api: ApiResource,
        scope: &Scope,
        config: Config,
        names: impl Fn(&K) -> Vec<String> + Send + Sync + 'static,
    ) -> Self {
        let names = Names::Beside(Box::new(names));
        self.with_referred(Kind::dynamic(api, scope), config, names)
    }

    fn with_referred(mut self, kind: Kind, config: Config, names: Names<K>) -> Self {
        self.referred.push(Referred {
            kind,
            config,
            names,
        });
        self
    }

    /// Handlers run commands in containers: the roles allow that, and to read pods.
    ///
    /// It is a right over all pods where the operator is: whoever has it can do in them what they can.
    #[must_use]
    pub fn execs(mut self) -> Self {
        self.execs = true;
        self
    }

    /// Handlers connect to pods and Services through the API server: the roles allow to forward ports, and to
    /// read pods and Services.
    ///
    /// An operator inside the cluster needs it only to look for the address of a pod.
    #[must_use]
    pub fn forwards(mut self) -> Self {
        self.forwards = true;
        self
    }
}

impl<K: LifecycleObject> Watches<K> {
    /// Whenever an object of this kind changes that the selectors of `config` let through, the objects that
    /// `concerned` names for it are looked at.
    ///
    /// Nothing is cached: what the application wants to know of it, it asks for.
    /// For what is in another cluster, or no object at all, there is [`Operator::requests`](crate::Operator::pokes).
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::Node;
    /// use kube::ResourceExt;
    /// use kube::runtime::reflector::ObjectRef;
    /// use kube::runtime::watcher::Config;
    /// # use okt_runtime::{LifecycleObject, Watches};
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
        let kind = Kind::of::<T>();
        let named = kind.clone();
        let concerned = move |kept: &Kept| {
            let object = decoded::<T>(&kind.api, &kept.text());
            let concerned = object.map(|object| concerned(&object)).unwrap_or_default();
            (concerned.into_iter())
                .map(|it| (it.namespace, it.name))
                .collect()
        };
        self.mapped.push(Mapped {
            kind: named,
            config,
            concerned: Arc::new(concerned),
        });
        self
    }
}

impl<K> fmt::Debug for Watches<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let referred = self.referred.iter().map(|referred| &referred.kind);
        let mapped = self.mapped.iter().map(|mapped| &mapped.kind);
        f.debug_struct("Watches")
            .field("owned", &self.owned)
            .field("bare", &self.bare)
            .field("referred", &referred.collect::<Vec<_>>())
            .field("mapped", &mapped.collect::<Vec<_>>())
            .field("execs", &self.execs)
            .field("forwards", &self.forwards)
            .finish()
    }
}
