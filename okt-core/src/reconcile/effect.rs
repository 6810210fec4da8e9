//! What is decided: one effect, or rest.

use super::draft::Draft;
use super::requeue::Requeue;

/// One thing to do, or nothing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Decision {
    /// Perform the effect, then decide again with its result as a fact.
    Do(Effect),
    /// There is nothing to do before this.
    Rest(Requeue),
}

/// What a reconciliation does to the object, to its application or to the cluster.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Effect {
    /// Add the finalizer.
    AddFinalizer,
    /// Drop the finalizer.
    DropFinalizer {
        /// The object did not reach the end of its life: a user gave it up.
        abandoned: bool,
    },
    /// Ask the application where it is.
    Observe,
    /// Run the pass.
    RunPass {
        /// From its trigger for deletion.
        leaving: bool,
    },
    /// Bring the cluster to what the state on record declares.
    Apply {
        /// What is missing is created.
        creates: bool,
        /// What is not declared any more is deleted.
        prunes: bool,
    },
    /// Delete what Kubernetes does not delete with the object.
    Clear,
    /// Render the status, and compare it with the stored one. No request.
    Draft(Draft),
    /// Write the drafted status, if it is news; then, and only if the write succeeded, turn the work over.
    Commit {
        /// What is recorded.
        draft: Draft,
        /// Whether the status is written; otherwise only the work changes.
        patch: bool,
    },
    /// Report in the conditions that a write fails.
    ShowFailure,
    /// Report in the conditions that the object cannot be read.
    ShowUnreadable,
    /// Start the work on record.
    Start {
        /// An operator before this one may have begun it.
        resumed: bool,
    },
    /// Cancel work that is not in flight by the record.
    Cancel,
}
