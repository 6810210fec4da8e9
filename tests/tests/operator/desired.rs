//! The desired state: reached, kept, refused, changed, and visits.

use std::time::Duration;

use okt::{Answer, VisitOutcome};
use okt_tests::{DatabaseState::*, Reply, Rig, SiteState, Sites};
use serde_json::json;

async fn outcome(rig: &Rig) -> VisitOutcome {
    rig.position("db").await.visit.expect("a visit").outcome
}

#[tokio::test(start_paused = true)]
async fn without_a_desired_state_an_object_goes_to_the_first_resting_state() {
    let rig = Rig::running().await;
    let desired = rig.position("db").await.desired.expect("a desired state");
    assert_eq!((desired.state.as_str(), desired.reached), ("Running", true));
}

#[tokio::test(start_paused = true)]
async fn a_desired_state_without_a_route_is_refused_with_a_reason() {
    let rig = Rig::<Sites>::of().await;
    rig.create("s", json!({ "state": "Archived" })).await;
    rig.until_ready("s", SiteState::Archived).await;
    rig.ask_for("s", json!({ "state": "Online" })).await;
    rig.until_message("s", "Stalled", "NoRoute", "an archive is not opened again")
        .await;
    assert_eq!(rig.shows("s", "Ready").await, "False NoRoute");
    rig.writes_nothing_for(Duration::from_hours(1)).await;
    rig.ask_for("s", json!({ "state": "Archived" })).await;
    rig.until_ready("s", SiteState::Archived).await;
    assert_eq!(rig.shows("s", "Stalled").await, "");
}

#[tokio::test(start_paused = true)]
async fn a_holding_state_is_left_for_a_new_request_only() {
    let rig = Rig::new().await;
    rig.app
        .next_time(Start, Reply::FailPermanently("no such image"));
    rig.create("db", json!({ "state": "Running", "request": "1" }))
        .await;
    rig.until_reason("db", "Stalled", "Failed").await;
    rig.pass(Duration::from_hours(1)).await;
    rig.restart().await;
    rig.pass(Duration::from_hours(1)).await;
    assert_eq!(rig.position("db").await.transition, 2);
    rig.ask_for("db", json!({ "request": "2" })).await;
    rig.until_ready("db", Running).await;
    assert_eq!(rig.position("db").await.trail, ">Start>Failed>Running>");
}

#[tokio::test(start_paused = true)]
async fn a_leaf_is_left_for_a_new_request_only() {
    let rig = Rig::running().await;
    // The handler of the visited state ends the lifecycle although the desired state is Running.
    rig.app.next_time(
        Servicing,
        Reply::Answer(Answer::To(okt::Lifecycle::id(End))),
    );
    rig.visit("db", "Servicing", None).await;
    rig.until_in("db", End).await;
    assert_eq!(rig.shows("db", "Stalled").await, "True End");
    rig.pass(Duration::from_hours(1)).await;
    rig.restart().await;
    rig.pass(Duration::from_mins(1)).await;
    assert_eq!(rig.position("db").await.transition, 4);
    rig.ask_for("db", json!({ "request": "anew" })).await;
    rig.until_ready("db", Running).await;
    let position = rig.position("db").await;
    assert_eq!(
        position.trail,
        ">Start>Running>Servicing>End>Start>Running>"
    );
    assert_eq!(position.jumps, 0);
    assert_eq!(position.history[4].cause, "Reentry:DesiredState");
}

#[tokio::test(start_paused = true)]
async fn a_desired_leaf_is_ready_and_left_for_another_desired_state() {
    let rig = Rig::running().await;
    rig.ask_for("db", json!({ "state": "End" })).await;
    rig.until_ready("db", End).await;
    rig.pass(Duration::from_hours(1)).await;
    rig.ask_for("db", json!({ "state": "Running" })).await;
    rig.until_ready("db", Running).await;
    assert_eq!(rig.position("db").await.transition, 6);
}

#[tokio::test(start_paused = true)]
async fn a_visit_is_made_once_per_request() {
    let rig = Rig::running().await;
    for (request, transition) in [("1", 4), ("1", 4), ("2", 6), ("1", 8)] {
        rig.visit("db", "Servicing", request).await;
        rig.pass(Duration::from_mins(2)).await;
        rig.until_ready("db", Running).await;
        assert_eq!(outcome(&rig).await, VisitOutcome::Reached);
        assert_eq!(rig.position("db").await.transition, transition, "{request}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_visit_is_reported_only_in_its_outcome() {
    let rig = Rig::<Sites>::of().await;
    rig.create("s", json!({ "state": "Archived" })).await;
    rig.until_ready("s", SiteState::Archived).await;
    rig.visit("s", "Rebuilding", None).await;
    rig.until_position("s", "has refused the visit", |position| {
        let visit = position.visit.as_ref();
        visit.is_some_and(|v| v.outcome == VisitOutcome::Refused)
    })
    .await;
    rig.until_ready("s", SiteState::Archived).await;
}

#[tokio::test(start_paused = true)]
async fn a_visit_taken_out_of_the_spec_before_it_was_made_is_overtaken() {
    let rig = Rig::new().await;
    rig.app
        .next_time(Start, Reply::After(Duration::from_mins(1), Answer::Next));
    rig.create_in("db", Start).await;
    rig.visit("db", "Servicing", None).await;
    rig.pass(Duration::from_secs(1)).await;
    assert_eq!(outcome(&rig).await, VisitOutcome::Pending);
    rig.ask_for("db", json!({ "visit": null })).await;
    rig.until_ready("db", Running).await;
    assert_eq!(outcome(&rig).await, VisitOutcome::Overtaken);
    assert_eq!(rig.app.states("db"), [Start, Running]);
}

#[tokio::test(start_paused = true)]
async fn a_visit_found_when_nothing_is_recorded_is_not_replayed() {
    let rig = Rig::new().await;
    rig.create(
        "db",
        json!({ "visit": { "state": "Servicing", "request": "old" } }),
    )
    .await;
    rig.until_ready("db", Running).await;
    assert_eq!(outcome(&rig).await, VisitOutcome::NotReplayed);
    rig.pass(Duration::from_mins(10)).await;
    assert_eq!(rig.app.states("db"), [Start, Running]);
    rig.ask_for("db", json!({ "visit": { "request": "new" } }))
        .await;
    rig.until_visited("db").await;
}

#[tokio::test(start_paused = true)]
async fn an_object_that_a_handler_moved_returns_to_its_desired_state() {
    let rig = Rig::running().await;
    rig.app.next_time(
        Running,
        Reply::Answer(Answer::To(okt::Lifecycle::id(Servicing))),
    );
    rig.patch("db", json!({ "spec": { "storage": "2Gi" } }))
        .await;
    rig.until_ready("db", Running).await;
    let position = rig.position("db").await;
    assert_eq!(position.trail, ">Start>Running>Servicing>Running>");
    assert_eq!(position.history[2].cause, "Handler");
}

#[tokio::test(start_paused = true)]
async fn a_new_revision_reruns_the_work_of_a_resting_state_under_a_new_id() {
    let rig = Rig::running().await;
    for run in 2..5 {
        rig.patch("db", json!({ "spec": { "storage": format!("{run}Gi") } }))
            .await;
        rig.until_ready("db", Running).await;
        let id = rig.position("db").await.action.expect("an action").id;
        assert!(id.contains(&format!("/2/{run}@")), "{id}");
    }
    let ran = rig.app.ran();
    assert_eq!(ran.len(), 5);
    let last = &ran.last().expect("a run").id;
    assert!(last.contains("/2/4@"), "{last}");
    assert_eq!(rig.position("db").await.transition, 2);
}

#[tokio::test(start_paused = true)]
async fn a_changed_desired_state_is_no_new_revision() {
    let rig = Rig::running().await;
    rig.ask_for("db", json!({ "state": "Running", "request": "again" }))
        .await;
    rig.until_ready("db", Running).await;
    rig.pass(Duration::from_mins(1)).await;
    assert_eq!(rig.app.ran().len(), 2);
}
