//! Two versions of an object, and what differs between them, as text.

use okt_wire::keys::APPLIED_ANNOTATION;
use serde_json::{Map, Value};
use similar::TextDiff;

/// How many equal lines are shown around a difference.
const AROUND: usize = 3;

/// The fields of the metadata that every write changes, or that only the server sets.
const OF_SERVER: [&str; 6] = [
    "creationTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// Returns what differs between two versions of an object, in lines; none if nothing that a user would see.
pub(super) fn difference(before: Option<&Value>, after: Option<&Value>) -> Option<String> {
    let (mut before, mut after) = (visible(before), visible(after));
    hide_secrets(&mut before, &mut after);
    between(&before, &after)
}

/// Returns what differs between two values, in lines; none if nothing.
pub(super) fn between(before: &Value, after: &Value) -> Option<String> {
    let (before, after) = (text(before), text(after));
    if before == after {
        return None;
    }
    let difference = TextDiff::from_lines(&before, &after);
    let mut lines = difference.unified_diff();
    Some(lines.context_radius(AROUND).to_string())
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        // A value whose keys are texts can be written.
        value => serde_saphyr::to_string(value).unwrap_or_default(),
    }
}

/// Returns an object without what the server sets.
fn visible(object: Option<&Value>) -> Value {
    let Some(Value::Object(fields)) = object else {
        return Value::Null;
    };
    let mut fields = fields.clone();
    fields.remove("status");
    if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|name, _| !OF_SERVER.contains(&name.as_str()));
        if let Some(Value::Object(notes)) = metadata.get_mut("annotations") {
            notes.remove(APPLIED_ANNOTATION);
            // It repeats the whole object, with the values of a secret.
            notes.remove("kubectl.kubernetes.io/last-applied-configuration");
        }
    }
    Value::Object(fields)
}

/// Hides the values of secrets, and leaves visible which of them differ.
fn hide_secrets(before: &mut Value, after: &mut Value) {
    let is_secret = |object: &Value| object["apiVersion"] == "v1" && object["kind"] == "Secret";
    if !is_secret(before) && !is_secret(after) {
        return;
    }
    for field in ["data", "stringData"] {
        let none = Map::new();
        let olds = before[field].as_object().unwrap_or(&none).clone();
        let news = after[field].as_object().unwrap_or(&none).clone();
        let hidden = |own: &Map<String, Value>, other: &Map<String, Value>, when: &str| {
            let values = own.iter().map(|(name, value)| {
                let is_same = other.get(name) == Some(value);
                let shown = if is_same {
                    "***".to_owned()
                } else {
                    format!("*** ({when})")
                };
                (name.clone(), Value::String(shown))
            });
            Value::Object(values.collect())
        };
        if !olds.is_empty() {
            before[field] = hidden(&olds, &news, "before");
        }
        if !news.is_empty() {
            after[field] = hidden(&news, &olds, "after");
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_only_the_server_sets_is_no_difference() {
        let of = |version: &str, applied: &str| {
            json!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {
                    "name": "a", "resourceVersion": version, "generation": version, "managedFields": [version],
                    "annotations": { "okt.dev/applied": applied, "of": "a user" },
                },
                "data": { "a": "b" }, "status": version,
            })
        };
        assert_eq!(difference(Some(&of("1", "x")), Some(&of("2", "y"))), None);
    }

    #[test]
    fn values_of_secrets_are_hidden_and_which_of_them_differ_is_not() {
        let of = |password: &str| {
            let applied = json!({ "kubectl.kubernetes.io/last-applied-configuration": format!("password {password}") });
            json!({
                "apiVersion": "v1", "kind": "Secret", "metadata": { "annotations": applied },
                "data": { "password": password, "user": "root" },
            })
        };
        let found = difference(Some(&of("old")), Some(&of("new"))).expect("a difference");
        assert!(found.contains(r#"-  password: "*** (before)""#), "{found}");
        assert!(found.contains(r#"+  password: "*** (after)""#), "{found}");
        let shown = ["old", "new", "root"].map(|it| found.contains(it));
        assert_eq!(shown, [false; 3], "{found}");
        let made = difference(None, Some(&of("new"))).expect("a difference");
        assert!(!made.contains("new"), "{made}");
    }
}
