//! One owner and access to its resources: requests about them, and their names in messages.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kube::api::{DeleteParams, ListParams, Patch, PatchParams, Preconditions, PropagationPolicy};
use kube::core::Status;
use kube::{Client, Resource};
use okt_core::reasons::resources as reasons;
use okt_reach::Failure;
use okt_wire::api_timeout::retry_after;
use okt_wire::keys::OWNER_LABEL;
use okt_wire::refusal::Refusal;
use okt_wire::scope::{merge_by, with_name};
use okt_wire::texts::{api_message, chain, qualified, split_qualified};
use serde_json::Value;

use super::cluster::Cluster;
use super::declared::Resources;
use super::kept::Kept;
use super::kind::ResourceKind;
use super::names::{Key, ResourcePlace, is_label, is_name};
use super::owner::Owner;
use super::requests;
use super::stamp::owner_name;

/// The reason of a failure because this operator is not the leader.
pub(crate) const NOT_LEADING: &str = "NotLeading";

/// The `resourceVersion` of an apply that only creates.
///
/// No stored object has it, because the first revision of etcd is that of the empty store. The API server compares
/// versions only if the object exists.
const NO_VERSION: &str = "1";

/// The object that an apply may change; the server refuses the apply for any other object (409).
#[derive(Clone, Copy)]
pub(super) enum Precondition<'a> {
    /// The object of this uid: another object of the same name may have another owner.
    Uid(&'a str),
    /// Nothing: the object is created.
    Absent,
}

/// The highest number of items that a message lists.
const NAMED: usize = 3;

/// One owner and access to its resources.
pub struct Site<'a> {
    /// For the requests.
    pub client: &'a Client,
    /// The cache of the owned kinds.
    pub cluster: &'a Cluster,
    /// The owner.
    pub owner: Owner<'a>,
    /// Called before each write, because leadership may be lost between two writes.
    pub may_write: &'a (dyn Fn() -> bool + Send + Sync),
}

impl Site<'_> {
    pub(crate) fn uid(&self) -> &str {
        self.owner.uid()
    }

    pub(crate) fn kind(&self, key: &Key) -> &ResourceKind {
        &self.cluster.watches.owned[key.0]
    }

    pub(super) fn place<'k>(&'k self, key: &'k Key) -> ResourcePlace<'k> {
        ResourcePlace {
            kind: self.kind(key),
            namespace: key.1.as_deref(),
            name: &key.2,
        }
    }

    /// Returns the objects that the owner owns.
    pub(crate) fn owned(&self) -> BTreeMap<Key, Arc<Kept>> {
        self.cluster.owned(self.owner.meta)
    }

    /// Returns the objects that the declaration keeps as they are.
    pub(crate) fn kept(&self, resources: &Resources) -> BTreeSet<Key> {
        let kept = resources.kept.iter();
        kept.filter_map(|(api, (namespace, name))| {
            let number = self.cluster.number_of(api)?;
            let kind = &self.cluster.watches.owned[number];
            let (namespace, name) =
                self.cluster
                    .placed(self.owner, kind, namespace.as_deref(), name)?;
            Some((number, namespace, name))
        })
        .collect()
    }

    /// Deletes an object. `policy` decides what happens to its dependents, and `why` is for the log.
    pub(super) async fn delete(
        &self,
        place: ResourcePlace<'_>,
        there: &Kept,
        policy: &PropagationPolicy,
        why: &str,
    ) -> Result<(), Failure> {
        self.check_leader()?;
        let what = self.describe_place(place);
        let params = DeleteParams {
            propagation_policy: Some(policy.clone()),
            preconditions: Some(Preconditions {
                uid: there.meta().uid.clone(),
                resource_version: None,
            }),
            ..DeleteParams::default()
        };
        match requests::delete(self.client, place, params).await {
            Ok(()) => {
                tracing::info!(resource = what, "deleted: {why}");
                Ok(())
            }
            // Most likely it is gone and the event is under way; if not, OKT deletes it again.
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
            Err(error) => Err(self.failure_of(place, &error)),
        }
    }

    /// Applies an object; returns it as the API server stores it.
    ///
    /// # Errors
    ///
    /// [`reasons::CONFLICT`] if the existing object does not meet the precondition.
    pub(super) async fn send_apply(
        &self,
        key: &Key,
        mut body: Value,
        precondition: Precondition<'_>,
    ) -> Result<Kept, Failure> {
        self.check_leader()?;
        match precondition {
            Precondition::Uid(uid) => body["metadata"]["uid"] = uid.into(),
            Precondition::Absent => body["metadata"]["resourceVersion"] = NO_VERSION.into(),
        }
        let params = PatchParams::apply(&self.cluster.identity.manager).force();
        let place = self.place(key);
        let made = requests::patch(self.client, place, params, Patch::Apply(body)).await;
        made.map_err(|error| self.failure_of(place, &error))
    }

    /// Reads an object.
    pub(super) async fn read(&self, place: ResourcePlace<'_>) -> Result<Option<Kept>, Failure> {
        let found = requests::read(self.client, place).await;
        found.map_err(|error| self.failure_of(place, &error))
    }

    /// Reads the objects of a kind that bear the uid of the owner, beside the owner; none if the kind is not served.
    pub(super) async fn read_owned(&self, kind: &ResourceKind) -> Result<Vec<Kept>, Failure> {
        let namespace = self.owner.meta.namespace.as_deref();
        let place = ResourcePlace {
            kind,
            namespace,
            name: "",
        };
        let labelled = ListParams::default().labels(&format!("{OWNER_LABEL}={}", self.uid()));
        match requests::list(self.client, place, labelled).await {
            Ok(found) => Ok(found),
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(Vec::new()),
            Err(error) => Err(failure_of(&format!("objects of {kind}"), false, &error)),
        }
    }

    /// Returns whether there is an object of the owner's kind with this [`qualified`] name and this uid.
    pub(super) async fn is_there(&self, name: &str, uid: &str) -> Result<bool, Failure> {
        let kind = ResourceKind {
            api: self.cluster.identity.owner.clone(),
            namespaced: self.owner.meta.namespace.is_some(),
        };
        let (namespace, name) = split_qualified(name);
        // A text that others wrote is no name.
        let place = ResourcePlace {
            kind: &kind,
            namespace,
            name,
        };
        if !is_name(name) || namespace.is_some_and(|it| !is_label(it)) {
            return Ok(false);
        }
        match requests::list(self.client, place, with_name(name)).await {
            Ok(found) => {
                let mut found = found.iter();
                Ok(found.any(|it| it.meta().uid.as_deref() == Some(uid)))
            }
            // It is in a namespace where the operator reads nothing.
            Err(kube::Error::Api(status)) if status.code == 403 => Ok(true),
            Err(error) => Err(self.failure_of(place, &error)),
        }
    }

    /// Reads all of an object.
    pub(super) async fn read_whole(&self, key: &Key) -> Result<Value, Failure> {
        let place = self.place(key);
        let found = requests::read_whole(self.client, place).await;
        found.map_err(|error| self.failure_of(place, &error))
    }

    /// Changes an object by a merge patch; returns it as the API server stores it.
    pub(super) async fn send_patch(&self, key: &Key, patch: Value) -> Result<Kept, Failure> {
        self.check_leader()?;
        let place = self.place(key);
        let params = merge_by(&self.cluster.identity.manager);
        let made = requests::patch(self.client, place, params, Patch::Merge(patch)).await;
        made.map_err(|error| self.failure_of(place, &error))
    }

    /// Checks that this operator may still write.
    ///
    /// # Errors
    ///
    /// If this operator is not the leader; the next leader continues.
    pub(crate) fn check_leader(&self) -> Result<(), Failure> {
        if (self.may_write)() {
            return Ok(());
        }
        let why = "this operator may not act now; the leader continues";
        Err(Failure::retry(NOT_LEADING, why))
    }

    fn failure_of(&self, place: ResourcePlace<'_>, error: &kube::Error) -> Failure {
        failure_of(&self.describe_place(place), place.kind.is_secret(), error)
    }

    /// Returns the name of the owner, as the annotation of its resources has it.
    pub(super) fn owner_name(&self) -> String {
        owner_name(self.owner.meta)
    }

    /// Returns the kind and name of an object for messages.
    pub(crate) fn describe(&self, key: &Key) -> String {
        self.describe_place(self.place(key))
    }

    pub(super) fn describe_place(&self, place: ResourcePlace<'_>) -> String {
        let ResourcePlace {
            kind,
            namespace,
            name,
        } = place;
        let own = self.owner.meta.namespace.as_deref();
        let elsewhere = namespace.filter(|it| Some(*it) != own);
        format!("{kind} {}", qualified(elsewhere, name))
    }
}

/// Joins the first few items, and adds how many more there are.
pub(crate) fn listed(all: &[impl AsRef<str>]) -> String {
    let named: Vec<&str> = all.iter().take(NAMED).map(AsRef::as_ref).collect();
    let mut text = named.join("; ");
    if all.len() > NAMED {
        text.push_str(&format!("; and {} more", all.len() - NAMED));
    }
    text
}

/// The failure for an object that is nested deeper than the parser allows.
pub(super) fn unreadable(what: &str, why: &str) -> Failure {
    Failure::retry(reasons::UNREADABLE, format!("{what} cannot be read: {why}"))
}

/// Converts the error of a request about an object into a failure.
///
/// The API server and webhooks quote what they refuse, so the message for a secret object has only the code and the
/// reason.
fn failure_of(what: &str, is_secret: bool, error: &kube::Error) -> Failure {
    let kube::Error::Api(status) = error else {
        return Failure::retry(reasons::UNANSWERED, format!("{what}: {}", chain(error)));
    };
    let message = if is_secret {
        tracing::debug!(resource = what, "refused: {}", status.message);
        format!("{what}: {} {}", status.code, status.reason)
    } else {
        format!("{what}: {}", api_message(error))
    };
    let message = match Refusal::of(status).advice() {
        Some(advice) if matches!(status.code, 400 | 403 | 422) => format!("{message}; {advice}"),
        _ => message,
    };
    match status.code {
        422 if is_immutable(status) => Failure::permanent(reasons::IMMUTABLE, message),
        400 | 422 => Failure::permanent(reasons::REFUSED, message),
        403 => Failure::retry(reasons::FORBIDDEN, message),
        404 => Failure::retry(reasons::NOT_FOUND, message),
        409 => Failure::retry(reasons::CONFLICT, message),
        _ => Failure::retry(reasons::FAILED, message).after(retry_after(error)),
    }
}

/// Returns whether a request is refused only because fields cannot change.
///
/// Kubernetes has no code for it, so the messages decide, as the validation of the built-in kinds words them
/// (k8s.io/kubernetes, `pkg/apis/*/validation` and `apimachinery/pkg/api/validation`).
fn is_immutable(status: &Status) -> bool {
    let causes = status.details.as_ref().map_or(&[][..], |it| &it.causes);
    let is_fixed = |message: &str| {
        let mut fixed = ["immutable", "may not change", "cannot change"].iter();
        fixed.any(|words| message.contains(words))
            || (message.contains("updates to") && message.contains("forbidden"))
    };
    !causes.is_empty() && causes.iter().all(|cause| is_fixed(&cause.message))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refused(messages: &[&str]) -> Status {
        let causes: Vec<Value> = messages
            .iter()
            .map(|it| json!({ "reason": "FieldValueInvalid", "message": it, "field": "spec" }))
            .collect();
        serde_json::from_value(json!({
            "status": "Failure", "code": 422, "reason": "Invalid", "message": "is invalid",
            "details": { "causes": causes },
        }))
        .expect("a status")
    }

    #[test]
    fn a_field_that_cannot_change_is_told_from_a_wrong_value() {
        for message in [
            "Forbidden: pod updates may not change fields other than `spec.containers[*].image`",
            "Invalid value: {}: field is immutable",
            "Forbidden: updates to statefulset spec for fields other than 'replicas' are forbidden",
            "Forbidden: spec is immutable after creation except resources.requests",
            "Invalid value: {}: cannot change roleRef",
        ] {
            assert!(is_immutable(&refused(&[message])), "{message}");
        }
        let wrong = "Required value";
        assert!(!is_immutable(&refused(&[wrong])));
        assert!(!is_immutable(&refused(&["field is immutable", wrong])));
        assert!(!is_immutable(&refused(&[])));
    }
}
