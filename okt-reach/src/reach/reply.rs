//! A successful HTTP response.

use std::fmt;

use bytes::Bytes;
use http::header::LOCATION;
use http::{HeaderMap, HeaderValue, StatusCode};
use okt_wire::texts::unquoted;
use serde::de::DeserializeOwned;

use super::http_error::{Body, HttpError, beginning};

/// The longest redirect target in a message, in bytes.
const PLACE: usize = 256;

/// A successful HTTP response; `Debug` shows the size of the body, not its content.
#[derive(Clone, PartialEq, Eq)]
pub struct Reply {
    /// The method and URL of the request, for messages.
    request: String,
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

impl Reply {
    /// Converts a response; any status but a success is an error.
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

    /// Returns the status: 200 to 299.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// Returns a header; none if it is missing or not text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Returns the body.
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// Decodes the body from JSON.
    ///
    /// # Errors
    ///
    /// [`HttpError::AnswerMalformed`] if the body does not fit the type; a retry helps if the response changes.
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

/// Returns the target of a redirect, without its query, fragment and user, which may be secret.
fn place(to: &HeaderValue) -> String {
    let location = String::from_utf8_lossy(to.as_bytes());
    let address = location.split(['?', '#']).next().unwrap_or_default();
    // A user and a password precede the host.
    let place = address.rsplit('@').next().unwrap_or_default();
    beginning(place.as_bytes(), PLACE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redirect_is_shown_without_its_query_and_its_user() {
        for (to, shown) in [
            ("https://a.svc/login?token=secret", "https://a.svc/login"),
            ("/login#secret", "/login"),
            ("https://user:secret@a.svc/login", "a.svc/login"),
        ] {
            assert_eq!(place(&HeaderValue::from_static(to)), shown);
        }
    }
}
