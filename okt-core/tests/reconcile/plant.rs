//! This file plants bugs, one at a time. A model that does not find them proves nothing.

use std::time::Duration;

use okt_core::reconcile::{Decision, Effect, Facts, Graphs, Requeue, RunEnd, Standing, Waits};

/// A bug of `decide`, or of the code that performs its decisions.
///
/// Bugs that no method here plants are planted where they happen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Bug {
    OldVersionActedUpon,
    /// Work that is not in flight according to the record is not cancelled.
    StaleWorkKept,
    ReleasedWithoutPass,
    /// A pass that gave up on the path for deletion counts as done.
    GiveUpTakenForDone,
    PrunedAfterJump,
    CreatedWhileDeleting,
    BegunBeforeRecorded,
    BegunAlthoughHeld,
    /// An action starts although a cancelled one has not ended.
    BegunBesideEnding,
    BegunWhileStopping,
    /// The status of the owned resources of one state counts in the next one too.
    StandingOfFormerStateKept,
    PauseIgnored,
    TwoLeaders,
    NewWorkKeptByFormerLeader,
    NoResourceVersion,
    FailedWriteForgotten,
    FailureNeverShown,
    WorkChangedAfterFailedWrite,
    ObservationNotSpent,
    /// The findings of a run of the pass count as written before they are.
    FindingsForgotten,
    RetryWithoutTime,
    /// If only an event can help, there is no requeue time in case the event is lost.
    SafetyForgotten,
    /// A time that has passed without effect is used again.
    PassedTimeNamed,
    /// The lack of a permit for an action is forgotten at once.
    PermitForgotten,
}

impl Bug {
    /// Every bug, with the case in which it shows first.
    pub(crate) const ALL: [(Self, &'static str); 24] = [
        (Self::OldVersionActedUpon, "life alone"),
        (Self::StaleWorkKept, "life, pass, lead and drain"),
        (Self::ReleasedWithoutPass, "a leaf with work, pass, drain"),
        (Self::GiveUpTakenForDone, "small: pass"),
        (Self::PrunedAfterJump, "idle states, sights and crashes"),
        (Self::CreatedWhileDeleting, "life, owned"),
        (Self::BegunBeforeRecorded, "life alone"),
        (Self::BegunAlthoughHeld, "life, owned"),
        (Self::BegunBesideEnding, "a former object of the same name"),
        (Self::BegunWhileStopping, "life, pass, lead and drain"),
        (Self::StandingOfFormerStateKept, "an idle home, owned"),
        (Self::PauseIgnored, "life alone"),
        (Self::TwoLeaders, "small: lead"),
        (
            Self::NewWorkKeptByFormerLeader,
            "life, pass, lead and drain",
        ),
        (Self::NoResourceVersion, "pass alone with a way out"),
        (Self::FailedWriteForgotten, "small: fault"),
        (Self::FailureNeverShown, "small: writes fail for ever"),
        (Self::WorkChangedAfterFailedWrite, "life, owned"),
        (Self::ObservationNotSpent, "the loop guard"),
        (Self::FindingsForgotten, "pass alone, writes fail for ever"),
        (Self::RetryWithoutTime, "deadlines"),
        (Self::SafetyForgotten, "life, owned"),
        (Self::PassedTimeNamed, "pass alone with a way out, cluster"),
        (Self::PermitForgotten, "no permit for an action"),
    ];

    /// Changes the facts before `decide` gets them.
    pub(crate) fn spoil_facts(self, graphs: &mut Graphs<'static>, facts: &mut Facts<'static>) {
        match self {
            Self::OldVersionActedUpon => facts.writes.behind = false,
            Self::StaleWorkKept => facts.work.stale = false,
            Self::ReleasedWithoutPass if facts.asked.deleting => graphs.pass = None,
            Self::GiveUpTakenForDone => {
                if let Some(ran) = &mut facts.pass.ran
                    && ran.leaving
                    && ran.end == RunEnd::GaveUp
                {
                    ran.end = RunEnd::Complete;
                }
            }
            Self::BegunAlthoughHeld if facts.owned.standing.is_some() => {
                facts.owned.standing = Some(Standing::AsDeclared);
            }
            Self::BegunBesideEnding if facts.work.waits == Some(Waits::Ending) => {
                facts.work.waits = None;
            }
            Self::BegunWhileStopping => facts.operator.draining = false,
            Self::PauseIgnored => facts.asked.paused = false,
            Self::TwoLeaders => facts.operator.may_act = true,
            Self::FailureNeverShown => facts.writes.unshown = false,
            Self::RetryWithoutTime => facts.work.due = None,
            Self::ReleasedWithoutPass
            | Self::BegunAlthoughHeld
            | Self::BegunBesideEnding
            | Self::PrunedAfterJump
            | Self::CreatedWhileDeleting
            | Self::BegunBeforeRecorded
            | Self::StandingOfFormerStateKept
            | Self::NewWorkKeptByFormerLeader
            | Self::NoResourceVersion
            | Self::FailedWriteForgotten
            | Self::WorkChangedAfterFailedWrite
            | Self::ObservationNotSpent
            | Self::FindingsForgotten
            | Self::SafetyForgotten
            | Self::PassedTimeNamed
            | Self::PermitForgotten => {}
        }
    }

    /// Changes the decision.
    pub(crate) fn spoil_decision(self, decision: Decision, facts: &Facts<'_>) -> Decision {
        let has_come = |left: Option<Duration>| left.is_some_and(|left| left.is_zero());
        match (self, decision) {
            (Self::PrunedAfterJump, Decision::Do(Effect::Apply { creates, .. })) => {
                Decision::Do(Effect::Apply {
                    creates,
                    prunes: true,
                })
            }
            (Self::CreatedWhileDeleting, Decision::Do(Effect::Apply { prunes, .. })) => {
                Decision::Do(Effect::Apply {
                    creates: true,
                    prunes,
                })
            }
            (Self::PassedTimeNamed, Decision::Rest(_))
                if has_come(facts.pass.due) || has_come(facts.owned.due) =>
            {
                Decision::Rest(Requeue::soon())
            }
            (_, decision) => decision,
        }
    }
}
