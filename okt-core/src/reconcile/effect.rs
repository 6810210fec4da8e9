//! The decision of a reconciliation: one effect, or rest.

use super::draft::Draft;
use super::requeue::Requeue;

/// One effect, or rest.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Decision {
    /// Perform the effect, then decide again with its result as a fact.
    Do(Effect),
    /// There is nothing to do before this requeue.
    Rest(Requeue),
}

/// An action of a reconciliation on the object, its application or the cluster.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Effect {
    /// Add the finalizer.
    AddFinalizer,
    /// Remove the finalizer.
    DropFinalizer {
        /// The object did not reach the end of its lifecycle: a user abandoned it.
        abandoned: bool,
    },
    /// Observe the application.
    Observe,
    /// Run the pass.
    RunPass {
        /// The run takes the path for deletion.
        leaving: bool,
    },
    /// Apply the resources that the state on record declares.
    Apply {
        /// Missing resources are created.
        creates: bool,
        /// Resources that are no longer declared are deleted.
        prunes: bool,
    },
    /// Delete the resources that Kubernetes does not delete with the object.
    Clear,
    /// Render the status, and compare it with the stored one. This makes no request.
    Draft(Draft),
    /// Write the drafted status; then, and only if the write succeeded, change the work.
    Commit {
        /// The draft.
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
        /// A previous operator may have started it.
        resumed: bool,
    },
    /// Cancel work that is not in flight according to the record.
    Cancel,
}
