//! Leaves: which desired states and visits lead out of them.

use okt_core::decide::{By, Ending, Run, StayReason, Verdict, Why};
use okt_core::facts::{ActionResult, Task};
use okt_core::record::Phase;
use okt_core::{Graph, StateId};

use crate::build::graph;
use crate::case::{ARRIVAL, Case, REVISION};
use crate::database::database;
use crate::{goes, stands};

/// A batch: it succeeds or breaks, and a spec may ask for either.
fn batch() -> Graph<'static> {
    graph(&["entry Work >Broken >Done", "leaf Broken", "leaf idle Done"])
}

fn requested(case: Case) -> Case {
    case.with(|_, facts| facts.desired.requested = true)
}

#[test]
fn an_older_desired_state_does_not_lead_out_of_a_leaf() {
    stands(
        &Case::at(&database(), "End").desired("Running", ARRIVAL - 1),
        StayReason::Settled,
    );
}

#[test]
fn a_desired_state_set_after_the_arrival_leads_out_of_a_leaf_by_the_entry() {
    let end = Case::at(&database(), "End");
    goes(
        &end.clone().newly_desired("Running"),
        "Start",
        By::Reentry,
        Why::DesiredState,
    );
    goes(
        &end.desired("Running", ARRIVAL),
        "Start",
        By::Reentry,
        Why::DesiredState,
    );
}

#[test]
fn a_visit_made_after_the_arrival_leads_out_of_a_leaf() {
    let end = Case::at(&database(), "End").desired("End", 1);
    goes(
        &end.clone().new_visit("Servicing"),
        "Start",
        By::Reentry,
        Why::Visit,
    );
    stands(&end.visit("Servicing", ARRIVAL - 1), StayReason::Settled);
}

#[test]
fn a_desired_leaf_without_a_request_is_recorded_as_older_and_does_not_lead_out_of_a_leaf() {
    for desired in ["Done", "Broken"] {
        let case = Case::at(&batch(), "Done").newly_desired(desired);
        stands(&case, StayReason::Settled);
        assert_eq!(case.after().desired.transition, ARRIVAL - 1);
    }
}

#[test]
fn a_desired_leaf_with_a_new_request_leads_out_of_a_leaf() {
    for desired in ["Done", "Broken"] {
        let case = requested(Case::at(&batch(), "Done").newly_desired(desired));
        goes(&case, "Work", By::Reentry, Why::DesiredState);
    }
}

#[test]
fn a_changed_revision_leads_out_of_a_leaf_only_towards_a_state_that_is_no_leaf() {
    let changed = |case: Case| case.with(|_, facts| facts.revision = REVISION + 1);
    let done = changed(Case::at(&batch(), "Broken").desired("Done", 1));
    stands(&done, StayReason::Settled);
    assert_eq!(done.after().desired.transition, 1);
    let running = changed(Case::at(&database(), "End").desired("Running", 1));
    goes(&running, "Start", By::Reentry, Why::DesiredState);
}

#[test]
fn the_work_of_a_leaf_ends_before_it_is_left() {
    let broken = requested(Case::at(&batch(), "Broken").newly_desired("Done"));
    stands(&broken.clone().task(Task::Running), StayReason::Running);
    goes(
        &broken.said(ActionResult::Stay),
        "Work",
        By::Reentry,
        Why::DesiredState,
    );
}

#[test]
fn the_work_of_a_leaf_succeeds_only_without_naming_a_state() {
    for said in [ActionResult::Stay, ActionResult::Next] {
        let case = Case::at(&batch(), "Broken").said(said);
        assert_eq!(case.decide(), Verdict::End(Ending::Well));
    }
    let case = Case::at(&batch(), "Broken").named("Done");
    assert_eq!(case.decide(), Verdict::End(Ending::Refused(StateId(2))));
}

#[test]
fn the_work_of_a_leaf_is_retried() {
    let failed = |permanent| Case::at(&batch(), "Broken").said(ActionResult::Failed { permanent });
    assert_eq!(failed(false).decide(), Verdict::Retry { counted: false });
    assert_eq!(failed(true).decide(), Verdict::End(Ending::Failed));
}

#[test]
fn the_work_of_a_leaf_that_failed_permanently_waits_for_another_generation() {
    let failed = Case::at(&batch(), "Broken").phase(Phase::Failed);
    stands(&failed, StayReason::Failed);
    let edited = failed.with(|_, facts| facts.generation = 2);
    assert_eq!(edited.decide(), Verdict::Run(Run::Amended));
}

#[test]
fn a_desired_state_that_a_spec_may_not_ask_for_leads_out_of_no_leaf() {
    stands(
        &Case::at(&database(), "End").newly_desired("Stopping"),
        StayReason::Settled,
    );
}

#[test]
fn a_reentry_takes_over_every_change_so_far_and_is_no_jump() {
    let case = Case::at(&database(), "End")
        .newly_desired("Running")
        .with(|_, facts| facts.revision = REVISION + 1);
    let after = case.after();
    assert_eq!((after.changed, after.jumps), (REVISION + 1, 0));
    assert_eq!(after.desired.transition, ARRIVAL);
}
