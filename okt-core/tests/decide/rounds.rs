//! The loop guard, and the pause.

use std::time::Duration;

use okt_core::StateId;
use okt_core::decide::{By, Run, StayReason, Verdict, Why};
use okt_core::facts::{ActionResult, DesiredVisit, Named, Task};
use okt_core::record::VisitOutcome;

use crate::case::{ARRIVAL, Case, REVISION};
use crate::database::database;
use crate::{goes, stands};

/// Twice the six states of the database.
const LIMIT: u32 = 12;

/// An object that moves on, after this many transitions.
fn moving(rounds: u32) -> Case {
    Case::at(&database(), "Running")
        .desired("End", 1)
        .with(|record, facts| {
            record.rounds = rounds;
            facts.in_state = Duration::ZERO;
        })
}

fn paused(case: Case) -> Case {
    case.with(|_, facts| facts.paused = true)
}

#[test]
fn rounds_count_transitions() {
    assert_eq!(moving(3).after().rounds, 4);
    let standing = Case::at(&database(), "Running").with(|record, _| record.rounds = 3);
    assert_eq!(standing.after().rounds, 3);
}

#[test]
fn up_to_twice_the_number_of_states_a_transition_does_not_wait() {
    goes(&moving(LIMIT), "Stopping", By::Child, Why::DesiredState);
}

#[test]
fn beyond_twice_the_number_of_states_each_further_transition_waits_like_a_retry() {
    for beyond in 1..20 {
        let case = moving(LIMIT + beyond);
        let wait = case.facts.backoff.wait(beyond, case.facts.seed);
        stands(&case, StayReason::LoopGuard(wait));
        let almost = wait.saturating_sub(Duration::from_nanos(1));
        stands(
            &case.clone().with(|_, facts| facts.in_state = almost),
            StayReason::LoopGuard(Duration::from_nanos(1)),
        );
        let then = case.with(|_, facts| facts.in_state = wait);
        goes(&then, "Stopping", By::Child, Why::DesiredState);
    }
}

#[test]
fn the_loop_guard_does_not_keep_an_action_from_running_or_ending() {
    let round = |record: &mut okt_core::Record| record.rounds = LIMIT + 9;
    let resumed = Case::at(&database(), "Running")
        .task(Task::Absent)
        .with(|record, _| round(record));
    assert_eq!(resumed.decide(), Verdict::Run(Run::Resume));
    let ended = resumed.said(ActionResult::Stay);
    assert!(matches!(ended.decide(), Verdict::End(_)));
}

#[test]
fn the_jump_out_of_a_state_that_the_graph_does_not_have_does_not_wait() {
    let case = moving(LIMIT + 9).seen("Running");
    let case = case.with(|record, _| record.state = StateId::UNKNOWN);
    goes(&case, "Running", By::Jump, Why::Observed);
}

#[test]
fn a_new_desired_state_visit_revision_or_deletion_resets_the_count() {
    let round = moving(LIMIT + 9);
    let visit = DesiredVisit {
        state: Named::Known(round.id("Servicing")),
        fresh: true,
    };
    let new = [
        round.clone().newly_desired("End"),
        round.clone().with(|_, facts| facts.visit = Some(visit)),
        round.clone().with(|_, facts| facts.revision = REVISION + 1),
        round.with(|_, facts| facts.deleting = true),
    ];
    for case in new {
        assert!(matches!(case.decide(), Verdict::Go(_)));
        assert_eq!(case.after().rounds, 1);
    }
}

#[test]
fn a_new_desired_state_resets_the_count_before_the_object_moves() {
    let case = Case::at(&database(), "Running")
        .task(Task::Running)
        .with(|record, _| record.rounds = LIMIT + 9);
    assert_eq!(case.after().rounds, LIMIT + 9);
    assert_eq!(case.newly_desired("End").after().rounds, 0);
}

#[test]
fn a_recorded_deletion_does_not_reset_the_count() {
    let case = moving(LIMIT + 9).deleting();
    assert!(matches!(
        case.decide(),
        Verdict::Stay(StayReason::LoopGuard(_))
    ));
}

#[test]
fn a_deletion_is_recorded() {
    let case = Case::at(&database(), "Running")
        .task(Task::Running)
        .with(|_, facts| facts.deleting = true);
    assert!(case.after().deleting);
}

#[test]
fn staying_put_for_twice_the_longest_backoff_resets_the_count() {
    let long = moving(0).facts.backoff.longest() * 2;
    let stayed = moving(LIMIT + 9).with(|_, facts| {
        facts.in_state = long + Duration::from_nanos(1);
    });
    goes(&stayed, "Stopping", By::Child, Why::DesiredState);
    assert_eq!(stayed.after().rounds, 1);
    let shorter = moving(LIMIT + 9).with(|_, facts| facts.in_state = long);
    assert_eq!(shorter.after().rounds, LIMIT + 10);
}

#[test]
fn staying_put_is_no_reason_to_write() {
    let settled = Case::at(&database(), "Running").desired("Running", 1);
    let settled = settled.with(|record, facts| {
        record.rounds = LIMIT + 9;
        record.desired.reached = true;
        facts.in_state = Duration::from_hours(9);
    });
    assert_eq!(Some(settled.after()), settled.record);
}

#[test]
fn a_visit_is_not_reached_while_the_loop_guard_delays_its_result() {
    let case = Case::at(&database(), "Servicing")
        .visit("Servicing", 1)
        .said(ActionResult::Next)
        .with(|record, facts| {
            record.rounds = LIMIT + 9;
            facts.in_state = Duration::ZERO;
        });
    assert!(matches!(
        case.decide(),
        Verdict::Stay(StayReason::LoopGuard(_))
    ));
    let visit = case.after().visit.expect("a visit");
    assert_eq!(visit.outcome, VisitOutcome::Pending);
}

#[test]
fn a_pause_stops_every_transition_action_retry_and_resumption_and_a_result_waits() {
    let running = Case::at(&database(), "Running");
    let stopped = [
        running.clone().newly_desired("End"),
        running.clone().seen("Start"),
        running
            .clone()
            .with(|_, facts| facts.revision = REVISION + 1),
        running.clone().task(Task::Absent),
        running.clone().task(Task::Due),
        running.clone().said(ActionResult::Stay),
        running
            .clone()
            .said(ActionResult::Failed { permanent: false }),
        running
            .clone()
            .said(ActionResult::Failed { permanent: true }),
        Case::at(&database(), "End").newly_desired("Running"),
    ];
    for case in stopped {
        stands(&paused(case), StayReason::Paused);
    }
    let mut new = Case::nothing(&database());
    new.facts.paused = true;
    stands(&new, StayReason::Paused);
}

#[test]
fn a_pause_does_not_change_a_decision_to_stand() {
    let running = Case::at(&database(), "Running");
    stands(&paused(running.clone()), StayReason::Settled);
    stands(&paused(running.task(Task::Running)), StayReason::Running);
}

#[test]
fn a_desired_state_set_during_a_pause_is_recorded_at_once() {
    let case = paused(Case::at(&database(), "Failed").newly_desired("Running"));
    assert_eq!(case.after().desired.transition, ARRIVAL);
    goes(
        &Case::at(&database(), "Failed").desired("Running", ARRIVAL),
        "Running",
        By::Child,
        Why::DesiredState,
    );
}
