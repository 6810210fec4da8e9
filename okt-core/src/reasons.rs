//! Every reason that OKT itself writes into the conditions of an object.
//!
//! A reason is one word for machines; the message of the condition has the details for people.
//! A condition may instead have the name of a state, a reason that the graph declares, or the reason of a failure that
//! your code returns.

/// Defines constants with their words, the list of all of them, and the list of those of the lifecycle.
macro_rules! reasons {
    (
        $($(#[doc = $doc:literal])+ $name:ident = $word:literal;)+
        $(lifecycle { $($(#[doc = $about:literal])+ $of:ident = $text:literal;)+ })?
    ) => {
        $($(#[doc = $doc])+ pub const $name: &str = $word;)+
        $($($(#[doc = $about])+ pub const $of: &str = $text;)+)?

        /// All reasons of this module.
        pub const ALL: &[&str] = &[$($name,)+ $($($of,)+)?];

        $(
            /// Reasons about the lifecycle alone: its record, its spec and the observation decide whether they hold.
            pub const LIFECYCLE: &[&str] = &[$($of),+];
        )?
    };
}

reasons! {
    /// `Deleting`: the object is being deleted.
    DELETING = "Deleting";
    /// `Deleting` is False.
    NOT_DELETING = "NotDeleting";
    /// `Paused` is False.
    NOT_PAUSED = "NotPaused";

    /// The work failed without a reason that a condition can have.
    FAILED = "Failed";
    /// An error that your code passed on by `?`, without a reason.
    ERROR = "Error";
    /// The handler named a state that no edge leads to.
    NO_EDGE = "NoEdge";
    /// Your code panicked.
    PANICKED = "Panicked";
    /// Your code did not answer in time.
    TIMED_OUT = "TimedOut";
    /// The time for a state was over, and its trigger `after` led on.
    DEADLINE_EXCEEDED = "DeadlineExceeded";
    /// A handler remembers more than is recorded, or what cannot be written as JSON.
    BAD_MEMORY = "BadMemory";
    /// A handler uses a step in a way that cannot work: a name twice, a step within a step, a result that is too large.
    BAD_STEP = "BadStep";
    /// The recorded arguments of a request do not fit what the handler takes.
    BAD_ARGS = "BadArgs";
    /// The result of a request is larger than what is recorded, or cannot be written as JSON.
    BAD_RESULT = "BadResult";
    /// The object is in a state that serves requests, and serves none.
    NO_REQUEST = "NoRequest";
    /// A trigger ended the work.
    LEFT = "Left";
    /// The move of the object waits for a window.
    WAITING_FOR_WINDOW = "WaitingForWindow";
    /// The move of the object waits until a person approves its plan.
    WAITING_FOR_APPROVAL = "WaitingForApproval";
    /// The move of the object waits for a place in a limit.
    WAITING_FOR_LIMIT = "WaitingForLimit";
    /// The window before which the object waits has no times, or none to come.
    BAD_WINDOW = "BadWindow";
    /// The work was cancelled because it is no longer needed.
    CANCELLED = "Cancelled";

    /// The object cannot be read as its type.
    UNDECODABLE = "Undecodable";
    /// The check of the application refuses the object.
    INVALID = "Invalid";
    /// The API server refuses a write of the operator.
    REFUSED = "Refused";
    /// The operator's roles do not allow a write.
    FORBIDDEN = "Forbidden";
    /// Writes of the status or the finalizer have failed for a long time, or those of the outcome of a request that came
    /// before the object, or before its deletion.
    WRITE_FAILED = "WriteFailed";
    /// This operator is shutting down; the next one continues.
    STOPPING = "Stopping";

    /// Every step of the pass is done.
    COMPLETE = "Complete";
    /// The pass has not reached this state.
    NOT_REACHED = "NotReached";
    /// A step gave up.
    GAVE_UP = "GaveUp";
    /// The objects that a step put are not applied yet.
    NOT_APPLIED = "NotApplied";
    /// The pass ended before it finished its path for deletion.
    NOT_FINALIZED = "NotFinalized";
    /// A step on the path for deletion asked to be called again.
    FINALIZING = "Finalizing";

    lifecycle {
        /// The annotation `okt.dev/paused` pauses the object.
        PAUSED = "Paused";
        /// The application has not been observed yet.
        UNOBSERVED = "Unobserved";
        /// The application cannot be reached.
        UNREACHABLE = "Unreachable";
        /// `observe` fails.
        OBSERVATION_FAILED = "ObservationFailed";
        /// The application reports a state that the graph does not have.
        UNFORESEEN_STATE = "UnforeseenState";
        /// The object stays in a holding state although the application is observed in another state.
        OBSERVED_ELSEWHERE = "ObservedElsewhere";
        /// The observation found no application.
        ABSENT = "Absent";
        /// The status names a state that the graph does not have.
        UNKNOWN_STATE = "UnknownState";
        /// The spec asks for a state that the graph does not have.
        UNKNOWN_DESIRED_STATE = "UnknownDesiredState";
        /// No route leads from the current state to the desired one.
        NO_ROUTE = "NoRoute";
        /// The object made many transitions without coming to rest; the next ones wait.
        LOOP_DETECTED = "LoopDetected";
    }
}

/// Reasons about the owned resources; each message names the resource.
pub mod resources {
    reasons! {
        /// A resource is not ready yet, or not deleted yet.
        WAITING = "WaitingForResources";
        /// The last transitions of an object that is being deleted are not delivered.
        NOT_DELIVERED = "TransitionsNotDelivered";
        /// Another owner has an object with this name.
        NOT_OWNED = "NotOwned";
        /// A declared field differs that cannot change.
        IMMUTABLE = "ResourceImmutable";
        /// The declared object cannot belong to this owner.
        BAD_RESOURCE = "BadResource";
        /// A template does not render to an object.
        BAD_TEMPLATE = "BadTemplate";
        /// The API server rejects the object as invalid.
        REFUSED = "ResourceRefused";
        /// The operator's roles do not allow the operation.
        FORBIDDEN = "ResourceForbidden";
        /// The API server does not know the kind or the namespace.
        NOT_FOUND = "ResourceNotFound";
        /// The object was changed or created at the same time.
        CONFLICT = "ResourceConflict";
        /// The resource will not become ready by itself.
        NOT_READY = "ResourceNotReady";
        /// Your code asks for objects of a kind that `watches` does not declare.
        NOT_DECLARED = "KindNotDeclared";
        /// The kind of the resource cannot be listed.
        NOT_WATCHED = "ResourceNotWatched";
        /// The API server returns an error.
        FAILED = "ResourceFailed";
        /// The API server does not answer.
        UNANSWERED = "ResourceUnanswered";
        /// The stored object is nested too deeply for a parser.
        UNREADABLE = "ResourceUnreadable";
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;

    use super::{ALL, resources};
    use crate::names::is_reason;

    #[test]
    fn every_reason_is_one_word_and_unique() {
        let all = || ALL.iter().chain(resources::ALL);
        for reason in all() {
            assert!(is_reason(reason), "{reason}");
        }
        let words: BTreeSet<_> = all().collect();
        assert_eq!(words.len(), all().count());
    }
}
