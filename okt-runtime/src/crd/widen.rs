//! Widens a schema so that it accepts what either of two schemas accepts.

use serde_json::{Map, Value};

/// Widens a schema until it also accepts what another one accepts.
///
/// It drops constraints that one schema cannot express: patterns, formats and rules that differ.
///
/// # Errors
///
/// The path of a field whose type differs.
pub(crate) fn widen(own: &mut Value, other: &Value, path: &str) -> Result<(), String> {
    let (Value::Object(own), Value::Object(other)) = (own, other) else {
        return Ok(());
    };
    // A map and a struct are both objects, but no schema is both; and a list has only one set of keys.
    let is_map = |schema: &Map<String, Value>| schema.contains_key("additionalProperties");
    let keys = "x-kubernetes-list-map-keys";
    if own.get("type") != other.get("type")
        || is_map(own) != is_map(other)
        || own.get(keys) != other.get(keys)
    {
        return Err(path.to_owned());
    }
    for keyword in ["maxLength", "maxItems", "maxProperties", "maximum"] {
        bound(own, other, keyword, f64::max);
    }
    for keyword in ["minLength", "minItems", "minProperties", "minimum"] {
        bound(own, other, keyword, f64::min);
    }
    for keyword in [
        "pattern",
        "format",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "not",
        "allOf",
        "anyOf",
        "oneOf",
    ] {
        if own.get(keyword) != other.get(keyword) {
            own.remove(keyword);
        }
    }
    for keyword in ["nullable", "x-kubernetes-preserve-unknown-fields"] {
        if let Some(Value::Bool(true)) = other.get(keyword) {
            own.insert(keyword.to_owned(), Value::Bool(true));
        }
    }
    for keyword in ["required", "x-kubernetes-validations"] {
        common(own, other, keyword);
    }
    words(own, other);
    for keyword in ["items", "additionalProperties"] {
        if let (Some(own), Some(other)) = (own.get_mut(keyword), other.get(keyword)) {
            widen(own, other, &format!("{path}[]"))?;
        }
    }
    let Some(Value::Object(others)) = other.get("properties") else {
        return Ok(());
    };
    let properties = own.entry("properties").or_insert_with(|| Map::new().into());
    for (name, other) in others {
        match properties.get_mut(name) {
            Some(own) => widen(own, other, &format!("{path}.{name}"))?,
            None => properties[name] = other.clone(),
        }
    }
    Ok(())
}

/// Adds the fields that only another schema has, so that they are not pruned.
pub(crate) fn keep_fields(own: &mut Value, other: &Value) {
    for inner in ["items", "additionalProperties"] {
        if let (Some(own), Some(other)) = (own.get_mut(inner), other.get(inner)) {
            keep_fields(own, other);
        }
    }
    let free = "x-kubernetes-preserve-unknown-fields";
    if let (Value::Object(own), Some(Value::Bool(true))) = (&mut *own, other.get(free)) {
        own.insert(free.to_owned(), Value::Bool(true));
    }
    let Some(others) = other.get("properties").and_then(Value::as_object) else {
        return;
    };
    let Some(properties) = own.get_mut("properties").and_then(Value::as_object_mut) else {
        return;
    };
    for (name, other) in others {
        match properties.get_mut(name) {
            Some(own) => keep_fields(own, other),
            None => {
                properties.insert(name.clone(), other.clone());
            }
        }
    }
}

/// Sets the looser of two bounds; removes it if either schema has none.
fn bound(
    own: &mut Map<String, Value>,
    other: &Map<String, Value>,
    keyword: &str,
    looser: fn(f64, f64) -> f64,
) {
    let number = |of: &Map<String, Value>| of.get(keyword).and_then(Value::as_f64);
    let Some(mine) = number(own) else {
        return;
    };
    match number(other) {
        None => drop(own.remove(keyword)),
        Some(theirs) if looser(mine, theirs) > mine || looser(mine, theirs) < mine => {
            own.insert(keyword.to_owned(), other[keyword].clone());
        }
        Some(_) => {}
    }
}

/// Keeps the entries that are in both lists.
fn common(own: &mut Map<String, Value>, other: &Map<String, Value>, keyword: &str) {
    let Some(Value::Array(mine)) = own.get_mut(keyword) else {
        return;
    };
    let theirs = other.get(keyword).and_then(Value::as_array);
    mine.retain(|entry| theirs.is_some_and(|theirs| theirs.contains(entry)));
    if mine.is_empty() {
        own.remove(keyword);
    }
}

/// Allows the enum values of both; removes the enum if either schema has none.
fn words(own: &mut Map<String, Value>, other: &Map<String, Value>) {
    let Some(Value::Array(mine)) = own.get_mut("enum") else {
        return;
    };
    let Some(Value::Array(theirs)) = other.get("enum") else {
        own.remove("enum");
        return;
    };
    for word in theirs {
        if !mine.contains(word) {
            mine.push(word.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn widened(mut own: Value, other: &Value) -> Result<Value, String> {
        widen(&mut own, other, "status").map(|()| own)
    }

    #[test]
    fn a_widened_schema_accepts_what_either_accepts() {
        let own = json!({ "type": "object", "required": ["a", "b"], "properties": {
            "a": { "type": "string", "maxLength": 5, "enum": ["x"] },
            "b": { "type": "integer", "minimum": 3, "maximum": 9 },
            "c": { "type": "string", "pattern": "^a$" },
        } });
        let other = json!({ "type": "object", "required": ["a"], "properties": {
            "a": { "type": "string", "maxLength": 7, "enum": ["y", "x"] },
            "b": { "type": "integer", "minimum": 4 },
            "c": { "type": "string", "pattern": "^b$" },
            "d": { "type": "boolean" },
        } });
        let both = json!({ "type": "object", "required": ["a"], "properties": {
            "a": { "type": "string", "maxLength": 7, "enum": ["x", "y"] },
            "b": { "type": "integer", "minimum": 3 },
            "c": { "type": "string" },
            "d": { "type": "boolean" },
        } });
        assert_eq!(widened(own, &other), Ok(both));
    }

    #[test]
    fn a_field_whose_type_differs_is_an_error() {
        let own = json!({ "type": "object", "properties": { "a": { "type": "string" } } });
        let other = json!({ "type": "object", "properties": { "a": { "type": "integer" } } });
        assert_eq!(widened(own, &other), Err("status.a".to_owned()));
    }

    #[test]
    fn a_map_that_became_a_struct_is_an_error() {
        let own = json!({ "type": "object", "properties": {} });
        let other = json!({ "type": "object", "additionalProperties": { "type": "string" } });
        assert_eq!(widened(own.clone(), &other), Err("status".to_owned()));
        assert_eq!(widened(other, &own), Err("status".to_owned()));
    }

    #[test]
    fn nested_fields_are_kept() {
        let mut own = json!({ "properties": {
            "list": { "items": { "properties": {} } },
            "map": { "additionalProperties": { "properties": {} } },
            "free": { "type": "object" },
        } });
        let other = json!({ "properties": {
            "list": { "items": { "properties": { "a": { "type": "string" } } } },
            "map": { "additionalProperties": { "properties": { "a": { "type": "string" } } } },
            "free": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
            "b": { "type": "string" },
        } });
        keep_fields(&mut own, &other);
        assert_eq!(own, other);
    }
}
