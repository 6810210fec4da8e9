//! A kind that an application owns or refers to: its API resource and its scope.

use std::any::TypeId;
use std::fmt;

use k8s_openapi::ClusterResourceScope;
use kube::Resource;
use kube::core::ApiResource;
use kube::discovery::Scope;

/// The API resource of a kind and its scope.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ResourceKind {
    /// Its group, version, kind and plural.
    pub api: ApiResource,
    /// Whether its objects are in namespaces.
    pub namespaced: bool,
}

impl ResourceKind {
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

    /// Returns whether another kind has the same objects, possibly in another version.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.api.group == other.api.group && self.api.plural == other.api.plural
    }

    /// Returns whether this kind has this `apiVersion` and `kind`.
    pub(crate) fn is(&self, api_version: &str, kind: &str) -> bool {
        self.api.api_version == api_version && self.api.kind == kind
    }

    /// Returns whether the content of its objects is secret.
    pub(crate) fn is_secret(&self) -> bool {
        self.api.group.is_empty() && self.api.plural == "secrets"
    }

    /// Returns whether the specs of its objects cannot change, and a new object does the same: Pods and Jobs.
    pub(crate) fn has_fixed_spec(&self) -> bool {
        self.is("v1", "Pod") || self.is("batch/v1", "Job")
    }

    /// Returns whether its objects hold data that cannot be recreated.
    pub(crate) fn holds_data(&self) -> bool {
        matches!(
            (self.api.group.as_str(), self.api.plural.as_str()),
            (
                "",
                "persistentvolumeclaims" | "persistentvolumes" | "secrets" | "namespaces"
            ) | ("apiextensions.k8s.io", "customresourcedefinitions")
        )
    }
}

impl fmt::Display for ResourceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.api.kind)
    }
}
