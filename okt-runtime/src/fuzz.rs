//! Fuzz tests with nearly valid objects: each decodes and is decided, or is an error that keeps its metadata.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use okt_core::backoff::Backoff;
use okt_core::facts::{LifecycleFacts, Observed, Task};
use okt_core::{Lifecycle, Parts, decide};
use okt_fuzz::{Dice, check};
use okt_wire::digest;
use okt_wire::pruned;
use okt_wire::{annotations, read};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate as okt_runtime;
use crate::cache::arrived::Arrived;
use crate::cache::cached::Cached;
use crate::cache::guarded::Guarded;
use crate::{Desired, LifecycleObject, LifecycleSpec, Status, lifecycle_graph};

#[lifecycle_graph(crate(okt_runtime))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum VaultState {
    #[entry]
    #[child(Open)]
    #[trigger(Broken)]
    Building,
    #[rest(idle)]
    #[child(Gone)]
    #[trigger(Servicing)]
    Open,
    #[child(Open)]
    Servicing,
    #[child(Gone)]
    Broken,
    #[leaf(idle)]
    Gone,
}

#[derive(kube::CustomResource, LifecycleSpec, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "demo.okt.dev",
    version = "v1",
    kind = "Vault",
    status = "Status<VaultState>"
)]
#[lifecycle(crate(okt_runtime))]
struct VaultSpec {
    #[serde(default)]
    lifecycle: Desired<VaultState>,
    #[serde(default)]
    size: u32,
}

fn vault() -> Value {
    json!({
        "apiVersion": "demo.okt.dev/v1",
        "kind": "Vault",
        "metadata": {
            "name": "v", "namespace": "default", "uid": "u", "resourceVersion": "7", "generation": 2,
            "creationTimestamp": "2026-01-01T00:00:00Z", "deletionTimestamp": "2026-01-01T00:00:00Z",
            "finalizers": ["okt.dev/lifecycle"], "labels": { "a": "b" },
            "annotations": { "okt.dev/paused": "true", "okt.dev/abandon": "u" },
            "ownerReferences": [{ "apiVersion": "v1", "kind": "A", "name": "a", "uid": "o" }],
            "managedFields": [{ "manager": "okt", "operation": "Apply", "fieldsV1": { "f:spec": {} } }],
        },
        "spec": {
            "lifecycle": {
                "state": "Open", "request": "nightly", "visit": { "state": "Servicing", "request": "r" },
            },
            "size": 3,
        },
        "status": {
            "observedGeneration": 2,
            "conditions": [{
                "type": "Ready", "status": "True", "reason": "Open", "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 2,
            }],
            "recordedResources": ["0123456789abcdef01234567", "5c1e/apis/batch/v1/namespaces/a/jobs/b%unowned%keep%failed:60b7"],
            "lifecycle": {
                "state": "Servicing", "since": "2026-01-01T00:00:00Z", "transition": 4, "jumps": 1, "rounds": 2,
                "desired": { "state": "Open", "request": "nightly", "transition": 1, "reached": true },
                "visit": { "state": "Servicing", "request": "r", "transition": 4, "outcome": "Pending" },
                "revision": "0123456789abcdef", "changed": "0123456789abcdef",
                "action": {
                    "id": "u/4/0", "attempt": 3, "phase": "Running", "generation": 2, "leaving": true,
                    "startedAt": "2026-01-01T00:00:00Z", "message": "m",
                    "failure": { "reason": "R", "message": "m" },
                },
                "failure": { "reason": "R", "message": "m" },
                "trail": ">Building>Open>Servicing",
                "history": [{
                    "transition": 4, "from": "Open", "to": "Servicing", "at": "2026-01-01T00:00:00Z",
                    "cause": "Visit",
                }],
                "graph": "g",
            },
        },
    })
}

/// Returns the metadata of an object, whatever the rest of the object is.
fn metadata(object: &Value) -> Option<ObjectMeta> {
    let mut metadata = object.get("metadata")?.clone();
    // OKT does not read managed fields.
    metadata.as_object_mut()?.remove("managedFields");
    serde_json::from_value(metadata).ok()
}

/// Decides the next step of a vault, for a random observation.
fn decided(vault: &Vault, dice: &mut Dice) {
    let meta = vault.meta();
    let (spec, status) = (vault.spec_of(), vault.status_of());
    let position = status.and_then(|status| status.lifecycle.as_ref());
    let _ = position.map(read::cause);
    let desired = &spec.lifecycle;
    let revision = digest::revision(spec);
    let some_state = dice
        .pick(&[VaultState::Open, VaultState::Servicing, VaultState::Gone])
        .id();
    let recorded = read::record(position, dice.below(2) == 0, revision);
    let facts = LifecycleFacts {
        request: None,
        is_aborted: false,
        desired: read::desired(desired, position.and_then(|it| it.desired.as_ref())),
        visit: read::visit(desired, position.and_then(|it| it.visit.as_ref())),
        generation: meta.generation.unwrap_or(0),
        revision,
        parts: Parts(u32::from(dice.below(4) == 0)),
        shut: okt_core::Gates::NONE,
        outdated: None,
        has_unused_place: false,
        content: Some(0),
        uid: 0,
        approved: None,
        deleting: meta.deletion_timestamp.is_some(),
        paused: annotations::is_paused(meta),
        observed: *dice.pick(&[
            Observed::Unobserved,
            Observed::In(some_state),
            Observed::Absent,
            Observed::Unforeseen,
            Observed::Unreachable { failures: u32::MAX },
        ]),
        events: &[some_state],
        owned: dice.below(2) == 0,
        task: *dice.pick(&[Task::Absent, Task::Running, Task::Waiting, Task::Due]),
        attempt: position
            .and_then(|it| it.action.as_ref())
            .map_or(0, |it| it.attempt),
        started_under: meta.generation.unwrap_or(0),
        in_state: Duration::from_secs(u64::MAX >> dice.below(64)),
        in_deadline: Duration::from_secs(u64::MAX >> dice.below(64)),
        backoff: Backoff::default(),
        seed: read::hash(meta.uid.as_deref().unwrap_or_default()),
    };
    let _ = decide(VaultState::GRAPH, &recorded, &facts);
}

#[test]
fn the_valid_vault_decodes() {
    let text = vault().to_string();
    let guarded: Guarded<Vault> = serde_json::from_str(&text).expect("an object");
    let vault = guarded.get().expect("a vault");
    assert!(vault.status_of().is_some_and(|it| it.lifecycle.is_some()));
}

#[test]
fn every_object_decodes_or_is_an_error_with_its_metadata() {
    let valid = vault();
    check(1200, |dice| {
        let text = dice.json(&valid);
        // Every text is decoded or refused, without a panic.
        let _ = serde_json::from_slice::<Guarded<Vault>>(&text).map(|it| it.get().is_ok());
        let _ = serde_json::from_slice::<Arrived>(&text)
            .map(|it| Cached::<Vault>::from(it).object().is_ok());
        let Ok(object) = serde_json::from_slice::<Value>(&text) else {
            return;
        };
        let Some(meta) = metadata(&object) else {
            return;
        };
        // An object without duplicate fields, as an API server sends it, does not stop other objects.
        let text = object.to_string();
        let guarded: Guarded<Vault> =
            serde_json::from_str(&text).expect("the object, or its error");
        assert_eq!(guarded.meta().name, meta.name);
        assert_eq!(guarded.meta().uid, meta.uid);
        let arrived: Arrived = serde_json::from_str(&text).expect("its text");
        let cached = Cached::<Vault>::from(arrived);
        let text = cached.text();
        let cached_meta = pruned::field(&text, &["metadata"]).expect("metadata");
        let cached_meta: ObjectMeta = serde_json::from_str(cached_meta).expect("metadata");
        assert_eq!(cached_meta, meta);
        match (guarded.get(), cached.object()) {
            (Ok(vault), Ok(_)) => decided(vault, dice),
            (Err(invalid), Err(error)) => assert_eq!(invalid.error, error),
            (guarded, cached) => panic!("{guarded:?} and {cached:?}"),
        }
    });
}
