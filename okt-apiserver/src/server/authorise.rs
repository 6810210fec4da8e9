//! Asks the test's reviewer whether a client may do what it requests.

use serde_json::Value;

use super::decode::Call;
use crate::access::Access;
use crate::kind::KindId;
use crate::record::{RequestRecord, Verb};
use crate::refusal::Refusal;
use crate::state::Shared;
use crate::store::Key;

/// The groups whose objects are reviews: every client may ask.
const REVIEWS: [&str; 2] = ["authentication.k8s.io", "authorization.k8s.io"];

/// Checks that a client may do what it requests; every client may do everything unless a reviewer says otherwise.
///
/// # Errors
/// 403, in the words of RBAC.
pub(super) fn authorise(shared: &Shared, request: &RequestRecord) -> Result<(), Refusal> {
    let Some(allows) = shared.reviewer() else {
        return Ok(());
    };
    if REVIEWS.contains(&request.group.as_str()) {
        return Ok(());
    }
    let access = Access::of(request);
    if !allows(&access.review()) {
        return Err(access.refusal());
    }
    if creates(shared, request) {
        let creation = access.creating();
        if !allows(&creation.review()) {
            return Err(creation.refusal());
        }
    }
    Ok(())
}

/// Whether a patch or a PUT creates its object, which a client must be allowed to do as well.
fn creates(shared: &Shared, request: &RequestRecord) -> bool {
    if !matches!(request.verb, Verb::Apply | Verb::Update | Verb::Patch) {
        return false;
    }
    let store = shared.lock();
    let id = KindId::new(&request.group, &request.resource);
    let Some(kind) = store.served(&id, &request.version) else {
        return false;
    };
    let may_create = match request.verb {
        Verb::Apply => request.subresource.is_none(),
        _ => kind.creates_on_update,
    };
    let namespace = request.namespace.as_deref().unwrap_or_default();
    let key = Key::new(namespace, request.name.as_deref().unwrap_or_default());
    may_create && store.get(&id, &key).is_none()
}

/// Returns the reviewer's answer to a review that a client creates; yes without a reviewer.
pub(super) fn answer_review(shared: &Shared, call: &Call, request: &RequestRecord) -> bool {
    let is_review = request.verb == Verb::Create && REVIEWS.contains(&request.group.as_str());
    let Some(allows) = shared.reviewer().filter(|_| is_review) else {
        return true;
    };
    // What cannot be read is refused later.
    let Ok(mut review) = call.any_object() else {
        return true;
    };
    if request.resource.starts_with("self") && review["spec"].is_object() {
        // Such a review is about the client that asks.
        review["spec"]["user"] = Value::from(request.client.as_str());
    }
    allows(&review)
}
