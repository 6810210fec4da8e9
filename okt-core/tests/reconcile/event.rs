//! Every event that can happen to the object.

use okt_core::StateId;
use okt_core::facts::ActionResult;

use crate::machine::ObservationResult;

/// A decision of the operator, or something that happens between two decisions.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Event {
    /// The operator takes one decision and performs it, with this outcome.
    Decides(EffectOutcome),
    /// The next version arrives in the operator's cache.
    Deliver,
    ActionEnds(ActionResult),
    /// The task of the action is over without a result.
    ActionIsLost,
    /// The action goes on only when something is recorded.
    AsksToRecord,
    /// A cancelled task has ended.
    CancelledTaskEnds,
    /// The owned object becomes ready.
    OwnedIsReady,
    /// The object that the pass put is gone, after it was deleted.
    PutIsGone,
    /// Another action has ended, so there is a permit for an action.
    PermitIsFree,
    /// Other controllers remove their finalizers.
    OthersLetGo,
    /// All waits are over.
    TimePasses,
    /// The requeue of the object comes, and no other wait is over.
    Requeued,
    /// The operator crashes. The first list of the next process is this many versions old.
    Restart(usize),
    LosesLead,
    GetsLead,
    /// Another replica leads for a while and takes the object as far as it can. Its actions end, or are lost with it.
    AnotherLeads {
        ends: bool,
    },
    /// The operator begins a graceful shutdown.
    Drain,
    DesiredState(StateId),
    Visit(StateId),
    /// Somebody makes a request.
    Asks,
    /// Somebody deletes a request.
    Withdraws(usize),
    /// The place of an object outside is taken away, or an object inside without one is registered.
    TendsPlaces,
    /// The gates shut, or open.
    Turns,
    /// A release that declares another content of the owned object takes over.
    Releases,
    /// The newest version of a request arrives in the operator's cache.
    RequestArrives(usize),
    /// The user changes a part of the spec that handlers act upon.
    Change,
    Delete,
    /// The user pauses the object, or ends the pause.
    Pause,
    /// The user changes a label.
    Label,
    Abandon,
    /// The object becomes undecodable, or decodable again.
    Garble,
    /// A newer operator moves the object to a state that this operator does not have.
    NewerMoves,
    /// The newer operator is removed; its state stays on record.
    NewerGoes,
    /// The application gives this answer to every observation from now on.
    Shows(ObservationResult),
    /// The application's own fields of the status change.
    ExtraChanges,
    /// Others write something into the status that no apply removes.
    OthersWrite,
    /// The API server gives this answer to every write of this kind from now on.
    FailsForEver(Write, Fault),
    /// The API server carries out writes again.
    Mends,
    /// Only in traces: nothing unexpected happens from now on.
    FaultsStop,
    /// Only in traces: the same, but writes still fail, or an operator that shuts down continues to do so.
    FaultsStopButOne,
    /// Only in traces: the object is reconciled once more, although nothing happened.
    ReconciledOnceMore,
}

/// The outcome of an effect.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum EffectOutcome {
    /// It succeeds.
    Works,
    WriteFails(Fault),
    /// One step of the pass, counted from 0, gives this answer.
    StepAnswers {
        step: u8,
        how: StepAnswer,
    },
    /// The owned resources cannot be applied or cleared.
    ClusterFails {
        permanent: bool,
    },
    /// All permits for actions are taken.
    NoPermit,
    /// There is a permit for the action after a time.
    NotYet,
    /// There is a newer version of the object than the one at hand.
    Outdated,
    /// Nothing is left to delete, but the last transitions are not delivered.
    Undelivered,
    /// A request cannot be read or written.
    NotRead,
    /// Outcomes are written, and the answers are lost.
    AnswerLost,
    /// The application does not give its own fields of the status in time.
    NoExtra,
    /// It succeeds, and the action ends while the application is observed.
    WorkEndsMeanwhile,
}

/// The answer of a step of the pass that does not simply succeed.
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

/// The outcome of a write, other than success and a conflict.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Fault {
    /// The API server refuses it permanently (403, 422).
    Refused,
    /// It is not carried out (404, 5xx, no connection).
    Unavailable,
    /// It is carried out, and the answer is lost.
    AnswerLost,
    /// The API server reports success, but a webhook has undone it.
    Undone,
}
