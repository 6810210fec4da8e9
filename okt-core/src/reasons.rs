//! Every reason that OKT itself writes into the conditions of an object.
//!
//! A reason is one word for machines; the message of the condition has the details for people.
//! A condition may also have as its reason the name of a state, one that a graph declares, or that of a failure of yours.

/// Constants with their words, and a list of all of them.
macro_rules! reasons {
    ($($(#[doc = $doc:literal])+ $name:ident = $word:literal;)+) => {
        $($(#[doc = $doc])+ pub const $name: &str = $word;)+

        /// All reasons of this module.
        pub const ALL: &[&str] = &[$($name),+];
    };
}

reasons! {
    /// `Deleting`: the object is being deleted.
    DELETING = "Deleting";
    /// `Deleting` is False.
    NOT_DELETING = "NotDeleting";
    /// The annotation `okt.dev/paused` holds the object.
    PAUSED = "Paused";
    /// `Paused` is False.
    NOT_PAUSED = "NotPaused";

    /// Nothing is known of the application yet.
    UNOBSERVED = "Unobserved";
    /// The application cannot be reached.
    UNREACHABLE = "Unreachable";
    /// `observe` fails.
    OBSERVATION_FAILED = "ObservationFailed";
    /// The application says that it is in a state that the graph does not have.
    UNFORESEEN_STATE = "UnforeseenState";
    /// A holding state stands although the application is observed in another state.
    OBSERVED_ELSEWHERE = "ObservedElsewhere";
    /// There is no application to be seen.
    ABSENT = "Absent";

    /// The status names a state that the graph does not have.
    UNKNOWN_STATE = "UnknownState";
    /// The spec wishes for a state that the graph does not have.
    UNKNOWN_DESIRED_STATE = "UnknownDesiredState";
    /// No route leads from the present state to the wished one.
    NO_ROUTE = "NoRoute";
    /// Many transitions have not brought the object to rest; the next ones wait.
    LOOP_DETECTED = "LoopDetected";
    /// The work failed, and its own reason cannot be one.
    FAILED = "Failed";
    /// The handler named a state that no edge leads to.
    NO_EDGE = "NoEdge";
    /// The author's code panicked.
    PANICKED = "Panicked";
    /// The author's code did not answer in time.
    TIMED_OUT = "TimedOut";
    /// The work was no longer wanted.
    CANCELLED = "Cancelled";

    /// The object cannot be read as its type.
    UNDECODABLE = "Undecodable";
    /// The API server refuses what the operator would write.
    REFUSED = "Refused";
    /// The operator's roles do not allow a write.
    FORBIDDEN = "Forbidden";
    /// Writes of the status or the finalizer have failed for long.
    WRITE_FAILED = "WriteFailed";
    /// This operator is stopping; the next one goes on.
    STOPPING = "Stopping";

    /// Every step of the pass is done.
    COMPLETE = "Complete";
    /// The pass has not come to this state.
    NOT_REACHED = "NotReached";
    /// A step gave up.
    GAVE_UP = "GaveUp";
    /// The objects that a step has put are not applied yet.
    NOT_APPLIED = "NotApplied";
    /// The pass ended before it came to its way for deletion.
    NOT_FINALIZED = "NotFinalized";
    /// A step on the way for deletion asked to be called again.
    FINALIZING = "Finalizing";
}

/// Reasons about what an object owns in the cluster; their messages name which of it.
pub mod resources {
    reasons! {
        /// Something is not ready, or not gone, yet.
        WAITING = "WaitingForResources";
        /// The name is that of an object of somebody else.
        NOT_OWNED = "NotOwned";
        /// What was declared can be no object of this owner.
        BAD_RESOURCE = "BadResource";
        /// A template makes no object.
        BAD_TEMPLATE = "BadTemplate";
        /// The API server says that the object is wrong.
        REFUSED = "ResourceRefused";
        /// The operator's roles do not allow it.
        FORBIDDEN = "ResourceForbidden";
        /// The API server does not know the kind or the namespace.
        NOT_FOUND = "ResourceNotFound";
        /// The object was changed or made at the same time.
        CONFLICT = "ResourceConflict";
        /// It will not become ready by itself.
        NOT_READY = "ResourceNotReady";
        /// Its kind cannot be listed.
        NOT_WATCHED = "ResourceNotWatched";
        /// The API server fails.
        FAILED = "ResourceFailed";
        /// The API server does not answer.
        UNANSWERED = "ResourceUnanswered";
        /// The stored object is nested deeper than a parser goes.
        UNREADABLE = "ResourceUnreadable";
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;

    use super::{ALL, resources};
    use crate::names::is_reason;

    #[test]
    fn every_reason_is_one_word_and_says_one_thing() {
        let all = || ALL.iter().chain(resources::ALL);
        for reason in all() {
            assert!(is_reason(reason), "{reason}");
        }
        let words: BTreeSet<_> = all().collect();
        assert_eq!(words.len(), all().count());
    }
}
