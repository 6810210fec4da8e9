//! Finds fields that other writers left in OKT's part of a status, and that no apply removes.
//!
//! A field stays as long as a manager owns it (structured merge, KEP-555). A tool that restores a backup owns the
//! status in it. Fields that OKT then leaves out of its apply would stay, and OKT would apply against them endlessly.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use okt_core::machine::StatusDiff;
use okt_core::record::Recorded;
use okt_wire::object::{LifecycleObject, StatusOf};
use serde_json::{Map, Value, json};

use crate::reconcile::change::{PassOf, change, is_own};

/// Returns the merge patch that removes those parts of the stored position and of OKT's conditions that this status
/// does not have; none if there are none.
///
/// The fields that an application adds to the status stay: others may write there too.
pub(crate) fn removal<K: LifecycleObject>(
    stored: &K,
    next: &StatusOf<K>,
    pass: PassOf,
) -> Option<Value> {
    if change(stored, next, pass) == StatusDiff::None {
        return None;
    }
    let status = stored.status_of()?;
    let mut patch = Map::new();
    if let (Value::Object(stored), Value::Object(next)) = (
        serde_json::to_value(&status.lifecycle).ok()?,
        serde_json::to_value(&next.lifecycle).ok()?,
    ) {
        let position = beyond(&stored, &next);
        if !position.is_empty() {
            patch.insert("lifecycle".to_owned(), position.into());
        }
    }
    let is_left = |recorded: &String| !next.recorded_resources.contains(recorded);
    if status.recorded_resources.iter().any(is_left) {
        let next = &next.recorded_resources;
        let recorded = if next.is_empty() {
            Value::Null
        } else {
            json!(next)
        };
        patch.insert("recordedResources".to_owned(), recorded);
    }
    // Conditions of other types belong to other writers and stay.
    let stays = |condition: &&Condition| {
        !is_own::<K::State>(&condition.type_, pass)
            || next.conditions.iter().any(|c| c.type_ == condition.type_)
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

/// Returns the managed fields of an object in which no manager but `own` claims the position; none if none does.
///
/// A tool that restores a backup claims it. What OKT then leaves out of the position stays in parts, and the API server
/// refuses the rest: a write would fail for ever.
pub(crate) fn unclaimed(object: &Value, own: &str) -> Option<Value> {
    const OWN: [&str; 2] = ["f:lifecycle", "f:recordedResources"];
    let mut managers = object["metadata"]["managedFields"].clone();
    let mut is_claimed = false;
    for entry in managers.as_array_mut()? {
        if entry["manager"] == own {
            continue;
        }
        let Some(claimed) = entry["fieldsV1"]["f:status"].as_object_mut() else {
            continue;
        };
        for name in OWN {
            is_claimed |= claimed.remove(name).is_some();
        }
    }
    is_claimed.then_some(managers)
}

/// The conditions that OKT writes only at times.
const AT_TIMES: [&str; 2] = ["Reconciling", "Stalled"];

/// The conditions that every status of OKT has, also one that only reports a failure, and hardly any other has both.
const ALWAYS: [&str; 2] = ["Deleting", "Paused"];

/// Returns the merge patch that removes the conditions of an earlier controller that OKT writes only at times; none if
/// there are none. It comes before the first status of an object.
///
/// Where both have the same value, both would own it. When OKT leaves the condition out, it would lose the fields that
/// OKT alone owns, and the API server would refuse the rest.
pub(crate) fn inherited<K: LifecycleObject>(object: &K, recorded: &Recorded) -> Option<Value> {
    if *recorded != Recorded::Nothing {
        return None;
    }
    let conditions = &object.status_of()?.conditions;
    let stays = |condition: &&Condition| !AT_TIMES.contains(&condition.type_.as_str());
    let kept: Vec<&Condition> = conditions.iter().filter(stays).collect();
    let is_own = ALWAYS
        .iter()
        .all(|name| conditions.iter().any(|it| it.type_ == *name));
    let is_inherited = !is_own && kept.len() < conditions.len();
    is_inherited.then(|| {
        json!({
            "metadata": { "resourceVersion": object.meta().resource_version },
            "status": { "conditions": kept },
        })
    })
}

/// Returns a null for every field that only the stored object has.
fn beyond(stored: &Map<String, Value>, next: &Map<String, Value>) -> Map<String, Value> {
    let mut patch = Map::new();
    for (name, stored) in stored {
        match (stored, next.get(name)) {
            (_, None) => {
                patch.insert(name.clone(), Value::Null);
            }
            (Value::Object(stored), Some(Value::Object(next))) => {
                let inner = beyond(stored, next);
                if !inner.is_empty() {
                    patch.insert(name.clone(), inner.into());
                }
            }
            // An apply overwrites a field that both have.
            (_, Some(_)) => {}
        }
    }
    patch
}
