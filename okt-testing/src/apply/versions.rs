//! This file tells what a write changes, as each version of a kind sees it: who set fields in
//! another version owns what that version calls them.

use std::{collections::BTreeMap, ptr};

use serde_json::Value;

use super::{
    Scene,
    fields::FieldSet,
    reserved::writable,
    shares::{Manager, Share, Shares},
    typed::{self, Twins},
};
use crate::schema::Schema;

/// What a write sets and removes.
#[derive(Debug)]
pub(super) struct Change {
    pub(super) set: FieldSet,
    pub(super) removed: FieldSet,
}

impl Change {
    fn of(schema: &Schema, old: &Value, new: &Value) -> Self {
        let changed = typed::compare(Some(schema), old, new);
        Self {
            set: changed.set,
            removed: changed.removed,
        }
    }

    /// Only what a writer through this endpoint may write.
    fn writable(self, scene: Scene<'_>, subresource: &str) -> Self {
        Self {
            set: writable(scene, subresource, self.set),
            removed: writable(scene, subresource, self.removed),
        }
    }
}

/// What a write changes, in its own version and in those in which others own fields.
#[derive(Debug)]
pub(super) struct Changes {
    pub(super) own: Change,
    others: BTreeMap<String, Change>,
}

impl Changes {
    /// # Errors
    /// One of the states does not fit into a version in which somebody owns fields.
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
            convert(scene, version, old)
                .map_err(|why| format!("failed to convert old object: {why}"))?;
            let schema = convert(scene, version, new)
                .map_err(|why| format!("failed to convert new object: {why}"))?;
            let change = Change::of(schema, old, new);
            // Through the main endpoint, a server knows what is not written of one version only.
            let change = match subresource.as_str() {
                "" => change,
                _ => change.writable(scene, subresource),
            };
            others.insert(version.clone(), change);
        }
        Ok(Self {
            own: Change::of(scene.schema, old, new).writable(scene, subresource),
            others,
        })
    }

    /// Sets these fields, in whatever version.
    pub(super) fn set(fields: FieldSet) -> Self {
        Self {
            own: Change {
                set: fields,
                removed: FieldSet::default(),
            },
            others: BTreeMap::new(),
        }
    }

    /// Takes from a share what is written or removed.
    pub(super) fn take_from(&self, share: &mut Share) {
        let change = self.seen_by(share);
        share.fields.subtract(&change.set);
        share.fields.subtract(&change.removed);
    }

    /// What the manager sees who has this share.
    pub(super) fn seen_by(&self, share: &Share) -> &Change {
        self.others.get(&share.api_version).unwrap_or(&self.own)
    }
}

/// Whether fields in this version are those of the version of the write.
fn is_own(scene: Scene<'_>, version: &str) -> bool {
    version == scene.api_version || scene.built_in
}

/// The schema of the version in which somebody owns fields, if an object fits into it.
///
/// # Errors
/// There is no such version, or the object does not fit.
pub(super) fn convert<'s>(
    scene: Scene<'s>,
    version: &str,
    object: &Value,
) -> Result<&'s Schema, String> {
    if is_own(scene, version) {
        return Ok(scene.schema);
    }
    let Some(sibling) = scene.sibling(version) else {
        return Err(format!(
            "request to convert CR to an invalid group/version: {version}"
        ));
    };
    let errors = typed::check(Some(&sibling.schema), object, Twins::Refused);
    if errors.is_empty() {
        Ok(&sibling.schema)
    } else {
        Err(typed::list(&errors))
    }
}

/// Whether an object fits into all versions in which somebody owns fields.
///
/// # Errors
/// It does not.
pub(super) fn check(scene: Scene<'_>, shares: &Shares, object: &Value) -> Result<(), String> {
    for share in shares.values() {
        convert(scene, &share.api_version, object)?;
    }
    Ok(())
}

/// Drops what a manager no longer sets and nobody else does.
///
/// # Errors
/// What there is does not fit into a version in which somebody owns fields.
pub(super) fn prune(
    scene: Scene<'_>,
    merged: Value,
    shares: &Shares,
    last: Share,
) -> Result<Value, String> {
    let version = last.api_version;
    let schema = convert(scene, &version, &merged)
        .map_err(|why| format!("failed to convert merged object to last applied version: {why}"))?;
    // What somebody owns, first in the version of the last time, then in the others.
    let mut owned = BTreeMap::<(bool, &str), FieldSet>::new();
    for share in shares.values() {
        let is_other = share.api_version != version;
        let all = owned.entry((is_other, &share.api_version)).or_default();
        all.add(&share.fields);
    }
    let mut wanted = Vec::new();
    for ((_, version), owned) in owned {
        let schema = convert(scene, version, &merged).map_err(|why| {
            format!("failed add back owned items: failed to convert merged object at version {version}: {why}")
        })?;
        wanted.push((schema, typed::with_named_fields(Some(schema), owned)));
    }
    let last = typed::with_named_fields(Some(schema), last.fields);
    if let [(only, owned)] = wanted.as_slice()
        && ptr::eq(*only, schema)
    {
        let mut free = fields(only, &merged);
        free.subtract(owned);
        if !free.meets(&last) {
            // Nothing that goes with the last configuration is without an owner.
            return Ok(merged);
        }
    }
    let everything = fields(schema, &merged);
    let mut pruned = typed::without(Some(schema), &merged, &last);
    for (schema, owned) in wanted {
        // What somebody still owns comes back,
        let mut left = fields(schema, &merged);
        left.subtract(&fields(schema, &pruned));
        left.subtract(&owned);
        pruned = typed::without(Some(schema), &merged, &left);
    }
    // and so does what this manager never owned.
    let mut gone = everything;
    gone.subtract(&fields(schema, &pruned));
    Ok(typed::without(
        Some(schema),
        &merged,
        &gone.intersection(&last),
    ))
}

fn fields(schema: &Schema, value: &Value) -> FieldSet {
    let shape = Some(schema);
    typed::with_named_fields(shape, typed::fields_of(shape, value))
}
