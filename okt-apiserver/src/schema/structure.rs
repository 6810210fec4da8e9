//! Checks whether a schema is structural, except for the types of its fields.

use std::collections::BTreeSet;

use crate::causes::Causes;
use crate::object::{self, text};
use serde_json::Value;

/// Checks the schema of a whole object.
pub(super) fn check_root(node: &Value, path: &str, causes: &mut Causes) {
    if !node.is_object() {
        return;
    }
    if !node["additionalProperties"].is_null() {
        let detail = "must not be used at the root";
        causes.forbidden(format!("{path}.additionalProperties"), detail);
    }
    if node["nullable"] == true {
        let detail = "nullable cannot be true at the root";
        causes.forbidden(format!("{path}.nullable"), detail);
    }
    let kind = text(node, &["type"]);
    if !matches!(kind, "" | "object") {
        causes.invalid(format!("{path}.type"), kind, "must be object at the root");
    }
    check_object_fields(node, path, causes);
    walk(node, path, causes);
}

/// Checks `apiVersion`, `kind` and `metadata`, which are implicit and can hardly be restricted.
fn check_object_fields(node: &Value, path: &str, causes: &mut Causes) {
    let Some(Value::Object(properties)) = node.get("properties") else {
        return;
    };
    for (name, wanted) in [
        ("apiVersion", "string"),
        ("kind", "string"),
        ("metadata", "object"),
    ] {
        let Some(property) = properties.get(name).filter(|it| it.is_object()) else {
            continue;
        };
        let path = format!("{path}.properties[{name}]");
        let kind = text(property, &["type"]);
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
            let detail = "must not specify anything other than name and generateName, but metadata is implicitly specified";
            causes.forbidden(path.clone(), detail);
        }
        for (field, schema) in fields {
            if schema.get("default").is_some_and(|it| !it.is_null()) {
                let detail = "must not be set in top-level metadata";
                causes.forbidden(format!("{path}.properties[{field}].default"), detail);
            }
        }
    }
}

fn walk(node: &Value, path: &str, causes: &mut Causes) {
    check_node(node, path, causes);
    check_list(node, path, causes);
    if node["x-kubernetes-embedded-resource"] == true {
        check_embedded(node, path, causes);
    }
    for (key, below) in children(node) {
        walk(below, &format!("{path}.{key}"), causes);
    }
    for (key, below) in junctors(node) {
        let takes_types = node["x-kubernetes-int-or-string"] == true;
        check_within_junctor(below, &format!("{path}.{key}"), takes_types, causes);
    }
}

fn check_node(node: &Value, path: &str, causes: &mut Causes) {
    let mut forbid = |field: &str, detail: &str| {
        causes.forbidden(format!("{path}.{field}"), detail);
    };
    if node["uniqueItems"] == true {
        forbid(
            "uniqueItems",
            "uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
        );
    }
    let allows_all = node["additionalProperties"] == true;
    let has_properties =
        matches!(node.get("properties"), Some(Value::Object(fields)) if !fields.is_empty());
    if has_properties && !node["additionalProperties"].is_null() && !allows_all {
        forbid(
            "additionalProperties",
            "additionalProperties and properties are mutual exclusive",
        );
    }
    let preserve = "x-kubernetes-preserve-unknown-fields";
    if node[preserve] == false {
        let detail = "must be true or undefined";
        causes.invalid(format!("{path}.{preserve}"), false, detail);
    }
    let map_type = text(node, &["x-kubernetes-map-type"]);
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

fn require_type(node: &Value, wanted: &str, because: &str, path: &str, causes: &mut Causes) {
    let kind = text(node, &["type"]);
    let detail = format!("must be {wanted} if {because} is specified");
    if kind.is_empty() {
        causes.required(format!("{path}.type"), &detail);
    } else if kind != wanted {
        causes.invalid(format!("{path}.type"), kind, &detail);
    }
}

fn check_embedded(node: &Value, path: &str, causes: &mut Causes) {
    if node["properties"].is_null() && node["x-kubernetes-preserve-unknown-fields"] != true {
        causes.required(
            format!("{path}.properties"),
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields",
        );
    }
    let kind = text(node, &["type"]);
    if kind != "object" {
        let detail = "must be object if x-kubernetes-embedded-resource is true";
        causes.invalid(format!("{path}.type"), kind, detail);
    }
    check_object_fields(node, path, causes);
}

/// Checks a list against its list type.
fn check_list(node: &Value, path: &str, causes: &mut Causes) {
    let field = format!("{path}.x-kubernetes-list-type");
    let keys = object::texts(node, &["x-kubernetes-list-map-keys"]);
    let list = text(node, &["x-kubernetes-list-type"]);
    if list.is_empty() {
        if !keys.is_empty() {
            causes.required(
                field,
                "must be map if x-kubernetes-list-map-keys is non-empty",
            );
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
    let items = &node["items"];
    if !items.is_object() {
        return;
    }
    let path = format!("{path}.items");
    if list != "atomic" && items["nullable"] == true {
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

fn check_items_of_set(items: &Value, path: &str, causes: &mut Causes) {
    let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
    let list = items.get("x-kubernetes-list-type");
    match text(items, &["type"]) {
        "array" if list.is_some_and(|list| list != "atomic") => {
            causes.invalid(
                format!("{path}.x-kubernetes-list-type"),
                list.unwrap_or(&Value::Null),
                detail,
            );
        }
        "object" if text(items, &["x-kubernetes-map-type"]) != "atomic" => {
            causes.invalid(
                format!("{path}.x-kubernetes-map-type"),
                list.unwrap_or(&Value::Null),
                detail,
            );
        }
        _ => {}
    }
}

fn check_items_of_map(items: &Value, keys: &[&str], path: &str, causes: &mut Causes) {
    let kind = text(items, &["type"]);
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
            let detail = "must not contain duplicate entries";
            causes.invalid(
                path.replace(".items", ".x-kubernetes-list-map-keys"),
                keys,
                detail,
            );
        }
        let property = &items["properties"][key];
        if !property.is_object() {
            continue;
        }
        let path = format!("{path}.properties[{key}]");
        if matches!(text(property, &["type"]), "array" | "object") {
            let detail = "must be a scalar type if parent array's x-kubernetes-list-type is map";
            causes.invalid(format!("{path}.type"), kind, detail);
        }
        if property["nullable"] == true {
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
fn check_within_junctor(node: &Value, path: &str, takes_types: bool, causes: &mut Causes) {
    let mut forbid = |field: &str, detail: &str| {
        causes.forbidden(format!("{path}.{field}"), detail);
    };
    let is_taken = takes_types && matches!(text(node, &["type"]), "integer" | "string");
    if !node["type"].is_null() && !is_taken {
        forbid("type", "must be empty to be structural");
    }
    for field in ["additionalProperties", "default"] {
        if node.get(field).is_some_and(|value| !value.is_null()) {
            forbid(field, "must be undefined to be structural");
        }
    }
    if node["nullable"] == true {
        forbid("nullable", "must be false to be structural");
    }
    for field in ["title", "description", "x-kubernetes-validations"] {
        if !node[field].is_null() {
            forbid(field, "must be empty to be structural");
        }
    }
    for field in [
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-embedded-resource",
        "x-kubernetes-int-or-string",
    ] {
        if node[field] == true {
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

/// The schemas of fields, entries and items, with the steps to them.
fn children(node: &Value) -> impl Iterator<Item = (String, &Value)> {
    let properties = object::entries(node, &["properties"])
        .map(|(name, below)| (format!("properties[{name}]"), below));
    let others = ["additionalProperties", "items"].map(|key| (key.to_owned(), &node[key]));
    let all = properties.chain(others);
    all.filter(|(_, below)| below.is_object())
}

/// The schemas of which a value must satisfy some, with the steps to them.
fn junctors(node: &Value) -> impl Iterator<Item = (String, &Value)> {
    let not = ("not".to_owned(), &node["not"]);
    let lists = ["allOf", "anyOf", "oneOf"].into_iter().flat_map(|key| {
        let list = object::items(node, &[key]).iter().enumerate();
        list.map(move |(index, below)| (format!("{key}[{index}]"), below))
    });
    let all = [not].into_iter().chain(lists);
    all.filter(|(_, below)| below.is_object())
}
