//! What a migration has to know of a definition, and of its objects.

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use kube::api::{DynamicObject, PartialObjectMeta, Patch};
use kube::core::ApiResource;
use kube::{Api, Client, ResourceExt};
use okt_wire::scope::merge_by;
use okt_wire::texts::api_message;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::in_use::in_cluster;

/// The name under which what is written is noted.
pub(super) const MANAGER: &str = "okt-migrate";

/// How long an API server may take until it knows another definition. A write by one that does not, does not count.
const KNOWN: Duration = Duration::from_secs(10);

/// Returns the versions in which objects may be stored beside the one that a definition stores.
pub(crate) fn outdated(crd: &CustomResourceDefinition) -> Vec<String> {
    let stored = crd
        .status
        .as_ref()
        .and_then(|it| it.stored_versions.as_ref());
    let to = stored_version(crd);
    let others = stored.into_iter().flatten();
    others
        .filter(|it| Some(it.as_str()) != to)
        .cloned()
        .collect()
}

/// Returns the version that a definition stores.
pub(crate) fn stored_version(crd: &CustomResourceDefinition) -> Option<&str> {
    let stored = crd.spec.versions.iter().find(|it| it.storage);
    stored.map(|it| it.name.as_str())
}

/// What a migration has to know of a definition.
pub(super) struct Definition {
    pub(super) name: String,
    pub(super) kind: ApiResource,
    /// The version in which objects are written.
    pub(super) to: String,
    /// The versions in which they may be stored beside it.
    pub(super) outdated: Vec<String>,
    /// The versions that are served, with the group.
    served: Vec<String>,
    pub(super) generation: Option<i64>,
    resource_version: Option<String>,
    /// How long ago it changed, as far as it says.
    changed: Option<Duration>,
}

/// An object, as far as a migration has to know it.
pub(super) type StoredObject = PartialObjectMeta<DynamicObject>;

impl Definition {
    /// Returns whether an object notes who wrote fields in a version that is not served any more.
    ///
    /// Once the definition lacks that version, the API server cannot compare these fields, and refuses every apply of the
    /// object, as by its operator: "request to convert CR to an invalid group/version".
    pub(super) fn has_left_over(&self, object: &StoredObject) -> bool {
        object.managed_fields().iter().any(|it| !self.is_served(it))
    }

    fn is_served(&self, entry: &ManagedFieldsEntry) -> bool {
        let version = entry.api_version.as_ref();
        version.is_none_or(|it| self.served.contains(it))
    }

    /// Returns what is sent to write an object without a change.
    pub(super) fn unchanged(&self, object: &StoredObject) -> Value {
        // Another object of this name is stored in the present version already, and is a conflict.
        let mut metadata = json!({ "uid": object.uid() });
        if self.has_left_over(object) {
            metadata["managedFields"] = json!(self.in_present_version(object.managed_fields()));
            metadata["resourceVersion"] = json!(object.resource_version());
        }
        json!({ "metadata": metadata })
    }

    /// Returns who wrote which fields, without versions that are not served.
    ///
    /// A field that has another name in the present version belongs to nobody then; all others stay with whoever wrote
    /// them. Otherwise an apply that leaves out a field would not remove it.
    fn in_present_version(&self, entries: &[ManagedFieldsEntry]) -> Vec<ManagedFieldsEntry> {
        let mut all: Vec<ManagedFieldsEntry> = Vec::new();
        for entry in entries {
            let mut entry = entry.clone();
            if !self.is_served(&entry) {
                entry.api_version = Some(self.kind.api_version.clone());
            }
            let whose = |it: &ManagedFieldsEntry| {
                let api_version = it.api_version.clone();
                let whose = (
                    it.manager.clone(),
                    it.operation.clone(),
                    it.subresource.clone(),
                );
                (whose, api_version)
            };
            match all.iter_mut().find(|it| whose(it) == whose(&entry)) {
                Some(same) => {
                    if let (Some(all), Some(more)) = (&mut same.fields_v1, entry.fields_v1) {
                        join(&mut all.0, more.0);
                    }
                    same.time = same.time.take().max(entry.time);
                }
                None => all.push(entry),
            }
        }
        all
    }

    /// Waits until every API server knows the definition.
    pub(super) async fn settle(&self) {
        let left = self.changed.and_then(|changed| KNOWN.checked_sub(changed));
        sleep(left.unwrap_or_default()).await;
    }

    /// Notes that objects are stored in no other version; returns false if the definition has changed meanwhile.
    pub(super) async fn trim(&self, client: &Client) -> Result<bool, String> {
        let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
        let status = json!({
            "metadata": { "resourceVersion": self.resource_version },
            "status": { "storedVersions": [self.to] },
        });
        let patch = Patch::Merge(status);
        let parameters = merge_by(MANAGER);
        match crds.patch_status(&self.name, &parameters, &patch).await {
            Ok(_) => Ok(true),
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(false),
            Err(error) => Err(format!(
                "cannot write status.storedVersions of the customresourcedefinition {}: {}",
                self.name,
                api_message(&error)
            )),
        }
    }
}

/// Adds a set of fields to another: their names are those of nested objects.
fn join(all: &mut Value, more: Value) {
    match (all, more) {
        (Value::Object(all), Value::Object(more)) => {
            for (name, fields) in more {
                join(all.entry(name).or_insert_with(|| json!({})), fields);
            }
        }
        (all, more) => *all = more,
    }
}

pub(super) async fn read(client: &Client, name: &str) -> Result<CustomResourceDefinition, String> {
    let crd = in_cluster(client, name).await?;
    crd.ok_or_else(|| format!("the cluster has no customresourcedefinition {name}"))
}

pub(super) async fn definition(client: &Client, name: &str) -> Result<Definition, String> {
    let crd = read(client, name).await?;
    let to = stored_version(&crd).unwrap_or_default().to_owned();
    let outdated = outdated(&crd);
    let changes = crd.metadata.managed_fields.iter().flatten();
    let changed = changes.filter_map(|it| Some(it.time.as_ref()?.0)).max();
    let since = changed.map(|at| jiff::Timestamp::now().duration_since(at));
    let served = crd.spec.versions.iter().filter(|it| it.served);
    Ok(Definition {
        served: served
            .map(|it| format!("{}/{}", crd.spec.group, it.name))
            .collect(),
        kind: ApiResource {
            api_version: format!("{}/{to}", crd.spec.group),
            group: crd.spec.group,
            version: to.clone(),
            kind: crd.spec.names.kind,
            plural: crd.spec.names.plural,
        },
        name: name.to_owned(),
        to,
        outdated,
        generation: crd.metadata.generation,
        resource_version: crd.metadata.resource_version,
        changed: since.map(|it| Duration::try_from(it).unwrap_or_default()),
    })
}

/// Writes the annotations and the versions of a definition, unless somebody else has changed it.
pub(super) async fn change(client: &Client, crd: &CustomResourceDefinition) -> Result<(), String> {
    let name = crd.name_any();
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    let patch = Patch::Merge(json!({
        "metadata": {
            "resourceVersion": crd.metadata.resource_version,
            "annotations": crd.metadata.annotations,
        },
        "spec": { "versions": crd.spec.versions },
    }));
    let changed = crds.patch(&name, &merge_by(MANAGER), &patch).await;
    changed.map(drop).map_err(|error| {
        let why = api_message(&error);
        format!("cannot change the customresourcedefinition {name}: {why}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_wrote_in_a_version_that_is_gone_wrote_in_the_present_one() {
        let crd = Definition {
            name: "tents.demo.okt.dev".to_owned(),
            kind: ApiResource {
                group: "demo.okt.dev".to_owned(),
                version: "v1".to_owned(),
                api_version: "demo.okt.dev/v1".to_owned(),
                kind: "Tent".to_owned(),
                plural: "tents".to_owned(),
            },
            to: "v1".to_owned(),
            outdated: Vec::new(),
            served: vec!["demo.okt.dev/v1".to_owned()],
            generation: None,
            resource_version: None,
            changed: None,
        };
        let entry = |manager: &str, version: &str, fields: Value| {
            let entry = json!({
                "manager": manager, "operation": "Update", "apiVersion": format!("demo.okt.dev/{version}"),
                "fieldsType": "FieldsV1", "fieldsV1": fields,
            });
            serde_json::from_value::<ManagedFieldsEntry>(entry).expect("an entry")
        };
        let notes = [
            entry(
                "me",
                "v1alpha1",
                json!({ "f:spec": { "f:size": {}, "f:site": {} } }),
            ),
            entry("you", "v1alpha1", json!({ "f:status": {} })),
            entry("me", "v1", json!({ "f:spec": { "f:people": {} } })),
        ];
        let all = json!({ "f:spec": { "f:size": {}, "f:site": {}, "f:people": {} } });
        assert_eq!(
            crd.in_present_version(&notes),
            [
                entry("me", "v1", all),
                entry("you", "v1", json!({ "f:status": {} }))
            ]
        );
    }
}
