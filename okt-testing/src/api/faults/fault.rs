//! [`Fault`]: a fault, its limits and its counts.

use std::fmt;
use std::sync::Arc;

use super::count::Window;
use super::failure::OnRequest;
use super::target::{FaultTarget, Resource, Test};
use crate::api::record::RequestRecord;

/// A fault that strikes requests or the events of watches.
///
/// A constructor selects the fault ([`Fault::conflict`], [`Fault::drop_event`], ...), and further
/// calls set limits; without limits it strikes every request or every event.
/// A limit that is given twice matches either value (e.g. `.name("a").name("b")`).
/// Pass the fault to [`ApiServer::inject`](crate::ApiServer::inject), or with a rate to a
/// [`Chaos`](crate::Chaos).
///
/// Faults of requests ([`OnRequest`]) and faults of events ([`OnEvent`](crate::OnEvent)) share this
/// type; a limit that makes no sense for one of them does not compile.
///
/// # How faults combine
/// Delays and lags of all faults that match add up. Of all other faults that match, only the one
/// that was injected first strikes.
///
/// # Example
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube::{Api, api::ListParams};
/// use okt_testing::{ApiServer, Fault, Verb};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let server = ApiServer::new();
/// let second_list = server.inject(Fault::unavailable().on(Verb::List).resource("configmaps").nth(2));
///
/// let maps: Api<ConfigMap> = Api::default_namespaced(server.client());
/// assert!(maps.list(&ListParams::default()).await.is_ok());
/// assert!(maps.list(&ListParams::default()).await.is_err());
/// assert!(maps.list(&ListParams::default()).await.is_ok());
/// assert_eq!(second_list.struck(), 1);
/// # }
/// ```
#[must_use = "a fault does nothing until it is injected"]
#[derive(Clone, Debug)]
pub struct Fault<What = OnRequest> {
    pub(super) what: What,
    pub(super) target: FaultTarget,
    pub(super) window: Window,
}

impl<What> Fault<What> {
    pub(super) fn of(what: What) -> Self {
        Self {
            what,
            target: FaultTarget::default(),
            window: Window::default(),
        }
    }

    /// Strikes this resource only: its plural, with or without its group and a subresource
    /// (e.g. `databases`, `databases.demo.okt.dev`, `databases/status`, `databases/*`).
    ///
    /// Without a subresource it matches the object and all subresources; see also
    /// [`Fault::subresource`].
    ///
    /// # Panics
    /// If it is no plural (e.g. `Database`).
    #[track_caller]
    pub fn resource(mut self, resource: &str) -> Self {
        self.target.resources.push(Resource::parse(resource));
        self
    }

    /// Strikes in this namespace only; for events this is the namespace of the object.
    pub fn namespace(mut self, namespace: &str) -> Self {
        self.target.namespaces.push(namespace.to_owned());
        self
    }

    /// Strikes requests for the object of this name, or events about it.
    ///
    /// A request for a collection has no name.
    pub fn name(mut self, name: &str) -> Self {
        self.target.names.push(name.to_owned());
        self
    }

    /// Strikes this client only: a client of [`client_named`](crate::ApiServer::client_named), or
    /// over HTTP a client whose `User-Agent` begins with this word (e.g. `kubectl`).
    pub fn client(mut self, client: &str) -> Self {
        self.target.clients.push(client.to_owned());
        self
    }

    /// Strikes only requests to and events from this replica; the server itself has the empty name.
    pub fn replica(mut self, replica: &str) -> Self {
        self.target.replicas.push(replica.to_owned());
        self
    }

    /// Skips the first matches.
    pub fn skip(mut self, matches: u64) -> Self {
        self.window.skip = matches;
        self
    }

    /// Strikes at most this often; with 0 the fault only counts its matches.
    pub fn times(mut self, strikes: u64) -> Self {
        self.window.times = Some(strikes);
        self
    }

    /// Strikes only the match of this number, starting at 1; none if another fault strikes that
    /// match.
    ///
    /// # Panics
    /// For 0.
    #[track_caller]
    pub fn nth(mut self, number: u64) -> Self {
        assert!(
            number > 0,
            "nth counts from 1: there is no match of number 0"
        );
        self.window.skip = number - 1;
        self.window.last = Some(number);
        self
    }

    /// Strikes each match whose number, counted after the skipped ones, is a multiple of this.
    ///
    /// # Panics
    /// For 0.
    #[track_caller]
    pub fn every(mut self, number: u64) -> Self {
        assert!(
            number > 0,
            "every(1) strikes all matches; every(0) says nothing"
        );
        self.window.every = number;
        self
    }
}

impl Fault<OnRequest> {
    /// Strikes requests that your predicate selects; `status` of the record is not known yet.
    ///
    /// The predicate may use the server, and inject or end faults; a fault that it injects does not
    /// strike the current request.
    ///
    /// # Example
    /// ```
    /// use okt_testing::{ApiServer, Fault};
    ///
    /// let server = ApiServer::new();
    /// server.inject(Fault::internal_error().matching(|request| request.dry_run));
    /// ```
    pub fn matching(
        mut self,
        test: impl Fn(&RequestRecord) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.target.test = Some(Test(Arc::new(test)));
        self
    }
}

impl<What: fmt::Display> fmt::Display for Fault<What> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.what.fmt(f)
    }
}
