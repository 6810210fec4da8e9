//! HTTP requests to the application: one answer, with limits for its time and length.

use std::error::Error;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, HeaderMap, HeaderValue};
use http::{Method, Request, Uri};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::time::{Instant, timeout_at};
use url::Url;

/// How much of an answer's body is read, in bytes.
const LONGEST_BODY: usize = 64 * 1024;

/// A client for the application, without redirects and proxies; clones share its connections.
#[derive(Clone)]
pub(crate) struct Http(Client<HttpConnector, Full<Bytes>>);

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
    pub(crate) fn new() -> Self {
        let mut connector = HttpConnector::new();
        connector.set_connect_timeout(Some(Duration::from_secs(10)));
        connector.set_nodelay(true);
        Self(Client::builder(TokioExecutor::new()).build(connector))
    }

    pub(crate) async fn ask(
        &self,
        method: Method,
        url: &Url,
        headers: HeaderMap,
        body: Option<String>,
        deadline: Instant,
    ) -> Result<Answered, NoAnswer> {
        let request = request(method, url, headers, body).map_err(|error| why(&error))?;
        let answered = async {
            let response = self.0.request(request).await.map_err(|error| why(&error))?;
            let (parts, mut rest) = response.into_parts();
            let mut body = Vec::new();
            while body.len() < LONGEST_BODY
                && let Some(frame) = rest.frame().await
            {
                let frame = frame.map_err(|error| why(&error))?;
                let Some(piece) = frame.data_ref() else {
                    continue;
                };
                let room = LONGEST_BODY - body.len();
                body.extend_from_slice(&piece[..piece.len().min(room)]);
            }
            Ok(Answered {
                status: parts.status.as_u16(),
                headers: parts.headers,
                body,
            })
        };
        let answered = timeout_at(deadline, answered).await;
        answered.unwrap_or(Err(NoAnswer::TimedOut))
    }
}

fn request(
    method: Method,
    url: &Url,
    mut headers: HeaderMap,
    body: Option<String>,
) -> Result<Request<Full<Bytes>>, http::Error> {
    let mut address = url.clone();
    address.set_fragment(None);
    if !url.username().is_empty() || url.password().is_some() {
        let user = format!(
            "{}:{}",
            decoded(url.username()),
            decoded(url.password().unwrap_or_default())
        );
        let mut proof = HeaderValue::try_from(format!("Basic {}", BASE64_STANDARD.encode(user)))?;
        proof.set_sensitive(true);
        headers.insert(AUTHORIZATION, proof);
        // A URL that refuses them has none.
        let _ = (address.set_username(""), address.set_password(None));
    }
    headers
        .entry(ACCEPT)
        .or_insert(HeaderValue::from_static("*/*"));
    let mut request = Request::builder()
        .method(method)
        .uri(Uri::try_from(address.as_str())?)
        .body(Full::from(body.unwrap_or_default()))?;
    *request.headers_mut() = headers;
    Ok(request)
}

/// Decodes a user or a password of a URL.
fn decoded(text: &str) -> String {
    percent_encoding::percent_decode_str(text)
        .decode_utf8_lossy()
        .into_owned()
}

/// Returns the error with the innermost cause, such as "Connection refused".
fn why(error: &dyn Error) -> NoAnswer {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    NoAnswer::Failed(cause.to_string())
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
    fn the_user_of_a_url_becomes_a_header() {
        let url = Url::parse("http://a%40b:s%3Acret@127.0.0.1:80/where?x=1#y").expect("a URL");
        let request = request(Method::GET, &url, HeaderMap::new(), None).expect("a request");
        assert_eq!(request.uri(), "http://127.0.0.1/where?x=1");
        let proof = request.headers()[AUTHORIZATION].to_str().expect("text");
        let user = proof
            .strip_prefix("Basic ")
            .and_then(|it| BASE64_STANDARD.decode(it).ok());
        assert_eq!(user.as_deref(), Some(&b"a@b:s:cret"[..]));
    }

    #[test]
    fn a_url_is_shown_without_what_may_be_secret() {
        let text = "http://admin:secret@127.0.0.1:80/where?token=secret";
        let url = Url::parse(text).expect("a URL");
        assert_eq!(shown(&url), "http://127.0.0.1/where");
    }
}
