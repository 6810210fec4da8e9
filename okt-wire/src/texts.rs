//! Errors as text for people.

use std::any::Any;
use std::error::Error;
use std::fmt::Display;
use std::time::Duration;

use kube::runtime::watcher;
use serde_json::error::Category;

/// Returns an error with all its causes, without repetitions.
pub fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let more = cause.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        source = cause.source();
    }
    text
}

/// Returns the text of an error; of an answer of the API only the code and the message.
pub fn api_message(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => format!("{} {}", status.code, status.message),
        error => chain(error),
    }
}

/// Returns the text of an error of a watch; of an answer of the API only the code and the message.
pub fn watch_message(error: &watcher::Error) -> String {
    match error {
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => api_message(error),
        watcher::Error::WatchError(status) => format!("{} {}", status.code, status.message),
        error @ watcher::Error::NoResourceVersion => chain(error),
    }
}

/// Returns why a text does not decode, without its values, which may be secret.
///
/// Errors about the syntax or a missing field quote no value themselves.
pub fn unquoted(error: &serde_json::Error) -> String {
    let text = error.to_string();
    if error.classify() != Category::Data || text.starts_with("missing field `") {
        return text;
    }
    match (error.line(), error.column()) {
        (0, _) => "a value does not fit its type".to_owned(),
        (line, column) => format!("a value does not fit its type at line {line} column {column}"),
    }
}

/// Returns the message of a panic.
pub fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    match text {
        Some(text) => format!("the handler panicked: {text}"),
        None => "the handler panicked".to_owned(),
    }
}

/// Returns a name with its namespace, if it has one: `demo/orders`.
pub fn qualified(namespace: Option<&str>, name: &str) -> String {
    match namespace {
        Some(namespace) => format!("{namespace}/{name}"),
        None => name.to_owned(),
    }
}

/// Returns the namespace, if there is one, and the name in a [`qualified`] name.
pub fn split_qualified(name: &str) -> (Option<&str>, &str) {
    match name.split_once('/') {
        Some((namespace, name)) => (Some(namespace), name),
        None => (None, name),
    }
}

/// Formats a time for people.
pub fn seconds(time: Duration) -> String {
    format!("{} s", time.as_secs_f64())
}

/// Returns the beginning of a text, cut between characters.
pub fn cut(text: &str, room: usize) -> String {
    text[..text.floor_char_boundary(room)].to_owned()
}

/// The last error of something that is retried for as long as it fails: the same error is logged once.
#[derive(Debug, Default)]
pub struct LastError(Option<String>);

impl LastError {
    /// Logs an error about a kind, if it differs from the last one; `what` failed.
    pub fn warn(&mut self, what: &str, kind: &dyn Display, error: &dyn Error) {
        let why = chain(error);
        if self.0.as_ref() != Some(&why) {
            tracing::warn!(%kind, "{what}: {why}");
            self.0 = Some(why);
        }
    }

    /// Forgets the error: it is over.
    pub fn end(&mut self) {
        self.0 = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decoding_error_does_not_quote_values() {
        #[derive(Debug, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Login {
            #[expect(dead_code, reason = "it is read, and that is all")]
            port: u16,
        }
        for (text, expected) in [
            (
                r#"{"port":"hunter2"}"#,
                "a value does not fit its type at line 1 column 17",
            ),
            (
                r#"{"port":4711000}"#,
                "a value does not fit its type at line 1 column 15",
            ),
            (
                r#"{"hunter2":1}"#,
                "a value does not fit its type at line 1 column 10",
            ),
            (
                r#""hunter2""#,
                "a value does not fit its type at line 1 column 9",
            ),
            ("{}", "missing field `port` at line 1 column 2"),
            ("hunter2", "expected value at line 1 column 1"),
            ("", "EOF while parsing a value at line 1 column 0"),
        ] {
            let error = serde_json::from_str::<Login>(text).expect_err(text);
            assert_eq!(unquoted(&error), expected, "{text}");
        }
        let error = serde_json::from_value::<Login>("hunter2".into()).expect_err("a text");
        assert_eq!(unquoted(&error), "a value does not fit its type");
    }
}
