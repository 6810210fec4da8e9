//! Brings all objects of a definition to the version that it stores, and notes that no other is stored any more.
//!
//! | module | content |
//! |---|---|
//! | `server` | the migration by Kubernetes itself, where the API server has it |
//!
//! An object that is written without a change is stored in the present version. Its spec stays the same, so operators
//! have nothing to do for it. One that is stored so already is not written: whoever begins again goes on.
//! It also notes in the present version who wrote fields in one that is not served any more: see
//! `Definition::has_left_over`.

mod server;

use std::time::Duration;

use futures::{StreamExt, stream};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionVersion,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use kube::api::{DynamicObject, ListParams, PartialObjectMeta, Patch};
use kube::core::ApiResource;
use kube::{Api, Client, ResourceExt};
use okt_runtime::__program::SHUTDOWN_LIMIT;
use okt_wire::api_timeout::retry_after;
use okt_wire::keys::HANDED_OVER_ANNOTATION;
use okt_wire::scope::{api, merge_by, with_name};
use okt_wire::texts::{api_message, qualified, seconds};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

/// How many objects are listed at once.
const PAGE: u32 = 500;

/// How many objects are written at the same time.
const AT_ONCE: usize = 8;

/// How often the progress is printed.
const REPORTED: Duration = Duration::from_secs(5);

/// How long an API server may take until it knows another definition. A write by one that does not, does not count.
const KNOWN: Duration = Duration::from_secs(10);

/// How long replicas have to end their work before the version is not served any more on which they act.
const HANDED_OVER: Duration = SHUTDOWN_LIMIT.saturating_add(Duration::from_secs(10));

/// How often a write is tried that an API server could not answer.
const TRIES: u32 = 5;

/// How often all objects are brought over because the definition changed meanwhile.
const PASSES: usize = 5;

/// The name under which what is written is noted.
const MANAGER: &str = "okt-migrate";

/// How many objects are named that could not be written.
const NAMED: usize = 10;

/// A kind whose objects are brought over.
pub(crate) struct MigratedKind {
    /// The name of its definition.
    pub(crate) crd: &'static str,
    /// The names of its versions, the newest first.
    pub(crate) versions: Vec<String>,
}

/// Brings the objects of a kind to the version that its definition stores; returns what was done as a sentence.
///
/// # Errors
///
/// If the API server does not permit something, or an object cannot be written; a retry goes on.
pub(crate) async fn migrate(client: &Client, kind: &MigratedKind) -> Result<String, String> {
    let name = kind.crd;
    let mut crd = definition(client, name).await?;
    for _ in 0..PASSES {
        let objects = list(client, &crd).await?;
        let is_done = crd.outdated.is_empty() && !objects.iter().any(|it| crd.has_left_over(it));
        if is_done {
            return Ok(format!(
                "{name}: all objects are stored as {} already",
                crd.to
            ));
        }
        crd.settle().await;
        let by_server = crd.outdated.is_empty() || server::migrate(client, &crd).await?;
        let is_left = |it: &StoredObject| !by_server || crd.has_left_over(it);
        write_all(client, &crd, objects.into_iter().filter(is_left).collect()).await?;
        let now = definition(client, name).await?;
        if now.generation == crd.generation && now.trim(client).await? {
            let before = match &*crd.outdated {
                [] => String::new(),
                outdated => format!(", none as {}", outdated.join(" or ")),
            };
            return Ok(format!(
                "{name}: all objects are stored as {}{before}",
                crd.to
            ));
        }
        eprintln!("{name}: the definition has changed, so all objects are looked at once more");
        crd = now;
    }
    Err(format!(
        "{name}: the definition changes again and again: run this once it is left alone"
    ))
}

/// Lets a definition store an earlier version, and serve none that is newer, so that an earlier release can follow. The
/// replicas of this release end their work before.
///
/// # Errors
///
/// If there is no such version, or the API server does not permit it; a retry helps in the latter case.
pub(crate) async fn go_back(client: &Client, kind: &MigratedKind, to: &str) -> Result<(), String> {
    let name = kind.crd;
    let Some(at) = kind.versions.iter().position(|it| it == to) else {
        return Err(format!(
            "{name} has no version {to}; it has {}",
            kind.versions.join(", ")
        ));
    };
    let is_newer = |it: &CustomResourceDefinitionVersion| kind.versions[..at].contains(&it.name);
    let mut crd = read(client, name).await?;
    let was_served = crd.spec.versions.iter().any(|it| it.served && is_newer(it));
    let annotations = crd.metadata.annotations.get_or_insert_default();
    annotations.insert(HANDED_OVER_ANNOTATION.to_owned(), to.to_owned());
    for version in &mut crd.spec.versions {
        version.storage = version.name == to;
    }
    change(client, &crd).await?;
    if was_served {
        eprintln!(
            "{name}: replicas that act on a newer version have {} to end their work",
            seconds(HANDED_OVER)
        );
        sleep(HANDED_OVER).await;
    }
    let mut crd = read(client, name).await?;
    for version in &mut crd.spec.versions {
        version.served &= !is_newer(version);
    }
    change(client, &crd).await
}

/// Writes the annotations and the versions of a definition, unless somebody else has changed it.
async fn change(client: &Client, crd: &CustomResourceDefinition) -> Result<(), String> {
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
struct Definition {
    name: String,
    kind: ApiResource,
    /// The version in which objects are written.
    to: String,
    /// The versions in which they may be stored beside it.
    outdated: Vec<String>,
    /// The versions that are served, with the group.
    served: Vec<String>,
    generation: Option<i64>,
    resource_version: Option<String>,
    /// How long ago it changed, as far as it says.
    changed: Option<Duration>,
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

async fn read(client: &Client, name: &str) -> Result<CustomResourceDefinition, String> {
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    let found = crds.list(&with_name(name)).await.map_err(|error| {
        let why = api_message(&error);
        format!("cannot read the customresourcedefinition {name}: {why}")
    })?;
    let crd = found.items.into_iter().next();
    crd.ok_or_else(|| format!("the cluster has no customresourcedefinition {name}"))
}

async fn definition(client: &Client, name: &str) -> Result<Definition, String> {
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

/// An object, as far as a migration has to know it.
type StoredObject = PartialObjectMeta<DynamicObject>;

impl Definition {
    /// Returns whether an object notes who wrote fields in a version that is not served any more.
    ///
    /// Once the definition lacks that version, the API server cannot compare these fields, and refuses every write of the
    /// object: "request to convert CR to an invalid group/version".
    fn has_left_over(&self, object: &StoredObject) -> bool {
        object.managed_fields().iter().any(|it| !self.is_served(it))
    }

    fn is_served(&self, entry: &ManagedFieldsEntry) -> bool {
        let version = entry.api_version.as_ref();
        version.is_none_or(|it| self.served.contains(it))
    }

    /// Returns what is sent to write an object without a change.
    fn unchanged(&self, object: &StoredObject) -> Value {
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
    async fn settle(&self) {
        let left = self.changed.and_then(|changed| KNOWN.checked_sub(changed));
        sleep(left.unwrap_or_default()).await;
    }

    /// Notes that objects are stored in no other version; returns false if the definition has changed meanwhile.
    async fn trim(&self, client: &Client) -> Result<bool, String> {
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

/// Writes objects.
async fn write_all(
    client: &Client,
    crd: &Definition,
    objects: Vec<StoredObject>,
) -> Result<(), String> {
    let all = objects.len();
    eprintln!("{}: {all} objects are written as {}", crd.name, crd.to);
    let (mut done, mut reported, mut failed) = (0_usize, Instant::now(), Vec::new());
    let mut writes = stream::iter(objects)
        .map(|object| write(client, crd, object))
        .buffer_unordered(AT_ONCE);
    while let Some(written) = writes.next().await {
        done = done.saturating_add(1);
        failed.extend(written.err());
        if reported.elapsed() >= REPORTED {
            reported = Instant::now();
            eprintln!("{}: {done} of {all} objects", crd.name);
        }
    }
    if failed.is_empty() {
        return Ok(());
    }
    let more = failed.len().saturating_sub(NAMED);
    let mut lines = vec![format!(
        "{}: {} of {all} objects could not be written, so others than {} may still be stored:",
        crd.name,
        failed.len(),
        crd.to
    )];
    lines.extend(failed.into_iter().take(NAMED));
    lines.extend((more > 0).then(|| format!("and {more} more")));
    Err(lines.join("\n  "))
}

/// Lists the objects, first: writing them takes longer than a list stays valid.
async fn list(client: &Client, crd: &Definition) -> Result<Vec<StoredObject>, String> {
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &crd.kind);
    let mut objects = Vec::new();
    let mut page = ListParams::default().limit(PAGE);
    loop {
        let listed = api
            .list_metadata(&page)
            .await
            .map_err(|error| format!("cannot list {}: {}", crd.name, api_message(&error)))?;
        objects.extend(listed.items);
        match listed.metadata.continue_.filter(|it| !it.is_empty()) {
            Some(next) => page = page.continue_token(&next),
            None => return Ok(objects),
        }
    }
}

/// Writes an object without a change.
async fn write(client: &Client, crd: &Definition, mut object: StoredObject) -> Result<(), String> {
    let (namespace, name) = (object.namespace(), object.name_any());
    let objects: Api<DynamicObject> = api(client, namespace.as_deref(), &crd.kind);
    let parameters = merge_by(MANAGER);
    let mut wait = Duration::from_secs(1);
    for attempt in 1.. {
        let unchanged = Patch::Merge(crd.unchanged(&object));
        let written = objects.patch_metadata(&name, &parameters, &unchanged).await;
        let error = match written {
            Ok(_) => return Ok(()),
            Err(kube::Error::Api(status)) if status.code == 404 => return Ok(()),
            // Somebody else has written it in the present version, or has made another one.
            Err(kube::Error::Api(status)) if status.code == 409 => {
                match objects.get_metadata_opt(&name).await {
                    Ok(Some(now)) if crd.has_left_over(&now) => object = now,
                    Ok(_) => return Ok(()),
                    Err(error) => return Err(failed(&object, &error)),
                }
                continue;
            }
            Err(error) => error,
        };
        let is_final = matches!(&error, kube::Error::Api(it) if it.code < 500 && it.code != 429);
        if is_final || attempt == TRIES {
            return Err(failed(&object, &error));
        }
        sleep(retry_after(&error).unwrap_or(wait)).await;
        wait = wait.saturating_mul(2);
    }
    Ok(())
}

fn failed(object: &StoredObject, error: &kube::Error) -> String {
    let name = qualified(object.namespace().as_deref(), &object.name_any());
    format!("{name}: {}", api_message(error))
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
