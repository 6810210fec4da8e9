//! Converts objects between the stored version and the requested one.
//!
//! Without a webhook, a conversion changes only `apiVersion`: it drops fields that the other version's schema does not
//! declare, and fills in no defaults. Most kinds have one version and need no conversion.

use std::sync::Arc;

use serde_json::Value;

use crate::calls::WebhookCalls;
use crate::kind::{KindId, ServedKind};
use crate::refusal::Refusal;
use crate::schema;
use crate::store::{Key, Store};
use crate::stored::StoredObject;
use crate::{event, object};

/// Returns the object in the form of this kind.
///
/// # Errors
/// A webhook is needed, and is yet to be called or has failed. So it is with all functions of this module.
pub(crate) fn current(
    calls: &WebhookCalls,
    store: &Store,
    kind: &Arc<ServedKind>,
    key: &Key,
) -> Result<Option<Arc<StoredObject>>, Refusal> {
    let object = store.get(&stored_id(kind), key);
    object
        .map(|object| present(calls, kind, object))
        .transpose()
}

/// Returns the id under which objects of a kind are stored; both kinds of events share one.
pub(crate) fn stored_id(kind: &ServedKind) -> KindId {
    if event::is_view(kind) {
        event::stored_id()
    } else {
        kind.id()
    }
}

/// Returns the stored object in the version of this kind.
pub(crate) fn present(
    calls: &WebhookCalls,
    kind: &Arc<ServedKind>,
    stored: &Arc<StoredObject>,
) -> Result<Arc<StoredObject>, Refusal> {
    if event::is_view(kind) {
        return Ok(Arc::new(StoredObject::new(&event::present(stored.read()))));
    }
    if kind.siblings.is_empty() {
        return Ok(Arc::clone(stored));
    }
    if let Some(form) = stored.form(kind) {
        return Ok(form);
    }
    let object = stored.read();
    if kind.is_in(api_version(&object)) {
        return Ok(Arc::clone(stored));
    }
    let shown = to_version(calls, kind, object, &kind.api_version())?;
    let shown = Arc::new(StoredObject::new(&shown));
    if kind.conversion.is_some() {
        stored.keep_form(kind, &shown);
    }
    Ok(shown)
}

/// How an object will be shown that is not stored yet. It is found before, because nothing can fail afterwards.
#[derive(Default)]
pub(crate) struct Foreseen(Option<Value>);

impl Foreseen {
    /// Returns how an object will be shown, given as it is to be stored.
    pub(crate) fn of(
        calls: &WebhookCalls,
        kind: &ServedKind,
        object: &Value,
    ) -> Result<Self, Refusal> {
        if kind.conversion.is_none() || kind.is_in(api_version(object)) {
            return Ok(Self(None));
        }
        let shown = to_version(calls, kind, object.clone(), &kind.api_version())?;
        Ok(Self(Some(shown)))
    }

    /// Returns the object as it is shown, now that it is stored, or would be.
    pub(crate) fn show(
        self,
        kind: &Arc<ServedKind>,
        stored: &Arc<StoredObject>,
    ) -> Arc<StoredObject> {
        let Some(mut shown) = self.0 else {
            let calls = WebhookCalls::default();
            return present(&calls, kind, stored).expect("it needs no webhook");
        };
        if stored.version() > 0 {
            object::set_version(&mut shown, stored.version());
        }
        let shown = Arc::new(StoredObject::new(&shown));
        stored.keep_form(kind, &shown);
        shown
    }
}

/// Returns an object of any version in the version to store.
pub(crate) fn absorb(
    calls: &WebhookCalls,
    kind: &ServedKind,
    object: Value,
) -> Result<Value, Refusal> {
    match stored_version(kind, &object) {
        _ if event::is_view(kind) => Ok(event::absorb(object)),
        None => Ok(object),
        Some(version) => to_version(calls, kind, object, &version),
    }
}

/// Does the same for what the server does by itself. It calls no webhook: where one is needed, an object stays as it is.
pub(crate) fn absorb_unasked(kind: &ServedKind, object: Value) -> Value {
    if kind.conversion.is_some() {
        return object;
    }
    absorb(&WebhookCalls::default(), kind, object).expect("it needs no webhook")
}

/// Returns the version in which an object is to be stored, if that is another one.
fn stored_version(kind: &ServedKind, object: &Value) -> Option<String> {
    if kind.siblings.is_empty() {
        return None;
    }
    let found = api_version(object);
    match kind.siblings.iter().find(|sibling| sibling.is_stored) {
        Some(stored) if found != stored.api_version => Some(stored.api_version.clone()),
        None if !kind.is_in(found) => Some(kind.api_version()),
        Some(_) | None => None,
    }
}

/// Returns an object in another version of its kind.
pub(crate) fn to_version(
    calls: &WebhookCalls,
    kind: &ServedKind,
    mut object: Value,
    version: &str,
) -> Result<Value, Refusal> {
    if let Some(webhook) = &kind.conversion {
        object = webhook.convert(calls, &object, version)?;
    } else {
        object::fields(&mut object).insert("apiVersion".to_owned(), version.into());
    }
    if let Some(schema) = kind.schema_of(version) {
        schema::prune(schema, &mut object);
        schema::drop_nulls(schema, &mut object);
    }
    Ok(object)
}

/// Returns the stored form of an object that a kind shows like this.
pub(crate) fn stored_form(store: &Store, kind: &ServedKind, shown: &Value) -> Value {
    if event::is_view(kind) {
        return event::absorb(shown.clone());
    }
    if kind.siblings.is_empty() {
        return shown.clone();
    }
    let stored = store.get(&stored_id(kind), &Key::of(shown));
    stored.map_or_else(|| shown.clone(), |stored| stored.read())
}

pub(crate) fn api_version(object: &Value) -> &str {
    object::text(object, &["apiVersion"])
}
