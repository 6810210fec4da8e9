//! Rule 1: the record follows the application. Also: decisions without a record, or with an unknown state on record.

use okt_core::StateId;
use okt_core::decide::{By, StayReason, Verdict, Why};
use okt_core::facts::{ActionResult, DesiredVisit, Named, Observed, Task};
use okt_core::record::{Phase, VisitOutcome};

use crate::case::Case;
use crate::database::database;
use crate::{goes, stands};

fn looking(state: &str, observed: Observed) -> Case {
    Case::at(&database(), state).with(|_, facts| facts.observed = observed)
}

fn new(observed: Observed) -> Case {
    let mut case = Case::nothing(&database());
    case.facts.observed = observed;
    case
}

fn lost(observed: Observed) -> Case {
    looking("Running", observed).with(|record, _| record.state = StateId::UNKNOWN)
}

const BLIND: [Observed; 4] = [
    Observed::Unobserved,
    Observed::Unforeseen,
    Observed::Unreachable { failures: 9 },
    Observed::Failed { failures: 9 },
];

#[test]
fn an_observed_move_along_a_child_edge_is_followed() {
    let case = Case::at(&database(), "Running").seen("Servicing");
    goes(&case, "Servicing", By::Child, Why::Observed);
}

#[test]
fn an_observed_move_along_a_trigger_edge_is_followed() {
    let case = Case::at(&database(), "Running").seen("Failed");
    goes(&case, "Failed", By::Trigger, Why::Observed);
}

#[test]
fn an_observed_move_along_no_edge_is_a_jump_and_counted() {
    let case = Case::at(&database(), "Running").seen("Start");
    goes(&case, "Start", By::Jump, Why::Observed);
    assert_eq!(case.after().jumps, 1);
}

#[test]
fn a_move_along_an_edge_is_no_jump() {
    let case = Case::at(&database(), "Running").seen("Servicing");
    assert_eq!(case.after().jumps, 0);
}

#[test]
fn after_a_jump_the_handler_of_the_new_state_runs() {
    let case = Case::at(&database(), "Running").seen("Start");
    let action = case.after().action.expect("work to do");
    assert_eq!(action.phase, Phase::Pending);
}

#[test]
fn after_a_jump_to_an_idle_state_there_is_no_action() {
    let case = Case::at(&database(), "Running").seen("End");
    assert_eq!(case.after().action, None);
}

#[test]
fn an_absent_application_begins_at_the_entry_again() {
    goes(
        &looking("Running", Observed::Absent),
        "Start",
        By::Jump,
        Why::Observed,
    );
}

#[test]
fn an_observation_moves_nothing_while_an_action_is_in_flight() {
    for task in [Task::Running, Task::Waiting] {
        let case = Case::at(&database(), "Running").task(task).seen("Start");
        assert!(matches!(case.decide(), Verdict::Stay(_)), "{task:?}");
    }
}

#[test]
fn a_reconciliation_that_takes_a_result_ignores_the_observation() {
    let case = Case::at(&database(), "Running")
        .said(ActionResult::Stay)
        .seen("Start");
    assert!(matches!(case.decide(), Verdict::End(_)));
}

#[test]
fn a_resting_state_whose_action_failed_permanently_is_left_by_observation() {
    let case = Case::at(&database(), "Running").phase(Phase::Failed);
    goes(&case.seen("Start"), "Start", By::Jump, Why::Observed);
}

#[test]
fn an_observation_never_leads_out_of_a_holding_state() {
    stands(
        &Case::at(&database(), "Failed")
            .desired("Failed", 1)
            .seen("Running"),
        StayReason::Settled,
    );
    stands(&looking("Failed", Observed::Absent), StayReason::Settled);
}

#[test]
fn an_observation_does_not_move_a_passing_state() {
    let case = Case::at(&database(), "Stopping").phase(Phase::Failed);
    stands(&case.seen("Running"), StayReason::Failed);
}

#[test]
fn in_a_leaf_nothing_is_observed() {
    stands(
        &Case::at(&database(), "End")
            .desired("End", 1)
            .seen("Running"),
        StayReason::Settled,
    );
    stands(
        &looking("End", Observed::Absent).desired("End", 1),
        StayReason::Settled,
    );
}

#[test]
fn without_an_observed_state_the_object_does_not_move() {
    for observed in BLIND {
        stands(&looking("Running", observed), StayReason::Settled);
    }
}

#[test]
fn without_an_observed_state_the_other_rules_still_apply() {
    for observed in BLIND {
        let case = looking("Running", observed).newly_desired("End");
        goes(&case, "Stopping", By::Child, Why::DesiredState);
    }
}

#[test]
fn a_new_object_observed_in_a_state_is_adopted_by_a_jump() {
    let case = new(Observed::Unobserved).seen("Running");
    goes(&case, "Running", By::Jump, Why::Adopted);
    assert_eq!((case.after().jumps, case.after().transition), (1, 1));
}

#[test]
fn a_new_object_observed_in_the_entry_enters_it_and_does_not_jump() {
    let case = new(Observed::Unobserved).seen("Start");
    goes(&case, "Start", By::Entry, Why::Created);
    assert_eq!(case.after().jumps, 0);
}

#[test]
fn a_new_object_without_an_observed_application_enters_the_entry() {
    let nowhere = [
        Observed::Absent,
        Observed::Unobserved,
        Observed::Unreachable { failures: 1 },
    ];
    for observed in nowhere {
        let case = new(observed);
        goes(&case, "Start", By::Entry, Why::Created);
        assert_eq!((case.after().jumps, case.after().transition), (0, 1));
    }
}

#[test]
fn a_new_object_waits_while_an_owned_resource_exists_and_the_application_is_unreachable() {
    let mut case = new(Observed::Unreachable { failures: 1 });
    case.facts.owned = true;
    stands(&case, StayReason::Unsure);
}

#[test]
fn a_new_object_waits_if_the_observed_state_is_unknown_or_the_observation_failed() {
    for observed in [
        Observed::Unforeseen,
        Observed::Failed { failures: 1 },
        Observed::In(StateId::UNKNOWN),
    ] {
        stands(&new(observed), StayReason::Unsure);
    }
}

#[test]
fn without_a_record_the_desired_state_and_the_visit_are_older_than_the_first_state() {
    let mut case = new(Observed::Unobserved);
    let state = Named::Known(case.id("Servicing"));
    case.facts.visit = Some(DesiredVisit { state, fresh: true });
    let record = case.after();
    assert_eq!(record.desired.transition, 0);
    let visit = record.visit.expect("the visit is recorded");
    assert_eq!(
        (visit.transition, visit.outcome),
        (0, VisitOutcome::NotReplayed)
    );
}

#[test]
fn a_state_that_the_graph_does_not_have_is_left_by_observation() {
    goes(
        &lost(Observed::Unobserved).seen("Running"),
        "Running",
        By::Jump,
        Why::Observed,
    );
    goes(&lost(Observed::Absent), "Start", By::Jump, Why::Observed);
}

#[test]
fn without_an_observed_state_an_object_stays_in_a_state_that_the_graph_does_not_have() {
    for observed in BLIND {
        stands(&lost(observed), StayReason::UnknownState);
    }
}

#[test]
fn an_object_in_an_unknown_state_is_not_created_again_while_it_is_deleted() {
    stands(&lost(Observed::Absent).deleting(), StayReason::UnknownState);
}
