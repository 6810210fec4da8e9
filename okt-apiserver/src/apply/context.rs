//! [`Scene`]: the context of a write.

use crate::calls::WebhookCalls;
use crate::kind::ServedKind;
use crate::schema::Schema;

/// The context of a write: its kind, in the version of the request, and its time as text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scene<'a> {
    /// Conversions of an object to versions in which others set fields may need webhooks.
    pub(crate) calls: &'a WebhookCalls,
    pub(crate) kind: &'a ServedKind,
    pub(crate) now: &'a str,
}

impl<'a> Scene<'a> {
    pub(super) fn schema(&self) -> &'a Schema {
        &self.kind.schema
    }
}
