//! Describes a kind of object that the API serves.

use serde_json::{Map, Value, json};

use crate::causes::Causes;
use crate::client_config::ConversionWebhook;
use crate::object;
use crate::refusal::{Refusal, Subject};
use crate::schema::{Schema, SharedSchema};
use crate::table::Column;
use crate::types::GoType;

/// One version of a kind, built in or declared by a CRD.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "what a kind has or has not is independent, and the names are those of a CRD"
)]
pub(crate) struct ServedKind {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) list_kind: String,
    pub(crate) plural: String,
    pub(crate) singular: String,
    pub(crate) short_names: Vec<String>,
    pub(crate) categories: Vec<String>,
    pub(crate) namespaced: bool,
    pub(crate) origin: Origin,
    /// The Go type of a kind without a CRD.
    pub(crate) go_type: Option<&'static GoType>,
    pub(crate) schema: SharedSchema,
    /// The `OpenAPI` document of the kind, unchanged.
    pub(crate) openapi: Value,
    pub(crate) has_status: bool,
    pub(crate) scale: Option<Scale>,
    /// Its objects are answered and not stored.
    pub(crate) is_action: bool,
    /// The API counts `metadata.generation`.
    pub(crate) has_generation: bool,
    /// The paths that field selectors may name in addition to name and namespace.
    pub(crate) selectable: Vec<String>,
    pub(crate) columns: Vec<Column>,
    /// A PUT needs no resourceVersion.
    pub(crate) updates_unconditionally: bool,
    /// The answer to a deletion is the deleted object.
    pub(crate) returns_deleted: bool,
    /// A PUT of a missing object creates it.
    pub(crate) creates_on_update: bool,
    /// The schema has changed, so stored objects may not fit it.
    pub(crate) was_changed: bool,
    /// Requests may use this version.
    pub(crate) is_served: bool,
    /// Objects are stored in this version.
    pub(crate) is_stored: bool,
    /// The warning that clients of this version get.
    pub(crate) deprecation: Option<String>,
    /// The other versions; most kinds have none.
    pub(crate) siblings: Vec<Sibling>,
    /// What converts its objects between versions; without one only `apiVersion` changes.
    pub(crate) conversion: Option<ConversionWebhook>,
}

/// Another version of a kind, in which its objects may be stored.
#[derive(Clone, Debug)]
pub(crate) struct Sibling {
    pub(crate) api_version: String,
    pub(crate) schema: SharedSchema,
    /// The path of the replicas in this version.
    pub(crate) replicas: Option<Vec<String>>,
    pub(crate) is_stored: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    BuiltIn,
    Crd,
}

/// The paths of the numbers of the scale subresource (e.g. `["spec", "replicas"]`).
#[derive(Clone, Debug)]
pub(crate) struct Scale {
    pub(crate) spec_replicas: Vec<String>,
    pub(crate) status_replicas: Vec<String>,
    pub(crate) selector: Option<Vec<String>>,
}

/// The identity of a kind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct KindId {
    pub(crate) group: String,
    pub(crate) plural: String,
}

impl KindId {
    pub(crate) fn new(group: &str, plural: &str) -> Self {
        Self {
            group: group.to_owned(),
            plural: plural.to_owned(),
        }
    }
}

impl ServedKind {
    pub(crate) fn id(&self) -> KindId {
        KindId::new(&self.group, &self.plural)
    }

    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// Returns the schema of a version, if the kind has it.
    pub(crate) fn schema_of(&self, api_version: &str) -> Option<&Schema> {
        if self.is_in(api_version) {
            return Some(&self.schema);
        }
        self.sibling(api_version).map(|sibling| &*sibling.schema)
    }

    pub(crate) fn sibling(&self, api_version: &str) -> Option<&Sibling> {
        let mut siblings = self.siblings.iter();
        siblings.find(|sibling| sibling.api_version == api_version)
    }

    /// Whether this is the `apiVersion` of this version (e.g. `demo.okt.dev/v1`).
    pub(crate) fn is_in(&self, api_version: &str) -> bool {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        group == self.group && version == self.version
    }

    pub(crate) fn subject<'a>(&'a self, name: &'a str) -> Subject<'a> {
        Subject {
            group: &self.group,
            kind: &self.kind,
            plural: &self.plural,
            name,
        }
    }

    /// The refusal of a body that is no object of this kind.
    pub(crate) fn cannot_handle(&self, why: &str) -> Refusal {
        let (kind, version) = (&self.kind, &self.version);
        Refusal::bad_request(format!(
            "{kind} in version \"{version}\" cannot be handled as a {kind}: {why}"
        ))
    }

    /// Returns an object of which nothing is set.
    pub(crate) fn blank(&self) -> Value {
        self.go_type.map_or_else(|| json!({}), GoType::blank)
    }

    pub(crate) fn is_built_in(&self) -> bool {
        self.origin == Origin::BuiltIn
    }

    pub(crate) fn is(&self, group: &str, plural: &str) -> bool {
        self.group == group && self.plural == plural
    }

    /// Whether a change of this field raises the generation: all fields but metadata, and but the status if it is a
    /// subresource.
    pub(crate) fn counts(&self, key: &str) -> bool {
        match key {
            "metadata" | "apiVersion" | "kind" => false,
            "status" => !self.has_status,
            _ => true,
        }
    }

    /// Refuses replicas such as `1.0`, which a server accepts in any other field.
    pub(crate) fn check_floats(&self, object: &Value, is_status: bool) -> Result<(), Refusal> {
        let Some(scale) = self.scale.as_ref().filter(|_| !self.is_built_in()) else {
            return Ok(());
        };
        let causes = scale.check_floats(object, is_status);
        if causes.is_empty() {
            return Ok(());
        }
        Err(Refusal::invalid(
            self.subject(object::name(object)),
            &causes,
        ))
    }

    /// Whether two objects are equal in all fields that raise the generation.
    pub(crate) fn same_content(&self, a: &Value, b: &Value) -> bool {
        let counts = |key: &String| self.counts(key);
        let same = |a: &Map<String, Value>, b: &Map<String, Value>| {
            a.iter()
                .filter(|(key, _)| counts(key))
                .eq(b.iter().filter(|(key, _)| counts(key)))
        };
        match (a.as_object(), b.as_object()) {
            (Some(a), Some(b)) => same(a, b),
            _ => a == b,
        }
    }
}

impl Scale {
    /// Checks the replicas and the selector of an object.
    pub(crate) fn check(&self, object: &Value, causes: &mut Causes) {
        self.check_selector(object, causes);
        for path in [&self.spec_replicas, &self.status_replicas] {
            if let Some(detail) = blocked(object, path) {
                let field = format!(".{}", path.join("."));
                causes.invalid(field, 0, &detail);
                continue;
            }
            let Some(found) = walk(object, path) else {
                continue;
            };
            let field = format!(".{}", path.join("."));
            match found.as_i64() {
                Some(0..) => {}
                Some(_) => {
                    causes.invalid(field, found, "should be a non-negative integer");
                }
                None => refuse_type(field, found, causes),
            }
        }
    }

    /// Checks that an endpoint does not write numbers such as `1.0`, which a server takes for other integers.
    fn check_floats(&self, object: &Value, is_status: bool) -> Causes {
        let written = [&self.spec_replicas, &self.status_replicas]
            .into_iter()
            .filter(|path| path.first().is_some_and(|key| key == "status") == is_status);
        let mut causes = Causes::default();
        for path in written {
            if let Some(found) = walk(object, path)
                && found.is_f64()
                && found.as_f64().is_some_and(|float| float.fract() == 0.0)
            {
                refuse_type(format!(".{}", path.join(".")), found, &mut causes);
            }
        }
        causes
    }

    /// Checks the selector of an object.
    fn check_selector(&self, object: &Value, causes: &mut Causes) {
        let Some(path) = &self.selector else { return };
        let field = format!(".{}", path.join("."));
        if let Some(detail) = blocked(object, path) {
            causes.invalid(field, "", &detail);
            return;
        }
        let Some(found) = walk(object, path).filter(|found| !found.is_string()) else {
            return;
        };
        let detail = format!(
            "{field} accessor error: {} is of the type {}, expected string",
            in_go(found),
            type_in_go(found)
        );
        causes.invalid(field, "", &detail);
    }

    /// Whether an object has replicas to scale.
    pub(crate) fn is_set(&self, object: &Value) -> bool {
        walk(object, &self.spec_replicas).is_some_and(Value::is_i64)
    }

    /// Returns the error of a server for an object without replicas.
    pub(crate) fn unset(&self) -> Refusal {
        let path = self.spec_replicas.join(".");
        Refusal::internal_error(&format!(
            "the spec replicas field \".{path}\" does not exist"
        ))
    }

    /// Returns the scale of an object.
    pub(crate) fn of(&self, object: &Value) -> Value {
        let number = |path: &[String]| walk(object, path).and_then(Value::as_i64).unwrap_or(0);
        let mut metadata = Map::new();
        for key in [
            "name",
            "namespace",
            "uid",
            "resourceVersion",
            "creationTimestamp",
        ] {
            if let Some(value) = object::at(object, &["metadata", key]) {
                metadata.insert(key.to_owned(), value.clone());
            }
        }
        let mut status = json!({ "replicas": number(&self.status_replicas) });
        let selector = self.selector.as_ref();
        match selector.and_then(|selector| walk(object, selector)) {
            Some(Value::String(text)) if !text.is_empty() => {
                status["selector"] = text.clone().into();
            }
            Some(Value::Object(labels)) => {
                let pairs: Vec<_> = labels
                    .iter()
                    .filter_map(|(key, value)| Some(format!("{key}={}", value.as_str()?)))
                    .collect();
                status["selector"] = pairs.join(",").into();
            }
            _ => {}
        }
        let spec = match number(&self.spec_replicas) {
            0 => json!({}),
            replicas => json!({ "replicas": replicas }),
        };
        json!({
            "kind": "Scale",
            "apiVersion": "autoscaling/v1",
            "metadata": metadata,
            "spec": spec,
            "status": status,
        })
    }
}

/// Adds the error of a server for replicas that are no integer.
fn refuse_type(field: String, found: &Value, causes: &mut Causes) {
    let (shown, kind) = (in_go(found), type_in_go(found));
    let detail = format!("{field} accessor error: {shown} is of the type {kind}, expected int64");
    causes.invalid(field, 0, &detail);
}

/// Returns the error of a server if a value on the path is no object.
fn blocked(object: &Value, path: &[String]) -> Option<String> {
    let (_, parents) = path.split_last()?;
    let mut value = object;
    for key in parents {
        value = value.get(key)?;
        if !value.is_object() && !value.is_null() {
            return Some(format!(
                ".{} accessor error: {} is of the type {}, expected map[string]interface{{}}",
                path.join("."),
                in_go(value),
                type_in_go(value)
            ));
        }
    }
    None
}

/// Returns the Go name of a value's type.
pub(crate) fn type_in_go(value: &Value) -> &'static str {
    match value {
        Value::String(_) => "string",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::Null => "<nil>",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// Formats a value as Go prints it.
pub(crate) fn in_go(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        // Go prints 1.0 as 1, like Rust.
        Value::Number(number) if number.is_f64() => number
            .as_f64()
            .map_or_else(String::new, |float| float.to_string()),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(in_go).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Object(fields) => {
            let fields: Vec<_> = fields
                .iter()
                .map(|(key, value)| format!("{key}:{}", in_go(value)))
                .collect();
            format!("map[{}]", fields.join(" "))
        }
    }
}

fn walk<'a>(object: &'a Value, path: &[String]) -> Option<&'a Value> {
    path.iter().try_fold(object, |value, key| value.get(key))
}
