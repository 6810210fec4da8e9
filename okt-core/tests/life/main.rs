//! `decide` as a whole: random graphs, desired states, observations, failures and crashes, in tens of thousands of
//! lives.
//!
//! A failing life prints its seed; `OKT_SEED=<seed>` runs that one alone.

mod graphs;
mod rng;
mod world;

use okt_core::record::{Recorded, VisitOutcome};
use okt_core::{Mark, State, StateId};

use rng::Rng;
use world::{Asked, SIGHTS, World};

const LIVES: u64 = 30_000;

fn seeds() -> Vec<u64> {
    match std::env::var("OKT_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
    {
        Some(seed) => vec![seed],
        None => (0..LIVES).collect(),
    }
}

/// Runs one life per seed, and prints the seed that failed.
fn lives(life: impl Fn(&mut Rng)) {
    for seed in seeds() {
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            life(&mut Rng(seed.wrapping_mul(0x5851_f42d_4c95_7f2d)));
        }));
        if let Err(panic) = outcome {
            eprintln!("this life failed: OKT_SEED={seed}");
            std::panic::resume_unwind(panic);
        }
    }
}

fn position(world: &World<'_>) -> StateId {
    match world.stored.recorded {
        Recorded::Nothing => panic!("nothing recorded\n{}", world.tail()),
        Recorded::At(record) => record.state,
    }
}

#[test]
fn a_desired_state_with_a_route_is_reached_and_kept_without_further_writes() {
    lives(|rng| {
        let graph = graphs::random(rng);
        let desired_states: Vec<StateId> = graph
            .desirable_states()
            .filter(|to| graph.get(*to).is_some_and(|state| !state.is_passing()))
            .collect();
        let desired = desired_states[rng.below(desired_states.len())];
        let sight = SIGHTS[rng.below(SIGHTS.len())];
        let given = !rng.one_in(4);
        let mut world = World::new(graph, sight, rng);
        if given {
            world.desired = Some(Asked {
                state: desired,
                request: 0,
            });
        }
        world.settle("desired state");
        let desired = if given {
            desired
        } else {
            graph.home().expect("a home")
        };
        let entry = graph.entry().expect("an entry");
        let at = position(&world);
        // A trigger may have led elsewhere, where the desired state has no route or must be requested again.
        let debranched = world.log.iter().any(|line| line.contains("by: Trigger"));
        if desired == entry || graph.hop(entry, desired).is_some() {
            assert!(
                at == desired || debranched,
                "{sight:?} desired {desired:?}\n{}",
                world.tail()
            );
        }
        if at != desired {
            let state = graph.get(at).expect("a state");
            let stands =
                state.is(Mark::Leaf) || state.is(Mark::Hold) || graph.hop(at, desired).is_none();
            assert!(
                stands,
                "{sight:?} does not reach {desired:?}\n{}",
                world.tail()
            );
        }
        let (writes, stored) = (world.writes, world.stored);
        world.stop_crashing();
        for _ in 0..20 {
            assert!(
                !world.turn(),
                "{sight:?}: acts when settled\n{}",
                world.tail()
            );
        }
        assert_eq!(
            (world.writes, world.stored),
            (writes, stored),
            "{}",
            world.tail()
        );
    });
}

#[test]
fn every_deletion_ends_in_a_leaf() {
    lives(|rng| {
        let graph = graphs::random(rng);
        let sight = SIGHTS[rng.below(SIGHTS.len())];
        let before = rng.below(12);
        let mut world = World::new(graph, sight, rng);
        for _ in 0..before {
            world.turn();
        }
        world.deleting = true;
        world.generation += 1;
        world.settle("deletion");
        assert!(
            world.released,
            "{sight:?}: deletion hangs\n{}",
            world.tail()
        );
    });
}

#[test]
fn an_object_comes_to_rest_after_desired_states_visits_and_revisions() {
    lives(|rng| {
        let graph = graphs::random(rng);
        let desired_states: Vec<StateId> = graph.desirable_states().collect();
        let sight = SIGHTS[rng.below(SIGHTS.len())];
        let mut asks = Vec::new();
        for request in 1..=rng.between(2, 5) {
            let request = u32::try_from(request).expect("small");
            let state = desired_states[rng.below(desired_states.len())];
            asks.push((Asked { state, request }, rng.below(3), rng.below(30)));
        }
        let mut world = World::new(graph, sight, rng);
        for (asked, what, turns) in asks {
            let passing = graph.get(asked.state).is_some_and(State::is_passing);
            match what {
                0 => world.revision += 1,
                _ if passing => world.visit = Some(asked),
                _ => world.desired = Some(asked),
            }
            world.generation += 1;
            if turns < 20 {
                for _ in 0..turns {
                    world.turn();
                }
            } else {
                world.settle("ask");
            }
        }
        world.settle("asks");
        if let Some(asked) = world.visit {
            let outcome = world.visit_outcome();
            let at = position(&world);
            let held = graph
                .get(at)
                .is_some_and(|state| state.is(Mark::Hold) || state.is(Mark::Leaf));
            assert!(
                outcome != Some(VisitOutcome::Pending) || held,
                "{sight:?}: the visit to {asked:?} is neither made nor refused\n{}",
                world.tail()
            );
        }
        let writes = world.writes;
        world.stop_crashing();
        for _ in 0..10 {
            assert!(
                !world.turn(),
                "{sight:?}: acts when settled\n{}",
                world.tail()
            );
        }
        assert_eq!(world.writes, writes);
    });
}
