//! HTTP requests to the application: one answer, with limits for its time and length.

use std::time::Duration;

use reqwest::header::HeaderMap;
use tokio::time::{Instant, timeout_at};
use url::Url;

use super::config::Method;

/// How much of an answer's body is read, in bytes.
const LONGEST_BODY: usize = 64 * 1024;

/// A client for the application; clones share it.
#[derive(Clone)]
pub(crate) struct Http(reqwest::Client);

/// An answer, with at least the beginning of its body.
pub(crate) struct Answered {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

/// The error of a request without an answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoAnswer {
    #[error("no answer in time")]
    TimedOut,
    #[error("{0}")]
    Failed(String),
}

impl Http {
    pub(crate) fn new() -> Result<Self, reqwest::Error> {
        // No redirects and no proxy: the application runs here.
        let client = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .connect_timeout(Duration::from_secs(10))
            .build()?;
        Ok(Self(client))
    }

    pub(crate) async fn ask(
        &self,
        method: Method,
        url: &Url,
        headers: HeaderMap,
        body: Option<String>,
        deadline: Instant,
    ) -> Result<Answered, NoAnswer> {
        let method = match method {
            Method::Get => reqwest::Method::GET,
            Method::Post => reqwest::Method::POST,
            Method::Put => reqwest::Method::PUT,
            Method::Patch => reqwest::Method::PATCH,
            Method::Delete => reqwest::Method::DELETE,
        };
        let mut request = self.0.request(method, url.clone()).headers(headers);
        if let Some(body) = body {
            request = request.body(body);
        }
        let answered = async {
            let mut response = request.send().await?;
            let mut body = Vec::new();
            while body.len() < LONGEST_BODY
                && let Some(piece) = response.chunk().await?
            {
                let room = LONGEST_BODY - body.len();
                body.extend_from_slice(&piece[..piece.len().min(room)]);
            }
            Ok(Answered {
                status: response.status().as_u16(),
                headers: std::mem::take(response.headers_mut()),
                body,
            })
        };
        match timeout_at(deadline, answered).await {
            Ok(Ok(answered)) => Ok(answered),
            Ok(Err(error)) => Err(NoAnswer::Failed(why(&error))),
            Err(_) => Err(NoAnswer::TimedOut),
        }
    }
}

/// Returns the innermost cause, such as "Connection refused".
fn why(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}

/// Returns a URL for messages: without user, password and query, which may be secret.
pub(super) fn shown(url: &Url) -> String {
    let mut url = url.clone();
    // A URL that refuses them has none.
    let _ = (url.set_username(""), url.set_password(None));
    url.set_query(None);
    url.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_shown_without_what_may_be_secret() {
        let url = "http://admin:secret@127.0.0.1:80/where?token=secret";
        let url = Url::parse(url).expect("a URL");
        assert_eq!(shown(&url), "http://127.0.0.1/where");
    }
}
