//! An object as it comes from the API server, decodable or not, of any scope.

use std::borrow::Cow;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::{DeserializeGuard, DynamicResourceScope, error_boundary::InvalidObject};
use kube::{Api, Client, Resource};
use serde::Deserialize;

use crate::object::LifecycleObject;

/// An object that may not decode, so that one bad object does not stop the others.
///
/// Its scope is left open: one type serves namespaced and cluster-scoped kinds.
#[derive(Clone, Debug, Deserialize)]
#[serde(transparent, bound(deserialize = "K: LifecycleObject"))]
pub(crate) struct Guarded<K>(DeserializeGuard<K>);

impl<K> Guarded<K> {
    /// The object, or why there is none.
    pub(crate) fn get(&self) -> Result<&K, &InvalidObject> {
        self.0.0.as_ref()
    }

    /// The object, if it decodes.
    pub(crate) fn into_inner(self) -> Option<K> {
        self.0.0.ok()
    }
}

impl<K: LifecycleObject> Resource for Guarded<K> {
    type DynamicType = ();
    type Scope = DynamicResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        K::kind(&())
    }

    fn group((): &()) -> Cow<'_, str> {
        K::group(&())
    }

    fn version((): &()) -> Cow<'_, str> {
        K::version(&())
    }

    fn plural((): &()) -> Cow<'_, str> {
        K::plural(&())
    }

    fn meta(&self) -> &ObjectMeta {
        self.0.meta()
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        self.0.meta_mut()
    }
}

/// The API of a kind: in one namespace, or where there is none, cluster-wide.
pub(crate) fn api<K: LifecycleObject>(client: &Client, namespace: Option<&str>) -> Api<Guarded<K>> {
    match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &()),
        None => Api::all_with(client.clone(), &()),
    }
}
