//! This file keeps account of who set which field (`metadata.managedFields`), and applies
//! configurations by it: server-side apply.
//!
//! The algorithm is that of structured-merge-diff. Fields that Kubernetes itself sets, and fields
//! that an endpoint ignores, belong to nobody.

mod fields;
mod shares;
mod typed;

pub(crate) use self::shares::{Manager, Operation};

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use self::{
    fields::{FieldSet, Step, show},
    shares::{Share, Shares, describe, read, write},
};
use crate::{
    object,
    refusal::{Cause, Refusal},
    schema::Schema,
};

/// The entry of objects that were written before anybody kept account.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// What a write is done with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scene<'a> {
    pub(crate) schema: &'a Schema,
    pub(crate) api_version: &'a str,
    /// The kind has a status of its own endpoint.
    pub(crate) has_status: bool,
    /// The time of the write, as it is written.
    pub(crate) now: &'a str,
}

/// Accounts for a write that is no apply: what changed belongs to `manager`.
pub(crate) fn account(scene: Scene<'_>, old: Option<&Value>, new: &mut Value, manager: &Manager) {
    let reset = object::at(new, &["metadata", "managedFields"])
        .and_then(Value::as_array)
        .is_some_and(|list| list.len() == 1 && list[0].as_object().is_some_and(Map::is_empty));
    let mut shares = match old {
        Some(old) if !reset => read(old),
        _ => Shares::new(),
    };
    object::metadata(new).remove("managedFields");
    if reset {
        return;
    }
    let bare = old.map_or_else(|| json!({}), strip);
    let changed = typed::compare(Some(scene.schema), &bare, &strip(new));
    let taken = owned(scene, &manager.subresource, changed.set);
    for share in shares.values_mut() {
        share.fields = share.fields.difference(&taken).difference(&changed.removed);
    }
    if !taken.is_empty() {
        let share = shares.entry(manager.clone()).or_insert_with(|| Share {
            fields: FieldSet::default(),
            api_version: String::new(),
            time: String::new(),
        });
        share.fields = share.fields.union(&taken);
        scene.api_version.clone_into(&mut share.api_version);
        scene.now.clone_into(&mut share.time);
    }
    write(new, shares);
}

/// Applies a configuration to what is live; `None` where there is nothing yet.
///
/// # Errors
/// A configuration that does not fit the schema, and fields that others own.
pub(crate) fn apply(
    scene: Scene<'_>,
    live: Option<&Value>,
    config: &Value,
    manager: &Manager,
    force: bool,
) -> Result<Value, Refusal> {
    let shape = Some(scene.schema);
    let errors = typed::check(shape, config);
    if !errors.is_empty() {
        let errors = match errors.as_slice() {
            [one] => one.clone(),
            many => format!("errors:\n  {}", many.join("\n  ")),
        };
        let what = identify(scene, config);
        return Err(Refusal::unexplained(format!(
            "failed to create typed patch object ({what}): {errors}"
        )));
    }
    let empty = json!({});
    let before = live.unwrap_or(&empty);
    let mut shares = read(before);
    let live_bare = strip(before);
    if live.is_some() && shares.is_empty() {
        let fields = owned(scene, "", typed::fields_of(shape, &live_bare));
        if !fields.is_empty() {
            let first = Manager {
                operation: Operation::Update,
                name: BEFORE_FIRST_APPLY.to_owned(),
                subresource: String::new(),
            };
            let share = Share {
                fields,
                api_version: scene.api_version.to_owned(),
                time: scene.now.to_owned(),
            };
            shares.insert(first, share);
        }
    }
    let config = keep_owned(scene, &manager.subresource, config);
    let mut merged = typed::merge(shape, &live_bare, &config);
    let wanted = owned(
        scene,
        &manager.subresource,
        typed::fields_of(shape, &config),
    );
    let last = shares.get(manager).map(|share| share.fields.clone());
    let unchanged = last.as_ref() == Some(&wanted);
    let share = Share {
        fields: wanted,
        api_version: scene.api_version.to_owned(),
        time: match shares.get(manager) {
            Some(share) if unchanged => share.time.clone(),
            _ => scene.now.to_owned(),
        },
    };
    shares.insert(manager.clone(), share);
    // Who sets the same fields as the last time gives none up.
    if let Some(last) = last
        && !unchanged
    {
        merged = prune(scene.schema, &merged, &shares, &last);
    }
    let changed = typed::compare(shape, &live_bare, &merged);
    let taken = owned(scene, &manager.subresource, changed.set);
    settle(&mut shares, manager, &taken, &changed.removed, force)?;

    // Everything that no schema speaks of stays as it is in the live object.
    let mut new = match merged {
        Value::Object(fields) => Value::Object(fields),
        _ => json!({}),
    };
    restore(before, &mut new);
    for key in ["apiVersion", "kind"] {
        if let Some(value) = config.get(key) {
            object::fields(&mut new).insert(key.to_owned(), value.clone());
        }
    }
    write(&mut new, shares);
    Ok(new)
}

/// Takes from the others what this manager sets now.
fn settle(
    shares: &mut Shares,
    manager: &Manager,
    taken: &FieldSet,
    removed: &FieldSet,
    force: bool,
) -> Result<(), Refusal> {
    let mut conflicts = Vec::new();
    for (other, share) in shares.iter() {
        if other != manager {
            let common = share.fields.intersection(taken);
            conflicts.extend(common.paths().into_iter().map(|path| (other, share, path)));
        }
    }
    if !force && !conflicts.is_empty() {
        return Err(conflict(&conflicts));
    }
    for (other, share) in shares.iter_mut() {
        if other != manager {
            share.fields = share.fields.difference(taken).difference(removed);
        }
    }
    Ok(())
}

fn conflict(conflicts: &[(&Manager, &Share, Vec<Step>)]) -> Refusal {
    let causes: Vec<_> = conflicts
        .iter()
        .map(|(manager, share, path)| Cause {
            field: show(path),
            reason: "FieldManagerConflict",
            message: format!("conflict with {}", describe(manager, share)),
        })
        .collect();
    let message = match conflicts {
        [(manager, share, path)] => format!(
            "Apply failed with 1 conflict: conflict with {}: {}",
            describe(manager, share),
            show(path)
        ),
        many => {
            let mut by_manager = BTreeMap::<String, Vec<String>>::new();
            for (manager, share, path) in many {
                by_manager
                    .entry(describe(manager, share))
                    .or_default()
                    .push(show(path));
            }
            let mut lines = Vec::new();
            for (manager, paths) in by_manager {
                lines.push(format!("conflicts with {manager}:"));
                lines.extend(paths.iter().map(|path| format!("- {path}")));
            }
            format!(
                "Apply failed with {} conflicts: {}",
                many.len(),
                lines.join("\n")
            )
        }
    };
    Refusal::apply_conflict(message, &causes)
}

/// Drops what this manager no longer sets and nobody else does.
fn prune(schema: &Schema, merged: &Value, shares: &Shares, last: &FieldSet) -> Value {
    let shape = Some(schema);
    let last = typed::with_named_fields(shape, last);
    let everything = typed::with_named_fields(shape, &typed::fields_of(shape, merged));
    let all_owned = shares
        .values()
        .fold(FieldSet::default(), |all, share| all.union(&share.fields));
    let all_owned = typed::with_named_fields(shape, &all_owned);
    let fields_now =
        |value: &Value| typed::with_named_fields(shape, &typed::fields_of(shape, value));

    let pruned = typed::without(shape, merged, &last);
    // What somebody still owns comes back,
    let back = fields_now(&pruned).union(&all_owned);
    let pruned = typed::without(shape, merged, &everything.difference(&back));
    // and so does what this manager never owned.
    let gone = everything.difference(&fields_now(&pruned));
    typed::without(shape, merged, &gone.intersection(&last))
}

/// The fields that a writer through this endpoint may own.
fn owned(scene: Scene<'_>, subresource: &str, mut set: FieldSet) -> FieldSet {
    for key in ["apiVersion", "kind", "metadata"] {
        set.remove(&[Step::field(key)]);
    }
    let metadata = Step::field("metadata");
    if set.below(&metadata).is_some() {
        for key in SYSTEM_FIELDS {
            set.cut(&[metadata.clone(), Step::field(key)]);
        }
    }
    if scene.has_status {
        if subresource == "status" {
            set.keep_only(&Step::field("status"));
        } else if subresource.is_empty() {
            set.cut(&[Step::field("status")]);
        }
    }
    set
}

/// The part of a configuration that this endpoint writes.
fn keep_owned(scene: Scene<'_>, subresource: &str, config: &Value) -> Value {
    let mut config = strip(config);
    let fields = object::fields(&mut config);
    if scene.has_status {
        if subresource == "status" {
            fields.retain(|key, _| matches!(key.as_str(), "apiVersion" | "kind" | "status"));
        } else if subresource.is_empty() {
            fields.remove("status");
        }
    }
    config
}

const SYSTEM_FIELDS: [&str; 11] = [
    "name",
    "namespace",
    "selfLink",
    "uid",
    "clusterName",
    "creationTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
];

/// The object without what Kubernetes itself sets.
fn strip(object: &Value) -> Value {
    let Value::Object(fields) = object else {
        return object.clone();
    };
    let strip_metadata = |metadata: &Map<String, Value>| {
        let kept = metadata.iter();
        let kept = kept.filter(|(key, _)| !SYSTEM_FIELDS.contains(&key.as_str()));
        kept.map(|(key, value)| (key.clone(), value.clone()))
            .collect()
    };
    let bare = fields.iter().map(|(key, value)| match value {
        Value::Object(metadata) if key == "metadata" => {
            (key.clone(), Value::Object(strip_metadata(metadata)))
        }
        _ => (key.clone(), value.clone()),
    });
    Value::Object(bare.collect())
}

/// Puts back what [`strip`] took, but for the account that is about to be written anew.
fn restore(from: &Value, to: &mut Value) {
    for key in SYSTEM_FIELDS {
        if key != "managedFields"
            && let Some(value) = object::at(from, &["metadata", key])
        {
            object::metadata(to).insert(key.to_owned(), value.clone());
        }
    }
}

fn identify(scene: Scene<'_>, config: &Value) -> String {
    let (group, version) = scene
        .api_version
        .split_once('/')
        .unwrap_or(("", scene.api_version));
    format!(
        "{}/{}; {group}/{version}, Kind={}",
        object::namespace(config),
        object::name(config),
        object::text(config, &["kind"])
    )
}
