//! Valid names of states on the wire, condition types, condition reasons and generated items.

use alloc::string::String;

use heck::ToSnakeCase;

/// The longest wire name of a state, in bytes.
///
/// The CRD limits every string that a CEL rule reads to this length.
pub const STATE_LIMIT: usize = 63;

/// The longest condition type, in bytes (metav1.Condition).
const TYPE_LIMIT: usize = 316;

/// The longest condition reason, in bytes (metav1.Condition).
const REASON_LIMIT: usize = 1024;

/// Condition types that the runtime writes itself.
pub const RESERVED: [&str; 5] = ["Ready", "Reconciling", "Stalled", "Deleting", "Paused"];

/// Returns whether a word can name a state: it must serve as a condition reason, a trail segment and a CEL string.
///
/// ```
/// use okt_core::names::is_state;
/// assert!(is_state("Servicing"));
/// assert!(is_state("Up_"));
/// assert!(!is_state("in-service"));
/// ```
pub fn is_state(word: &str) -> bool {
    word.len() <= STATE_LIMIT
        && word.starts_with(|c: char| c.is_ascii_alphabetic())
        && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Returns whether a word can be a condition reason (the pattern of metav1.Condition).
pub fn is_reason(word: &str) -> bool {
    word.len() <= REASON_LIMIT
        && word.starts_with(|c: char| c.is_ascii_alphabetic())
        && word
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | ',' | ':'))
        && !word.ends_with([',', ':'])
}

/// Returns whether a word can be a condition type (the pattern of metav1.Condition).
/// The type is a name, after a domain and a slash if it belongs to a third party.
pub fn is_condition_type(word: &str) -> bool {
    let (domain, name) = match word.split_once('/') {
        Some((domain, name)) => (Some(domain), name),
        None => (None, word),
    };
    let label = |label: &str| {
        label.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
            && label.ends_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
            && label
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
    };
    word.len() <= TYPE_LIMIT
        && domain.is_none_or(|domain| domain.split('.').all(label))
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.ends_with(|c: char| c.is_ascii_alphanumeric())
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

/// Returns the method or module name of a state or enum (e.g. `DatabaseState` becomes `database_state`).
pub fn snake(variant: &str) -> String {
    variant.to_snake_case()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_follow_the_pattern_of_metav1() {
        for good in ["A", "Ready", "a1", "A_", "A:b", "A,b"] {
            assert!(is_reason(good), "{good}");
        }
        for bad in ["", "1a", "A ", "A:", "A,", "A-b", "_A", "Ä"] {
            assert!(!is_reason(bad), "{bad}");
        }
    }

    #[test]
    fn condition_types_follow_the_pattern_of_metav1() {
        for good in ["Ready", "A-b", "a.b_C", "okt.dev/Ready", "0k.x-y/Z"] {
            assert!(is_condition_type(good), "{good}");
        }
        for bad in [
            "",
            "-A",
            "A.",
            "A b",
            "Okt.dev/A",
            "/A",
            "a/",
            "a/b/c",
            "a..b/C",
        ] {
            assert!(!is_condition_type(bad), "{bad}");
        }
    }

    #[test]
    fn methods_are_snake_case() {
        assert_eq!(snake("InService"), "in_service");
        assert_eq!(snake("HTTPServer2"), "http_server2");
        assert_eq!(snake("Loop"), "loop");
    }
}
