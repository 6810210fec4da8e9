//! [`OnRequest`]: how a request fails or is delayed, and the response of a failure.

use std::fmt;
use std::time::Duration;

use crate::api::record::RequestRecord;
use crate::api::refusal::{Refusal, Subject};

/// The fault of a request, before or after it is carried out.
#[derive(Clone, Debug)]
pub struct OnRequest {
    pub(crate) fault: RequestFault,
    pub(crate) after_commit: bool,
}

#[derive(Clone, Debug)]
pub(crate) enum RequestFault {
    /// The request is answered with this failure.
    Refused(FailureResponse),
    /// The request gets no response.
    Silence,
    /// The connection ends before the response.
    Broken,
    /// The request takes this much longer.
    Delayed(Duration),
    /// The request is on its way for this long, whether its client waits for it or not.
    InFlight(Duration),
    /// The connection ends after this number of bytes of the response body.
    Cut(usize),
}

/// A failure response.
#[derive(Clone, Debug)]
pub(crate) struct FailureResponse {
    pub(crate) code: u16,
    pub(super) reason: String,
    /// `None` for the message of a real server, which names the object.
    pub(super) message: Option<String>,
    pub(crate) retry_after_seconds: Option<u64>,
}

impl OnRequest {
    /// Returns the same fault with this fraction of its delay.
    pub(crate) fn scaled(&self, fraction: f64) -> Self {
        let mut scaled = self.clone();
        if let RequestFault::Delayed(time) | RequestFault::InFlight(time) = &mut scaled.fault {
            *time = time.mul_f64(fraction);
        }
        scaled
    }
}

impl fmt::Display for OnRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.fault {
            RequestFault::Refused(failure) => write!(f, "{} {}", failure.code, failure.reason)?,
            RequestFault::Silence => f.write_str("no answer")?,
            RequestFault::Broken => f.write_str("a broken connection")?,
            RequestFault::Delayed(time) => write!(f, "a delay of {time:?}")?,
            RequestFault::InFlight(time) => write!(f, "a delivery after {time:?}")?,
            RequestFault::Cut(bytes) => return write!(f, "a body cut after {bytes} bytes"),
        }
        if self.after_commit {
            f.write_str(" after the commit")?;
        }
        Ok(())
    }
}

impl FailureResponse {
    /// Returns the refusal that answers a request.
    pub(crate) fn refusal(&self, request: &RequestRecord) -> Refusal {
        let subject = Subject {
            group: &request.group,
            plural: &request.resource,
            name: request.name.as_deref().unwrap_or_default(),
            ..Subject::default()
        };
        let refusal = match (&self.message, self.code) {
            (Some(message), code) => {
                Refusal::of_subject(code, self.reason.clone(), message.clone(), subject)
            }
            (None, 409) => Refusal::stale(subject),
            (None, _) => {
                let (client, verb) = (&request.client, request.verb);
                let why = format!(
                    "User \"{client}\" cannot {verb} resource \"{}\" in API group \"{}\"",
                    request.resource, request.group
                );
                Refusal::forbidden(subject, &why)
            }
        };
        match self.retry_after_seconds {
            Some(seconds) => refusal.retry_after(seconds),
            None => refusal,
        }
    }
}
