//! This file holds what can go wrong with a request.

use std::{fmt, time::Duration};

use serde_json::{Value, json};

use super::fault::Fault;
use crate::record::{RequestRecord, Verb};

/// What goes wrong with a request, before or after it is carried out.
#[derive(Clone, Debug)]
pub struct OnRequest {
    pub(crate) mishap: Mishap,
    pub(crate) after_commit: bool,
}

#[derive(Clone, Debug)]
pub(crate) enum Mishap {
    /// It is answered so.
    Refused(Failure),
    /// It gets no answer.
    Silence,
    /// The connection ends before the answer.
    Broken,
    /// It takes this much longer.
    Delayed(Duration),
    /// The connection ends after so many bytes of the answer's body.
    Cut(usize),
}

/// An answer that says no.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) code: u16,
    reason: String,
    /// None for the words of a real server, which name the object.
    message: Option<String>,
    pub(crate) retry_after_seconds: Option<u64>,
}

impl Fault<OnRequest> {
    /// The request is answered with 409 Conflict, as if somebody else had just written.
    pub fn conflict() -> Self {
        Self::refused(409, "Conflict", None)
    }

    /// The request is answered with 429 and `Retry-After`, in whole seconds, rounded up.
    ///
    /// A client that kube makes from a configuration waits so long and tries again, up to 15
    /// times; one of [`ApiServer::client`](crate::ApiServer::client) sees each 429.
    pub fn too_many_requests(retry_after: Duration) -> Self {
        let mut seconds = retry_after.as_secs();
        if retry_after.subsec_nanos() > 0 {
            seconds = seconds.saturating_add(1);
        }
        let message = "Too many requests, please try again later.";
        let mut fault = Self::refused(429, "TooManyRequests", Some(message));
        if let Mishap::Refused(failure) = &mut fault.what.mishap {
            failure.retry_after_seconds = Some(seconds);
        }
        fault
    }

    /// The request is answered with 500.
    pub fn internal_error() -> Self {
        let message = "Internal error occurred: okt-testing was told to fail";
        Self::refused(500, "InternalError", Some(message))
    }

    /// The request is answered with 503.
    pub fn unavailable() -> Self {
        let message = "the server is currently unable to handle the request";
        Self::refused(503, "ServiceUnavailable", Some(message))
    }

    /// The request is answered with 504: a time-out, whose outcome a client cannot know.
    ///
    /// Nothing was written; with [`after_commit`](Self::after_commit) it was.
    pub fn timeout() -> Self {
        let message = "Timeout: request did not complete within requested timeout - context deadline exceeded";
        Self::refused(504, "Timeout", Some(message))
    }

    /// The request is answered with 410: a page of a list whose version is forgotten.
    ///
    /// A watch is told so as a real server does, by an `ERROR` event: the client lists anew.
    pub fn gone() -> Self {
        let message = "The resourceVersion for the provided watch is too old.";
        Self::refused(410, "Expired", Some(message))
    }

    /// The request is answered with 401.
    pub fn unauthorized() -> Self {
        Self::refused(401, "Unauthorized", Some("Unauthorized"))
    }

    /// The request is answered with 403, as if RBAC did not allow it.
    pub fn forbidden() -> Self {
        Self::refused(403, "Forbidden", None)
    }

    /// The request is answered with this code, reason and sentence.
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

    /// The request never gets an answer; nothing was written.
    ///
    /// With [`after_commit`](Self::after_commit) it was. Clients of kube wait without end.
    pub fn no_answer() -> Self {
        Self::happens(Mishap::Silence)
    }

    /// The connection breaks before the answer; nothing was written.
    ///
    /// With [`after_commit`](Self::after_commit) it was. Over HTTP the connection is really cut.
    pub fn break_connection() -> Self {
        Self::happens(Mishap::Broken)
    }

    /// The connection breaks after so many bytes of the answer's body, or at its end if it is
    /// shorter.
    ///
    /// By then a write is carried out, so [`after_commit`](Self::after_commit) makes no difference.
    pub fn cut_body(bytes: usize) -> Self {
        Self::happens(Mishap::Cut(bytes))
    }

    /// The request is carried out this much later, on tokio's clock; one whose client gives up
    /// meanwhile is not carried out.
    ///
    /// With [`after_commit`](Self::after_commit) it is carried out at once and answered late.
    /// In a [`Chaos`](crate::Chaos) the delay is between nothing and this.
    pub fn delay(time: Duration) -> Self {
        Self::happens(Mishap::Delayed(time))
    }

    /// It happens after the request was carried out: what it wrote is there.
    pub fn after_commit(mut self) -> Self {
        self.what.after_commit = true;
        self
    }

    /// Strikes requests of this verb only.
    pub fn on(mut self, verb: Verb) -> Self {
        self.target.verbs.push(verb);
        self
    }

    /// Strikes requests that may change something only.
    pub fn on_writes(mut self) -> Self {
        self.target.verbs.extend(Verb::WRITES);
        self
    }

    /// Strikes gets, lists and watches only.
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
        Self::happens(Mishap::Refused(Failure {
            code,
            reason: reason.to_owned(),
            message: message.map(str::to_owned),
            retry_after_seconds: None,
        }))
    }

    fn happens(mishap: Mishap) -> Self {
        Self::of(OnRequest {
            mishap,
            after_commit: false,
        })
    }
}

impl OnRequest {
    /// The same with this fraction of its delay.
    pub(crate) fn scaled(&self, fraction: f64) -> Self {
        let mut scaled = self.clone();
        if let Mishap::Delayed(time) = &mut scaled.mishap {
            *time = time.mul_f64(fraction);
        }
        scaled
    }
}

impl fmt::Display for OnRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.mishap {
            Mishap::Refused(failure) => write!(f, "{} {}", failure.code, failure.reason)?,
            Mishap::Silence => f.write_str("no answer")?,
            Mishap::Broken => f.write_str("a broken connection")?,
            Mishap::Delayed(time) => write!(f, "a delay of {time:?}")?,
            Mishap::Cut(bytes) => return write!(f, "a body cut after {bytes} bytes"),
        }
        if self.after_commit {
            f.write_str(" after the commit")?;
        }
        Ok(())
    }
}

impl Failure {
    /// The `Status` object that answers a request.
    pub(crate) fn body(&self, request: &RequestRecord) -> Value {
        let name = request.name.as_deref().unwrap_or_default();
        let resource = if request.group.is_empty() {
            request.resource.clone()
        } else {
            format!("{}.{}", request.resource, request.group)
        };
        let message = match (&self.message, self.code) {
            (Some(message), _) => message.clone(),
            (None, 409) => format!(
                "Operation cannot be fulfilled on {resource} \"{name}\": the object has been modified; please apply your changes to the latest version and try again"
            ),
            (None, _) => format!(
                "{resource} \"{name}\" is forbidden: User \"{}\" cannot {} resource \"{}\" in API group \"{}\"",
                request.client, request.verb, request.resource, request.group
            ),
        };
        let mut details = json!({});
        for (key, text) in [
            ("name", name),
            ("group", request.group.as_str()),
            ("kind", request.resource.as_str()),
        ] {
            if !text.is_empty() {
                details[key] = text.into();
            }
        }
        if let Some(seconds) = self.retry_after_seconds {
            details["retryAfterSeconds"] = seconds.into();
        }
        json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": message,
            "reason": self.reason,
            "details": details,
            "code": self.code,
        })
    }
}
