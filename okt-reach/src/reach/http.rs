//! One HTTP request to the application, limited in size and time; any response but a success is an error.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::Connect;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use okt_wire::texts::chain;
use rustls::ClientConfig;
use serde::Serialize;

use super::Reach;
use super::connect::{Connector, machine_tls, tls_of};
use super::error::ReachError;
use super::http_error::HttpError;
use super::reply::Reply;

/// The default timeout of a request: shorter than the default timeout of an observation.
const TIMEOUT: Duration = Duration::from_secs(8);

/// The default limit of a response body, in bytes.
const LIMIT: usize = 1024 * 1024;

/// How long an idle connection is kept, and how many per host.
///
/// Common servers close theirs after 5 s (Node.js, Uvicorn) and more, and what is sent at that moment is lost.
const IDLE: Duration = Duration::from_secs(4);
const IDLE_CONNECTIONS: usize = 4;

/// The `User-Agent` header.
const AGENT: &str = concat!("okt-runtime/", env!("CARGO_PKG_VERSION"));

/// An HTTP client for applications (HTTP/1.1, with TLS for `https`); clones share their connections.
///
/// From outside the cluster it also reaches host names of the cluster (`<service>.<namespace>.svc`, optionally with a
/// pod of a headless Service in front, and `.cluster.local` behind), through ports that the API server forwards.
/// It follows no redirects and uses no proxy, so that passwords go nowhere else.
#[derive(Clone)]
pub struct Http {
    connector: Connector,
    client: legacy::Client<HttpsConnector<Connector>, Full<Bytes>>,
    /// Why no `https` URL can be reached, if so.
    no_tls: Option<String>,
}

impl Http {
    pub(super) fn new(reach: &Reach) -> Self {
        let forwards = reach.outside.then(|| reach.client.clone());
        let (tls, no_tls) = machine_tls();
        Self::with(Connector::new(forwards), tls, no_tls)
    }

    /// Returns what opens connections as this client does.
    #[doc(hidden)]
    pub fn https_connector(&self) -> impl Connect + Clone + fmt::Debug + Send + Sync + use<> {
        self.connector.clone().with_tls(machine_tls().0)
    }

    fn with(connector: Connector, tls: ClientConfig, no_tls: Option<String>) -> Self {
        let client = legacy::Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(IDLE_CONNECTIONS)
            .build(connector.clone().with_tls(tls));
        Self {
            connector,
            client,
            no_tls,
        }
    }

    /// Returns a client that trusts these root certificates (PEM, as in a Secret's `ca.crt`) instead of those of this
    /// machine.
    ///
    /// # Errors
    ///
    /// [`HttpError::Unsendable`] if `pem` holds no valid certificate; only other bytes help.
    pub fn trusting(&self, pem: &[u8]) -> Result<Self, HttpError> {
        let tls = tls_of(pem).map_err(|why| HttpError::Unsendable {
            request: "anything with these certificates".to_owned(),
            why,
        })?;
        Ok(Self::with(self.connector.clone(), tls, None))
    }

    /// Builds a GET request.
    pub fn get(&self, url: impl AsRef<str>) -> Request {
        self.request(Method::GET, url.as_ref())
    }

    /// Builds a POST request.
    pub fn post(&self, url: impl AsRef<str>) -> Request {
        self.request(Method::POST, url.as_ref())
    }

    /// Builds a PUT request.
    pub fn put(&self, url: impl AsRef<str>) -> Request {
        self.request(Method::PUT, url.as_ref())
    }

    /// Builds a PATCH request.
    pub fn patch(&self, url: impl AsRef<str>) -> Request {
        self.request(Method::PATCH, url.as_ref())
    }

    /// Builds a DELETE request.
    pub fn delete(&self, url: impl AsRef<str>) -> Request {
        self.request(Method::DELETE, url.as_ref())
    }

    fn request(&self, method: Method, url: &str) -> Request {
        let mut headers = HeaderMap::new();
        headers.insert(
            ACCEPT,
            HeaderValue::from_static("application/json, */*;q=0.8"),
        );
        headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
        let (uri, wrong) = match parsed(url) {
            Ok(uri) => (uri, None),
            Err(why) => (Uri::default(), Some(why)),
        };
        Request {
            http: self.clone(),
            method,
            uri,
            headers,
            body: Bytes::new(),
            timeout: TIMEOUT,
            limit: LIMIT,
            wrong,
        }
    }
}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http").finish_non_exhaustive()
    }
}

/// Parses a URL that a request can go to.
///
/// # Errors
///
/// Why the text is no such URL; another text helps.
pub fn parsed(url: &str) -> Result<Uri, String> {
    let uri: Uri = url.parse().map_err(|error| format!("no URL: {error}"))?;
    if uri.authority().is_some_and(|it| it.as_str().contains('@')) {
        return Err("users and passwords go into a header".to_owned());
    }
    match (uri.scheme_str(), uri.host()) {
        (Some("http" | "https"), Some(host)) if !host.is_empty() => Ok(uri),
        _ => Err("no URL that begins with http:// or https:// and a host".to_owned()),
    }
}

/// A request, not yet sent.
#[derive(Clone)]
#[must_use = "nothing is sent before `send`"]
pub struct Request {
    http: Http,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
    timeout: Duration,
    limit: usize,
    /// Why the request cannot be sent: the first error.
    wrong: Option<String>,
}

impl Request {
    /// Sets the body, as JSON.
    pub fn json(self, body: &impl Serialize) -> Self {
        match serde_json::to_vec(body) {
            Ok(bytes) => self.body("application/json", bytes),
            Err(error) => self.blamed(format!("the body is not to be written as JSON: {error}")),
        }
    }

    /// Sets the body and its content type (e.g. `text/plain`).
    pub fn body(mut self, kind: &str, bytes: impl Into<Bytes>) -> Self {
        self.body = bytes.into();
        self.header(CONTENT_TYPE.as_str(), kind)
    }

    /// Sets a header; replaces one of the same name.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        match (name.parse::<HeaderName>(), HeaderValue::from_str(value)) {
            (Ok(name), Ok(value)) => {
                self.headers.insert(name, value);
                self
            }
            _ => self.blamed(format!("the header `{name}` is none")),
        }
    }

    /// Sets a bearer token as authorization.
    pub fn bearer(self, token: &str) -> Self {
        self.header(AUTHORIZATION.as_str(), &format!("Bearer {}", token.trim()))
    }

    /// Sets how long the request may take until the whole response has arrived.
    ///
    /// The default is eight seconds, because an observation may take ten.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets the limit of the response body, in bytes; one mebibyte by default. A longer body is an error.
    pub fn limit(mut self, bytes: usize) -> Self {
        self.limit = bytes;
        self
    }

    /// Sends the request once, and reads the whole response.
    ///
    /// # Errors
    ///
    /// An [`HttpError`] unless the response is a success (2xx), in time and within the limit;
    /// [`HttpError::retry_helps`] says whether a retry helps.
    pub async fn send(self) -> Result<Reply, HttpError> {
        let (after, shown) = (self.timeout, self.shown());
        match tokio::time::timeout(after, self.exchange(shown.clone())).await {
            Ok(answer) => answer,
            Err(_) => Err(HttpError::TimedOut {
                request: shown,
                after,
            }),
        }
    }

    /// Notes an error; the first one counts.
    fn blamed(mut self, why: String) -> Self {
        self.wrong.get_or_insert(why);
        self
    }

    /// Returns the method and URL for messages, without the query, which may be secret.
    fn shown(&self) -> String {
        let Some(host) = self.uri.host() else {
            return self.method.to_string();
        };
        let scheme = self.uri.scheme_str().unwrap_or_default();
        let suffix = self.uri.port().map(|port| format!(":{port}"));
        let port = suffix.unwrap_or_default();
        format!("{} {scheme}://{host}{port}{}", self.method, self.uri.path())
    }

    async fn exchange(self, shown: String) -> Result<Reply, HttpError> {
        let secure = self.uri.scheme_str() == Some("https");
        let no_tls = self.http.no_tls.clone().filter(|_| secure);
        if let Some(why) = self.wrong.or(no_tls) {
            return Err(HttpError::Unsendable {
                request: shown,
                why,
            });
        }
        let mut request = http::Request::new(Full::new(self.body));
        *request.method_mut() = self.method;
        *request.uri_mut() = self.uri;
        *request.headers_mut() = self.headers;
        let answer = match self.http.client.request(request).await {
            Ok(answer) => answer,
            Err(error) => return Err(unanswered(shown, &error)),
        };
        let (parts, body) = answer.into_parts();
        let read = Box::pin(Limited::new(body, self.limit).collect()).await;
        let body = match read {
            Ok(body) => body.to_bytes(),
            // Report the bad status, even if its body cannot be read.
            Err(_) if !parts.status.is_success() => Bytes::new(),
            Err(error) if error.is::<LengthLimitError>() => {
                return Err(HttpError::AnswerTooLong {
                    request: shown,
                    status: parts.status,
                    limit: self.limit,
                });
            }
            Err(error) => {
                return Err(HttpError::Unanswered {
                    request: shown,
                    why: chain(&*error),
                });
            }
        };
        Reply::of(shown, parts.status, parts.headers, body)
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Request").field(&self.shown()).finish()
    }
}

/// Converts the error of a request without a response.
fn unanswered(request: String, error: &legacy::Error) -> HttpError {
    if !error.is_connect() {
        return HttpError::Unanswered {
            request,
            why: chain(error),
        };
    }
    let mut cause = std::error::Error::source(error);
    while let Some(this) = cause {
        if let Some(error) = this.downcast_ref::<ReachError>() {
            return HttpError::Unreachable {
                request,
                why: error.to_string(),
                forwarding: Some(Box::new(error.clone())),
            };
        }
        cause = this.source();
    }
    HttpError::Unreachable {
        request,
        why: chain(error),
        forwarding: None,
    }
}
