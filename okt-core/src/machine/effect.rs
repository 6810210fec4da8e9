//! The decision of a reconciliation: one effect, or rest.

use super::draft::Draft;
use super::object::{TaskId, WorkId};
use super::requeue::Requeue;
use crate::gate::GateId;

/// One effect, or rest.
#[derive(PartialEq, Eq, Debug)]
#[must_use = "nothing happens unless the effect is performed"]
pub enum Decision {
    /// Perform the effect, report its result, and decide again.
    Do(Effect),
    /// There is nothing to do before this requeue.
    Rest(Requeue),
}

/// The proof that a machine has asked for an effect, and that its result is not reported yet.
#[derive(PartialEq, Eq, Debug)]
struct Asked(());

/// Declares the effects: values that only a decision makes, and that the report of their result consumes.
macro_rules! effects {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty),* })*) => {
        /// An action of a reconciliation on the object, its application or the cluster.
        ///
        /// It is complete: a new effect would be a breaking change, because nothing may be left undone.
        #[derive(PartialEq, Eq, Debug)]
        #[must_use = "its result must be reported to the machine"]
        pub enum Effect {
            $($(#[$doc])* $name($name),)*
        }

        $(
            $(#[$doc])*
            #[derive(PartialEq, Eq, Debug)]
            #[must_use = "its result must be reported to the machine"]
            pub struct $name {
                $($(#[$field_doc])* pub $field: $type,)*
                asked: Asked,
            }

            impl $name {
                pub(super) const fn decided($($field: $type),*) -> Decision {
                    Decision::Do(Effect::$name(Self { $($field,)* asked: Asked(()) }))
                }
            }
        )*
    };
}

effects! {
    /// Add the finalizer; report [`finalizer_added`](super::Machine::finalizer_added).
    AddFinalizer {}

    /// Remove the finalizer; report [`finalizer_dropped`](super::Machine::finalizer_dropped).
    DropFinalizer {
        /// The object did not reach the end of its lifecycle: a user abandoned it.
        abandoned: bool
    }

    /// Observe the application; report [`observed`](super::Machine::observed).
    Observe {
        /// Whether to call the application. One that did not answer is not called before its backoff ends: then report
        /// [`Silent`](super::ObservationResult::Silent).
        calls: bool
    }

    /// Run the pass; report [`pass_ran`](super::Machine::pass_ran).
    RunPass {
        /// The run takes the path for deletion.
        leaving: bool
    }

    /// Apply the resources that the state on record declares; report [`applied`](super::Machine::applied).
    Apply {
        /// Missing resources are created.
        creates: bool,
        /// Resources that are no longer declared are deleted.
        prunes: bool
    }

    /// Delete the resources that Kubernetes does not delete with the object; report
    /// [`cleared`](super::Machine::cleared).
    Clear {}

    /// Render the status, and compare it with the stored one, without a request; report
    /// [`rendered`](super::Machine::rendered).
    Render {
        /// The draft.
        draft: Draft,
        /// Whether to ask the application for its own fields of the status. One that did not answer is not asked before
        /// its backoff ends.
        asks_extra: bool
    }

    /// Remove the conditions of an earlier controller, before the first status; report
    /// [`taken_over`](super::Machine::taken_over).
    TakeOver {}

    /// Write the drafted status; report [`committed`](super::Machine::committed).
    Commit {
        /// The draft.
        draft: Draft
    }

    /// Change the work as in the draft; its status need not be written. Report
    /// [`work_changed`](super::Machine::work_changed).
    ChangeWork {
        /// The draft.
        draft: Draft
    }

    /// Record what the handler of the work on record asks for while it runs; nothing else of the status changes. Report
    /// [`recorded`](super::Machine::recorded).
    Record {}

    /// Read a request from the API server, because the cache may be out of date: the next one before the move that begins
    /// it, or the one on record if the cache lacks it. Before another one replaces the one on record, write the outcome
    /// of that one. Report [`request_read`](super::Machine::request_read).
    ReadRequest {
        /// A hash of the uid of the request.
        token: u64
    }

    /// Take a place in a limit for the version of the object at hand, before the move into it; report
    /// [`place_taken`](super::Machine::place_taken).
    TakePlace {
        /// The limit.
        gate: GateId,
        /// The move is made in any case: register the object, whether there is a free place or not.
        forced: bool
    }

    /// Write outcomes into requests, or that they wait; report [`delivered`](super::Machine::delivered).
    Deliver {}

    /// Remove what others left in the status and no apply removes; report
    /// [`leftovers_removed`](super::Machine::leftovers_removed).
    RemoveLeftovers {}

    /// Report in the conditions that a write fails; report [`failure_shown`](super::Machine::failure_shown).
    ShowFailure {}

    /// Report in the conditions that the object does not decode; report
    /// [`unreadable_shown`](super::Machine::unreadable_shown).
    ShowUnreadable {}

    /// Start the work on record; report [`started`](super::Machine::started).
    Start {
        /// The id under which the end of the task is reported.
        task: TaskId,
        /// The work.
        work: WorkId,
        /// The number of the attempt, starting at 1.
        attempt: u32,
        /// A previous operator may have started it.
        resumed: bool,
        /// The handler answered `Wait` before: the attempt continues.
        continues: bool
    }

    /// Cancel work that is not in flight according to the record; report [`cancelled`](super::Machine::cancelled).
    Cancel {
        /// The task to cancel; none if none runs.
        task: Option<TaskId>,
        /// The handler waited for its next call.
        waited: bool
    }
}

/// Declares the effects that are writes, which may fail.
macro_rules! writes {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// A write that failed; see [`write_failed`](super::Machine::write_failed).
        #[derive(PartialEq, Eq, Debug)]
        pub enum Write {
            $($(#[$doc])* $name($name),)*
        }

        $(impl From<$name> for Write {
            fn from(effect: $name) -> Self {
                Self::$name(effect)
            }
        })*
    };
}

writes! {
    /// The finalizer was not added.
    AddFinalizer,
    /// The finalizer was not removed.
    DropFinalizer,
    /// The conditions of an earlier controller were not removed.
    TakeOver,
    /// The status was not written.
    Commit,
    /// What a handler asks for was not recorded.
    Record,
    /// It was not reported that the object does not decode.
    ShowUnreadable,
}
