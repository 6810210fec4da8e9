//! Rule 3: an action in flight keeps the object where it is; attempts, waits and restarts.

use std::time::Duration;

use okt_core::decide::{By, Run, StayReason, Verdict, Why};
use okt_core::facts::{ActionResult, Task};
use okt_core::record::Phase;

use crate::build::graph;
use crate::case::{ARRIVAL, Case, REVISION};
use crate::database::database;
use crate::{goes, stands};

const FAILED: ActionResult = ActionResult::Failed { permanent: false };

#[test]
fn an_action_in_flight_keeps_the_object_where_it_is() {
    let case = Case::at(&database(), "Running").task(Task::Running);
    stands(&case.clone().newly_desired("End"), StayReason::Running);
    stands(&case.new_visit("Servicing"), StayReason::Running);
}

#[test]
fn between_attempts_a_resting_state_is_left_for_a_desired_state_set_after_the_arrival() {
    let tasks = [
        Task::Waiting,
        Task::Due,
        Task::Ended(FAILED),
        Task::Ended(ActionResult::Wait(Duration::ZERO)),
    ];
    for task in tasks {
        let case = Case::at(&database(), "Running").task(task);
        goes(
            &case.clone().newly_desired("End"),
            "Stopping",
            By::Child,
            Why::DesiredState,
        );
        goes(
            &case.clone().desired("End", ARRIVAL),
            "Stopping",
            By::Child,
            Why::DesiredState,
        );
        goes(
            &case.new_visit("Servicing"),
            "Servicing",
            By::Child,
            Why::Visit,
        );
    }
}

#[test]
fn between_attempts_an_older_desired_state_does_not_move_the_object() {
    let case = Case::at(&database(), "Running").desired("End", ARRIVAL - 1);
    stands(&case.clone().task(Task::Waiting), StayReason::Waiting);
    assert_eq!(case.said(FAILED).decide(), Verdict::Retry { counted: true });
}

#[test]
fn between_attempts_a_passing_state_is_not_left() {
    let case = Case::at(&database(), "Start").task(Task::Waiting);
    stands(&case.newly_desired("End"), StayReason::Waiting);
}

#[test]
fn after_a_restart_a_pending_action_is_resumed() {
    let case = Case::at(&database(), "Running").task(Task::Absent);
    assert_eq!(case.decide(), Verdict::Run(Run::Resume));
    assert_eq!(case.after().action, case.record.and_then(|r| r.action));
}

#[test]
fn work_without_a_recorded_action_is_started() {
    let case = Case::at(&database(), "Running").with(|record, _| record.action = None);
    assert_eq!(case.decide(), Verdict::Run(Run::Resume));
}

#[test]
fn after_the_wait_the_work_runs_under_the_same_id() {
    let case = Case::at(&database(), "Running").task(Task::Due);
    assert_eq!(case.decide(), Verdict::Run(Run::Again));
    assert_eq!(case.after().action.map(|action| action.run), Some(1));
}

#[test]
fn a_new_revision_between_attempts_begins_a_run_of_its_own_at_once() {
    for task in [Task::Waiting, Task::Due] {
        let case = Case::at(&database(), "Start")
            .task(task)
            .with(|record, facts| {
                let action = record.action.as_mut().expect("an action");
                action.attempt = 4;
                facts.revision = REVISION + 1;
            });
        assert_eq!(case.decide(), Verdict::Run(Run::Changed));
        let after = case.after();
        let action = after.action.expect("an action");
        assert_eq!((action.run, action.attempt), (2, 1));
        assert_eq!(after.revision, REVISION + 1);
    }
}

#[test]
fn a_resumption_under_another_revision_is_a_run_of_its_own() {
    let case = Case::at(&database(), "Start")
        .task(Task::Absent)
        .with(|_, facts| facts.revision = REVISION + 1);
    assert_eq!(case.after().action.map(|action| action.run), Some(2));
}

#[test]
fn a_new_revision_does_not_disturb_work_that_runs() {
    let case = Case::at(&database(), "Start")
        .task(Task::Running)
        .with(|_, facts| facts.revision = REVISION + 1);
    stands(&case, StayReason::Running);
}

#[test]
fn an_attempt_is_recorded_only_if_a_trigger_counts_attempts() {
    let counted = Case::at(&database(), "Running").said(FAILED);
    assert_eq!(counted.decide(), Verdict::Retry { counted: true });
    assert_eq!(counted.after().action.map(|a| a.attempt), Some(2));
    let endless = Case::at(&database(), "Stopping").said(FAILED);
    assert_eq!(endless.decide(), Verdict::Retry { counted: false });
    assert_eq!(endless.after(), endless.record.expect("a record"));
}

#[test]
fn an_answer_to_wait_is_not_written() {
    let case = Case::at(&database(), "Running").said(ActionResult::Wait(Duration::ZERO));
    stands(&case, StayReason::Waiting);
    assert_eq!(case.after(), case.record.expect("a record"));
}

#[test]
fn an_idle_state_has_nothing_in_flight() {
    let graph = graph(&["entry A >B", "rest idle B >C", "leaf C"]);
    stands(
        &Case::at(&graph, "B").phase(Phase::Pending),
        StayReason::Settled,
    );
}

#[test]
fn an_arrival_begins_an_action_and_counts_from_one() {
    let case = Case::at(&database(), "Running")
        .newly_desired("End")
        .with(|_, facts| {
            facts.generation = 4;
            facts.attempt = 3;
        });
    let after = case.after();
    let action = after.action.expect("an action");
    assert_eq!(
        (after.transition, after.left),
        (ARRIVAL + 1, case.id("Running"))
    );
    assert_eq!((action.run, action.attempt, action.generation), (1, 1, 4));
    assert_eq!((action.phase, action.leaving), (Phase::Pending, false));
}
