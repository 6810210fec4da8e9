//! Asks one webhook, and reads its answer.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;

use super::hook::Hook;
use super::request::{AdmissionRequest, Change};
use crate::calls::{CallFailure, WebhookCall};
use crate::client_config::known_version;
use crate::object::{text, texts};
use crate::refusal::Refusal;

/// The group of the reviews.
const GROUP: &str = "admission.k8s.io";

/// Asks a webhook; `round` counts how often it was asked about the request before.
///
/// Returns the steps of its JSON patch; none if it has none, or cannot be asked and may be ignored.
///
/// # Errors
/// It refuses the request, it cannot be asked, or is yet to be asked.
pub(super) fn ask(
    request: &AdmissionRequest,
    hook: &Hook,
    change: &Change<'_>,
    round: usize,
) -> Result<Option<Value>, Refusal> {
    let version = known_version(&hook.review_versions()).unwrap_or("v1");
    let call = WebhookCall {
        client: hook.client(),
        hook: format!("{:?} {} {round}", hook.id(), hook.mutates()),
        timeout: hook.timeout(),
        review: (format!("{GROUP}/{version}"), "AdmissionReview"),
        request: request.review(change).to_string(),
    };
    let response = request.calls.answer(call)?;
    let answered = response.and_then(|response| {
        if version == "v1" {
            check_patch(hook, &response)?;
        }
        Ok((steps(hook, &response)?, response))
    });
    let (steps, response) = match answered {
        Ok(answered) => answered,
        Err(_) if hook.is_ignored() => return Ok(None),
        Err(failure) => {
            let why = match failure {
                CallFailure::Missing(why) => format!("failed to call webhook: {why}"),
                CallFailure::Invalid(why) => format!("received invalid webhook response: {why}"),
                CallFailure::Unusable(why) => why,
            };
            let name = hook.name();
            return Err(Refusal::internal_error(&format!(
                "failed calling webhook {name:?}: {why}"
            )));
        }
    };
    for warning in texts(&response, &["warnings"]) {
        request.calls.warn(warning);
    }
    if response.get("allowed") != Some(&true.into()) {
        let status = response.get("status").unwrap_or(&Value::Null);
        return Err(Refusal::denied(hook.name(), status));
    }
    Ok(steps)
}

/// Checks that a patch comes with its type, and only from a webhook that mutates.
fn check_patch(hook: &Hook, response: &Value) -> Result<(), CallFailure> {
    let is_given = |key: &str| response.get(key).is_some_and(|value| !value.is_null());
    let (patch, patch_type) = (is_given("patch"), is_given("patchType"));
    let kind = text(response, &["patchType"]);
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
        _ => return Ok(()),
    };
    Err(CallFailure::Invalid(why))
}

/// Returns the steps of the JSON patch of a response that allows a request, if there are any.
fn steps(hook: &Hook, response: &Value) -> Result<Option<Value>, CallFailure> {
    let given = text(response, &["patch"]);
    if given.is_empty() || !hook.mutates() || response.get("allowed") != Some(&true.into()) {
        return Ok(None);
    }
    let patch = BASE64_STANDARD.decode(given);
    let patch = patch.map_err(|error| CallFailure::Missing(error.to_string()))?;
    let steps: Vec<Value> = serde_json::from_slice(&patch).map_err(|error| {
        CallFailure::Unusable(format!(
            "received undecodable patch in webhook response: {error}"
        ))
    })?;
    let kind = text(response, &["patchType"]);
    if !steps.is_empty() && !matches!(kind, "" | "JSONPatch") {
        return Err(CallFailure::Unusable(format!(
            "unsupported patch type {kind:?}"
        )));
    }
    Ok((!steps.is_empty()).then(|| steps.into()))
}
