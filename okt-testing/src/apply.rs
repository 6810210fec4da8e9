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
    shares::{Share, Shares, cap, describe, read, write},
    typed::Twins,
};
use crate::{
    builtin, object,
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
    pub(crate) kind: &'a str,
    /// The kind has a status of its own endpoint.
    pub(crate) has_status: bool,
    pub(crate) built_in: bool,
    /// The time of the write, as it is written.
    pub(crate) now: &'a str,
}

/// Accounts for a write that is no apply: what changed belongs to `manager`.
pub(crate) fn account(scene: Scene<'_>, old: Option<&Value>, new: &mut Value, manager: &Manager) {
    let given = if manager.subresource.is_empty() {
        given(scene, new)
    } else {
        // Through a subresource nobody changes who owns what by hand.
        Given::Nothing
    };
    object::metadata(new).remove("managedFields");
    let mut shares = match given {
        Given::Reset => Shares::new(),
        Given::Shares(shares) => shares,
        Given::Nothing => old.and_then(read).unwrap_or_default(),
    };
    if old.is_some() && shares.is_empty() {
        // Nobody kept account from the beginning, so nobody begins now.
        return;
    }
    if object::text(new, &["kind"]) != scene.kind
        || !typed::check(Some(scene.schema), new, Twins::Allowed).is_empty()
    {
        // What has not the types of its schema is no longer accounted for.
        return;
    }
    let bare = match old {
        Some(old) => strip(old),
        None if scene.built_in => builtin::blank(scene.kind),
        None => json!({}),
    };
    take(scene, &bare, &strip(new), &mut shares, manager);
    write(new, shares);
}

/// Accounts for a write through the scale of an object.
///
/// Who is the first to write the replicas is not accounted for, as on a server.
pub(crate) fn account_scale(
    scene: Scene<'_>,
    old: &Value,
    new: &mut Value,
    manager: &Manager,
    replicas: &[String],
) {
    let entries = object::at(old, &["metadata", "managedFields"]).cloned();
    object::set(object::metadata(new), "managedFields", entries);
    let path: Vec<_> = replicas.iter().map(|key| Step::field(key)).collect();
    let mut field = FieldSet::default();
    field.insert(&path);
    let keys: Vec<_> = replicas.iter().map(String::as_str).collect();
    let mut shares = read(old).unwrap_or_default();
    let holds = |share: &Share| !share.fields.intersection(&field).is_empty();
    let changed = object::at(old, &keys) != object::at(new, &keys);
    if !changed || !shares.values().any(holds) {
        return;
    }
    let held = shares.get(manager).is_some_and(holds);
    for (other, share) in &mut shares {
        if other != manager {
            share.fields = share.fields.difference(&field);
        }
    }
    let replicas = object::at(new, &keys).and_then(Value::as_i64);
    if replicas == Some(0) {
        // To none is, for a scale, the same as to leave it out: nobody owns that.
        if let Some(share) = shares.get_mut(manager) {
            share.fields = share.fields.difference(&field);
        }
    } else if !held {
        let time = shares.get(manager).and_then(|share| share.time.clone());
        let share = Share {
            fields: field,
            api_version: scene.api_version.to_owned(),
            time,
        };
        shares.insert(manager.clone(), share);
    }
    write(new, shares);
}

/// What a client says about who owns what.
enum Given {
    Nothing,
    Reset,
    Shares(Shares),
}

fn given(scene: Scene<'_>, object: &Value) -> Given {
    match object::at(object, &["metadata", "managedFields"]).and_then(Value::as_array) {
        // An empty list is dropped from a custom resource before anybody looks at it.
        Some(list) if list.is_empty() && scene.built_in => Given::Reset,
        Some(list) if list.len() == 1 && list[0].as_object().is_some_and(Map::is_empty) => {
            Given::Reset
        }
        Some(_) => match read(object) {
            Some(shares) if !shares.is_empty() => Given::Shares(shares),
            _ => Given::Nothing,
        },
        None => Given::Nothing,
    }
}

/// Gives what an update changes to its manager.
fn take(scene: Scene<'_>, old: &Value, new: &Value, shares: &mut Shares, manager: &Manager) {
    let changed = typed::compare(Some(scene.schema), old, new);
    let set = writable(scene, &manager.subresource, changed.set);
    let removed = writable(scene, &manager.subresource, changed.removed);
    for share in shares.values_mut() {
        share.fields = share.fields.difference(&set).difference(&removed);
    }
    shares.retain(|_, share| !share.fields.is_empty());
    let taken = own(set);
    if !taken.is_empty() {
        let share = shares.entry(manager.clone()).or_insert_with(|| Share {
            fields: FieldSet::default(),
            api_version: String::new(),
            time: None,
        });
        share.fields = share.fields.union(&taken);
        scene.api_version.clone_into(&mut share.api_version);
        share.time = Some(scene.now.to_owned());
    }
    cap(shares);
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
    let errors = typed::check(shape, config, Twins::Refused);
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
    let mut shares = read(before).unwrap_or_default();
    let live_bare = strip(before);
    if live.is_some() && shares.is_empty() {
        let first = Manager {
            operation: Operation::Update,
            name: BEFORE_FIRST_APPLY.to_owned(),
            subresource: manager.subresource.clone(),
        };
        let blank = if scene.built_in {
            builtin::blank(scene.kind)
        } else {
            json!({})
        };
        take(scene, &blank, &live_bare, &mut shares, &first);
    }
    let given = strip(config);
    let mut merged = typed::merge(shape, &live_bare, &given);
    let wanted = writable(scene, &manager.subresource, typed::fields_of(shape, &given));
    let last = shares.get(manager).map(|share| share.fields.clone());
    let unchanged = last.as_ref() == Some(&wanted);
    let time = shares.get(manager).and_then(|share| share.time.clone());
    let share = Share {
        fields: wanted,
        api_version: scene.api_version.to_owned(),
        time,
    };
    shares.insert(manager.clone(), share);
    // Who sets the same fields as the last time gives none up.
    if let Some(last) = last
        && !unchanged
    {
        merged = prune(scene.schema, &merged, &shares, &last);
    }
    let changed = typed::compare(shape, &live_bare, &merged);
    let set = writable(scene, &manager.subresource, changed.set);
    let removed = writable(scene, &manager.subresource, changed.removed);
    settle(&mut shares, manager, &set, &removed, force)?;
    if let Some(share) = shares.get_mut(manager) {
        share.fields = own(std::mem::take(&mut share.fields));
        if live.is_none() || !typed::same(&live_bare, &merged) {
            share.time = Some(scene.now.to_owned());
        }
    }

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
    shares.retain(|_, share| !share.fields.is_empty());
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
fn writable(scene: Scene<'_>, subresource: &str, mut set: FieldSet) -> FieldSet {
    let reset: &[&[&str]] = match (subresource, scene.has_status) {
        ("", true) => &[&["status"]],
        ("status", true) if scene.built_in => &[&["spec"], &["metadata", "labels"]],
        ("status", true) => &[&["metadata"], &["spec"]],
        _ => &[],
    };
    for path in reset {
        let path: Vec<_> = path.iter().map(|key| Step::field(key)).collect();
        set.cut(&path);
    }
    set
}

/// The set without what nobody owns.
fn own(mut set: FieldSet) -> FieldSet {
    for key in ["apiVersion", "kind", "metadata"] {
        set.remove(&[Step::field(key)]);
    }
    for key in SYSTEM_FIELDS {
        set.remove(&[Step::field("metadata"), Step::field(key)]);
    }
    set
}

const SYSTEM_FIELDS: [&str; 9] = [
    "name",
    "namespace",
    "selfLink",
    "uid",
    "clusterName",
    "creationTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
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
