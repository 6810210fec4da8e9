//! Durations as text, as people write them in attributes.

use alloc::format;
use alloc::string::{String, ToString};
use core::time::Duration;

/// The units, with their milliseconds.
const UNITS: [(&str, u128); 5] = [
    ("d", 86_400_000),
    ("h", 3_600_000),
    ("m", 60_000),
    ("s", 1000),
    ("ms", 1),
];

/// Formats a duration as it is written in `#[trigger(To, after = "..")]`.
pub fn text(time: Duration) -> String {
    let mut left = time.as_millis();
    let mut text = String::new();
    for (unit, millis) in UNITS {
        if left >= millis {
            text.push_str(&format!("{}{unit}", left / millis));
            left %= millis;
        }
    }
    if text.is_empty() {
        "0s".to_string()
    } else {
        text
    }
}

/// Parses what [`text`] returns; none for any other text.
///
/// ```
/// use core::time::Duration;
/// use okt_core::duration::{parse, text};
///
/// assert_eq!(parse("1h30m"), Some(Duration::from_secs(90 * 60)));
/// assert_eq!(text(Duration::from_secs(90 * 60)), "1h30m");
/// assert_eq!(parse("soon"), None);
/// ```
pub fn parse(text: &str) -> Option<Duration> {
    let mut total = Duration::ZERO;
    let mut left = text;
    while !left.is_empty() {
        let digits = left.find(|c: char| !c.is_ascii_digit())?;
        let (number, rest) = left.split_at(digits);
        let end = rest.find(|c: char| c.is_ascii_digit());
        let (unit, rest) = rest.split_at(end.unwrap_or(rest.len()));
        let (_, millis) = UNITS.iter().find(|(name, _)| *name == unit)?;
        let millis = number.parse::<u128>().ok()?.checked_mul(*millis)?;
        total = total.checked_add(Duration::from_millis(millis.try_into().ok()?))?;
        left = rest;
    }
    (!text.is_empty()).then_some(total)
}
