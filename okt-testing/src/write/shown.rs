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

/// Makes of an object what is shown of it, and says whether that is not what is written.
pub(super) fn hide(door: &Door, object: &mut Value) -> bool {
    if door.kind.origin == Origin::BuiltIn {
        return schema::nulls_to_texts(&door.kind.schema, object, true);
    }
    // Other ways of writing begin with what is shown already.
    let may_differ = door.manager.operation == Operation::Apply
        || door.subresource == Subresource::Scale
        || object.get("status").is_none();
    if !may_differ {
        return false;
    }
    // They are as large as the rest, and shown as they are.
    let entries = object::metadata(object).remove("managedFields");
    let hides = show(&door.kind, object);
    object::set(object::metadata(object), "managedFields", entries);
    hides
}

/// Shows what is stored through a changed schema.
pub(super) fn reread(store: &mut Store, declared: Kind) {
    let id = declared.id();
    let objects: Vec<Value> = store
        .list(&id, None)
        .map(|(_, object)| object.read())
        .collect();
    for mut object in objects {
        show(&declared, &mut object);
        store.reread(&id, &object);
    }
    store.add_kind(Arc::new(declared));
}

/// Makes of an object what is shown of it, and says whether that is another one.
fn show(kind: &Kind, object: &mut Value) -> bool {
    let mut changed = false;
    if kind.origin == Origin::Crd {
        changed |= schema::prune(&kind.schema, object).changed();
        changed |= schema::drop_nulls(&kind.schema, object);
    }
    changed |= object::tidy_metadata(object);
    changed | schema::apply_defaults(&kind.schema, object)
}
