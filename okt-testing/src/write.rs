//! This file creates and updates objects: every rule between what a client sends and what is kept.

mod finish;

pub(crate) use self::finish::raise_generation;

use std::{mem, sync::Arc};

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Map, Value, json};

use self::finish::{commit_update, finish_create, finish_update};
use crate::{
    apply::{self, Manager, Scene},
    builtin, event,
    kind::{Kind, KindId, Origin},
    object,
    refusal::{Cause, Refusal, Subject},
    schema,
    store::{Key, Store},
    stored::Stored,
};

/// How a write comes in.
#[derive(Debug)]
pub(crate) struct Door {
    pub(crate) kind: Arc<Kind>,
    pub(crate) subresource: Subresource,
    pub(crate) manager: Manager,
    pub(crate) dry_run: bool,
    /// A patch brings it, and not a whole object.
    pub(crate) is_patch: bool,
    pub(crate) unknown_fields: UnknownFields,
    /// The fields that the body has twice.
    pub(crate) twins: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subresource {
    None,
    Status,
    Scale,
}

/// What is done about fields that the schema does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnknownFields {
    Ignore,
    Warn,
    Refuse,
}

/// What came of a write.
#[derive(Debug)]
pub(crate) struct Written {
    pub(crate) name: String,
    pub(crate) object: Arc<Stored>,
    pub(crate) created: bool,
    pub(crate) warnings: Vec<String>,
}

/// What a PUT or a patch asks of the object before it is changed.
#[derive(Debug, Default)]
pub(crate) struct Precondition {
    pub(crate) version: String,
    pub(crate) uid: String,
}

impl Precondition {
    /// Takes the preconditions out of a body.
    pub(crate) fn of(body: &Value) -> Self {
        Self {
            version: object::version(body).to_owned(),
            uid: object::uid(body).to_owned(),
        }
    }

    /// Holds it against the object of a PUT.
    fn check_put(&self, kind: &Kind, dry_run: bool, object: &Value) -> Result<(), Refusal> {
        let found = object::uid(object);
        if !self.uid.is_empty() && self.uid != found {
            let (group, plural) = (&kind.group, &kind.plural);
            let name = object::name(object);
            let namespace = match object::namespace(object) {
                "" => String::new(),
                namespace => format!("{namespace}/"),
            };
            // A dry run does not come as far as the storage.
            let root = if dry_run { "" } else { "/registry" };
            let group = match kind.origin {
                Origin::Crd => format!("/{group}"),
                Origin::BuiltIn => String::new(),
            };
            let why = format!(
                "StorageError: invalid object, Code: 4, Key: {root}{group}/{plural}/{namespace}{name}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: {}, UID in object meta: {found}",
                self.uid
            );
            return Err(Refusal::conflict(kind.subject(name), &why));
        }
        self.check_version(kind, object)
    }

    /// Holds it against the object of a deletion.
    pub(crate) fn check_delete(&self, kind: &Kind, object: &Value) -> Result<(), Refusal> {
        let (uid, version) = (object::uid(object), object::version(object));
        let why = if !self.uid.is_empty() && self.uid != uid {
            format!(
                "the UID in the precondition ({}) does not match the UID in record ({uid}). The object might have been deleted and then recreated",
                self.uid
            )
        } else if !self.version.is_empty() && self.version != version {
            format!(
                "the ResourceVersion in the precondition ({}) does not match the ResourceVersion in record ({version}). The object might have been modified",
                self.version
            )
        } else {
            return Ok(());
        };
        // Here a server names the kind where it else names the resource.
        let subject = Subject {
            plural: &kind.kind,
            ..kind.subject(object::name(object))
        };
        Err(Refusal::conflict(subject, &why))
    }

    /// Holds it against the object of a patch, where the uid is a field like others.
    pub(crate) fn check_version(&self, kind: &Kind, object: &Value) -> Result<(), Refusal> {
        if matches!(self.version.as_str(), "" | "0") || self.version == object::version(object) {
            Ok(())
        } else {
            Err(Refusal::stale(kind.subject(object::name(object))))
        }
    }
}

/// Creates an object in a namespace (empty for kinds of the cluster).
pub(crate) fn create(
    store: &mut Store,
    door: &Door,
    namespace: &str,
    mut body: Value,
) -> Result<Written, Refusal> {
    let kind = &*door.kind;
    place(kind, namespace, &mut body)?;
    let metadata = object::metadata(&mut body);
    let generate = object::text(&json!(metadata), &["generateName"]).to_owned();
    if !metadata.contains_key("name") && !generate.is_empty() {
        let name = format!("{generate}{}", store.new_suffix());
        metadata.insert("name".to_owned(), name.into());
    }
    let warnings = clean(door, &mut body)?;
    let now = store.clock.text();
    apply::account(
        scene(kind, &kind.api_version(), &now),
        None,
        &mut body,
        &door.manager,
    );
    let name = object::name(&body).to_owned();
    let object = finish_create(store, door, body).map_err(|refusal| refusal.warned(&warnings))?;
    Ok(Written {
        name,
        object,
        created: true,
        warnings,
    })
}

/// Replaces an object.
pub(crate) fn replace(
    store: &mut Store,
    door: &Door,
    key: &Key,
    mut body: Value,
) -> Result<Written, Refusal> {
    let kind = &*door.kind;
    check_address(kind, key, &body)?;
    object::metadata(&mut body).insert("name".to_owned(), key.name.clone().into());
    place(kind, &key.namespace, &mut body)?;
    let Some(old) = current(store, kind, key) else {
        if kind.creates_on_update && door.subresource == Subresource::None {
            object::metadata(&mut body).remove("resourceVersion");
            return create(store, door, &key.namespace, body);
        }
        return Err(Refusal::not_found(kind.subject(&key.name)));
    };
    let precondition = Precondition::of(&body);
    if !kind.updates_unconditionally && matches!(precondition.version.as_str(), "" | "0") {
        let cause = Cause::invalid(
            "metadata.resourceVersion",
            &0.into(),
            "must be specified for an update",
        );
        // Here a server names the resource where it else names the kind.
        let subject = Subject {
            kind: &kind.plural,
            ..kind.subject(&key.name)
        };
        return Err(Refusal::invalid(subject, &[cause]));
    }
    let old = old.read();
    precondition
        .check_put(kind, door.dry_run, &old)
        .map_err(|refusal| warn(door, &body, refusal))?;
    update(store, door, &old, body)
}

/// Writes a new state of an object that is there, by any way but server-side apply.
pub(crate) fn update(
    store: &mut Store,
    door: &Door,
    old: &Value,
    mut new: Value,
) -> Result<Written, Refusal> {
    let kind = &*door.kind;
    let warnings = match door.subresource {
        // Of a scale there is nothing to clean but the object that was there before.
        Subresource::Scale => Vec::new(),
        Subresource::None | Subresource::Status => clean(door, &mut new)?,
    };
    let now = store.clock.text();
    let api_version = kind.api_version();
    let scene = scene(kind, &api_version, &now);
    match (door.subresource, &kind.scale) {
        (Subresource::Scale, Some(scale)) => {
            apply::account_scale(scene, old, &mut new, &door.manager, &scale.spec_replicas);
        }
        _ => apply::account(scene, Some(old), &mut new, &door.manager),
    }
    isolate(kind, door.subresource, old, &mut new);
    let warned = |refusal: Refusal| refusal.warned(&warnings);
    let changes = finish_update(door, old, &mut new, &now).map_err(warned)?;
    let object = commit_update(store, door, old, &mut new, changes).map_err(warned)?;
    Ok(Written {
        name: object::name(old).to_owned(),
        object,
        created: false,
        warnings,
    })
}

/// An object at a moment: what a write is thought through on.
#[derive(Debug)]
pub(crate) struct Moment {
    stored: Option<Arc<Stored>>,
    now: String,
}

impl Moment {
    pub(crate) fn of(store: &Store, kind: &Kind, key: &Key) -> Self {
        Self {
            stored: store.get(&stored_id(kind), key).cloned(),
            now: store.clock.text(),
        }
    }

    /// Whether the object and its kind are still what they were.
    pub(crate) fn holds(&self, store: &Store, kind: &Arc<Kind>, key: &Key) -> bool {
        let same_kind = store
            .kind(&kind.id())
            .is_some_and(|now| Arc::ptr_eq(now, kind));
        same_kind
            && match (&self.stored, store.get(&stored_id(kind), key)) {
                (Some(then), Some(now)) => Arc::ptr_eq(then, now),
                (then, now) => then.is_none() && now.is_none(),
            }
    }
}

/// A write that only has to be committed, on the moment that it was thought through on.
#[derive(Debug)]
pub(crate) struct Draft {
    name: String,
    warnings: Vec<String>,
    /// None for an object that is to be created.
    old: Option<Value>,
    new: Value,
    changes: bool,
}

impl Draft {
    /// Commits it; the moment still holds.
    ///
    /// What is left of it may be dropped when the store is free for others again.
    pub(crate) fn commit(&mut self, store: &mut Store, door: &Door) -> Result<Written, Refusal> {
        let object = match &self.old {
            Some(old) => commit_update(store, door, old, &mut self.new, self.changes)?,
            None => finish_create(store, door, mem::take(&mut self.new))?,
        };
        Ok(Written {
            name: mem::take(&mut self.name),
            object,
            created: self.old.is_none(),
            warnings: mem::take(&mut self.warnings),
        })
    }
}

/// Applies a configuration, and creates the object where there is none.
pub(crate) fn apply(
    store: &mut Store,
    door: &Door,
    key: &Key,
    config: &Value,
    force: bool,
) -> Result<Written, Refusal> {
    let moment = Moment::of(store, &door.kind, key);
    draft_apply(&moment, door, key, config, force)?.commit(store, door)
}

/// Thinks an apply through, which is most of its work and needs no store.
pub(crate) fn draft_apply(
    moment: &Moment,
    door: &Door,
    key: &Key,
    config: &Value,
    force: bool,
) -> Result<Draft, Refusal> {
    let kind = &*door.kind;
    let name = object::name(config).to_owned();
    let precondition = Precondition::of(config);
    let old = moment.stored.as_ref();
    let old = old.map(|old| event::present(kind, old).read());
    if old.is_none() && door.subresource != Subresource::None {
        return Err(Refusal::not_found(kind.subject(&key.name)));
    }
    if object::at(config, &["metadata", "managedFields"]).is_some_and(|list| !list.is_null()) {
        return Err(Refusal::bad_request("metadata.managedFields must be nil"));
    }
    if door.subresource == Subresource::Scale {
        return Err(Refusal::not_served("server-side apply of a scale"));
    }
    let api_version = kind.api_version();
    let scene = scene(kind, &api_version, &moment.now);
    let mut new = apply::apply(scene, old.as_ref(), config, &door.manager, force)?;
    check_address(kind, key, config)?;
    if old.is_none() && name.is_empty() {
        return Err(Refusal::bad_request(format!(
            "the name of the object ({} based on URL) was undeterminable: name must be provided",
            key.name
        )));
    }
    // A version is no obstacle to a creation, as on the server; a uid is.
    if old.is_none() && !precondition.uid.is_empty() {
        let why = format!(
            "uid mismatch: the provided object specified uid {}, and no existing object was found",
            precondition.uid
        );
        return Err(Refusal::conflict(kind.subject(&key.name), &why));
    }
    let metadata = object::metadata(&mut new);
    if !precondition.uid.is_empty() {
        // It is a field like others here, which nobody may change.
        metadata.insert("uid".to_owned(), precondition.uid.clone().into());
    }
    metadata.insert("name".to_owned(), key.name.clone().into());
    place(kind, &key.namespace, &mut new)?;
    let warnings = clean(door, &mut new)?;
    let mut changes = true;
    if let Some(old) = &old {
        precondition.check_version(kind, old)?;
        isolate(kind, door.subresource, old, &mut new);
        changes = finish_update(door, old, &mut new, &moment.now)?;
    }
    Ok(Draft {
        name: key.name.clone(),
        warnings,
        old,
        new,
        changes,
    })
}

/// The object as this kind shows it.
pub(crate) fn current(store: &Store, kind: &Kind, key: &Key) -> Option<Arc<Stored>> {
    let object = store.get(&stored_id(kind), key)?;
    Some(event::present(kind, object))
}

/// Where the objects of a kind are kept: the two kinds of events are one.
pub(crate) fn stored_id(kind: &Kind) -> KindId {
    if event::is_view(kind) {
        event::stored_id()
    } else {
        kind.id()
    }
}

/// What is shown of what is stored.
fn show(kind: &Kind, object: &mut Value) {
    if kind.origin == Origin::Crd {
        schema::prune(&kind.schema, object);
        schema::drop_nulls(&kind.schema, object);
    }
    object::tidy_metadata(object);
    schema::apply_defaults(&kind.schema, object);
}

fn scene<'a>(kind: &'a Kind, api_version: &'a str, now: &'a str) -> Scene<'a> {
    Scene {
        schema: &kind.schema,
        api_version,
        kind: &kind.kind,
        has_status: kind.has_status,
        built_in: kind.origin == Origin::BuiltIn,
        now,
    }
}

/// Puts an object where the path says it is.
fn place(kind: &Kind, namespace: &str, object: &mut Value) -> Result<(), Refusal> {
    check_namespace(kind, namespace, object)?;
    let namespace = kind.namespaced.then(|| namespace.into());
    object::set(object::metadata(object), "namespace", namespace);
    Ok(())
}

/// Whether an object is the one that the path names, as far as it says.
pub(crate) fn check_address(kind: &Kind, key: &Key, object: &Value) -> Result<(), Refusal> {
    check_namespace(kind, &key.namespace, object)?;
    let name = object::name(object);
    if name.is_empty() || name == key.name {
        return Ok(());
    }
    Err(Refusal::bad_request(format!(
        "the name of the object ({name}) does not match the name on the URL ({})",
        key.name
    )))
}

fn check_namespace(kind: &Kind, namespace: &str, object: &Value) -> Result<(), Refusal> {
    let given = object::namespace(object);
    if !given.is_empty() && given != namespace && kind.namespaced {
        return Err(Refusal::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    Ok(())
}

/// A refusal with the warnings that the body deserves, which a server reads first.
pub(crate) fn warn(door: &Door, body: &Value, refusal: Refusal) -> Refusal {
    match clean(door, &mut body.clone()) {
        Ok(warnings) => refusal.warned(&warnings),
        Err(worse) => worse,
    }
}

/// Drops what the schema does not know and fills in what it gives.
fn clean(door: &Door, object: &mut Value) -> Result<Vec<String>, Refusal> {
    let kind = &*door.kind;
    if kind.origin == Origin::Crd && door.manager.operation == apply::Operation::Apply {
        // What an apply made is checked as it is.
        schema::apply_defaults(&kind.schema, object);
        return Ok(Vec::new());
    }
    let unknown = schema::prune(&kind.schema, object);
    if kind.origin == Origin::BuiltIn {
        schema::nulls_to_texts(&kind.schema, object);
        drop_nulls(object);
    }
    if kind.is("", "secrets") {
        encode_strings(object);
    }
    if kind.origin == Origin::BuiltIn {
        schema::drop_empty(&kind.schema, object);
    }
    schema::drop_nulls(&kind.schema, object);
    object::tidy_metadata(object);
    if kind.origin == Origin::BuiltIn {
        builtin::fill(&kind.kind, object);
    }
    schema::apply_defaults(&kind.schema, object);
    if (unknown.is_empty() && door.twins.is_empty())
        || door.manager.operation == apply::Operation::Apply
    {
        return Ok(Vec::new());
    }
    let twins = door.twins.iter();
    let twins = twins.map(|path| format!("duplicate field \"{path}\""));
    let unknown = unknown
        .iter()
        .map(|path| format!("unknown field \"{path}\""));
    let found: Vec<_> = twins.chain(unknown).collect();
    match door.unknown_fields {
        UnknownFields::Ignore => Ok(Vec::new()),
        UnknownFields::Warn => Ok(found),
        UnknownFields::Refuse if door.is_patch => {
            let why = format!("strict decoding error: {}", found.join(", "));
            Err(Refusal::undecodable_patch(object, &why))
        }
        UnknownFields::Refuse => Err(Refusal::bad_request(format!(
            "{} in version \"{}\" cannot be handled as a {}: strict decoding error: {}",
            kind.kind,
            kind.version,
            kind.kind,
            found.join(", ")
        ))),
    }
}

/// The types of built-in kinds know no nulls.
fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// `stringData` is a way to write `data`, and is not kept.
fn encode_strings(secret: &mut Value) {
    let Some(Value::Object(strings)) = object::fields(secret).remove("stringData") else {
        return;
    };
    for (key, value) in strings {
        if let Value::String(text) = value {
            object::put(secret, &["data", &key], BASE64_STANDARD.encode(text).into());
        }
    }
}

/// Keeps what this endpoint does not write as it was.
fn isolate(kind: &Kind, subresource: Subresource, old: &Value, new: &mut Value) {
    match subresource {
        Subresource::None if kind.has_status => {
            let status = old.get("status").cloned();
            object::set(object::fields(new), "status", status);
        }
        Subresource::Status => {
            if let Some(metadata) = old.get("metadata") {
                let entries = object::metadata(new).remove("managedFields");
                take_over(metadata, object::metadata(new), &["managedFields"]);
                object::set(object::metadata(new), "managedFields", entries);
            }
            take_over(old, object::fields(new), &["metadata", "status"]);
        }
        Subresource::None | Subresource::Scale => {}
    }
}

/// Makes all fields the old ones but those left out; most are so already, and are not copied.
fn take_over(old: &Value, new: &mut Map<String, Value>, left_out: &[&str]) {
    let left_out = |key: &str| left_out.contains(&key);
    new.retain(|key, _| left_out(key) || old.get(key).is_some());
    for (key, value) in old.as_object().into_iter().flatten() {
        if !left_out(key) && new.get(key) != Some(value) {
            new.insert(key.clone(), value.clone());
        }
    }
}
