//! A kind of which an application owns objects, or refers to some: how it is addressed, and where its objects live.

use std::any::TypeId;
use std::fmt;

use k8s_openapi::ClusterResourceScope;
use kube::Resource;
use kube::core::ApiResource;
use kube::discovery::Scope;

/// How the objects of a kind are addressed.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Kind {
    pub(crate) api: ApiResource,
    pub(crate) namespaced: bool,
}

impl Kind {
    pub(crate) fn of<T: Resource<DynamicType = (), Scope: 'static>>() -> Self {
        Self {
            api: ApiResource::erase::<T>(&()),
            namespaced: TypeId::of::<T::Scope>() != TypeId::of::<ClusterResourceScope>(),
        }
    }

    pub(crate) fn dynamic(api: ApiResource, scope: &Scope) -> Self {
        Self {
            api,
            namespaced: *scope == Scope::Namespaced,
        }
    }

    /// Whether the objects of another one are the same, if in another version.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.api.group == other.api.group && self.api.plural == other.api.plural
    }

    /// Whether this is the kind of an object that says so of itself.
    pub(crate) fn is(&self, api_version: &str, kind: &str) -> bool {
        self.api.api_version == api_version && self.api.kind == kind
    }

    /// Whether what its objects hold is secret.
    pub(crate) fn is_secret(&self) -> bool {
        self.api.group.is_empty() && self.api.kind == "Secret"
    }

    /// Whether its objects hold data that nobody can make again.
    pub(crate) fn holds_data(&self) -> bool {
        matches!(
            (self.api.group.as_str(), self.api.kind.as_str()),
            (
                "",
                "PersistentVolumeClaim" | "PersistentVolume" | "Secret" | "Namespace"
            ) | ("apiextensions.k8s.io", "CustomResourceDefinition")
        )
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.api.kind)
    }
}
