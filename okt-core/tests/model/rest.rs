//! When faults stop: whatever order the rest takes, it ends, and at rest.

use std::collections::HashMap;

use okt_core::Graph;

use crate::world::World;

/// More steps to rest are taken for none at all: no life here needs a third of them.
const STEPS: usize = 300;

/// Worlds in which nothing is unexpected any more, each with the longest way to its rest.
pub(crate) struct Rests<'g> {
    graph: &'g Graph<'g>,
    known: HashMap<World, usize>,
}

impl<'g> Rests<'g> {
    pub(crate) fn of(graph: &'g Graph<'g>) -> Self {
        Self {
            graph,
            known: HashMap::new(),
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.known.len()
    }

    pub(crate) fn deepest(&self) -> usize {
        self.known.values().copied().max().unwrap_or(0)
    }

    /// Follows every order of what is still to happen.
    pub(crate) fn check(&mut self, world: &World) {
        let world = world.calmed();
        self.longest(&world, &mut Vec::new());
    }

    fn longest(&mut self, world: &World, way: &mut Vec<World>) -> usize {
        if let Some(known) = self.known.get(world) {
            return *known;
        }
        assert!(
            way.len() < STEPS && !way.contains(world),
            "goes on for ever: {:#?}",
            &way[way.len().saturating_sub(6)..]
        );
        way.push(world.clone());
        let events = world.calm_events(self.graph).into_iter();
        let nexts: Vec<_> = events
            .filter_map(|event| world.after(self.graph, event))
            .collect();
        if nexts.is_empty() {
            let unrest = world.unrest(self.graph);
            assert!(
                unrest.is_none(),
                "stands still, not at rest: {unrest:?} in {world:#?}"
            );
        }
        let mut longest = 0;
        for next in nexts {
            assert!(next.broken.is_none(), "{:?} in {world:#?}", next.broken);
            longest = longest.max(1 + self.longest(&next, way));
        }
        way.pop();
        self.known.insert(world.clone(), longest);
        longest
    }
}
