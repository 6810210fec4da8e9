//! Helpers that format cells.

use jiff::Timestamp;
use serde_json::Value;

use crate::object::{at, entries, items, text, texts};

pub(super) const NONE: &str = "<none>";

/// Formats labels as `a=b,c=d`, in order.
pub(super) fn labels(map: Option<&Value>) -> String {
    let map = map.and_then(Value::as_object);
    let mut pairs: Vec<_> = map
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", plain(value)))
        .collect();
    pairs.sort();
    pairs.join(",")
}

/// Formats a label selector as kubectl accepts one, in the order of the keys.
pub(super) fn selector(selector: &Value) -> String {
    let labels = entries(selector, &["matchLabels"]);
    let mut terms: Vec<_> = labels
        .map(|(key, value)| (key.as_str(), format!("{key}={}", plain(value))))
        .collect();
    for expression in items(selector, &["matchExpressions"]) {
        let key = text(expression, &["key"]);
        let mut values = texts(expression, &["values"]);
        values.sort_unstable();
        let values = values.join(",");
        let term = match text(expression, &["operator"]) {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "DoesNotExist" => format!("!{key}"),
            _ => key.to_owned(),
        };
        terms.push((key, term));
    }
    terms.sort_by_key(|(key, _)| *key);
    let terms: Vec<_> = terms.into_iter().map(|(_, term)| term).collect();
    terms.join(",")
}

/// Lists the first texts, and says how many more there are.
pub(super) fn first_of(mut all: Vec<String>) -> String {
    const SHOWN: usize = 3;
    let more = all.len().saturating_sub(SHOWN);
    all.truncate(SHOWN);
    let shown = all.join(",");
    match more {
        0 => shown,
        more => format!("{shown} + {more} more..."),
    }
}

pub(super) fn each(object: &Value, path: &[&str], show: impl Fn(&Value) -> String) -> Vec<String> {
    items(object, path).iter().map(show).collect()
}

pub(super) fn plain(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Returns the number of entries of a map or a list.
pub(super) fn count(object: &Value, path: &[&str]) -> usize {
    match at(object, path) {
        Some(Value::Object(map)) => map.len(),
        Some(Value::Array(list)) => list.len(),
        _ => 0,
    }
}

pub(super) fn integer(object: &Value, path: &[&str]) -> i64 {
    at(object, path).and_then(Value::as_i64).unwrap_or(0)
}

pub(super) fn number(object: &Value, path: &[&str]) -> String {
    at(object, path).map(Value::to_string).unwrap_or_default()
}

pub(super) fn or(text: &str, otherwise: &str) -> Value {
    if text.is_empty() { otherwise } else { text }.into()
}

pub(super) fn span(then: Timestamp, now: Timestamp) -> String {
    age(now.as_second() - then.as_second())
}

/// Formats a duration in seconds as kubectl does (e.g. `5m30s`, `3d2h`).
fn age(seconds: i64) -> String {
    let pair = |big: i64, unit: &str, small: i64, lesser: &str| {
        if small == 0 {
            format!("{big}{unit}")
        } else {
            format!("{big}{unit}{small}{lesser}")
        }
    };
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match seconds {
        ..=-2 => "<invalid>".to_owned(),
        -1..=0 => "0s".to_owned(),
        1..120 => format!("{seconds}s"),
        120..600 => pair(minutes, "m", seconds % 60, "s"),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => pair(hours, "h", minutes % 60, "m"),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => pair(days, "d", hours % 24, "h"),
        691_200..63_072_000 => format!("{days}d"),
        63_072_000..252_288_000 => pair(days / 365, "y", days % 365, "d"),
        _ => format!("{}y", days / 365),
    }
}

#[cfg(test)]
mod tests {
    use super::age;

    #[test]
    fn ages_read_as_in_kubectl() {
        for (seconds, text) in [
            (-5, "<invalid>"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (150, "2m30s"),
            (3_600, "60m"),
            (11_000, "3h3m"),
            (86_400, "24h"),
            (180_000, "2d2h"),
            (864_000, "10d"),
            (70_000_000, "2y80d"),
        ] {
            assert_eq!(age(seconds), text, "{seconds}");
        }
    }
}
