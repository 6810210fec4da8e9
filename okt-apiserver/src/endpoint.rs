//! [`Endpoint`]: access to the API through one replica, under one client name.

use std::sync::Arc;

use crate::{replica_view::ReplicaView, state::Shared};

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
/// use okt_apiserver::{ApiServer, Fault};
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
    pub(crate) replica_view: Arc<ReplicaView>,
    name: Arc<str>,
}

impl Endpoint {
    pub(crate) fn new(shared: &Arc<Shared>, replica_view: &Arc<ReplicaView>) -> Self {
        Self {
            shared: Arc::clone(shared),
            replica_view: Arc::clone(replica_view),
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

    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}
