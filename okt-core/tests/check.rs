//! The rules of a graph, as far as random graphs do not break them (`model.rs`), and the texts that no page of a rule shows
//! (`okt-syntax/rules`): a graph breaks one rule and no other, at the right place.

#[path = "common/build.rs"]
mod build;
#[path = "common/database.rs"]
mod database;
#[path = "common/ids.rs"]
mod ids;
#[path = "common/rng.rs"]
mod rng;
#[path = "common/wild.rs"]
mod wild;

use okt_core::check::{Place, Rule, check};
use okt_core::{ConditionStatus, Declared, Graph, Kind, State, StateId};
use proptest::prelude::*;

use build::{graph, with_routes};
use database::database;
use rng::Rng;

const A: StateId = StateId(0);
const B: StateId = StateId(1);

/// Builds a graph and changes its states.
fn but(lines: &[&'static str], change: impl Fn(&mut [State<'static>])) -> Graph<'static> {
    let mut states = graph(lines).states.to_vec();
    change(&mut states);
    with_routes(states)
}

/// Returns the faults of a graph, each as its rule and its place.
fn faults(graph: &Graph<'_>) -> String {
    let all = check(graph);
    let faults = all.iter();
    let places = faults.map(|fault| format!("{:?} {:?}", fault.rule, fault.place));
    places.collect::<Vec<_>>().join("; ")
}

/// Checks that the graph breaks this rule and no other.
#[track_caller]
fn breaks(graph: &Graph<'_>, rule: Rule, place: Place) {
    assert_eq!(faults(graph), format!("{rule:?} {place:?}"));
}

#[test]
fn the_database_breaks_no_rule() {
    assert_eq!(check(&database()), []);
}

#[test]
fn what_random_graphs_do_not_have_is_reported_at_its_place_and_all_in_declaration_order() {
    let rows = "
        entry A >Nope >B | leaf B -> UnknownTarget Child(StateId(0), 0)
        entry A !Nope >B | leaf B -> UnknownTarget Trigger(StateId(0), 0)
        entry rest A >B -Nope | leaf B -> UnknownTarget NoRoute(StateId(0), 0)
        entry A >Nope | B >B2 >C | B2 >B | leaf C -> UnknownTarget Child(StateId(0), 0)
        entry A !B:after0 >C | leaf B | leaf C -> Option Cause(StateId(0), 0)
        entry A !B:error0 >C | leaf B | leaf C -> Option Cause(StateId(0), 0)
        entry A !B:give-up >C | leaf B | leaf C -> Option Cause(StateId(0), 0)
        entry Stay >B | leaf B -> Name State(StateId(0))
        entry Next >B | leaf B -> Name State(StateId(0))
        entry Wait >B | leaf B -> Name State(StateId(0))
        entry Self >B | leaf B -> Name State(StateId(0))
        entry Super >B | leaf B -> Name State(StateId(0))
        entry Crate >B | leaf B -> Name State(StateId(0))
        entry HTTPServer >HttpServer | leaf HttpServer -> Name State(StateId(1))
        entry HTTPServer >HttpServer | leaf idle HttpServer -> -
        entry A >B >B !C:after0 | rest B >C -C | leaf C >A | Lost -> Option Cause(StateId(0), 0); SameTarget Child(StateId(0), 1); FalseNoRoute NoRoute(StateId(1), 0); LeafLeads Child(StateId(2), 0); Unreachable State(StateId(3)); DeadEnd State(StateId(3))
    ";
    for row in rows.lines().map(str::trim).filter(|row| !row.is_empty()) {
        let (states, expected) = row.split_once(" -> ").expect("a row");
        let graph = graph(&states.split(" | ").collect::<Vec<_>>());
        assert_eq!(faults(&graph), expected.replace('-', ""), "{states}");
    }
    assert_eq!(faults(&graph(&[])), "OneEntry Graph; NoLeaf Graph");
}

#[test]
fn okt007_names_what_is_in_the_way_and_what_leads_only_there() {
    // Next from B circles through X, C and B, and every other way leads through the holding C.
    let hold = [
        "entry A >B >D",
        "rest B >C >X -D",
        "rest hold C >D >B",
        "leaf D",
        "X >B >C",
    ];
    // C and D lead only to each other; A and B lead nowhere else. Only a trigger leads from D to the leaf E.
    let upstream = ["entry A >B", "B >C", "C >D", "rest D !E >C", "leaf E"];
    for (lines, part) in [
        (hold, "through `C`, which is a holding state"),
        (upstream, "`A`, `B` lead only there"),
    ] {
        let faults = check(&graph(&lines));
        let trap = faults.iter().find(|fault| fault.rule == Rule::Trap);
        let message = &trap.expect("a trap").message;
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn okt012_groups_the_states_by_what_is_in_the_way_and_cuts_a_long_list() {
    let mut lines = vec![
        "entry A >B >T".to_owned(),
        "rest B >T >End".to_owned(),
        "leaf End".to_owned(),
    ];
    let names: Vec<String> = (0..20).map(|number| format!("N{number}")).collect();
    lines.push(format!("no_transit T >{}", names.join(" >")));
    lines.extend(names.iter().map(|name| format!("rest {name} >B >End")));
    let lines: Vec<&'static str> = lines.into_iter().map(|line| &*line.leak()).collect();
    let faults = check(&graph(&lines));
    let fault = faults.iter().find(|fault| fault.place == Place::State(B));
    let message = fault.expect("a fault").to_string();
    assert_eq!(message.matches("`T`").count(), 1, "{message}");
    assert!(message.contains("`N7` and 12 more"), "{message}");
    assert!(message.contains("N7, .., reason"), "{message}");
    assert!(message.len() < 500, "{}", message.len());
}

#[test]
fn okt014_two_wire_names_alike() {
    let lines = ["entry A >B", "leaf B"];
    let rule = Rule::SameName;
    let states = but(&lines, |states| states[1].name = "A");
    breaks(&states, rule, Place::State(B));
    // A current name takes precedence over a former one, also if it is declared later.
    let was = but(&lines, |states| states[0].was = &["Old", "B"]);
    breaks(&was, rule, Place::Was(A, 1));
    let both = but(&lines, |states| {
        states[0].was = &["Old"];
        states[1].was = &["Old"];
    });
    breaks(&both, rule, Place::Was(B, 0));
}

fn declaring(conditions: &'static [(&'static str, &'static str)]) -> Graph<'static> {
    but(&["entry A >B", "leaf B"], |states| {
        let declared = conditions.iter().map(|(name, reason)| Declared {
            name,
            status: ConditionStatus::True,
            reason,
            message: "",
        });
        states[0].conditions = declared.collect::<Vec<_>>().leak();
    })
}

#[test]
fn okt016_a_bad_condition() {
    let rule = Rule::Condition;
    let first = Place::Condition(A, 0);
    breaks(&declaring(&[("not a type", "")]), rule, first);
    for reserved in [
        "Ready",
        "ready",
        "Reconciling",
        "Stalled",
        "Deleting",
        "Paused",
    ] {
        let conditions: &'static [_] = Box::leak(Box::new([(reserved, "")]));
        breaks(&declaring(conditions), rule, first);
    }
    let twice = declaring(&[("Up", "Yes"), ("Up", "")]);
    breaks(&twice, rule, Place::Condition(A, 1));
    let reason = declaring(&[("Up", ""), ("Down", "not a reason")]);
    breaks(&reason, rule, Place::Reason(A, 1));
    let types = |count: usize| {
        let all = (0..count).map(|i| (&*format!("T{i}").leak(), ""));
        declaring(all.collect::<Vec<_>>().leak())
    };
    assert_eq!(check(&types(24)), []);
    breaks(&types(26), rule, Place::Condition(A, 24));
}

#[test]
fn okt019_counted_attempts_and_a_former_name_in_a_pass() {
    let kind = Kind::Pass;
    let counted = graph(&["entry A !B:error2 >C", "leaf B", "leaf C"]);
    breaks(&Graph { kind, ..counted }, Rule::Pass, Place::Cause(A, 0));
    let was = but(&["entry A >B", "leaf B"], |states| states[0].was = &["Old"]);
    breaks(&Graph { kind, ..was }, Rule::Pass, Place::Was(A, 0));
}

#[test]
fn okt020_a_name_that_cannot_be_written() {
    let lines = ["entry A >B", "leaf B"];
    let long: &'static str = "x".repeat(64).leak();
    for name in ["", "in-service", "1st", "ä", long] {
        let wire = but(&lines, |states| states[1].name = name);
        breaks(&wire, Rule::Name, Place::State(B));
        let was: &'static [&'static str] = Box::leak(Box::new([name]));
        let was = but(&lines, |states| states[1].was = was);
        breaks(&was, Rule::Name, Place::Was(B, 0));
    }
}

#[test]
fn every_rule_has_its_code() {
    let codes: Vec<String> = Rule::ALL.iter().map(ToString::to_string).collect();
    let numbers = 1..=28;
    let expected: Vec<String> = numbers.map(|code| format!("OKT{code:03}")).collect();
    assert_eq!(codes, expected);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn any_graph_is_checked_and_every_fault_has_the_same_form(seed: u64) {
        let graph = wild::wild(&mut Rng(seed));
        let faults = check(&graph);
        prop_assert_eq!(check(&graph), faults.clone());
        for fault in &faults {
            prop_assert!(!fault.message.is_empty());
            prop_assert!(!fault.message.starts_with(char::is_uppercase), "{fault}");
            prop_assert!(!fault.message.ends_with('.'), "{fault}");
            prop_assert!(fault.place.state().is_none_or(|id| graph.get(id).is_some()));
        }
        let mut found: Vec<_> = faults.iter().map(|fault| (fault.place, fault.rule, &fault.message)).collect();
        found.sort();
        found.dedup();
        prop_assert!(found.len() == faults.len(), "{faults:#?}");
        let states: Vec<_> = faults.iter().map(|fault| fault.place.state()).collect();
        prop_assert!(states.is_sorted());
    }
}
