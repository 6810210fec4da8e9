//! Lists the fields without an owner: those that Kubernetes itself sets, and those that an endpoint ignores.

use serde_json::{Map, Value};

use super::Scene;
use super::fields::{FieldSet, FieldStep};
use crate::{builtin, object};

/// Returns the fields that a writer through this endpoint may own.
pub(super) fn writable(scene: Scene<'_>, subresource: &str, mut set: FieldSet) -> FieldSet {
    let reset: &[&str] = match (subresource, scene.kind.has_status) {
        ("", true) => &["status"],
        ("status", true) if scene.kind.is_built_in() => &["spec"],
        ("status", true) => &["metadata", "spec"],
        _ => &[],
    };
    for key in reset {
        set.cut(&[FieldStep::field(key)]);
    }
    if subresource == "status" && scene.kind.is_built_in() {
        for key in builtin::kept_by_status(&scene.kind.kind) {
            set.cut(&[FieldStep::field("metadata"), FieldStep::field(key)]);
        }
    }
    set
}

/// Returns the set without the fields that have no owner.
pub(super) fn own(mut set: FieldSet) -> FieldSet {
    for key in ["apiVersion", "kind", "metadata"] {
        set.remove(&[FieldStep::field(key)]);
    }
    for key in SYSTEM_FIELDS {
        set.remove(&[FieldStep::field("metadata"), FieldStep::field(key)]);
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

/// Whether a field of the metadata is removed before values are compared and merged.
///
/// The name stays: every configuration sets it, so the metadata of a manager is never empty.
fn is_reserved(key: &str) -> bool {
    key != "name" && SYSTEM_FIELDS.contains(&key)
}

/// Returns a copy of the object without the [reserved](is_reserved) fields.
pub(super) fn strip(object: &Value) -> Value {
    let Value::Object(fields) = object else {
        return object.clone();
    };
    let strip_metadata = |metadata: &Map<String, Value>| {
        let kept = metadata.iter().filter(|(key, _)| !is_reserved(key));
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

/// An object without its [reserved](is_reserved) fields, which are kept apart.
#[derive(Debug)]
pub(crate) struct BareFields {
    pub(super) object: Value,
    reserved: Vec<(&'static str, Value)>,
}

impl BareFields {
    pub(crate) fn of(mut object: Value) -> Self {
        let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
        let reserved = metadata.map(|metadata| {
            let keys = SYSTEM_FIELDS.into_iter().filter(|key| is_reserved(key));
            keys.filter_map(|key| Some((key, metadata.remove(key)?)))
                .collect()
        });
        Self {
            object,
            reserved: reserved.unwrap_or_default(),
        }
    }

    /// The entries of `managedFields`.
    pub(super) fn entries(&self) -> Option<&Value> {
        self.reserved("managedFields")
    }

    fn reserved(&self, wanted: &str) -> Option<&Value> {
        let mut reserved = self.reserved.iter();
        reserved.find_map(|(key, value)| (*key == wanted).then_some(value))
    }

    /// The namespace; empty for cluster-scoped objects.
    pub(super) fn namespace(&self) -> &str {
        let namespace = self.reserved("namespace");
        namespace.and_then(Value::as_str).unwrap_or_default()
    }

    /// Copies the reserved fields to another object, except for `managedFields`, which is written anew.
    pub(super) fn lend(&self, other: &mut Value) {
        for (key, value) in &self.reserved {
            if *key != "managedFields" {
                object::metadata(other).insert((*key).to_owned(), value.clone());
            }
        }
    }

    /// Whether a configuration sets a reserved field to another value than this object has.
    ///
    /// The value is ignored, but the apply counts as a change.
    pub(super) fn differs_in_system(&self, config: &Self) -> bool {
        let mut given = config.reserved.iter();
        given.any(|given| !self.reserved.contains(given))
    }

    /// Returns the object with its reserved fields.
    pub(crate) fn whole(mut self) -> Value {
        for (key, value) in self.reserved {
            object::metadata(&mut self.object).insert(key.to_owned(), value);
        }
        self.object
    }
}
