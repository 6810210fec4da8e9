//! Converts objects between the stored version and the requested one.
//!
//! A conversion changes only `apiVersion`: it drops fields that the other version's schema does not declare, and fills
//! in no defaults. Most kinds have one version and need no conversion.

use std::sync::Arc;

use serde_json::Value;

use crate::api::kind::{KindId, ServedKind};
use crate::api::schema::{self, Schema};
use crate::api::store::{Key, Store};
use crate::api::stored::StoredObject;
use crate::api::{event, object};

/// Returns the object in the form of this kind.
pub(crate) fn current(store: &Store, kind: &ServedKind, key: &Key) -> Option<Arc<StoredObject>> {
    let object = store.get(&stored_id(kind), key)?;
    Some(present(kind, object))
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
pub(crate) fn present(kind: &ServedKind, stored: &Arc<StoredObject>) -> Arc<StoredObject> {
    if event::is_view(kind) {
        return Arc::new(StoredObject::new(&event::present(stored.read())));
    }
    if kind.siblings.is_empty() {
        return Arc::clone(stored);
    }
    let mut shown = stored.read();
    if kind.is_in(api_version(&shown)) {
        return Arc::clone(stored);
    }
    rename(&mut shown, kind.api_version(), &kind.schema);
    Arc::new(StoredObject::new(&shown))
}

/// Returns an object of any version in the version to store.
pub(crate) fn absorb(kind: &ServedKind, mut object: Value) -> Value {
    if event::is_view(kind) {
        return event::absorb(object);
    }
    if kind.siblings.is_empty() {
        return object;
    }
    match kind.siblings.iter().find(|sibling| sibling.is_stored) {
        Some(stored) if api_version(&object) != stored.api_version => {
            rename(&mut object, stored.api_version.clone(), &stored.schema);
        }
        None if !kind.is_in(api_version(&object)) => {
            rename(&mut object, kind.api_version(), &kind.schema);
        }
        Some(_) | None => {}
    }
    object
}

/// Returns the stored form of an object that a kind shows like this.
pub(crate) fn stored_form(store: &Store, kind: &ServedKind, shown: &Value) -> Value {
    if kind.siblings.is_empty() {
        return absorb(kind, shown.clone());
    }
    let stored = store.get(&stored_id(kind), &Key::of(shown));
    stored.map_or_else(|| shown.clone(), |stored| stored.read())
}

pub(crate) fn api_version(object: &Value) -> &str {
    object::text(object, &["apiVersion"])
}

fn rename(object: &mut Value, api_version: String, schema: &Schema) {
    object::fields(object).insert("apiVersion".to_owned(), api_version.into());
    schema::prune(schema, object);
    schema::drop_nulls(schema, object);
}
