//! [`Scene`]: the context of a write.

use crate::api::{kind::Sibling, schema::Schema};

/// The context of a write: its kind, version and time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scene<'a> {
    pub(crate) schema: &'a Schema,
    pub(crate) api_version: &'a str,
    pub(crate) kind: &'a str,
    /// The other versions of the kind.
    pub(crate) siblings: &'a [Sibling],
    /// The kind has a status subresource.
    pub(crate) has_status: bool,
    pub(crate) built_in: bool,
    /// The time of the write, as text.
    pub(crate) now: &'a str,
}

impl<'a> Scene<'a> {
    /// Another version of the kind.
    pub(super) fn sibling(&self, api_version: &str) -> Option<&'a Sibling> {
        Sibling::find(self.siblings, api_version)
    }
}
