//! [`FaultTarget`]: the limits of a fault.

use std::fmt;
use std::sync::Arc;

use crate::api::kind::KindId;
use crate::api::record::{RequestRecord, Verb, write_client, write_place};

/// The type of a watch event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum EventKind {
    /// An object is new to the watch.
    Added,
    /// An object changed.
    Modified,
    /// An object was deleted, or left the selection.
    Deleted,
    /// A version up to which all events were sent.
    Bookmark,
}

impl EventKind {
    /// Returns the type as on the wire (e.g. `MODIFIED`).
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
            Self::Bookmark => "BOOKMARK",
        }
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An event that is about to be sent, and its client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delivery<'a> {
    pub(crate) client: &'a str,
    pub(crate) replica: &'a str,
    pub(crate) resource: &'a KindId,
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
    pub(crate) kind: EventKind,
}

impl fmt::Display for Delivery<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.resource.plural)?;
        write_place(f, self.namespace, self.name)?;
        write_client(f, self.client)
    }
}

/// A test of requests by the user.
#[derive(Clone)]
pub(super) struct Test(pub(super) Arc<dyn Fn(&RequestRecord) -> bool + Send + Sync>);

impl fmt::Debug for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Test")
    }
}

/// The limits of a fault: one entry of each list must match; an empty list is no limit.
#[derive(Clone, Debug, Default)]
pub(crate) struct FaultTarget {
    pub(super) verbs: Vec<Verb>,
    pub(super) resources: Vec<Resource>,
    pub(super) subresources: Vec<String>,
    pub(super) namespaces: Vec<String>,
    pub(super) names: Vec<String>,
    pub(super) managers: Vec<String>,
    pub(super) clients: Vec<String>,
    pub(super) replicas: Vec<String>,
    pub(super) events: Vec<EventKind>,
    pub(super) test: Option<Test>,
}

/// A resource as RBAC and kubectl write it (e.g. `databases.demo.okt.dev/status`).
#[derive(Clone, Debug)]
pub(super) struct Resource {
    plural: String,
    group: Option<String>,
    subresource: Option<String>,
}

impl Resource {
    #[track_caller]
    pub(super) fn parse(text: &str) -> Self {
        let is_odd = |c: char| c.is_uppercase() || c.is_whitespace();
        let is_name = !text.is_empty() && !text.starts_with(['.', '/']) && !text.contains(is_odd);
        assert!(
            is_name && text.matches('/').count() <= 1,
            "a resource is named by its plural (e.g. databases, databases.demo.okt.dev/status), not by {text:?}"
        );
        let (resource, subresource) = match text.split_once('/') {
            Some((resource, subresource)) => (resource, Some(subresource.to_owned())),
            None => (text, None),
        };
        let (plural, group) = match resource.split_once('.') {
            Some((plural, group)) => (plural, Some(group.to_owned())),
            None => (resource, None),
        };
        Self {
            plural: plural.to_owned(),
            group,
            subresource,
        }
    }

    fn is(&self, plural: &str, group: &str, subresource: Option<&str>) -> bool {
        self.plural == plural
            && self.group.as_deref().is_none_or(|own| own == group)
            && self
                .subresource
                .as_deref()
                .is_none_or(|own| own == "*" || own == subresource.unwrap_or_default())
    }
}

impl FaultTarget {
    pub(crate) fn meets_request(&self, request: &RequestRecord) -> bool {
        let subresource = request.subresource.as_deref();
        (self.verbs.is_empty() || self.verbs.contains(&request.verb))
            && self.allows_resource(&request.resource, &request.group, subresource)
            && allows(&self.subresources, subresource)
            && allows(&self.namespaces, request.namespace.as_deref())
            && allows(&self.names, request.name.as_deref())
            && allows(&self.managers, request.field_manager.as_deref())
            && allows(&self.clients, Some(&request.client))
            && allows(&self.replicas, Some(&request.replica))
            && self.test.as_ref().is_none_or(|test| test.0(request))
    }

    pub(crate) fn meets_event(&self, event: &Delivery<'_>) -> bool {
        let is_kind_met = if self.events.is_empty() {
            event.kind != EventKind::Bookmark
        } else {
            self.events.contains(&event.kind)
        };
        is_kind_met
            && self.allows_resource(&event.resource.plural, &event.resource.group, None)
            && allows(&self.namespaces, Some(event.namespace))
            && allows(&self.names, Some(event.name))
            && allows(&self.clients, Some(event.client))
            && allows(&self.replicas, Some(event.replica))
    }

    fn allows_resource(&self, plural: &str, group: &str, subresource: Option<&str>) -> bool {
        let mut resources = self.resources.iter();
        self.resources.is_empty() || resources.any(|it| it.is(plural, group, subresource))
    }
}

/// Whether a list allows a value; an absent value is an empty one.
fn allows(list: &[String], value: Option<&str>) -> bool {
    let value = value.unwrap_or_default();
    list.is_empty() || list.iter().any(|allowed| allowed == value)
}
