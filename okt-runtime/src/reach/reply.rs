//! An answer that is a success.

use bytes::Bytes;
use http::header::LOCATION;
use http::{HeaderMap, StatusCode};
use serde::de::DeserializeOwned;

use super::http_error::HttpError;

/// How much of a body an error message shows, in bytes.
const SHOWN: usize = 256;

/// An answer that is a success.
#[derive(Clone, PartialEq, Eq, Debug)]
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
        let to = headers.get(LOCATION).filter(|_| status.is_redirection());
        let says = match to {
            Some(to) => {
                let to = beginning(to.as_bytes());
                format!("redirects to {to}, which is not followed")
            }
            None => beginning(&body),
        };
        Err(HttpError::Status {
            request,
            status,
            says,
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
    /// [`HttpError::AnswerMalformed`] where it is not what was expected, with its beginning; another answer helps.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, HttpError> {
        serde_json::from_slice(&self.body).map_err(|error| HttpError::AnswerMalformed {
            request: self.request.clone(),
            status: self.status,
            why: error.to_string(),
            says: beginning(&self.body),
        })
    }
}

/// The beginning of a text on one line, cut between characters.
fn beginning(bytes: &[u8]) -> String {
    // Cut early, for a body may be long; what it leaves of a character at the end is dropped below.
    let start = &bytes[..bytes.len().min(4 * SHOWN)];
    let text = String::from_utf8_lossy(start);
    let words: Vec<_> = text
        .split(|c: char| c.is_whitespace() || c.is_control())
        .filter(|word| !word.is_empty())
        .collect();
    let line = words.join(" ");
    let shown = &line[..line.floor_char_boundary(SHOWN)];
    let cut = shown.len() < line.len() || start.len() < bytes.len();
    format!("{shown}{}", if cut { "…" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beginning_is_one_line_and_cut_between_characters() {
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
}
