//! Rule 3: an action in flight keeps the object where it is; attempts, waits and restarts.

use okt_core::decide::{By, Decision, Run, Stand, Why};
use okt_core::facts::{Said, Task};
use okt_core::record::Phase;

use crate::build::graph;
use crate::case::{ARRIVAL, Case, REVISION};
use crate::database::database;
use crate::{goes, stands};

const FAILED: Said = Said::Failed { permanent: false };

#[test]
fn an_action_in_flight_keeps_the_object_where_it_is() {
    let case = Case::at(&database(), "Running").task(Task::Running);
    stands(&case.clone().newly_desired("End"), Stand::Running);
    stands(&case.new_visit("Servicing"), Stand::Running);
}

#[test]
fn between_attempts_and_during_a_wait_a_resting_state_is_left_for_a_wish_made_after_the_arrival() {
    let tasks = [
        Task::Waiting,
        Task::Due,
        Task::Ended(FAILED),
        Task::Ended(Said::Wait),
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
fn between_attempts_an_older_wish_leads_nowhere() {
    let case = Case::at(&database(), "Running").desired("End", ARRIVAL - 1);
    stands(&case.clone().task(Task::Waiting), Stand::Waiting);
    assert_eq!(
        case.said(FAILED).decide(),
        Decision::Retry { counted: true }
    );
}

#[test]
fn between_attempts_a_passing_state_is_not_left() {
    let case = Case::at(&database(), "Start").task(Task::Waiting);
    stands(&case.newly_desired("End"), Stand::Waiting);
}

#[test]
fn after_a_restart_a_pending_action_is_resumed() {
    let case = Case::at(&database(), "Running").task(Task::Absent);
    assert_eq!(case.decide(), Decision::Run(Run::Resume));
    assert_eq!(case.after().action, case.record.and_then(|r| r.action));
}

#[test]
fn work_that_was_never_recorded_is_begun() {
    let case = Case::at(&database(), "Running").with(|record, _| record.action = None);
    assert_eq!(case.decide(), Decision::Run(Run::Resume));
}

#[test]
fn when_the_wait_is_over_the_work_goes_on_under_its_id() {
    let case = Case::at(&database(), "Running").task(Task::Due);
    assert_eq!(case.decide(), Decision::Run(Run::Again));
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
        assert_eq!(case.decide(), Decision::Run(Run::Changed));
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
    stands(&case, Stand::Running);
}

#[test]
fn an_attempt_is_recorded_only_where_a_trigger_counts() {
    let counted = Case::at(&database(), "Running").said(FAILED);
    assert_eq!(counted.decide(), Decision::Retry { counted: true });
    assert_eq!(counted.after().action.map(|a| a.attempt), Some(2));
    let endless = Case::at(&database(), "Stopping").said(FAILED);
    assert_eq!(endless.decide(), Decision::Retry { counted: false });
    assert_eq!(endless.after(), endless.record.expect("a record"));
}

#[test]
fn asking_to_be_called_again_is_not_written() {
    let case = Case::at(&database(), "Running").said(Said::Wait);
    stands(&case, Stand::Waiting);
    assert_eq!(case.after(), case.record.expect("a record"));
}

#[test]
fn an_idle_state_has_nothing_in_flight() {
    let graph = graph(&["entry A >B", "rest idle B >C", "leaf C"]);
    stands(&Case::at(&graph, "B").phase(Phase::Pending), Stand::Settled);
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
