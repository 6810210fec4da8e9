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
#[path = "common/table.rs"]
mod table;

use okt_core::conditions::{Condition, MESSAGE_LIMIT, WaitWords, Words, bounded, conditions};
use okt_core::decide::{StayReason, Verdict, decide};
use okt_core::names::{RESERVED, is_reason};
use okt_core::{ConditionStatus, Declared, Graph, State};
use proptest::prelude::*;

use build::with_routes;
use rng::Rng;

use ConditionStatus::{False, True, Unknown};

fn words() -> Words<'static> {
    Words {
        state: "Elder",
        desired: "Younger",
        observed: "the sight",
        waits: WaitWords::Opens("opens at dawn"),
        ..Words::default()
    }
}

fn find<'a>(all: &'a [Condition], name: &str) -> Option<&'a Condition> {
    all.iter().find(|condition| condition.name == name)
}

/// Checks a table of the conditions in the write that a case leads to, if the action failed in this way.
///
/// A row has the status of `Ready`, the condition beside it and the reason; or name, status and reason of a condition. After
/// a colon comes its message, or after two dots a part of that.
fn reports(failure: Option<(&str, &str)>, table: &'static str) {
    let words = Words { failure, ..words() };
    table::check(table, |case, expected| {
        let (after, decision) = (case.after(), case.decide());
        let all = conditions(&case.graph, &after, &case.facts, &decision, &words);
        let name = expected.split(' ').next().unwrap_or_default();
        let (one, status) = if let Some(one) = find(&all, name) {
            (one, format!("{name} {:?}", one.status))
        } else {
            let ready = find(&all, "Ready").expect("Ready is always there");
            let mut status = format!("{:?}", ready.status);
            for beside in ["Reconciling", "Stalled"] {
                status.extend(find(&all, beside).map(|_| format!(" {beside}")));
            }
            (ready, status)
        };
        let start = format!("{status} {}", one.reason);
        let Some((_, text)) = expected.split_once(": ") else {
            return start;
        };
        let part = text.strip_prefix("..");
        let is_part = part.is_some_and(|part| one.message.contains(part));
        format!("{start}: {}", if is_part { text } else { &one.message })
    });
}

#[test]
fn an_object_before_a_gate_says_what_it_waits_for() {
    reports(
        None,
        "
        graph: entry Start >Up | rest Up >Down >Gone | rest Down >Up >Gone | leaf Gone | window night Down
        It is reconciling, as the gate opens by itself.
            Up, newly desired Down, shut night -> False Reconciling WaitingForWindow: Down waits for the window night, which opens at dawn
        What stalls it, or the pause, is said first.
            Up, newly desired Down, shut night, work Failed -> False Stalled Failed
            Up, newly desired Down, shut night, paused -> False Reconciling Paused
            Up, newly desired Down, shut night, deleting -> False Reconciling Gone
        ",
    );
}

#[test]
fn every_row_of_the_table() {
    reports(
        None,
        "
        An object that moves is reconciling and says where it is and where it goes.
            Start, task Running -> False Reconciling Start: in Start, on the way to Running
            Running, task Running -> False Reconciling Running: the work of Running is under way
            Running, newly desired End -> False Reconciling Stopping
        On a visit it is reconciling towards it and then back.
            Running, new visit Servicing -> False Reconciling Servicing
            Servicing, visit Servicing 1, task Running -> False Reconciling Servicing
            Servicing, visit Servicing 1, says Next -> False Reconciling Running
        At rest in the desired state it is ready.
            Running -> True Running
            Running, says Stay | seen Running -> True Running
            Failed, desired Failed 1 -> True Failed
        An observation that contradicts a holding state stalls it.
            Failed, desired Failed 1, seen Running -> False Stalled ObservedElsewhere
            Failed, desired Failed 1, absent -> False Stalled Absent
        In the desired leaf it is ready whatever is observed; in another leaf, or holding elsewhere, it is stalled.
            End, desired End 1, absent | unreachable 9 -> True End
            End, desired Running 1 -> False Stalled End
            Failed -> False Stalled Failed: ..spec.lifecycle.request
        A refused answer, an unknown desired state and an unknown state are stalled, and a state that no spec may ask for.
            Stopping, names Servicing -> False Stalled Failed
            Running | End, desired Nope 1 -> False Stalled UnknownDesiredState: ..`Younger`
            Running, lost -> False Stalled UnknownState: ..`Elder`
            Running, newly desired Start -> False Stalled NoRoute
        Work that failed permanently is stalled until the generation changes.
            Stopping, work Failed | fails permanently -> False Stalled Failed
            Stopping, work Failed, generation 2 -> False Reconciling Stopping
        An unreachable application keeps its conditions for fewer than three observations; then it is unknown.
            Running, unreachable 1 | unreachable 2 -> True Running
            Running, unreachable 1 | unreachable 2 -> Available True AcceptingConnections
            Running, unreachable 3 -> Unknown Reconciling Unreachable: ..the sight
            Start, task Running, unreachable 3 -> Unknown Reconciling Unreachable: ..the sight
            Running, unreachable 3 -> Available Unknown Unreachable
            Start, task Running, unreachable 3 -> Available Unknown Unreachable
        An unforeseen state is unknown at once and named; so is an object without a record that waits.
            Running, unforeseen -> Unknown Reconciling UnforeseenState: ..`the sight`
            nothing, owned, unreachable 1 -> Unknown Reconciling Unreachable
            nothing, owned, unforeseen -> Unknown Reconciling UnforeseenState
            nothing, owned, unobservable 1 -> Unknown Reconciling ObservationFailed
        A paused object is ready in the desired state, and reconciling if the pause alone keeps it there, and elsewhere.
            Running, reached, paused -> True Running
            End, desired End 1, reached, paused -> True End
            Start, task Running, paused -> False Reconciling Paused
            Running, desired End 1 | says Stay, paused -> False Reconciling Paused
            nothing, paused -> False Reconciling Paused
            Running, desired Running 1, reached, seen Start | absent, paused -> False Reconciling Paused
            Running, desired Running 1, reached, visit Servicing 5 | revision 8, paused -> False Reconciling Paused
        An object that is being deleted is reconciling on the way out.
            Running, task Running, deleting -> False Reconciling Running
            Running, deleting -> False Reconciling Stopping: in Stopping, on the way to End
            Stopping, task Running, unreachable 9, deleting -> False Reconciling Stopping
        Deleting and Paused are true or false and always there.
            Running -> Deleting False NotDeleting
            Running -> Paused False NotPaused
            Running, paused, deleting -> Deleting True Deleting
            Running, paused, deleting -> Paused True Paused
        The loop guard is reported until the object has settled.
            Running, desired End 1, rounds 13, for 0 -> False Reconciling LoopDetected
            Start, task Running, rounds 13 -> False Reconciling LoopDetected
            Running, says Stay, rounds 13 -> False Reconciling LoopDetected
            Running, rounds 13 -> True Running
            Failed, rounds 13 -> False Stalled Failed
            End, desired End 1, rounds 13 -> True End
        A declared condition has its status in the states that declare it and is false elsewhere.
            Start, task Running -> Available False Start
            Running | Servicing, task Running -> Available True AcceptingConnections
            Stopping, task Running -> Available False Stopping
            Failed, desired Failed 1 -> Available False Broken
            End, desired End 1 -> Available False End

        graph: entry Work >Broken >Done | leaf Broken | leaf Done
            Done -> True Done
            Broken -> False Stalled Broken: ..spec.lifecycle.request
        A desired state without a route is stalled with the reason.
            graph: entry A >B | rest B >D -C | rest C >D -B | leaf D
            B, newly desired C -> False Stalled NoRoute: no route from B to C: because
        On the way to the state of a request, and there, it is reconciling; a request that waits does not show.
            graph: entry A >B | rest B >W >D | W >V >B | visit args V >B | leaf D
            B, request V -> False Reconciling W: in W, on the way to V
            W, serves V, task Running -> False Reconciling W: in W, on the way to V
            V, serves V, task Running -> False Reconciling V: the work of V is under way
            B, serves V, served Failed -> True B
        A refused visit does not show.
            graph: entry A >V | visit V >B >C | rest B >C -V | leaf C
            B, new visit V, desired B 1 -> True B
        ",
    );
}

#[test]
fn a_failure_has_its_own_message() {
    reports(
        Some(("NoSpace", "the disk is full")),
        "
        Work that failed permanently, or is retried, has its own message.
            Stopping, work Failed | fails permanently -> False Stalled NoSpace: ..the disk is full
            Stopping, task Waiting -> False Reconciling NoSpace: the disk is full
        ",
    );
    for message in ["the disk is full", &"x".repeat(5000)] {
        reports(
            Some(("NoSpace", message)),
            "
            A deletion that cannot end is stalled and names the annotation.
                graph: entry A >B | leaf B
                B, work Failed, deleting -> False Stalled NoSpace: ..okt.dev/abandon
                B, work Failed, deleting -> Deleting True Deleting: ..okt.dev/abandon
            ",
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
