//! `decide`, model-checked: every order in which a user, an application, a lagging cache and a crashing operator can act on one object.
//!
//! Safety is checked in every state that can be reached. Then, from each of them, faults stop: whatever order the rest
//! takes, the object has to come to rest where its spec says, or to say what is in the way.

#[path = "../common/build.rs"]
mod build;
#[path = "../common/database.rs"]
mod database;
mod rest;
mod world;

use okt_core::Graph;
use stateright::{Checker, HasDiscoveries, Model, Property, StateRecorder};

use world::{Budget, Event, World};

/// One object, and how often its surroundings may do something unexpected.
struct Life {
    graph: &'static Graph<'static>,
    budget: Budget,
}

impl Model for Life {
    type State = World;
    type Action = Event;

    fn init_states(&self) -> Vec<World> {
        vec![World::new(self.budget)]
    }

    fn actions(&self, world: &World, events: &mut Vec<Event>) {
        events.extend(world.events(self.graph));
    }

    fn next_state(&self, world: &World, event: Event) -> Option<World> {
        world.after(self.graph, event)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("no rule is broken", |_: &Self, world: &World| {
                world.broken.is_none()
            }),
            Property::sometimes("the object is let go", |_: &Self, world: &World| {
                world.released
            }),
            Property::sometimes("a visit is made", |_: &Self, world: &World| {
                world.has_made_a_visit()
            }),
            Property::sometimes("a write comes too late", |_: &Self, world: &World| {
                world.conflicts > 0
            }),
        ]
    }
}

/// Checks every state that can be reached, and that each comes to rest; gives how many there are.
fn check(graph: &'static Graph<'static>, budget: Budget, sometimes: &[&'static str]) -> usize {
    let (recorder, reached) = StateRecorder::new_with_accessor();
    let life = Life { graph, budget };
    let checker = life.checker().visitor(recorder);
    let checker = checker.finish_when(HasDiscoveries::AnyFailures);
    let checker = checker.spawn_bfs().join();
    if let Some(path) = checker.discovery("no rule is broken") {
        let broken = path.last_state().broken.clone();
        panic!("{broken:?} after {:#?}", path.into_actions());
    }
    for name in sometimes {
        assert!(
            checker.discovery(name).is_some(),
            "never in the model: {name}"
        );
    }
    let reached = reached();
    let mut rests = rest::Rests::of(graph);
    for world in &reached {
        rests.check(world);
    }
    println!(
        "{}: {} states that can be reached, {} more on the way to rest, none deeper than {} steps",
        graph.name,
        reached.len(),
        rests.count(),
        rests.deepest()
    );
    reached.len()
}

#[test]
#[ignore = "takes a minute; run with --include-ignored"]
fn a_database_keeps_every_rule_and_comes_to_rest_after_every_order_of_events() {
    let graph = Box::leak(Box::new(database::database()));
    let budget = Budget {
        user: 2,
        crashes: 1,
        answers: 1,
        sights: 0,
        overdue: 0,
    };
    let all = [
        "the object is let go",
        "a visit is made",
        "a write comes too late",
    ];
    let states = check(graph, budget, &all);
    assert!(states > 10_000, "the model has shrunk to {states} states");
}

/// Causes of every kind, a re-entry and a leaf with work.
fn causes() -> Graph<'static> {
    build::graph(&[
        "entry Making >Up",
        "rest Up !Changing:change !Gone:delete >Changing >Gone",
        "Changing !Gone:error1 !Making:after1800 >Up",
        "leaf Gone",
    ])
}

#[test]
#[ignore = "takes a minute; run with --include-ignored"]
fn triggers_of_every_kind_keep_every_rule_and_come_to_rest() {
    let graph = Box::leak(Box::new(causes()));
    let late = Budget {
        user: 2,
        crashes: 1,
        answers: 0,
        sights: 0,
        overdue: 1,
    };
    let refused = Budget {
        user: 1,
        answers: 2,
        ..late
    };
    let all = ["the object is let go", "a write comes too late"];
    for budget in [late, refused] {
        let states = check(graph, budget, &all);
        assert!(states > 10_000, "the model has shrunk to {states} states");
    }
}

#[test]
#[ignore = "takes a minute; run with --include-ignored"]
fn an_application_that_is_seen_elsewhere_is_followed_and_comes_to_rest() {
    let budget = Budget {
        user: 1,
        crashes: 1,
        answers: 0,
        sights: 2,
        overdue: 0,
    };
    for graph in [database::database(), causes()] {
        let graph = Box::leak(Box::new(graph));
        let states = check(graph, budget, &["the object is let go"]);
        assert!(states > 10_000, "the model has shrunk to {states} states");
    }
}
