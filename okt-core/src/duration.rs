//! Durations as text, as people write them in attributes.

use alloc::format;
use alloc::string::{String, ToString};
use core::time::Duration;

/// Formats a duration as it is written in `#[trigger(To, after = "..")]`.
pub fn text(time: Duration) -> String {
    let mut left = time.as_millis();
    let mut text = String::new();
    for (unit, millis) in [
        ("d", 86_400_000),
        ("h", 3_600_000),
        ("m", 60_000),
        ("s", 1000),
        ("ms", 1),
    ] {
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
