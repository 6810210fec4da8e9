//! Normalizes a declaration: removes fields that only the server sets, and encodes the rest as the server stores it.

use k8s_openapi::ByteString;
use serde_json::{Map, Value, json};

/// Removes the fields that only the server sets, and nulls.
pub(crate) fn clean(body: &mut Value) {
    const OF_THE_SERVER: [&str; 8] = [
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
        "managedFields",
        "resourceVersion",
        "selfLink",
        "uid",
    ];
    if let Some(fields) = body.as_object_mut() {
        fields.remove("status");
    }
    if let Some(metadata) = field(body, "metadata") {
        for name in OF_THE_SERVER {
            metadata.remove(name);
        }
    }
    without_nulls(body);
}

/// Moves the `stringData` of a Secret into `data`, as the server does when it stores the Secret.
pub(crate) fn encode(secret: &mut Value) {
    let texts = secret
        .as_object_mut()
        .and_then(|it| it.remove("stringData"));
    let (Some(Value::Object(texts)), Some(data)) = (texts, field(secret, "data")) else {
        return;
    };
    for (name, text) in texts {
        let Value::String(text) = text else { continue };
        if let Ok(encoded) = serde_json::to_value(ByteString(text.into_bytes())) {
            data.insert(name, encoded);
        }
    }
}

fn without_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(without_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(without_nulls),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

pub(crate) fn field<'a>(value: &'a mut Value, name: &str) -> Option<&'a mut Map<String, Value>> {
    entry(value.as_object_mut()?, name)
}

pub(crate) fn entry<'a>(
    fields: &'a mut Map<String, Value>,
    name: &str,
) -> Option<&'a mut Map<String, Value>> {
    let entry = fields.entry(name).or_insert_with(|| json!({}));
    entry.as_object_mut()
}
