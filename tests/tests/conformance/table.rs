//! Tables of cases that differ in data alone: each line has the data of a case, an arrow, and what is expected.

use serde_json::Value;

/// Returns the cases of a table. A line without an arrow is a comment.
pub(crate) fn cases(table: &str) -> impl Iterator<Item = (&str, &str)> {
    let cases = table.lines().filter_map(|line| line.split_once(" → "));
    cases.map(|(data, expected)| (data.trim(), expected.trim_end()))
}

/// Returns the cases of a table whose data are JSON.
pub(crate) fn json_cases(table: &str) -> impl Iterator<Item = (Value, &str)> {
    cases(table).map(|(data, expected)| (parse(data), expected))
}

pub(crate) fn parse(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}
