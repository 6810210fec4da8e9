//! Why a request got no good answer, and whether sending it again helps.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;

use super::error::ReachError;
use super::output::{LOGGED, SHOWN};
use crate::failure::Failure;

/// Why an HTTP request got no good answer.
///
/// It converts into a [`Failure`](crate::Failure): of a bad status the reason is that status (`HttpNotFound`,
/// `HttpServiceUnavailable`), else the name of the variant; [`retry_helps`](Self::retry_helps) says whether it is
/// one that is tried again.
/// The query of a URL may be secret, and is left out of messages.
///
/// So is the body of an answer: a failure goes into the status of the object and into events, which more people read
/// than the application's Secrets.
/// The text is in the log at level `debug`, and in a failure that you make with [`with_body`](Self::with_body).
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HttpError {
    /// The request cannot be sent: its URL, a header or its body is none, or TLS cannot be set up.
    #[error("cannot send {request}: {why}")]
    Unsendable {
        /// Method and URL.
        request: String,
        /// What is wrong.
        why: String,
    },
    /// The application could not be connected to; the request did not arrive.
    #[error("{request}: cannot connect: {why}")]
    Unreachable {
        /// Method and URL.
        request: String,
        /// Why.
        why: String,
        /// The same, where a port could not be forwarded.
        #[source]
        forwarding: Option<Box<ReachError>>,
    },
    /// The connection broke before the whole answer was there: nobody knows whether the request arrived.
    #[error("{request}: no answer: {why}")]
    Unanswered {
        /// Method and URL.
        request: String,
        /// What became of the connection.
        why: String,
    },
    /// The whole answer was not there in time: nobody knows whether the request arrived.
    #[error("{request}: no answer within {} s", .after.as_secs_f64())]
    TimedOut {
        /// Method and URL.
        request: String,
        /// How long was waited.
        after: Duration,
    },
    /// The answer is no success; a redirection is none, it is not followed.
    #[error("{request}: {status}{}", answered(.redirect.as_deref(), .body))]
    Status {
        /// Method and URL.
        request: String,
        /// The status of the answer.
        status: StatusCode,
        /// Where it redirects to, without a query.
        redirect: Option<String>,
        /// Its body.
        body: Body,
    },
    /// The body of the answer is longer than was to be read.
    #[error("{request}: an answer ({status}) of more than {limit} bytes")]
    AnswerTooLong {
        /// Method and URL.
        request: String,
        /// The status of the answer.
        status: StatusCode,
        /// How many bytes were to be read.
        limit: usize,
    },
    /// The answer is a success, but not the JSON that was expected.
    #[error("{request}: an answer ({status}, {body}) of another form: {why}")]
    AnswerMalformed {
        /// Method and URL.
        request: String,
        /// The status of the answer.
        status: StatusCode,
        /// What is wrong with it.
        why: String,
        /// Its body.
        body: Body,
    },
}

impl HttpError {
    /// The status of the answer, if there was one.
    pub fn status(&self) -> Option<StatusCode> {
        match self {
            Self::Status { status, .. }
            | Self::AnswerTooLong { status, .. }
            | Self::AnswerMalformed { status, .. } => Some(*status),
            Self::Unsendable { .. }
            | Self::Unreachable { .. }
            | Self::Unanswered { .. }
            | Self::TimedOut { .. } => None,
        }
    }

    /// A failure whose message has the beginning of the answer's body, for an application that puts no secrets there.
    ///
    /// It is 256 bytes at most, on one line.
    /// An error without a body is the failure that `?` makes of it.
    ///
    /// ```no_run
    /// use okt_runtime::Failure;
    /// use okt_runtime::reach::{Http, HttpError};
    ///
    /// # async fn example(http: Http) -> Result<(), Failure> {
    /// let reload = http.post("http://proxy.team-a.svc:9901/reload");
    /// reload.send().await.map_err(HttpError::with_body)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn with_body(self) -> Failure {
        let body = match &self {
            Self::Status { body, .. } | Self::AnswerMalformed { body, .. } => body.shown(),
            _ => String::new(),
        };
        Failure::from(self).saying(&body)
    }

    /// Whether the same request may get a good answer later, though nobody has changed it.
    ///
    /// A status that blames the request itself (400, 405, 422 and the like) says no. Where something else may have
    /// to change (401, 404, a redirection), it may do so at any time.
    pub fn retry_helps(&self) -> bool {
        match self {
            Self::Unsendable { .. } | Self::AnswerTooLong { .. } => false,
            Self::Unreachable {
                forwarding: Some(error),
                ..
            } => error.retry_helps(),
            Self::Unreachable { .. }
            | Self::Unanswered { .. }
            | Self::TimedOut { .. }
            | Self::AnswerMalformed { .. } => true,
            Self::Status { status, .. } => !blames_request(*status),
        }
    }

    /// One word for machines.
    pub(super) fn reason(&self) -> String {
        match self {
            Self::Unsendable { .. } => "Unsendable".to_owned(),
            Self::Unreachable { .. } => "Unreachable".to_owned(),
            Self::Unanswered { .. } => "Unanswered".to_owned(),
            Self::TimedOut { .. } => "TimedOut".to_owned(),
            Self::Status { status, .. } => named(*status),
            Self::AnswerTooLong { .. } => "AnswerTooLong".to_owned(),
            Self::AnswerMalformed { .. } => "AnswerMalformed".to_owned(),
        }
    }
}

/// Whether nothing but another request can help.
fn blames_request(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::BAD_REQUEST
            | StatusCode::METHOD_NOT_ALLOWED
            | StatusCode::NOT_ACCEPTABLE
            | StatusCode::LENGTH_REQUIRED
            | StatusCode::PAYLOAD_TOO_LARGE
            | StatusCode::URI_TOO_LONG
            | StatusCode::UNSUPPORTED_MEDIA_TYPE
            | StatusCode::UNPROCESSABLE_ENTITY
            | StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE
            | StatusCode::NOT_IMPLEMENTED
            | StatusCode::HTTP_VERSION_NOT_SUPPORTED
    )
}

/// A status as one word (e.g. `HttpNotFound`).
fn named(status: StatusCode) -> String {
    let words = status.canonical_reason().unwrap_or(status.as_str());
    let mut named = "Http".to_owned();
    for word in words.split(|c: char| !c.is_ascii_alphanumeric()) {
        let (first, rest) = word.split_at(word.len().min(1));
        named.push_str(&first.to_ascii_uppercase());
        named.push_str(rest);
    }
    named
}

/// What a message says of an answer besides its status.
fn answered(redirect: Option<&str>, body: &Body) -> String {
    match redirect {
        Some(to) => format!(": redirects to {to}, which is not followed"),
        None => format!(" ({body})"),
    }
}

/// The body of an answer that is an error; `Display` and `Debug` show how much, not what.
#[derive(Clone, PartialEq, Eq)]
pub struct Body(pub(super) Bytes);

impl Body {
    /// The body as it is.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// As a message may show it that is to have it.
    fn shown(&self) -> String {
        beginning(&self.0, SHOWN)
    }

    /// As the debug log shows it.
    pub(super) fn logged(&self) -> String {
        beginning(&self.0, LOGGED)
    }
}

impl fmt::Display for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The beginning of a text on one line, cut between characters.
pub(super) fn beginning(bytes: &[u8], limit: usize) -> String {
    // Cut early, for a body may be long; what it leaves of a character at the end is dropped below.
    let start = &bytes[..bytes.len().min(4 * limit)];
    let text = String::from_utf8_lossy(start);
    let words: Vec<_> = text
        .split(|c: char| c.is_whitespace() || c.is_control())
        .filter(|word| !word.is_empty())
        .collect();
    let line = words.join(" ");
    let shown = &line[..line.floor_char_boundary(limit)];
    let cut = shown.len() < line.len() || start.len() < bytes.len();
    format!("{shown}{}", if cut { "…" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_is_one_word_that_may_be_a_reason() {
        for code in 100..1000 {
            let status = StatusCode::from_u16(code).expect("three digits");
            let name = named(status);
            assert!(name.chars().all(|c| c.is_ascii_alphanumeric()), "{name}");
            assert!(name.starts_with("Http") && name.len() > 4, "{name}");
        }
        assert_eq!(
            named(StatusCode::SERVICE_UNAVAILABLE),
            "HttpServiceUnavailable"
        );
        assert_eq!(named(StatusCode::IM_A_TEAPOT), "HttpIMATeapot");
        assert_eq!(
            named(StatusCode::from_u16(599).expect("a status")),
            "Http599"
        );
    }

    #[test]
    fn a_beginning_is_one_line_and_cut_between_characters() {
        let beginning = |bytes: &[u8]| beginning(bytes, SHOWN);
        assert_eq!(beginning(b""), "");
        assert_eq!(
            beginning(b"  <html>\r\n\t<body>\x1b[31m "),
            "<html> <body> [31m"
        );
        let long = "é".repeat(400);
        assert_eq!(beginning(long.as_bytes()), format!("{}…", "é".repeat(128)));
        assert_eq!(beginning(&[b' '; 4000]), "…");
        assert_eq!(beginning(&[0xff, b'a']), "\u{fffd}a");
    }

    #[test]
    fn a_body_is_not_in_the_debug_text() {
        let body = Body(Bytes::from_static(b"hunter2"));
        assert_eq!(format!("{body:?}"), "7 bytes");
    }
}
