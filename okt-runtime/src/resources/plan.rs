//! Plans what to do about a declared resource, from what is known of it; no I/O.

use std::time::Duration;

/// What is known of a declared object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Presence {
    Absent,
    /// An object of its name is still being deleted.
    Deleting,
    /// It exists, and OKT has nothing to change in it.
    AsDeclared,
    /// Another client has changed it.
    Changed,
    /// The declaration has changed since OKT applied it.
    Outdated,
}

/// What to do about a declared object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ResourcePlan {
    /// Check that it is ready, if it has to be.
    Check,
    /// Leave it as it is.
    LeaveAlone,
    /// Wait until the object of its name is gone, which is an event.
    AwaitDeletion,
    /// Record it in the status of its owner: nothing else would show after a crash that the operator created it.
    Record,
    /// Apply it after this time, because it was applied a moment ago.
    Wait(Duration),
    /// Create it, or apply it to the object that exists.
    Apply,
}

/// Plans what to do about a declared object.
///
/// `creates` is whether OKT may create and repair, `is_recorded` whether its owner is known without a further
/// record, and `wait` how long the backoff of the last apply lasts.
pub(super) fn plan(
    presence: Presence,
    creates: bool,
    is_recorded: bool,
    wait: Option<Duration>,
) -> ResourcePlan {
    match presence {
        Presence::Deleting => ResourcePlan::AwaitDeletion,
        Presence::AsDeclared => ResourcePlan::Check,
        // A user who deletes the owner may want its resources left as they are.
        Presence::Absent | Presence::Changed if !creates => ResourcePlan::LeaveAlone,
        Presence::Absent if !is_recorded => ResourcePlan::Record,
        Presence::Absent | Presence::Changed | Presence::Outdated => {
            wait.map_or(ResourcePlan::Apply, ResourcePlan::Wait)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAIT: Option<Duration> = Some(Duration::from_secs(1));

    #[test]
    fn an_object_is_recorded_then_created_and_applied_again_after_a_backoff() {
        assert_eq!(
            plan(Presence::Absent, true, false, None),
            ResourcePlan::Record
        );
        assert_eq!(
            plan(Presence::Absent, true, true, None),
            ResourcePlan::Apply
        );
        for presence in [Presence::Absent, Presence::Changed, Presence::Outdated] {
            assert_eq!(plan(presence, true, true, None), ResourcePlan::Apply);
            let waits = ResourcePlan::Wait(Duration::from_secs(1));
            assert_eq!(plan(presence, true, true, WAIT), waits);
        }
    }

    #[test]
    fn an_object_of_an_owner_that_is_deleted_is_neither_created_nor_repaired_but_follows_its_declaration()
     {
        for (is_recorded, wait) in [(true, None), (false, WAIT)] {
            let plan = |presence| plan(presence, false, is_recorded, wait);
            assert_eq!(plan(Presence::Absent), ResourcePlan::LeaveAlone);
            assert_eq!(plan(Presence::Changed), ResourcePlan::LeaveAlone);
            assert_eq!(plan(Presence::AsDeclared), ResourcePlan::Check);
        }
        assert_eq!(
            plan(Presence::Outdated, false, true, None),
            ResourcePlan::Apply
        );
    }

    #[test]
    fn nothing_is_written_over_an_object_that_is_being_deleted() {
        for creates in [true, false] {
            let plan = plan(Presence::Deleting, creates, true, None);
            assert_eq!(plan, ResourcePlan::AwaitDeletion);
        }
    }
}
