//! This file names everything that can happen to the object.

use okt_core::StateId;
use okt_core::facts::{Observed, Said};

/// A decision of the operator, or something that happens between two decisions.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Event {
    /// The operator takes one decision and performs it, with this outcome.
    Decides(Outcome),
    /// The next version arrives in the operator's cache.
    Deliver,
    ActionEnds(Said),
    /// A task that was cancelled has cleaned up.
    CancelledTaskEnds,
    /// The owned object becomes ready.
    OwnedIsReady,
    /// The object that the pass has put is gone, after it was deleted.
    PutIsGone,
    /// Another action has ended, so there is a place for one.
    PlaceIsFree,
    /// The finalizers of other controllers go.
    OthersLetGo,
    /// All waits are over.
    TimePasses,
    /// The requeue of the object comes, and no other wait is over.
    Requeued,
    /// The operator crashes. The first list of the next process is so many versions old.
    Restart(usize),
    LosesLead,
    GetsLead,
    /// Another replica leads for a while and takes the object as far as it can. Its actions end, or are lost with it.
    AnotherLeads {
        ends: bool,
    },
    /// The operator is told to stop.
    Drain,
    DesiredState(StateId),
    Visit(StateId),
    /// The user changes a part of the spec that handlers act upon.
    Change,
    Delete,
    /// The user pauses the object, or ends the pause.
    Pause,
    Abandon,
    /// The object becomes undecodable, or decodable again.
    Garble,
    /// A newer operator moves the object to a state that this operator does not know.
    NewerMoves,
    /// The newer operator is removed; its state stays on record.
    NewerGoes,
    /// The application answers every observation like this from now on.
    Shows(Observed),
    /// The application's own fields of the status change.
    ExtraChanges,
    /// The API server answers every write of this kind like this from now on.
    FailsForEver(Write, Fault),
    /// The API server carries out writes again.
    Mends,
    /// Only in traces: nothing unexpected happens from now on.
    FaultsStop,
    /// Only in traces: the same, but writes go on failing, or an operator that stops goes on stopping.
    FaultsStopButOne,
    /// Only in traces: the object is reconciled once more, although nothing happened.
    ReconciledOnceMore,
}

/// What an effect comes to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Outcome {
    /// It does what it should.
    Works,
    WriteFails(Fault),
    /// One step of the pass answers like this, counted from 0.
    StepAnswers {
        step: u8,
        how: StepAnswer,
    },
    /// The owned resources cannot be applied or cleared.
    ClusterFails {
        permanent: bool,
    },
    /// All places for actions are taken.
    NoPlace,
    /// There is a place for the action after a time.
    NotYet,
}

/// The answer of a step of the pass, if it is not just done.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum StepAnswer {
    Waits,
    Fails,
    GivesUp,
    /// The step is done, and its condition is not as declared.
    Short,
    /// The step is done, and asks to be called again.
    Again,
}

impl StepAnswer {
    pub(crate) const ALL: [Self; 5] = [
        Self::Waits,
        Self::Fails,
        Self::GivesUp,
        Self::Short,
        Self::Again,
    ];
}

/// A kind of write.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Write {
    Status,
    Finalizer,
}

/// What becomes of a write, beside success and a conflict.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Fault {
    /// The API server refuses it for good (403, 422).
    Refused,
    /// It is not carried out (404, 5xx, no connection).
    Unavailable,
    /// It is carried out, and the answer is lost.
    AnswerLost,
    /// The API server answers that it succeeded, but a webhook has undone it.
    Undone,
}

/// How a write failed, as the operator sees it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Failure {
    Conflict,
    Refused,
    Unavailable,
}
