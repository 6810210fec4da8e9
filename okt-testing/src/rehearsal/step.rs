//! [`RehearsalStep`]: one step of a rehearsal.

use std::fmt;

use serde_json::Value;

/// A step, which is done once the object is at rest.
pub(super) enum RehearsalStep<A> {
    Patch(Value),
    Request {
        kind: String,
        name: String,
        args: Value,
    },
    Happens(String, Box<dyn Fn(&A) + Send + Sync>),
    Delete,
}

impl<A> fmt::Display for RehearsalStep<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Patch(patch) => write!(f, "the patch {patch}"),
            Self::Request { kind, name, .. } => write!(f, "the request {kind}/{name}"),
            Self::Happens(name, _) => f.write_str(name),
            Self::Delete => f.write_str("the deletion"),
        }
    }
}
