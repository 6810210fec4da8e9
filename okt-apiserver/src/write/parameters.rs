//! [`WriteParams`]: the parameters of a write.

use std::sync::Arc;

use crate::{
    admission::Admission,
    apply::{Manager, Scene},
    calls::WebhookCalls,
    kind::ServedKind,
    subresource::Subresource,
};

/// The parameters of a write.
#[derive(Debug)]
pub(crate) struct WriteParams {
    pub(crate) kind: Arc<ServedKind>,
    pub(crate) subresource: Subresource,
    pub(crate) manager: Manager,
    /// The webhooks that are asked about the write.
    pub(crate) admission: Admission,
    pub(crate) dry_run: bool,
    /// The write is a patch, and no whole object.
    pub(crate) is_patch: bool,
    pub(crate) unknown_fields: UnknownFields,
    /// The duplicate fields of the body.
    pub(crate) duplicates: Vec<String>,
}

impl WriteParams {
    pub(crate) fn calls(&self) -> &WebhookCalls {
        self.admission.calls()
    }

    /// Returns the scene of a write at this time.
    pub(crate) fn scene<'a>(&'a self, now: &'a str) -> Scene<'a> {
        Scene {
            calls: self.calls(),
            kind: &self.kind,
            now,
        }
    }
}

/// The treatment of fields that the schema does not declare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnknownFields {
    Ignore,
    Warn,
    Refuse,
}
