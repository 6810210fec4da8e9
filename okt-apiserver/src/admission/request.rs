//! [`AdmissionRequest`]: what webhooks are told of a request.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::calls::WebhookCalls;
use crate::kind::ServedKind;
use crate::refusal::Refusal;
use crate::store::Key;
use crate::stored::StoredObject;
use crate::{convert, object};

/// What a webhook is told of a request besides the object.
#[derive(Clone, Debug, Default)]
pub(crate) struct RequestOptions {
    /// The name of the client.
    pub(crate) user: String,
    pub(crate) subresource: &'static str,
    pub(crate) dry_run: bool,
    /// The options of the request, without their kind.
    pub(crate) options: Map<String, Value>,
}

/// A request that webhooks are asked about.
#[derive(Debug)]
pub(super) struct AdmissionRequest {
    pub(super) calls: Arc<WebhookCalls>,
    pub(super) kind: Arc<ServedKind>,
    pub(super) key: Key,
    pub(super) options: RequestOptions,
    /// The namespace of the request as an object, if there is one.
    pub(super) within: Option<Arc<StoredObject>>,
}

/// The states of an object before and after a write, in the version that a webhook wants.
#[derive(Debug)]
pub(super) struct Change<'v> {
    /// The `apiVersion`.
    pub(super) version: String,
    pub(super) old: Option<Cow<'v, Value>>,
    pub(super) new: Option<Cow<'v, Value>>,
}

impl<'v> Change<'v> {
    /// Brings both states to a version.
    ///
    /// # Errors
    /// A webhook has to convert, and is yet to be called or has failed.
    pub(super) fn of(
        request: &AdmissionRequest,
        version: String,
        old: Option<&'v Value>,
        new: Option<&'v Value>,
    ) -> Result<Self, Refusal> {
        let in_version = |object| request.in_version(object, &version);
        Ok(Self {
            old: old.map(in_version).transpose()?,
            new: new.map(in_version).transpose()?,
            version,
        })
    }

    fn operation(&self) -> &'static str {
        operation(self.old.as_deref(), self.new.as_deref())
    }
}

/// Returns the version of an `apiVersion` (e.g. `v1`).
pub(super) fn version_of(api_version: &str) -> &str {
    api_version.rsplit('/').next().unwrap_or_default()
}

pub(super) fn operation(old: Option<&Value>, new: Option<&Value>) -> &'static str {
    match (old, new) {
        (None, _) => "CREATE",
        (Some(_), Some(_)) => "UPDATE",
        (Some(_), None) => "DELETE",
    }
}

impl AdmissionRequest {
    /// Returns the request of a review, without its uid.
    pub(super) fn review(&self, change: &Change<'_>) -> Value {
        let kind = &self.kind;
        let group = &kind.group;
        let version = version_of(&change.version);
        let mut options = self.options.options.clone();
        let operation = change.operation();
        let options_kind = match operation {
            "CREATE" => "CreateOptions",
            "UPDATE" => "UpdateOptions",
            _ => "DeleteOptions",
        };
        options.insert("kind".to_owned(), options_kind.into());
        options.insert("apiVersion".to_owned(), "meta.k8s.io/v1".into());
        let mut request = json!({
            "kind": { "group": group, "version": version, "kind": kind.kind },
            "resource": { "group": group, "version": version, "resource": kind.plural },
            "requestKind": { "group": group, "version": kind.version, "kind": kind.kind },
            "requestResource": { "group": group, "version": kind.version, "resource": kind.plural },
            "operation": operation,
            "userInfo": { "username": self.options.user, "groups": ["system:masters", "system:authenticated"] },
            "object": change.new,
            "oldObject": change.old,
            "dryRun": self.options.dry_run,
            "options": options,
        });
        let namespace = if kind.is("", "namespaces") {
            &self.key.name
        } else {
            &self.key.namespace
        };
        // A generated name is not in the key.
        let named = change.new.as_deref().map(object::name);
        let named = named.filter(|_| self.key.name.is_empty());
        for (key, value) in [
            ("name", named.unwrap_or(&self.key.name)),
            ("namespace", namespace),
            ("subResource", self.options.subresource),
            ("requestSubResource", self.options.subresource),
        ] {
            if !value.is_empty() {
                request[key] = value.into();
            }
        }
        request
    }

    /// Returns an object in a version.
    ///
    /// # Errors
    /// A webhook has to convert it, and is yet to be called or has failed.
    pub(super) fn in_version<'v>(
        &self,
        object: &'v Value,
        version: &str,
    ) -> Result<Cow<'v, Value>, Refusal> {
        if self.kind.siblings.is_empty() || convert::api_version(object) == version {
            return Ok(Cow::Borrowed(object));
        }
        let converted = convert::to_version(&self.calls, &self.kind, object.clone(), version);
        match converted {
            Ok(converted) => Ok(Cow::Owned(converted)),
            Err(refusal) => {
                self.calls.check_made()?;
                Err(Refusal::internal_error(refusal.message()))
            }
        }
    }
}
