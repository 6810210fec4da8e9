//! The record of the requests to the API.

use std::fmt;
use std::str::FromStr;

use tokio::time::Instant;

/// The operation that a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Verb {
    /// Reads one object, or something that is no resource (e.g. discovery).
    Get,
    /// Reads a collection.
    List,
    /// Streams changes as they happen.
    Watch,
    /// A POST.
    Create,
    /// A PUT.
    Update,
    /// A JSON, merge or strategic merge patch.
    Patch,
    /// A server-side apply.
    Apply,
    /// The deletion of one object.
    Delete,
    /// The deletion of a collection.
    DeleteCollection,
}

impl Verb {
    /// The verbs that may change something.
    pub(crate) const WRITES: [Self; 6] = [
        Self::Create,
        Self::Update,
        Self::Patch,
        Self::Apply,
        Self::Delete,
        Self::DeleteCollection,
    ];

    /// The verbs that change nothing.
    pub(crate) const READS: [Self; 3] = [Self::Get, Self::List, Self::Watch];

    /// Returns the verb as in RBAC (e.g. `deletecollection`), but `apply` where RBAC has `patch`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Apply => "apply",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
        }
    }
}

impl FromStr for Verb {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut all = Self::READS.into_iter().chain(Self::WRITES);
        let found = all.find(|verb| verb.as_str() == text.to_lowercase());
        found.ok_or_else(|| format!("there is no verb {text:?}"))
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A recorded request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequestRecord {
    /// The time at which it came, on tokio's clock.
    pub at: Instant,
    /// The client's name: the first word of its `User-Agent`; empty if it has none.
    pub client: String,
    /// The replica that it went through; empty for the server itself.
    pub replica: String,
    /// The operation.
    pub verb: Verb,
    /// The path, without the query.
    pub path: String,
    /// The API group; empty for the core group, and if the request is not for a resource.
    pub group: String,
    /// The version within the group.
    pub version: String,
    /// The plural name of the resource (e.g. `pods`); empty if the request is not for a resource.
    pub resource: String,
    /// The subresource, if one was addressed (e.g. `status`).
    pub subresource: Option<String>,
    /// The namespace, if one was addressed.
    pub namespace: Option<String>,
    /// The name of the object, if the path, the body of a creation or the response has one.
    pub name: Option<String>,
    /// The field manager that the request named.
    pub field_manager: Option<String>,
    /// The `shardSelector` that the request named.
    pub shard_selector: Option<String>,
    /// Whether the request is a dry run.
    pub dry_run: bool,
    /// The HTTP status that the client got; 0 if it got none: the response is still pending, the
    /// connection broke, or the client gave up.
    pub status: u16,
    /// The resource version that it committed, whatever response the client got; the last one if
    /// it changed several objects.
    pub committed: Option<u64>,
    /// The faults that struck it, in the order in which they happened (e.g.
    /// `504 Timeout after the commit`).
    pub faults: Vec<String>,
}

impl RequestRecord {
    /// Takes over what became known about a request while it was carried out.
    pub(crate) fn catch_up(&mut self, later: &Self) {
        self.name.clone_from(&later.name);
        self.dry_run = later.dry_run;
        self.status = later.status;
        self.committed = later.committed;
        self.faults.clone_from(&later.faults);
    }

    /// Returns whether the request could have changed something: it is neither a read nor a dry run.
    pub fn is_write(&self) -> bool {
        !self.dry_run && Verb::WRITES.contains(&self.verb)
    }
}

impl fmt::Display for RequestRecord {
    /// Writes the request for people (e.g. `apply databases/status shop/orders of operator`).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.resource.is_empty() {
            write!(f, "{} {}", self.verb, self.path)?;
        } else {
            write!(f, "{} {}", self.verb, self.resource)?;
            if let Some(subresource) = &self.subresource {
                write!(f, "/{subresource}")?;
            }
            let namespace = self.namespace.as_deref().unwrap_or_default();
            write_place(f, namespace, self.name.as_deref().unwrap_or_default())?;
        }
        write_client(f, &self.client)
    }
}

/// Writes ` namespace/name`, or the part of it that is not empty.
pub(crate) fn write_place(f: &mut fmt::Formatter<'_>, namespace: &str, name: &str) -> fmt::Result {
    match (namespace, name) {
        ("", "") => Ok(()),
        ("", name) => write!(f, " {name}"),
        (namespace, "") => write!(f, " in {namespace}"),
        (namespace, name) => write!(f, " {namespace}/{name}"),
    }
}

/// Writes ` of client`, if the client has a name.
pub(crate) fn write_client(f: &mut fmt::Formatter<'_>, client: &str) -> fmt::Result {
    if client.is_empty() {
        return Ok(());
    }
    write!(f, " of {client}")
}

/// The requests that are kept, numbered in the order in which they came.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    first: usize,
    kept: Vec<RequestRecord>,
}

impl Requests {
    /// Keeps a request and returns its number.
    pub(crate) fn push(&mut self, record: RequestRecord) -> usize {
        self.kept.push(record);
        self.next() - 1
    }

    /// Returns the number of the next request.
    pub(crate) fn next(&self) -> usize {
        self.first + self.kept.len()
    }

    /// Returns a request, if it is still kept.
    pub(crate) fn get_mut(&mut self, number: usize) -> Option<&mut RequestRecord> {
        self.kept.get_mut(number.checked_sub(self.first)?)
    }

    /// Returns the requests from a number on.
    pub(crate) fn since(&self, number: usize) -> &[RequestRecord] {
        let index = number.saturating_sub(self.first).min(self.kept.len());
        &self.kept[index..]
    }

    pub(crate) fn clear(&mut self) {
        self.first = self.next();
        self.kept.clear();
    }
}
