//! Objects of kinds whose scope is known at run time: their API, parameters of requests, and types that hold them.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{ListParams, PatchParams};
use kube::core::DynamicResourceScope;
use kube::{Api, Client, Resource};

/// Returns the API of a kind: in one namespace, or cluster-wide if there is none.
pub fn api<T>(client: &Client, namespace: Option<&str>, kind: &T::DynamicType) -> Api<T>
where
    T: Resource<Scope = DynamicResourceScope>,
{
    match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, kind),
        None => Api::all_with(client.clone(), kind),
    }
}

/// Returns the API of an object, and its name.
pub fn api_of<'a, T>(client: &Client, meta: &'a ObjectMeta) -> (Api<T>, &'a str)
where
    T: Resource<Scope = DynamicResourceScope, DynamicType = ()>,
{
    let name = meta.name.as_deref().unwrap_or_default();
    (api(client, meta.namespace.as_deref(), &()), name)
}

/// Returns the parameters of a list that has only the object of this name: the roles of an operator have no `get`.
pub fn with_name(name: &str) -> ListParams {
    ListParams::default().fields(&format!("metadata.name={name}"))
}

/// Returns the parameters of a merge patch by a field manager.
pub fn merge_by(manager: &str) -> PatchParams {
    PatchParams {
        field_manager: Some(manager.to_owned()),
        ..PatchParams::default()
    }
}

/// Implements [`Resource`] for a type that holds an object: it has the API of `$like`, in any scope.
///
/// `$is_metadata` is whether only the metadata of objects is requested; `$meta` and `$meta_mut` return that of `$it`.
#[macro_export]
macro_rules! resource_like {
    (
        [$($generics:tt)*] $holder:ty, $like:ty, $is_metadata:literal,
        |$it:ident| $meta:expr, $meta_mut:expr
    ) => {
        impl<$($generics)*> ::kube::Resource for $holder {
            type DynamicType = <$like as ::kube::Resource>::DynamicType;
            type Scope = ::kube::core::DynamicResourceScope;

            fn metadata_api() -> bool {
                $is_metadata
            }

            fn kind(of: &Self::DynamicType) -> ::std::borrow::Cow<'_, str> {
                <$like as ::kube::Resource>::kind(of)
            }

            fn group(of: &Self::DynamicType) -> ::std::borrow::Cow<'_, str> {
                <$like as ::kube::Resource>::group(of)
            }

            fn version(of: &Self::DynamicType) -> ::std::borrow::Cow<'_, str> {
                <$like as ::kube::Resource>::version(of)
            }

            fn plural(of: &Self::DynamicType) -> ::std::borrow::Cow<'_, str> {
                <$like as ::kube::Resource>::plural(of)
            }

            fn meta(&self) -> &ObjectMeta {
                let $it = self;
                $meta
            }

            fn meta_mut(&mut self) -> &mut ObjectMeta {
                let $it = self;
                $meta_mut
            }
        }
    };
}
