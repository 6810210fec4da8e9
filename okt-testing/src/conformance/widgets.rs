//! Helpers of behaviours for widgets.

use kube::{
    ResourceExt,
    api::{DynamicObject, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use super::world::World;

impl World {
    /// Returns a widget with this spec.
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

    /// Sends a JSON merge patch for a widget.
    pub(super) async fn merge(&self, name: &str, patch: Value) -> kube::Result<DynamicObject> {
        self.widgets()
            .patch(name, &PatchParams::default(), &Patch::Merge(patch))
            .await
    }

    /// Sends a JSON merge patch for the status of a widget.
    pub(super) async fn merge_status(
        &self,
        name: &str,
        patch: Value,
    ) -> kube::Result<DynamicObject> {
        self.widgets()
            .patch_status(name, &PatchParams::default(), &Patch::Merge(patch))
            .await
    }

    /// Sends a JSON patch (RFC 6902) for a widget.
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
}
