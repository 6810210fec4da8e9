//! The rules of a graph: the smallest graph that breaks each rule breaks only that one, at the right place.

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
use okt_core::{ConditionStatus, Declared, Graph, Kind, Mark, State, StateId};
use proptest::prelude::*;

use build::{graph, with_routes};
use database::database;
use rng::Rng;

const A: StateId = StateId(0);
const B: StateId = StateId(1);
const C: StateId = StateId(2);

/// Builds a graph and changes its states.
fn but(lines: &[&'static str], change: impl Fn(&mut [State<'static>])) -> Graph<'static> {
    let mut states = graph(lines).states.to_vec();
    change(&mut states);
    with_routes(states)
}

fn pass(lines: &[&'static str]) -> Graph<'static> {
    Graph {
        kind: Kind::Pass,
        ..graph(lines)
    }
}

fn faults(graph: &Graph<'_>) -> Vec<(Rule, Place)> {
    let faults = check(graph);
    faults
        .iter()
        .map(|fault| (fault.rule, fault.place))
        .collect()
}

/// Checks that the graph breaks this rule and no other; returns the message.
#[track_caller]
fn breaks(graph: &Graph<'_>, rule: Rule, place: Place) -> String {
    let faults = check(graph);
    let [fault] = &faults[..] else {
        panic!("not one fault: {faults:#?}");
    };
    assert_eq!((fault.rule, fault.place), (rule, place), "{fault}");
    format!("{}; {}", fault.message, fault.help)
}

#[test]
fn the_database_breaks_no_rule() {
    assert_eq!(check(&database()), []);
}

#[test]
fn okt001_a_target_that_is_no_state() {
    let rule = Rule::UnknownTarget;
    breaks(
        &graph(&["entry A >Nope >B", "leaf B"]),
        rule,
        Place::Child(A, 0),
    );
    breaks(
        &graph(&["entry A !Nope >B", "leaf B"]),
        rule,
        Place::Trigger(A, 0),
    );
    let claim = graph(&["entry rest A >B -Nope", "leaf B"]);
    breaks(&claim, rule, Place::NoRoute(A, 0));
}

#[test]
fn okt002_no_entry_or_two() {
    let none = breaks(&graph(&["A >B", "leaf B"]), Rule::OneEntry, Place::Graph);
    assert!(none.contains("#[entry]"), "{none}");
    let two = graph(&["entry A >B", "entry B >C", "leaf C"]);
    let message = breaks(&two, Rule::OneEntry, Place::Mark(B, Mark::Entry));
    assert!(message.contains("`A`"), "{message}");
}

#[test]
fn okt003_no_leaf() {
    let graph = graph(&["entry rest A >B", "rest B >A"]);
    breaks(&graph, Rule::NoLeaf, Place::Graph);
}

#[test]
fn okt004_a_state_that_cannot_be_reached() {
    let graph = graph(&["entry A >C", "B >C", "leaf C"]);
    breaks(&graph, Rule::Unreachable, Place::State(B));
}

#[test]
fn okt005_a_dead_end() {
    let graph = graph(&["entry A >B >C", "B", "leaf C"]);
    breaks(&graph, Rule::DeadEnd, Place::State(B));
}

#[test]
fn okt006_a_leaf_with_an_edge_out() {
    let rule = Rule::LeafLeads;
    breaks(
        &graph(&["entry A >B", "leaf B >A"]),
        rule,
        Place::Child(B, 0),
    );
    breaks(
        &graph(&["entry A >B", "leaf B !A"]),
        rule,
        Place::Trigger(B, 0),
    );
}

#[test]
fn okt007_a_trap() {
    let trap = graph(&["entry A >B >C", "rest B !C -C", "leaf C"]);
    breaks(&trap, Rule::Trap, Place::State(B));
    let hold = graph(&[
        "entry A >B >D",
        "rest B >C >X -D",
        "rest hold C >D >B",
        "leaf D",
        "X >B >C",
    ]);
    // Next from B circles through X, C and B, and every other way leads through the holding C.
    let faults = check(&hold);
    let trap = faults.iter().find(|fault| fault.rule == Rule::Trap);
    let message = &trap.expect("a trap").message;
    assert!(message.contains("through `C`"), "{message}");
}

#[test]
fn okt007_is_not_about_a_state_that_deletion_leaves_by_a_trigger() {
    let switch = graph(&["entry A >B", "rest B !C:delete", "leaf C"]);
    assert_eq!(check(&switch), []);
    // Also from a state that only leads there.
    let upstream = graph(&[
        "entry A >B",
        "rest B !D:delete >C -D",
        "rest C >B -D",
        "leaf D",
    ]);
    assert!(
        check(&upstream)
            .iter()
            .all(|fault| fault.rule != Rule::Trap)
    );
}

#[test]
fn okt007_a_trap_is_reported_at_its_place_and_not_on_every_way_into_it() {
    // C and D lead only to each other; A and B lead nowhere else. Only a trigger leads from D to the leaf E.
    let trap = graph(&["entry A >B", "B >C", "C >D", "rest D !E >C", "leaf E"]);
    let faults = check(&trap);
    let traps: Vec<_> = (faults.iter().filter(|fault| fault.rule == Rule::Trap)).collect();
    assert_eq!(traps.len(), 1, "{faults:#?}");
    assert_eq!(traps[0].place, Place::State(C));
    assert!(
        traps[0]
            .message
            .contains("`D`, to which it leads, has none either"),
        "{}",
        traps[0].message
    );
    assert!(
        traps[0].message.contains("`A`, `B` lead only there"),
        "{}",
        traps[0].message
    );
}

#[test]
fn okt007_a_way_out_that_circles_by_on_delete() {
    let graph = graph(&["entry A >B", "rest B !A:delete >C", "leaf C"]);
    let message = breaks(&graph, Rule::Trap, Place::Cause(B, 0));
    assert!(message.contains("`A → B → A`"), "{message}");
}

#[test]
fn okt008_the_same_target_twice() {
    let rule = Rule::SameTarget;
    breaks(
        &graph(&["entry A >B >B", "leaf B"]),
        rule,
        Place::Child(A, 1),
    );
    let triggers = graph(&["entry A !C !C:delete >B", "leaf B", "leaf C"]);
    breaks(&triggers, rule, Place::Trigger(A, 1));
    let message = breaks(
        &graph(&["entry A !B >B", "leaf B"]),
        rule,
        Place::Trigger(A, 0),
    );
    assert!(message.contains("on_error"), "{message}");
    assert_eq!(check(&graph(&["entry A !B:after9 >B", "leaf B"])), []);
}

#[test]
fn okt009_a_livelock() {
    let graph = graph(&["entry A >B", "B >C >A", "leaf C"]);
    let message = breaks(&graph, Rule::Livelock, Place::State(A));
    assert!(message.contains("`A → B → A`"), "{message}");
}

#[test]
fn okt010_a_state_that_leads_to_itself() {
    let rule = Rule::SelfEdge;
    breaks(
        &graph(&["entry A >A >B", "leaf B"]),
        rule,
        Place::Child(A, 0),
    );
    breaks(
        &graph(&["entry A !A >B", "leaf B"]),
        rule,
        Place::Trigger(A, 0),
    );
}

#[test]
fn okt011_two_triggers_with_one_kind_of_cause() {
    for (one, other) in [
        ("!B:after1", "!C:after2"),
        ("!B:error1", "!C:error2"),
        ("!B:delete", "!C:delete"),
        ("!B:change", "!C:change"),
    ] {
        let line: &'static str = format!("entry A {one} {other} >D").leak();
        let graph = graph(&[line, "leaf B", "leaf C", "leaf D"]);
        breaks(&graph, Rule::SameCause, Place::Cause(A, 1));
    }
    let named = graph(&["entry A !B !C >D", "leaf B", "leaf C", "leaf D"]);
    assert_eq!(check(&named), []);
}

#[test]
fn okt012_no_route_to_a_state_that_a_spec_may_ask_for() {
    let apart = graph(&["entry A >C >B", "rest B >D", "rest C >B", "leaf D"]);
    let message = breaks(&apart, Rule::NoRoute, Place::State(B));
    assert!(message.contains("no_route(C,"), "{message}");
    let through = graph(&[
        "entry A >C >B",
        "rest B >T >D",
        "rest C >B",
        "leaf D",
        "no_transit T >C",
    ]);
    let message = breaks(&through, Rule::NoRoute, Place::State(B));
    assert!(message.contains("through `T`"), "{message}");
}

#[test]
fn okt012_of_a_state_that_cannot_be_reached_is_reported_in_the_same_build() {
    let graph = graph(&["entry A >B", "rest B >D", "rest C >D", "leaf D"]);
    let expected = [
        (Rule::Unreachable, Place::State(C)),
        (Rule::NoRoute, Place::State(C)),
    ];
    assert_eq!(faults(&graph), expected);
}

#[test]
fn okt012_is_not_reported_where_another_rule_has_the_cause() {
    // A visit that is the entry: OKT018.
    let roles = graph(&["entry visit A >B", "rest B >A >C", "leaf C"]);
    breaks(&roles, Rule::Exclude, Place::Mark(A, Mark::Entry));
    // No way from B to the leaf: OKT007.
    let trapped = graph(&["entry A >B >C", "rest B >D", "leaf C", "D >B"]);
    assert!(check(&trapped).iter().all(|fault| fault.rule == Rule::Trap));
    // An edge of a leaf: OKT006.
    let leads = graph(&["entry A >B", "rest B >C", "leaf C !B:delete"]);
    breaks(&leads, Rule::LeafLeads, Place::Trigger(C, 0));
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
fn okt013_a_false_no_route() {
    let rule = Rule::FalseNoRoute;
    let lie = graph(&["entry A >B", "rest B >C -C", "leaf C"]);
    let message = breaks(&lie, rule, Place::NoRoute(B, 0));
    assert!(message.contains("`B → C`"), "{message}");
    let passing = graph(&["entry A >B -B", "leaf B"]);
    breaks(&passing, rule, Place::NoRoute(A, 0));
    let nobody = graph(&["entry A >B", "rest B !D >C -D", "leaf C", "rest D >B >C"]);
    breaks(&nobody, rule, Place::NoRoute(B, 0));
    let itself = graph(&["entry A >B", "rest B >C -B", "leaf C"]);
    breaks(&itself, rule, Place::NoRoute(B, 0));
    let twice = graph(&["entry A >D >B", "rest B >C -D -D", "leaf C", "rest D >B"]);
    breaks(&twice, rule, Place::NoRoute(B, 1));
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
fn okt017_an_option_of_zero() {
    for cause in ["after0", "error0", "give-up"] {
        let line: &'static str = format!("entry A !B:{cause} >C").leak();
        let graph = graph(&[line, "leaf B", "leaf C"]);
        breaks(&graph, Rule::Option, Place::Cause(A, 0));
    }
}

#[test]
fn okt018_marks_that_exclude_each_other() {
    let breaks = |lines: &[&'static str], place| breaks(&graph(lines), Rule::Exclude, place);
    breaks(&["entry leaf A"], Place::Mark(A, Mark::Entry));
    breaks(&["entry A >B", "leaf rest B"], Place::Mark(B, Mark::Rest));
    breaks(&["entry A >B", "leaf visit B"], Place::Mark(B, Mark::Visit));
    breaks(
        &["entry A >B", "leaf no_transit B"],
        Place::Mark(B, Mark::NoTransit),
    );
    breaks(
        &["entry A >B", "visit rest B >C", "leaf C"],
        Place::Mark(B, Mark::Rest),
    );
    breaks(&["entry visit A >B", "leaf B"], Place::Mark(A, Mark::Entry));
    breaks(
        &["entry no_transit A >B", "leaf B"],
        Place::Mark(A, Mark::Entry),
    );
}

#[test]
fn okt019_a_pass_that_circles_or_stays() {
    let rule = Rule::Pass;
    let cycle = pass(&["entry A >B", "B !A >C", "leaf C"]);
    let message = breaks(&cycle, rule, Place::State(A));
    assert!(message.contains("`A → B → A`"), "{message}");
    for (line, mark) in [
        ("rest B >C", Mark::Rest),
        ("visit B >C", Mark::Visit),
        ("no_transit B >C", Mark::NoTransit),
    ] {
        breaks(
            &pass(&["entry A >B", line, "leaf C"]),
            rule,
            Place::Mark(B, mark),
        );
    }
    breaks(
        &pass(&["entry A >B -B", "leaf B"]),
        rule,
        Place::NoRoute(A, 0),
    );
    for cause in ["after1", "error2", "change"] {
        let line: &'static str = format!("entry A !B:{cause} >C").leak();
        breaks(&pass(&[line, "leaf B", "leaf C"]), rule, Place::Cause(A, 0));
    }
    for cause in ["delete", "error1", "give-up"] {
        let line: &'static str = format!("entry A !B:{cause} >C").leak();
        assert_eq!(check(&pass(&[line, "leaf B", "leaf C"])), []);
    }
    let was = Graph {
        kind: Kind::Pass,
        ..but(&["entry A >B", "leaf B"], |states| states[0].was = &["Old"])
    };
    breaks(&was, rule, Place::Was(A, 0));
}

#[test]
fn okt020_a_name_that_cannot_be_generated_or_written() {
    let rule = Rule::Name;
    for word in ["Stay", "Next", "Wait", "Self", "Super", "Crate"] {
        let first: &'static str = format!("entry {word} >B").leak();
        breaks(&graph(&[first, "leaf B"]), rule, Place::State(A));
    }
    let alike = graph(&["entry HTTPServer >HttpServer", "leaf HttpServer"]);
    breaks(&alike, rule, Place::State(B));
    // An idle state has no handler, so its method name cannot be taken.
    let idle = graph(&["entry HTTPServer >HttpServer", "leaf idle HttpServer"]);
    assert_eq!(check(&idle), []);
    let lines = ["entry A >B", "leaf B"];
    for name in ["", "in-service", "1st", "ä"] {
        let wire = but(&lines, |states| states[1].name = name);
        breaks(&wire, rule, Place::State(B));
        let was: &'static [&'static str] = Box::leak(Box::new([name]));
        let was = but(&lines, |states| states[1].was = was);
        breaks(&was, rule, Place::Was(B, 0));
    }
    let long: &'static str = "x".repeat(64).leak();
    let wire = but(&lines, |states| states[1].name = long);
    breaks(&wire, rule, Place::State(B));
}

#[test]
fn all_mistakes_are_reported_at_once_in_declaration_order() {
    let graph = graph(&[
        "entry A >B >B !C:after0",
        "rest B >C -C",
        "leaf C >A",
        "Lost",
    ]);
    let lost = StateId(3);
    assert_eq!(
        faults(&graph),
        [
            (Rule::Option, Place::Cause(A, 0)),
            (Rule::SameTarget, Place::Child(A, 1)),
            (Rule::FalseNoRoute, Place::NoRoute(B, 0)),
            (Rule::LeafLeads, Place::Child(C, 0)),
            (Rule::Unreachable, Place::State(lost)),
            (Rule::DeadEnd, Place::State(lost)),
        ]
    );
}

#[test]
fn an_empty_graph_has_no_entry_and_no_leaf() {
    assert_eq!(
        faults(&graph(&[])),
        [(Rule::OneEntry, Place::Graph), (Rule::NoLeaf, Place::Graph)]
    );
}

#[test]
fn rules_about_reachability_are_skipped_while_a_target_is_unknown() {
    let graph = graph(&["entry A >Nope", "B >B2 >C", "B2 >B", "leaf C"]);
    assert_eq!(faults(&graph), [(Rule::UnknownTarget, Place::Child(A, 0))]);
}

#[test]
fn a_dead_end_is_reported_once_and_not_also_as_a_trap_or_a_missing_route() {
    let graph = graph(&["entry A >B >C", "rest B", "leaf C"]);
    breaks(&graph, Rule::DeadEnd, Place::State(B));
}

#[test]
fn one_edge_may_have_several_causes_but_not_the_same_kind_twice() {
    let several = graph(&[
        "entry A >B !C:after60 !C:error3 !C:deadline90 !C:delete",
        "rest B >C",
        "leaf C",
    ]);
    assert_eq!(faults(&several), []);
    let twice = graph(&["entry A >B !C:after60 !C:after90", "rest B >C", "leaf C"]);
    breaks(&twice, Rule::SameCause, Place::Cause(A, 1));
    let named = graph(&["entry A >B !C:after60 !C", "rest B >C", "leaf C"]);
    breaks(&named, Rule::SameTarget, Place::Trigger(A, 1));
}

#[test]
fn every_rule_has_its_code() {
    let codes: Vec<String> = Rule::ALL.iter().map(ToString::to_string).collect();
    let expected: Vec<String> = (1..=20).map(|code| format!("OKT{code:03}")).collect();
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
        let mut told: Vec<_> = faults.iter().map(|fault| (fault.place, fault.rule, &fault.message)).collect();
        told.sort();
        told.dedup();
        prop_assert!(told.len() == faults.len(), "{faults:#?}");
        let states: Vec<_> = faults.iter().map(|fault| fault.place.state()).collect();
        prop_assert!(states.is_sorted());
    }
}
