//! What is to be recorded and reported.

use crate::decide::Decision as Step;
use crate::pass::Outcome;
use crate::record::Recorded;

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
    pub work: WorkChange,
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
    Unchecked,
    /// The pass.
    Pass(RunEnd),
    /// This operator is stopping; the next one goes on.
    Stopping,
    /// The owned resources.
    Resources(Standing),
}

/// What becomes of the work when a draft is written.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum WorkChange {
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

/// How a run of the pass ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum RunEnd {
    /// Every step is done.
    Complete,
    /// A condition is not as declared; work may begin.
    Short,
    /// A step waits, or is retried.
    Held,
    /// A step gave up, or failed for good: nothing happens until something changes.
    GaveUp,
}

impl From<&Outcome> for RunEnd {
    fn from(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Complete => Self::Complete,
            Outcome::Short { .. } => Self::Short,
            Outcome::Waits { .. } | Outcome::Failed(_) => Self::Held,
            Outcome::GaveUp { .. } => Self::GaveUp,
        }
    }
}

/// How the owned resources stand.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Standing {
    /// As the state declares.
    AsDeclared,
    /// Something is not ready yet, or not gone yet.
    Awaited,
    /// They could not be computed or applied.
    Failed {
        /// A retry does not help.
        permanent: bool,
    },
}
