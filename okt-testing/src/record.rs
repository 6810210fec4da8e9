//! This file keeps what was asked of the API.

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Verb {
    /// One object, or something that is no resource (e.g. discovery).
    Get,
    /// A collection.
    List,
    /// Changes, as they happen.
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
    /// The word that RBAC uses, and `apply` where RBAC says `patch` (e.g. `deletecollection`).
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

impl std::fmt::Display for Verb {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One request that was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequestRecord {
    /// What was asked for.
    pub verb: Verb,
    /// The path, without the query.
    pub path: String,
    /// The API group; empty for the core group, and for what is no resource.
    pub group: String,
    /// The version within the group.
    pub version: String,
    /// The plural name of the resource (e.g. `pods`); empty for what is no resource.
    pub resource: String,
    /// The subresource, if one was addressed (e.g. `status`).
    pub subresource: Option<String>,
    /// The namespace, if one was addressed.
    pub namespace: Option<String>,
    /// The name of the object, where the request or its answer has one.
    pub name: Option<String>,
    /// The field manager that the request named.
    pub field_manager: Option<String>,
    /// The request asked for nothing to be persisted.
    pub dry_run: bool,
    /// The HTTP status of the answer.
    pub status: u16,
}

impl RequestRecord {
    /// Whether the request could have changed something: neither a read nor a dry run.
    pub fn is_write(&self) -> bool {
        !self.dry_run && !matches!(self.verb, Verb::Get | Verb::List | Verb::Watch)
    }
}
