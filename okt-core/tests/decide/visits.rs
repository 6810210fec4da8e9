//! Visits, and their outcomes.

use std::time::Duration;

use okt_core::decide::{By, StayReason, Why};
use okt_core::facts::{ActionResult, DesiredVisit, Named, Task};
use okt_core::record::{Phase, VisitOutcome, VisitRecord};

use crate::build::graph;
use crate::case::{ARRIVAL, Case};
use crate::database::database;
use crate::{goes, stands};

fn outcome(case: &Case) -> VisitOutcome {
    case.after().visit.expect("a visit on record").outcome
}

#[test]
fn a_visit_comes_before_the_desired_state() {
    let case = Case::at(&database(), "Running").newly_desired("End");
    goes(
        &case.new_visit("Servicing"),
        "Servicing",
        By::Child,
        Why::Visit,
    );
}

#[test]
fn a_new_visit_is_recorded_under_the_number_before_a_transition() {
    let running = Case::at(&database(), "Running").task(Task::Running);
    let visit = running.new_visit("Servicing").after().visit;
    assert_eq!(visit.map(|visit| visit.transition), Some(ARRIVAL));
    let case = Case::at(&database(), "Running").new_visit("Servicing");
    let after = case.after();
    assert_eq!(after.transition, ARRIVAL + 1);
    assert_eq!(after.visit.map(|visit| visit.transition), Some(ARRIVAL));
    assert_eq!(outcome(&case), VisitOutcome::Pending);
}

#[test]
fn a_holding_state_is_left_only_for_a_visit_made_after_the_arrival() {
    let failed = Case::at(&database(), "Failed").desired("Failed", 1);
    stands(
        &failed.clone().visit("Servicing", ARRIVAL - 1),
        StayReason::Settled,
    );
    goes(
        &failed.visit("Servicing", ARRIVAL),
        "Servicing",
        By::Child,
        Why::Visit,
    );
}

#[test]
fn an_older_visit_does_not_hide_a_desired_state_that_leads_out_of_a_holding_state() {
    let failed = Case::at(&database(), "Failed").visit("Servicing", 1);
    goes(
        &failed.newly_desired("End"),
        "Stopping",
        By::Child,
        Why::DesiredState,
    );
}

#[test]
fn a_visit_is_reached_when_its_action_succeeded() {
    let servicing = Case::at(&database(), "Servicing").visit("Servicing", 1);
    for said in [ActionResult::Next, ActionResult::To(servicing.id("End"))] {
        assert_eq!(
            outcome(&servicing.clone().said(said)),
            VisitOutcome::Reached
        );
    }
}

#[test]
fn a_visit_is_not_reached_by_failing_waiting_or_naming_a_trigger() {
    let servicing = Case::at(&database(), "Servicing").visit("Servicing", 1);
    for said in [
        ActionResult::Failed { permanent: true },
        ActionResult::Failed { permanent: false },
        ActionResult::Wait(Duration::ZERO),
        ActionResult::To(servicing.id("Failed")),
        ActionResult::To(servicing.id("Start")),
    ] {
        assert_eq!(
            outcome(&servicing.clone().said(said)),
            VisitOutcome::Pending,
            "{said:?}"
        );
    }
    assert_eq!(outcome(&servicing), VisitOutcome::Pending);
}

#[test]
fn a_visit_is_reached_only_by_an_action_of_a_later_transition_than_its_own() {
    let case = Case::at(&database(), "Servicing").said(ActionResult::Next);
    assert_eq!(
        outcome(&case.clone().visit("Servicing", ARRIVAL)),
        VisitOutcome::Pending
    );
    assert_eq!(outcome(&case.new_visit("Servicing")), VisitOutcome::Pending);
}

#[test]
fn a_visit_that_was_made_is_not_made_again() {
    for made in [
        VisitOutcome::Reached,
        VisitOutcome::Refused,
        VisitOutcome::Overtaken,
        VisitOutcome::NotReplayed,
    ] {
        let case = Case::at(&database(), "Running").visit("Servicing", ARRIVAL);
        let case = case.with(|record, _| {
            record.visit.as_mut().expect("a visit").outcome = made;
        });
        stands(&case, StayReason::Settled);
        assert_eq!(outcome(&case), made);
    }
}

#[test]
fn a_visit_without_a_route_from_the_resting_state_is_refused() {
    let graph = graph(&[
        "entry A >V",
        "visit V >Up >End",
        "rest Up >End -V",
        "leaf End",
    ]);
    let case = Case::at(&graph, "Up").desired("Up", 1).new_visit("V");
    stands(&case, StayReason::Settled);
    assert_eq!(outcome(&case), VisitOutcome::Refused);
    // The write that ends the work records it too, so no other write is needed.
    let ending = case.clone().said(ActionResult::Stay);
    assert_eq!(outcome(&ending), VisitOutcome::Refused);
    let moving = Case::at(&graph, "Up").newly_desired("End").new_visit("V");
    assert_eq!(outcome(&moving), VisitOutcome::Pending);
    let busy = moving.desired("Up", 1).task(Task::Running);
    assert_eq!(outcome(&busy.new_visit("V")), VisitOutcome::Pending);
}

#[test]
fn a_visit_to_a_state_that_is_no_visit_is_refused() {
    let case = Case::at(&database(), "Start").task(Task::Running);
    assert_eq!(
        outcome(&case.clone().new_visit("Stopping")),
        VisitOutcome::Refused
    );
    let unknown = case.with(|_, facts| {
        facts.visit = Some(DesiredVisit {
            state: Named::Unknown,
            fresh: true,
        });
    });
    assert_eq!(outcome(&unknown), VisitOutcome::Refused);
}

#[test]
fn a_visit_to_a_resting_state_is_refused() {
    let graph = graph(&["entry A >B", "rest B >C >D", "rest C >D", "leaf D"]);
    let case = Case::at(&graph, "B").new_visit("C");
    stands(&case, StayReason::Settled);
    assert_eq!(outcome(&case), VisitOutcome::Refused);
}

#[test]
fn a_visit_that_is_removed_from_the_spec_is_overtaken() {
    let case = Case::at(&database(), "Running").visit("Servicing", ARRIVAL);
    let case = case.with(|_, facts| facts.visit = None);
    stands(&case, StayReason::Settled);
    assert_eq!(outcome(&case), VisitOutcome::Overtaken);
}

#[test]
fn a_reached_visit_stays_reached_when_it_is_removed_from_the_spec() {
    let case = Case::at(&database(), "Running").with(|record, _| {
        record.visit = Some(VisitRecord {
            state: Named::Unknown,
            transition: 2,
            outcome: VisitOutcome::Reached,
        });
    });
    assert_eq!(outcome(&case), VisitOutcome::Reached);
}

#[test]
fn a_newer_visit_replaces_an_older_one() {
    let case = Case::at(&database(), "Running")
        .visit("Servicing", 2)
        .new_visit("Servicing")
        .task(Task::Running);
    let visit = case.after().visit.expect("a visit");
    assert_eq!(
        (visit.transition, visit.outcome),
        (ARRIVAL, VisitOutcome::Pending)
    );
}

#[test]
fn the_desired_state_is_kept_during_and_after_a_visit() {
    let case = Case::at(&database(), "Servicing")
        .visit("Servicing", 1)
        .said(ActionResult::Next);
    goes(&case, "Running", By::Child, Why::DesiredState);
}

#[test]
fn a_deletion_makes_no_visit() {
    let case = Case::at(&database(), "Running").new_visit("Servicing");
    goes(&case.deleting(), "Stopping", By::Child, Why::Deletion);
}

#[test]
fn a_deletion_does_not_change_a_recorded_visit() {
    let servicing = Case::at(&database(), "Servicing").visit("Servicing", 1);
    let made = servicing.said(ActionResult::Next).deleting();
    assert_eq!(outcome(&made), VisitOutcome::Pending);
}

#[test]
fn a_visit_whose_action_failed_permanently_stays_pending() {
    let case = Case::at(&database(), "Servicing")
        .visit("Servicing", 1)
        .phase(Phase::Failed);
    stands(&case, StayReason::Failed);
    assert_eq!(outcome(&case), VisitOutcome::Pending);
}
