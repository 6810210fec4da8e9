//! Applies the replicas of a scale to the object that has them.

use serde_json::Value;

use super::Scene;
use super::conflict::settle;
use super::fields::FieldSet;
use super::shares::{FieldShare, Manager, read, write};
use super::versions::Changes;
use crate::object;
use crate::refusal::Refusal;

/// The version in which a conflict shows the other owners of the replicas.
const SCALE: &str = "autoscaling/v1";

/// Sets the replicas at a path and makes `manager` their owner.
///
/// # Errors
/// Another manager owns the replicas, and `force` is not set.
pub(crate) fn apply_scale(
    scene: Scene<'_>,
    live: &Value,
    replicas: (&[String], i64),
    manager: &Manager,
    force: bool,
) -> Result<Value, Refusal> {
    let (path, number) = replicas;
    let keys: Vec<_> = path.iter().map(String::as_str).collect();
    let field = FieldSet::of_field(path);
    let changed = object::at(live, &keys).and_then(Value::as_i64) != Some(number);
    let mut shares = read(live).unwrap_or_default();
    // In a scale, zero replicas are the same as unset replicas, so they conflict with those of every other manager.
    if changed || number == 0 {
        let mut seen = shares.clone();
        for share in seen.values_mut() {
            SCALE.clone_into(&mut share.api_version);
        }
        let changes = Changes::set(field.clone());
        settle(&mut seen, manager, &changes, force)?;
        settle(&mut shares, manager, &changes, true)?;
    }
    let share = shares.entry(manager.clone()).or_insert_with(|| FieldShare {
        fields: field,
        api_version: scene.kind.api_version(),
        time: None,
    });
    if changed {
        share.time = Some(scene.now.to_owned());
    }
    let mut new = live.clone();
    object::put(&mut new, &keys, number.into());
    write(&mut new, shares);
    Ok(new)
}
