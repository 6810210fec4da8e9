//! The error of an HTTP request, and whether a retry helps.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;

use super::error::ReachError;
use super::output::{LOGGED, SHOWN};
use crate::failure::Failure;

/// The error of an HTTP request without a successful response.
///
/// It converts into a [`Failure`](crate::Failure). The reason is the HTTP status if that is the error (`HttpNotFound`,
/// `HttpServiceUnavailable`), else the name of the variant; [`retry_helps`](Self::retry_helps) decides whether the
/// failure is permanent.
/// Messages omit the query of a URL, because it may be secret.
///
/// They omit the body of a response too: a failure goes into the status of the object and into events, which more
/// people read than the application's Secrets.
/// The body is in the log at level `debug`, and in a failure that you create with [`with_body`](Self::with_body).
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HttpError {
    /// The request cannot be sent: its URL, a header or its body is invalid, or TLS cannot be set up.
    #[error("cannot send {request}: {why}")]
    Unsendable {
        /// Method and URL.
        request: String,
        /// The cause.
        why: String,
    },
    /// The connection to the application failed; the request did not arrive.
    #[error("{request}: cannot connect: {why}")]
    Unreachable {
        /// Method and URL.
        request: String,
        /// The cause.
        why: String,
        /// The error of the port forwarding, if that is the cause.
        #[source]
        forwarding: Option<Box<ReachError>>,
    },
    /// The connection broke before the whole response arrived: it is unknown whether the request arrived.
    #[error("{request}: no answer: {why}")]
    Unanswered {
        /// Method and URL.
        request: String,
        /// What happened to the connection.
        why: String,
    },
    /// The whole response did not arrive in time: it is unknown whether the request arrived.
    #[error("{request}: no answer within {} s", .after.as_secs_f64())]
    TimedOut {
        /// Method and URL.
        request: String,
        /// The timeout.
        after: Duration,
    },
    /// The status of the response is not a success (2xx); OKT does not follow redirects.
    #[error("{request}: {status}{}", answered(.redirect.as_deref(), .body))]
    Status {
        /// Method and URL.
        request: String,
        /// The status of the response.
        status: StatusCode,
        /// The target of a redirect, without a query.
        redirect: Option<String>,
        /// The body of the response.
        body: Body,
    },
    /// The body of the response exceeds the limit.
    #[error("{request}: an answer ({status}) of more than {limit} bytes")]
    AnswerTooLong {
        /// Method and URL.
        request: String,
        /// The status of the response.
        status: StatusCode,
        /// The limit, in bytes.
        limit: usize,
    },
    /// The response is a success, but not the expected JSON.
    #[error("{request}: an answer ({status}, {body}) of another form: {why}")]
    AnswerMalformed {
        /// Method and URL.
        request: String,
        /// The status of the response.
        status: StatusCode,
        /// The error of the decoder.
        why: String,
        /// The body of the response.
        body: Body,
    },
}

impl HttpError {
    /// Returns the status of the response, if there was one.
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

    /// Converts the error into a failure whose message quotes the beginning of the body.
    ///
    /// Use it only for an application that puts no secrets there.
    /// The quote has 256 bytes at most, on one line.
    /// An error without a body becomes the same failure as with `?`.
    ///
    /// ```no_run
    /// use okt::Failure;
    /// use okt::reach::{Http, HttpError};
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

    /// Returns whether the same request may succeed later.
    ///
    /// It does not after a status that blames the request itself (400, 405, 422 and similar). After other statuses
    /// (401, 404, a redirect) the cause may change at any time.
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

    /// Returns the reason of the failure, one word.
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

/// Returns whether only a different request can succeed.
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

/// Returns the reason for a status, such as `HttpNotFound`.
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

/// Returns the part of a message after the status of the response.
fn answered(redirect: Option<&str>, body: &Body) -> String {
    match redirect {
        Some(to) => format!(": redirects to {to}, which is not followed"),
        None => format!(" ({body})"),
    }
}

/// The body of a response that is an error; `Display` and `Debug` show its size, not its content.
#[derive(Clone, PartialEq, Eq)]
pub struct Body(pub(super) Bytes);

impl Body {
    /// Returns the body.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the quote for a message that may have one.
    fn shown(&self) -> String {
        beginning(&self.0, SHOWN)
    }

    /// Returns the quote for the debug log.
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

/// Returns the beginning of a text on one line, cut between characters.
pub(super) fn beginning(bytes: &[u8], limit: usize) -> String {
    // Cut early, because a body may be long; a partial character at the end is dropped below.
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
    fn every_http_status_has_a_valid_reason() {
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
    fn a_quote_of_a_body_is_one_line_and_cut_between_characters() {
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
    fn the_debug_text_does_not_contain_the_body() {
        let body = Body(Bytes::from_static(b"hunter2"));
        assert_eq!(format!("{body:?}"), "7 bytes");
    }
}
