//! [`Replica`]: the handle of one of several API servers over the same store.

use std::{sync::Arc, time::Duration};

use crate::{endpoint::Endpoint, replica_view::ReplicaView, state::Shared};

/// One of several API servers over the same store, with a watch cache of its own.
///
/// Requests through it behave as on a real server whose watch cache is behind:
/// - writes, and gets and lists without a version, go to the store and are current;
/// - watches, and gets and lists with `resourceVersion=0`, see this replica's cache;
/// - gets and lists with another version wait up to 3 seconds for it, and then fail with 504.
///
/// A client that starts with a list at `resourceVersion=0` therefore reads the past if this replica
/// is behind the one that the client used before.
/// A kube watcher sends such a list with `streaming_lists()`, and with `any_semantic()` if its
/// `page_size` is `None` (it asks for a page of version 0 as for one of the newest version).
///
/// The first call of [`ApiServer::replica`](crate::ApiServer::replica) with a name creates the
/// replica, with a current cache; later calls return the same replica.
///
/// # Example
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube::{Api, api::{ListParams, PostParams}};
/// use okt_apiserver::ApiServer;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), kube::Error> {
/// let server = ApiServer::new();
/// let b = server.replica("b");
/// b.freeze();
///
/// let mut map = ConfigMap::default();
/// map.metadata.name = Some("settings".to_owned());
/// let maps: Api<ConfigMap> = Api::default_namespaced(server.client());
/// maps.create(&PostParams::default(), &map).await?;
///
/// let maps: Api<ConfigMap> = Api::default_namespaced(b.client());
/// let cached = ListParams::default().match_any();
/// assert_eq!(maps.list(&cached).await?.items.len(), 0);
/// assert_eq!(maps.list(&ListParams::default()).await?.items.len(), 1);
/// b.release();
/// assert_eq!(maps.list(&cached).await?.items.len(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Replica {
    shared: Arc<Shared>,
    replica_view: Arc<ReplicaView>,
}

impl Replica {
    pub(crate) fn new(shared: &Arc<Shared>, name: &str) -> Self {
        Self {
            replica_view: shared.replica(name),
            shared: Arc::clone(shared),
        }
    }

    /// Returns the name of the replica.
    pub fn name(&self) -> &str {
        self.replica_view.name()
    }

    /// Returns a client that uses this replica, without a socket.
    ///
    /// # Panics
    /// Outside of a tokio runtime: a kube client runs a task.
    pub fn client(&self) -> kube::Client {
        self.endpoint().client()
    }

    /// Returns a client with a name; see [`ApiServer::client_named`](crate::ApiServer::client_named).
    ///
    /// # Panics
    /// Outside of a tokio runtime: a kube client runs a task.
    pub fn client_named(&self, name: &str) -> kube::Client {
        self.endpoint().named(name).client()
    }

    /// Returns the endpoint of this replica, to serve it over HTTP or to put layers on it.
    pub fn endpoint(&self) -> Endpoint {
        Endpoint::new(&self.shared, &self.replica_view)
    }

    /// Delays each change by this much after its commit, on tokio's clock.
    ///
    /// Changes that the replica saw before stay visible.
    pub fn set_lag(&self, lag: Duration) {
        self.replica_view.set_lag(&self.shared.lock(), lag);
    }

    /// Stops the replica from seeing new changes, until it is released.
    pub fn freeze(&self) {
        self.replica_view.freeze(&self.shared.lock(), None);
    }

    /// Freezes the replica at a version (e.g. of [`ApiServer::versions`](crate::ApiServer::versions)),
    /// until it is released.
    ///
    /// For a replica that is already in use this may be a step back in time, which never happens
    /// on a real one.
    pub fn freeze_at(&self, version: u64) {
        self.replica_view.freeze(&self.shared.lock(), Some(version));
    }

    /// Lets the replica see new changes again, and those that it missed.
    pub fn release(&self) {
        self.replica_view.release();
    }

    /// Ends the watches on this replica, as its restart does.
    pub fn end_watches(&self) {
        self.replica_view.end_watches();
    }
}
