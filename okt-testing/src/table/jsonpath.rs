//! This file reads the JSON paths of printer columns.
//!
//! Fields (dotted, escaped or in brackets), indexes, `[*]` and filters that compare one field with
//! one literal; that is what columns are written with.

use serde_json::Value;

/// A path such as `.status.conditions[?(@.type=="Ready")].status`.
#[derive(Debug)]
pub(crate) struct JsonPath(Vec<Step>);

#[derive(Debug)]
enum Step {
    Field(String),
    Index(i64),
    All,
    Filter {
        path: JsonPath,
        equal: bool,
        value: Value,
    },
}

impl JsonPath {
    /// Reads a path; `None` for what this file does not know.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let text = text
            .strip_prefix('{')
            .and_then(|text| text.strip_suffix('}'))
            .unwrap_or(text);
        let mut rest = text.strip_prefix(['$', '@']).unwrap_or(text);
        let mut steps = Vec::new();
        while let Some(first) = rest.chars().next() {
            match first {
                '.' => {
                    let (name, after) = field(&rest[1..]);
                    match name.as_str() {
                        "" => {}
                        "*" => steps.push(Step::All),
                        _ => steps.push(Step::Field(name)),
                    }
                    rest = after;
                }
                '[' => {
                    let end = closing(rest)?;
                    steps.push(bracket(&rest[1..end])?);
                    rest = &rest[end + 1..];
                }
                _ if steps.is_empty() => {
                    let (name, after) = field(rest);
                    steps.push(Step::Field(name));
                    rest = after;
                }
                _ => return None,
            }
        }
        Some(Self(steps))
    }

    /// The first value that the path leads to.
    pub(crate) fn first<'a>(&self, object: &'a Value) -> Option<&'a Value> {
        follow(&self.0, object)
    }
}

fn follow<'a>(steps: &[Step], value: &'a Value) -> Option<&'a Value> {
    let Some((step, rest)) = steps.split_first() else {
        return Some(value);
    };
    match step {
        Step::Field(name) => follow(rest, value.get(name)?),
        Step::Index(index) => {
            let items = value.as_array()?;
            let length = i64::try_from(items.len()).ok()?;
            let index = if *index < 0 { length + index } else { *index };
            follow(rest, items.get(usize::try_from(index).ok()?)?)
        }
        Step::All => match value {
            Value::Array(items) => items.iter().find_map(|item| follow(rest, item)),
            Value::Object(fields) => fields.values().find_map(|item| follow(rest, item)),
            _ => None,
        },
        Step::Filter {
            path,
            equal,
            value: wanted,
        } => value
            .as_array()?
            .iter()
            .filter(|item| (path.first(item) == Some(wanted)) == *equal)
            .find_map(|item| follow(rest, item)),
    }
}

/// A name up to the next dot or bracket; a backslash takes the next character as it is.
fn field(text: &str) -> (String, &str) {
    let mut name = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => {
                if let Some((_, escaped)) = chars.next() {
                    name.push(escaped);
                }
            }
            '.' | '[' => return (name, &text[at..]),
            _ => name.push(c),
        }
    }
    (name, "")
}

/// The place of the bracket that closes the one at the start.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0;
    let mut quote = None;
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, '[') => depth += 1,
            (None, ']') => {
                depth -= 1;
                if depth == 0 {
                    return Some(at);
                }
            }
            (Some(_) | None, _) => {}
        }
    }
    None
}

fn bracket(inner: &str) -> Option<Step> {
    let inner = inner.trim();
    if inner == "*" {
        return Some(Step::All);
    }
    if let Some(filter) = inner.strip_prefix("?(").and_then(|f| f.strip_suffix(')')) {
        let (at, equal) = match (filter.find("=="), filter.find("!=")) {
            (Some(at), _) => (at, true),
            (None, Some(at)) => (at, false),
            (None, None) => return None,
        };
        return Some(Step::Filter {
            path: JsonPath::parse(&filter[..at])?,
            equal,
            value: literal(filter[at + 2..].trim())?,
        });
    }
    match literal(inner)? {
        Value::String(name) => Some(Step::Field(name)),
        Value::Number(index) => Some(Step::Index(index.as_i64()?)),
        _ => None,
    }
}

fn literal(text: &str) -> Option<Value> {
    let quoted = |quote: char| {
        text.strip_prefix(quote)
            .and_then(|text| text.strip_suffix(quote))
    };
    match quoted('"').or_else(|| quoted('\'')) {
        Some(inner) => Some(inner.into()),
        None => serde_json::from_str(text).ok(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::JsonPath;

    fn find(path: &str) -> Option<Value> {
        let object = json!({
            "metadata": { "labels": { "a.b/c": "dotted" } },
            "status": { "conditions": [
                { "type": "Fast", "status": "False" },
                { "type": "Ready", "status": "True", "count": 2 },
            ] },
        });
        JsonPath::parse(path)?.first(&object).cloned()
    }

    #[test]
    fn a_filter_picks_the_item_whose_field_is_equal() {
        let ready = Some(json!("True"));
        assert_eq!(
            find(".status.conditions[?(@.type==\"Ready\")].status"),
            ready
        );
        assert_eq!(
            find("{.status.conditions[?(@.type=='Ready')].status}"),
            ready
        );
        assert_eq!(find(".status.conditions[?(@.count==2)].status"), ready);
        assert_eq!(
            find(".status.conditions[?(@.type!=\"Fast\")].status"),
            ready
        );
        assert_eq!(find(".status.conditions[?(@.type==\"Slow\")].status"), None);
    }

    #[test]
    fn indexes_count_from_both_ends() {
        assert_eq!(find(".status.conditions[0].type"), Some(json!("Fast")));
        assert_eq!(find(".status.conditions[-1].type"), Some(json!("Ready")));
        assert_eq!(find(".status.conditions[*].count"), Some(json!(2)));
        assert_eq!(find(".status.conditions[7].type"), None);
    }

    #[test]
    fn a_key_with_dots_is_escaped_or_quoted() {
        assert_eq!(find(r".metadata.labels.a\.b/c"), Some(json!("dotted")));
        assert_eq!(find("$.metadata.labels['a.b/c']"), Some(json!("dotted")));
    }

    #[test]
    fn what_is_no_path_is_none() {
        for path in [".a[", ".a[?(x)]", ".a[b]", "[]", ".a]"] {
            assert_eq!(find(path), None, "{path}");
        }
    }
}
