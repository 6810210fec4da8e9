//! Replaces the parts that differ in each run: times, ages, uids, versions, paths.

use std::path::Path;
use std::sync::LazyLock;

use regex::{Captures, Regex};

/// The patterns and their replacements.
static RULES: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    [
        (
            r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
            "<uid>",
        ),
        (
            r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z| \+0000)",
            "<time>",
        ),
        (
            r#"(resourceVersion"?: "?|Resource Version: +)\d+"#,
            "${1}<version>",
        ),
        // The log lines of kubectl's own watch at its timeout depend on which event it notices first.
        (r"(?m)^[IE]\d{4} .* reflector\.go:.*\n", ""),
        // The time and the process id of any other log line.
        (r"(?m)^([IWE])\d{4} [\d:.]+ +\d+ ", "$1<time> "),
        (r#"Context "[^"]+""#, r#"Context "<context>""#),
        (r"https?://127\.0\.0\.1:\d+", "<server>"),
        (r"\S*/(LIVE|MERGED)-\d+/", "$1/"),
    ]
    .map(|(pattern, with)| (Regex::new(pattern).expect("a pattern"), with))
    .into()
});

/// An age in a table, with the spaces up to the next column.
static AGE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(?m)( )(\d+m)?(\d+s)( *)( |$)").expect("a pattern"));

/// Normalizes the output of a command that ran in `directory`.
pub(crate) fn normal(output: &str, directory: &Path) -> String {
    let mut text = output.replace(&*directory.to_string_lossy(), "<here>");
    for (pattern, with) in &*RULES {
        text = pattern.replace_all(&text, *with).into_owned();
    }
    let age = |found: &Captures<'_>| {
        let of = |group| found.get(group).map_or(0, |part| part.len());
        let (wide, end) = (of(2) + of(3) + of(4), &found[5]);
        if end.is_empty() {
            " 0s".to_owned()
        } else {
            format!(" {:wide$}{end}", "0s")
        }
    };
    AGE.replace_all(&text, age).into_owned()
}
