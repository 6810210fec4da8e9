//! Generates values from a schema, with occasional mistakes, and changes of values.

use serde_json::{Map, Value, json};

use crate::dice::Dice;

/// The parameters of generated values.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Style {
    /// The percentage of fields that are set.
    pub(crate) fill: usize,
    /// The wrong types, wrong values and unknown fields in a thousand.
    pub(crate) mistakes: usize,
    /// The percentage of nulls.
    pub(crate) nulls: usize,
    /// Skips lists whose items have more fields than the schema.
    pub(crate) careful: bool,
}

/// The mark of a list whose items have more fields than those that change.
const SHARED: &str = "x-shared";

/// The mark of a field that an object of a built-in kind needs to be valid.
pub(crate) const KEPT: &str = "x-kept";

const TEXTS: [&str; 6] = ["x", "y", "red", "start", "", "a longer text"];
const KEYS: [&str; 4] = ["a", "b", "c", "odd.key"];

/// Generates a value of a schema.
pub(crate) fn value(dice: &mut Dice, style: Style, schema: &Value) -> Value {
    if dice.chance(style.nulls) && schema.get(KEPT).is_none() {
        return Value::Null;
    }
    if dice.below(1000) < style.mistakes {
        return free(dice, 2);
    }
    if let Some(Value::Array(values)) = schema.get("enum") {
        return dice.pick(values).clone();
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("object") => object(dice, style, schema).into(),
        Some("array") => array(dice, style, schema),
        Some("string") => text(dice, schema),
        Some("integer") => match dice.below(12) {
            0 => json!(-1),
            1 => json!(11),
            number => json!(number / 2),
        },
        Some("number") => dice
            .pick(&[json!(0.5), json!(1), json!(2.25), json!(1.0)])
            .clone(),
        Some("boolean") => dice.chance(50).into(),
        _ if schema.get("x-kubernetes-int-or-string").is_some() => dice
            .pick(&[json!(80), json!("http"), json!("25%"), json!(8080)])
            .clone(),
        _ => free(dice, 2),
    }
}

fn text(dice: &mut Dice, schema: &Value) -> Value {
    match schema.get("format").and_then(Value::as_str) {
        Some("date-time") if !dice.chance(10) => dice
            .pick(&[
                json!("2026-01-02T03:04:05Z"),
                json!("2026-01-02T03:04:06.5+01:00"),
            ])
            .clone(),
        _ => {
            // Short texts are more frequent, so that lists and maps share keys.
            let choice = dice.weighted(&[(6, 0), (6, 1), (4, 2), (2, 3), (1, 4), (1, 5)]);
            TEXTS[choice].into()
        }
    }
}

fn object(dice: &mut Dice, style: Style, schema: &Value) -> Map<String, Value> {
    let mut fields = Map::new();
    let required = schema.get("required").and_then(Value::as_array);
    for (key, below) in properties(schema) {
        if style.careful && below.get(SHARED).is_some() {
            continue;
        }
        let needed = required.is_some_and(|list| list.iter().any(|name| name == key));
        let fill = if needed {
            100_usize.saturating_sub(style.mistakes / 3)
        } else {
            style.fill
        };
        if dice.chance(fill) {
            let nulls = match (needed, style.mistakes) {
                (false, _) => style.nulls,
                (true, 0) => 0,
                (true, _) => style.nulls / 4,
            };
            let style = Style { nulls, ..style };
            fields.insert(key.clone(), value(dice, style, below));
        }
    }
    if let Some(below) = schema.get("additionalProperties") {
        for _ in 0..dice.below(3) {
            let key = *dice.pick(&KEYS);
            fields.insert(key.to_owned(), value(dice, style, below));
        }
    }
    if schema.get("x-kubernetes-embedded-resource").is_some() {
        fields.insert("apiVersion".to_owned(), "v1".into());
        fields.insert("kind".to_owned(), "Pod".into());
        fields.insert(
            "metadata".to_owned(),
            json!({ "name": dice.pick(&["x", "y"]), "labels": { "a": "b" } }),
        );
    }
    let open = schema.get("x-kubernetes-preserve-unknown-fields").is_some();
    if (open && dice.chance(60)) || dice.below(1000) < style.mistakes {
        let key = *dice.pick(&["other", "unknown"]);
        fields.insert(key.to_owned(), free(dice, 2));
    }
    fields
}

fn array(dice: &mut Dice, style: Style, schema: &Value) -> Value {
    let least = schema.get("minItems").and_then(Value::as_u64).unwrap_or(0);
    let count = dice.weighted(&[(2, 0_u64), (4, 1), (3, 2), (1, 3)]);
    let count = if style.mistakes == 0 {
        count.max(least)
    } else {
        count
    };
    let mut items = Vec::new();
    let identity = |item: &Value| -> Value {
        let keys = schema
            .get("x-kubernetes-list-map-keys")
            .and_then(Value::as_array);
        keys.map_or_else(
            || item.clone(),
            |keys| {
                keys.iter()
                    .filter_map(Value::as_str)
                    .map(|key| item[key].clone())
                    .collect()
            },
        )
    };
    let has_identity = schema.get("x-kubernetes-list-type").is_some();
    for _ in 0..count {
        let style = Style {
            nulls: if style.mistakes == 0 {
                0
            } else {
                style.nulls / 3
            },
            ..style
        };
        let item = value(dice, style, &schema["items"]);
        // Duplicates are a mistake in sets and maps.
        let is_duplicate = items.iter().any(|other| identity(other) == identity(&item));
        if !(has_identity && is_duplicate && dice.below(100) >= style.mistakes / 2) {
            items.push(item);
        }
    }
    items.into()
}

/// Generates any value.
pub(crate) fn free(dice: &mut Dice, depth: usize) -> Value {
    match dice.below(if depth == 0 { 5 } else { 8 }) {
        0 => json!(dice.below(3)),
        1 => json!(TEXTS[dice.below(4)]),
        2 => dice.chance(50).into(),
        3 => json!(1.5),
        4 => json!({}),
        5 => {
            let mut fields = Map::new();
            for _ in 0..dice.below(3) {
                let key = *dice.pick(&KEYS);
                fields.insert(key.to_owned(), free(dice, depth - 1));
            }
            fields.into()
        }
        6 => (0..dice.below(3)).map(|_| free(dice, depth - 1)).collect(),
        _ => json!([]),
    }
}

fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
}

/// Returns the schema of a field, if it is known.
fn field<'s>(schema: &'s Value, key: &str) -> Option<&'s Value> {
    schema
        .get("properties")
        .and_then(|properties| properties.get(key))
        .or_else(|| schema.get("additionalProperties"))
}

/// Changes a value at one random place.
pub(crate) fn change(dice: &mut Dice, style: Style, schema: &Value, target: &mut Value) {
    match target {
        Value::Object(fields) if !fields.is_empty() && dice.chance(65) => {
            let keys: Vec<String> = fields
                .keys()
                .filter(|key| !matches!(key.as_str(), "apiVersion" | "kind" | "metadata"))
                .cloned()
                .collect();
            if keys.is_empty() {
                return;
            }
            let key = dice.pick(&keys).clone();
            let below = field(schema, &key).unwrap_or(&Value::Null);
            if dice.chance(20) {
                fields.remove(&key);
            } else if let Some(inner) = fields.get_mut(&key) {
                change(dice, style, below, inner);
            }
        }
        Value::Object(fields) => {
            let known: Vec<_> = properties(schema).collect();
            if let (Some(below), true) = (schema.get("additionalProperties"), known.is_empty()) {
                let key = *dice.pick(&KEYS);
                fields.insert(key.to_owned(), value(dice, style, below));
            } else if !known.is_empty() {
                let (key, below) = *dice.pick(&known);
                fields.insert(key.clone(), value(dice, style, below));
            } else if !schema.is_null() {
                let key = *dice.pick(&KEYS);
                fields.insert(key.to_owned(), free(dice, 2));
            }
        }
        Value::Array(items) if !items.is_empty() && dice.chance(70) => {
            let place = dice.below(items.len());
            match dice.below(4) {
                0 => {
                    items.remove(place);
                }
                1 => items.reverse(),
                _ => change(dice, style, &schema["items"], &mut items[place]),
            }
        }
        _ if schema.is_null() => {}
        _ => *target = value(dice, style, schema),
    }
}

/// Generates a merge patch: some fields, and nulls for removed fields.
pub(crate) fn patch(dice: &mut Dice, style: Style, schema: &Value) -> Value {
    value(
        dice,
        Style {
            nulls: 12,
            fill: 12,
            ..style
        },
        schema,
    )
}

/// Writes generated fields over the required fields of an object.
pub(crate) fn lay(under: &mut Value, over: &Value) {
    match (under, over) {
        (Value::Object(under), Value::Object(over)) => {
            for (key, value) in over {
                lay(under.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (Value::Array(under), Value::Array(over))
            if under.first().is_some_and(Value::is_object) =>
        {
            for (under, over) in under.iter_mut().zip(over) {
                lay(under, over);
            }
        }
        (under, over) => under.clone_from(over),
    }
}

/// Collects the paths (as JSON pointers) within a value, with their schemas.
pub(crate) fn pointers<'s>(
    schema: &'s Value,
    target: &Value,
    prefix: &str,
    found: &mut Vec<(String, &'s Value)>,
) {
    static NULL: Value = Value::Null;
    let escape = |key: &str| key.replace('~', "~0").replace('/', "~1");
    match target {
        Value::Object(fields) => {
            for (key, value) in fields {
                let below = field(schema, key).unwrap_or(&NULL);
                let path = format!("{prefix}/{}", escape(key));
                found.push((path.clone(), below));
                pointers(below, value, &path, found);
            }
            for (key, below) in properties(schema) {
                if !fields.contains_key(key) {
                    found.push((format!("{prefix}/{}", escape(key)), below));
                }
            }
        }
        Value::Array(items) => {
            let below = schema.get("items").unwrap_or(&NULL);
            for (index, item) in items.iter().enumerate() {
                let path = format!("{prefix}/{index}");
                found.push((path.clone(), below));
                pointers(below, item, &path, found);
            }
            found.push((format!("{prefix}/-"), below));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
