//! [`World`]: the namespace and the kind of a behaviour, and clients for them.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use k8s_openapi::{
    api::core::v1::Namespace,
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams, PostParams, WatchParams},
    core::{GroupVersionKind, NamespaceResourceScope, ObjectList},
    runtime::{conditions::is_crd_established, wait::Condition},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{
    claim::{Failure, Given, eventually},
    reply::RawReply,
};

/// The label of the namespaces and CRDs of a suite.
pub(super) const LABEL: &str = "conformance.okt.dev/suite";
/// A CRD with a status, a scale, selectable fields, columns, defaults and rules.
const CRD: &str = include_str!("widget.crd.json");
/// The group in this file.
const GROUP: &str = "demo.okt.dev";

/// A namespace, and a kind to use in it.
#[derive(Clone)]
pub(super) struct World {
    client: Client,
    /// The id of the suite, which is the value of its label.
    pub(super) id: String,
    pub(super) namespace: String,
    /// The group of the widgets.
    pub(super) group: String,
    /// The number of groups of the suite.
    groups: Arc<AtomicUsize>,
}

impl World {
    pub(super) fn new(client: Client, id: &str) -> Self {
        Self {
            client,
            id: id.to_owned(),
            namespace: "default".to_owned(),
            group: format!("{id}.okt.dev"),
            groups: Arc::default(),
        }
    }

    pub(super) fn in_namespace(&self, number: usize) -> Self {
        Self {
            namespace: format!("okt-{}-{number}", self.id),
            ..self.clone()
        }
    }

    /// Returns the same world with a group that no other behaviour uses; there is no CRD yet.
    pub(super) fn own_group(&self) -> Self {
        let number = self.groups.fetch_add(1, Ordering::Relaxed);
        Self {
            group: format!("g{number}.{}.okt.dev", self.id),
            ..self.clone()
        }
    }

    /// Returns the same world with widgets that no other behaviour uses.
    pub(super) async fn own_kind(&self) -> Result<Self, Failure> {
        let own = self.own_group();
        own.create_kind(own.crd()).await?;
        Ok(own)
    }

    pub(super) fn client(&self) -> Client {
        self.client.clone()
    }

    // Kinds.

    /// Returns the CRD of the widgets of this world.
    pub(super) fn crd(&self) -> Value {
        let mut crd: Value = serde_json::from_str(&CRD.replace(GROUP, &self.group))
            .expect("the file is part of this crate");
        crd["metadata"]["labels"] = json!({ LABEL: self.id });
        crd
    }

    pub(super) fn crds(&self) -> Api<CustomResourceDefinition> {
        Api::all(self.client())
    }

    pub(super) fn crd_name(&self) -> String {
        format!("widgets.{}", self.group)
    }

    pub(super) async fn create_crd(&self, crd: Value) -> kube::Result<CustomResourceDefinition> {
        let crd = serde_json::from_value(crd).map_err(kube::Error::SerdeError)?;
        self.crds().create(&PostParams::default(), &crd).await
    }

    /// Applies a CRD, by force.
    pub(super) async fn apply_crd(&self, crd: Value) -> kube::Result<CustomResourceDefinition> {
        let params = PatchParams::apply("test").force();
        self.crds()
            .patch(&self.crd_name(), &params, &Patch::Apply(crd))
            .await
    }

    /// Creates a CRD and waits until it is established and served, in whatever order.
    pub(super) async fn create_kind(&self, crd: Value) -> Result<(), Failure> {
        self.create_crd(crd).await?;
        self.established().await?;
        self.served().await
    }

    pub(super) async fn established(&self) -> Result<(), Failure> {
        let (crds, name) = (self.crds(), self.crd_name());
        eventually("the CRD is established", || async {
            let crd = crds.get(&name).await?;
            let is_so = is_crd_established().matches_object(Some(&crd));
            Ok(is_so.then_some(()))
        })
        .await
    }

    pub(super) async fn served(&self) -> Result<(), Failure> {
        listed(&self.all_widgets()).await.map(drop)
    }

    // Clients.

    pub(super) fn resource(&self) -> ApiResource {
        let kind = GroupVersionKind::gvk(&self.group, "v1", "Widget");
        ApiResource::from_gvk_with_plural(&kind, "widgets")
    }

    pub(super) fn api_version(&self) -> String {
        format!("{}/v1", self.group)
    }

    pub(super) fn widgets(&self) -> Api<DynamicObject> {
        Api::namespaced_with(self.client(), &self.namespace, &self.resource())
    }

    pub(super) fn all_widgets(&self) -> Api<DynamicObject> {
        Api::all_with(self.client(), &self.resource())
    }

    /// Returns the API of a built-in kind.
    pub(super) fn namespaced<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client(), &self.namespace)
    }

    /// Returns the path of the widgets.
    pub(super) fn path(&self) -> String {
        format!(
            "/apis/{}/v1/namespaces/{}/widgets",
            self.group, self.namespace
        )
    }

    /// Sends a raw request and returns its response, whatever it is.
    pub(super) async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Vec<u8>>,
    ) -> Result<RawReply, Failure> {
        let mut request = http::Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let answer = self.client.send(request.body(body.into().into())?).await?;
        RawReply::read(answer).await
    }

    /// Sends a raw request and reads the response as kube does.
    pub(super) async fn request<T: DeserializeOwned>(
        &self,
        request: http::Result<http::Request<Vec<u8>>>,
    ) -> kube::Result<T> {
        let request = request.map_err(kube::Error::HttpError)?;
        self.client.request(request).await
    }

    /// Waits until the server's cache has all writes so far.
    ///
    /// A watch or a list with version 0 may return any version, on a busy server an old one. For a
    /// list without a version the server first brings its cache up to date.
    pub(super) async fn caught_up(&self) -> kube::Result<()> {
        let list = self.widgets().list(&ListParams::default()).await;
        list.map(drop)
    }

    pub(super) async fn create_namespace(&self, name: &str) -> Result<(), Failure> {
        let mut namespace = Namespace::default();
        namespace.metadata.name = Some(name.to_owned());
        namespace
            .labels_mut()
            .insert(LABEL.to_owned(), self.id.clone());
        Api::<Namespace>::all(self.client())
            .create(&PostParams::default(), &namespace)
            .await?;
        Ok(())
    }
}

/// Lists the objects of a kind as soon as it is served.
pub(super) async fn listed(api: &Api<DynamicObject>) -> Result<ObjectList<DynamicObject>, Failure> {
    eventually("the kind is served", || async {
        match api.list(&ListParams::default()).await {
            Ok(list) => Ok(Some(list)),
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 429 | 503) => Ok(None),
            Err(error) => Err(error.into()),
        }
    })
    .await
}

/// Returns the parameters of a watch without bookmarks, which come whenever the server likes.
pub(super) fn events_only() -> WatchParams {
    WatchParams::default().disable_bookmarks()
}

pub(super) fn version(object: &DynamicObject) -> Result<String, Failure> {
    object.resource_version().given()
}

/// Returns the parameters for an apply by a manager.
pub(super) fn by(manager: &str) -> PatchParams {
    PatchParams::apply(manager)
}

/// Returns the fields that a manager owns.
pub(super) fn fields_of(object: &DynamicObject, manager: &str) -> Option<Value> {
    let entries = object.metadata.managed_fields.as_ref()?;
    let entry = entries
        .iter()
        .find(|entry| entry.manager.as_deref() == Some(manager))?;
    Some(entry.fields_v1.as_ref()?.0.clone())
}

/// Returns a patch that removes all finalizers.
pub(super) fn released() -> Patch<Value> {
    Patch::Merge(json!({ "metadata": { "finalizers": null } }))
}
