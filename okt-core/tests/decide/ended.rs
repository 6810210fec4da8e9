//! Rules 4 and 5: where an object goes when its work is over, and refused answers.

use okt_core::decide::{By, Ending, StayReason, Verdict, Why};
use okt_core::facts::ActionResult;
use okt_core::record::Phase;
use okt_core::{Graph, StateId};

use crate::build::graph;
use crate::case::{ARRIVAL, Case};
use crate::database::database;
use crate::{goes, stands};

/// A passing state with children that lead to each desired state by separate ways.
fn fork() -> Graph<'static> {
    graph(&[
        "entry Fork >Up >Other >Last",
        "rest Up >Other >Last",
        "visit Other >Up >Last",
        "leaf Last",
    ])
}

#[test]
fn a_passing_state_goes_where_its_handler_named_and_nowhere_else() {
    let case = Case::at(&fork(), "Fork").newly_desired("Up").named("Last");
    goes(&case, "Last", By::Child, Why::Handler);
}

#[test]
fn next_leads_from_a_passing_state_towards_the_desired_state() {
    let case = Case::at(&fork(), "Fork").said(ActionResult::Next);
    goes(
        &case.clone().desired("Up", 1),
        "Up",
        By::Child,
        Why::DesiredState,
    );
    goes(
        &case.newly_desired("Last"),
        "Last",
        By::Child,
        Why::DesiredState,
    );
}

#[test]
fn next_leads_from_a_passing_state_towards_an_open_visit_first() {
    let case = Case::at(&fork(), "Fork").said(ActionResult::Next);
    goes(&case.visit("Other", 1), "Other", By::Child, Why::Visit);
}

#[test]
fn the_desired_state_counts_if_the_visit_has_no_route() {
    let case = Case::at(&database(), "Servicing").said(ActionResult::Next);
    goes(
        &case.visit("Servicing", 1),
        "Running",
        By::Child,
        Why::DesiredState,
    );
}

#[test]
fn next_is_the_last_child_if_no_desired_state_leads_on() {
    let case = Case::at(&database(), "Stopping").said(ActionResult::Next);
    goes(&case, "End", By::Child, Why::Next);
}

#[test]
fn during_deletion_next_is_the_way_out() {
    let case = Case::at(&fork(), "Fork").said(ActionResult::Next);
    goes(&case.deleting(), "Last", By::Child, Why::Deletion);
}

#[test]
fn a_passing_state_without_work_is_left_at_once() {
    let graph = graph(&["entry idle A >B", "leaf B"]);
    goes(&Case::at(&graph, "A"), "B", By::Child, Why::DesiredState);
}

#[test]
fn a_state_that_no_edge_leads_to_is_refused_and_nothing_moves() {
    for state in ["Start", "Stopping"] {
        let case = Case::at(&database(), state).named("Servicing");
        let refused = Verdict::End(Ending::Refused(case.id("Servicing")));
        assert_eq!(case.decide(), refused, "{state}");
        assert_eq!(case.after().state, case.id(state));
    }
}

#[test]
fn a_refused_answer_is_not_taken_again() {
    let case = Case::at(&database(), "Stopping").named("Servicing");
    assert_eq!(case.after().action.map(|a| a.phase), Some(Phase::Failed));
    let again = Case::at(&database(), "Stopping").phase(Phase::Failed);
    stands(&again, StayReason::Failed);
}

#[test]
fn next_without_a_child_is_refused() {
    // No graph that passes the rules has such a state.
    let graph = graph(&["entry A !B", "leaf B"]);
    assert_eq!(
        Case::at(&graph, "A").said(ActionResult::Next).decide(),
        Verdict::End(Ending::Refused(StateId::UNKNOWN))
    );
}

#[test]
fn a_resting_state_goes_where_its_handler_named() {
    let case = Case::at(&database(), "Running").named("Stopping");
    goes(&case, "Stopping", By::Child, Why::Handler);
}

#[test]
fn a_resting_state_whose_work_ended_without_a_name_stays() {
    let case = Case::at(&database(), "Running").said(ActionResult::Stay);
    assert_eq!(case.decide(), Verdict::End(Ending::Well));
    let after = case.after();
    assert_eq!(after.action.map(|a| a.phase), Some(Phase::Done));
    assert!(after.desired.reached);
}

#[test]
fn the_next_of_a_resting_state_is_raised_only_by_its_handler() {
    stands(&Case::at(&database(), "Running"), StayReason::Settled);
    let case = Case::at(&database(), "Running").said(ActionResult::Next);
    goes(&case, "Stopping", By::Child, Why::Next);
}

#[test]
fn in_a_resting_state_a_visit_beats_next_and_the_edge_declared_first_beats_both() {
    let case = Case::at(&fork(), "Up").said(ActionResult::Next);
    goes(
        &case.clone().new_visit("Other"),
        "Other",
        By::Child,
        Why::Visit,
    );
    let named = Case::at(&fork(), "Up").named("Last").new_visit("Other");
    goes(&named, "Other", By::Child, Why::Visit);
    let other = Case::at(&fork(), "Up").named("Other").newly_desired("Last");
    goes(&other, "Other", By::Child, Why::Handler);
}

#[test]
fn a_child_that_the_observation_named_is_taken_at_rest_and_never_out_of_a_holding_state() {
    let events: &'static [StateId] = &[StateId(3)];
    let event = |state| Case::at(&database(), state).with(|_, facts| facts.events = events);
    goes(&event("Running"), "Stopping", By::Child, Why::Observed);
    stands(&event("Failed").desired("Failed", 1), StayReason::Settled);
    goes(
        &event("Running").deleting(),
        "Stopping",
        By::Child,
        Why::Deletion,
    );
}

#[test]
fn the_handler_of_a_holding_state_may_lead_out_of_it() {
    let graph = graph(&["entry A >B", "rest hold B >A >C", "leaf C"]);
    let case = Case::at(&graph, "B").desired("B", 1);
    goes(&case.clone().named("A"), "A", By::Child, Why::Handler);
    goes(&case.said(ActionResult::Next), "C", By::Child, Why::Next);
}

#[test]
fn work_that_fails_permanently_in_a_resting_state_does_not_delay_the_desired_state() {
    let case = Case::at(&graph(&["entry A >B", "rest B >C", "leaf C"]), "B")
        .said(ActionResult::Failed { permanent: true })
        .desired("C", ARRIVAL);
    goes(&case, "C", By::Child, Why::DesiredState);
}
