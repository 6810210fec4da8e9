//! Why a request got no good answer, and whether sending it again helps.

use std::time::Duration;

use http::StatusCode;

use super::error::ReachError;

/// Why an HTTP request got no good answer.
///
/// It converts into a [`Failure`](crate::Failure): of a bad status the reason is that status (`HttpNotFound`,
/// `HttpServiceUnavailable`), else the name of the variant; [`retry_helps`](Self::retry_helps) says whether it is
/// one that is tried again.
/// The query of a URL may be secret, and is left out of messages.
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
    #[error("{request}: {status}{}", after_colon(.says))]
    Status {
        /// Method and URL.
        request: String,
        /// The status of the answer.
        status: StatusCode,
        /// The beginning of its body, or where it redirects to.
        says: String,
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
    #[error("{request}: an answer ({status}) of another form: {why}{}", after_colon(.says))]
    AnswerMalformed {
        /// Method and URL.
        request: String,
        /// The status of the answer.
        status: StatusCode,
        /// What is wrong with it.
        why: String,
        /// The beginning of its body.
        says: String,
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

fn after_colon(text: &str) -> String {
    if text.is_empty() {
        String::new()
    } else {
        format!(": {text}")
    }
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
}
