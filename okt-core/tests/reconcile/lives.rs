//! Whole lives: their cost when nothing unexpected happens, and their ends on random graphs.

use okt_core::{Graph, Mark, State, StateId};

use crate::cases::{Budget, Case};
use crate::event::Event;
use crate::explore::{Found, random_world};
use crate::graphs;
use crate::object::Request;
use crate::rest::Rests;
use crate::rng::Rng;
use crate::world::{Presence, World};

/// The largest number of events until an object comes to rest.
const EVENTS: usize = 500;

/// Runs an object to its rest, and through its deletion. Returns a line with the number of transitions and of writes of
/// the status for each.
pub(crate) fn cost(case: &'static Case) -> String {
    let mut world = World::new(case, None);
    world.budget = Budget::default();
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

/// Runs an object of a random graph through random events. Then faults stop, and it must reach a desired state that has a
/// route, keep it without a request, and be gone after its deletion.
pub(crate) fn random_life(seed: u64) -> Result<(), Found> {
    let mut rng = Rng(seed);
    let graph: &'static Graph<'static> = Box::leak(Box::new(graphs::random(&mut rng)));
    let case: &'static mut Case = Box::leak(Box::default());
    (case.name, case.life) = ("a random graph", Some(graph));
    let case: &'static Case = case;
    let (world, events) = random_world(case, None, &mut rng);
    let fails = |world: &World, rule: String| {
        let tail = crate::trace::write(world.clone(), &[]);
        Err(Found {
            rule: format!("{rule}\n{tail}"),
            events: events.clone(),
        })
    };
    if let Some(rule) = &world.broken {
        return fails(&world, rule.clone());
    }
    let mut world = comes_to_rest(world.calmed());
    let states: Vec<StateId> = graph.desirable_states().collect();
    let resting: Vec<StateId> = states
        .into_iter()
        .filter(|to| graph.get(*to).is_some_and(|state| !state.is_passing()))
        .collect();
    let desired = resting[rng.below(resting.len())];
    let (before, triggered) = (position(&world), world.tally.triggered);
    if world.presence == Presence::Stored && !world.stored.spec.deleting {
        world.asks(|spec| {
            spec.paused = false;
            spec.desired = Some(Request::anew(spec.desired, desired));
        });
        world = comes_to_rest(world);
        let at = position(&world);
        let has_route =
            before.is_some_and(|from| from == desired || graph.hop(from, desired).is_some());
        // A trigger may have led elsewhere, where the desired state has no route or must be requested again.
        let is_excused =
            world.tally.triggered > triggered || at.is_some_and(|at| stands(graph, at, desired));
        if has_route && at != Some(desired) && !is_excused {
            return fails(
                &world,
                format!("{desired:?} is not reached from {before:?}"),
            );
        }
        if let Err(unrest) = Rests::default().check(&world) {
            return fails(&world, unrest.why);
        }
    }
    if world.presence == Presence::Stored && !world.stored.spec.deleting {
        world.asks(|spec| spec.deleting = true);
    }
    world = comes_to_rest(world);
    if let Some(rule) = &world.broken {
        return fails(&world, rule.clone());
    }
    if world.presence != Presence::Forgotten && !is_stuck(&world) {
        return fails(&world, "the deletion does not end".to_owned());
    }
    Ok(())
}

fn position(world: &World) -> Option<StateId> {
    world.stored.status.recorded.at().map(|record| record.state)
}

/// Returns whether an object waits in a state for a person, or for a request.
fn stands(graph: &Graph<'_>, at: StateId, desired: StateId) -> bool {
    let state = graph.get(at);
    state.is_none_or(|state: &State<'_>| state.is(Mark::Leaf) || state.is(Mark::Hold))
        || graph.hop(at, desired).is_none()
}

/// Returns whether an object waits for a change of its spec, because its work failed permanently.
fn is_stuck(world: &World) -> bool {
    let record = world.stored.status.recorded;
    let failed = (record.at().zip(world.case.life)).is_some_and(|(at, life)| at.failed(life));
    failed && world.stored.status.report.is_stalled
}
