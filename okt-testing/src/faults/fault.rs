//! This file is the word for something that goes wrong: what, for whom, and how often.

use std::fmt;

use super::{
    count::Window,
    request::OnRequest,
    target::{Resource, Target},
};
use crate::record::RequestRecord;

/// Something that goes wrong with requests or with the events of watches.
///
/// A fault begins with what happens ([`Fault::conflict`], [`Fault::drop_event`], ...) and goes on
/// with limits; without any it strikes whatever comes.
/// A limit that is given twice means either (e.g. `.name("a").name("b")`).
/// Hand it to [`ApiServer::inject`](crate::ApiServer::inject), or to a
/// [`Chaos`](crate::Chaos) with a rate.
///
/// What strikes requests ([`OnRequest`]) and what strikes events ([`OnEvent`](crate::OnEvent)) share this type;
/// words that make no sense for one of them do not compile.
///
/// # How faults combine
/// Delays and lags of all faults that match add up; of all others the one that was injected
/// first strikes, alone.
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
    pub(super) target: Target,
    pub(super) window: Window,
}

impl<What> Fault<What> {
    pub(super) fn of(what: What) -> Self {
        Self {
            what,
            target: Target::default(),
            window: Window::default(),
        }
    }

    /// Strikes this resource only: its plural, with or without its group and a subresource
    /// (e.g. `databases`, `databases.demo.okt.dev`, `databases/status`, `databases/*`).
    ///
    /// Without a subresource all of them are meant; see also [`Fault::subresource`].
    ///
    /// # Panics
    /// If it is no plural (e.g. `Database`).
    #[track_caller]
    pub fn resource(mut self, resource: &str) -> Self {
        self.target.resources.push(Resource::parse(resource));
        self
    }

    /// Strikes in this namespace only; for events it is the object's.
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

    /// Strikes this client only: one made by
    /// [`client_named`](crate::ApiServer::client_named), or over HTTP one whose `User-Agent`
    /// begins with this word (e.g. `kubectl`).
    pub fn client(mut self, client: &str) -> Self {
        self.target.clients.push(client.to_owned());
        self
    }

    /// Strikes what goes through this replica only; the server itself has the empty name.
    pub fn replica(mut self, replica: &str) -> Self {
        self.target.replicas.push(replica.to_owned());
        self
    }

    /// Lets the first matches pass.
    pub fn skip(mut self, matches: u64) -> Self {
        self.window.skip = matches;
        self
    }

    /// Strikes this often at most; none at all still counts what matches.
    pub fn times(mut self, strikes: u64) -> Self {
        self.window.times = Some(strikes);
        self
    }

    /// Strikes the match of this number, counted from 1, and no other; none at all where another
    /// fault is in its place.
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

    /// Strikes each match whose number, after those that are let pass, is a multiple of this.
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
    /// Strikes requests that a test of your own picks; `status` of the record is not known yet.
    ///
    /// It may ask the server, and inject or end faults; what it injects is not for the request in
    /// hand.
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
        self.target.test = Some(std::sync::Arc::new(test));
        self
    }
}

impl<What: fmt::Display> fmt::Display for Fault<What> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.what.fmt(f)
    }
}
