//! Checks whether a schema is structural, except for the types of its fields.

use std::collections::BTreeSet;

use crate::api::causes::Causes;
use serde_json::{Map, Value};

/// Checks the schema of a whole object.
pub(super) fn check_root(node: &Value, path: &str, causes: &mut Causes) {
    let Some(root) = node.as_object() else { return };
    if has(root, "additionalProperties") {
        causes.forbidden(
            format!("{path}.additionalProperties"),
            "must not be used at the root",
        );
    }
    if flag(root, "nullable") {
        causes.forbidden(
            format!("{path}.nullable"),
            "nullable cannot be true at the root",
        );
    }
    let kind = text(root, "type");
    if !matches!(kind, "" | "object") {
        causes.invalid(format!("{path}.type"), kind, "must be object at the root");
    }
    check_object_fields(root, path, causes);
    walk(root, path, causes);
}

/// Checks `apiVersion`, `kind` and `metadata`, which are implicit and can hardly be restricted.
fn check_object_fields(node: &Map<String, Value>, path: &str, causes: &mut Causes) {
    let Some(Value::Object(properties)) = node.get("properties") else {
        return;
    };
    for (name, wanted) in [
        ("apiVersion", "string"),
        ("kind", "string"),
        ("metadata", "object"),
    ] {
        let Some(property) = properties.get(name).and_then(Value::as_object) else {
            continue;
        };
        let path = format!("{path}.properties[{name}]");
        let kind = text(property, "type");
        if kind != wanted {
            causes.invalid(format!("{path}.type"), kind, &format!("must be {wanted}"));
        }
        if name != "metadata" || kind != wanted {
            continue;
        }
        let Some(Value::Object(fields)) = property.get("properties") else {
            continue;
        };
        if fields
            .keys()
            .any(|field| field != "name" && field != "generateName")
        {
            causes.forbidden(
                path.clone(),
                "must not specify anything other than name and generateName, but metadata is implicitly specified",
            );
        }
        for (field, schema) in fields {
            if schema
                .get("default")
                .is_some_and(|default| !default.is_null())
            {
                causes.forbidden(
                    format!("{path}.properties[{field}].default"),
                    "must not be set in top-level metadata",
                );
            }
        }
    }
}

fn walk(node: &Map<String, Value>, path: &str, causes: &mut Causes) {
    check_node(node, path, causes);
    check_list(node, path, causes);
    if flag(node, "x-kubernetes-embedded-resource") {
        check_embedded(node, path, causes);
    }
    for (key, below) in children(node) {
        walk(below, &format!("{path}.{key}"), causes);
    }
    for (key, below) in junctors(node) {
        let takes_types = flag(node, "x-kubernetes-int-or-string");
        check_within_junctor(below, &format!("{path}.{key}"), takes_types, causes);
    }
}

fn check_node(node: &Map<String, Value>, path: &str, causes: &mut Causes) {
    let mut forbid = |field: &str, detail: &str| {
        causes.forbidden(format!("{path}.{field}"), detail);
    };
    if flag(node, "uniqueItems") {
        forbid(
            "uniqueItems",
            "uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
        );
    }
    let allows_all = node.get("additionalProperties") == Some(&true.into());
    let has_properties =
        matches!(node.get("properties"), Some(Value::Object(fields)) if !fields.is_empty());
    if has_properties && has(node, "additionalProperties") && !allows_all {
        forbid(
            "additionalProperties",
            "additionalProperties and properties are mutual exclusive",
        );
    }
    let preserve = "x-kubernetes-preserve-unknown-fields";
    if node.get(preserve) == Some(&false.into()) {
        causes.invalid(
            format!("{path}.{preserve}"),
            false,
            "must be true or undefined",
        );
    }
    let map_type = text(node, "x-kubernetes-map-type");
    if !map_type.is_empty() {
        require_type(node, "object", "x-kubernetes-map-type", path, causes);
        if !matches!(map_type, "atomic" | "granular") {
            causes.unsupported(
                format!("{path}.x-kubernetes-map-type"),
                map_type,
                &["atomic", "granular"],
            );
        }
    }
}

fn require_type(
    node: &Map<String, Value>,
    wanted: &str,
    because: &str,
    path: &str,
    causes: &mut Causes,
) {
    let kind = text(node, "type");
    let detail = format!("must be {wanted} if {because} is specified");
    if kind.is_empty() {
        causes.required(format!("{path}.type"), &detail);
    } else if kind != wanted {
        causes.invalid(format!("{path}.type"), kind, &detail);
    }
}

fn check_embedded(node: &Map<String, Value>, path: &str, causes: &mut Causes) {
    if !has(node, "properties") && !flag(node, "x-kubernetes-preserve-unknown-fields") {
        causes.required(
            format!("{path}.properties"),
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields",
        );
    }
    let kind = text(node, "type");
    if kind != "object" {
        causes.invalid(
            format!("{path}.type"),
            kind,
            "must be object if x-kubernetes-embedded-resource is true",
        );
    }
    check_object_fields(node, path, causes);
}

/// Checks a list against its list type.
fn check_list(node: &Map<String, Value>, path: &str, causes: &mut Causes) {
    let field = format!("{path}.x-kubernetes-list-type");
    let keys: Vec<&str> = node
        .get("x-kubernetes-list-map-keys")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let list = text(node, "x-kubernetes-list-type");
    if list.is_empty() {
        if !keys.is_empty() {
            let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
            causes.required(field, detail);
        }
        return;
    }
    require_type(node, "array", "x-kubernetes-list-type", path, causes);
    if !matches!(list, "atomic" | "set" | "map") {
        let supported = ["atomic", "set", "map"];
        causes.unsupported(field.clone(), list, &supported);
    }
    if list != "map" && !keys.is_empty() {
        let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
        causes.invalid(field, list, detail);
    }
    let Some(Value::Object(items)) = node.get("items") else {
        return;
    };
    let path = format!("{path}.items");
    if list != "atomic" && flag(items, "nullable") {
        causes.forbidden(
            format!("{path}.nullable"),
            &format!("cannot be nullable when x-kubernetes-list-type is {list}"),
        );
    }
    match list {
        "set" => check_items_of_set(items, &path, causes),
        "map" => check_items_of_map(items, &keys, &path, causes),
        _ => {}
    }
}

fn check_items_of_set(items: &Map<String, Value>, path: &str, causes: &mut Causes) {
    let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
    let list = items.get("x-kubernetes-list-type");
    match text(items, "type") {
        "array" if list.is_some_and(|list| list != "atomic") => {
            causes.invalid(
                format!("{path}.x-kubernetes-list-type"),
                list.unwrap_or(&Value::Null),
                detail,
            );
        }
        "object" if text(items, "x-kubernetes-map-type") != "atomic" => {
            causes.invalid(
                format!("{path}.x-kubernetes-map-type"),
                list.unwrap_or(&Value::Null),
                detail,
            );
        }
        _ => {}
    }
}

fn check_items_of_map(items: &Map<String, Value>, keys: &[&str], path: &str, causes: &mut Causes) {
    let kind = text(items, "type");
    if kind != "object" {
        causes.invalid(
            format!("{path}.type"),
            kind,
            "must be object if parent array's x-kubernetes-list-type is map",
        );
        return;
    }
    let mut seen = BTreeSet::new();
    for key in keys {
        if !seen.insert(key) {
            causes.invalid(
                path.replace(".items", ".x-kubernetes-list-map-keys"),
                keys,
                "must not contain duplicate entries",
            );
        }
        let property = items
            .get("properties")
            .and_then(|properties| properties.get(key))
            .and_then(Value::as_object);
        let Some(property) = property else { continue };
        let path = format!("{path}.properties[{key}]");
        if matches!(text(property, "type"), "array" | "object") {
            causes.invalid(
                format!("{path}.type"),
                kind,
                "must be a scalar type if parent array's x-kubernetes-list-type is map",
            );
        }
        if flag(property, "nullable") {
            causes.forbidden(
                format!("{path}.nullable"),
                "this property is in x-kubernetes-list-map-keys, so it cannot be nullable",
            );
        }
    }
}

/// Checks a node below allOf, anyOf, oneOf or not, where a schema holds conditions and no declarations.
///
/// `takes_types` allows the two types of a value that is an integer or a string.
fn check_within_junctor(
    node: &Map<String, Value>,
    path: &str,
    takes_types: bool,
    causes: &mut Causes,
) {
    let mut forbid = |field: &str, detail: &str| {
        causes.forbidden(format!("{path}.{field}"), detail);
    };
    let is_taken = takes_types && matches!(text(node, "type"), "integer" | "string");
    if has(node, "type") && !is_taken {
        forbid("type", "must be empty to be structural");
    }
    for field in ["additionalProperties", "default"] {
        if node.get(field).is_some_and(|value| !value.is_null()) {
            forbid(field, "must be undefined to be structural");
        }
    }
    if flag(node, "nullable") {
        forbid("nullable", "must be false to be structural");
    }
    for field in ["title", "description", "x-kubernetes-validations"] {
        if has(node, field) {
            forbid(field, "must be empty to be structural");
        }
    }
    for field in [
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-embedded-resource",
        "x-kubernetes-int-or-string",
    ] {
        if flag(node, field) {
            forbid(field, "must be false to be structural");
        }
    }
    for (key, below) in children(node) {
        check_within_junctor(below, &format!("{path}.{key}"), false, causes);
    }
    for (key, below) in junctors(node) {
        check_within_junctor(below, &format!("{path}.{key}"), takes_types, causes);
    }
}

fn children(node: &Map<String, Value>) -> impl Iterator<Item = (String, &Map<String, Value>)> {
    let properties = node
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .map(|(name, below)| (format!("properties[{name}]"), below));
    let others = ["additionalProperties", "items"]
        .into_iter()
        .filter_map(|key| Some((key.to_owned(), node.get(key)?)));
    properties
        .chain(others)
        .filter_map(|(key, below)| Some((key, below.as_object()?)))
}

fn junctors(node: &Map<String, Value>) -> impl Iterator<Item = (String, &Map<String, Value>)> {
    let not = node.get("not").map(|below| ("not".to_owned(), below));
    let lists = ["allOf", "anyOf", "oneOf"].into_iter().flat_map(|key| {
        let list = node.get(key).and_then(Value::as_array);
        list.into_iter()
            .flatten()
            .enumerate()
            .map(move |(index, below)| (format!("{key}[{index}]"), below))
    });
    not.into_iter()
        .chain(lists)
        .filter_map(|(key, below)| Some((key, below.as_object()?)))
}

fn has(node: &Map<String, Value>, key: &str) -> bool {
    node.get(key).is_some_and(|value| !value.is_null())
}

fn flag(node: &Map<String, Value>, key: &str) -> bool {
    node.get(key) == Some(&true.into())
}

fn text<'n>(node: &'n Map<String, Value>, key: &str) -> &'n str {
    node.get(key).and_then(Value::as_str).unwrap_or_default()
}
