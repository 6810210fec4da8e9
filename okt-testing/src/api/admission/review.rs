//! Asks one webhook, and reads its answer.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;

use super::hook::Hook;
use super::request::{AdmissionRequest, Change};
use crate::api::calls::{CallFailure, CallResult, WebhookCall};
use crate::api::client_config::known_version;
use crate::api::object::{text, texts};
use crate::api::refusal::Refusal;

/// The group of the reviews.
const GROUP: &str = "admission.k8s.io";

/// The answer of a webhook that allows a request.
#[derive(Debug)]
pub(super) struct Answer(Value);

impl Answer {
    /// Returns the steps of its JSON patch; none if there are none.
    pub(super) fn patch(&self, hook: &Hook) -> Result<Option<Value>, Refusal> {
        let given = text(&self.0, &["patch"]);
        if given.is_empty() {
            return Ok(None);
        }
        let undecodable = |why: String| {
            let why = format!("received undecodable patch in webhook response: {why}");
            Refusal::internal_error(&failed(hook, &why))
        };
        let patch = BASE64_STANDARD.decode(given);
        let patch = patch.map_err(|error| undecodable(error.to_string()))?;
        let steps: Value =
            serde_json::from_slice(&patch).map_err(|error| undecodable(error.to_string()))?;
        Ok(Some(steps).filter(|steps| steps.as_array().is_none_or(|steps| !steps.is_empty())))
    }
}

/// Asks a webhook.
///
/// Returns `None` if it cannot be asked and may be ignored.
///
/// # Errors
/// It refuses the request, it cannot be asked, or is yet to be asked.
pub(super) fn ask(
    request: &AdmissionRequest,
    hook: &Hook,
    change: &Change<'_>,
) -> Result<Option<Answer>, Refusal> {
    let version = known_version(&hook.review_versions()).unwrap_or("v1");
    let call = WebhookCall {
        client: hook.client(),
        timeout: hook.timeout(),
        review: (format!("{GROUP}/{version}"), "AdmissionReview"),
        request: request.review(change).to_string(),
    };
    let response = request.calls.answer(call)?;
    // The earlier version of reviews checks nothing.
    let check = |response| match version {
        "v1" => check_patch(hook, response),
        _ => Ok(response),
    };
    let response = match response.and_then(check) {
        Ok(response) => response,
        Err(_) if hook.is_ignored() => return Ok(None),
        Err(failure) => {
            let why = match failure {
                CallFailure::Missing(why) => format!("failed to call webhook: {why}"),
                CallFailure::Invalid(why) => format!("received invalid webhook response: {why}"),
            };
            return Err(Refusal::internal_error(&failed(hook, &why)));
        }
    };
    for warning in texts(&response, &["warnings"]) {
        request.calls.warn(warning);
    }
    if response.get("allowed") != Some(&true.into()) {
        let status = response.get("status").unwrap_or(&Value::Null);
        return Err(Refusal::denied(hook.name(), status));
    }
    Ok(Some(Answer(response)))
}

/// Checks that a patch comes with its type, and only from a webhook that mutates.
fn check_patch(hook: &Hook, response: Value) -> CallResult {
    let is_given = |key: &str| response.get(key).is_some_and(|value| !value.is_null());
    let (patch, patch_type) = (is_given("patch"), is_given("patchType"));
    let kind = text(&response, &["patchType"]);
    let why = match (hook.mutates(), patch, patch_type) {
        (false, true, _) => "validating webhook may not return response.patch".to_owned(),
        (false, _, true) => "validating webhook may not return response.patchType".to_owned(),
        (true, true, false) => {
            "webhook returned response.patch but not response.patchType".to_owned()
        }
        (true, false, true) => {
            "webhook returned response.patchType but not response.patch".to_owned()
        }
        (true, true, true) if kind.is_empty() => {
            format!("webhook returned invalid response.patchType of {kind:?}")
        }
        _ => return Ok(response),
    };
    Err(CallFailure::Invalid(why))
}

/// Returns the error of a server that could not ask a webhook.
fn failed(hook: &Hook, why: &str) -> String {
    format!("failed calling webhook {:?}: {why}", hook.name())
}
