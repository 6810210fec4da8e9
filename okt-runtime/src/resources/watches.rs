//! What an application declares beside its own kind: what it owns in the cluster, and what it refers to.

use std::fmt;
use std::sync::Arc;

use kube::Resource;
use kube::core::ApiResource;
use kube::discovery::Scope;

use super::kind::Kind;

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
    pub(crate) referred: Vec<Referred<K>>,
    pub(crate) execs: bool,
    pub(crate) forwards: bool,
}

/// To what an object refers.
type Names<K> = dyn Fn(&K) -> Vec<String> + Send + Sync;

/// A kind of which objects are referred to.
pub(crate) struct Referred<K> {
    pub(crate) kind: Kind,
    pub(crate) names: Arc<Names<K>>,
}

impl<K> Default for Watches<K> {
    fn default() -> Self {
        Self {
            owned: Vec::new(),
            referred: Vec::new(),
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
        self.with_owned(Kind::of::<T>())
    }

    /// The same for a kind that is no Rust type.
    #[must_use]
    pub fn owns_dynamic(self, api: ApiResource, scope: &Scope) -> Self {
        self.with_owned(Kind::dynamic(api, scope))
    }

    fn with_owned(mut self, kind: Kind) -> Self {
        // Watched twice, or in two versions, its objects would be taken for two: of which one is not declared.
        if !self.owned.iter().any(|it| it.is_same(&kind)) {
            self.owned.push(kind);
        }
        self
    }

    /// Objects of this kind that `names` names are read, and a change of one is looked at; they are never written.
    ///
    /// A name is one in the object's own namespace, or `namespace/name`.
    /// All objects of the kind that the operator may see are cached.
    #[must_use]
    pub fn refers<T: Resource<DynamicType = (), Scope: 'static>>(
        mut self,
        names: impl Fn(&K) -> Vec<String> + Send + Sync + 'static,
    ) -> Self {
        self.referred.push(Referred {
            kind: Kind::of::<T>(),
            names: Arc::new(names),
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

impl<K> fmt::Debug for Watches<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let referred = self.referred.iter().map(|referred| &referred.kind);
        f.debug_struct("Watches")
            .field("owned", &self.owned)
            .field("referred", &referred.collect::<Vec<_>>())
            .field("execs", &self.execs)
            .field("forwards", &self.forwards)
            .finish()
    }
}
