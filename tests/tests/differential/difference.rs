//! The differences of two answers, and the accepted ones.

use serde_json::Value;

use crate::operation::Operation;
use crate::side::Answer;

/// A path where two values differ, with both values (`null` for a missing one).
pub(crate) type Spot = (String, Value, Value);

/// A disagreement of the servers.
#[derive(Clone, Debug)]
pub(crate) struct Divergence {
    pub(crate) lane: usize,
    pub(crate) number: usize,
    /// The name under which the divergence is counted.
    pub(crate) kind: String,
    pub(crate) operation: String,
    pub(crate) spots: Vec<Spot>,
    pub(crate) history: Vec<Operation>,
}

/// Returns the differences of two answers.
pub(crate) fn spots(left: &Answer, right: &Answer) -> Vec<Spot> {
    let mut found = Vec::new();
    if left.code != right.code {
        found.push(("code".to_owned(), left.code.into(), right.code.into()));
    }
    if left.warnings != right.warnings {
        let (left, right) = (left.warnings.clone().into(), right.warnings.clone().into());
        found.push(("warnings".to_owned(), left, right));
    }
    differ("", &left.body, &right.body, &mut found);
    found
}

pub(crate) fn differ(path: &str, left: &Value, right: &Value, found: &mut Vec<Spot>) {
    match (left, right) {
        _ if left == right => {}
        (Value::Object(a), Value::Object(b)) => {
            let mut keys: Vec<_> = a.keys().chain(b.keys()).collect();
            keys.sort();
            keys.dedup();
            for key in keys {
                let null = Value::Null;
                let (x, y) = (a.get(key), b.get(key));
                let path = format!("{path}.{key}");
                if x.is_some() == y.is_some() {
                    differ(&path, x.unwrap_or(&null), y.unwrap_or(&null), found);
                } else {
                    let shown =
                        |value: Option<&Value>| value.cloned().unwrap_or_else(|| "(absent)".into());
                    found.push((path, shown(x), shown(y)));
                }
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (x, y)) in a.iter().zip(b).enumerate() {
                differ(&format!("{path}[{index}]"), x, y, found);
            }
        }
        _ => found.push((path.to_owned(), left.clone(), right.clone())),
    }
}

/// Returns the name under which a divergence is counted.
pub(crate) fn name(operation: &Operation, spots: &[Spot]) -> String {
    let what = match spots.first() {
        Some((path, left, right)) if path == "code" => format!("code {left} / {right}"),
        Some((path, ..)) => {
            let path: String = path.chars().filter(|c| !c.is_ascii_digit()).collect();
            let steps: Vec<_> = path.split('.').take(4).collect();
            steps.join(".")
        }
        None => String::new(),
    };
    let door = operation.door();
    format!(
        "{} ({door}) of {}: {what}",
        operation.verb, operation.plural
    )
}

/// Returns the reason for an accepted difference.
///
/// `turned` is true if the second changed while the object was written.
pub(crate) fn known(
    operation: &Operation,
    left: &Answer,
    right: &Answer,
    turned: bool,
) -> Option<&'static str> {
    if right.code == 501 {
        return Some("the double answers that it does not serve this");
    }
    let spots = spots(left, right);
    let only_versions = spots
        .iter()
        .all(|(path, ..)| path == ".metadata.resourceVersion");
    if operation.door() == "scale" && only_versions {
        // It depends on who owns the replicas, and through which endpoint.
        return Some("a scale that changes nothing moves the version, or does not");
    }
    if turned && only_versions {
        return Some("a second turned between the two servers");
    }
    None
}
