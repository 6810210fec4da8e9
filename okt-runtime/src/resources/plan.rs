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
    /// Leave it with the content that was applied before, and check that it is ready, if it has to be.
    Hold,
    /// Wait until the object of its name is gone, which is an event.
    AwaitDeletion,
    /// Record it in the status of its owner: nothing else would show after a crash that the operator created it.
    Record,
    /// Apply it after this time, because it was applied a moment ago.
    Wait(Duration),
    /// Create it, or apply it to the object that exists.
    Apply,
}

/// Whether OKT may create and repair a declared object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Creation {
    Forbidden,
    /// Only after the status of the owner has a record of the object: nothing else would name its owner.
    AfterRecord,
    Allowed,
}

/// Plans what to do about a declared object. `may_change` is whether another content may be applied in this state, and
/// `wait` is how long the backoff of the last apply lasts.
pub(super) fn plan(
    presence: Presence,
    creation: Creation,
    may_change: bool,
    wait: Option<Duration>,
) -> ResourcePlan {
    match presence {
        Presence::Outdated if !may_change => ResourcePlan::Hold,
        Presence::Deleting => ResourcePlan::AwaitDeletion,
        Presence::AsDeclared => ResourcePlan::Check,
        // A user who deletes the owner may want its resources left as they are.
        Presence::Absent | Presence::Changed if creation == Creation::Forbidden => {
            ResourcePlan::LeaveAlone
        }
        Presence::Absent if creation == Creation::AfterRecord => ResourcePlan::Record,
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
            plan(Presence::Absent, Creation::AfterRecord, true, None),
            ResourcePlan::Record
        );
        assert_eq!(
            plan(Presence::Absent, Creation::Allowed, true, None),
            ResourcePlan::Apply
        );
        for presence in [Presence::Absent, Presence::Changed, Presence::Outdated] {
            let apply = plan(presence, Creation::Allowed, true, None);
            assert_eq!(apply, ResourcePlan::Apply);
            let waits = ResourcePlan::Wait(Duration::from_secs(1));
            assert_eq!(plan(presence, Creation::Allowed, true, WAIT), waits);
        }
    }

    #[test]
    fn an_object_of_an_owner_that_is_deleted_is_neither_created_nor_repaired_but_follows_its_declaration()
     {
        for wait in [None, WAIT] {
            let plan = |presence| plan(presence, Creation::Forbidden, true, wait);
            assert_eq!(plan(Presence::Absent), ResourcePlan::LeaveAlone);
            assert_eq!(plan(Presence::Changed), ResourcePlan::LeaveAlone);
            assert_eq!(plan(Presence::AsDeclared), ResourcePlan::Check);
        }
        assert_eq!(
            plan(Presence::Outdated, Creation::Forbidden, true, None),
            ResourcePlan::Apply
        );
    }

    #[test]
    fn a_content_that_may_change_in_other_states_only_is_created_and_repaired_but_not_changed() {
        let plan = |presence| plan(presence, Creation::Allowed, false, None);
        assert_eq!(plan(Presence::Outdated), ResourcePlan::Hold);
        assert_eq!(plan(Presence::Absent), ResourcePlan::Apply);
        assert_eq!(plan(Presence::Changed), ResourcePlan::Apply);
    }

    #[test]
    fn nothing_is_written_over_an_object_that_is_being_deleted() {
        for creation in [Creation::Allowed, Creation::Forbidden] {
            let plan = plan(Presence::Deleting, creation, true, None);
            assert_eq!(plan, ResourcePlan::AwaitDeletion);
        }
    }
}
