//! This file is the handle of one of several API servers over the same store.

use std::{sync::Arc, time::Duration};

use crate::{endpoint::Endpoint, server::Shared, sight::Sight};

/// One of several API servers over the same store, with a watch cache of its own.
///
/// What goes through it is as with a real one whose cache is behind:
/// - writes, and gets and lists that name no version, go to the store and are current;
/// - watches, and gets and lists with `resourceVersion=0`, see what this replica has come to see;
/// - gets and lists with another version wait up to 3 seconds for it, and fail with 504 then.
///
/// A client that starts with such a list therefore reads the past if it comes to a replica that
/// is behind the one that it talked to before.
/// A watcher of kube does so with `streaming_lists()`, and with `any_semantic()` if its
/// `page_size` is `None` (a page of version 0 it asks for as one of the newest).
///
/// A replica is there from the moment that somebody asks for it,
/// sees everything at once then, and is the same for all who ask.
///
/// # Example
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube::{Api, api::{ListParams, PostParams}};
/// use okt_testing::ApiServer;
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
    sight: Arc<Sight>,
}

impl Replica {
    pub(crate) fn new(shared: &Arc<Shared>, name: &str) -> Self {
        Self {
            sight: shared.replica(name),
            shared: Arc::clone(shared),
        }
    }

    /// The name that it was asked for by.
    pub fn name(&self) -> &str {
        self.sight.name()
    }

    /// A client that goes through this replica, without a socket.
    ///
    /// # Panics
    /// Outside of a tokio runtime: a kube client runs a task.
    pub fn client(&self) -> kube::Client {
        self.endpoint().client()
    }

    /// The same with a name; see [`ApiServer::client_named`](crate::ApiServer::client_named).
    ///
    /// # Panics
    /// Outside of a tokio runtime: a kube client runs a task.
    pub fn client_named(&self, name: &str) -> kube::Client {
        self.endpoint().named(name).client()
    }

    /// The way through this replica, to serve it over HTTP or to put layers before it.
    pub fn endpoint(&self) -> Endpoint {
        Endpoint::new(&self.shared, &self.sight)
    }

    /// From now on it sees each change this much later than it is made, on tokio's clock.
    ///
    /// What it saw before stays seen.
    pub fn set_lag(&self, lag: Duration) {
        self.sight.set_lag(&self.shared.lock(), lag);
    }

    /// From now on it sees nothing new, until it is released.
    pub fn freeze(&self) {
        self.sight.freeze(&self.shared.lock(), None);
    }

    /// Until it is released it sees what there was at a version (e.g. of
    /// [`ApiServer::versions`](crate::ApiServer::versions)), as if it had been frozen then.
    ///
    /// For a replica that somebody already uses this may be a step back in time, which no real
    /// one does.
    pub fn freeze_at(&self, version: u64) {
        self.sight.freeze(&self.shared.lock(), Some(version));
    }

    /// It sees again what comes, and what it missed.
    pub fn release(&self) {
        self.sight.release();
    }

    /// Ends the watches that run through it, as its restart does.
    pub fn end_watches(&self) {
        self.sight.end_watches();
    }
}
