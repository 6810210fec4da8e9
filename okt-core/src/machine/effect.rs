//! The decision of a reconciliation: one effect, or rest.

use super::draft::Draft;
use super::object::{TaskId, WorkId};
use super::requeue::Requeue;

/// One effect, or rest.
#[derive(PartialEq, Eq, Debug)]
#[must_use = "nothing happens unless the effect is performed"]
pub enum Decision {
    /// Perform the effect, report its result, and decide again.
    Do(Effect),
    /// There is nothing to do before this requeue.
    Rest(Requeue),
}

/// An action of a reconciliation on the object, its application or the cluster.
///
/// It is complete: a new effect would be a breaking change, because nothing may be left undone.
#[derive(PartialEq, Eq, Debug)]
#[must_use = "its result must be reported to the machine"]
pub enum Effect {
    /// Add the finalizer; report [`finalizer_added`](super::Machine::finalizer_added).
    AddFinalizer(AddFinalizer),
    /// Remove the finalizer; report [`finalizer_dropped`](super::Machine::finalizer_dropped).
    DropFinalizer(DropFinalizer),
    /// Observe the application; report [`observed`](super::Machine::observed).
    Observe(Observe),
    /// Run the pass; report [`pass_ran`](super::Machine::pass_ran).
    RunPass(RunPass),
    /// Apply the resources that the state on record declares; report [`applied`](super::Machine::applied).
    Apply(Apply),
    /// Delete the resources that Kubernetes does not delete with the object; report
    /// [`cleared`](super::Machine::cleared).
    Clear(Clear),
    /// Render the status, and compare it with the stored one, without a request; report
    /// [`rendered`](super::Machine::rendered).
    Render(Render),
    /// Remove the conditions of an earlier controller, before the first status; report
    /// [`taken_over`](super::Machine::taken_over).
    TakeOver(TakeOver),
    /// Write the drafted status; report [`committed`](super::Machine::committed).
    Commit(Commit),
    /// Change the work as the draft says; its status need not be written. Report
    /// [`work_changed`](super::Machine::work_changed).
    ChangeWork(ChangeWork),
    /// Remove what others left in the status and no apply removes; report
    /// [`leftovers_removed`](super::Machine::leftovers_removed).
    RemoveLeftovers(RemoveLeftovers),
    /// Report in the conditions that a write fails; report [`failure_shown`](super::Machine::failure_shown).
    ShowFailure(ShowFailure),
    /// Report in the conditions that the object does not decode; report
    /// [`unreadable_shown`](super::Machine::unreadable_shown).
    ShowUnreadable(ShowUnreadable),
    /// Start the work on record; report [`started`](super::Machine::started).
    Start(Start),
    /// Cancel work that is not in flight according to the record; report [`cancelled`](super::Machine::cancelled).
    Cancel(Cancel),
}

/// The proof that a machine has asked for an effect, and that its result is not reported yet.
#[derive(PartialEq, Eq, Debug)]
struct Asked(());

/// Declares effects: values that only a decision makes, and that the report of their result consumes.
macro_rules! effects {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty),* })*) => {$(
        $(#[$doc])*
        #[derive(PartialEq, Eq, Debug)]
        #[must_use = "its result must be reported to the machine"]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $type,)*
            asked: Asked,
        }

        impl $name {
            pub(super) const fn of($($field: $type),*) -> Self {
                Self { $($field,)* asked: Asked(()) }
            }
        }
    )*};
}

effects! {
    /// Add the finalizer.
    AddFinalizer {}

    /// Remove the finalizer.
    DropFinalizer {
        /// The object did not reach the end of its lifecycle: a user abandoned it.
        abandoned: bool
    }

    /// Observe the application.
    Observe {
        /// Whether to call the application. One that did not answer is not called before its backoff ends: then report
        /// [`Silent`](super::ObservationResult::Silent).
        calls: bool
    }

    /// Run the pass.
    RunPass {
        /// The run takes the path for deletion.
        leaving: bool
    }

    /// Apply the resources that the state on record declares.
    Apply {
        /// Missing resources are created.
        creates: bool,
        /// Resources that are no longer declared are deleted.
        prunes: bool
    }

    /// Delete the resources that Kubernetes does not delete with the object.
    Clear {}

    /// Render the status of a draft.
    Render {
        /// The draft.
        draft: Draft,
        /// Whether to ask the application for its own fields of the status. One that did not answer is not asked before
        /// its backoff ends.
        asks_extra: bool
    }

    /// Remove the conditions of an earlier controller.
    TakeOver {}

    /// Write the status of a draft.
    Commit {
        /// The draft.
        draft: Draft
    }

    /// Change the work as a draft says.
    ChangeWork {
        /// The draft.
        draft: Draft
    }

    /// Remove what others left in the status.
    RemoveLeftovers {}

    /// Report in the conditions that a write fails.
    ShowFailure {}

    /// Report in the conditions that the object does not decode.
    ShowUnreadable {}

    /// Start the work on record.
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

    /// Cancel work.
    Cancel {
        /// The task to cancel; none if none runs.
        task: Option<TaskId>,
        /// The handler waited for its next call.
        waited: bool
    }
}

/// A write that failed; see [`write_failed`](super::Machine::write_failed).
#[derive(PartialEq, Eq, Debug)]
pub enum Write {
    /// The finalizer was not added.
    AddFinalizer(AddFinalizer),
    /// The finalizer was not removed.
    DropFinalizer(DropFinalizer),
    /// The conditions of an earlier controller were not removed.
    TakeOver(TakeOver),
    /// The status was not written.
    Commit(Commit),
    /// It was not reported that the object does not decode.
    ShowUnreadable(ShowUnreadable),
}

macro_rules! writes {
    ($($name:ident),*) => {$(
        impl From<$name> for Write {
            fn from(effect: $name) -> Self {
                Self::$name(effect)
            }
        }
    )*};
}

writes!(
    AddFinalizer,
    DropFinalizer,
    TakeOver,
    Commit,
    ShowUnreadable
);
