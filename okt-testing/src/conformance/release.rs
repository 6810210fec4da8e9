//! Removes the finalizers of the objects of a suite, so that they can be deleted.

use k8s_openapi::{
    api::core::v1::ConfigMap,
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, ResourceExt,
    api::{ApiResource, DynamicObject, ListParams, PatchParams},
    core::GroupVersionKind,
};

use super::{
    claim::{Failure, Given},
    world::{World, released},
};

impl World {
    /// Removes the finalizers of all objects of a CRD.
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
                // The object may be gone by now.
                let _ = api
                    .patch(&object.name_any(), &PatchParams::default(), &released())
                    .await;
            }
        }
        Ok(())
    }

    /// Removes the finalizers of the `ConfigMap`s of a namespace.
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
