//! Brings all objects of a definition to the version that it stores, and notes that no other is stored any more.
//!
//! | module | content |
//! |---|---|
//! | `server` | the migration by Kubernetes itself, where the API server has it |
//!
//! An object that is written without a change is stored in the present version. Its spec stays the same, so operators
//! have nothing to do for it. One that is stored so already is not written: whoever begins again goes on.

mod server;

use std::time::Duration;

use futures::{StreamExt, stream};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DynamicObject, ListParams, PartialObjectMeta, Patch, PatchParams};
use kube::core::ApiResource;
use kube::{Api, Client, ResourceExt};
use okt_wire::api_timeout::retry_after;
use okt_wire::scope::{api, with_name};
use okt_wire::texts::{api_message, qualified};
use serde_json::json;
use tokio::time::{Instant, sleep};

/// How many objects are listed at once.
const PAGE: u32 = 500;

/// How many objects are written at the same time.
const AT_ONCE: usize = 8;

/// How often the progress is printed.
const REPORTED: Duration = Duration::from_secs(5);

/// How long an API server may take until it knows another definition. A write by one that does not, does not count.
const KNOWN: Duration = Duration::from_secs(10);

/// How often a write is tried that an API server could not answer.
const TRIES: u32 = 5;

/// How often all objects are brought over because the definition changed meanwhile.
const PASSES: usize = 5;

/// How many objects are named that could not be written.
const NAMED: usize = 10;

/// Brings the objects of a definition to the version that it stores; returns what was done as a sentence.
///
/// # Errors
///
/// If the API server does not permit something, or an object cannot be written; a retry goes on.
pub(crate) async fn migrate(client: &Client, name: &str) -> Result<String, String> {
    let mut crd = definition(client, name).await?;
    if crd.outdated.is_empty() {
        return Ok(format!(
            "{name}: all objects are stored as {} already",
            crd.to
        ));
    }
    for _ in 0..PASSES {
        crd.settle().await;
        if !server::migrate(client, &crd).await? {
            write_all(client, &crd).await?;
        }
        let now = definition(client, name).await?;
        if now.generation == crd.generation && now.trim(client).await? {
            let before = crd.outdated.join(" or ");
            return Ok(format!(
                "{name}: all objects are stored as {}, none as {before}",
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
    generation: Option<i64>,
    resource_version: Option<String>,
    /// How long ago it changed, as far as it says.
    changed: Option<Duration>,
}

async fn definition(client: &Client, name: &str) -> Result<Definition, String> {
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    let found = crds.list(&with_name(name)).await.map_err(|error| {
        let why = api_message(&error);
        format!("cannot read the customresourcedefinition {name}: {why}")
    })?;
    let crd = found.items.into_iter().next();
    let crd = crd.ok_or_else(|| format!("the cluster has no customresourcedefinition {name}"))?;
    let to = stored_version(&crd).unwrap_or_default().to_owned();
    let outdated = outdated(&crd);
    let changes = crd.metadata.managed_fields.iter().flatten();
    let changed = changes.filter_map(|it| Some(it.time.as_ref()?.0)).max();
    let since = changed.map(|at| jiff::Timestamp::now().duration_since(at));
    Ok(Definition {
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

impl Definition {
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
        let parameters = PatchParams::default();
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

/// Writes all objects.
async fn write_all(client: &Client, crd: &Definition) -> Result<(), String> {
    let objects = list(client, crd).await?;
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
async fn list(
    client: &Client,
    crd: &Definition,
) -> Result<Vec<PartialObjectMeta<DynamicObject>>, String> {
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
async fn write(
    client: &Client,
    crd: &Definition,
    object: PartialObjectMeta<DynamicObject>,
) -> Result<(), String> {
    let (namespace, name) = (object.namespace(), object.name_any());
    let objects: Api<DynamicObject> = api(client, namespace.as_deref(), &crd.kind);
    // Another object of this name is stored in the present version already, and is a conflict.
    let unchanged = Patch::Merge(json!({ "metadata": { "uid": object.uid() } }));
    let parameters = PatchParams::default();
    let mut wait = Duration::from_secs(1);
    for attempt in 1.. {
        let written = objects.patch_metadata(&name, &parameters, &unchanged);
        let error = match written.await {
            Ok(_) => return Ok(()),
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => return Ok(()),
            Err(error) => error,
        };
        let is_final = matches!(&error, kube::Error::Api(it) if it.code < 500 && it.code != 429);
        if is_final || attempt == TRIES {
            let why = api_message(&error);
            return Err(format!("{}: {why}", qualified(namespace.as_deref(), &name)));
        }
        sleep(retry_after(&error).unwrap_or(wait)).await;
        wait = wait.saturating_mul(2);
    }
    Ok(())
}
