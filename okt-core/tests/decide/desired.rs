//! The desired state: when the object moves towards it, and under which number it is recorded.

use okt_core::decide::{By, StayReason, Why};
use okt_core::facts::{ActionResult, Named, Task};

use crate::build::graph;
use crate::case::{ARRIVAL, Case, REVISION};
use crate::database::database;
use crate::{goes, stands};

fn changed(case: Case) -> Case {
    case.with(|_, facts| facts.revision = REVISION + 1)
}

#[test]
fn an_object_that_rests_elsewhere_moves_towards_the_desired_state() {
    for made in [1, ARRIVAL - 1, ARRIVAL] {
        let case = Case::at(&database(), "Running").desired("End", made);
        goes(&case, "Stopping", By::Child, Why::DesiredState);
    }
}

#[test]
fn the_default_desired_state_is_the_first_resting_state_on_the_next_way() {
    let graph = graph(&[
        "entry A >Last >B",
        "B >Last >C",
        "rest C >Up >Last",
        "rest Up >C >Last",
        "leaf Last",
    ]);
    goes(&Case::at(&graph, "Up"), "C", By::Child, Why::DesiredState);
}

#[test]
fn the_default_desired_state_is_the_leaf_of_a_next_way_without_a_resting_state() {
    let graph = graph(&["entry A >Side >Last", "leaf Side", "leaf Last"]);
    assert!(Case::at(&graph, "Last").after().desired.reached);
    assert!(!Case::at(&graph, "Side").after().desired.reached);
}

#[test]
fn a_holding_state_is_left_only_for_a_desired_state_set_after_the_arrival() {
    let failed = Case::at(&database(), "Failed");
    stands(
        &failed.clone().desired("Running", ARRIVAL - 1),
        StayReason::Settled,
    );
    goes(
        &failed.clone().desired("Running", ARRIVAL),
        "Running",
        By::Child,
        Why::DesiredState,
    );
    goes(
        &failed.newly_desired("End"),
        "Stopping",
        By::Child,
        Why::DesiredState,
    );
}

#[test]
fn a_new_desired_state_gets_the_current_number() {
    let case = Case::at(&database(), "Running")
        .task(Task::Running)
        .newly_desired("End");
    assert_eq!(case.after().desired.transition, ARRIVAL);
    assert_eq!(case.after().desired.state, Named::Known(case.id("End")));
}

#[test]
fn a_desired_state_first_recorded_with_a_transition_gets_the_number_before_it() {
    let case = Case::at(&database(), "Running").newly_desired("End");
    let after = case.after();
    assert_eq!(
        (after.transition, after.desired.transition),
        (ARRIVAL + 1, ARRIVAL)
    );
}

#[test]
fn other_writes_keep_the_recorded_number() {
    let case = Case::at(&database(), "Running").desired("End", 3);
    assert_eq!(case.after().desired.transition, 3);
    let ended = Case::at(&database(), "Running")
        .desired("Running", 3)
        .said(ActionResult::Stay);
    assert_eq!(ended.after().desired.transition, 3);
}

#[test]
fn a_changed_revision_after_the_arrival_counts_as_a_new_desired_state() {
    let failed = changed(Case::at(&database(), "Failed").desired("Running", 1));
    goes(&failed, "Running", By::Child, Why::DesiredState);
    let waiting = changed(Case::at(&database(), "Running").desired("End", 1));
    goes(
        &waiting.task(Task::Waiting),
        "Stopping",
        By::Child,
        Why::DesiredState,
    );
}

#[test]
fn the_write_that_first_records_a_changed_revision_sets_the_current_number() {
    let rest = Case::at(&database(), "Running").desired("Running", 1);
    let rerun = changed(rest.clone());
    let retry = changed(rest.said(ActionResult::Failed { permanent: false }));
    let resumed = changed(Case::at(&database(), "Start").task(Task::Absent));
    for case in [rerun, retry, resumed] {
        assert_eq!(case.after().desired.transition, ARRIVAL);
    }
}

#[test]
fn a_revision_that_changes_together_with_a_transition_is_older_than_the_new_state() {
    let case = changed(Case::at(&database(), "Start").said(ActionResult::Next));
    let after = case.after();
    assert_eq!(
        (after.transition, after.desired.transition),
        (ARRIVAL + 1, ARRIVAL)
    );
    assert_eq!(after.revision, REVISION + 1);
}

#[test]
fn a_desired_state_without_a_route_does_not_move_the_object() {
    let graph = graph(&["entry A >B", "rest B >End -C", "rest C >End -B", "leaf End"]);
    stands(
        &Case::at(&graph, "B").newly_desired("C"),
        StayReason::Settled,
    );
}

#[test]
fn a_desired_state_that_the_graph_does_not_have_does_not_move_the_object() {
    let case = Case::at(&database(), "Running")
        .with(|_, facts| facts.desired.state = Some(Named::Unknown));
    stands(&case, StayReason::Settled);
    assert_eq!(case.after().desired.state, Named::Unknown);
}

#[test]
fn a_desired_state_is_reached_only_once_its_work_succeeded() {
    let pending = Case::at(&database(), "Start").said(ActionResult::Next);
    assert_eq!(pending.after().state, pending.id("Running"));
    assert!(!pending.after().desired.reached);
    let failed = Case::at(&graph(&["entry A >B", "rest B >C", "leaf C"]), "B")
        .said(ActionResult::Failed { permanent: true });
    assert!(!failed.after().desired.reached);
    let idle = Case::at(&database(), "Failed")
        .named("End")
        .newly_desired("End");
    assert!(!idle.after().desired.reached);
    let stopped = Case::at(&database(), "Stopping")
        .said(ActionResult::Next)
        .desired("End", 1);
    assert!(stopped.after().desired.reached);
}
