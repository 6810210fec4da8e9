//! Why work failed, and whether trying again helps.

use std::error::Error;
use std::fmt;

use okt_core::pass::Failed;
use serde_json::error::Category;

/// The failure of a handler or an observation.
///
/// Any error converts into one that is tried again, so `?` works in handlers; the errors of this crate (`reach`) know
/// better whether trying again helps, also behind another error.
/// It is no error itself, because of that.
///
/// ```
/// use okt_runtime::Failure;
///
/// fn read() -> Result<String, Failure> {
///     Ok(std::fs::read_to_string("/nowhere")?)
/// }
/// assert_eq!(read().unwrap_err().reason(), "Error");
/// let wrong = Failure::permanent("BadStorageSize", "spec.storage: `lots` is no quantity");
/// assert!(wrong.is_permanent());
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure(Failed);

impl Failure {
    /// A failure that trying again may mend; the waits between attempts grow.
    ///
    /// `reason` is one word in `PascalCase`, shown in conditions; `message` is for people and must be the
    /// same for the same failure: no times, counters or addresses that change.
    pub fn retry(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self(Failed::retry(reason, message))
    }

    /// A failure that only a change of the spec can mend.
    ///
    /// The object takes the `on_error` trigger of its state, or stands still until its spec changes.
    pub fn permanent(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self(Failed::permanent(reason, message))
    }

    /// The failure of a step.
    pub(crate) fn of_step(failed: Failed) -> Self {
        Self(failed)
    }

    /// The same with more to say.
    #[cfg(feature = "reach")]
    pub(crate) fn saying(mut self, more: &str) -> Self {
        if !more.is_empty() {
            self.0.message.push_str(": ");
            self.0.message.push_str(more);
        }
        self
    }

    /// One word for machines.
    pub fn reason(&self) -> &str {
        &self.0.reason
    }

    /// The details for people.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Whether trying again is of no use.
    pub fn is_permanent(&self) -> bool {
        self.0.permanent
    }
}

impl From<Failure> for Failed {
    fn from(failure: Failure) -> Self {
        failure.0
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.reason(), self.message())
    }
}

impl<E: Error + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        #[cfg(feature = "reach")]
        if let Some(failure) = crate::reach::failure_of(&error) {
            return failure;
        }
        Self::retry("Error", chain(&error))
    }
}

/// An error with all its causes, none said twice.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let said = cause.to_string();
        if !text.contains(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        source = cause.source();
    }
    text
}

/// Says why a text does not decode, without the values in it, which may be secret.
///
/// Of what JSON does not allow, and of a missing field, the error quotes none itself.
pub(crate) fn unquoted(error: &serde_json::Error) -> String {
    let said = error.to_string();
    if error.classify() != Category::Data || said.starts_with("missing field `") {
        return said;
    }
    match (error.line(), error.column()) {
        (0, _) => "a value does not fit its type".to_owned(),
        (line, column) => format!("a value does not fit its type at line {line} column {column}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("open the door")]
    struct Outer(#[source] Inner);

    #[derive(Debug, thiserror::Error)]
    #[error("the key is lost")]
    struct Inner;

    #[test]
    fn why_a_text_does_not_decode_is_said_without_its_values() {
        #[derive(Debug, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Login {
            #[expect(dead_code, reason = "it is read, and that is all")]
            port: u16,
        }
        for (text, said) in [
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
            assert_eq!(unquoted(&error), said, "{text}");
        }
        let error = serde_json::from_value::<Login>("hunter2".into()).expect_err("a text");
        assert_eq!(unquoted(&error), "a value does not fit its type");
    }

    #[test]
    fn an_error_is_told_with_its_causes() {
        let failure = Failure::from(Outer(Inner));
        assert_eq!(failure.message(), "open the door: the key is lost");
        assert!(!failure.is_permanent());
    }
}
