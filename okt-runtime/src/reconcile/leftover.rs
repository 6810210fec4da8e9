//! What other writers left in OKT's part of a status, where no apply takes it away.
//!
//! A field stays as long as somebody owns it (structured merge, KEP-555). Whoever restores a backup owns the
//! status that was in it, and what OKT then leaves out of its apply would stay, and be applied against for ever.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use okt_core::reconcile::News;
use serde_json::{Map, Value, json};

use crate::reconcile::change::{PassOf, change, is_own};
use crate::wire::object::LifecycleObject;
use crate::wire::status::Status;

/// The merge patch that takes away what the stored position and OKT's conditions say beyond this status; none where
/// nothing is left.
///
/// What an application adds to the status is left alone: others may write there too.
pub(crate) fn removal<K: LifecycleObject>(
    stored: &K,
    said: &Status<K::State, K::Extra>,
    pass: PassOf,
) -> Option<Value> {
    if change(stored, said, pass) == News::None {
        return None;
    }
    let status = stored.status_of()?;
    let mut patch = Map::new();
    if let (Value::Object(stored), Value::Object(said)) = (
        serde_json::to_value(&status.lifecycle).ok()?,
        serde_json::to_value(&said.lifecycle).ok()?,
    ) {
        let position = beyond(&stored, &said);
        if !position.is_empty() {
            patch.insert("lifecycle".to_owned(), position.into());
        }
    }
    if said.recorded_resources.is_empty() && !status.recorded_resources.is_empty() {
        patch.insert("recordedResources".to_owned(), Value::Null);
    }
    // They are merged by type, so those of others stay beside OKT's.
    let stays = |condition: &&Condition| {
        !is_own::<K::State>(&condition.type_, pass)
            || said.conditions.iter().any(|c| c.type_ == condition.type_)
    };
    let kept: Vec<&Condition> = status.conditions.iter().filter(stays).collect();
    if kept.len() < status.conditions.len() {
        patch.insert("conditions".to_owned(), json!(kept));
    }
    (!patch.is_empty()).then(|| {
        json!({
            "metadata": { "resourceVersion": stored.meta().resource_version },
            "status": patch,
        })
    })
}

/// A null for every field that only the stored object has.
fn beyond(stored: &Map<String, Value>, said: &Map<String, Value>) -> Map<String, Value> {
    let mut patch = Map::new();
    for (name, stored) in stored {
        match (stored, said.get(name)) {
            (_, None) => {
                patch.insert(name.clone(), Value::Null);
            }
            (Value::Object(stored), Some(Value::Object(said))) => {
                let inner = beyond(stored, said);
                if !inner.is_empty() {
                    patch.insert(name.clone(), inner.into());
                }
            }
            // An apply wins wherever both say something.
            (_, Some(_)) => {}
        }
    }
    patch
}
