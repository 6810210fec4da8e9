//! Tests of the command line.

// It has the options of all features.
#[cfg(all(
    feature = "cloudevents",
    feature = "map",
    feature = "otel",
    feature = "secure-metrics",
    feature = "webhooks"
))]
mod page;

use super::*;

#[test]
fn a_word_that_is_no_level_does_not_silence_the_logs() {
    for fine in [
        LOG,
        "warn",
        "OFF",
        "debug,",
        "okt_runtime",
        "info,okt=trace",
        "kube::client",
    ] {
        assert!(filter(fine).is_ok(), "{fine}");
    }
    for (wrong, word) in [
        ("warning", "warning"),
        ("inof", "inof"),
        ("info,kube", "kube"),
    ] {
        let why = filter(wrong).expect_err(wrong);
        assert!(why.starts_with(&format!("`{word}` is no level")), "{why}");
    }
}
