//! Texts for people, made from objects.

use jiff::SignedDuration;
use okt_core::{Graph, StateId};
use serde_json::Value;
use unicode_properties::{GeneralCategory, UnicodeGeneralCategory};

/// Replaces the characters of all texts in a value that control a terminal, or deceive who reads it.
///
/// Everybody who may write an object chooses its texts.
pub fn clean(value: &mut Value) {
    match value {
        Value::String(text) => {
            if text.contains(is_unseen) {
                *text = plain(text);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(clean),
        Value::Object(fields) => fields.values_mut().for_each(clean),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Returns a text on one line, without characters that control a terminal, and with a sign for each that nobody sees:
/// these change the order of the others, or make two names look the same.
pub fn plain(text: &str) -> String {
    let seen = |c: char| match c {
        c if c.is_control() => ' ',
        c if is_unseen(c) => char::REPLACEMENT_CHARACTER,
        c => c,
    };
    text.chars().map(seen).collect()
}

/// Returns whether a character is not seen as itself.
fn is_unseen(c: char) -> bool {
    matches!(
        c.general_category(),
        GeneralCategory::Control
            | GeneralCategory::Format
            | GeneralCategory::LineSeparator
            | GeneralCategory::ParagraphSeparator
    )
}

/// Returns a duration as kubectl prints an age: two units at most.
pub fn age(time: SignedDuration) -> String {
    let seconds = time.as_secs().max(0);
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match () {
        () if minutes < 2 => format!("{seconds}s"),
        () if hours < 3 => match seconds % 60 {
            left if minutes < 10 && left > 0 => format!("{minutes}m{left}s"),
            _ => format!("{minutes}m"),
        },
        () if days < 2 => match minutes % 60 {
            left if hours < 8 && left > 0 => format!("{hours}h{left}m"),
            _ => format!("{hours}h"),
        },
        () => match hours % 24 {
            left if days < 8 && left > 0 => format!("{days}d{left}h"),
            _ => format!("{days}d"),
        },
    }
}

/// Returns names of states as a way (e.g. `Running → Stopping → End`).
pub fn way(graph: &Graph<'_>, states: impl IntoIterator<Item = StateId>) -> String {
    let names: Vec<&str> = states.into_iter().map(|id| graph.name_of(id)).collect();
    names.join(" → ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_age_has_two_units_at_most() {
        let ages = [
            0, 119, 120, 125, 3600, 10_800, 11_100, 172_800, 180_000, 10_000_000,
        ];
        let texts: Vec<String> = ages
            .into_iter()
            .map(|it| age(SignedDuration::from_secs(it)))
            .collect();
        assert_eq!(
            texts,
            [
                "0s", "119s", "2m", "2m5s", "60m", "3h", "3h5m", "2d", "2d2h", "115d"
            ]
        );
        assert_eq!(
            age(SignedDuration::from_secs(-5)),
            "0s",
            "a clock that is ahead"
        );
    }

    #[test]
    fn a_text_of_an_object_controls_no_terminal() {
        let mut value = json!({ "a": ["\u{1b}[31mred\n\u{7}"], "b": { "c": "\u{9b}2J" }, "d": 1 });
        clean(&mut value);
        assert_eq!(
            value,
            json!({ "a": [" [31mred  "], "b": { "c": " 2J" }, "d": 1 })
        );
        for deceives in [
            "\u{202e}",
            "\u{2066}",
            "\u{200b}",
            "\u{200d}",
            "\u{200f}",
            "\u{feff}",
            "\u{ad}",
            "\u{2028}",
            "\u{e0041}",
            "\u{61c}",
            "\u{180e}",
        ] {
            let text = format!("a{deceives}b");
            assert_eq!(plain(&text), "a\u{fffd}b", "{deceives:?}");
        }
        let readable = "Straße 東京 עברית naïve 🚀 ﷽";
        assert_eq!(plain(readable), readable);
    }
}
