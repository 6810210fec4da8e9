//! Requests for objects of any kind that a test expects to be granted.
#![expect(
    async_fn_in_trait,
    reason = "what a test expects and does not find is a panic, everywhere here"
)]

use std::fmt::Debug;

use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::core::{ClusterResourceScope, NamespaceResourceScope};
use kube::{Api, Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// The scope of a kind: with or without namespaces.
pub trait Scoped {
    /// Returns the API of a kind: in the default namespace, or of all objects.
    fn api<K: Resource<DynamicType = (), Scope = Self>>(client: Client) -> Api<K>;
}

impl Scoped for NamespaceResourceScope {
    fn api<K: Resource<DynamicType = (), Scope = Self>>(client: Client) -> Api<K> {
        Api::default_namespaced(client)
    }
}

impl Scoped for ClusterResourceScope {
    fn api<K: Resource<DynamicType = (), Scope = Self>>(client: Client) -> Api<K> {
        Api::all(client)
    }
}

/// Requests for objects of one kind.
pub trait Objects<K> {
    /// Creates an object.
    async fn make(&self, object: Value) -> K;

    /// Patches an object as `kubectl patch` does.
    async fn edit(&self, name: &str, patch: Value) -> K;

    /// Patches the status of an object.
    async fn edit_status(&self, name: &str, status: Value) -> K;

    /// Deletes an object.
    async fn remove(&self, name: &str);

    /// Returns an object that exists.
    async fn read(&self, name: &str) -> K;

    /// Returns whether an object exists.
    async fn has(&self, name: &str) -> bool;

    /// Returns all objects, in the order of their names.
    async fn all(&self) -> Vec<K>;
}

impl<K: Resource + Clone + Debug + Serialize + DeserializeOwned> Objects<K> for Api<K> {
    async fn make(&self, object: Value) -> K {
        let object = serde_json::from_value(object).expect("an object");
        let made = self.create(&PostParams::default(), &object).await;
        made.expect("the object is accepted")
    }

    async fn edit(&self, name: &str, patch: Value) -> K {
        let patch = Patch::Merge(patch);
        let patched = self.patch(name, &PatchParams::default(), &patch).await;
        patched.expect("the patch is accepted")
    }

    async fn edit_status(&self, name: &str, status: Value) -> K {
        let (params, patch) = (PatchParams::default(), json!({ "status": status }));
        let patched = self.patch_status(name, &params, &Patch::Merge(patch)).await;
        patched.expect("the status is accepted")
    }

    async fn remove(&self, name: &str) {
        let removed = self.delete(name, &DeleteParams::default()).await;
        removed.expect("the deletion is accepted");
    }

    async fn read(&self, name: &str) -> K {
        self.get(name).await.expect("the object is there")
    }

    async fn has(&self, name: &str) -> bool {
        self.get_opt(name).await.expect("a read").is_some()
    }

    async fn all(&self) -> Vec<K> {
        let list = self.list(&ListParams::default()).await;
        list.expect("a list").items
    }
}
