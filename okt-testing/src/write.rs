//! This file creates and updates objects: every rule between what a client sends and what is kept.

use std::sync::Arc;

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Map, Value, json};

use crate::{
    apply::{self, Manager, Scene},
    cel, crd, delete, event,
    kind::{Kind, KindId, Origin},
    object,
    refusal::{Cause, Refusal},
    rules, schema,
    store::{Key, Store},
};

/// An object of more bytes does not fit into etcd.
const SIZE_LIMIT: usize = 1_572_864;

/// How a write comes in.
#[derive(Debug)]
pub(crate) struct Door {
    pub(crate) kind: Arc<Kind>,
    pub(crate) subresource: Subresource,
    pub(crate) manager: Manager,
    pub(crate) dry_run: bool,
    pub(crate) unknown_fields: UnknownFields,
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
    pub(crate) object: Arc<Value>,
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

    pub(crate) fn check(&self, kind: &Kind, object: &Value) -> Result<(), Refusal> {
        let subject = kind.subject(object::name(object));
        let found = object::uid(object);
        if !self.uid.is_empty() && self.uid != found {
            let why = format!(
                "Precondition failed: UID in precondition: {}, UID in object meta: {found}",
                self.uid
            );
            return Err(Refusal::conflict(subject, &why));
        }
        if matches!(self.version.as_str(), "" | "0") || self.version == object::version(object) {
            Ok(())
        } else {
            Err(Refusal::stale(subject))
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
    if !object::version(&body).is_empty() {
        return Err(Refusal::bad_request(
            "resourceVersion should not be set on objects to be created",
        ));
    }
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
    let object = finish_create(store, door, body)?;
    Ok(Written {
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
    let name = object::name(&body);
    if !name.is_empty() && name != key.name {
        return Err(Refusal::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            key.name
        )));
    }
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
        return Err(Refusal::invalid(kind.subject(&key.name), &[cause]));
    }
    precondition.check(kind, &old)?;
    update(store, door, &old, body)
}

/// Writes a new state of an object that is there, by any way but server-side apply.
pub(crate) fn update(
    store: &mut Store,
    door: &Door,
    old: &Arc<Value>,
    mut new: Value,
) -> Result<Written, Refusal> {
    let kind = &*door.kind;
    let warnings = clean(door, &mut new)?;
    isolate(kind, door.subresource, old, &mut new);
    let now = store.clock.text();
    let api_version = kind.api_version();
    let scene = scene(kind, &api_version, &now);
    apply::account(scene, Some(old), &mut new, &door.manager);
    let object = finish_update(store, door, old, new)?;
    Ok(Written {
        object,
        created: false,
        warnings,
    })
}

/// Applies a configuration, and creates the object where there is none.
pub(crate) fn apply(
    store: &mut Store,
    door: &Door,
    key: &Key,
    mut config: Value,
    force: bool,
) -> Result<Written, Refusal> {
    let kind = &*door.kind;
    if object::at(&config, &["metadata", "managedFields"]).is_some_and(|list| !list.is_null()) {
        return Err(Refusal::bad_request("metadata.managedFields must be nil"));
    }
    let name = object::name(&config);
    if !name.is_empty() && name != key.name {
        return Err(Refusal::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            key.name
        )));
    }
    object::metadata(&mut config).insert("name".to_owned(), key.name.clone().into());
    place(kind, &key.namespace, &mut config)?;
    let precondition = Precondition::of(&config);
    let old = current(store, kind, key);
    if let Some(old) = &old {
        precondition.check(kind, old)?;
    } else {
        if door.subresource != Subresource::None {
            return Err(Refusal::not_found(kind.subject(&key.name)));
        }
        if !matches!(precondition.version.as_str(), "" | "0") || !precondition.uid.is_empty() {
            return Err(Refusal::stale(kind.subject(&key.name)));
        }
    }
    if door.subresource == Subresource::Scale {
        return Err(Refusal::not_served("server-side apply of a scale"));
    }
    let now = store.clock.text();
    let api_version = kind.api_version();
    let scene = scene(kind, &api_version, &now);
    let mut new = apply::apply(scene, old.as_deref(), &config, &door.manager, force)?;
    let metadata = object::metadata(&mut new);
    metadata.insert("name".to_owned(), key.name.clone().into());
    place(kind, &key.namespace, &mut new)?;
    let warnings = clean(door, &mut new)?;
    match old {
        Some(old) => {
            isolate(kind, door.subresource, &old, &mut new);
            let object = finish_update(store, door, &old, new)?;
            Ok(Written {
                object,
                created: false,
                warnings,
            })
        }
        None => Ok(Written {
            object: finish_create(store, door, new)?,
            created: true,
            warnings,
        }),
    }
}

/// The object as this kind shows it.
pub(crate) fn current(store: &Store, kind: &Kind, key: &Key) -> Option<Arc<Value>> {
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

fn scene<'a>(kind: &'a Kind, api_version: &'a str, now: &'a str) -> Scene<'a> {
    Scene {
        schema: &kind.schema,
        api_version,
        has_status: kind.has_status,
        now,
    }
}

/// Puts an object where the path says it is.
fn place(kind: &Kind, namespace: &str, object: &mut Value) -> Result<(), Refusal> {
    let given = object::namespace(object);
    if !given.is_empty() && given != namespace && kind.namespaced {
        return Err(Refusal::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    let namespace = kind.namespaced.then(|| namespace.into());
    object::set(object::metadata(object), "namespace", namespace);
    Ok(())
}

/// Drops what the schema does not know and fills in what it gives.
fn clean(door: &Door, object: &mut Value) -> Result<Vec<String>, Refusal> {
    let kind = &*door.kind;
    let unknown = schema::prune(&kind.schema, object);
    if kind.origin == Origin::BuiltIn {
        drop_nulls(object);
    }
    if kind.is("", "secrets") {
        encode_strings(object);
    }
    schema::apply_defaults(&kind.schema, object);
    if unknown.is_empty() || door.manager.operation == apply::Operation::Apply {
        return Ok(Vec::new());
    }
    let found: Vec<_> = unknown
        .iter()
        .map(|path| format!("unknown field \"{path}\""))
        .collect();
    match door.unknown_fields {
        UnknownFields::Ignore => Ok(Vec::new()),
        UnknownFields::Warn => Ok(found),
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
            let status = object::fields(new).remove("status");
            let entries = object::at(new, &["metadata", "managedFields"]).cloned();
            *new = old.clone();
            object::set(object::fields(new), "status", status);
            if let Some(entries) = entries {
                object::metadata(new).insert("managedFields".to_owned(), entries);
            }
        }
        Subresource::None | Subresource::Scale => {}
    }
}

fn finish_create(store: &mut Store, door: &Door, mut object: Value) -> Result<Arc<Value>, Refusal> {
    let kind = &*door.kind;
    let name = object::name(&object).to_owned();
    let namespace = object::namespace(&object).to_owned();
    check_namespace(store, kind, &namespace, &name)?;
    if kind.origin == Origin::Crd {
        delete::check_not_terminating(store, kind)?;
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
    // What the schema gives to a status is there from the start.
    schema::apply_defaults(&kind.schema, &mut object);
    let declared = initialise(kind, &mut object, &now)?;
    check(kind, &object, None)?;
    let mut object = event::absorb(kind, object);
    let id = stored_id(kind);
    let key = Key::of(&object);
    if store.get(&id, &key).is_some() {
        return Err(Refusal::already_exists(kind.subject(&name)));
    }
    if door.dry_run {
        return Ok(event::present(kind, &Arc::new(object)));
    }
    object::metadata(&mut object).remove("resourceVersion");
    let created = store.put(&id, object);
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

fn finish_update(
    store: &mut Store,
    door: &Door,
    old: &Arc<Value>,
    mut new: Value,
) -> Result<Arc<Value>, Refusal> {
    let kind = &*door.kind;
    let name = object::name(old).to_owned();
    keep_metadata(old, &mut new);
    let mut causes = Vec::new();
    rules::check_finalizers(old, &new, &mut causes);
    if !causes.is_empty() {
        return Err(Refusal::invalid(kind.subject(&name), &causes));
    }
    let now = store.clock.text();
    let declared = if kind.is(crd::GROUP, crd::PLURAL) {
        check_crd_update(kind, old, &new)?;
        let declared = crd::read(&new)?;
        crd::establish(&mut new, &now);
        Some(declared)
    } else {
        None
    };
    if kind.has_generation && !kind.same_content(old, &new) {
        raise_generation(&mut new);
    }
    check(kind, &new, Some(old))?;
    if is_same(old, &new) {
        return Ok(Arc::clone(old));
    }
    if door.dry_run {
        return Ok(Arc::new(new));
    }
    let new = event::absorb(kind, new);
    let id = stored_id(kind);
    if object::is_deleting(&new)
        && object::finalizers(&new).is_empty()
        && !kind.is("", "namespaces")
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
    let timeless = |object: &Value| -> Vec<Value> {
        let mut entries = object::at(object, &["metadata", "managedFields"])
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        for entry in &mut entries {
            object::fields(entry).remove("time");
        }
        entries.sort_by_key(Value::to_string);
        entries
    };
    let rest = |object: &Value| -> (Map<String, Value>, Map<String, Value>) {
        let mut fields = object.as_object().cloned().unwrap_or_default();
        let metadata = fields.remove("metadata").unwrap_or_default();
        let mut metadata = metadata.as_object().cloned().unwrap_or_default();
        metadata.remove("managedFields");
        (fields, metadata)
    };
    rest(old) == rest(new) && timeless(old) == timeless(new)
}

/// Metadata, schema and rules, in the order in which the server finds fault.
fn check(kind: &Kind, object: &Value, old: Option<&Value>) -> Result<(), Refusal> {
    let mut causes = Vec::new();
    rules::check_metadata(kind, object, &mut causes);
    schema::validate(&kind.schema, object, old, "", &mut causes);
    let blocking = causes.iter().any(|cause| {
        matches!(
            cause.reason,
            "FieldValueRequired"
                | "FieldValueTypeInvalid"
                | "FieldValueTooLong"
                | "FieldValueTooMany"
        )
    });
    if !blocking {
        cel::check_rules(&kind.schema, object, old, "", &mut causes)?;
    } else if kind.schema.has_rules() {
        causes.push(Cause::invalid(
            "<nil>",
            &"null".into(),
            "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation",
        ));
    }
    if !causes.is_empty() {
        return Err(Refusal::invalid(
            kind.subject(object::name(object)),
            &causes,
        ));
    }
    if object.to_string().len() > SIZE_LIMIT {
        return Err(Refusal::internal("etcdserver: request is too large"));
    }
    Ok(())
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
        (Some(found), _) if object::is_deleting(found) => Err(Refusal::forbidden(
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
        .map(|(_, object)| Value::clone(object))
        .collect();
    for mut object in objects {
        schema::prune(&declared.schema, &mut object);
        schema::apply_defaults(&declared.schema, &mut object);
        store.reread(&id, object);
    }
    store.add_kind(Arc::new(declared));
}
