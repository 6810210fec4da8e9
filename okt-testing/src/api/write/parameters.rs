//! [`WriteParams`]: the parameters of a write.

use std::sync::Arc;

use crate::api::{apply::Manager, kind::ServedKind};

/// The parameters of a write.
#[derive(Debug)]
pub(crate) struct WriteParams {
    pub(crate) kind: Arc<ServedKind>,
    pub(crate) subresource: Subresource,
    pub(crate) manager: Manager,
    pub(crate) dry_run: bool,
    /// The write is a patch, and no whole object.
    pub(crate) is_patch: bool,
    pub(crate) unknown_fields: UnknownFields,
    /// The duplicate fields of the body.
    pub(crate) duplicates: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subresource {
    None,
    Status,
    Scale,
}

/// The treatment of fields that the schema does not declare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnknownFields {
    Ignore,
    Warn,
    Refuse,
}
