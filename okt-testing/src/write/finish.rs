//! This file does the last part of a write: what the server itself sets, the checks, the commit.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Door, Subresource, current, show, stored_id};
use crate::{
    apply::Operation,
    cel, crd, delete, event,
    kind::{Kind, KindId, Origin},
    object,
    refusal::{Cause, Refusal, Subject},
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
    ] {
        metadata.remove(key);
    }
    metadata.insert("uid".to_owned(), uid.into());
    metadata.insert("creationTimestamp".to_owned(), now.clone().into());
    if kind.has_generation {
        metadata.insert("generation".to_owned(), 1.into());
    }
    let declared = initialise(kind, &mut object, &now)?;
    check(door, &object, None)?;
    let written = hide(door, &mut object);
    let mut object = event::absorb(kind, object);
    let id = stored_id(kind);
    let key = Key::of(&object);
    if !object::version(&object).is_empty() && !door.dry_run {
        return Err(Refusal::new(
            500,
            "",
            "resourceVersion should not be set on objects to be created",
        ));
    }
    if let Some(found) = store.get(&id, &key) {
        let deleting = object::is_deleting(&found.read());
        return Err(Refusal::already_exists(kind.subject(&name), deleting));
    }
    if door.dry_run {
        return Ok(event::present(kind, &Arc::new(Stored::new(&object))));
    }
    object::metadata(&mut object).remove("resourceVersion");
    let created = store.put(&id, &mut object);
    if let Some(written) = written {
        store.set_written(&id, key, written);
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
    keep_metadata(old, new);
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
    if !changes {
        // The times of entries alone are no change.
        let entries = object::at(old, &["metadata", "managedFields"]).cloned();
        object::set(object::metadata(new), "managedFields", entries);
    }
    let unchanged = match store.written(&id, &key) {
        Some(written) => *written == bare(new),
        None => *old == *new,
    };
    if unchanged && let Some(same) = current(store, kind, &key) {
        return Ok(same);
    }
    if object::is_deleting(new) && object::finalizers(new).is_empty() && !kind.is("", "namespaces")
    {
        // What is removed is what was stored: the change that lets it go is only in the answer.
        if !door.dry_run {
            let last = store.remove(&id, &mut event::absorb(kind, old.clone()));
            delete::after_removal(store, &door.kind, &last);
        }
        return Ok(Arc::new(Stored::new(new)));
    }
    let written = hide(door, new);
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
    let shown = store.put(&id, new);
    if let Some(written) = written {
        store.set_written(&id, key, written);
    }
    if let Some(declared) = declared {
        reread(store, declared);
    }
    delete::collect_if_orphaned(store, &id, &shown);
    Ok(event::present(kind, &shown))
}

/// Makes of an object what is shown of it; if that is not what is written, the latter is returned.
fn hide(door: &Door, object: &mut Value) -> Option<Value> {
    // Other ways of writing begin with what is shown already.
    let differs = door.manager.operation == Operation::Apply
        || door.subresource == Subresource::Scale
        || object.get("status").is_none();
    if door.kind.origin != Origin::Crd || !differs {
        return None;
    }
    let written = object.clone();
    show(&door.kind, object);
    (written != *object).then(|| bare(&written))
}

/// An object as it is written: its version is no part of it.
fn bare(object: &Value) -> Value {
    let mut bare = object.clone();
    object::metadata(&mut bare).remove("resourceVersion");
    bare
}

/// What no client can change, and what it need not repeat.
fn keep_metadata(old: &Value, new: &mut Value) {
    let metadata = object::metadata(new);
    for key in ["generation", "creationTimestamp", "resourceVersion"] {
        let value = object::at(old, &["metadata", key]).cloned();
        object::set(metadata, key, value);
    }
    for key in ["uid", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        let given = metadata.contains_key(key) && key != "deletionTimestamp";
        if let (Some(value), false) = (object::at(old, &["metadata", key]), given) {
            metadata.insert(key.to_owned(), value.clone());
        }
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
    // A time that puts them in another order is a change.
    let same_entries = before.len() == after.len()
        && before
            .iter()
            .zip(after)
            .all(|(a, b)| but(Some(a), "time") == but(Some(b), "time"));
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
    let found = object::text(object, &["kind"]);
    let is_other = kind.origin == Origin::Crd && found != kind.kind;
    if is_other {
        // An object of another kind is not held against the schema, but against its rules.
        let detail = format!("must be {}", kind.kind);
        causes.push(Cause::invalid("kind", &found.into(), &detail));
    } else {
        check_fields(door, object, old, &mut causes);
    }
    let blocking = causes.iter().any(|cause| {
        matches!(
            cause.reason,
            "FieldValueRequired"
                | "FieldValueNotSupported"
                | "FieldValueTypeInvalid"
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
        let subject = Subject {
            kind: if is_other { found } else { &kind.kind },
            ..kind.subject(object::name(object))
        };
        return Err(Refusal::invalid(subject, &causes));
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

/// Metadata and schema.
fn check_fields(door: &Door, object: &Value, old: Option<&Value>, causes: &mut Vec<Cause>) {
    let kind = &*door.kind;
    rules::check_metadata(kind, object, causes);
    if let Some(old) = old {
        rules::check_kept(old, object, causes);
        // A server looks twice, and says so twice.
        rules::check_kept(old, object, causes);
    }
    let status = object.get("status");
    if door.subresource == Subresource::Status && status.is_some_and(Value::is_null) {
        // What is null there is not looked at.
        let mut rest = object.clone();
        object::fields(&mut rest).remove("status");
        schema::validate(&kind.schema, &rest, old, "", causes);
    } else {
        schema::validate(&kind.schema, object, old, "", causes);
    }
    if door.subresource == Subresource::Status {
        causes.iter_mut().for_each(Cause::shorten_to_status);
    }
    if kind.origin == Origin::Crd
        && let Some(scale) = &kind.scale
    {
        scale.check(object, causes);
    }
    if kind.origin == Origin::Crd {
        schema::validate_lists(&kind.schema, object, "", causes);
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
        let before = bare(&object);
        show(&declared, &mut object);
        store.reread(&id, &object, before);
    }
    store.add_kind(Arc::new(declared));
}
