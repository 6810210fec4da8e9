//! The wish to go through a state once, and what becomes of it.

use okt_core::decide::{By, Stand, Why};
use okt_core::facts::{Named, Said, Task, Visit};
use okt_core::record::{Outcome, Phase, VisitRecord};

use crate::build::graph;
use crate::case::{ARRIVAL, Case};
use crate::database::database;
use crate::{goes, stands};

fn outcome(case: &Case) -> Outcome {
    case.after().visit.expect("a visit on record").outcome
}

#[test]
fn a_visit_is_made_before_the_wish_is_pursued() {
    let case = Case::at(&database(), "Running").newly_desired("End");
    goes(
        &case.new_visit("Servicing"),
        "Servicing",
        By::Child,
        Why::Visit,
    );
}

#[test]
fn a_new_visit_gets_the_present_number_and_the_one_before_it_with_a_transition() {
    let running = Case::at(&database(), "Running").task(Task::Running);
    let visit = running.new_visit("Servicing").after().visit;
    assert_eq!(visit.map(|visit| visit.transition), Some(ARRIVAL));
    let case = Case::at(&database(), "Running").new_visit("Servicing");
    let after = case.after();
    assert_eq!(after.transition, ARRIVAL + 1);
    assert_eq!(after.visit.map(|visit| visit.transition), Some(ARRIVAL));
    assert_eq!(outcome(&case), Outcome::Pending);
}

#[test]
fn a_holding_state_is_left_only_for_a_visit_made_after_the_arrival() {
    let failed = Case::at(&database(), "Failed").desired("Failed", 1);
    stands(
        &failed.clone().visit("Servicing", ARRIVAL - 1),
        Stand::Settled,
    );
    goes(
        &failed.visit("Servicing", ARRIVAL),
        "Servicing",
        By::Child,
        Why::Visit,
    );
}

#[test]
fn an_older_visit_does_not_hide_a_wish_that_may_lead_out_of_a_holding_state() {
    let failed = Case::at(&database(), "Failed").visit("Servicing", 1);
    goes(
        &failed.newly_desired("End"),
        "Stopping",
        By::Child,
        Why::DesiredState,
    );
}

#[test]
fn a_visit_is_reached_when_its_action_ended_well() {
    let servicing = Case::at(&database(), "Servicing").visit("Servicing", 1);
    for said in [Said::Next, Said::To(servicing.id("End"))] {
        assert_eq!(outcome(&servicing.clone().said(said)), Outcome::Reached);
    }
}

#[test]
fn a_visit_is_not_reached_by_failing_waiting_or_naming_a_trigger() {
    let servicing = Case::at(&database(), "Servicing").visit("Servicing", 1);
    for said in [
        Said::Failed { permanent: true },
        Said::Failed { permanent: false },
        Said::Wait,
        Said::To(servicing.id("Failed")),
        Said::To(servicing.id("Start")),
    ] {
        assert_eq!(
            outcome(&servicing.clone().said(said)),
            Outcome::Pending,
            "{said:?}"
        );
    }
    assert_eq!(outcome(&servicing), Outcome::Pending);
}

#[test]
fn a_visit_is_reached_only_by_an_action_of_a_later_transition_than_its_own() {
    let case = Case::at(&database(), "Servicing").said(Said::Next);
    assert_eq!(
        outcome(&case.clone().visit("Servicing", ARRIVAL)),
        Outcome::Pending
    );
    assert_eq!(outcome(&case.new_visit("Servicing")), Outcome::Pending);
}

#[test]
fn a_visit_that_was_made_is_not_made_again() {
    for made in [
        Outcome::Reached,
        Outcome::Refused,
        Outcome::Overtaken,
        Outcome::NotReplayed,
    ] {
        let case = Case::at(&database(), "Running").visit("Servicing", ARRIVAL);
        let case = case.with(|record, _| {
            record.visit.as_mut().expect("a visit").outcome = made;
        });
        stands(&case, Stand::Settled);
        assert_eq!(outcome(&case), made);
    }
}

#[test]
fn a_visit_without_a_way_from_where_the_object_rests_is_refused() {
    let graph = graph(&[
        "entry A >V",
        "visit V >Up >End",
        "rest Up >End -V",
        "leaf End",
    ]);
    let case = Case::at(&graph, "Up").desired("Up", 1).new_visit("V");
    stands(&case, Stand::Settled);
    assert_eq!(outcome(&case), Outcome::Refused);
    // The write that ends the work says it too: another one is not needed.
    let ending = case.clone().said(Said::Stay);
    assert_eq!(outcome(&ending), Outcome::Refused);
    let moving = Case::at(&graph, "Up").newly_desired("End").new_visit("V");
    assert_eq!(outcome(&moving), Outcome::Pending);
    let busy = moving.desired("Up", 1).task(Task::Running);
    assert_eq!(outcome(&busy.new_visit("V")), Outcome::Pending);
}

#[test]
fn a_visit_to_what_is_none_is_refused() {
    let case = Case::at(&database(), "Start").task(Task::Running);
    assert_eq!(
        outcome(&case.clone().new_visit("Stopping")),
        Outcome::Refused
    );
    let unknown = case.with(|_, facts| {
        facts.visit = Some(Visit {
            state: Named::Unknown,
            fresh: true,
        });
    });
    assert_eq!(outcome(&unknown), Outcome::Refused);
}

#[test]
fn a_visit_to_a_resting_state_leads_nowhere() {
    let graph = graph(&["entry A >B", "rest B >C >D", "rest C >D", "leaf D"]);
    let case = Case::at(&graph, "B").new_visit("C");
    stands(&case, Stand::Settled);
    assert_eq!(outcome(&case), Outcome::Refused);
}

#[test]
fn a_visit_that_is_taken_out_of_the_spec_is_overtaken() {
    let case = Case::at(&database(), "Running").visit("Servicing", ARRIVAL);
    let case = case.with(|_, facts| facts.visit = None);
    stands(&case, Stand::Settled);
    assert_eq!(outcome(&case), Outcome::Overtaken);
}

#[test]
fn a_visit_that_was_reached_stays_reached_when_it_is_taken_out_of_the_spec() {
    let case = Case::at(&database(), "Running").with(|record, _| {
        record.visit = Some(VisitRecord {
            state: Named::Unknown,
            transition: 2,
            outcome: Outcome::Reached,
        });
    });
    assert_eq!(outcome(&case), Outcome::Reached);
}

#[test]
fn a_newer_visit_takes_the_place_of_an_older_one() {
    let case = Case::at(&database(), "Running")
        .visit("Servicing", 2)
        .new_visit("Servicing")
        .task(Task::Running);
    let visit = case.after().visit.expect("a visit");
    assert_eq!(
        (visit.transition, visit.outcome),
        (ARRIVAL, Outcome::Pending)
    );
}

#[test]
fn a_wish_stands_during_and_after_a_visit() {
    let case = Case::at(&database(), "Servicing")
        .visit("Servicing", 1)
        .said(Said::Next);
    goes(&case, "Running", By::Child, Why::DesiredState);
}

#[test]
fn a_deletion_makes_no_visit() {
    let case = Case::at(&database(), "Running").new_visit("Servicing");
    goes(&case.deleting(), "Stopping", By::Child, Why::Deletion);
}

#[test]
fn a_deletion_leaves_a_visit_as_it_is_on_record() {
    let servicing = Case::at(&database(), "Servicing").visit("Servicing", 1);
    let made = servicing.said(Said::Next).deleting();
    assert_eq!(outcome(&made), Outcome::Pending);
}

#[test]
fn a_visit_whose_action_failed_for_good_waits_where_it_is() {
    let case = Case::at(&database(), "Servicing")
        .visit("Servicing", 1)
        .phase(Phase::Failed);
    stands(&case, Stand::Failed);
    assert_eq!(outcome(&case), Outcome::Pending);
}
