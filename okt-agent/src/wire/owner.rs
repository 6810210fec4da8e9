//! The owner of a request, and which of two requests is older.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The object that owns the agent's application.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Owner {
    /// `metadata.uid`, which is unique and permanent.
    pub uid: String,
    /// `metadata.creationTimestamp`. Of two objects of one namespace and name, the newer one owns the application.
    pub created_at: Timestamp,
    /// `metadata.name`: an agent belongs to one namespace and name.
    pub name: String,
    /// `metadata.namespace`; empty for a cluster-scoped object.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
}

impl Owner {
    /// Returns the namespace and name, which a later object of another uid may have too.
    pub fn object(&self) -> ObjectRef {
        ObjectRef {
            namespace: self.namespace.clone(),
            name: self.name.clone(),
        }
    }
}

/// The namespace and name that an agent belongs to.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectRef {
    /// Empty for a cluster-scoped object.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// The name.
    pub name: String,
}

/// Formats as `namespace/name`, or as the name of a cluster-scoped object.
impl fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.namespace.is_empty() {
            write!(f, "{}/", self.namespace)?;
        }
        f.write_str(&self.name)
    }
}

/// The position of a request in the order of requests. The agent refuses a request that is older than the last one
/// taken.
///
/// The epoch never falls, for all owners together; see [`is_older_than`](Self::is_older_than) for the other fields.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Fence {
    /// The operator's epoch: the number of leader changes (`leaseTransitions`); 0 without a lease.
    #[serde(default)]
    pub epoch: u64,
    /// The object's transition that the action belongs to.
    pub transition: u64,
    /// The run within the transition, starting at 1: a new revision repeats the work.
    #[serde(default = "first_run")]
    pub run: u64,
    /// When the operator recorded this work in the object's status, by the operator's clock.
    pub recorded_at: Timestamp,
}

impl Fence {
    /// Returns whether a request is older than the last one taken of the same owner. It does not compare epochs.
    ///
    /// A request is older if its transition and run are lower and it was not recorded later.
    /// Lower numbers that were recorded later are new work: after a restore of the cluster's data, an object counts its
    /// transitions from an earlier number again.
    /// Higher numbers are new work at any recorded time.
    ///
    /// ```
    /// use okt_agent::wire::Fence;
    ///
    /// let taken = Fence { epoch: 4, transition: 12, run: 1, recorded_at: "2026-11-21T09:00:00Z".parse()? };
    /// let stale = Fence { transition: 11, recorded_at: "2026-11-21T08:00:00Z".parse()?, ..taken };
    /// let restored = Fence { transition: 11, recorded_at: "2026-11-21T10:00:00Z".parse()?, ..taken };
    /// assert!(stale.is_older_than(&taken));
    /// assert!(!restored.is_older_than(&taken));
    /// # Ok::<(), jiff::Error>(())
    /// ```
    pub fn is_older_than(&self, taken: &Self) -> bool {
        (self.transition, self.run) < (taken.transition, taken.run)
            && self.recorded_at <= taken.recorded_at
    }
}

fn first_run() -> u64 {
    1
}

/// Deserializers for requests, which must not have unknown fields; answers may have them.
pub(super) mod strict {
    use jiff::Timestamp;
    use serde::{Deserialize, Deserializer};

    #[derive(Deserialize)]
    #[serde(remote = "super::Owner", rename_all = "camelCase", deny_unknown_fields)]
    struct Owner {
        uid: String,
        created_at: Timestamp,
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
        recorded_at: Timestamp,
    }

    /// Deserializes an owner and refuses other fields.
    pub(in crate::wire) fn owner<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<super::Owner, D::Error> {
        Owner::deserialize(from)
    }

    /// Deserializes a fence and refuses other fields.
    pub(in crate::wire) fn fence<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<super::Fence, D::Error> {
        Fence::deserialize(from)
    }
}
