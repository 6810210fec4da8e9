//! Upgrades of a graph with objects in flight, as they are done on any cluster.
#![expect(
    clippy::missing_panics_doc,
    reason = "what a test expects and does not find is a panic, everywhere here"
)]

use serde_json::json;

use crate::fleet::{A_WHILE, Fleet, condition};
use crate::releases::{first, leaner, mixed, renamed, wider};
use crate::rollout::{Place, Witness};

/// Calls a macro with the names of all scenarios.
#[macro_export]
macro_rules! upgrade_scenarios {
    ($each:ident) => {
        $each! {
            additions_the_definition_first
            additions_the_operator_first
            removals_the_operator_first
            removals_the_definition_first
            renames_the_definition_first
            renames_the_operator_first
            a_union_lets_both_releases_write
            a_union_lets_two_states_become_one
        }
    };
}

/// States and edges are added: first the CRD, then the operator.
pub async fn additions_the_definition_first(place: &Place) {
    let fleet = Fleet::new(place);
    fleet.define::<first::Brokers>().await;
    let witness = Witness::of::<first::Brokers, wider::Brokers>(place);
    let old = place.operate(first::Brokers(fleet.world.clone()));
    fleet.embark().await;
    fleet.define::<wider::Brokers>().await;
    // The old operator goes on.
    fleet.create("late", json!({})).await;
    fleet.until_ready("late", "Running").await;
    old.kill().await;
    let new = place.operate(wider::Brokers(fleet.world.clone()));
    fleet.arrive("Running").await;
    assert_eq!(new.writes_to("late"), [""; 0], "what is settled stays so");
    fleet
        .cluster
        .ask_for("late", json!({ "state": "Standby" }))
        .await;
    fleet.until_ready("late", "Standby").await;
    // An old operator leaves alone what only the new one knows.
    let old = place.operate(first::Brokers(fleet.world.clone()));
    fleet
        .cluster
        .ask_for("resting", json!({ "state": "Standby", "request": "1" }))
        .await;
    fleet.until_in("resting", "Standby").await;
    fleet.until_ready("resting", "Standby").await;
    tokio::time::sleep(A_WHILE).await;
    old.tap.clear();
    fleet.cluster.delete("late").await;
    fleet.is_idle_about(&old, "resting").await;
    fleet.cluster.until_gone("late").await;
    witness.judge().await;
}

/// States and edges are added, and the operator comes before its CRD: it waits.
pub async fn additions_the_operator_first(place: &Place) {
    let fleet = Fleet::new(place);
    fleet.define::<first::Brokers>().await;
    let witness = Witness::of::<first::Brokers, wider::Brokers>(place);
    let old = place.operate(first::Brokers(fleet.world.clone()));
    fleet.embark().await;
    old.kill().await;
    let new = place.operate(wider::Brokers(fleet.world.clone()));
    fleet.world.let_go();
    fleet.is_idle(&new).await;
    fleet.define::<wider::Brokers>().await;
    fleet.arrive("Running").await;
    fleet.world.began_nothing_twice();
    witness.judge().await;
}

/// Brokers in states that the next release does not have: at rest, and with work that does not end.
async fn embark_in_removed_states(fleet: &Fleet) {
    fleet.world.hold("moving", "moving");
    for name in ["standby", "moving"] {
        fleet.create(name, json!({})).await;
        fleet.until_ready(name, "Running").await;
    }
    fleet
        .cluster
        .ask_for("standby", json!({ "state": "Standby" }))
        .await;
    fleet.until_ready("standby", "Standby").await;
    let visit = json!({ "visit": { "state": "Moving", "request": "1" } });
    fleet.cluster.ask_for("moving", visit).await;
    fleet.until_working("moving", "moving").await;
}

/// After the CRD lacks a state, objects in it stand still until they are seen elsewhere.
async fn removed_states_are_left_by_observation(fleet: &Fleet) {
    for name in ["standby", "moving"] {
        let said = fleet.until_reason(name, "Stalled", "UnknownState").await;
        println!("{name}: {said}");
    }
    fleet
        .cluster
        .ask_for("standby", json!({ "state": "Running" }))
        .await;
    fleet
        .cluster
        .ask_for("moving", json!({ "visit": null }))
        .await;
    for name in ["standby", "moving"] {
        fleet.world.sees(name, "Running");
        fleet.until_ready(name, "Running").await;
        fleet.is_at(name, 4, 1).await;
    }
}

/// States are removed: first the operator, then the CRD.
pub async fn removals_the_operator_first(place: &Place) {
    let fleet = Fleet::new(place);
    fleet.define::<wider::Brokers>().await;
    let witness = Witness::of::<wider::Brokers, first::Brokers>(place);
    let old = place.operate(wider::Brokers(fleet.world.clone()));
    fleet.embark().await;
    embark_in_removed_states(&fleet).await;
    old.kill().await;
    let new = place.operate(first::Brokers(fleet.world.clone()));
    fleet.arrive("Running").await;
    for name in ["standby", "moving"] {
        fleet.is_idle_about(&new, name).await;
    }
    fleet.define::<first::Brokers>().await;
    removed_states_are_left_by_observation(&fleet).await;
    fleet.world.began_nothing_twice();
    witness.judge().await;
}

/// States are removed, and the CRD goes before the operator: that stops until it is replaced.
pub async fn removals_the_definition_first(place: &Place) {
    let fleet = Fleet::new(place);
    fleet.define::<wider::Brokers>().await;
    let witness = Witness::of::<wider::Brokers, first::Brokers>(place);
    let old = place.operate(wider::Brokers(fleet.world.clone()));
    fleet.embark().await;
    embark_in_removed_states(&fleet).await;
    fleet.define::<first::Brokers>().await;
    tokio::time::sleep(A_WHILE).await;
    fleet.is_idle(&old).await;
    old.kill().await;
    let _new = place.operate(first::Brokers(fleet.world.clone()));
    fleet.arrive("Running").await;
    removed_states_are_left_by_observation(&fleet).await;
    witness.judge().await;
}

/// States get other names: first the CRD, with which the old operator goes on, then the operator.
pub async fn renames_the_definition_first(place: &Place) {
    let fleet = Fleet::new(place);
    fleet.define::<first::Brokers>().await;
    let witness = Witness::of::<first::Brokers, renamed::Brokers>(place);
    let old = place.operate(first::Brokers(fleet.world.clone()));
    fleet.embark().await;
    fleet.create("asking", json!({ "state": "Running" })).await;
    fleet.until_ready("asking", "Running").await;
    let visit = json!({ "visit": { "state": "Compacting", "request": "1" } });
    fleet.create("visited", json!({})).await;
    fleet.until_ready("visited", "Running").await;
    fleet.cluster.ask_for("visited", visit).await;
    fleet.until_ready("visited", "Running").await;
    fleet.is_at("visited", 4, 0).await;
    fleet.define::<renamed::Brokers>().await;
    fleet.create("late", json!({})).await;
    fleet.until_ready("late", "Running").await;
    old.kill().await;
    let new = place.operate(renamed::Brokers(fleet.world.clone()));
    fleet.arrive("Serving").await;
    assert_eq!(
        fleet.state_of("visiting").await,
        "Serving",
        "its next write says the new name"
    );
    for name in ["resting", "asking", "visited", "late"] {
        assert_eq!(
            new.writes_to(name),
            [""; 0],
            "a renaming is no reason to write {name}"
        );
        assert_eq!(fleet.state_of(name).await, "Running");
    }
    // While an old operator still runs: it leaves alone what has a new name.
    let old = place.operate(first::Brokers(fleet.world.clone()));
    fleet.is_idle_about(&old, "visiting").await;
    old.kill().await;
    // Wishes in the old name and in the new one are the same wish.
    fleet
        .cluster
        .ask_for("asking", json!({ "state": "Serving" }))
        .await;
    fleet.until_ready("asking", "Serving").await;
    fleet.is_at("asking", 2, 0).await;
    fleet
        .cluster
        .ask_for("late", json!({ "state": "End" }))
        .await;
    fleet.until_ready("late", "Gone").await;
    fleet.is_at("late", 4, 0).await;
    fleet.world.began_nothing_twice();
    witness.judge().await;
}

/// States get other names, and the operator comes before its CRD: it waits.
pub async fn renames_the_operator_first(place: &Place) {
    let fleet = Fleet::new(place);
    fleet.define::<first::Brokers>().await;
    let witness = Witness::of::<first::Brokers, renamed::Brokers>(place);
    let old = place.operate(first::Brokers(fleet.world.clone()));
    fleet.embark().await;
    // Rolling: the new one is there before the old one goes.
    let new = place.operate(renamed::Brokers(fleet.world.clone()));
    fleet.is_idle(&new).await;
    fleet.create("late", json!({})).await;
    fleet.until_ready("late", "Running").await;
    assert_eq!(new.tap.writes(), []);
    old.kill().await;
    fleet.define::<renamed::Brokers>().await;
    fleet.arrive("Serving").await;
    fleet.world.began_nothing_twice();
    witness.judge().await;
}

/// The CRD of both releases: roll forward, back and forward again.
pub async fn a_union_lets_both_releases_write(place: &Place) {
    let fleet = Fleet::new(place);
    fleet.define::<first::Brokers>().await;
    let witness = Witness::of::<first::Brokers, mixed::Brokers>(place);
    let old = place.operate(first::Brokers(fleet.world.clone()));
    fleet.embark().await;
    fleet.define_both::<mixed::Brokers, first::Brokers>().await;
    fleet.create("late", json!({})).await;
    fleet.until_ready("late", "Running").await;
    old.kill().await;

    let new = place.operate(mixed::Brokers(fleet.world.clone()));
    fleet.world.hold("moving", "moving");
    let visit = json!({ "visit": { "state": "Moving", "request": "1" } });
    fleet.create("moving", json!({})).await;
    fleet.until_ready("moving", "Serving").await;
    fleet.cluster.ask_for("moving", visit).await;
    fleet.until_working("moving", "moving").await;
    // Compacting is not a state of the new release.
    fleet.is_idle_about(&new, "visiting").await;
    new.kill().await;

    let old = place.operate(first::Brokers(fleet.world.clone()));
    fleet.arrive("Running").await;
    fleet.is_idle_about(&old, "moving").await;
    old.kill().await;

    let _new = place.operate(mixed::Brokers(fleet.world.clone()));
    fleet.until_ready("moving", "Serving").await;
    fleet.define::<mixed::Brokers>().await;
    fleet
        .cluster
        .ask_for(
            "resting",
            json!({ "state": "Running", "visit": { "state": "Moving" } }),
        )
        .await;
    fleet
        .until("resting", "has visited", |object| {
            object["status"]["lifecycle"]["visit"]["outcome"] == "Reached"
        })
        .await;
    fleet.until_ready("resting", "Serving").await;
    fleet.is_at("resting", 4, 0).await;
    witness.judge().await;
}

/// A state becomes a part of another, by `was`, with the CRD of both releases.
pub async fn a_union_lets_two_states_become_one(place: &Place) {
    let fleet = Fleet::new(place);
    fleet.define::<wider::Brokers>().await;
    let witness = Witness::of::<wider::Brokers, leaner::Brokers>(place);
    let old = place.operate(wider::Brokers(fleet.world.clone()));
    fleet.embark().await;
    fleet.define_both::<leaner::Brokers, wider::Brokers>().await;
    // The old operator moves between the two.
    fleet.create("standby", json!({ "state": "Standby" })).await;
    fleet.until_ready("standby", "Standby").await;
    fleet.is_at("standby", 3, 0).await;
    old.kill().await;
    let new = place.operate(leaner::Brokers(fleet.world.clone()));
    fleet.arrive("Running").await;
    fleet
        .until("standby", "is available", |object| {
            condition(object, "Available")["status"] == "True"
        })
        .await;
    fleet.is_at("standby", 3, 0).await;
    new.kill().await;
    fleet.define::<leaner::Brokers>().await;
    let _new = place.operate(leaner::Brokers(fleet.world.clone()));
    fleet.cluster.delete("standby").await;
    fleet.cluster.until_gone("standby").await;
    fleet.world.began_nothing_twice();
    witness.judge().await;
}
