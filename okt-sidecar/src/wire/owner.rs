//! Whose request it is, and which of two requests is the older one.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The object whose application the agent stands beside.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Owner {
    /// `metadata.uid`: names the object for ever.
    pub uid: String,
    /// `metadata.creationTimestamp`: of two objects that claim an application, the newer one has it.
    pub created_at: Timestamp,
    /// The name, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The namespace, for people; empty for a cluster-scoped object.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
}

/// How new a request is: a request that is older than one that was taken is refused.
///
/// Compared in the order of its fields, and only between requests of one owner, the epoch apart: it never falls,
/// whoever asks.
///
/// ```
/// use okt_sidecar::wire::Fence;
///
/// let deposed = Fence { epoch: 3, transition: 12, run: 1 };
/// let leading = Fence { epoch: 4, transition: 11, run: 1 };
/// assert!(deposed < leading);
/// ```
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "camelCase")]
pub struct Fence {
    /// The operator's term: how often the lead has changed hands (`leaseTransitions`); 0 without a lease.
    #[serde(default)]
    pub epoch: u64,
    /// The object's transition that the action belongs to.
    pub transition: u64,
    /// Which run within the transition, from 1: the work is done again for a new revision.
    #[serde(default = "first_run")]
    pub run: u64,
}

fn first_run() -> u64 {
    1
}

/// The same in a request, which must not have fields that nobody knows; an answer may.
pub(super) mod strict {
    use jiff::Timestamp;
    use serde::{Deserialize, Deserializer};

    #[derive(Deserialize)]
    #[serde(remote = "super::Owner", rename_all = "camelCase", deny_unknown_fields)]
    struct Owner {
        uid: String,
        created_at: Timestamp,
        #[serde(default)]
        name: String,
        #[serde(default)]
        namespace: String,
    }

    #[derive(Deserialize)]
    #[serde(remote = "super::Fence", rename_all = "camelCase", deny_unknown_fields)]
    struct Fence {
        #[serde(default)]
        epoch: u64,
        transition: u64,
        #[serde(default = "super::first_run")]
        run: u64,
    }

    /// An owner that has no other fields.
    pub(in crate::wire) fn owner<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<super::Owner, D::Error> {
        Owner::deserialize(from)
    }

    /// A fence that has no other fields.
    pub(in crate::wire) fn fence<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<super::Fence, D::Error> {
        Fence::deserialize(from)
    }
}
