//! [`OnRequest`]: how a request fails or is delayed, and the response of a failure.

use std::fmt;
use std::time::Duration;

use serde_json::{Value, json};

use crate::api::record::RequestRecord;

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
    /// Returns the `Status` object that answers a request.
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
