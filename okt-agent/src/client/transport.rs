//! One request and its answer, bounded in size and time: over TCP, TLS, a Unix socket, or within the process.

use std::error::Error;
use std::fmt;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{self, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Collected, Full, LengthLimitError, Limited};
use hyper_rustls::{ConfigBuilderExt, FixedServerNameResolver, HttpsConnectorBuilder};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::{Connect, HttpConnector};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::ClientConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{PrivateKeyDer, ServerName};
use serde::Serialize;
use tokio::net::UnixStream;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, ServiceExt};

use super::endpoint::{Address, Authorities, Endpoint, EndpointError};
use super::error::ClientError;
use crate::causes::with_causes;
use crate::provider::{authorities, certificates, provider};
use crate::wire::{BODY_LIMIT, TRACEPARENT};

/// The timeout for opening a connection.
const CONNECT: Duration = Duration::from_secs(5);

/// The content type of requests.
pub(crate) const JSON: &str = "application/json";

/// The `User-Agent` of requests.
const AGENT: &str = concat!("okt-sidecar/", env!("CARGO_PKG_VERSION"));

/// The request body that a service in this process receives.
pub(crate) type ServiceBody = Full<Bytes>;

type AnswerBody = UnsyncBoxBody<Bytes, BoxError>;

/// The transport of requests; clones share their certificates.
#[derive(Clone)]
pub(super) struct Transport {
    /// The prefix of every URL.
    base: Arc<str>,
    way: BoxCloneSyncService<Request<ServiceBody>, Response<AnswerBody>, BoxError>,
    /// The TLS configuration, over TLS.
    tls: Option<Arc<ClientConfig>>,
}

/// A request.
pub(super) struct Ask {
    pub(super) method: Method,
    pub(super) path: String,
    /// The body and its content type.
    pub(super) body: Option<(Bytes, &'static str)>,
    /// The trace that the request belongs to.
    pub(super) traceparent: Option<HeaderValue>,
    /// The limit for the answer, in bytes.
    pub(super) limit: usize,
    /// The time that the answer may take beyond the timeout.
    pub(super) longer: Duration,
}

/// An answer with any status.
pub(crate) struct AgentReply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Ask {
    pub(super) fn new(method: Method, path: impl Into<String>) -> Self {
        Self {
            method,
            path: path.into(),
            body: None,
            traceparent: None,
            limit: BODY_LIMIT,
            longer: Duration::ZERO,
        }
    }

    pub(super) fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path)
    }

    pub(super) fn put(path: String, value: &impl Serialize) -> Result<Self, ClientError> {
        Ok(Self {
            body: Some((body(value)?, JSON)),
            ..Self::new(Method::PUT, path)
        })
    }

    pub(super) fn at_most(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Prefixes the path with this version.
    pub(super) fn under(mut self, version: &str) -> Self {
        self.path = format!("/lifecycle/{version}{}", self.path);
        self
    }
}

impl Transport {
    /// Creates the transport to an endpoint.
    pub(super) fn of(endpoint: &Endpoint) -> Result<Self, EndpointError> {
        endpoint.check()?;
        Self::shared(endpoint)?.towards(endpoint)
    }

    /// Creates a transport that all endpoints with the same certificates can share.
    pub(super) fn shared(endpoint: &Endpoint) -> Result<Self, EndpointError> {
        Ok(match &endpoint.address {
            Address::Unix(path) => Self::over(unpooled(Socket(path.as_path().into()))),
            Address::Url(_) if endpoint.is_tls() => Self::secured(Arc::new(tls(endpoint)?), None),
            Address::Url(_) => Self::over(unpooled(tcp())),
        })
    }

    /// Returns a transport to another endpoint with the same certificates.
    pub(super) fn towards(&self, endpoint: &Endpoint) -> Result<Self, EndpointError> {
        let way = match (&self.tls, &endpoint.server_name) {
            (Some(tls), Some(name)) => {
                let wrong = |_| EndpointError::Tls {
                    why: format!("`{name}` is no name that a certificate could be for"),
                };
                let name = ServerName::try_from(name.clone()).map_err(wrong)?;
                // It needs a connector of its own, because agents at the same address may have different names.
                Self::secured(Arc::clone(tls), Some(name))
            }
            (_, _) => self.clone(),
        };
        let base = match &endpoint.address {
            Address::Url(url) => url.as_str().into(),
            Address::Unix(_) => "http://localhost".into(),
        };
        Ok(Self { base, ..way })
    }

    /// Creates a transport over TLS to servers that prove this name, or else the host of the URL.
    fn secured(tls: Arc<ClientConfig>, name: Option<ServerName<'static>>) -> Self {
        let by_host = HttpsConnectorBuilder::new()
            .with_tls_config(ClientConfig::clone(&tls))
            .https_only();
        let builder = match name {
            Some(name) => by_host.with_server_name_resolver(FixedServerNameResolver::new(name)),
            None => by_host,
        };
        let connector = builder.enable_http1().wrap_connector(tcp());
        Self {
            tls: Some(tls),
            ..Self::over(unpooled(connector))
        }
    }

    pub(super) fn over<S, B>(service: S) -> Self
    where
        S: tower::Service<Request<ServiceBody>, Response = Response<B>>
            + Clone
            + Send
            + Sync
            + 'static,
        S::Error: Into<BoxError>,
        S::Future: Send,
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let service = service
            .map_response(|answer| answer.map(|body| body.map_err(Into::into).boxed_unsync()))
            .map_err(Into::into);
        Self {
            base: "http://agent".into(),
            way: BoxCloneSyncService::new(service),
            tls: None,
        }
    }

    /// Sends a request and reads its answer, within `timeout` plus the request's own extra time.
    pub(super) async fn send(
        &self,
        ask: &Ask,
        token: Option<HeaderValue>,
        timeout: Duration,
    ) -> Result<AgentReply, ClientError> {
        let within = timeout + ask.longer;
        let exchange = async {
            let request = self.request(ask, token)?;
            let answer = self.way.clone().oneshot(request).await;
            let (parts, body) = answer.map_err(|error| unanswered(&*error))?.into_parts();
            let read = whole(body, ask.limit).await;
            let body = read.map_err(|error| match error.downcast::<LengthLimitError>() {
                Ok(_) => ClientError::Foreign {
                    status: parts.status.as_u16(),
                    detail: format!("it is longer than {} bytes", ask.limit),
                },
                Err(error) => unanswered(&*error),
            })?;
            Ok(AgentReply {
                status: parts.status,
                headers: parts.headers,
                body: body.to_bytes(),
            })
        };
        match tokio::time::timeout(within, exchange).await {
            Ok(reply) => reply,
            Err(_) => Err(ClientError::Unanswered {
                why: format!("nothing within {} s", within.as_secs_f64()),
            }),
        }
    }

    fn request(
        &self,
        ask: &Ask,
        token: Option<HeaderValue>,
    ) -> Result<Request<ServiceBody>, ClientError> {
        let mut request = Request::builder()
            .method(&ask.method)
            .uri(format!("{}{}", self.base, ask.path))
            .header(ACCEPT, "application/json, application/problem+json")
            .header(USER_AGENT, AGENT);
        if let Some(token) = token {
            request = request.header(AUTHORIZATION, token);
        }
        if let Some(traceparent) = &ask.traceparent {
            request = request.header(TRACEPARENT, traceparent);
        }
        let (body, kind) = ask.body.clone().unzip();
        if let Some(kind) = kind {
            request = request.header(CONTENT_TYPE, kind);
        }
        let body = body.unwrap_or_default().into();
        request.body(body).map_err(unsendable)
    }
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Transport").field(&self.base).finish()
    }
}

type Reading = Pin<Box<dyn Future<Output = Result<Collected<Bytes>, BoxError>> + Send>>;

/// Reads a whole body, up to this limit.
///
/// Boxed, because the compiler does not see that an async block with a limited body in it is `Send`.
fn whole(body: AnswerBody, limit: usize) -> Reading {
    Box::pin(Limited::new(body, limit).collect())
}

/// Creates a client whose requests have a connection each.
///
/// An agent may close a connection that is kept at any moment, e.g. to make room for another. Then nobody knows whether a
/// request on it has arrived.
///
/// It follows no redirects and uses no proxy, so a token reaches no other host.
fn unpooled<C>(connector: C) -> legacy::Client<C, ServiceBody>
where
    C: Connect + Clone + Send + Sync + 'static,
{
    legacy::Client::builder(TokioExecutor::new())
        .pool_max_idle_per_host(0)
        .build(connector)
}

fn tcp() -> HttpConnector {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(Some(CONNECT));
    tcp
}

/// Connects to one socket, for every URL.
#[derive(Clone)]
struct Socket(Arc<Path>);

impl tower::Service<Uri> for Socket {
    type Response = TokioIo<UnixStream>;
    type Error = std::io::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut task::Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let path = Arc::clone(&self.0);
        Box::pin(async move { UnixStream::connect(path).await.map(TokioIo::new) })
    }
}

/// Configures TLS with the authorities of a file or of the machine, and with the client's certificate if it has one.
fn tls(endpoint: &Endpoint) -> Result<ClientConfig, EndpointError> {
    let wrong = |error: &dyn fmt::Display| EndpointError::Tls {
        why: error.to_string(),
    };
    let versions = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong(&error))?;
    let builder = match &endpoint.authorities {
        Some(Authorities::File(path)) => {
            versions.with_root_certificates(from_pem(path, authorities)?)
        }
        Some(Authorities::Pem(pem)) => {
            let store = authorities(pem.as_bytes()).map_err(|why| EndpointError::Tls { why })?;
            versions.with_root_certificates(store)
        }
        None => versions
            .with_native_roots()
            .map_err(|error| wrong(&error))?,
    };
    let Some((certificate, key)) = &endpoint.identity else {
        return Ok(builder.with_no_client_auth());
    };
    let own = PrivateKeyDer::from_pem_file(key).map_err(|error| in_file(key, error))?;
    let chain = from_pem(certificate, certificates)?;
    let config = builder.with_client_auth_cert(chain, own);
    config.map_err(|error| in_file(certificate, error))
}

fn from_pem<T>(path: &Path, read: fn(&[u8]) -> Result<T, String>) -> Result<T, EndpointError> {
    let pem = std::fs::read(path).map_err(|error| in_file(path, error))?;
    read(&pem).map_err(|why| in_file(path, why))
}

fn in_file(path: &Path, why: impl fmt::Display) -> EndpointError {
    EndpointError::File {
        path: path.to_owned(),
        why: why.to_string(),
    }
}

fn unanswered(error: &(dyn Error + 'static)) -> ClientError {
    ClientError::Unanswered {
        why: with_causes(error),
    }
}

/// Encodes a body as JSON.
fn body(value: &impl Serialize) -> Result<Bytes, ClientError> {
    let body = serde_json::to_vec(value).map_err(unsendable)?;
    let length = body.len();
    if length > BODY_LIMIT {
        return Err(unsendable(format_args!(
            "the body is {length} bytes long, an agent reads {BODY_LIMIT} at most"
        )));
    }
    Ok(body.into())
}

fn unsendable(why: impl fmt::Display) -> ClientError {
    ClientError::Unsendable {
        detail: why.to_string(),
    }
}
