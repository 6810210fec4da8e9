//! Properties of all graphs, records and facts.

use okt_core::decide::{By, Verdict, decide};
use okt_core::record::Recorded;
use okt_core::routes::Tables;
use okt_core::{Graph, Mark};
use proptest::prelude::*;

use crate::moment::moment;
use crate::rng::Rng;
use crate::{graphs, wild};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn any_graph_record_and_facts_give_a_decision_and_a_record(seed: u64) {
        let rng = &mut Rng(seed);
        let graph = wild::wild(rng);
        let tables = Tables::of(&graph);
        let routes = if rng.one_in(4) { graph.routes } else { tables.routes() };
        let graph = Graph { routes, ..graph };
        let (recorded, facts) = moment(rng, &graph);
        let decision = decide(&graph, &recorded, &facts);
        let after = recorded.after(&graph, &facts, &decision);
        prop_assert_eq!(decide(&graph, &recorded, &facts), decision);
        prop_assert_eq!(recorded.after(&graph, &facts, &decision), after);
    }

    #[test]
    fn a_move_is_a_declared_edge_the_entry_a_reentry_or_a_counted_jump(seed: u64) {
        let rng = &mut Rng(seed);
        let graph = graphs::random(rng);
        let (recorded, facts) = moment(rng, &graph);
        let decision = decide(&graph, &recorded, &facts);
        let after = recorded.after(&graph, &facts, &decision);
        let Verdict::Go(go) = decision else {
            let stays = |r: &Recorded| r.at().map(|r| (r.state, r.left, r.transition, r.jumps, r.changed));
            prop_assert_eq!(stays(&after), stays(&recorded));
            return Ok(());
        };
        let Recorded::At(to) = after else { panic!("a move is recorded") };
        let before = recorded.at();
        let from = before.and_then(|record| graph.get(record.state));
        let declared = match go.by {
            By::Entry => before.is_none() && graph.entry() == Some(go.to),
            By::Jump => graph.get(go.to).is_some(),
            By::Reentry => from.is_some_and(|state| state.is(Mark::Leaf)) && graph.entry() == Some(go.to),
            By::Child => from.is_some_and(|state| state.children.contains(&go.to)),
            By::Trigger => from.is_some_and(|state| state.trigger_to(go.to).is_some()),
        };
        prop_assert!(declared, "{go:?}");
        prop_assert_eq!(to.state, go.to);
        prop_assert_eq!(to.transition, before.map_or(0, |record| record.transition) + 1);
        let jumps = before.map_or(0, |record| record.jumps) + u64::from(go.by == By::Jump);
        prop_assert_eq!(to.jumps, jumps);
        prop_assert_eq!(to.revision, facts.revision);
    }

    #[test]
    fn a_decision_to_stand_is_not_written_twice(seed: u64) {
        let rng = &mut Rng(seed);
        let graph = graphs::random(rng);
        let (recorded, mut facts) = moment(rng, &graph);
        let decision = decide(&graph, &recorded, &facts);
        if !matches!(decision, Verdict::Stay(_)) {
            return Ok(());
        }
        let after = recorded.after(&graph, &facts, &decision);
        // The spec is on record now, so nothing in it is new.
        facts.desired.fresh = false;
        facts.desired.requested = false;
        // The object has another version now.
        facts.has_unused_place = false;
        facts.visit = facts.visit.map(|visit| okt_core::facts::DesiredVisit { fresh: false, ..visit });
        let decision = decide(&graph, &after, &facts);
        if matches!(decision, Verdict::Stay(_)) {
            prop_assert_eq!(after.after(&graph, &facts, &decision), after);
        }
    }
}
