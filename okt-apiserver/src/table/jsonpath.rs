//! Finds the values of printer columns by their JSON paths.
//!
//! It supports the parts that columns use: fields (dotted, escaped or in brackets), indexes, `[*]`, and filters that
//! compare one field with one literal.

mod grammar;

use serde_json::Value;

pub(crate) use self::grammar::PathFault;

/// A path such as `.status.conditions[?(@.type=="Ready")].status`.
#[derive(Debug)]
pub(crate) struct JsonPath(Vec<PathStep>);

#[derive(Debug)]
enum PathStep {
    Field(String),
    Index(i64),
    /// Every item of a list.
    Items,
    /// Every item of a list, or every value of a map.
    All,
    Filter {
        path: JsonPath,
        equal: bool,
        value: Value,
    },
}

impl JsonPath {
    /// Returns the first value that the path leads to.
    pub(crate) fn first<'a>(&self, object: &'a Value) -> Option<&'a Value> {
        follow(&self.0, object)
    }
}

fn follow<'a>(steps: &[PathStep], value: &'a Value) -> Option<&'a Value> {
    let Some((step, rest)) = steps.split_first() else {
        return Some(value);
    };
    match step {
        PathStep::Field(name) => follow(rest, value.get(name)?),
        PathStep::Index(index) => {
            let items = value.as_array()?;
            let length = i64::try_from(items.len()).ok()?;
            let index = if *index < 0 { length + index } else { *index };
            follow(rest, items.get(usize::try_from(index).ok()?)?)
        }
        PathStep::Items => value.as_array()?.iter().find_map(|item| follow(rest, item)),
        PathStep::All => match value {
            Value::Array(items) => items.iter().find_map(|item| follow(rest, item)),
            Value::Object(fields) => fields.values().find_map(|item| follow(rest, item)),
            _ => None,
        },
        PathStep::Filter {
            path,
            equal,
            value: wanted,
        } => value
            .as_array()?
            .iter()
            // An item without the field matches neither comparison.
            .filter(|item| {
                let found = path.first(item);
                found.is_some_and(|found| (found == wanted) == *equal)
            })
            .find_map(|item| follow(rest, item)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{JsonPath, PathFault};

    fn find(path: &str) -> Option<Value> {
        let object = json!({
            "metadata": { "labels": { "a.b/c": "dotted" } },
            "status": { "conditions": [
                { "type": "Fast", "status": "False" },
                { "type": "Ready", "status": "True", "count": 2 },
            ] },
        });
        JsonPath::parse(path).ok()?.first(&object).cloned()
    }

    #[test]
    fn a_filter_picks_the_item_whose_field_is_equal() {
        let ready = Some(json!("True"));
        assert_eq!(
            find(".status.conditions[?(@.type==\"Ready\")].status"),
            ready
        );
        assert_eq!(find(".status.conditions[?(@.type=='Ready')].status"), ready);
        assert_eq!(find(".status.conditions[?(@.count==2)].status"), ready);
        assert_eq!(
            find(".status.conditions[?(@.type!=\"Fast\")].status"),
            ready
        );
        assert_eq!(find(".status.conditions[?(@.type==\"Slow\")].status"), None);
        assert_eq!(find(".status.conditions[?(@.count!=3)].status"), ready);
    }

    #[test]
    fn indexes_count_from_both_ends() {
        assert_eq!(find(".status.conditions[0].type"), Some(json!("Fast")));
        assert_eq!(find(".status.conditions[-1].type"), Some(json!("Ready")));
        assert_eq!(find(".status.conditions[*].count"), Some(json!(2)));
        assert_eq!(find(".status.conditions[7].type"), None);
    }

    #[test]
    fn a_key_with_dots_is_escaped() {
        let dotted = Some(json!("dotted"));
        assert_eq!(find(r".metadata.labels.a\.b/c"), dotted);
        assert_eq!(find(r"$.metadata.labels['a\.b/c']"), dotted);
        assert_eq!(find("$.metadata.labels['a.b/c']"), None);
    }

    #[test]
    fn a_path_that_no_server_accepts_is_wrong() {
        for path in [".a[", ".a[b]", ".a]", ".a[?(@.x==]", ".a{b", ".a[\"b\"]"] {
            let read = JsonPath::parse(path).map(|_| ());
            assert_eq!(read, Err(PathFault::Wrong), "{path}");
        }
    }

    #[test]
    fn a_path_that_only_a_server_supports_is_unknown() {
        for path in [
            "..a",
            ".a[0:2]",
            ".a[0,1]",
            ".a[?(@.x)]",
            ".a[?(@.x>1)]",
            ".a}",
            ".a b",
        ] {
            let read = JsonPath::parse(path).map(|_| ());
            assert_eq!(read, Err(PathFault::Unknown), "{path}");
        }
    }
}
