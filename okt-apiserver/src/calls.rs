//! The calls of webhooks that a request makes.
//!
//! A request is carried out with the store locked, and meanwhile no webhook can be called. So the request notes the calls
//! that it needs, and gives up; they are made with the store unlocked, and the request begins anew with their answers.

mod network;
mod services;
#[cfg(feature = "tls")]
mod trust;

use std::collections::BTreeMap;

use futures::future::join_all;
use parking_lot::Mutex;
use serde_json::Value;

pub(crate) use self::services::Services;
use crate::client_config::ClientConfig;
use crate::refusal::Refusal;
use crate::store::Store;

/// The error of a Go client that has waited long enough.
const LATE: &str = "context deadline exceeded";

/// One call of a webhook.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WebhookCall {
    pub(crate) client: ClientConfig,
    /// Which webhook it is, where several are sent the same.
    pub(crate) hook: String,
    /// How long the call may take, in seconds.
    pub(crate) timeout: u64,
    /// The `apiVersion` and the `kind` of the review.
    pub(crate) review: (String, &'static str),
    /// The request of the review, as JSON, without its uid.
    pub(crate) request: String,
}

/// The `response` of a review.
pub(crate) type CallResult = Result<Value, CallFailure>;

/// Why there is no response, in the words of a server.
#[derive(Clone, Debug)]
pub(crate) enum CallFailure {
    /// There is no answer, or one without success.
    Missing(String),
    /// The answer is no review, or that of another request.
    Invalid(String),
    /// The answer says something that cannot be done.
    Unusable(String),
}

/// The calls that a request has made so far, and those that it is yet to make.
#[derive(Debug, Default)]
pub(crate) struct WebhookCalls {
    /// `None` for calls that are yet to be made.
    calls: Mutex<BTreeMap<WebhookCall, Option<CallResult>>>,
    /// The values that stay the same when the request begins anew.
    fixed: Mutex<BTreeMap<&'static str, String>>,
    warnings: Mutex<Vec<String>>,
}

impl WebhookCalls {
    /// Returns the answer of a call.
    ///
    /// # Errors
    /// It is yet to be made. Whoever gets this gives up, with whatever error: nobody sees it.
    pub(crate) fn answer(&self, call: WebhookCall) -> Result<CallResult, Refusal> {
        let mut calls = self.calls.lock();
        let answer = calls.entry(call).or_default().clone();
        answer.ok_or_else(unanswered)
    }

    /// Checks that all calls are made, before something is done that cannot be done anew.
    ///
    /// # Errors
    /// A call is yet to be made.
    pub(crate) fn check_made(&self) -> Result<(), Refusal> {
        if self.calls.lock().values().all(Option::is_some) {
            Ok(())
        } else {
            Err(unanswered())
        }
    }

    fn pending(&self) -> Vec<WebhookCall> {
        let calls = self.calls.lock();
        let pending = calls.iter().filter(|(_, answer)| answer.is_none());
        pending.map(|(call, _)| call.clone()).collect()
    }

    /// Returns a value that stays the same when the request begins anew.
    pub(crate) fn once(&self, name: &'static str, make: impl FnOnce() -> String) -> String {
        let mut fixed = self.fixed.lock();
        fixed.entry(name).or_insert_with(make).clone()
    }

    /// Adds a warning of a webhook, unless there is one like it.
    pub(crate) fn warn(&self, warning: &str) {
        let mut warnings = self.warnings.lock();
        if !warnings.iter().any(|other| other == warning) {
            warnings.push(warning.to_owned());
        }
    }

    /// Returns the warnings of the webhooks.
    pub(crate) fn warnings(&self) -> Vec<String> {
        self.warnings.lock().clone()
    }

    /// Makes all pending calls at the same time.
    pub(crate) async fn make(&self, services: &Services, store: &Mutex<Store>) {
        let pending = self.pending();
        let made = join_all(pending.iter().map(|call| services.call(call, store))).await;
        self.warnings.lock().clear();
        let mut calls = self.calls.lock();
        for (call, answer) in pending.into_iter().zip(made) {
            calls.insert(call, Some(answer));
        }
    }
}

/// The error of a request that is going to begin anew, or has done so too often.
fn unanswered() -> Refusal {
    let message =
        "Timeout: request did not complete within requested timeout - context deadline exceeded";
    Refusal::new(504, "Timeout", message)
}
