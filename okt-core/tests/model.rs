//! The rules and the routes of random graphs, compared with a statement of them that tries every path.

#[path = "model/random.rs"]
mod random;
#[path = "common/rng.rs"]
mod rng;
#[path = "model/rules.rs"]
mod rules;

use std::collections::BTreeMap;

use okt_core::check::{Place, Rule, check};
use okt_core::routes::Tables;
use okt_core::{Graph, StateId};

use rng::Rng;

/// The first seed; the others follow it.
const SEED: u64 = 0x6f6b_7400;

const GRAPHS: u64 = 100_000;

fn sorted(mut faults: Vec<(Rule, Place)>) -> Vec<(Rule, Place)> {
    faults.sort();
    faults
}

#[test]
fn the_rules_agree_with_a_model_that_tries_every_path() {
    let mut seen: BTreeMap<Rule, u64> = BTreeMap::new();
    let mut sound = 0;
    for seed in SEED..SEED + GRAPHS {
        let graph = random::graph(&mut Rng(seed));
        let faults = check(&graph);
        let found = sorted(faults.iter().map(|it| (it.rule, it.place)).collect());
        let expected = sorted(rules::broken(&graph));
        assert_eq!(found, expected, "seed {seed}: {}\n{faults:#?}", graph.dot());
        for (rule, _) in &found {
            *seen.entry(*rule).or_default() += 1;
        }
        sound += u64::from(found.is_empty());
    }
    println!("{GRAPHS} graphs, {sound} of them sound; faults by rule: {seen:?}");
    // The random graphs break every rule about edges and marks, and some break none.
    let names = [
        Rule::UnknownTarget,
        Rule::SameName,
        Rule::Shape,
        Rule::Condition,
        Rule::Option,
        Rule::Name,
    ];
    let missed: Vec<Rule> = Rule::ALL
        .into_iter()
        .filter(|it| !names.contains(it) && !seen.contains_key(it))
        .collect();
    assert!(
        missed.is_empty() && sound > 0,
        "never broken: {missed:?}; sound: {sound}"
    );
}

#[test]
fn the_routes_agree_with_a_model_that_tries_every_path() {
    for seed in SEED..SEED + GRAPHS {
        let graph = random::graph(&mut Rng(seed));
        let tables = Tables::of(&graph);
        let graph = Graph {
            routes: tables.routes(),
            ..graph
        };
        let ids: Vec<StateId> = graph.iter().map(|(id, _)| id).collect();
        for from in &ids {
            assert_eq!(
                graph.may_be_desired(*from),
                rules::may_be_desired(&graph, *from),
                "seed {seed}"
            );
            for to in ids.iter().filter(|to| graph.may_be_desired(**to)) {
                let expected = rules::hop(&graph, *from, *to);
                assert_eq!(
                    graph.hop(*from, *to),
                    expected,
                    "seed {seed}: {from:?} to {to:?} in {}",
                    graph.dot()
                );
            }
            assert_eq!(
                graph.out(*from),
                rules::out(&graph, *from),
                "seed {seed}: {from:?} in {}",
                graph.dot()
            );
        }
    }
}
