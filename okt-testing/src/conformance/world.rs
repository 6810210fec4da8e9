//! This file is a behaviour's own place on the server, and short words for what is done there.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use k8s_openapi::{
    api::core::v1::{ConfigMap, Namespace},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams, PostParams},
    core::{GroupVersionKind, NamespaceResourceScope},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{
    claim::{Failure, Given, eventually},
    reply::Reply,
    suite::LABEL,
};

/// A CRD with a status, a scale, selectable fields, columns, defaults and rules.
const CRD: &str = include_str!("widget.crd.json");
/// The group in that file.
const GROUP: &str = "demo.okt.dev";

/// A namespace, and a kind to use in it.
#[derive(Clone)]
pub(super) struct World {
    client: Client,
    /// Names the suite: its label has it.
    pub(super) id: String,
    pub(super) namespace: String,
    /// The group of the widgets.
    pub(super) group: String,
    /// So many groups the suite has.
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

    /// The same place with a group that nobody else uses; there is no CRD yet.
    pub(super) fn own_group(&self) -> Self {
        let number = self.groups.fetch_add(1, Ordering::Relaxed);
        Self {
            group: format!("g{number}.{}.okt.dev", self.id),
            ..self.clone()
        }
    }

    /// The same place with widgets that nobody else uses.
    pub(super) async fn own_kind(&self) -> Result<Self, Failure> {
        let own = self.own_group();
        own.create_kind(own.crd()).await?;
        Ok(own)
    }

    pub(super) fn client(&self) -> Client {
        self.client.clone()
    }

    // Kinds.

    /// The CRD of the widgets of this place.
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

    /// Creates a CRD and waits until it is served, which is some time after it is established.
    pub(super) async fn create_kind(&self, crd: Value) -> Result<(), Failure> {
        self.create_crd(crd).await?;
        self.served().await
    }

    pub(super) async fn served(&self) -> Result<(), Failure> {
        let all = self.all_widgets();
        eventually("the CRD is served", || async {
            match all.list(&ListParams::default()).await {
                Ok(_) => Ok(Some(())),
                Err(kube::Error::Api(status)) if matches!(status.code, 404 | 429 | 503) => Ok(None),
                Err(error) => Err(error.into()),
            }
        })
        .await
    }

    // Objects.

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

    /// Objects of a built-in kind.
    pub(super) fn namespaced<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client(), &self.namespace)
    }

    /// The path of the widgets.
    pub(super) fn path(&self) -> String {
        format!(
            "/apis/{}/v1/namespaces/{}/widgets",
            self.group, self.namespace
        )
    }

    /// A widget of this spec.
    pub(super) fn widget(&self, name: &str, spec: impl Into<Value>) -> DynamicObject {
        let spec = spec.into();
        DynamicObject::new(name, &self.resource()).data(json!({ "spec": spec }))
    }

    pub(super) async fn create(&self, name: &str, spec: Value) -> kube::Result<DynamicObject> {
        let object = self.widget(name, spec);
        self.widgets().create(&PostParams::default(), &object).await
    }

    pub(super) async fn get(&self, name: &str) -> kube::Result<DynamicObject> {
        self.widgets().get(name).await
    }

    pub(super) async fn replace(&self, object: &DynamicObject) -> kube::Result<DynamicObject> {
        self.widgets()
            .replace(&object.name_any(), &PostParams::default(), object)
            .await
    }

    /// Lays a JSON merge patch over a widget.
    pub(super) async fn merge(&self, name: &str, patch: Value) -> kube::Result<DynamicObject> {
        self.widgets()
            .patch(name, &PatchParams::default(), &Patch::Merge(patch))
            .await
    }

    /// Lays a JSON merge patch over the status of a widget.
    pub(super) async fn merge_status(
        &self,
        name: &str,
        patch: Value,
    ) -> kube::Result<DynamicObject> {
        self.widgets()
            .patch_status(name, &PatchParams::default(), &Patch::Merge(patch))
            .await
    }

    /// Patches a widget by RFC 6902.
    pub(super) async fn json_patch(&self, name: &str, patch: Value) -> kube::Result<DynamicObject> {
        let patch = serde_json::from_value(patch).map_err(kube::Error::SerdeError)?;
        self.widgets()
            .patch(name, &PatchParams::default(), &Patch::Json::<()>(patch))
            .await
    }

    /// Applies a status as one manager.
    pub(super) async fn apply_status(
        &self,
        manager: &str,
        name: &str,
        status: Value,
    ) -> kube::Result<DynamicObject> {
        let patch = json!({
            "apiVersion": self.api_version(),
            "kind": "Widget",
            "status": status,
        });
        self.widgets()
            .patch_status(name, &PatchParams::apply(manager), &Patch::Apply(patch))
            .await
    }

    /// Applies a spec.
    pub(super) async fn apply_spec(
        &self,
        params: &PatchParams,
        name: &str,
        spec: Value,
    ) -> kube::Result<DynamicObject> {
        let patch = json!({
            "apiVersion": self.api_version(),
            "kind": "Widget",
            "metadata": { "name": name },
            "spec": spec,
        });
        self.widgets()
            .patch(name, params, &Patch::Apply(patch))
            .await
    }

    /// Sends what kube has no words for; any answer will do.
    pub(super) async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Vec<u8>>,
    ) -> Result<Reply, Failure> {
        let mut request = http::Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let answer = self.client.send(request.body(body.into().into())?).await?;
        Reply::read(answer).await
    }

    /// Sends what kube has no words for, and reads the answer as kube does.
    pub(super) async fn request<T: DeserializeOwned>(
        &self,
        request: http::Result<http::Request<Vec<u8>>>,
    ) -> kube::Result<T> {
        let request = request.map_err(kube::Error::HttpError)?;
        self.client.request(request).await
    }

    /// Waits until what was written shows everywhere.
    ///
    /// A watch or a list of version 0 is of any version, and on a busy server that is an old one.
    /// A list of no version is of the newest, and the server brings its cache up to it.
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

    // Clean-up.

    /// Takes the finalizers off all objects of a CRD.
    pub(super) async fn release(&self, crd: &CustomResourceDefinition) -> Result<(), Failure> {
        let version = &crd.spec.versions.first().given()?.name;
        let kind = GroupVersionKind::gvk(&crd.spec.group, version, &crd.spec.names.kind);
        let resource = ApiResource::from_gvk_with_plural(&kind, &crd.spec.names.plural);
        let all: Api<DynamicObject> = Api::all_with(self.client(), &resource);
        // A CRD that is being deleted, or was not accepted, is not served.
        let Ok(list) = all.list_metadata(&ListParams::default()).await else {
            return Ok(());
        };
        for object in list {
            let api: Api<DynamicObject> = match object.namespace() {
                Some(namespace) => Api::namespaced_with(self.client(), &namespace, &resource),
                None => all.clone(),
            };
            if !object.finalizers().is_empty() {
                // Whoever comes first: it may be gone by now.
                let _ = api
                    .patch(&object.name_any(), &PatchParams::default(), &released())
                    .await;
            }
        }
        Ok(())
    }

    /// Takes the finalizers off the `ConfigMap`s of a namespace.
    pub(super) async fn release_maps(&self, namespace: &str) -> Result<(), Failure> {
        let maps: Api<ConfigMap> = Api::namespaced(self.client(), namespace);
        for map in maps.list_metadata(&ListParams::default()).await? {
            if !map.finalizers().is_empty() {
                let _ = maps
                    .patch(&map.name_any(), &PatchParams::default(), &released())
                    .await;
            }
        }
        Ok(())
    }
}

/// A patch that takes all finalizers away.
pub(super) fn released() -> Patch<Value> {
    Patch::Merge(json!({ "metadata": { "finalizers": null } }))
}

pub(super) fn version(object: &DynamicObject) -> Result<String, Failure> {
    object.resource_version().given()
}

/// How one manager applies.
pub(super) fn by(manager: &str) -> PatchParams {
    PatchParams::apply(manager)
}

/// The fields that one manager owns.
pub(super) fn fields_of(object: &DynamicObject, manager: &str) -> Option<Value> {
    let entries = object.metadata.managed_fields.as_ref()?;
    let entry = entries
        .iter()
        .find(|entry| entry.manager.as_deref() == Some(manager))?;
    Some(entry.fields_v1.as_ref()?.0.clone())
}
