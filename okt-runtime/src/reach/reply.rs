//! An answer that is a success.

use std::fmt;

use bytes::Bytes;
use http::header::LOCATION;
use http::{HeaderMap, HeaderValue, StatusCode};
use serde::de::DeserializeOwned;

use super::http_error::{Body, HttpError, beginning};
use crate::texts::unquoted;

/// How much an error message shows of where an answer redirects to, in bytes.
const PLACE: usize = 256;

/// An answer that is a success; `Debug` shows how much it is, not what.
#[derive(Clone, PartialEq, Eq)]
pub struct Reply {
    /// Method and URL of the request, for messages.
    request: String,
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

impl Reply {
    /// An answer; what is no success is an error.
    pub(super) fn of(
        request: String,
        status: StatusCode,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Self, HttpError> {
        if status.is_success() {
            return Ok(Self {
                request,
                status,
                headers,
                body,
            });
        }
        let body = Body(body);
        tracing::debug!(request, %status, "the answer is no success: {}", body.logged());
        let to = headers.get(LOCATION).filter(|_| status.is_redirection());
        Err(HttpError::Status {
            request,
            status,
            redirect: to.map(place),
            body,
        })
    }

    /// The status: 200 to 299.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// A header; none where there is no such header, or it is no text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The body as it is.
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// The body as JSON.
    ///
    /// # Errors
    ///
    /// [`HttpError::AnswerMalformed`] where it is not what was expected; another answer helps.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, HttpError> {
        serde_json::from_slice(&self.body).map_err(|error| {
            let body = Body(self.body.clone());
            let (request, status) = (self.request.clone(), self.status);
            tracing::debug!(request, %status, "the answer is of another form: {error}: {}", body.logged());
            HttpError::AnswerMalformed {
                request,
                status,
                why: unquoted(&error),
                body,
            }
        })
    }
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reply")
            .field("request", &self.request)
            .field("status", &self.status)
            .field("body", &format_args!("{} bytes", self.body.len()))
            .finish_non_exhaustive()
    }
}

/// Where an answer redirects to, without what may be secret.
fn place(to: &HeaderValue) -> String {
    let to = String::from_utf8_lossy(to.as_bytes());
    let to = to.split(['?', '#']).next().unwrap_or_default();
    // A user and a password are before the host.
    let to = to.rsplit('@').next().unwrap_or_default();
    beginning(to.as_bytes(), PLACE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_shown_without_its_query_and_its_user() {
        for (to, shown) in [
            ("https://a.svc/login?token=secret", "https://a.svc/login"),
            ("/login#secret", "/login"),
            ("https://user:secret@a.svc/login", "a.svc/login"),
        ] {
            assert_eq!(place(&HeaderValue::from_static(to)), shown);
        }
    }
}
