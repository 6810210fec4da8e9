//! [`Access`]: what a client wants to do, as RBAC sees it.

use serde_json::{Value, json};

use crate::record::{RequestRecord, Verb};
use crate::refusal::{Refusal, Subject};

/// What a client wants to do.
#[derive(Debug)]
pub(crate) struct Access<'r> {
    request: &'r RequestRecord,
    verb: &'static str,
    namespace: Option<&'r str>,
    /// The name in the path: that of an object in a body is not known yet.
    name: &'r str,
}

impl<'r> Access<'r> {
    pub(crate) fn of(request: &'r RequestRecord) -> Self {
        let name = request.name.as_deref().unwrap_or_default();
        let is_in_body = request.verb == Verb::Create && request.subresource.is_none();
        let name = if is_in_body { "" } else { name };
        let is_namespace = request.group.is_empty() && request.resource == "namespaces";
        let namespace = if is_namespace && !name.is_empty() {
            Some(name)
        } else {
            request.namespace.as_deref()
        };
        Self {
            request,
            verb: match request.verb {
                Verb::Apply => Verb::Patch.as_str(),
                verb => verb.as_str(),
            },
            namespace,
            name,
        }
    }

    /// Returns what a write of an object that does not exist wants to do.
    pub(crate) fn creating(self) -> Self {
        Self {
            verb: Verb::Create.as_str(),
            ..self
        }
    }

    /// Returns the review that RBAC would answer.
    pub(crate) fn review(&self) -> Value {
        let request = self.request;
        let mut attributes = json!({ "verb": self.verb, "version": request.version });
        for (key, value) in [
            ("group", request.group.as_str()),
            ("resource", &request.resource),
            (
                "subresource",
                request.subresource.as_deref().unwrap_or_default(),
            ),
            ("namespace", self.namespace.unwrap_or_default()),
            ("name", self.name),
        ] {
            if !value.is_empty() {
                attributes[key] = value.into();
            }
        }
        json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": { "user": request.client, "resourceAttributes": attributes },
        })
    }

    /// Returns the refusal of a request that RBAC does not allow.
    pub(crate) fn refusal(&self) -> Refusal {
        let (request, verb) = (self.request, self.verb);
        let (user, group) = (&request.client, &request.group);
        let resource = match &request.subresource {
            Some(subresource) => format!("{}/{subresource}", request.resource),
            None => request.resource.clone(),
        };
        let place = match self.namespace {
            Some(namespace) => format!("in the namespace \"{namespace}\""),
            None => "at the cluster scope".to_owned(),
        };
        let subject = Subject {
            group,
            plural: &request.resource,
            name: self.name,
            ..Subject::default()
        };
        let why = format!(
            "User \"{user}\" cannot {verb} resource \"{resource}\" in API group \"{group}\" {place}"
        );
        Refusal::forbidden(subject, &why)
    }
}
