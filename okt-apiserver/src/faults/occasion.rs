//! [`Occasion`]: a request or an event that a fault may strike.

use std::fmt;
use std::str::FromStr;

use crate::kind::KindId;
use crate::record::{RequestRecord, write_client, write_place};

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
    pub(crate) const ALL: [Self; 4] = [Self::Added, Self::Modified, Self::Deleted, Self::Bookmark];

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

impl FromStr for EventKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut all = Self::ALL.into_iter();
        let found = all.find(|kind| kind.as_str().eq_ignore_ascii_case(text));
        found.ok_or_else(|| {
            format!("there is no event {text:?}: ADDED, MODIFIED, DELETED or BOOKMARK")
        })
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

/// A request or an event that a fault may strike.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Occasion<'a> {
    Request(&'a RequestRecord),
    Event(&'a Delivery<'a>),
}

impl Occasion<'_> {
    /// Returns what all occasions of a sort have in common, for the draws of a chaos.
    pub(super) fn subject(&self) -> String {
        match self {
            Self::Request(request) => format!(
                "{} {} {} {}",
                request.client,
                request.verb,
                request.path,
                request.name.as_deref().unwrap_or_default()
            ),
            Self::Event(event) => {
                let (resource, namespace, name) = (event.resource, event.namespace, event.name);
                let bookmark = match event.kind {
                    EventKind::Bookmark => " bookmark",
                    _ => "",
                };
                let (plural, group) = (&resource.plural, &resource.group);
                format!(
                    "{} {plural}.{group} {namespace}/{name}{bookmark}",
                    event.client
                )
            }
        }
    }
}

impl fmt::Display for Occasion<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Request(request) => request.fmt(f),
            Self::Event(event) => event.fmt(f),
        }
    }
}
