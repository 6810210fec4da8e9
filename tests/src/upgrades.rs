//! Upgrades of a graph with objects in transition, for any cluster.
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
    // The old operator continues.
    fleet.create("late", json!({})).await;
    fleet.until_ready("late", "Running").await;
    old.kill().await;
    let new = place.operate(wider::Brokers(fleet.world.clone()));
    fleet.arrive("Running").await;
    assert_eq!(new.writes_to("late"), [""; 0], "no write at rest");
    fleet.ask_for("late", json!({ "state": "Standby" })).await;
    fleet.until_ready("late", "Standby").await;
    // An old operator does not write to objects in a state that only the new one knows.
    let old = place.operate(first::Brokers(fleet.world.clone()));
    fleet
        .ask_for("resting", json!({ "state": "Standby", "request": "1" }))
        .await;
    fleet.until_in("resting", "Standby").await;
    fleet.until_ready("resting", "Standby").await;
    tokio::time::sleep(A_WHILE).await;
    old.tap.clear();
    fleet.delete("late").await;
    fleet.is_idle_about(&old, "resting").await;
    fleet.until_gone("late").await;
    witness.judge().await;
}

/// States and edges are added, and the operator comes before its CRD: it waits for the CRD.
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

/// Creates brokers in states that the next release does not have: at rest, and with work that does not end.
async fn embark_in_removed_states(fleet: &Fleet) {
    fleet.world.hold("moving", "moving");
    for name in ["standby", "moving"] {
        fleet.create(name, json!({})).await;
        fleet.until_ready(name, "Running").await;
    }
    fleet
        .ask_for("standby", json!({ "state": "Standby" }))
        .await;
    fleet.until_ready("standby", "Standby").await;
    fleet.visit("moving", "Moving", "1").await;
    fleet.until_working("moving", "moving").await;
}

/// Checks that objects in a state that the CRD lacks stand still until they are observed in another state.
async fn removed_states_are_left_by_observation(fleet: &Fleet) {
    for name in ["standby", "moving"] {
        let stalled = fleet.until_reason(name, "Stalled", "UnknownState").await;
        println!("{name}: {stalled}");
    }
    fleet
        .ask_for("standby", json!({ "state": "Running" }))
        .await;
    fleet.ask_for("moving", json!({ "visit": null })).await;
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

/// States are removed, and the CRD comes before the operator: the old operator stops working until it is replaced.
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

/// States are renamed: first the CRD, with which the old operator continues, then the operator.
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
    fleet.ask_for("visited", visit).await;
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
    // An old operator that still runs does not write to an object with a new state name.
    let old = place.operate(first::Brokers(fleet.world.clone()));
    fleet.is_idle_about(&old, "visiting").await;
    old.kill().await;
    // The old and the new name stand for the same desired state.
    fleet.ask_for("asking", json!({ "state": "Serving" })).await;
    fleet.until_ready("asking", "Serving").await;
    fleet.is_at("asking", 2, 0).await;
    fleet.ask_for("late", json!({ "state": "End" })).await;
    fleet.until_ready("late", "Gone").await;
    fleet.is_at("late", 4, 0).await;
    fleet.world.began_nothing_twice();
    witness.judge().await;
}

/// States are renamed, and the operator comes before its CRD: it waits for the CRD.
pub async fn renames_the_operator_first(place: &Place) {
    let fleet = Fleet::new(place);
    fleet.define::<first::Brokers>().await;
    let witness = Witness::of::<first::Brokers, renamed::Brokers>(place);
    let old = place.operate(first::Brokers(fleet.world.clone()));
    fleet.embark().await;
    // As in a rolling update, the new operator starts before the old one ends.
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

/// The CRD covers both releases: roll forward, back and forward again.
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
    fleet.ask_for("moving", visit).await;
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

/// A state becomes a part of another by `was`, with the CRD of both releases.
pub async fn a_union_lets_two_states_become_one(place: &Place) {
    let fleet = Fleet::new(place);
    fleet.define::<wider::Brokers>().await;
    let witness = Witness::of::<wider::Brokers, leaner::Brokers>(place);
    let old = place.operate(wider::Brokers(fleet.world.clone()));
    fleet.embark().await;
    fleet.define_both::<leaner::Brokers, wider::Brokers>().await;
    // The old operator moves an object between the two states.
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
    fleet.delete_until_gone("standby").await;
    fleet.world.began_nothing_twice();
    witness.judge().await;
}
