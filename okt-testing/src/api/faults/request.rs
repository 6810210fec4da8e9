//! The constructors and limits of the faults of requests.

use std::time::Duration;

use super::failure::{FailureResponse, OnRequest, RequestFault};
use super::fault::Fault;
use crate::api::record::Verb;

impl Fault<OnRequest> {
    /// Answers the request with 409 Conflict, as if another client had just written the object.
    pub fn conflict() -> Self {
        Self::refused(409, "Conflict", None)
    }

    /// Answers the request with 429 and `Retry-After`, in whole seconds, rounded up.
    ///
    /// A client that kube builds from a configuration waits this long and retries, up to 15
    /// times; a client of [`ApiServer::client`](crate::ApiServer::client) sees each 429.
    pub fn too_many_requests(retry_after: Duration) -> Self {
        let mut seconds = retry_after.as_secs();
        if retry_after.subsec_nanos() > 0 {
            seconds = seconds.saturating_add(1);
        }
        let message = "Too many requests, please try again later.";
        let mut fault = Self::refused(429, "TooManyRequests", Some(message));
        if let RequestFault::Refused(failure) = &mut fault.what.fault {
            failure.retry_after_seconds = Some(seconds);
        }
        fault
    }

    /// Answers the request with 500.
    pub fn internal_error() -> Self {
        let message = "Internal error occurred: okt-testing was told to fail";
        Self::refused(500, "InternalError", Some(message))
    }

    /// Answers the request with 503.
    pub fn unavailable() -> Self {
        let message = "the server is currently unable to handle the request";
        Self::refused(503, "ServiceUnavailable", Some(message))
    }

    /// Answers the request with 504: a timeout, whose outcome a client cannot know.
    ///
    /// The request is not carried out; with [`after_commit`](Self::after_commit) it is.
    pub fn timeout() -> Self {
        let message = "Timeout: request did not complete within requested timeout - context deadline exceeded";
        Self::refused(504, "Timeout", Some(message))
    }

    /// Answers the request with 410, as for a page of a list whose version is compacted.
    ///
    /// A watch gets an `ERROR` event, as from a real server: the client relists.
    pub fn gone() -> Self {
        let message = "The resourceVersion for the provided watch is too old.";
        Self::refused(410, "Expired", Some(message))
    }

    /// Answers the request with 401.
    pub fn unauthorized() -> Self {
        Self::refused(401, "Unauthorized", Some("Unauthorized"))
    }

    /// Answers the request with 403, as if RBAC did not allow it.
    pub fn forbidden() -> Self {
        Self::refused(403, "Forbidden", None)
    }

    /// Answers the request with this code, reason and message.
    ///
    /// # Panics
    /// If the code is no failure (400 to 599).
    #[track_caller]
    pub fn answer(code: u16, reason: &str, message: &str) -> Self {
        assert!(
            (400..600).contains(&code),
            "the code of a fault is between 400 and 599, not {code}"
        );
        Self::refused(code, reason, Some(message))
    }

    /// Never answers the request, and does not carry it out.
    ///
    /// With [`after_commit`](Self::after_commit) it is carried out. Kube clients wait forever.
    pub fn no_answer() -> Self {
        Self::happens(RequestFault::Silence)
    }

    /// Breaks the connection before the response; the request is not carried out.
    ///
    /// With [`after_commit`](Self::after_commit) it is. Over HTTP the connection is really cut.
    pub fn break_connection() -> Self {
        Self::happens(RequestFault::Broken)
    }

    /// Breaks the connection after this number of bytes of the response body, or at its end if it
    /// is shorter.
    ///
    /// By then the request is carried out, so [`after_commit`](Self::after_commit) makes no difference.
    pub fn cut_body(bytes: usize) -> Self {
        Self::happens(RequestFault::Cut(bytes))
    }

    /// Carries out the request this much later, on tokio's clock; it is not carried out if the
    /// client gives up meanwhile (see [`deliver_late`](Self::deliver_late)).
    ///
    /// With [`after_commit`](Self::after_commit) it is carried out at once and answered late.
    /// In a [`Chaos`](crate::Chaos) the delay is between zero and this time.
    pub fn delay(time: Duration) -> Self {
        Self::happens(RequestFault::Delayed(time))
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
    /// use okt_testing::{ApiServer, Fault, Verb};
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
        Self::happens(RequestFault::InFlight(time))
    }

    /// Strikes after the request was carried out: its writes are committed.
    pub fn after_commit(mut self) -> Self {
        self.what.after_commit = true;
        self
    }

    /// Strikes requests of this verb only.
    pub fn on(mut self, verb: Verb) -> Self {
        self.target.verbs.push(verb);
        self
    }

    /// Strikes only requests that may change something.
    pub fn on_writes(mut self) -> Self {
        self.target.verbs.extend(Verb::WRITES);
        self
    }

    /// Strikes only gets, lists and watches.
    pub fn on_reads(mut self) -> Self {
        self.target.verbs.extend(Verb::READS);
        self
    }

    /// Strikes requests of this subresource only (e.g. `status`); the empty name is the object
    /// itself.
    pub fn subresource(mut self, subresource: &str) -> Self {
        self.target.subresources.push(subresource.to_owned());
        self
    }

    /// Strikes requests of this field manager only.
    pub fn manager(mut self, manager: &str) -> Self {
        self.target.managers.push(manager.to_owned());
        self
    }

    fn refused(code: u16, reason: &str, message: Option<&str>) -> Self {
        Self::happens(RequestFault::Refused(FailureResponse {
            code,
            reason: reason.to_owned(),
            message: message.map(str::to_owned),
            retry_after_seconds: None,
        }))
    }

    fn happens(fault: RequestFault) -> Self {
        Self::of(OnRequest {
            fault,
            after_commit: false,
        })
    }
}
