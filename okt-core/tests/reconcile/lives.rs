//! This file counts the cost of a lifecycle when nothing unexpected happens.

use crate::cases::{Budget, Case};
use crate::event::Event;
use crate::world::World;

/// The largest number of events until an object comes to rest.
const EVENTS: usize = 500;

/// Runs an object to its rest, and through its deletion. Returns a line with the number of transitions and of writes of
/// the status for each.
pub(crate) fn cost(case: &'static Case) -> String {
    let mut world = World::new(case, None);
    world.budget = Budget::NONE;
    let mut costs = Vec::new();
    for is_deleted in [false, true] {
        if is_deleted {
            world.asks(|spec| spec.deleting = true);
        }
        let before = cost_so_far(&world);
        world = comes_to_rest(world);
        let after = cost_so_far(&world);
        costs.push((after.0 - before.0, after.1 - before.1));
    }
    let [made, deleted] = costs[..] else {
        return String::new();
    };
    format!(
        "{:<36} to rest: {} transitions, {} writes; deleted: {} transitions, {} writes\n",
        case.name, made.0, made.1, deleted.0, deleted.1
    )
}

fn cost_so_far(world: &World) -> (u64, u32) {
    let record = world.stored.status.recorded.at();
    let transitions = record.map_or(0, |record| record.transition);
    (transitions, world.tally.patches)
}

fn comes_to_rest(mut world: World) -> World {
    for _ in 0..EVENTS {
        let (decision, surroundings) = world.calm_events();
        let event = decision.or(surroundings.first().copied());
        let is_waiting = world.process.has_timer && world.unrest().is_some();
        match event.or(is_waiting.then_some(Event::TimePasses)) {
            Some(event) => world = world.after(event),
            None => break,
        }
    }
    world
}
