//! This file does the last part of a write: what the server itself sets, the checks, the commit.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Door, Subresource, current, stored_id};
use crate::{
    cel, crd, delete, event,
    kind::{Kind, KindId, Origin},
    object,
    refusal::{Cause, Refusal},
    rules, schema,
    store::{Key, Store},
    stored::Stored,
};

/// An object of more bytes does not fit into etcd.
const SIZE_LIMIT: usize = 1_572_864;
/// A larger one is not even sent there.
const MESSAGE_LIMIT: usize = 2_097_152;

/// A deeper object is not read back from its text.
const DEPTH_LIMIT: usize = 100;

/// Commits a new object, unless something is wrong with it.
pub(super) fn finish_create(
    store: &mut Store,
    door: &Door,
    mut object: Value,
) -> Result<Arc<Stored>, Refusal> {
    let kind = &*door.kind;
    let name = object::name(&object).to_owned();
    let namespace = object::namespace(&object).to_owned();
    check_namespace(store, kind, &namespace, &name)?;
    if kind.origin == Origin::Crd {
        delete::check_not_terminating(store, kind, &name)?;
    }
    let now = store.clock.text();
    let uid = store.new_uid();
    let fields = object::fields(&mut object);
    if kind.has_status {
        fields.remove("status");
    }
    let metadata = object::metadata(&mut object);
    for key in [
        "selfLink",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "resourceVersion",
    ] {
        metadata.remove(key);
    }
    metadata.insert("uid".to_owned(), uid.into());
    metadata.insert("creationTimestamp".to_owned(), now.clone().into());
    let generation = kind.has_generation.then(|| 1.into());
    object::set(metadata, "generation", generation);
    // What the schema gives to a status is there from the start, but it is shown, not written.
    let bare = kind.has_status && object.get("status").is_none();
    schema::apply_defaults(&kind.schema, &mut object);
    let given_status = bare && object.get("status").is_some();
    let declared = initialise(kind, &mut object, &now)?;
    check(door, &object, None)?;
    let mut object = event::absorb(kind, object);
    let id = stored_id(kind);
    let key = Key::of(&object);
    if store.get(&id, &key).is_some() {
        return Err(Refusal::already_exists(kind.subject(&name)));
    }
    if door.dry_run {
        return Ok(event::present(kind, &Arc::new(Stored::new(&object))));
    }
    object::metadata(&mut object).remove("resourceVersion");
    let created = store.put(&id, &mut object);
    if given_status {
        store.set_partly_written(&id, key);
    }
    if let Some(declared) = declared {
        store.add_kind(Arc::new(declared));
    }
    delete::collect_if_orphaned(store, &id, &created);
    Ok(event::present(kind, &created))
}

/// What some built-in kinds get from the server; the kind that a CRD declares.
fn initialise(kind: &Kind, object: &mut Value, now: &str) -> Result<Option<Kind>, Refusal> {
    if kind.is("", "namespaces") {
        let name = object::name(object).to_owned();
        object::put(object, &["spec", "finalizers"], json!(["kubernetes"]));
        object::put(object, &["status", "phase"], "Active".into());
        let label = "kubernetes.io/metadata.name";
        object::put(object, &["metadata", "labels", label], name.into());
    }
    if kind.is(crd::GROUP, crd::PLURAL) {
        let declared = crd::read(object)?;
        crd::establish(object, now);
        return Ok(Some(declared));
    }
    Ok(None)
}

/// Makes a new state of an object ready to be committed, unless something is wrong with it.
///
/// Says whether it changes anything.
pub(super) fn finish_update(
    door: &Door,
    old: &Value,
    new: &mut Value,
    now: &str,
) -> Result<bool, Refusal> {
    let kind = &*door.kind;
    let name = object::name(old).to_owned();
    keep_metadata(old, new);
    let mut causes = Vec::new();
    rules::check_finalizers(old, new, &mut causes);
    if !causes.is_empty() {
        return Err(Refusal::invalid(kind.subject(&name), &causes));
    }
    if kind.is(crd::GROUP, crd::PLURAL) {
        check_crd_update(kind, old, new)?;
        crd::read(new)?;
        crd::establish(new, now);
    }
    if kind.has_generation && !kind.same_content(old, new) {
        raise_generation(new);
    }
    check(door, new, Some(old))?;
    Ok(!is_same(old, new))
}

/// Commits a new state that is ready.
pub(super) fn commit_update(
    store: &mut Store,
    door: &Door,
    old: &Value,
    new: &mut Value,
    changes: bool,
) -> Result<Arc<Stored>, Refusal> {
    let kind = &*door.kind;
    let (id, key) = (stored_id(kind), Key::of(old));
    if !changes
        && !store.is_partly_written(&id, &key)
        && let Some(same) = current(store, kind, &key)
    {
        return Ok(same);
    }
    if door.dry_run {
        return Ok(Arc::new(Stored::new(new)));
    }
    let declared = if kind.is(crd::GROUP, crd::PLURAL) {
        Some(Kind {
            was_changed: true,
            ..crd::read(new)?
        })
    } else {
        None
    };
    *new = event::absorb(kind, std::mem::take(new));
    if object::is_deleting(new) && object::finalizers(new).is_empty() && !kind.is("", "namespaces")
    {
        let last = store.remove(&id, new);
        delete::after_removal(store, &door.kind, &last);
        return Ok(event::present(kind, &last));
    }
    let written = store.put(&id, new);
    if let Some(declared) = declared {
        reread(store, declared);
    }
    delete::collect_if_orphaned(store, &id, &written);
    Ok(event::present(kind, &written))
}

/// What no client can change.
fn keep_metadata(old: &Value, new: &mut Value) {
    for key in [
        "name",
        "namespace",
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
        "resourceVersion",
        "generateName",
        "selfLink",
    ] {
        let value = object::at(old, &["metadata", key]).cloned();
        object::set(object::metadata(new), key, value);
    }
}

pub(crate) fn raise_generation(object: &mut Value) {
    let generation = object::at(object, &["metadata", "generation"])
        .and_then(Value::as_i64)
        .unwrap_or(0);
    object::metadata(object).insert("generation".to_owned(), (generation + 1).into());
}

/// Whether a write changes nothing, the times in `managedFields` apart.
fn is_same(old: &Value, new: &Value) -> bool {
    fn but<'v>(value: Option<&'v Value>, left_out: &str) -> Vec<(&'v String, &'v Value)> {
        let fields = value.and_then(Value::as_object).into_iter().flatten();
        fields.filter(|(key, _)| *key != left_out).collect()
    }
    fn entries(object: &Value) -> &[Value] {
        object::at(object, &["metadata", "managedFields"])
            .and_then(Value::as_array)
            .map(Vec::as_slice)
            .unwrap_or_default()
    }
    let (before, after) = (entries(old), entries(new));
    // The order of the entries goes by their times.
    let same_entries = before.len() == after.len()
        && before.iter().all(|entry| {
            let entry = but(Some(entry), "time");
            after.iter().any(|other| but(Some(other), "time") == entry)
        });
    same_entries
        && but(Some(old), "metadata") == but(Some(new), "metadata")
        && but(old.get("metadata"), "managedFields") == but(new.get("metadata"), "managedFields")
}

/// Metadata, schema and rules, in the order in which the server finds fault.
fn check(door: &Door, object: &Value, old: Option<&Value>) -> Result<(), Refusal> {
    let kind = &*door.kind;
    if depth(object) > DEPTH_LIMIT {
        return Err(Refusal::not_served(format!(
            "an object that is nested deeper than {DEPTH_LIMIT} levels, its managed fields included"
        )));
    }
    let mut causes = Vec::new();
    rules::check_metadata(kind, object, &mut causes);
    schema::validate(&kind.schema, object, old, "", &mut causes);
    if door.subresource == Subresource::Status {
        causes.iter_mut().for_each(Cause::shorten_to_status);
    }
    if kind.origin == Origin::Crd
        && let Some(scale) = &kind.scale
    {
        scale.check(object, &mut causes);
    }
    let blocking = causes.iter().any(|cause| {
        matches!(
            cause.reason,
            "FieldValueRequired"
                | "FieldValueNotSupported"
                | "FieldValueTypeInvalid"
                | "FieldValueNotSupported"
                | "FieldValueTooLong"
                | "FieldValueTooMany"
        )
    });
    if !blocking {
        cel::check_rules(&kind.schema, object, old, kind.was_changed, &mut causes)?;
    } else if kind.schema.has_rules() {
        causes.push(Cause::invalid(
            "<nil>",
            &Value::Null,
            "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation",
        ));
    }
    if !causes.is_empty() {
        return Err(Refusal::invalid(
            kind.subject(object::name(object)),
            &causes,
        ));
    }
    match weight(object) {
        size if size > MESSAGE_LIMIT => Err(Refusal::new(
            500,
            "",
            format!(
                "rpc error: code = ResourceExhausted desc = trying to send message larger than max ({size} vs. {MESSAGE_LIMIT})"
            ),
        )),
        size if size > SIZE_LIMIT => Err(Refusal::new(500, "", "etcdserver: request is too large")),
        _ => Ok(()),
    }
}

/// The levels of lists and maps.
fn depth(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
    }
}

/// About as many bytes as the object takes.
fn weight(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 4,
        Value::String(text) => text.len() + 3,
        Value::Array(items) => items.iter().map(weight).sum::<usize>() + 2,
        Value::Object(fields) => fields
            .iter()
            .map(|(key, value)| key.len() + 4 + weight(value))
            .sum(),
    }
}

fn check_namespace(store: &Store, kind: &Kind, namespace: &str, name: &str) -> Result<(), Refusal> {
    if !kind.namespaced {
        return Ok(());
    }
    let id = KindId {
        group: String::new(),
        plural: "namespaces".to_owned(),
    };
    let key = Key {
        namespace: String::new(),
        name: namespace.to_owned(),
    };
    match (store.get(&id, &key), store.kind(&id)) {
        (Some(found), _) if found.is_deleting() => Err(Refusal::forbidden(
            kind.subject(name),
            &format!(
                "unable to create new content in namespace {namespace} because it is being terminated"
            ),
        )),
        (None, Some(namespaces)) => Err(Refusal::not_found(namespaces.subject(namespace))),
        _ => Ok(()),
    }
}

fn check_crd_update(kind: &Kind, old: &Value, new: &Value) -> Result<(), Refusal> {
    for path in [
        &["spec", "group"][..],
        &["spec", "scope"],
        &["spec", "names", "plural"],
        &["spec", "names", "kind"],
    ] {
        let value = object::at(new, path).cloned().unwrap_or_default();
        if object::at(old, path) != Some(&value) {
            let cause = Cause::invalid(path.join("."), &value, "field is immutable");
            return Err(Refusal::invalid(kind.subject(object::name(old)), &[cause]));
        }
    }
    Ok(())
}

/// Shows what is stored through a changed schema.
fn reread(store: &mut Store, declared: Kind) {
    let id = declared.id();
    let objects: Vec<Value> = store
        .list(&id, None)
        .map(|(_, object)| object.read())
        .collect();
    for mut object in objects {
        schema::prune(&declared.schema, &mut object);
        schema::apply_defaults(&declared.schema, &mut object);
        store.reread(&id, &object);
    }
    store.add_kind(Arc::new(declared));
}
