//! Rule 2: triggers, by cause and by name.

use std::time::Duration;

use okt_core::StateId;
use okt_core::decide::{By, Ending, StayReason, Verdict, Why};
use okt_core::facts::{ActionResult, Observed, Task};
use okt_core::record::Phase;

use crate::build::graph;
use crate::case::{Case, REVISION};
use crate::database::database;
use crate::{goes, stands};

/// The observation names this state as an event.
fn event(case: Case, name: &str) -> Case {
    let events: &'static [StateId] = Box::leak(Box::new([case.id(name)]));
    case.with(|_, facts| facts.events = events)
}

fn after(case: Case, seconds: u64) -> Case {
    case.with(|_, facts| facts.in_state = Duration::from_secs(seconds))
}

#[test]
fn a_trigger_that_the_handler_named_is_taken() {
    let case = Case::at(&database(), "Start").named("Failed");
    goes(&case, "Failed", By::Trigger, Why::Handler);
}

#[test]
fn a_trigger_that_the_observation_named_is_taken() {
    let case = event(Case::at(&database(), "Running"), "Failed");
    goes(&case, "Failed", By::Trigger, Why::Observed);
}

#[test]
fn an_observation_names_no_trigger_of_a_holding_state() {
    let graph = graph(&["entry A >B", "rest hold B !A >C", "leaf C"]);
    stands(
        &event(Case::at(&graph, "B").desired("B", 1), "A"),
        StayReason::Settled,
    );
}

#[test]
fn a_trigger_does_not_wait_for_the_action_in_flight() {
    let case = event(Case::at(&database(), "Start").task(Task::Running), "Failed");
    goes(&case, "Failed", By::Trigger, Why::Observed);
}

#[test]
fn observing_the_target_of_a_trigger_raises_it_even_while_an_action_is_in_flight() {
    let seen = |state: &str| {
        let case = Case::at(&database(), "Start").task(Task::Running);
        let there = case.id(state);
        case.with(|_, facts| facts.observed = Observed::In(there))
    };
    goes(&seen("Failed"), "Failed", By::Trigger, Why::Observed);
    // The target of a child may be observed on the way there.
    stands(&seen("Running"), StayReason::Running);
    let left = seen("Failed").id("Failed");
    let returning = seen("Failed").with(|record, _| record.left = left);
    stands(&returning, StayReason::Running);
}

#[test]
fn while_an_action_is_in_flight_the_previous_state_is_no_event() {
    let case = event(Case::at(&database(), "Start"), "Failed");
    let left = case.id("Failed");
    let case = case.with(|record, _| record.left = left);
    stands(&case.clone().task(Task::Running), StayReason::Running);
    goes(
        &Case::at(&database(), "Running").with(|record, facts| {
            record.left = left;
            facts.events = case.facts.events;
        }),
        "Failed",
        By::Trigger,
        Why::Observed,
    );
}

#[test]
fn an_event_of_the_previous_state_counts_once_an_attempt_has_failed() {
    let case = Case::at(&database(), "Start").task(Task::Running);
    let left = case.id("Failed");
    let case = case.with(|record, facts| {
        record.left = left;
        facts.attempt = 2;
    });
    let named = event(case.clone(), "Failed");
    goes(&named, "Failed", By::Trigger, Why::Observed);
    goes(
        &named.task(Task::Waiting),
        "Failed",
        By::Trigger,
        Why::Observed,
    );
    // Being observed there is no event: the work has not changed the state yet.
    let stays = case.with(|_, facts| facts.observed = Observed::In(left));
    stands(&stays, StayReason::Running);
}

#[test]
fn while_an_action_is_in_flight_the_current_state_is_no_event() {
    // No graph that passes the rules has such an edge.
    let graph = graph(&["entry A !A >B", "leaf B"]);
    stands(
        &event(Case::at(&graph, "A").task(Task::Running), "A"),
        StayReason::Running,
    );
}

#[test]
fn a_reconciliation_that_takes_a_result_ignores_events() {
    let case = event(
        Case::at(&database(), "Running").said(ActionResult::Stay),
        "Failed",
    );
    assert_eq!(case.decide(), Verdict::End(Ending::Well));
}

#[test]
fn the_time_in_a_state_raises_its_trigger_while_the_action_runs() {
    let servicing = Case::at(&database(), "Servicing").task(Task::Running);
    stands(&after(servicing.clone(), 30 * 60 - 1), StayReason::Running);
    goes(
        &after(servicing, 30 * 60),
        "Failed",
        By::Trigger,
        Why::After,
    );
}

#[test]
fn of_two_triggers_the_one_declared_first_is_taken() {
    for (lines, to, why) in [
        (
            [
                "entry A !B:after60 !C:change >D",
                "leaf B",
                "leaf C",
                "leaf D",
            ],
            "B",
            Why::After,
        ),
        (
            [
                "entry A !C:change !B:after60 >D",
                "leaf B",
                "leaf C",
                "leaf D",
            ],
            "C",
            Why::OnChange,
        ),
    ] {
        let case = Case::at(&graph(&lines), "A")
            .task(Task::Running)
            .with(|_, facts| facts.revision = REVISION + 1);
        goes(&after(case, 60), to, By::Trigger, why);
    }
}

#[test]
fn triggers_come_before_children() {
    let graph = graph(&["entry A !B:after60 >C", "leaf B", "leaf C"]);
    goes(
        &after(Case::at(&graph, "A").named("C"), 60),
        "B",
        By::Trigger,
        Why::After,
    );
}

#[test]
fn a_name_means_the_child_if_a_trigger_has_the_same_target() {
    let graph = graph(&["entry A !C:after60 >C", "leaf C"]);
    let named = Case::at(&graph, "A").named("C");
    goes(&after(named, 59), "C", By::Child, Why::Handler);
    let running = event(Case::at(&graph, "A").task(Task::Running), "C");
    stands(&after(running.clone(), 59), StayReason::Running);
    goes(&after(running, 60), "C", By::Trigger, Why::After);
}

#[test]
fn on_error_is_raised_by_the_last_attempt_that_it_allows() {
    let attempt = |attempt| {
        Case::at(&database(), "Start")
            .said(ActionResult::Failed { permanent: false })
            .with(|_, facts| facts.attempt = attempt)
    };
    assert_eq!(attempt(4).decide(), Verdict::Retry { counted: true });
    goes(&attempt(5), "Failed", By::Trigger, Why::OnError);
}

#[test]
fn a_permanent_failure_counts_as_the_last_attempt() {
    let case = Case::at(&database(), "Start").said(ActionResult::Failed { permanent: true });
    goes(&case, "Failed", By::Trigger, Why::OnError);
}

#[test]
fn attempts_that_failed_count_after_a_restart_and_the_one_under_way_does_not() {
    let attempt = |attempt| {
        Case::at(&database(), "Start")
            .task(Task::Absent)
            .with(|_, facts| facts.attempt = attempt)
    };
    assert!(matches!(attempt(5).decide(), Verdict::Run(_)));
    goes(&attempt(6), "Failed", By::Trigger, Why::OnError);
}

#[test]
fn waiting_is_no_failure() {
    let case = Case::at(&database(), "Start")
        .said(ActionResult::Wait(Duration::ZERO))
        .with(|_, facts| facts.attempt = 5);
    stands(&case, StayReason::Waiting);
}

#[test]
fn work_that_succeeded_forgets_the_attempts_that_failed() {
    let case = Case::at(&database(), "Running")
        .said(ActionResult::Stay)
        .with(|_, facts| facts.attempt = 9);
    assert_eq!(case.decide(), Verdict::End(Ending::Well));
}

#[test]
fn triggers_by_cause_lead_out_of_a_holding_state() {
    let graph = graph(&["entry A >B", "rest hold B !A:after60 >C", "leaf C"]);
    goes(
        &after(Case::at(&graph, "B"), 60),
        "A",
        By::Trigger,
        Why::After,
    );
}

#[test]
fn the_handler_of_a_holding_state_may_name_its_trigger() {
    let graph = graph(&["entry A >B", "rest hold B !A >C", "leaf C"]);
    goes(
        &Case::at(&graph, "B").named("A"),
        "A",
        By::Trigger,
        Why::Handler,
    );
}

#[test]
fn a_deletion_raises_on_delete_also_while_an_action_is_in_flight() {
    let graph = graph(&["entry A !C:delete >B", "rest B >C", "leaf C"]);
    let case = Case::at(&graph, "A").task(Task::Running);
    stands(&case, StayReason::Running);
    goes(&case.deleting(), "C", By::Trigger, Why::OnDelete);
}

#[test]
fn triggers_by_cause_and_by_handler_count_during_deletion_and_observed_ones_do_not() {
    let servicing = Case::at(&database(), "Servicing").task(Task::Running);
    goes(
        &after(servicing.clone(), 30 * 60).deleting(),
        "Failed",
        By::Trigger,
        Why::After,
    );
    goes(
        &servicing.named("Failed").deleting(),
        "Failed",
        By::Trigger,
        Why::Handler,
    );
    let observed = event(Case::at(&database(), "Running"), "Failed").deleting();
    goes(&observed, "Stopping", By::Child, Why::Deletion);
}

#[test]
fn on_change_is_raised_when_the_revision_differs_from_that_of_its_last_edge() {
    let graph = graph(&["entry A >B", "rest B !A:change >C", "leaf C"]);
    let case = Case::at(&graph, "B").with(|_, facts| facts.revision = REVISION + 1);
    goes(&case, "A", By::Trigger, Why::OnChange);
    assert_eq!(case.after().changed, REVISION + 1);
}

#[test]
fn a_change_made_elsewhere_is_not_lost() {
    // The current state was entered under the new revision, by an edge that is not `on_change`.
    let graph = graph(&["entry A >B", "rest B !A:change >C", "leaf C"]);
    let case = Case::at(&graph, "B").with(|record, facts| {
        record.revision = REVISION + 1;
        facts.revision = REVISION + 1;
    });
    goes(&case, "A", By::Trigger, Why::OnChange);
}

#[test]
fn another_edge_does_not_count_as_on_change() {
    let case = Case::at(&database(), "Running")
        .newly_desired("End")
        .with(|_, facts| facts.revision = REVISION + 1);
    let after = case.after();
    assert_eq!((after.revision, after.changed), (REVISION + 1, REVISION));
}

#[test]
fn a_trigger_of_a_state_whose_action_failed_permanently_still_counts() {
    let case = Case::at(&database(), "Servicing").phase(Phase::Failed);
    goes(&after(case, 30 * 60), "Failed", By::Trigger, Why::After);
}

#[test]
fn a_deadline_over_several_states_counts_its_own_time() {
    let graph = graph(&[
        "entry A !D:deadline60 !D:error2 >B",
        "rest B >C",
        "leaf C",
        "rest hold idle D >C",
    ]);
    let under = |seconds| {
        let case = after(Case::at(&graph, "A").task(Task::Running), 3600);
        case.with(|_, facts| facts.in_deadline = Duration::from_secs(seconds))
    };
    stands(&under(59), StayReason::Running);
    goes(&under(60), "D", By::Trigger, Why::After);
}
