//! This file defines the memory of an operator between two reconciliations.

use okt_core::facts::ActionResult;
use okt_core::reconcile::{RunEnd, Standing};
use okt_core::record::Record;

use crate::event::Failure;
use crate::object::{Object, Version};

/// The knowledge of a process about the object besides its cache. All of it can be lost at any time.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Memory {
    pub(crate) seen: Seen,
    /// The work of the state on record; none if this process knows nothing about it.
    pub(crate) piece: Option<Piece>,
    /// A cancelled task has not ended.
    pub(crate) is_ending: bool,
    pub(crate) pass: PassMemory,
    pub(crate) owned: OwnedMemory,
    /// The last failed write, until one succeeds.
    pub(crate) failed: Option<FailedWrite>,
    /// The version to which a write changed nothing, and the hash of its status.
    pub(crate) vain: Option<(Version, u64)>,
    /// A reconcile request named the object since its last reconciliation began.
    pub(crate) is_named: bool,
}

/// The last successful write, which is remembered of a settled object too.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Seen {
    /// The version that it made.
    pub(crate) version: Version,
    /// At that version the findings of the last run of the pass are reported.
    pub(crate) reported: bool,
    /// It wrote fields that are written at most every ten seconds, and that time is not over.
    pub(crate) side: bool,
}

/// The id of a piece of work.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub(crate) struct WorkId {
    pub(crate) transition: u64,
    pub(crate) run: u32,
}

impl WorkId {
    /// The work of the state on record, unless the state is idle.
    pub(crate) fn of(record: &Record) -> Option<Self> {
        let action = record.action?;
        Some(Self {
            transition: record.transition,
            run: action.run,
        })
    }
}

/// A piece of work.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Piece {
    pub(crate) id: WorkId,
    /// The attempt that runs, ran last, or comes next.
    pub(crate) attempt: u32,
    pub(crate) started_under: i64,
    pub(crate) phase: Phase,
}

/// The progress of a piece of work.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Phase {
    New,
    Running,
    Waiting {
        /// The action answered `Wait`: a reconcile request brings the call forward.
        asked: bool,
    },
    Due,
    Ended(ActionResult),
}

/// The memory of the runs of the pass.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct PassMemory {
    pub(crate) last: Option<RunEnd>,
    /// The generation under which a run failed, while that run is not repeated.
    pub(crate) backoff: Option<i64>,
    pub(crate) due: Due,
    /// The findings of the last run are not written.
    pub(crate) is_unwritten: bool,
}

/// The memory of the owned resources.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct OwnedMemory {
    /// Their last status, and the transition into the state that declared them.
    pub(crate) last: Option<(u64, Standing)>,
    pub(crate) due: Due,
}

/// A time that was asked for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) enum Due {
    #[default]
    Nothing,
    Ahead,
    Come,
}

impl Due {
    fn time_passes(&mut self) {
        if *self == Self::Ahead {
            *self = Self::Come;
        }
    }
}

/// A write that failed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct FailedWrite {
    pub(crate) scope: Scope,
    pub(crate) is_refused: bool,
    /// The number of consecutive failures, counted up to two.
    pub(crate) times: u8,
    /// It is reported, or its report has failed too.
    pub(crate) is_shown: bool,
    /// Its time is over.
    pub(crate) is_over: bool,
}

/// The condition that must stay the same for a failed write to wait until its time is over.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Scope {
    Version(Version),
    Request {
        generation: i64,
        paused: bool,
        abandoned: bool,
    },
}

impl Memory {
    /// Returns whether a task runs for the work on record.
    pub(crate) fn runs(&self) -> bool {
        (self.piece).is_some_and(|piece| piece.phase == Phase::Running)
    }

    /// Ends every wait.
    pub(crate) fn time_passes(&mut self) {
        self.seen.side = false;
        self.pass.backoff = None;
        self.pass.due.time_passes();
        self.owned.due.time_passes();
        if let Some(failed) = &mut self.failed {
            failed.is_over = true;
        }
        if let Some(Piece {
            phase: phase @ Phase::Waiting { .. },
            ..
        }) = &mut self.piece
        {
            *phase = Phase::Due;
        }
    }

    /// Cancels the task that runs; it takes a while to end.
    pub(crate) fn cancel(&mut self) {
        self.is_ending |= self.runs();
        self.piece = None;
    }

    /// Forgets everything but the last write, unless the next reconciliation needs more.
    pub(crate) fn compact(&mut self) {
        // Destructured in full, so that a new field has to be considered here.
        let Self {
            seen,
            piece,
            is_ending,
            pass,
            owned,
            failed,
            vain,
            is_named,
        } = self;
        let is_pass_settled =
            pass.backoff.is_none() && pass.due == Due::Nothing && !pass.is_unwritten;
        let is_as_declared = matches!(owned.last, None | Some((_, Standing::AsDeclared)));
        let is_settled = piece.is_none()
            && !*is_ending
            && is_pass_settled
            && is_as_declared
            && owned.due == Due::Nothing
            && failed.is_none()
            && vain.is_none()
            && !*is_named;
        if is_settled {
            *self = Self {
                seen: *seen,
                ..Self::default()
            };
        }
    }
}

impl FailedWrite {
    pub(crate) fn of(failure: Failure, object: &Object, before: Option<Self>) -> Self {
        let scope = match failure {
            Failure::Conflict => Scope::Version(object.version),
            Failure::Refused | Failure::Unavailable => Scope::Request {
                generation: object.spec.generation,
                paused: object.spec.paused,
                abandoned: object.spec.abandoned,
            },
        };
        Self {
            scope,
            is_refused: failure == Failure::Refused,
            times: before.map_or(1, |before| (before.times + 1).min(2)),
            is_shown: false,
            is_over: false,
        }
    }

    /// Returns whether the write of this object waits.
    pub(crate) fn waits(&self, object: &Object) -> bool {
        let Object { version, spec, .. } = object;
        let is_same = match self.scope {
            Scope::Version(failed) => failed == *version,
            Scope::Request {
                generation,
                paused,
                abandoned,
            } => (generation, paused, abandoned) == (spec.generation, spec.paused, spec.abandoned),
        };
        is_same && !self.is_over
    }

    /// Returns whether the conditions must report it and do not yet: a person has to fix it, or it lasts.
    pub(crate) fn is_unshown(&self) -> bool {
        !self.is_shown && (self.is_refused || self.times > 1)
    }
}
