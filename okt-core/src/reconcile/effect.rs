//! What is decided: one effect, or rest.

use super::facts::{RunEnd, Standing};
use super::requeue::Requeue;
use crate::decide::Decision as Step;
use crate::record::Recorded;

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

/// What is to be recorded and reported.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Draft {
    /// The record.
    pub record: Recorded,
    /// The step of the lifecycle that led to it, without durations.
    pub step: Step,
    /// Why the object is not ready, although its lifecycle may be.
    pub hold: Hold,
    /// What becomes of the work.
    pub work: Turnover,
}

impl Draft {
    /// Whether the object moves to another state.
    pub fn is_move(&self) -> bool {
        matches!(self.step, Step::Go(_))
    }
}

/// Why work does not begin, or an object does not go, for reasons outside its lifecycle.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Hold {
    /// Nothing holds it.
    None,
    /// Nothing was checked by this process: the stored conditions stay.
    AsBefore,
    /// The resources of the state that is entered are not checked yet.
    Unlooked,
    /// The pass.
    Pass(RunEnd),
    /// This operator is stopping; the next one goes on.
    Stopping,
    /// The owned resources.
    Resources(Standing),
}

/// What becomes of the work when a draft is written.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Turnover {
    /// It stays.
    Keep,
    /// What runs is cancelled; the work on record is to begin.
    New,
    /// What runs is cancelled; there is no work.
    None,
    /// The attempt failed: the next one comes after the backoff.
    Retry,
    /// The handler answered `Wait`: the same attempt is called again after the time that it asked for.
    Wait,
}
