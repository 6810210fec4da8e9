//! Deletion: the way out, its precedence, and the removal of the finalizer.

use std::time::Duration;

use okt_core::decide::{By, Ending, Run, StayReason, Verdict, Why};
use okt_core::facts::{ActionResult, Observed, Task};
use okt_core::record::Phase;

use crate::build::graph;
use crate::case::{Case, REVISION};
use crate::database::database;
use crate::{goes, stands};

const RELEASE: Verdict = Verdict::Release;
const FAILED: ActionResult = ActionResult::Failed { permanent: false };

/// An action that was begun while the object was being deleted.
fn leaving(case: Case) -> Case {
    case.deleting().with(|record, _| {
        record.action.as_mut().expect("an action").leaving = true;
    })
}

#[test]
fn a_deletion_replaces_desired_state_and_visit() {
    let case = Case::at(&database(), "Running")
        .desired("Running", 1)
        .new_visit("Servicing")
        .deleting();
    goes(&case, "Stopping", By::Child, Why::Deletion);
}

#[test]
fn a_hold_does_not_stop_a_deletion() {
    goes(
        &Case::at(&database(), "Failed").deleting(),
        "Stopping",
        By::Child,
        Why::Deletion,
    );
}

#[test]
fn a_pause_does_not_stop_a_deletion() {
    let case = Case::at(&database(), "Running").with(|_, facts| facts.paused = true);
    goes(&case.deleting(), "Stopping", By::Child, Why::Deletion);
}

#[test]
fn observations_move_nothing_during_deletion() {
    let case = Case::at(&database(), "Running").deleting();
    for observed in [Observed::Absent, Observed::In(case.id("Start"))] {
        let case = case.clone().with(|_, facts| facts.observed = observed);
        goes(&case, "Stopping", By::Child, Why::Deletion);
    }
}

#[test]
fn work_that_runs_is_awaited_during_deletion() {
    let case = Case::at(&database(), "Running").task(Task::Running);
    stands(&case.deleting(), StayReason::Running);
}

#[test]
fn deletion_counts_the_failure_of_an_action_begun_before_it_as_next() {
    for (state, to) in [("Servicing", "End"), ("Stopping", "End")] {
        for permanent in [true, false] {
            let case = Case::at(&database(), state).said(ActionResult::Failed { permanent });
            goes(&case.deleting(), to, By::Child, Why::Deletion);
        }
    }
}

#[test]
fn deletion_counts_a_waiting_action_begun_before_it_as_next() {
    for task in [
        Task::Waiting,
        Task::Due,
        Task::Ended(ActionResult::Wait(Duration::ZERO)),
    ] {
        for (state, to) in [("Running", "Stopping"), ("Servicing", "End")] {
            let case = Case::at(&database(), state).task(task);
            goes(&case.deleting(), to, By::Child, Why::Deletion);
        }
    }
}

#[test]
fn on_error_counts_a_failure_before_the_deletion_counts_it_as_next() {
    let attempt = |attempt| {
        Case::at(&database(), "Running")
            .said(FAILED)
            .deleting()
            .with(|_, facts| facts.attempt = attempt)
    };
    goes(&attempt(2), "Stopping", By::Child, Why::Deletion);
    goes(&attempt(3), "Failed", By::Trigger, Why::OnError);
    let permanent = Case::at(&database(), "Running").said(ActionResult::Failed { permanent: true });
    goes(&permanent.deleting(), "Failed", By::Trigger, Why::OnError);
}

#[test]
fn after_a_restart_an_action_begun_before_the_deletion_is_resumed() {
    let case = Case::at(&database(), "Stopping").task(Task::Absent);
    assert_eq!(case.deleting().decide(), Verdict::Run(Run::Resume));
}

#[test]
fn an_action_resumed_under_another_revision_still_counts_as_begun_before_the_deletion() {
    let case = Case::at(&database(), "Stopping")
        .task(Task::Absent)
        .deleting()
        .with(|_, facts| facts.revision = REVISION + 1);
    let resumed = case.after().action.expect("an action");
    assert_eq!((resumed.run, resumed.leaving), (2, false));
}

#[test]
fn an_action_begun_on_the_way_out_is_retried() {
    let stopping = Case::at(&database(), "Stopping");
    assert_eq!(
        leaving(stopping.clone().said(FAILED)).decide(),
        Verdict::Retry { counted: false }
    );
    stands(
        &leaving(stopping.clone().said(ActionResult::Wait(Duration::ZERO))),
        StayReason::Waiting,
    );
    stands(
        &leaving(stopping.clone().task(Task::Waiting)),
        StayReason::Waiting,
    );
    assert_eq!(
        leaving(stopping.task(Task::Due)).decide(),
        Verdict::Run(Run::Again)
    );
}

#[test]
fn an_action_begun_on_the_way_out_is_marked_so() {
    let case = Case::at(&database(), "Running").deleting();
    assert!(case.after().action.expect("an action").leaving);
}

#[test]
fn no_desired_state_redirects_an_action_begun_on_the_way_out() {
    let graph = graph(&["entry A >B", "rest B >C >D", "rest C >D", "leaf D"]);
    let case = Case::at(&graph, "B").task(Task::Waiting).newly_desired("C");
    stands(&leaving(case), StayReason::Waiting);
}

#[test]
fn a_passing_state_that_failed_permanently_takes_the_way_out() {
    let case = Case::at(&database(), "Stopping").phase(Phase::Failed);
    goes(&case.deleting(), "End", By::Child, Why::Deletion);
    let now = Case::at(&database(), "Stopping").said(ActionResult::Failed { permanent: true });
    goes(&leaving(now), "End", By::Child, Why::Deletion);
}

#[test]
fn a_resting_state_that_failed_permanently_takes_the_way_out() {
    let graph = graph(&["entry A >B", "rest B >C", "leaf C"]);
    let case = Case::at(&graph, "B").phase(Phase::Failed);
    goes(&case.deleting(), "C", By::Child, Why::Deletion);
}

#[test]
fn the_finalizer_is_removed_in_a_leaf_that_is_idle_or_whose_action_succeeded() {
    let graph = graph(&["entry A >B", "leaf B"]);
    let done = Case::at(&graph, "B");
    let now = Case::at(&graph, "B").said(ActionResult::Stay);
    let idle = Case::at(&database(), "End");
    for case in [done, now, idle] {
        assert_eq!(case.deleting().decide(), RELEASE);
    }
}

#[test]
fn the_finalizer_is_removed_if_nothing_is_recorded() {
    let mut case = Case::nothing(&database());
    case.facts.deleting = true;
    assert_eq!(case.decide(), RELEASE);
}

#[test]
fn the_finalizer_waits_for_the_work_of_the_leaf_which_is_retried() {
    let graph = graph(&["entry A >B", "leaf B"]);
    let leaf = Case::at(&graph, "B");
    stands(
        &leaf.clone().task(Task::Running).deleting(),
        StayReason::Running,
    );
    assert_eq!(
        leaf.clone().said(FAILED).deleting().decide(),
        Verdict::Retry { counted: false }
    );
    stands(
        &leaf.clone().task(Task::Waiting).deleting(),
        StayReason::Waiting,
    );
    let failed = leaf.said(ActionResult::Failed { permanent: true });
    assert_eq!(failed.deleting().decide(), Verdict::End(Ending::Failed));
}

#[test]
fn the_finalizer_stays_in_a_leaf_that_failed_permanently_until_the_generation_changes() {
    let graph = graph(&["entry A >B", "leaf B"]);
    let failed = Case::at(&graph, "B").phase(Phase::Failed).deleting();
    stands(&failed, StayReason::Failed);
    let edited = failed.with(|_, facts| facts.generation = 2);
    assert_eq!(edited.decide(), Verdict::Run(Run::Amended));
}

#[test]
fn no_desired_state_leads_out_of_a_leaf_during_deletion() {
    let case = Case::at(&database(), "End").newly_desired("Running");
    assert_eq!(case.deleting().decide(), RELEASE);
}

#[test]
fn no_desired_state_leads_out_of_a_leaf_that_failed_permanently_during_deletion() {
    let graph = graph(&["entry A >B", "rest B >C", "leaf C"]);
    let failed = Case::at(&graph, "C")
        .phase(Phase::Failed)
        .newly_desired("B");
    stands(&failed.deleting(), StayReason::Failed);
}

#[test]
fn a_successor_that_the_handler_named_counts_during_deletion() {
    let case = Case::at(&database(), "Servicing").named("Running");
    goes(&case.deleting(), "Running", By::Child, Why::Handler);
}
