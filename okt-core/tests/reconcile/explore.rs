//! Exploration of the states of a world: breadth-first, and in random runs.

use std::collections::HashSet;

use crate::cases::{Budget, Case};
use crate::coverage::Coverage;
use crate::event::{EffectOutcome, Event};
use crate::plant::Bug;
use crate::rest::{Rests, Unrest};
use crate::rng::Rng;
use crate::world::World;

/// The result of an exploration.
pub(crate) struct Explored {
    pub(crate) states: usize,
    /// The number of states from which rest was checked.
    pub(crate) rests: usize,
    /// The number of events that lead to the deepest state.
    pub(crate) depth: usize,
    /// Whether every state was reached.
    pub(crate) is_whole: bool,
    pub(crate) coverage: Coverage,
    pub(crate) found: Option<Found>,
}

/// A rule that does not hold.
pub(crate) struct Found {
    pub(crate) rule: String,
    /// The events that break it, from the start.
    pub(crate) events: Vec<Event>,
}

/// Explores the states that can be reached, the nearest first, up to `limit`.
///
/// From each state it checks whether the object comes to rest.
pub(crate) fn breadth_first(
    case: &'static Case,
    bug: Option<Bug>,
    limit: usize,
    mut rests: Rests,
) -> Explored {
    let start = World::new(case, bug);
    let mut known = HashSet::from([start.fingerprint()]);
    // For each state, the previous state and the event between them.
    let mut ways: Vec<(usize, Event)> = vec![(0, Event::ReconciledOnceMore)];
    let mut layer = vec![(0, start)];
    let mut explored = Explored {
        states: 0,
        rests: 0,
        depth: 0,
        is_whole: true,
        coverage: Coverage::default(),
        found: None,
    };
    while !layer.is_empty() && explored.found.is_none() {
        let mut next = Vec::new();
        for (at, world) in layer {
            if let Err(Unrest { why, events }) = rests.check(&world) {
                let events = way_to(&ways, at).into_iter().chain(events).collect();
                explored.found = Some(Found { rule: why, events });
                break;
            }
            if known.len() >= limit {
                explored.is_whole = false;
                continue;
            }
            explored.coverage.note(&world);
            for event in world.events() {
                let after = world.after(event);
                if !known.insert(after.fingerprint()) {
                    continue;
                }
                let id = ways.len();
                ways.push((at, event));
                if let Some(rule) = after.broken {
                    let events = way_to(&ways, id);
                    explored.found.get_or_insert(Found { rule, events });
                } else {
                    next.push((id, after));
                }
            }
        }
        explored.depth += usize::from(!next.is_empty());
        layer = next;
    }
    explored.states = known.len();
    explored.rests = rests.count();
    explored
}

fn way_to(ways: &[(usize, Event)], mut at: usize) -> Vec<Event> {
    let mut events = Vec::new();
    while at != 0 {
        let (before, event) = ways[at];
        events.push(event);
        at = before;
    }
    events.reverse();
    events
}

/// Runs one random order of events from a seed; then faults stop. Returns the number of events.
pub(crate) fn random_run(
    case: &'static Case,
    bug: Option<Bug>,
    seed: u64,
) -> (usize, Option<Found>) {
    let (world, events) = random_world(case, bug, &mut Rng(seed));
    let count = events.len();
    let found = examine(world, events).map(|found| shrink(case, bug, found));
    (count, found)
}

/// Returns a world after random events, and these events.
pub(crate) fn random_world(
    case: &'static Case,
    bug: Option<Bug>,
    rng: &mut Rng,
) -> (World, Vec<Event>) {
    let mut world = rich(case, bug);
    let mut events = Vec::new();
    for _ in 0..rng.between(40, 100) {
        let possible = world.events();
        if possible.is_empty() {
            break;
        }
        // Otherwise an operator would hardly ever reach the end of a reconciliation.
        let decides = Event::Decides(EffectOutcome::Works);
        let event = if possible.contains(&decides) && !rng.one_in(3) {
            decides
        } else {
            possible[rng.below(possible.len())]
        };
        events.push(event);
        world = world.after(event);
    }
    (world, events)
}

/// Returns the rule that a world breaks, or breaks after faults stop.
fn examine(world: World, mut events: Vec<Event>) -> Option<Found> {
    if let Some(rule) = world.broken {
        return Some(Found { rule, events });
    }
    let Unrest { why, events: more } = Rests::default().check(&world).err()?;
    events.extend(more);
    Some(Found { rule: why, events })
}

/// Returns the world in which a random run begins.
pub(crate) fn rich(case: &'static Case, bug: Option<Bug>) -> World {
    let mut world = World::new(case, bug);
    world.budget = Budget::rich();
    world
}

/// Returns the rule that these events break, or nothing if none is broken or one of the events cannot happen.
fn replay(mut world: World, events: &[Event]) -> Option<Found> {
    let mut happened = Vec::new();
    for event in events {
        if world.broken.is_some() {
            break;
        }
        if !world.events().contains(event) {
            return None;
        }
        world = world.after(*event);
        happened.push(*event);
    }
    examine(world, happened)
}

/// Leaves out every event without which the same rule is broken too.
fn shrink(case: &'static Case, bug: Option<Bug>, mut found: Found) -> Found {
    let mut count = 8;
    while count > 0 {
        let mut at = 0;
        while at < found.unexpected().len() {
            let mut fewer = found.unexpected().to_vec();
            fewer.drain(at..fewer.len().min(at + count));
            match replay(rich(case, bug), &fewer) {
                Some(shorter) if shorter.rule == found.rule => found = shorter,
                Some(_) | None => at += count,
            }
        }
        count /= 2;
    }
    found
}

impl Found {
    /// Returns the events before faults stopped.
    fn unexpected(&self) -> &[Event] {
        let stops = |event: &Event| matches!(event, Event::FaultsStop | Event::FaultsStopButOne);
        let end = self.events.iter().position(stops);
        &self.events[..end.unwrap_or(self.events.len())]
    }
}
