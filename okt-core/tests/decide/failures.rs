//! Permanent failures, changed revisions and generations.

use okt_core::Graph;
use okt_core::decide::{By, Ending, Run, StayReason, Verdict, Why};
use okt_core::facts::{ActionResult, Task};
use okt_core::record::Phase;

use crate::build::graph;
use crate::case::{ARRIVAL, Case, REVISION};
use crate::database::database;
use crate::{goes, stands};

fn plain() -> Graph<'static> {
    graph(&["entry A >B", "rest B >C", "leaf C"])
}

fn changed(case: Case) -> Case {
    case.with(|_, facts| facts.revision = REVISION + 1)
}

#[test]
fn a_permanent_failure_without_on_error_ends_the_action() {
    for state in ["A", "B"] {
        let case = Case::at(&plain(), state).said(ActionResult::Failed { permanent: true });
        assert_eq!(case.decide(), Verdict::End(Ending::Failed), "{state}");
        let action = case.after().action.expect("an action");
        assert_eq!(action.phase, Phase::Failed);
    }
}

#[test]
fn an_ended_action_remembers_the_generation_it_was_started_under() {
    let case = Case::at(&plain(), "B")
        .said(ActionResult::Failed { permanent: true })
        .with(|_, facts| {
            facts.started_under = 2;
            facts.generation = 3;
        });
    assert_eq!(case.after().action.map(|action| action.generation), Some(2));
}

#[test]
fn work_that_failed_permanently_runs_again_under_its_id_when_the_generation_differs() {
    for state in ["A", "B"] {
        let failed = Case::at(&plain(), state).phase(Phase::Failed);
        stands(&failed, StayReason::Failed);
        let edited = failed.with(|_, facts| facts.generation = 2);
        assert_eq!(edited.decide(), Verdict::Run(Run::Amended));
        let action = edited.after().action.expect("an action");
        assert_eq!(
            (action.run, action.phase, action.generation),
            (1, Phase::Pending, 2)
        );
    }
}

#[test]
fn work_that_failed_permanently_runs_again_under_a_new_id_when_the_revision_differs() {
    for state in ["A", "B"] {
        let failed = changed(Case::at(&plain(), state).phase(Phase::Failed));
        assert_eq!(failed.decide(), Verdict::Run(Run::Changed));
        let after = failed.after();
        let action = after.action.expect("an action");
        assert_eq!((action.run, action.phase), (2, Phase::Pending));
        assert_eq!(after.revision, REVISION + 1);
    }
}

#[test]
fn a_resting_state_without_on_change_runs_its_action_again_for_a_new_revision() {
    let case = changed(Case::at(&plain(), "B"));
    assert_eq!(case.decide(), Verdict::Run(Run::Changed));
    let after = case.after();
    let action = after.action.expect("an action");
    assert_eq!((action.run, action.phase), (2, Phase::Pending));
    assert_eq!((after.revision, after.changed), (REVISION + 1, REVISION));
}

#[test]
fn a_change_does_not_rerun_the_work_if_on_change_is_declared() {
    let graph = graph(&["entry A >B", "rest B !A:change >C", "leaf C"]);
    // The edge was already taken for this revision.
    let case = changed(Case::at(&graph, "B")).with(|record, _| record.changed = REVISION + 1);
    stands(&case, StayReason::Settled);
}

#[test]
fn an_idle_state_has_nothing_to_run_again() {
    let graph = graph(&["entry A >B", "rest idle B >C", "leaf C"]);
    stands(&changed(Case::at(&graph, "B")), StayReason::Settled);
}

#[test]
fn neither_a_desired_state_nor_a_generation_is_a_change() {
    let graph = graph(&["entry A >B", "rest B !A:change >C", "leaf C"]);
    let case = Case::at(&graph, "B").with(|_, facts| facts.generation = 9);
    stands(&case.clone().newly_desired("B"), StayReason::Settled);
    stands(&case, StayReason::Settled);
}

#[test]
fn a_revision_that_changed_while_the_action_ran_makes_it_run_again() {
    let ended = changed(Case::at(&plain(), "B").said(ActionResult::Stay));
    assert_eq!(ended.decide(), Verdict::End(Ending::Well));
    assert_eq!(ended.after().revision, REVISION);
}

#[test]
fn a_desired_state_leads_on_from_a_state_whose_action_failed_permanently() {
    let failed = Case::at(&plain(), "B").phase(Phase::Failed);
    goes(
        &failed.desired("C", ARRIVAL - 1),
        "C",
        By::Child,
        Why::DesiredState,
    );
}

#[test]
fn the_desired_state_is_reached_again_only_when_the_new_run_succeeded() {
    let rerun = changed(Case::at(&database(), "Running").desired("Running", 1));
    assert!(!rerun.after().desired.reached);
    let ended = rerun.task(Task::Ended(ActionResult::Stay));
    assert!(ended.after().desired.reached);
}
