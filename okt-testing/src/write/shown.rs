//! This file is about objects that show something else than what was written: more, or less.

use std::sync::Arc;

use serde_json::Value;

use super::{Door, Subresource};
use crate::{
    apply::Operation,
    kind::{Kind, Origin},
    object, schema,
    store::Store,
};

/// Makes of an object what is shown of it; if that is not what is written, the latter is returned.
pub(super) fn hide(door: &Door, object: &mut Value) -> Option<Value> {
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
pub(super) fn bare(object: &Value) -> Value {
    let mut bare = object.clone();
    object::metadata(&mut bare).remove("resourceVersion");
    bare
}

/// Shows what is stored through a changed schema.
pub(super) fn reread(store: &mut Store, declared: Kind) {
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

/// What is shown of what is stored.
fn show(kind: &Kind, object: &mut Value) {
    if kind.origin == Origin::Crd {
        schema::prune(&kind.schema, object);
        schema::drop_nulls(&kind.schema, object);
    }
    object::tidy_metadata(object);
    schema::apply_defaults(&kind.schema, object);
}
