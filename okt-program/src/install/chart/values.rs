//! What the values of a chart may be: a JSON schema with their defaults and what they mean.

use std::fmt::Write;

use serde_json::Value;

use crate::install::generated::yaml;

/// The schema of all values that a chart may have. What depends on the program has no default there.
const SCHEMA: &str = include_str!("values.schema.json");

/// Returns the schema by which helm refuses other values.
///
/// `defaults` are those that depend on the program, by their path (`image.tag`); `absent` are the values or groups that it
/// has not.
///
/// # Errors
///
/// None is known: the schema is JSON.
pub(super) fn schema(defaults: &[(&str, Value)], absent: &[&str]) -> Result<Value, String> {
    let mut schema: Value = serde_json::from_str(SCHEMA).map_err(|error| error.to_string())?;
    if let Some(all) = schema["properties"].as_object_mut() {
        all.retain(|name, _| !absent.contains(&name.as_str()));
        for (path, default) in defaults {
            let (group, name) = path.split_once('.').unwrap_or((path, ""));
            match all.get_mut(group) {
                Some(group) if name.is_empty() => group["default"] = default.clone(),
                Some(group) => group["properties"][name]["default"] = default.clone(),
                None => {}
            }
        }
    }
    if let Some(required) = schema["required"].as_array_mut() {
        required.retain(|name| name.as_str().is_none_or(|name| !absent.contains(&name)));
    }
    Ok(schema)
}

/// Returns the file with all values and what they mean.
///
/// # Errors
///
/// If a value cannot be written as YAML.
pub(super) fn text(schema: &Value) -> Result<String, String> {
    let mut text = String::new();
    print(schema, "", &mut text)?;
    Ok(text)
}

fn print(schema: &Value, indent: &str, to: &mut String) -> Result<(), String> {
    let properties = schema["properties"].as_object();
    for (name, schema) in properties.into_iter().flatten() {
        if let Some(about) = schema["description"].as_str() {
            // Writing to a text cannot fail.
            _ = writeln!(to, "{indent}# {about}");
        }
        if schema.get("properties").is_some() {
            _ = writeln!(to, "{indent}{name}:");
            print(schema, &format!("{indent}  "), to)?;
            continue;
        }
        let Some(default) = schema.get("default") else {
            continue;
        };
        let is_block = match default {
            Value::Array(list) => !list.is_empty(),
            Value::Object(map) => !map.is_empty(),
            _ => false,
        };
        if !is_block {
            // JSON is YAML.
            _ = writeln!(to, "{indent}{name}: {default}");
            continue;
        }
        _ = writeln!(to, "{indent}{name}:");
        for line in yaml(default)?.lines() {
            _ = writeln!(to, "{indent}  {line}");
        }
    }
    Ok(())
}
