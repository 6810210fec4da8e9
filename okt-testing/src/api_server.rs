//! This file is the handle that tests hold.

use std::{convert::Infallible, io, sync::Arc, time::Duration};

use serde_json::json;

use crate::{
    kind::KindId,
    record::RequestRecord,
    serve::Served,
    server::{Shared, handle},
};

/// A Kubernetes API with a store of its own.
///
/// Cheap to clone: all clones, clients and served sockets share one store.
/// The namespaces `default`, `kube-system`, `kube-public` and `kube-node-lease` exist from the
/// start, with nothing in them.
///
/// # Example
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube::Api;
/// use okt_testing::{ApiServer, Verb};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = ApiServer::new();
/// let maps: Api<ConfigMap> = Api::default_namespaced(server.client());
/// let mut map = ConfigMap::default();
/// map.metadata.name = Some("settings".to_owned());
/// maps.create(&Default::default(), &map).await?;
///
/// let written: Vec<_> = server.requests().into_iter().filter(|r| r.is_write()).collect();
/// assert_eq!(written.len(), 1);
/// assert_eq!((written[0].verb, written[0].resource.as_str()), (Verb::Create, "configmaps"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct ApiServer {
    shared: Arc<Shared>,
}

impl ApiServer {
    /// An API with the built-in kinds.
    pub fn new() -> Self {
        let shared = Arc::new(Shared::new());
        let mut store = shared.lock();
        let namespaces = KindId {
            group: String::new(),
            plural: "namespaces".to_owned(),
        };
        for name in ["default", "kube-node-lease", "kube-public", "kube-system"] {
            let (uid, now) = (store.new_uid(), store.clock.text());
            let namespace = json!({
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": {
                    "name": name,
                    "uid": uid,
                    "creationTimestamp": now,
                    "labels": { "kubernetes.io/metadata.name": name },
                },
                "spec": { "finalizers": ["kubernetes"] },
                "status": { "phase": "Active" },
            });
            store.put(&namespaces, namespace);
        }
        drop(store);
        Self { shared }
    }

    /// A client of this API, without a socket; its default namespace is `default`.
    ///
    /// # Panics
    /// Outside of a tokio runtime: a kube client runs a task.
    pub fn client(&self) -> kube::Client {
        let shared = Arc::clone(&self.shared);
        let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
            let shared = Arc::clone(&shared);
            async move { Ok::<_, Infallible>(handle(&shared, request).await) }
        });
        kube::Client::new(service, "default")
    }

    /// Serves this API over HTTP on a free port of 127.0.0.1.
    ///
    /// # Errors
    /// The port cannot be opened.
    pub async fn serve(&self) -> io::Result<Served> {
        Served::start(Arc::clone(&self.shared)).await
    }

    /// All requests so far, in the order in which they were answered.
    pub fn requests(&self) -> Vec<RequestRecord> {
        self.shared.requests().clone()
    }

    /// Forgets the requests so far.
    pub fn clear_requests(&self) {
        self.shared.requests().clear();
    }

    /// From now on watches see each change this much later; reads stay current.
    ///
    /// A cache that is never behind hides the mistakes that a stale one brings out. The delay is
    /// on tokio's clock, so it works under paused time.
    pub fn set_watch_lag(&self, lag: Duration) {
        self.shared.lock().set_lag(lag);
    }

    /// Forgets all history: a watch or a page from any version before this moment is 410 Gone.
    pub fn compact(&self) {
        self.shared.lock().compact();
    }

    /// Ends all running watches, as a restart of a real server does; clients watch anew.
    pub fn end_watches(&self) {
        self.shared.lock().end_watches();
    }
}

impl Default for ApiServer {
    fn default() -> Self {
        Self::new()
    }
}
