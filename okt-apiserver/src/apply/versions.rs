//! Finds the fields that a write changes, in each version of a kind: a manager that set fields in another
//! version owns them by the names of that version.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ptr;

use serde_json::Value;

use super::Scene;
use super::fields::FieldSet;
use super::reserved::writable;
use super::shares::{FieldShare, Manager, Shares};
use super::typed::{self, Comparison, DuplicateFields};
use crate::convert;
use crate::schema::Schema;

impl Comparison {
    /// Keeps only the fields that a writer through this endpoint may own.
    fn writable(self, scene: Scene<'_>, subresource: &str) -> Self {
        Self {
            set: writable(scene, subresource, self.set),
            removed: writable(scene, subresource, self.removed),
        }
    }
}

/// The fields that a write changes, in its own version and in the versions in which others own fields.
#[derive(Debug)]
pub(super) struct Changes {
    pub(super) own: Comparison,
    others: BTreeMap<String, Comparison>,
}

impl Changes {
    /// Compares two states of an object in each of these versions.
    ///
    /// # Errors
    /// One of the states does not fit a version in which a manager owns fields.
    pub(super) fn find(
        scene: Scene<'_>,
        manager: &Manager,
        shares: &Shares,
        old: &Value,
        new: &Value,
    ) -> Result<Self, String> {
        let subresource = &manager.subresource;
        let mut others = BTreeMap::new();
        for (other, share) in shares {
            let version = &share.api_version;
            if other == manager || is_own(scene, version) || others.contains_key(version) {
                continue;
            }
            let (_, old) = convert(scene, version, old)
                .map_err(|why| format!("failed to convert old object: {why}"))?;
            let (schema, new) = convert(scene, version, new)
                .map_err(|why| format!("failed to convert new object: {why}"))?;
            let change = typed::compare(Some(schema), &old, &new);
            // For a write through the main endpoint, a server ignores the reset fields of the write's own version only.
            let change = match subresource.as_str() {
                "" => change,
                _ => change.writable(scene, subresource),
            };
            others.insert(version.clone(), change);
        }
        Ok(Self {
            own: typed::compare(Some(scene.schema()), old, new).writable(scene, subresource),
            others,
        })
    }

    /// A change that sets these fields, in every version.
    pub(super) fn set(fields: FieldSet) -> Self {
        Self {
            own: Comparison {
                set: fields,
                removed: FieldSet::default(),
            },
            others: BTreeMap::new(),
        }
    }

    /// Removes the changed fields from a share.
    pub(super) fn take_from(&self, share: &mut FieldShare) {
        let change = self.seen_by(share);
        share.fields.subtract(&change.set);
        share.fields.subtract(&change.removed);
    }

    /// Returns the change in the version of this share.
    pub(super) fn seen_by(&self, share: &FieldShare) -> &Comparison {
        self.others.get(&share.api_version).unwrap_or(&self.own)
    }
}

/// Whether fields in this version have the names of the version of the write.
fn is_own(scene: Scene<'_>, version: &str) -> bool {
    scene.kind.is_in(version) || scene.kind.is_built_in()
}

/// Returns the schema of a version and an object in this version, if it fits; without a webhook that is the same object.
///
/// # Errors
/// The version does not exist, or the object does not fit it.
fn convert<'s, 'v>(
    scene: Scene<'s>,
    version: &str,
    object: &'v Value,
) -> Result<(&'s Schema, Cow<'v, Value>), String> {
    // A server converts nothing of an object that is not there yet.
    let stays = convert::api_version(object) == version
        || object.get("metadata").is_none()
        || scene.kind.conversion.is_none()
        || scene.kind.schema_of(version).is_none();
    let object = if stays {
        Cow::Borrowed(object)
    } else {
        let converted = convert::to_version(scene.calls, scene.kind, object.clone(), version);
        Cow::Owned(converted.map_err(|refusal| refusal.message().to_owned())?)
    };
    if is_own(scene, version) {
        return Ok((scene.schema(), object));
    }
    let Some(sibling) = scene.kind.sibling(version) else {
        return Err(format!(
            "request to convert CR to an invalid group/version: {version}"
        ));
    };
    let errors = typed::check(Some(&sibling.schema), &object, DuplicateFields::Refused);
    if errors.is_empty() {
        Ok((&sibling.schema, object))
    } else {
        Err(typed::list(&errors))
    }
}

/// Checks that an object fits all versions in which a manager owns fields.
///
/// # Errors
/// The object does not fit one of them.
pub(super) fn check(scene: Scene<'_>, shares: &Shares, object: &Value) -> Result<(), String> {
    for share in shares.values() {
        convert(scene, &share.api_version, object)?;
    }
    Ok(())
}

/// Removes the fields that a manager no longer sets and no other manager owns.
///
/// # Errors
/// The object does not fit a version in which a manager owns fields.
pub(super) fn prune(
    scene: Scene<'_>,
    merged: Value,
    shares: &Shares,
    last: FieldShare,
) -> Result<Value, String> {
    let version = last.api_version;
    let (schema, at_last) = convert(scene, &version, &merged)
        .map_err(|why| format!("failed to convert merged object to last applied version: {why}"))?;
    // The owned fields, first in the version of the last apply, then in the others.
    let mut owned = BTreeMap::<(bool, &str), FieldSet>::new();
    for share in shares.values() {
        let is_other = share.api_version != version;
        let all = owned.entry((is_other, &share.api_version)).or_default();
        all.add(&share.fields);
    }
    let mut wanted = Vec::new();
    for ((_, version), owned) in owned {
        let (schema, merged) = convert(scene, version, &merged).map_err(|why| {
            format!("failed add back owned items: failed to convert merged object at version {version}: {why}")
        })?;
        let owned = typed::with_named_fields(Some(schema), owned);
        wanted.push((version, schema, merged, owned));
    }
    let last = typed::with_named_fields(Some(schema), last.fields);
    if let [(_, only, _, owned)] = wanted.as_slice()
        && ptr::eq(*only, schema)
    {
        let mut free = fields(only, &at_last);
        free.subtract(owned);
        if !free.meets(&last) {
            // All fields of the last configuration still have an owner.
            return Ok(merged);
        }
    }
    let everything = fields(schema, &at_last);
    let mut pruned = typed::without(Some(schema), &at_last, &last);
    for (version, schema, merged, owned) in wanted {
        // Fields that another manager still owns come back,
        let (_, kept) = convert(scene, version, &pruned)?;
        let mut left = fields(schema, &merged);
        left.subtract(&fields(schema, &kept));
        left.subtract(&owned);
        pruned = typed::without(Some(schema), &merged, &left);
    }
    // and so do fields that this manager never owned.
    let (_, kept) = convert(scene, &version, &pruned)?;
    let mut gone = everything;
    gone.subtract(&fields(schema, &kept));
    let pruned = typed::without(Some(schema), &at_last, &gone.intersection(&last));
    let own = scene.kind.api_version();
    convert(scene, &own, &pruned).map(|(_, pruned)| pruned.into_owned())
}

fn fields(schema: &Schema, value: &Value) -> FieldSet {
    let shape = Some(schema);
    typed::with_named_fields(shape, typed::fields_of(shape, value))
}
