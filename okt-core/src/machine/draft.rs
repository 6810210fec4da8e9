//! The draft of a status: the record, and the decisions that the report depends on.

use crate::decide::Verdict;
use crate::pass::PassOutcome;
use crate::record::Recorded;

/// The draft of a status: the record, and the decisions that the report depends on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Draft {
    /// The record.
    pub record: Recorded,
    /// The step of the lifecycle that led to it, without durations.
    pub step: Verdict,
    /// The reason why the object is not ready, although its lifecycle may be.
    pub not_ready: NotReadyReason,
    /// The change of the work.
    pub work: WorkChange,
}

impl Draft {
    /// Returns whether the object moves to another state.
    pub fn is_move(&self) -> bool {
        matches!(self.step, Verdict::Go(_))
    }
}

/// The reason, outside the lifecycle, why work does not start or an object is not deleted.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum NotReadyReason {
    /// There is none.
    #[default]
    None,
    /// This process has checked nothing: the stored conditions stay.
    AsBefore,
    /// The resources of the state that the object enters are not checked yet.
    Unchecked,
    /// The pass.
    Pass(RunEnd),
    /// This operator is shutting down; the next one continues.
    Stopping,
    /// The outcomes of its requests, which cannot be written.
    Requests,
    /// The owned resources.
    Resources(ResourceStatus),
}

/// The change of the work when a draft is written.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum WorkChange {
    /// The work stays.
    Keep,
    /// Running work is cancelled; the work on record is to start.
    New,
    /// Running work is cancelled; there is no work.
    None,
    /// The attempt failed: the next one comes after the backoff.
    Retry,
    /// The handler answered `Wait`: the same attempt is called again after the time that it asked for.
    Wait,
}

/// The end of a run of the pass.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum RunEnd {
    /// Every step is done.
    Complete,
    /// A condition is not as declared; work may begin.
    Short,
    /// A step waits, or is retried.
    Held,
    /// A step gave up or failed permanently: nothing happens until something changes.
    GaveUp,
}

impl From<&PassOutcome> for RunEnd {
    fn from(outcome: &PassOutcome) -> Self {
        match outcome {
            PassOutcome::Complete => Self::Complete,
            PassOutcome::Short { .. } => Self::Short,
            PassOutcome::Waits { .. } | PassOutcome::Failed(_) => Self::Held,
            PassOutcome::GaveUp { .. } => Self::GaveUp,
        }
    }
}

/// The status of the owned resources.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum ResourceStatus {
    /// As the state declares.
    #[default]
    AsDeclared,
    /// A resource is not ready yet, or not deleted yet.
    Awaited,
    /// The resources could not be computed or applied.
    Failed {
        /// A retry does not help.
        permanent: bool,
    },
}
