//! Brings all objects of a definition to the version that it stores, and notes that no other is stored any more.
//!
//! | module | content |
//! |---|---|
//! | `definition` | what a definition and its objects say of it |
//! | `server` | the migration by Kubernetes itself, where the API server has it |
//!
//! An object that is written without a change is stored in the present version. Its spec stays the same, so operators
//! have nothing to do for it. One that is stored so already is not written: whoever begins again goes on.
//! It also notes in the present version who wrote fields in one that is not served any more: see
//! `Definition::has_left_over`.

mod definition;
mod server;

use std::collections::BTreeSet;
use std::time::Duration;

use futures::{StreamExt, stream};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinitionVersion;
use kube::api::{DynamicObject, ListParams, Patch};
use kube::{Api, Client, ResourceExt};
use okt_runtime::__program::SHUTDOWN_LIMIT;
use okt_wire::api_timeout::retry_after;
use okt_wire::keys::HANDED_OVER_ANNOTATION;
use okt_wire::scope::{api, merge_by};
use okt_wire::texts::{api_message, qualified, seconds};
use tokio::time::{Instant, sleep};

use self::definition::{Definition, MANAGER, StoredObject, change, definition, read};
pub(crate) use self::definition::{outdated, stored_version};
use self::server::REPORTED;

/// How many objects are listed at once.
const PAGE: u32 = 500;

/// How many objects are written at the same time.
const AT_ONCE: usize = 8;

/// How long replicas have to end their work before the version is not served any more on which they act.
const HANDED_OVER: Duration = SHUTDOWN_LIMIT.saturating_add(Duration::from_secs(10));

/// How often a write is tried that an API server could not answer.
const TRIES: u32 = 5;

/// How often all objects are brought over because the definition changed meanwhile.
const PASSES: usize = 5;

/// How many objects are named that could not be written.
const NAMED: usize = 10;

/// A kind whose objects are brought over.
pub(crate) struct MigratedKind {
    /// The name of its definition.
    pub(crate) crd: String,
    /// The names of its versions, the newest first.
    pub(crate) versions: Vec<String>,
    /// Whether its objects are requests: who serves them acts on the objects of another kind.
    pub(crate) is_of_requests: bool,
}

/// Brings the objects of a kind to the version that its definition stores; returns what was done as a sentence.
///
/// # Errors
///
/// If the API server does not permit something, or an object cannot be written; a retry goes on.
pub(crate) async fn migrate(client: &Client, kind: &MigratedKind) -> Result<String, String> {
    let name = kind.crd.as_str();
    let mut crd = definition(client, name).await?;
    // What objects were brought from; none if there was nothing to do so far.
    let mut from: Option<BTreeSet<String>> = None;
    for _ in 0..PASSES {
        // What a server stores that does not know the definition yet, would not be in the list.
        crd.settle().await;
        let objects = list(client, &crd).await?;
        let is_done = crd.outdated.is_empty() && !objects.iter().any(|it| crd.has_left_over(it));
        if is_done {
            return Ok(done(&crd, from));
        }
        let from_now = crd.outdated.iter().cloned();
        from.get_or_insert_default().extend(from_now);
        let by_server = crd.outdated.is_empty() || server::migrate(client, &crd).await?;
        let is_left = |it: &StoredObject| !by_server || crd.has_left_over(it);
        let left: Vec<_> = objects.into_iter().filter(is_left).collect();
        if !left.is_empty() {
            write_all(client, &crd, left).await?;
        }
        let now = definition(client, name).await?;
        if now.generation == crd.generation && now.trim(client).await? {
            return Ok(done(&crd, from));
        }
        eprintln!("{name}: the definition has changed, so all objects are looked at once more");
        crd = now;
    }
    Err(format!(
        "{name}: the definition changes again and again: run this once it is left alone"
    ))
}

/// Says that all objects are stored as they should be, after they were brought from these versions.
fn done(crd: &Definition, from: Option<BTreeSet<String>>) -> String {
    let all = format!("{}: all objects are stored as {}", crd.name, crd.to);
    let Some(from) = from else {
        return format!("{all} already");
    };
    // It may have been stored in between.
    let others: Vec<String> = from.into_iter().filter(|it| *it != crd.to).collect();
    if others.is_empty() {
        return all;
    }
    format!("{all}, none as {}", others.join(" or "))
}

/// Lets a definition store an earlier version, and serve none that is newer, so that an earlier release can follow. The
/// replicas of this release end their work before.
///
/// # Errors
///
/// If there is no such version, or the API server does not permit it; a retry helps in the latter case.
pub(crate) async fn go_back(client: &Client, kind: &MigratedKind, to: &str) -> Result<(), String> {
    let name = kind.crd.as_str();
    let at = kind.versions.iter().position(|it| it == to);
    let at = at.ok_or_else(|| format!("{name} has no version {to}"))?;
    let is_newer = |it: &CustomResourceDefinitionVersion| kind.versions[..at].contains(&it.name);
    let mut crd = read(client, name).await?;
    if !crd.spec.versions.iter().any(|it| it.name == to) {
        return Err(format!(
            "the customresourcedefinition {name} has no version {to}"
        ));
    }
    let was_served = crd.spec.versions.iter().any(|it| it.served && is_newer(it));
    let waits = was_served && !kind.is_of_requests;
    let annotations = crd.metadata.annotations.get_or_insert_default();
    annotations.insert(HANDED_OVER_ANNOTATION.to_owned(), to.to_owned());
    for version in &mut crd.spec.versions {
        version.storage = version.name == to;
        version.served |= version.storage;
    }
    change(client, &crd).await?;
    if waits {
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
        let Err(error) = written else {
            return Ok(());
        };
        let code = match &error {
            kube::Error::Api(status) => Some(status.code),
            _ => None,
        };
        if matches!(code, Some(404 | 409)) {
            let now = objects.get_metadata_opt(&name).await;
            let Some(now) = now.map_err(|error| failed(&object, &error))? else {
                return Ok(());
            };
            // Somebody else has written it in the present version meanwhile, or has made another one.
            let is_other =
                (now.uid(), now.resource_version()) != (object.uid(), object.resource_version());
            if is_other && !crd.has_left_over(&now) {
                return Ok(());
            }
            object = now;
        }
        let is_final = code.is_some_and(|code| code < 500 && !matches!(code, 404 | 409 | 429));
        if is_final || attempt >= TRIES {
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
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use http::{Method, Request, Response};
    use kube::client::Body;
    use serde_json::{Value, json};
    use tower::{BoxError, service_fn};

    use super::*;

    /// The definition as it is read for the first, the second .. time: who else changes it meanwhile.
    async fn migrated(definitions: Vec<(i64, Value)>) -> String {
        let read = Arc::new(AtomicUsize::new(0));
        let server = service_fn(move |request: Request<Body>| {
            let path = request.uri().path().to_owned();
            let answer = if path == "/apis" {
                json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": [] })
            } else if path.contains("customresourcedefinitions") {
                let is_read = request.method() == Method::GET;
                let number = if is_read {
                    read.fetch_add(1, Ordering::SeqCst)
                } else {
                    0
                };
                let (generation, stored) = definitions[number].clone();
                let version =
                    |name, storage| json!({ "name": name, "served": true, "storage": storage });
                let definition = json!({
                    "kind": "CustomResourceDefinition", "apiVersion": "apiextensions.k8s.io/v1",
                    "metadata": { "name": "tents.demo.okt.dev", "generation": generation },
                    "spec": {
                        "group": "demo.okt.dev", "scope": "Namespaced", "names": { "kind": "Tent", "plural": "tents" },
                        "versions": [version("v1", true), version("v1alpha1", false)],
                    },
                    "status": { "storedVersions": stored },
                });
                if is_read {
                    json!({ "metadata": {}, "items": [definition] })
                } else {
                    definition
                }
            } else {
                json!({ "kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": {}, "items": [] })
            };
            std::future::ready(Ok::<_, BoxError>(Response::new(Body::from(
                answer.to_string().into_bytes(),
            ))))
        });
        let kind = MigratedKind {
            crd: "tents.demo.okt.dev".to_owned(),
            versions: vec!["v1".to_owned(), "v1alpha1".to_owned()],
            is_of_requests: false,
        };
        migrate(&Client::new(server, "default"), &kind)
            .await
            .expect("no error")
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_brought_over_is_said_also_if_somebody_else_changes_the_definition_meanwhile()
    {
        let (both, one) = (json!(["v1alpha1", "v1"]), json!(["v1"]));
        let brought = "tents.demo.okt.dev: all objects are stored as v1, none as v1alpha1";
        for (definitions, said) in [
            (
                vec![(1, one.clone())],
                "tents.demo.okt.dev: all objects are stored as v1 already",
            ),
            (vec![(1, both.clone()), (1, both.clone())], brought),
            // Kubernetes has noted it, and an operator has written its certificate.
            (vec![(1, both.clone()), (2, one.clone())], brought),
            (
                vec![(1, both.clone()), (2, both.clone()), (2, both)],
                brought,
            ),
        ] {
            assert_eq!(migrated(definitions).await, said);
        }
    }
}
