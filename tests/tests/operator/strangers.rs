//! Objects written by hand or by a newer operator.

use std::time::Duration;

use kube::api::{Patch, PatchParams, PostParams};
use okt_tests::{Database, DatabaseState::*, Databases, Reply, Rig, Served, Sight, definition};
use serde_json::{Value, json};

/// The definition of a newer operator, whose graph has one state more.
fn newer()
-> k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition {
    definition::with_graph::<Database>(|mut graph| {
        let states = graph["states"].as_array_mut().expect("states");
        states.push(json!({ "name": "Upgrading", "children": ["Running"] }));
        Some(graph)
    })
}

async fn put_in(rig: &Rig, state: &str) {
    let moved = json!({ "lifecycle": { "state": state, "transition": 3, "jumps": 1 } });
    rig.patch_status("db", moved)
        .await
        .expect("a jump is accepted");
    rig.pass(Duration::from_secs(1)).await;
}

#[tokio::test(start_paused = true)]
async fn an_unknown_state_affects_its_object_only_and_ends_with_an_observation() {
    let rig = Rig::running().await;
    rig.create("other", json!({})).await;
    put_in(&rig, "Zombie").await;
    rig.until_message("db", "Stalled", "UnknownState", "`Zombie`")
        .await;
    rig.until_ready("other", Running).await;
    rig.writes_nothing_for(Duration::from_hours(1)).await;
    assert_eq!(rig.position("db").await.state.as_str(), "Zombie");
    rig.app.sees("db", Sight::In(Running));
    rig.until_ready("db", Running).await;
    let position = rig.position("db").await;
    assert_eq!((position.transition, position.jumps), (4, 2));
    let jump = "was in Zombie by the record, is in Running; no edge leads there";
    let notes = rig.notes().await;
    assert_eq!(notes.last().map(String::as_str), Some(jump), "{notes:?}");
}

#[tokio::test(start_paused = true)]
async fn what_a_person_should_look_at_is_one_event_also_after_a_restart() {
    let rig = Rig::running().await;
    put_in(&rig, "Zombie").await;
    rig.until_reason("db", "Stalled", "UnknownState").await;
    for _ in 0..3 {
        rig.restart().await;
        rig.pass(Duration::from_mins(10)).await;
    }
    assert_eq!(rig.events().await, ["Warning UnknownState"]);
    let stalled = rig.condition("db", "Stalled").await.expect("it is");
    assert_eq!(rig.notes().await, [stalled.message]);
}

#[tokio::test(start_paused = true)]
async fn an_object_in_an_unknown_state_can_be_abandoned() {
    let rig = Rig::running().await;
    put_in(&rig, "Zombie").await;
    rig.delete("db").await;
    rig.until_message("db", "Deleting", "Deleting", "okt.dev/abandon")
        .await;
    rig.abandon("db").await;
    rig.until_gone("db").await;
}

#[tokio::test(start_paused = true)]
async fn an_object_in_a_state_of_a_newer_operator_is_not_changed() {
    let rig = Rig::running().await;
    rig.define(newer()).await;
    rig.pass(Duration::from_secs(1)).await;
    rig.wire.clear();
    put_in(&rig, "Upgrading").await;
    rig.ask_for("db", json!({ "state": "End" })).await;
    rig.app.sees("db", Sight::In(Running));
    rig.pass(Duration::from_hours(1)).await;
    rig.restart().await;
    rig.pass(Duration::from_hours(1)).await;
    assert_eq!(rig.wire.writes(), [""; 0]);
    // The newer operator moves it back.
    let back = json!({ "lifecycle": { "state": "Running", "transition": 4, "jumps": 2 } });
    rig.patch_status("db", back)
        .await
        .expect("a jump is accepted");
    rig.app.sees("db", Sight::Unobserved);
    rig.until_ready("db", End).await;
}

#[tokio::test(start_paused = true)]
async fn an_unknown_desired_state_is_reported_and_causes_no_transition() {
    let rig = Rig::<Databases>::lenient().await;
    rig.start();
    rig.create_raw(<okt_tests::Databases as okt_tests::Served>::object(
        "db",
        json!({ "state": "Flying" }),
    ))
    .await;
    rig.until_message("db", "Stalled", "UnknownDesiredState", "`Flying`")
        .await;
    assert_eq!(
        rig.position("db")
            .await
            .desired
            .expect("a desired state")
            .state,
        "Flying"
    );
    rig.writes_nothing_for(Duration::from_mins(30)).await;
    rig.ask_for("db", json!({ "state": "End" })).await;
    rig.until_ready("db", End).await;
}

#[tokio::test(start_paused = true)]
async fn an_unknown_visit_is_refused() {
    let rig = Rig::<Databases>::lenient().await;
    rig.start();
    rig.create_ready("db", Running).await;
    let visit = json!({ "spec": { "lifecycle": { "visit": { "state": "Flying" } } } });
    rig.patch("db", visit).await;
    rig.until_ready("db", Running).await;
    let visit = rig.position("db").await.visit.expect("a visit");
    assert_eq!(
        (visit.state.as_str(), visit.outcome),
        ("Flying", okt::VisitOutcome::Refused)
    );
}

#[tokio::test(start_paused = true)]
async fn work_of_a_state_that_a_user_moved_the_object_out_of_is_ignored() {
    let rig = Rig::new().await;
    rig.begin_work(
        Start,
        Reply::After(
            Duration::from_mins(1),
            okt::Answer::To(okt::Lifecycle::id(Failed)),
        ),
    )
    .await;
    let moved = json!({ "lifecycle": { "state": "Stopping", "transition": 2, "jumps": 1, "action": null } });
    rig.app.next_time(
        Stopping,
        Reply::After(Duration::from_mins(2), okt::Answer::Next),
    );
    rig.patch_status("db", moved)
        .await
        .expect("a jump is accepted");
    rig.until_in("db", End).await;
    assert_eq!(rig.app.overlaps(), 0);
    let ran = rig.app.ran();
    let stopping = ran
        .iter()
        .find(|ran| ran.state == Stopping)
        .expect("it ran");
    assert_ne!(stopping.id, ran[0].id);
}

#[tokio::test(start_paused = true)]
async fn the_work_of_a_state_that_a_user_moved_the_object_into_runs() {
    let rig = Rig::running().await;
    // A move by hand along a declared edge: the recorded action is that of the previous state.
    let moved = json!({ "lifecycle": { "state": "Stopping", "transition": 3 } });
    rig.patch_status("db", moved)
        .await
        .expect("an edge is accepted");
    rig.until_in("db", End).await;
    assert_eq!(rig.app.states("db"), [Start, Running, Stopping]);
}

#[tokio::test(start_paused = true)]
async fn foreign_conditions_and_fields_are_kept() {
    let rig = Rig::running().await;
    let foreign = json!({
        "apiVersion": "demo.okt.dev/v1", "kind": "Database",
        "metadata": { "name": "db" },
        "status": { "conditions": [{
            "type": "example.com/BackedUp", "status": "True", "reason": "Nightly", "message": "",
            "lastTransitionTime": "2026-11-21T09:00:00Z",
        }] },
    });
    rig.raw()
        .patch_status("db", &PatchParams::apply("backup"), &Patch::Apply(foreign))
        .await
        .expect("it is accepted");
    rig.writes_nothing_for(Duration::from_mins(5)).await;
    rig.ask_for("db", json!({ "state": "End" })).await;
    rig.until_ready("db", End).await;
    assert_eq!(
        rig.shows("db", "example.com/BackedUp").await,
        "True Nightly"
    );
}

#[tokio::test(start_paused = true)]
async fn unknown_words_in_the_record_do_not_make_an_object_undecodable() {
    let rig = Rig::running().await;
    let id = rig.position("db").await.action.expect("an action").id;
    let words = json!({ "lifecycle": {
        "action": { "id": id, "phase": "Musing" },
        "visit": { "state": "Servicing", "request": "9", "transition": 1, "outcome": "Forgotten" },
        "trail": "no trail at all",
        "revision": "no number",
    } });
    rig.patch_status("db", words).await.expect("it is accepted");
    rig.pass(Duration::from_secs(5)).await;
    rig.until_ready("db", Running).await;
    assert_eq!(rig.position("db").await.transition, 2);
    rig.ask_for("db", json!({ "state": "End" })).await;
    rig.until_ready("db", End).await;
}

#[tokio::test(start_paused = true)]
async fn a_status_that_lacks_all_but_the_state_is_completed() {
    let rig = Rig::without_operator().await;
    rig.create("db", json!({})).await;
    let bare: Value = json!({ "lifecycle": { "state": "Running", "transition": 7, "jumps": 1 } });
    rig.patch_status("db", bare).await.expect("it is accepted");
    rig.start();
    rig.until_ready("db", Running).await;
    let position = rig.position("db").await;
    assert_eq!((position.transition, position.jumps), (7, 1));
    assert_eq!(rig.app.states("db"), [Running]);
    rig.writes_nothing_for(Duration::from_mins(5)).await;
}

#[tokio::test(start_paused = true)]
async fn leftover_fields_of_a_restored_status_are_removed_once_and_foreign_conditions_stay() {
    let rig = Rig::<Databases>::without_operator().await;
    let mut stored = rig.create_raw(Databases::object("db", json!({}))).await;
    let at = "2026-11-21T09:00:00Z";
    let backed_up = json!({ "type": "BackedUp", "status": "True", "reason": "Restored", "message": "",
        "lastTransitionTime": at });
    stored.data["status"] = json!({
        "lifecycle": {
            "state": "Failed", "since": at, "transition": 3, "jumps": 1,
            "visit": { "state": "Servicing", "request": "nightly-1", "transition": 2, "outcome": "Reached" },
            "action": { "id": "someone/3", "attempt": 2, "phase": "Failed", "message": "half way",
                "failure": { "reason": "Old", "message": "long ago" } },
        },
        "conditions": [backed_up],
    });
    // A replacement owns every field, as with a restored backup.
    (rig.raw()
        .replace_status("db", &PostParams::default(), &stored)
        .await)
        .expect("the status is accepted");
    rig.start();
    rig.pass(Duration::from_hours(1)).await;
    assert_eq!(rig.shows("db", "Stalled").await, "True Failed");
    let action = rig.position("db").await.action.expect("it is on record");
    assert_eq!((action.message.as_str(), action.failure), ("", None));
    assert_eq!(rig.shows("db", "BackedUp").await, "True Restored");
    let writes = rig.wire.writes().len();
    println!("writes after a restore: {writes}");
    assert_eq!(writes, 3, "the finalizer, the status, what was left");
}

#[tokio::test(start_paused = true)]
async fn a_foreign_writer_of_the_position_causes_no_endless_writes() {
    let rig = Rig::running().await;
    rig.pass(Duration::from_mins(1)).await;
    rig.wire.clear();
    for _ in 0..600 {
        // OKT does not set this field here, so no apply removes it.
        let failure = json!({ "lifecycle": { "failure": { "reason": "Mine", "message": "" } } });
        rig.patch_status("db", failure).await.expect("it is taken");
        rig.pass(Duration::from_millis(100)).await;
    }
    rig.pass(Duration::from_hours(1)).await;
    let writes = rig.wire.writes().len();
    println!("writes of the operator after 600 foreign writes within a minute: {writes}");
    assert!(writes <= 620, "{writes}");
    rig.writes_nothing_for(Duration::from_hours(1)).await;
}

#[tokio::test(start_paused = true)]
async fn an_object_in_a_state_of_a_newer_operator_gets_no_finalizer() {
    let rig = Rig::<Databases>::bare();
    rig.define(newer()).await;
    rig.create("db", json!({})).await;
    let upgrading = json!({ "lifecycle": { "state": "Upgrading", "transition": 3, "jumps": 1 } });
    rig.patch_status("db", upgrading)
        .await
        .expect("it is accepted");
    rig.start();
    rig.pass(Duration::from_hours(1)).await;
    assert_eq!(rig.wire.writes(), [""; 0]);
}
