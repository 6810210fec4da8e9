//! Asks webhooks to convert objects.

use serde_json::{Map, Value, json};

use crate::calls::{CallFailure, WebhookCall, WebhookCalls};
use crate::client_config::ConversionWebhook;
use crate::object::{self, text};
use crate::refusal::Refusal;

const GROUP: &str = "apiextensions.k8s.io";
/// How long a conversion may take, in seconds.
const TIMEOUT: u64 = 30;

impl ConversionWebhook {
    /// Returns an object in another version.
    ///
    /// # Errors
    /// The webhook is yet to be called, or it failed.
    pub(crate) fn convert(
        &self,
        calls: &WebhookCalls,
        object: &Value,
        version: &str,
    ) -> Result<Value, Refusal> {
        let request = json!({ "desiredAPIVersion": version, "objects": [object] });
        let call = WebhookCall {
            client: self.client.clone(),
            hook: String::new(),
            timeout: TIMEOUT,
            review: (format!("{GROUP}/{}", self.version), "ConversionReview"),
            request: request.to_string(),
        };
        let (group_version, kind) = (text(object, &["apiVersion"]), text(object, &["kind"]));
        let failed = |what: &str| {
            Refusal::unexplained(format!(
                "conversion webhook for {group_version}, Kind={kind} {what}"
            ))
        };
        let response = calls.answer(call)?.map_err(|failure| {
            let (CallFailure::Missing(why)
            | CallFailure::Invalid(why)
            | CallFailure::Unusable(why)) = failure;
            failed(&format!("failed: {why}"))
        })?;
        let status = text(&response, &["result", "status"]);
        if status != "Success" {
            return Err(match text(&response, &["result", "message"]) {
                "" => failed(&format!(
                    "failed: response.result.status was '{status}', not 'Success'"
                )),
                message => failed(&format!("failed: {message}")),
            });
        }
        let [converted] = object::items(&response, &["convertedObjects"]) else {
            let count = object::items(&response, &["convertedObjects"]).len();
            return Err(failed(&format!("returned {count} objects, expected 1")));
        };
        check_identity(object, converted, version)
            .map_err(|why| failed(&format!("returned invalid object{why}")))?;
        with_metadata(object, converted)
            .map_err(|why| failed(&format!("returned invalid metadata: {why}")))
    }
}

/// Checks that a converted object is the same object, in the version that was asked for.
fn check_identity(object: &Value, converted: &Value, version: &str) -> Result<(), String> {
    let found = text(converted, &["apiVersion"]);
    if found != version {
        return Err(format!(
            " at index 0: invalid groupVersion (expected {version}, received {found})"
        ));
    }
    let (expected, found) = (text(object, &["kind"]), text(converted, &["kind"]));
    if expected != found {
        return Err(format!(
            " at index 0: invalid kind (expected {expected}, received {found})"
        ));
    }
    for (key, name) in [("name", "name"), ("namespace", "namespace"), ("uid", "UID")] {
        let of = |object| text(object, &["metadata", key]);
        if of(object) != of(converted) {
            return Err(format!(
                ": must have the same {name}: {} != {}",
                of(object),
                of(converted)
            ));
        }
    }
    Ok(())
}

/// Returns the converted object with the metadata of the original; a webhook may change only labels and annotations.
fn with_metadata(object: &Value, converted: &Value) -> Result<Value, String> {
    let given = converted.get("metadata").and_then(Value::as_object);
    let Some(given) = given else {
        return Err("missing metadata in converted object".to_owned());
    };
    let mut metadata = object.get("metadata").cloned().unwrap_or_default();
    for key in ["labels", "annotations"] {
        let given = given.get(key).filter(|value| !value.is_null());
        if let Some(given) = given {
            check_texts(key, given.as_object())?;
        }
        object::set(object::fields(&mut metadata), key, given.cloned());
    }
    let mut converted = converted.clone();
    object::fields(&mut converted).insert("metadata".to_owned(), metadata);
    object::tidy_metadata(&mut converted);
    Ok(converted)
}

fn check_texts(key: &str, given: Option<&Map<String, Value>>) -> Result<(), String> {
    let Some(given) = given else {
        return Err(format!("invalid metadata.{key} in converted object"));
    };
    match given.iter().find(|(_, value)| !value.is_string()) {
        None => Ok(()),
        Some((name, _)) => Err(format!(
            "metadata.{key}[{name}] must be a string in converted object"
        )),
    }
}
