//! The conditions of an object: the table row by row, and the properties that always hold.

#[path = "common/build.rs"]
mod build;
#[path = "common/case.rs"]
mod case;
#[path = "common/database.rs"]
mod database;
#[path = "common/graphs.rs"]
mod graphs;
#[path = "common/ids.rs"]
mod ids;
#[path = "common/moment.rs"]
mod moment;
#[path = "common/rng.rs"]
mod rng;

use okt_core::conditions::{Condition, MESSAGE_LIMIT, Words, bounded, conditions};
use okt_core::decide::{StayReason, Verdict, decide};
use okt_core::facts::{ActionResult, Named, Observed, Task};
use okt_core::names::{RESERVED, is_reason};
use okt_core::record::{Phase, VisitOutcome};
use okt_core::{ConditionStatus, Declared, Graph, State, StateId};
use proptest::prelude::*;

use build::{graph, with_routes};
use case::{ARRIVAL, Case, REVISION};
use database::database;
use rng::Rng;

use ConditionStatus::{False, True, Unknown};

fn words() -> Words<'static> {
    Words {
        state: "Elder",
        desired: "Younger",
        observed: "the sight",
        ..Words::default()
    }
}

fn failure() -> Words<'static> {
    Words {
        failure: Some(("NoSpace", "the disk is full")),
        ..words()
    }
}

/// Returns all conditions in the write that a case leads to.
fn say(case: &Case, words: &Words<'_>) -> Vec<Condition> {
    let (recorded, decision) = (case.recorded(), case.decide());
    let after = recorded.after(&case.graph, &case.facts, &decision);
    conditions(&case.graph, &after, &case.facts, &decision, words)
}

fn find<'a>(all: &'a [Condition], name: &str) -> Option<&'a Condition> {
    all.iter().find(|condition| condition.name == name)
}

/// Checks `Ready`, and the condition that has the same reason and message; returns the message.
#[track_caller]
fn row(case: &Case, ready: ConditionStatus, beside: Option<&str>, reason: &str) -> String {
    row_with(case, &words(), ready, beside, reason)
}

#[track_caller]
fn row_with(
    case: &Case,
    words: &Words<'_>,
    ready: ConditionStatus,
    beside: Option<&str>,
    reason: &str,
) -> String {
    let all = say(case, words);
    let besides: Vec<&Condition> = (all.iter())
        .filter(|c| matches!(c.name.as_str(), "Reconciling" | "Stalled"))
        .collect();
    let said = find(&all, "Ready").expect("Ready is always there");
    assert_eq!(
        (said.status, said.reason.as_str()),
        (ready, reason),
        "{all:#?}"
    );
    let names: Vec<&str> = besides.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names, Vec::from_iter(beside), "{all:#?}");
    for other in besides {
        assert_eq!(
            (other.status, &other.reason, &other.message),
            (True, &said.reason, &said.message)
        );
    }
    said.message.clone()
}

fn looking(case: Case, observed: Observed) -> Case {
    case.with(|_, facts| facts.observed = observed)
}

fn paused(case: Case) -> Case {
    case.with(|_, facts| facts.paused = true)
}

fn reached(case: Case) -> Case {
    case.with(|record, _| record.desired.reached = true)
}

const RECONCILING: Option<&str> = Some("Reconciling");
const STALLED: Option<&str> = Some("Stalled");

#[test]
fn an_object_that_moves_is_reconciling_and_says_where_it_is_and_where_it_goes() {
    let start = Case::at(&database(), "Start").task(Task::Running);
    let message = row(&start, False, RECONCILING, "Start");
    assert_eq!(message, "in Start, on the way to Running");
    let arrived = Case::at(&database(), "Running").task(Task::Running);
    let message = row(&arrived, False, RECONCILING, "Running");
    assert_eq!(message, "the work of Running is under way");
    let leaving = Case::at(&database(), "Running").newly_desired("End");
    row(&leaving, False, RECONCILING, "Stopping");
}

#[test]
fn an_object_on_a_visit_is_reconciling_towards_it_and_then_back() {
    let going = Case::at(&database(), "Running").new_visit("Servicing");
    row(&going, False, RECONCILING, "Servicing");
    let there = Case::at(&database(), "Servicing").visit("Servicing", 1);
    row(
        &there.clone().task(Task::Running),
        False,
        RECONCILING,
        "Servicing",
    );
    row(
        &there.said(ActionResult::Next),
        False,
        RECONCILING,
        "Running",
    );
}

#[test]
fn an_object_at_rest_in_the_desired_state_is_ready() {
    let running = Case::at(&database(), "Running");
    row(&running, True, None, "Running");
    row(
        &running.clone().said(ActionResult::Stay),
        True,
        None,
        "Running",
    );
    row(&running.seen("Running"), True, None, "Running");
    let failed = Case::at(&database(), "Failed").desired("Failed", 1);
    row(&failed, True, None, "Failed");
}

#[test]
fn an_observation_that_contradicts_a_holding_state_stalls_it() {
    let failed = Case::at(&database(), "Failed").desired("Failed", 1);
    row(
        &failed.clone().seen("Running"),
        False,
        STALLED,
        "ObservedElsewhere",
    );
    row(&looking(failed, Observed::Absent), False, STALLED, "Absent");
}

#[test]
fn an_object_in_the_desired_leaf_is_ready_whatever_is_observed() {
    let end = Case::at(&database(), "End").desired("End", 1);
    for observed in [Observed::Absent, Observed::Unreachable { failures: 9 }] {
        row(&looking(end.clone(), observed), True, None, "End");
    }
    let batch = graph(&["entry Work >Broken >Done", "leaf Broken", "leaf Done"]);
    row(&Case::at(&batch, "Done"), True, None, "Done");
}

#[test]
fn an_object_in_another_leaf_is_stalled() {
    let batch = graph(&["entry Work >Broken >Done", "leaf Broken", "leaf Done"]);
    let message = row(&Case::at(&batch, "Broken"), False, STALLED, "Broken");
    assert!(message.contains("spec.lifecycle.request"), "{message}");
    row(
        &Case::at(&database(), "End").desired("Running", 1),
        False,
        STALLED,
        "End",
    );
}

#[test]
fn an_object_that_holds_outside_the_desired_state_is_stalled() {
    let message = row(&Case::at(&database(), "Failed"), False, STALLED, "Failed");
    assert!(message.contains("spec.lifecycle.request"), "{message}");
}

#[test]
fn a_desired_state_without_a_route_is_stalled_with_the_reason() {
    let graph = graph(&["entry A >B", "rest B >D -C", "rest C >D -B", "leaf D"]);
    let message = row(
        &Case::at(&graph, "B").newly_desired("C"),
        False,
        STALLED,
        "NoRoute",
    );
    assert_eq!(message, "no route from B to C: because");
    let passing = Case::at(&database(), "Running").newly_desired("Start");
    row(&passing, False, STALLED, "NoRoute");
}

#[test]
fn a_refused_visit_shows_only_in_its_outcome() {
    let graph = graph(&["entry A >V", "visit V >B >C", "rest B >C -V", "leaf C"]);
    let case = Case::at(&graph, "B").new_visit("V").desired("B", 1);
    row(&case, True, None, "B");
    let visit = case.after().visit.expect("a visit");
    assert_eq!(visit.outcome, VisitOutcome::Refused);
}

#[test]
fn work_that_failed_permanently_is_stalled_with_its_own_message() {
    for case in [
        Case::at(&database(), "Stopping").phase(Phase::Failed),
        Case::at(&database(), "Stopping").said(ActionResult::Failed { permanent: true }),
    ] {
        let message = row_with(&case, &failure(), False, STALLED, "NoSpace");
        assert!(message.starts_with("the disk is full"), "{message}");
        row(&case, False, STALLED, "Failed");
    }
    let again = Case::at(&database(), "Stopping").phase(Phase::Failed);
    let again = again.with(|_, facts| facts.generation = 2);
    row(&again, False, RECONCILING, "Stopping");
}

#[test]
fn a_refused_answer_is_stalled() {
    let case = Case::at(&database(), "Stopping").named("Servicing");
    row(&case, False, STALLED, "Failed");
}

#[test]
fn work_that_is_retried_is_reconciling_with_its_own_message() {
    let case = Case::at(&database(), "Stopping").task(Task::Waiting);
    let message = row_with(&case, &failure(), False, RECONCILING, "NoSpace");
    assert_eq!(message, "the disk is full");
}

#[test]
fn an_unknown_desired_state_is_stalled() {
    for state in ["Running", "End"] {
        let case = Case::at(&database(), state);
        let case = case.with(|_, facts| facts.desired.state = Some(Named::Unknown));
        let message = row(&case, False, STALLED, "UnknownDesiredState");
        assert!(message.contains("`Younger`"), "{message}");
    }
}

#[test]
fn an_unknown_state_is_stalled() {
    let case = Case::at(&database(), "Running");
    let case = case.with(|record, _| record.state = StateId::UNKNOWN);
    let message = row(&case, False, STALLED, "UnknownState");
    assert!(message.contains("`Elder`"), "{message}");
}

#[test]
fn an_unreachable_application_keeps_its_conditions_for_fewer_than_three_observations() {
    let running = Case::at(&database(), "Running");
    for failures in [1, 2] {
        let case = looking(running.clone(), Observed::Unreachable { failures });
        row(&case, True, None, "Running");
        let available = say(&case, &words()).pop().expect("Available");
        assert_eq!(available.status, True);
    }
}

#[test]
fn from_the_third_failed_observation_on_an_unreachable_application_is_unknown() {
    let start = Case::at(&database(), "Start").task(Task::Running);
    for case in [Case::at(&database(), "Running"), start] {
        let case = looking(case, Observed::Unreachable { failures: 3 });
        let message = row(&case, Unknown, RECONCILING, "Unreachable");
        assert!(message.contains("the sight"), "{message}");
        let available = say(&case, &words()).pop().expect("Available");
        assert_eq!(
            (available.status, available.reason.as_str()),
            (Unknown, "Unreachable")
        );
    }
}

#[test]
fn an_unforeseen_state_is_unknown_at_once_and_named() {
    let case = looking(Case::at(&database(), "Running"), Observed::Unforeseen);
    let message = row(&case, Unknown, RECONCILING, "UnforeseenState");
    assert!(message.contains("`the sight`"), "{message}");
}

#[test]
fn a_waiting_object_without_a_record_is_unknown() {
    for (observed, reason) in [
        (Observed::Unreachable { failures: 1 }, "Unreachable"),
        (Observed::Unforeseen, "UnforeseenState"),
        (Observed::Failed { failures: 1 }, "ObservationFailed"),
    ] {
        let mut case = Case::nothing(&database());
        case.facts.observed = observed;
        case.facts.owned = true;
        row(&case, Unknown, RECONCILING, reason);
    }
}

#[test]
fn a_paused_object_in_the_desired_state_is_ready() {
    let running = reached(Case::at(&database(), "Running"));
    row(&paused(running), True, None, "Running");
    let end = reached(Case::at(&database(), "End").desired("End", 1));
    row(&paused(end), True, None, "End");
}

#[test]
fn a_paused_object_elsewhere_is_reconciling() {
    let moving = Case::at(&database(), "Start").task(Task::Running);
    let resting = Case::at(&database(), "Running").desired("End", 1);
    let waiting = Case::at(&database(), "Running").said(ActionResult::Stay);
    for case in [moving, resting, waiting] {
        row(&paused(case), False, RECONCILING, "Paused");
    }
    let mut new = Case::nothing(&database());
    new.facts.paused = true;
    row(&new, False, RECONCILING, "Paused");
}

#[test]
fn a_paused_object_that_only_the_pause_keeps_in_the_desired_state_is_reconciling() {
    let running = reached(Case::at(&database(), "Running").desired("Running", 1));
    let seen = running.clone().seen("Start");
    let absent = looking(running.clone(), Observed::Absent);
    let visit = running.clone().visit("Servicing", ARRIVAL);
    let changed = running.with(|_, facts| facts.revision = REVISION + 1);
    for case in [seen, absent, visit, changed] {
        row(&paused(case), False, RECONCILING, "Paused");
    }
}

#[test]
fn an_object_that_is_being_deleted_is_reconciling_on_the_way_out() {
    let running = Case::at(&database(), "Running");
    row(
        &running.clone().task(Task::Running).deleting(),
        False,
        RECONCILING,
        "Running",
    );
    let message = row(&running.deleting(), False, RECONCILING, "Stopping");
    assert_eq!(message, "in Stopping, on the way to End");
    let lost = looking(
        Case::at(&database(), "Stopping").task(Task::Running),
        Observed::Unreachable { failures: 9 },
    );
    row(&lost.deleting(), False, RECONCILING, "Stopping");
}

#[test]
fn a_deletion_that_cannot_end_is_stalled_and_names_the_abandon_annotation() {
    let graph = graph(&["entry A >B", "leaf B"]);
    let stuck = Case::at(&graph, "B").phase(Phase::Failed).deleting();
    let message = row_with(&stuck, &failure(), False, STALLED, "NoSpace");
    assert!(message.contains("okt.dev/abandon"), "{message}");
    let all = say(&stuck, &failure());
    let deleting = find(&all, "Deleting").expect("Deleting");
    assert!(deleting.message.contains("okt.dev/abandon"));
    let long = "x".repeat(5000);
    let words = Words {
        failure: Some(("NoSpace", &long)),
        ..words()
    };
    let message = row_with(&stuck, &words, False, STALLED, "NoSpace");
    assert!(message.contains("okt.dev/abandon"), "{message}");
}

#[test]
fn deleting_and_paused_are_true_or_false_and_always_there() {
    let running = Case::at(&database(), "Running");
    let status = |case: &Case, name: &str| {
        let all = say(case, &words());
        let condition = find(&all, name).expect("always there");
        (condition.status, condition.reason.clone())
    };
    assert_eq!(
        status(&running, "Deleting"),
        (False, "NotDeleting".to_string())
    );
    assert_eq!(status(&running, "Paused"), (False, "NotPaused".to_string()));
    let both = paused(running).deleting();
    assert_eq!(status(&both, "Deleting"), (True, "Deleting".to_string()));
    assert_eq!(status(&both, "Paused"), (True, "Paused".to_string()));
}

#[test]
fn an_object_reports_the_loop_guard_until_it_has_settled() {
    let round = |case: Case| case.with(|record, _| record.rounds = 13);
    let guarded = round(Case::at(&database(), "Running").desired("End", 1));
    let guarded = guarded.with(|_, facts| facts.in_state = std::time::Duration::ZERO);
    row(&guarded, False, RECONCILING, "LoopDetected");
    let moving = round(Case::at(&database(), "Start").task(Task::Running));
    row(&moving, False, RECONCILING, "LoopDetected");
    let ended = round(Case::at(&database(), "Running").said(ActionResult::Stay));
    row(&ended, False, RECONCILING, "LoopDetected");
    row(
        &round(Case::at(&database(), "Running")),
        True,
        None,
        "Running",
    );
    row(
        &round(Case::at(&database(), "Failed")),
        False,
        STALLED,
        "Failed",
    );
    row(
        &round(Case::at(&database(), "End").desired("End", 1)),
        True,
        None,
        "End",
    );
}

#[test]
fn a_declared_condition_has_its_status_in_the_states_that_declare_it_and_is_false_elsewhere() {
    for (state, status, reason) in [
        ("Start", False, "Start"),
        ("Running", True, "AcceptingConnections"),
        ("Servicing", True, "AcceptingConnections"),
        ("Stopping", False, "Stopping"),
        ("Failed", False, "Broken"),
        ("End", False, "End"),
    ] {
        let case = Case::at(&database(), state);
        let case = if case.record.is_some_and(|record| record.action.is_some()) {
            case.task(Task::Running)
        } else {
            case.desired(state, 1)
        };
        let all = say(&case, &words());
        let available = find(&all, "Available").expect("Available");
        assert_eq!(
            (available.status, available.reason.as_str()),
            (status, reason)
        );
    }
}

#[test]
fn a_message_is_cut_between_characters() {
    for (text, length) in [("ä".repeat(512), 1024), ("ä".repeat(513), 1023)] {
        let cut = bounded(text);
        assert_eq!(cut.len(), length);
    }
    assert_eq!(bounded("x".repeat(2000)).len(), MESSAGE_LIMIT);
}

/// A random graph that passes the rules, whose states declare conditions here and there.
fn with_conditions(rng: &mut Rng) -> Graph<'static> {
    let states = graphs::random(rng).states.iter().map(|state| {
        let mut declared = Vec::new();
        for name in ["Available", "okt.dev/Synced", "Backed"] {
            if rng.one_in(3) {
                declared.push(Declared {
                    name,
                    status: [True, False, Unknown][rng.below(3)],
                    reason: ["", "Because"][rng.below(2)],
                    message: ["", "a text"][rng.below(2)],
                });
            }
        }
        State {
            conditions: declared.leak(),
            ..*state
        }
    });
    with_routes(states.collect())
}

/// Returns a word, nothing, or a text that must not reach the API server as it is.
fn any_text(rng: &mut Rng) -> String {
    let text = ["NoSpace", "", "a b", "x", "ä", "€uro", "🦀", "A:"][rng.below(8)];
    text.repeat([1, 2, 400, 1024][rng.below(4)])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn the_conditions_always_keep_their_contract(seed: u64) {
        let rng = &mut Rng(seed);
        let graph = with_conditions(rng);
        let (recorded, facts) = moment::moment(rng, &graph);
        let (name, message) = (any_text(rng), any_text(rng));
        let words = Words {
            state: &name,
            desired: &name,
            failure: rng.one_in(2).then_some((&*name, &*message)),
            observed: &message,
            ..Words::default()
        };
        let decision = decide(&graph, &recorded, &facts);
        let after = recorded.after(&graph, &facts, &decision);
        let all = conditions(&graph, &after, &facts, &decision, &words);
        prop_assert_eq!(&conditions(&graph, &after, &facts, &decision, &words), &all);

        for condition in &all {
            prop_assert!(is_reason(&condition.reason), "{condition:?}");
            prop_assert!(condition.message.len() <= MESSAGE_LIMIT, "{condition:?}");
        }

        let names: Vec<&str> = all.iter().map(|c| c.name.as_str()).collect();
        let reserved = names.iter().take_while(|name| RESERVED.contains(name)).count();
        let mut declared: Vec<&str> = Vec::new();
        for condition in graph.states.iter().flat_map(|state| state.conditions) {
            if !declared.contains(&condition.name) {
                declared.push(condition.name);
            }
        }
        prop_assert_eq!(&names[reserved..], &declared[..]);

        let ready = all[0].status;
        prop_assert_eq!(names[0], "Ready");
        let beside: Vec<&Condition> = all[1..reserved - 2].iter().collect();
        prop_assert_eq!(&names[reserved - 2..reserved], &["Deleting", "Paused"]);
        match (ready, beside.as_slice()) {
            (True, []) => {}
            (False, [one]) => {
                prop_assert!(one.name == "Reconciling" || one.name == "Stalled");
                prop_assert_eq!(one.status, True);
            }
            (Unknown, [one]) => {
                prop_assert_eq!(one.name.as_str(), "Reconciling");
                prop_assert_eq!(one.status, True);
            }
            _ => prop_assert!(false, "{all:#?}"),
        }
        for other in beside {
            prop_assert_eq!((&other.reason, &other.message), (&all[0].reason, &all[0].message));
        }
    }

    #[test]
    fn an_object_that_stays_is_not_reconciling_and_one_that_moves_is_not_stalled(seed: u64) {
        let rng = &mut Rng(seed);
        let graph = with_conditions(rng);
        let (recorded, mut facts) = moment::moment(rng, &graph);
        // A paused object is reported as paused, whatever else applies.
        facts.paused = false;
        let decision = decide(&graph, &recorded, &facts);
        let after = recorded.after(&graph, &facts, &decision);
        let all = conditions(&graph, &after, &facts, &decision, &words());
        let beside = |name| find(&all, name).is_some();
        let unseen = find(&all, "Ready").is_some_and(|ready| ready.status == Unknown);
        match decision {
            Verdict::Stay(StayReason::Settled | StayReason::Failed) => {
                prop_assert!(!beside("Reconciling") || unseen, "{decision:?} {recorded:?} {facts:?} {:?} {all:#?}", graph.states);
            }
            Verdict::Stay(StayReason::Running | StayReason::Waiting | StayReason::LoopGuard(_))
            | Verdict::Run(_)
            | Verdict::Retry { .. } => {
                prop_assert!(!beside("Stalled"), "{decision:?} {recorded:?} {facts:?} {:?} {all:#?}", graph.states);
            }
            Verdict::Stay(StayReason::Unsure | StayReason::Paused | StayReason::UnknownState)
            | Verdict::Go(_)
            | Verdict::End(_)
            | Verdict::Release => {}
        }
    }
}
