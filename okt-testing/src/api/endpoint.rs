//! [`Endpoint`]: access to the API through one replica, under one client name.

use std::{
    future::Future,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use http::{HeaderValue, Request, Response, header::USER_AGENT};
use tower::Service;

use crate::api::{
    serve::Served,
    server::{Body, Shared, handle},
    sight::Sight,
};

/// Access to the API of the server or of a replica, for a client with a name or without.
///
/// It is a [`tower::Service`], so you can put layers between it and a [`kube::Client`].
///
/// # Example
/// A client that retries as kube does by default, which [`client`](Self::client) does not:
/// ```
/// use std::time::Duration;
/// use k8s_openapi::api::core::v1::Pod;
/// use kube::{Api, Client, api::ListParams, client::retry::RetryPolicy};
/// use okt_testing::{ApiServer, Fault};
/// use tower::{BoxError, ServiceBuilder, retry::RetryLayer};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// let server = ApiServer::new();
/// let service = ServiceBuilder::new()
///     .layer(RetryLayer::new(RetryPolicy::server_retry()))
///     .map_err(BoxError::from)
///     .service(server.endpoint());
/// let client = Client::new(service, "default");
///
/// server.inject(Fault::too_many_requests(Duration::from_secs(5)).times(1));
/// let before = tokio::time::Instant::now();
/// let pods: Api<Pod> = Api::all(client);
/// assert!(pods.list(&ListParams::default()).await.is_ok());
/// assert!(before.elapsed() >= Duration::from_secs(5));
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Endpoint {
    pub(crate) shared: Arc<Shared>,
    pub(crate) sight: Arc<Sight>,
    name: Arc<str>,
}

impl Endpoint {
    pub(crate) fn new(shared: &Arc<Shared>, sight: &Arc<Sight>) -> Self {
        Self {
            shared: Arc::clone(shared),
            sight: Arc::clone(sight),
            name: Arc::from(""),
        }
    }

    /// Sets the name of its clients, for [faults](crate::Fault::client) and
    /// [records](crate::RequestRecord::client).
    ///
    /// The name is sent as `User-Agent`, so it is also the field manager of writes that name none.
    #[must_use]
    pub fn named(self, name: &str) -> Self {
        Self {
            name: Arc::from(name),
            ..self
        }
    }

    /// Returns a client without a socket; its default namespace is `default`.
    ///
    /// # Panics
    /// Outside of a tokio runtime: a kube client runs a task.
    pub fn client(&self) -> kube::Client {
        kube::Client::new(self.clone(), "default")
    }

    /// Serves the API over HTTP on a free port of 127.0.0.1.
    ///
    /// # Errors
    /// The port cannot be opened.
    pub async fn serve(&self) -> io::Result<Served> {
        Served::start(self.clone()).await
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

impl<B> Service<Request<B>> for Endpoint
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<tower::BoxError>,
{
    type Response = Response<Body>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        if !self.name.is_empty()
            && !request.headers().contains_key(USER_AGENT)
            && let Ok(name) = HeaderValue::from_str(&self.name)
        {
            request.headers_mut().insert(USER_AGENT, name);
        }
        let endpoint = self.clone();
        Box::pin(async move { handle(&endpoint, request).await })
    }
}
