//! Answers the questions of the API server whether it may store an object, and how it completes one, in any version.

use kube::core::DynamicObject;
use kube::core::admission::{AdmissionRequest, AdmissionResponse, AdmissionReview};
use okt_runtime::{Admission, Validation};
use okt_wire::object::LifecycleObject;
use okt_wire::pruned::decode_unquoted;
use okt_wire::versions::KindVersions;
use serde_json::{Value, json};

/// What a webhook is asked to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AdmissionTask {
    Validate,
    Complete,
}

/// A review by the API server.
pub(crate) type Review = AdmissionReview<DynamicObject>;

type Answer = dyn Fn(AdmissionTask, &AdmissionRequest<DynamicObject>) -> Result<AdmissionResponse, String>
    + Send
    + Sync;

/// How objects of a kind are checked and completed, without their type.
pub(crate) struct KindAdmission {
    pub(crate) validates: bool,
    pub(crate) completes: bool,
    answer: Box<Answer>,
}

impl KindAdmission {
    /// Returns that of an application; none if it neither checks nor completes objects.
    pub(crate) fn of<K: LifecycleObject>(admission: Admission<K>) -> Option<Self> {
        let (validates, completes) = (admission.validates(), admission.completes());
        let versions = AnyVersion(KindVersions::of::<K>());
        let answer = move |task, request: &AdmissionRequest<DynamicObject>| match task {
            AdmissionTask::Validate => validated(&admission, &versions, request),
            AdmissionTask::Complete => completed(&admission, &versions, request),
        };
        (validates || completes).then(|| Self {
            validates,
            completes,
            answer: Box::new(answer),
        })
    }

    /// Answers a review.
    ///
    /// # Errors
    ///
    /// If it is none, or of a version that this release does not have, or the code of the application panics: the API
    /// server goes on as the failure policy says.
    pub(crate) fn review(&self, task: AdmissionTask, review: Review) -> Result<Review, String> {
        let request: Result<AdmissionRequest<DynamicObject>, _> = review.try_into();
        let request = request.map_err(|error| error.to_string())?;
        Ok((self.answer)(task, &request)?.into_review())
    }
}

/// Reads objects of any version as the newest one.
struct AnyVersion(KindVersions);

impl AnyVersion {
    /// Converts an object to a version.
    ///
    /// # Errors
    ///
    /// If this release does not have one of both versions: another release knows more.
    fn convert(&self, object: Value, to: &str) -> Result<Value, String> {
        let converted = self.0.convert(object, to);
        converted.map_err(|error| error.to_string())
    }

    /// Reads an object; the inner error is that it does not fit its type.
    ///
    /// # Errors
    ///
    /// If this release does not have its version.
    fn read<K: LifecycleObject>(
        &self,
        object: &DynamicObject,
    ) -> Result<Result<K, String>, String> {
        let newest = self.convert(to_json(object)?, &K::version(&()))?;
        Ok(decode_unquoted(&newest.to_string()))
    }
}

/// Validates an object. One that this release cannot read is refused, unless it could not be read before either: then
/// it has to stay possible to change its labels, or to let it go.
fn validated<K: LifecycleObject>(
    admission: &Admission<K>,
    versions: &AnyVersion,
    request: &AdmissionRequest<DynamicObject>,
) -> Result<AdmissionResponse, String> {
    let response = AdmissionResponse::from(request);
    let Some(object) = changed(request) else {
        return Ok(response);
    };
    let old = request.old_object.as_ref();
    let mut old = old.map(|old| versions.read::<K>(old)).transpose()?;
    let new = match (versions.read::<K>(object)?, &old) {
        (Ok(new), _) => new,
        (Err(_), Some(Err(_))) => return Ok(response),
        (Err(why), _) => {
            let why = format!("this operator cannot read it: {why}");
            return Ok(refused(response, why));
        }
    };
    if let Some(Ok(old)) = &mut old {
        // The new one is complete; what completes it is no change by its user.
        admission.complete(old)?;
    }
    let old = match &old {
        Some(Ok(old)) => Some(old),
        // What could not be read is no object to compare with.
        Some(Err(_)) => Some(&new),
        None => None,
    };
    let validation: Validation = admission.validation(old, &new)?;
    let mut response = match validation.refusal() {
        Some(why) => refused(response, why),
        None => response,
    };
    let warnings = validation.warnings();
    response.warnings = (!warnings.is_empty()).then(|| warnings.to_vec());
    Ok(response)
}

/// Returns the object that is about to be stored, unless it is being deleted.
fn changed(request: &AdmissionRequest<DynamicObject>) -> Option<&DynamicObject> {
    let object = request.object.as_ref()?;
    object
        .metadata
        .deletion_timestamp
        .is_none()
        .then_some(object)
}

fn refused(response: AdmissionResponse, why: String) -> AdmissionResponse {
    let mut response = response.deny(why);
    response.result.code = 422;
    "Invalid".clone_into(&mut response.result.reason);
    response
}

/// Completes an object. One that cannot be read stays as it is: its schema, or the operator, has a word for it.
fn completed<K: LifecycleObject>(
    admission: &Admission<K>,
    versions: &AnyVersion,
    request: &AdmissionRequest<DynamicObject>,
) -> Result<AdmissionResponse, String> {
    let response = AdmissionResponse::from(request);
    let Some(object) = changed(request) else {
        return Ok(response);
    };
    let before = to_json(object)?;
    let mut newest = versions.convert(before.clone(), &K::version(&()))?;
    let Ok(mut complete) = decode_unquoted::<K>(&newest.to_string()) else {
        return Ok(response);
    };
    let as_read = to_json(&complete)?;
    admission.complete(&mut complete)?;
    let change = difference(&as_read, &to_json(&complete)?);
    if change == json!({}) {
        return Ok(response);
    }
    json_patch::merge(&mut newest, &change);
    let after = versions.convert(newest, &request.kind.version)?;
    let patch = json_patch::diff(&before, &after);
    response
        .with_patch(patch)
        .map_err(|error| error.to_string())
}

/// Returns the merge patch that makes one object of another: fields that the type does not have stay as they are.
fn difference(before: &Value, after: &Value) -> Value {
    let (Value::Object(old), Value::Object(new)) = (before, after) else {
        return after.clone();
    };
    let gone = old.keys().filter(|name| !new.contains_key(*name));
    let gone = gone.map(|name| (name.clone(), Value::Null));
    let changed = new
        .iter()
        .filter(|(name, value)| old.get(*name) != Some(*value));
    let changed = changed.map(|(name, value)| {
        let was = old.get(name).unwrap_or(&Value::Null);
        (name.clone(), difference(was, value))
    });
    Value::Object(gone.chain(changed).collect())
}

fn to_json(value: &impl serde::Serialize) -> Result<Value, String> {
    serde_json::to_value(value).map_err(|error| error.to_string())
}
