//! [`Fault`]: the builders of a [`Rule`].

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use super::occasion::EventKind;
use super::rule::{FaultKind, Resource, Rule, Test};
use crate::record::{RequestRecord, Verb};

/// A fault that strikes requests or the events of watches.
///
/// A constructor selects the fault ([`Fault::conflict`], [`Fault::drop_event`], ...), and further
/// calls set limits; without limits it strikes every request or every event.
/// A limit that is given twice matches either value (e.g. `.name("a").name("b")`).
/// Pass the fault to [`ApiServer::inject`](crate::ApiServer::inject), or with a rate to a
/// [`Chaos`](crate::Chaos).
///
/// Faults of requests ([`OnRequest`]) and faults of events ([`OnEvent`]) share this type; a limit that makes no
/// sense for one of them does not compile. A test in another language sends the same as JSON to `/okt/v1/faults`.
///
/// # How faults combine
/// Delays and lags of all faults that match add up. Of all other faults that match, only the one
/// that was injected first strikes.
///
/// # Example
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube::{Api, api::ListParams};
/// use okt_apiserver::{ApiServer, Fault, Verb};
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
pub struct Fault<On = OnRequest> {
    pub(super) rule: Rule,
    on: PhantomData<On>,
}

/// Marks the [`Fault`]s of requests.
#[derive(Clone, Debug)]
pub enum OnRequest {}

/// Marks the [`Fault`]s of the events of watches.
#[derive(Clone, Debug)]
pub enum OnEvent {}

impl<On> Fault<On> {
    fn new(fault: FaultKind) -> Self {
        Self {
            rule: Rule::new(fault),
            on: PhantomData,
        }
    }

    fn taking(fault: FaultKind, time: Duration) -> Self {
        let mut fault = Self::new(fault);
        fault.rule.time = Some(time);
        fault
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
        self.rule.limits.resources.push(named(resource));
        self
    }

    /// Strikes in this namespace only; for events this is the namespace of the object.
    pub fn namespace(mut self, namespace: &str) -> Self {
        self.rule.limits.namespaces.push(namespace.to_owned());
        self
    }

    /// Strikes requests for the object of this name, or events about it.
    ///
    /// A request for a collection has no name.
    pub fn name(mut self, name: &str) -> Self {
        self.rule.limits.names.push(name.to_owned());
        self
    }

    /// Strikes this client only: a client of [`client_named`](crate::ApiServer::client_named), or
    /// over HTTP a client whose `User-Agent` begins with this word (e.g. `kubectl`).
    pub fn client(mut self, client: &str) -> Self {
        self.rule.limits.clients.push(client.to_owned());
        self
    }

    /// Strikes only requests to and events from this replica; the server itself has the empty name.
    pub fn replica(mut self, replica: &str) -> Self {
        self.rule.limits.replicas.push(replica.to_owned());
        self
    }

    /// Skips the first matches.
    pub fn skip(mut self, matches: u64) -> Self {
        self.rule.skip = matches;
        self
    }

    /// Strikes at most this often; with 0 the fault only counts its matches.
    pub fn times(mut self, strikes: u64) -> Self {
        self.rule.times = Some(strikes);
        self
    }

    /// Strikes only the match of this number, starting at 1; none if another fault strikes that match.
    ///
    /// 0 is refused when the fault is injected.
    pub fn nth(mut self, number: u64) -> Self {
        self.rule.nth = Some(number);
        self
    }

    /// Strikes each match whose number, counted after the skipped ones, is a multiple of this.
    ///
    /// 0 is refused when the fault is injected.
    pub fn every(mut self, number: u64) -> Self {
        self.rule.every = number;
        self
    }
}

impl Fault<OnRequest> {
    /// Answers the request with 409 Conflict, as if another client had just written the object.
    pub fn conflict() -> Self {
        Self::new(FaultKind::Conflict)
    }

    /// Answers the request with 429 and `Retry-After`, in whole seconds, rounded up.
    ///
    /// A client that kube builds from a configuration waits this long and retries, up to 15
    /// times; a client of [`ApiServer::client`](crate::ApiServer::client) sees each 429.
    pub fn too_many_requests(retry_after: Duration) -> Self {
        Self::taking(FaultKind::TooManyRequests, retry_after)
    }

    /// Answers the request with 500.
    pub fn internal_error() -> Self {
        Self::new(FaultKind::InternalError)
    }

    /// Answers the request with 503.
    pub fn unavailable() -> Self {
        Self::new(FaultKind::Unavailable)
    }

    /// Answers the request with 504: a timeout, whose outcome a client cannot know.
    ///
    /// The request is not carried out; with [`after_commit`](Self::after_commit) it is.
    pub fn timeout() -> Self {
        Self::new(FaultKind::Timeout)
    }

    /// Answers the request with 410, as for a page of a list whose version is compacted.
    ///
    /// A watch gets an `ERROR` event, as from a real server: the client relists.
    pub fn gone() -> Self {
        Self::new(FaultKind::Gone)
    }

    /// Answers the request with 401.
    pub fn unauthorized() -> Self {
        Self::new(FaultKind::Unauthorized)
    }

    /// Answers the request with 403, as if RBAC did not allow it.
    pub fn forbidden() -> Self {
        Self::new(FaultKind::Forbidden)
    }

    /// Answers the request with this code, reason and message.
    ///
    /// A code that is no failure (400 to 599) is refused when the fault is injected.
    pub fn answer(code: u16, reason: &str, message: &str) -> Self {
        let mut fault = Self::new(FaultKind::Answer);
        fault.rule.code = code;
        reason.clone_into(&mut fault.rule.reason);
        message.clone_into(&mut fault.rule.message);
        fault
    }

    /// Never answers the request, and does not carry it out.
    ///
    /// With [`after_commit`](Self::after_commit) it is carried out. Kube clients wait forever.
    pub fn no_answer() -> Self {
        Self::new(FaultKind::NoAnswer)
    }

    /// Breaks the connection before the response; the request is not carried out.
    ///
    /// With [`after_commit`](Self::after_commit) it is. Over HTTP the connection is really cut.
    pub fn break_connection() -> Self {
        Self::new(FaultKind::BreakConnection)
    }

    /// Breaks the connection after this number of bytes of the response body, or at its end if it
    /// is shorter.
    ///
    /// By then the request is carried out, so [`after_commit`](Self::after_commit) makes no difference.
    pub fn cut_body(bytes: usize) -> Self {
        let mut fault = Self::new(FaultKind::CutBody);
        fault.rule.bytes = bytes;
        fault
    }

    /// Carries out the request this much later, on tokio's clock; it is not carried out if the
    /// client gives up meanwhile (see [`deliver_late`](Self::deliver_late)).
    ///
    /// With [`after_commit`](Self::after_commit) it is carried out at once and answered late.
    /// In a [`Chaos`](crate::Chaos) the delay is between zero and this time.
    pub fn delay(time: Duration) -> Self {
        Self::taking(FaultKind::Delay, time)
    }

    /// Delivers the request this much later, on tokio's clock: it is carried out even if the client
    /// has given up meanwhile.
    ///
    /// So an old write arrives when its client, restarted or replaced by another one, has written
    /// something newer. With [`after_commit`](Self::after_commit) it is as [`delay`](Self::delay).
    /// In a [`Chaos`](crate::Chaos) the time is between zero and this time.
    ///
    /// # Example
    /// ```
    /// use std::time::Duration;
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube::{Api, api::{ListParams, PostParams}};
    /// use okt_apiserver::{ApiServer, Fault, Verb};
    /// use tokio::time::{sleep, timeout};
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), kube::Error> {
    /// let server = ApiServer::new();
    /// server.inject(Fault::deliver_late(Duration::from_secs(9)).on(Verb::Create).times(1));
    /// let maps: Api<ConfigMap> = Api::default_namespaced(server.client());
    /// let mut map = ConfigMap::default();
    /// map.metadata.name = Some("late".to_owned());
    /// let creating = timeout(Duration::from_secs(3), maps.create(&PostParams::default(), &map)).await;
    /// assert!(creating.is_err(), "the client gives up");
    /// assert!(maps.get_opt("late").await?.is_none());
    /// sleep(Duration::from_secs(7)).await;
    /// assert!(maps.get_opt("late").await?.is_some());
    /// # Ok(())
    /// # }
    /// ```
    pub fn deliver_late(time: Duration) -> Self {
        Self::taking(FaultKind::DeliverLate, time)
    }

    /// Strikes after the request was carried out: its writes are committed.
    pub fn after_commit(mut self) -> Self {
        self.rule.after_commit = true;
        self
    }

    /// Strikes requests of this verb only.
    pub fn on(mut self, verb: Verb) -> Self {
        self.rule.limits.verbs.push(verb);
        self
    }

    /// Strikes only requests that may change something.
    pub fn on_writes(mut self) -> Self {
        self.rule.limits.verbs.extend(Verb::WRITES);
        self
    }

    /// Strikes only gets, lists and watches.
    pub fn on_reads(mut self) -> Self {
        self.rule.limits.verbs.extend(Verb::READS);
        self
    }

    /// Strikes requests of this subresource only (e.g. `status`); the empty name is the object
    /// itself.
    pub fn subresource(mut self, subresource: &str) -> Self {
        self.rule.limits.subresources.push(subresource.to_owned());
        self
    }

    /// Strikes requests of this field manager only.
    pub fn manager(mut self, manager: &str) -> Self {
        self.rule.limits.managers.push(manager.to_owned());
        self
    }

    /// Strikes requests that your predicate selects; `status` of the record is not known yet.
    ///
    /// The predicate may use the server, and inject or end faults; a fault that it injects does not
    /// strike the current request.
    ///
    /// # Example
    /// ```
    /// use okt_apiserver::{ApiServer, Fault};
    ///
    /// let server = ApiServer::new();
    /// server.inject(Fault::internal_error().matching(|request| request.dry_run));
    /// ```
    pub fn matching(
        mut self,
        test: impl Fn(&RequestRecord) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.rule.limits.test = Some(Test(Arc::new(test)));
        self
    }

    /// Cuts a client off: its requests break, and its watches get no events until the fault is
    /// [ended](crate::Injected::end).
    ///
    /// # Example
    /// ```
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube::{Api, api::ListParams};
    /// use okt_apiserver::{ApiServer, Fault};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let server = ApiServer::new();
    /// let partition = server.inject(Fault::partition("operator"));
    /// let maps: Api<ConfigMap> = Api::all(server.client_named("operator"));
    /// assert!(maps.list(&ListParams::default()).await.is_err());
    /// partition.end();
    /// assert!(maps.list(&ListParams::default()).await.is_ok());
    /// # }
    /// ```
    pub fn partition(client: &str) -> Self {
        Self::new(FaultKind::Partition).client(client)
    }
}

impl Fault<OnEvent> {
    /// Delays the event and all that follow in the same watch, on tokio's clock.
    ///
    /// In a [`Chaos`](crate::Chaos) the lag is between zero and this time.
    pub fn lag(time: Duration) -> Self {
        Self::taking(FaultKind::Lag, time)
    }

    /// Holds back the event and all that follow in the same watch, until the fault is
    /// [ended](crate::Injected::end).
    pub fn hold_events() -> Self {
        Self::new(FaultKind::HoldEvents)
    }

    /// Drops the event: it is never sent.
    ///
    /// A healthy server never drops the last change of an object; to come to rest afterwards, a
    /// client needs a new list ([`Fault::expire_stream`]). Merged events, which every client can
    /// meet, are [`Fault::merge_events`].
    ///
    /// # Example
    /// ```
    /// use futures::{StreamExt, TryStreamExt};
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube::{Api, api::{Patch, PatchParams, PostParams, WatchParams}};
    /// use okt_apiserver::{ApiServer, EventKind, Fault};
    /// use serde_json::json;
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), kube::Error> {
    /// let server = ApiServer::new();
    /// let lost = server.inject(Fault::drop_event().name("a").event(EventKind::Modified).nth(2));
    ///
    /// let maps: Api<ConfigMap> = Api::default_namespaced(server.client_named("operator"));
    /// let mut events = maps.watch(&WatchParams::default(), "0").await?.boxed();
    /// let map = serde_json::from_value(json!({ "metadata": { "name": "a" } }));
    /// maps.create(&PostParams::default(), &map.expect("a map")).await?;
    /// for x in ["1", "2", "3"] {
    ///     let patch = Patch::Merge(json!({ "data": { "x": x } }));
    ///     maps.patch("a", &PatchParams::default(), &patch).await?;
    /// }
    /// for _ in 0..3 {
    ///     events.try_next().await?;
    /// }
    ///
    /// let sent: Vec<_> = server.events().iter().map(|event| event.kind).collect();
    /// assert_eq!(sent, [EventKind::Added, EventKind::Modified, EventKind::Modified]);
    /// assert_eq!(lost.strikes()[0].to_string(), "MODIFIED configmaps default/a of operator: a dropped event");
    /// # Ok(())
    /// # }
    /// ```
    pub fn drop_event() -> Self {
        Self::new(FaultKind::DropEvent)
    }

    /// Sends the event twice.
    pub fn repeat_event() -> Self {
        Self::new(FaultKind::RepeatEvent)
    }

    /// Holds back the event and all that follow in the same watch until the next event of the same
    /// object, and sends both as one, as after a disconnect and a list.
    ///
    /// If none comes within this time, on tokio's clock, the event is sent as it is.
    pub fn merge_events(within: Duration) -> Self {
        Self::taking(FaultKind::MergeEvents, within)
    }

    /// Ends the watch after the event, as a server does when the watch times out.
    pub fn end_stream() -> Self {
        Self::new(FaultKind::EndStream)
    }

    /// Breaks the connection in the middle of the event.
    pub fn break_stream() -> Self {
        Self::new(FaultKind::BreakStream)
    }

    /// Sends an `ERROR` event with 410 instead of the event and ends the watch: the client relists.
    ///
    /// For the start of a watch see [`Fault::gone`].
    pub fn expire_stream() -> Self {
        Self::new(FaultKind::ExpireStream)
    }

    /// Drops all bookmarks, except the one that ends a streamed list.
    pub fn withhold_bookmarks() -> Self {
        Self::new(FaultKind::WithholdBookmarks)
    }

    /// Strikes events of this kind only; without this call it strikes all but bookmarks.
    pub fn event(mut self, kind: EventKind) -> Self {
        self.rule.limits.events.push(kind);
        self
    }
}

/// What goes wrong, e.g. `no answer after the commit`.
impl<On> fmt::Display for Fault<On> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = self.rule.time.unwrap_or_default();
        f.write_str(&self.rule.describe(time))
    }
}

impl<On> From<Fault<On>> for Rule {
    fn from(fault: Fault<On>) -> Self {
        fault.rule
    }
}

/// Returns the resource of this name.
///
/// # Panics
/// If it is no plural.
#[track_caller]
pub(super) fn named(resource: &str) -> Resource {
    match resource.parse() {
        Ok(resource) => resource,
        Err(why) => panic!("{why}"),
    }
}
