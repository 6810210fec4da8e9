//! Parses the selectors of a request and matches objects against them.

use serde_json::Value;

use crate::causes::{Causes, RefusalCause};
use crate::kind::ServedKind;
use crate::path::Query;
use crate::refusal::Refusal;
use crate::shards::Shards;
use crate::store::Key;
use crate::stored::StoredObject;
use crate::{object, rules};

/// The selectors of a list or a watch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selector {
    labels: Vec<Requirement>,
    fields: Vec<FieldRequirement>,
    shards: Option<Shards>,
}

#[derive(Clone, Debug)]
struct Requirement {
    key: String,
    condition: SelectorTerm,
}

#[derive(Clone, Debug)]
enum SelectorTerm {
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    Missing,
    More(i64),
    Less(i64),
}

#[derive(Clone, Debug)]
struct FieldRequirement {
    path: Vec<String>,
    value: String,
    equal: bool,
}

impl Requirement {
    fn holds(&self, object: &Value) -> bool {
        let label = object::at(object, &["metadata", "labels", &self.key]).and_then(Value::as_str);
        let is_in = |values: &[String]| {
            label.is_some_and(|label| values.iter().any(|value| value == label))
        };
        let number = || label?.parse::<i64>().ok();
        match &self.condition {
            SelectorTerm::In(values) => is_in(values),
            SelectorTerm::NotIn(values) => !is_in(values),
            SelectorTerm::Exists => label.is_some(),
            SelectorTerm::Missing => label.is_none(),
            SelectorTerm::More(limit) => number().is_some_and(|number| number > *limit),
            SelectorTerm::Less(limit) => number().is_some_and(|number| number < *limit),
        }
    }
}

/// Whether a `LabelSelector`, which is an object, selects an object by its labels.
pub(crate) fn selects(selector: &Value, object: &Value) -> bool {
    let labels = object::entries(selector, &["matchLabels"]).map(|(key, value)| Requirement {
        key: key.clone(),
        condition: SelectorTerm::In(vec![value.as_str().unwrap_or_default().to_owned()]),
    });
    let expressions = object::items(selector, &["matchExpressions"]).iter();
    let expressions = expressions.map(|expression| {
        let values = object::texts(expression, &["values"]);
        let values = values.into_iter().map(str::to_owned).collect();
        Requirement {
            key: object::text(expression, &["key"]).to_owned(),
            condition: match object::text(expression, &["operator"]) {
                "In" => SelectorTerm::In(values),
                "NotIn" => SelectorTerm::NotIn(values),
                "DoesNotExist" => SelectorTerm::Missing,
                _ => SelectorTerm::Exists,
            },
        }
    });
    labels.chain(expressions).all(|label| label.holds(object))
}

impl Selector {
    /// Parses all selectors of a request; empty texts select everything.
    ///
    /// # Errors
    /// The syntax is invalid, or the kind does not support a field.
    pub(crate) fn parse(kind: &ServedKind, query: &Query) -> Result<Self, Refusal> {
        Ok(Self {
            labels: parse_labels(query.text("labelSelector"))?,
            fields: parse_fields(kind, query.text("fieldSelector"))?,
            shards: Shards::parse(query.text("shardSelector"))?,
        })
    }

    /// Whether it selects by labels or fields, and not only by shards.
    pub(crate) fn reads_objects(&self) -> bool {
        !(self.labels.is_empty() && self.fields.is_empty())
    }

    /// Returns the shard selector.
    pub(crate) fn shards(&self) -> Option<&Shards> {
        self.shards.as_ref()
    }

    pub(crate) fn selects(&self, key: &Key, stored: &StoredObject) -> bool {
        let is_near = |shards: &Shards| shards.select(stored.uid(), &key.namespace);
        self.shards.as_ref().is_none_or(is_near)
            && (!self.reads_objects() || self.matches(&stored.read()))
    }

    fn matches(&self, object: &Value) -> bool {
        self.labels.iter().all(|label| label.holds(object))
            && self.fields.iter().all(|requirement| {
                let mut path = requirement.path.iter();
                let found = match path.try_fold(object, |value, key| value.get(key)) {
                    None | Some(Value::Null) => String::new(),
                    Some(Value::String(text)) => text.clone(),
                    Some(other) => other.to_string(),
                };
                (found == requirement.value) == requirement.equal
            })
    }
}

fn parse_labels(text: &str) -> Result<Vec<Requirement>, Refusal> {
    let read = |part| {
        let requirement = parse_label(part).ok_or_else(|| format!("{part:?} is no label selector"));
        requirement.and_then(checked)
    };
    let requirements = split(text).into_iter().map(read);
    requirements
        .collect::<Result<_, _>>()
        .map_err(|why| Refusal::bad_request(format!("unable to parse requirement: {why}")))
}

/// Checks that the key and the values of a requirement are valid for labels.
fn checked(requirement: Requirement) -> Result<Requirement, String> {
    let mut causes = Causes::default();
    let key = &requirement.key;
    // A real server prints `<nil>` as the field.
    rules::check_key("<nil>", key, &mut causes);
    if let SelectorTerm::In(values) | SelectorTerm::NotIn(values) = &requirement.condition {
        for (index, value) in values.iter().enumerate() {
            rules::check_label(&format!("values[{index}][{key}]"), value, &mut causes);
        }
    }
    let texts: Vec<_> = causes.iter().map(RefusalCause::text).collect();
    match texts.as_slice() {
        [] => Ok(requirement),
        [one] => Err(one.clone()),
        many => Err(format!("[{}]", many.join(", "))),
    }
}

/// Splits requirements at commas, except for commas within parentheses.
fn split(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut depth = 0_i32;
    let mut start = 0;
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    if parts == [""] { Vec::new() } else { parts }
}

fn parse_label(part: &str) -> Option<Requirement> {
    let requirement = |key: &str, condition| {
        let key = key.trim();
        is_word(key).then(|| Requirement {
            key: key.to_owned(),
            condition,
        })
    };
    if let Some(key) = part.strip_prefix('!') {
        return requirement(key, SelectorTerm::Missing);
    }
    if let Some(inner) = part.strip_suffix(')') {
        let (head, values) = inner.split_once('(')?;
        let (key, operator) = head.trim().rsplit_once(char::is_whitespace)?;
        // The order in which a real server numbers them.
        let mut values: Vec<_> = values
            .split(',')
            .map(|value| value.trim().to_owned())
            .collect();
        values.sort();
        values.dedup();
        return match operator {
            "in" => requirement(key, SelectorTerm::In(values)),
            "notin" => requirement(key, SelectorTerm::NotIn(values)),
            _ => None,
        };
    }
    for operator in ["!=", "==", "=", ">", "<"] {
        if let Some((key, value)) = part.split_once(operator) {
            let value = value.trim();
            if !value.is_empty() && !is_word(value) {
                return None;
            }
            let condition = match operator {
                "!=" => SelectorTerm::NotIn(vec![value.to_owned()]),
                ">" => SelectorTerm::More(value.parse().ok()?),
                "<" => SelectorTerm::Less(value.parse().ok()?),
                _ => SelectorTerm::In(vec![value.to_owned()]),
            };
            return requirement(key, condition);
        }
    }
    requirement(part, SelectorTerm::Exists)
}

/// Whether this is a single word; it may still be invalid for a label.
fn is_word(text: &str) -> bool {
    !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || "(),!=<>".contains(c))
}

fn parse_fields(kind: &ServedKind, text: &str) -> Result<Vec<FieldRequirement>, Refusal> {
    text.split(',')
        .filter(|part| !part.trim().is_empty())
        .map(|part| {
            let operators = [("!=", false), ("==", true), ("=", true)];
            let split = operators.into_iter().find_map(|(operator, equal)| {
                let (path, value) = part.split_once(operator)?;
                Some((path, value, equal))
            });
            let (path, value, equal) = split.ok_or_else(|| {
                Refusal::bad_request(format!(
                    "invalid selector: '{text}'; can't understand '{part}'"
                ))
            })?;
            let path = path.trim();
            let known = matches!(path, "metadata.name" | "metadata.namespace")
                || kind.selectable.iter().any(|selectable| selectable == path);
            if !known {
                // The message differs for built-in kinds without selectable fields.
                let plain = kind.is_built_in() && kind.selectable.is_empty();
                return Err(Refusal::bad_request(if plain {
                    format!(
                        "\"{path}\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
                    )
                } else {
                    format!("field label not supported: {path}")
                }));
            }
            Ok(FieldRequirement {
                path: path.split('.').map(str::to_owned).collect(),
                value: value.trim().to_owned(),
                equal,
            })
        })
        .collect()
}
