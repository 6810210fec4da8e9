//! Gates: a move waits for its window or its approval, and nothing else does.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Patch, PatchParams};
use okt::lifecycle::{self, Effect};
use okt::{Answer, Failure, Observation, Opening, Windows, reasons};
use okt_tests::{Mill, MillAnswer, MillState, Mills, Objects, Rig, assert_contains, mill_state};
use serde_json::{Value, json};

type Milling = Rig<Mills>;

/// Returns a window of twenty minutes that begins each hour, and next in half an hour from this time, or up to a minute
/// sooner.
fn in_half_an_hour(now: Timestamp) -> Value {
    let minute = (now.to_zoned(TimeZone::UTC).minute() + 30) % 60;
    json!([{ "start": format!("{minute} * * * *"), "duration": "20m", "timeZone": "Europe/Berlin" }])
}

/// Creates a mill whose window opens in half an hour.
async fn running() -> (Milling, Timestamp) {
    let rig = Milling::of().await;
    rig.create_with("m", json!({ "version": "1" })).await;
    rig.until_ready("m", MillState::Running).await;
    let since = rig.position("m").await.since.expect("a time");
    let windows = json!({ "spec": { "maintenance": in_half_an_hour(since) } });
    rig.patch("m", windows).await;
    rig.pass(Duration::from_secs(5)).await;
    (rig, since)
}

async fn upgrade(rig: &Milling, version: &str) {
    rig.patch("m", json!({ "spec": { "version": version } }))
        .await;
}

async fn state(rig: &Milling) -> String {
    rig.position("m").await.state.as_str().to_owned()
}

#[tokio::test(start_paused = true)]
async fn a_change_waits_for_the_window_says_so_once_and_is_made_when_it_opens() {
    let (rig, since) = running().await;
    upgrade(&rig, "2").await;
    rig.until_message(
        "m",
        "Ready",
        reasons::WAITING_FOR_WINDOW,
        "Upgrading waits for the window maintenance, which opens at",
    )
    .await;
    assert!(rig.condition("m", "Stalled").await.is_none());
    let waiting = rig.position("m").await.waiting.expect("a wait");
    assert_eq!(
        (&*waiting.gate, &*waiting.to, &*waiting.cause),
        ("maintenance", "Upgrading", "OnChange")
    );
    let opens = waiting.openings[0];
    let left = opens.duration_since(since).as_secs();
    assert!((29 * 60..=30 * 60).contains(&left), "{left} s");
    assert_eq!(waiting.openings[2].duration_since(opens).as_hours(), 2);

    // Nothing is written while the wait lasts, also not by another process.
    rig.writes_nothing_for(Duration::from_mins(10)).await;
    rig.restart().await;
    rig.writes_nothing_for(Duration::from_mins(15)).await;
    assert_eq!(state(&rig).await, "Running");
    rig.pass(Duration::from_mins(6)).await;
    assert_eq!(state(&rig).await, "Upgrading");
    assert!(rig.position("m").await.waiting.is_none());
    // The window is shut again before the work ends.
    rig.pass(Duration::from_mins(25)).await;
    assert_eq!(state(&rig).await, "Upgrading");
    rig.pass(Duration::from_mins(5)).await;
    rig.until_ready("m", MillState::Running).await;
    let causes: Vec<String> = rig
        .position("m")
        .await
        .history
        .iter()
        .map(|it| it.cause.clone())
        .collect();
    assert_eq!(causes, ["Created", "Handler", "OnChange", "Handler"]);
}

#[tokio::test(start_paused = true)]
async fn a_window_of_which_too_little_is_left_is_shut() {
    let (rig, _) = running().await;
    // Open since eleven minutes, for nine more: ten must be left.
    rig.pass(Duration::from_mins(41)).await;
    upgrade(&rig, "2").await;
    rig.until_reason("m", "Ready", reasons::WAITING_FOR_WINDOW)
        .await;
    rig.pass(Duration::from_mins(46)).await;
    assert_eq!(state(&rig).await, "Running");
    rig.pass(Duration::from_mins(3)).await;
    rig.until_in("m", MillState::Upgrading).await;
}

#[tokio::test(start_paused = true)]
async fn nothing_but_the_move_waits() {
    let (rig, since) = running().await;
    upgrade(&rig, "2").await;
    rig.until_reason("m", "Ready", reasons::WAITING_FOR_WINDOW)
        .await;
    // A failure leads on at once.
    rig.app.answers.lock().push_back(MillAnswer::Fails);
    rig.patch(
        "m",
        json!({ "metadata": { "annotations": { "okt.dev/reconcile": "1" } } }),
    )
    .await;
    // Another spec: the work of the resting state runs again.
    let mut windows = in_half_an_hour(since);
    windows[0]["duration"] = json!("21m");
    rig.patch("m", json!({ "spec": { "maintenance": windows } }))
        .await;
    rig.until_in("m", MillState::Broken).await;
    rig.app.answers.lock().clear();
    rig.ask_for("m", json!({ "state": "Running", "request": "again" }))
        .await;
    rig.until_reason("m", "Ready", reasons::WAITING_FOR_WINDOW)
        .await;
    // And so does a deletion.
    rig.delete_until_gone("m").await;
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_names_a_state_behind_a_gate_is_called_again_when_it_opens() {
    let (rig, since) = running().await;
    rig.app.answers.lock().push_back(MillAnswer::Cleans);
    rig.app.asked.lock().clear();
    // Another spec: the work of the resting state runs again.
    let mut windows = in_half_an_hour(since);
    windows[0]["duration"] = json!("21m");
    rig.patch("m", json!({ "spec": { "maintenance": windows } }))
        .await;
    rig.until("m", "waits", |mill| {
        let position = mill.status.as_ref().and_then(|it| it.lifecycle.as_ref());
        position.is_some_and(|it| it.waiting.as_ref().is_some_and(|it| it.cause == "Handler"))
    })
    .await;
    rig.writes_nothing_for(Duration::from_mins(28)).await;
    rig.pass(Duration::from_mins(2)).await;
    rig.until("m", "was cleaned", |mill| {
        let position = mill.status.as_ref().and_then(|it| it.lifecycle.as_ref());
        position.is_some_and(|it| it.history.iter().any(|it| it.to == "Cleaning"))
    })
    .await;
    let ids = rig.app.asked.lock().clone();
    assert!(ids.len() >= 2, "{ids:?}");
    assert_eq!(ids[0], ids[1], "one work");
}

#[tokio::test(start_paused = true)]
async fn a_window_that_never_opens_stalls_the_object_until_its_spec_is_mended() {
    let (rig, _) = running().await;
    let windows = json!([{ "start": "0 2 30 2 *", "duration": "4h" }]);
    rig.patch(
        "m",
        json!({ "spec": { "maintenance": windows, "version": "2" } }),
    )
    .await;
    rig.until_message(
        "m",
        "Stalled",
        reasons::BAD_WINDOW,
        "no window names a time to come",
    )
    .await;
    rig.writes_nothing_for(Duration::from_hours(1)).await;
    rig.patch("m", json!({ "spec": { "maintenance": [] } }))
        .await;
    rig.until_in("m", MillState::Upgrading).await;
}

#[tokio::test(start_paused = true)]
async fn a_visit_waits_and_the_schema_refuses_six_fields() {
    let (rig, _) = running().await;
    rig.visit("m", "Cleaning", "c1").await;
    rig.until_reason("m", "Ready", reasons::WAITING_FOR_WINDOW)
        .await;
    rig.pass(Duration::from_mins(30)).await;
    rig.until_visited("m").await;
    let six = json!({ "spec": { "maintenance": [{ "start": "0 0 2 * * 6", "duration": "4h" }] } });
    is_refused(&rig, six, "spec.maintenance[0].start").await;
}

/// Asserts that the schema refuses a field of a patch.
async fn is_refused(rig: &Milling, patch: Value, field: &str) {
    let (params, patch) = (PatchParams::default(), Patch::Merge(patch));
    let refused = rig.api().patch("m", &params, &patch).await;
    assert_contains(&refused.expect_err("refused").to_string(), field);
}

/// Creates a mill with a `ConfigMap` of the first release, whose window opens in half an hour.
async fn with_release() -> Milling {
    let rig = Milling::without_operator_of().await;
    *rig.app.release.lock() = Some("one".to_owned());
    rig.start();
    rig.create_with("m", json!({ "version": "1" })).await;
    rig.until_ready("m", MillState::Running).await;
    let since = rig.position("m").await.since.expect("a time");
    let windows = json!({ "spec": { "maintenance": in_half_an_hour(since) } });
    rig.patch("m", windows).await;
    rig.pass(Duration::from_secs(5)).await;
    assert_eq!(rig.text("m").await.as_deref(), Some("one"));
    rig
}

/// Lets a release of the operator take over that declares another content.
async fn release(rig: &Milling, text: &str) {
    rig.kill().await;
    *rig.app.release.lock() = Some(text.to_owned());
    rig.start();
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_a_new_release_changes_waits_behind_the_gate() {
    let rig = with_release().await;
    release(&rig, "two").await;
    rig.until_reason("m", "Ready", reasons::WAITING_FOR_WINDOW)
        .await;
    assert_eq!(
        rig.position("m").await.waiting.expect("a wait").cause,
        "OnChange"
    );
    rig.writes_nothing_for(Duration::from_mins(25)).await;
    rig.restart().await;
    rig.pass(Duration::from_mins(1)).await;
    assert_eq!(rig.text("m").await.as_deref(), Some("one"));
    rig.pass(Duration::from_mins(6)).await;
    assert_eq!(state(&rig).await, "Upgrading");
    assert_eq!(rig.text("m").await.as_deref(), Some("two"));
    rig.pass(Duration::from_mins(30)).await;
    rig.until_ready("m", MillState::Running).await;
    rig.writes_nothing_for(Duration::from_mins(10)).await;
}

#[tokio::test(start_paused = true)]
async fn an_outdated_resource_that_is_missing_is_created_and_one_that_is_as_declared_is_repaired() {
    let rig = with_release().await;
    let maps = rig.of::<ConfigMap>();
    maps.edit("m", json!({ "data": { "text": "edited" } }))
        .await;
    rig.pass(Duration::from_secs(30)).await;
    assert_eq!(rig.text("m").await.as_deref(), Some("one"), "repaired");
    release(&rig, "two").await;
    rig.until_reason("m", "Ready", reasons::WAITING_FOR_WINDOW)
        .await;
    maps.remove("m").await;
    rig.until_ready("m", MillState::Running).await;
    assert_eq!(rig.text("m").await.as_deref(), Some("two"), "created");
    assert_eq!(state(&rig).await, "Running");
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_no_edge_lets_change_is_an_error() {
    let rig = Milling::without_operator_of().await;
    *rig.app.release.lock() = Some("one".to_owned());
    *rig.app.changes_in.lock() = Some(MillState::Cleaning);
    rig.start();
    rig.create_with("m", json!({})).await;
    rig.until_message(
        "m",
        "Stalled",
        "BadResource",
        "changes in Cleaning only, and no `on_change` leads there",
    )
    .await;
}

/// Creates a mill whose upgrades are approved.
async fn careful() -> Milling {
    let rig = Milling::without_operator_of().await;
    *rig.app.release.lock() = Some("one".to_owned());
    rig.start();
    let spec = json!({ "version": "1", "careful": true });
    rig.create_with("m", spec).await;
    rig.until_ready("m", MillState::Running).await;
    rig
}

async fn approve(rig: &Milling, plan: &str) {
    let lifecycle = json!({ "approve": plan });
    rig.patch("m", json!({ "spec": { "lifecycle": lifecycle } }))
        .await;
    rig.pass(Duration::from_secs(30)).await;
}

/// Returns the plan for whose approval the mill waits.
async fn plan(rig: &Milling) -> String {
    rig.until_reason("m", "Ready", reasons::WAITING_FOR_APPROVAL)
        .await;
    rig.pass(Duration::from_secs(30)).await;
    let waiting = rig.position("m").await.waiting.expect("a wait");
    assert_eq!((&*waiting.gate, &*waiting.to), ("major", "Upgrading"));
    waiting.plan.expect("a plan")
}

#[tokio::test(start_paused = true)]
async fn a_change_waits_for_the_approval_of_its_plan_also_in_another_process() {
    let rig = careful().await;
    upgrade(&rig, "2").await;
    let first = plan(&rig).await;
    let how = format!("waits for the approval major: approve plan {first} in");
    rig.until_message("m", "Ready", reasons::WAITING_FOR_APPROVAL, &how)
        .await;
    rig.writes_nothing_for(Duration::from_hours(2)).await;
    rig.restart().await;
    rig.writes_nothing_for(Duration::from_hours(2)).await;
    approve(&rig, "12345678").await;
    assert_eq!(plan(&rig).await, first, "another plan is approved");
    approve(&rig, &first).await;
    assert_eq!(state(&rig).await, "Upgrading");
    rig.pass(Duration::from_mins(30)).await;
    rig.until_ready("m", MillState::Running).await;

    // Back, and there again: what was approved once is approved no more.
    upgrade(&rig, "1").await;
    let back = plan(&rig).await;
    approve(&rig, &back).await;
    rig.pass(Duration::from_mins(30)).await;
    rig.until_ready("m", MillState::Running).await;
    upgrade(&rig, "2").await;
    let again = plan(&rig).await;
    assert!(first != back && back != again && again != first);
    approve(&rig, &first).await;
    assert_eq!(plan(&rig).await, again);
}

#[tokio::test(start_paused = true)]
async fn an_approval_holds_for_what_is_declared_and_not_for_what_another_release_declares() {
    let rig = careful().await;
    release(&rig, "two").await;
    let two = plan(&rig).await;
    release(&rig, "three").await;
    rig.pass(Duration::from_mins(1)).await;
    let three = plan(&rig).await;
    assert_ne!(two, three);
    approve(&rig, &two).await;
    assert_eq!(rig.text("m").await.as_deref(), Some("one"));
    // A spec that changes before the approval arrives.
    upgrade(&rig, "2").await;
    approve(&rig, &three).await;
    let both = plan(&rig).await;
    assert_eq!(rig.text("m").await.as_deref(), Some("one"));
    approve(&rig, &both).await;
    assert_eq!(state(&rig).await, "Upgrading");
    assert_eq!(rig.text("m").await.as_deref(), Some("three"));
}

#[tokio::test(start_paused = true)]
async fn an_upgrade_waits_for_its_window_and_then_for_its_approval() {
    let rig = careful().await;
    let since = rig.position("m").await.since.expect("a time");
    let maintenance = in_half_an_hour(since);
    rig.patch(
        "m",
        json!({ "spec": { "maintenance": maintenance, "version": "2" } }),
    )
    .await;
    rig.until_reason("m", "Ready", reasons::WAITING_FOR_WINDOW)
        .await;
    assert!(
        rig.position("m")
            .await
            .waiting
            .expect("a wait")
            .plan
            .is_none()
    );
    rig.pass(Duration::from_mins(31)).await;
    let plan = plan(&rig).await;
    // What is approved too late waits for the next window.
    rig.pass(Duration::from_mins(15)).await;
    approve(&rig, &plan).await;
    rig.until_reason("m", "Ready", reasons::WAITING_FOR_WINDOW)
        .await;
    rig.pass(Duration::from_mins(50)).await;
    rig.until_in("m", MillState::Upgrading).await;
}

#[tokio::test(start_paused = true)]
async fn a_deletion_waits_for_no_approval_and_the_schema_refuses_what_is_no_plan() {
    let rig = careful().await;
    upgrade(&rig, "2").await;
    plan(&rig).await;
    let word = json!({ "spec": { "lifecycle": { "approve": "all" } } });
    is_refused(&rig, word, "spec.lifecycle.approve").await;
    rig.delete_until_gone("m").await;
}

#[tokio::test(start_paused = true)]
async fn a_controller_of_its_own_waits_for_windows_and_approvals_too() {
    let rig = Milling::without_operator_of().await;
    let spec = json!({ "version": "1", "lifecycle": { "state": "Running" } });
    rig.create_with("m", spec).await;
    let memory = lifecycle::Memory::<Mill>::new();
    let reconcile = async |windows: Windows| {
        let mill = Arc::new(rig.get("m").await.expect("a mill"));
        let mut mill = lifecycle::Reconciliation::of(&memory, mill)
            .gates(|_| windows.clone(), |gate| gate == mill_state::Gate::Major);
        loop {
            match mill.decide() {
                Effect::Observe => mill.observed(Observation::unobserved()),
                Effect::Write(write) => {
                    let answer = write.send(&rig.api(), "mills").await.expect("accepted");
                    mill.patched(answer).expect("recorded");
                }
                Effect::Work(work) if work.state() == MillState::Running => {
                    mill.ended(Ok::<_, Failure>(Answer::Stay));
                }
                Effect::Work(_) => mill.ended(Ok::<_, Failure>(Answer::Next)),
                Effect::Rest(time) => break time,
            }
        }
    };
    reconcile(Windows::always()).await;
    upgrade(&rig, "2").await;
    let later = Timestamp::now() + Duration::from_hours(1);
    let shut = Windows::from_code(move |_| Opening::shut().until(Some(later)));
    let rests = reconcile(shut).await.expect("a time");
    assert!(rests <= Duration::from_hours(1), "{rests:?}");
    let reason = async || rig.condition("m", "Ready").await.expect("Ready").reason;
    assert_eq!(reason().await, reasons::WAITING_FOR_WINDOW);
    reconcile(Windows::always()).await;
    assert_eq!(reason().await, reasons::WAITING_FOR_APPROVAL);
    let waiting = rig.position("m").await.waiting.expect("a wait");
    let lifecycle = json!({ "approve": waiting.plan.expect("a plan") });
    rig.patch("m", json!({ "spec": { "lifecycle": lifecycle } }))
        .await;
    reconcile(Windows::always()).await;
    let history = rig.position("m").await.history;
    assert!(history.iter().any(|it| it.to == "Upgrading"), "{history:?}");
}

/// The acceptance case A7. The gate needs ten minutes, and an upgrade takes half an hour.
#[tokio::test(start_paused = true)]
async fn a_window_opens_once_on_each_day_on_which_clocks_change() {
    let zone = TimeZone::get("Europe/Berlin").expect("a zone");
    let hour = Duration::from_hours(1);
    for nth in 0..2 {
        let rig = Milling::of().await;
        let nightly =
            json!([{ "start": "0 2 * * *", "duration": "4h", "timeZone": "Europe/Berlin" }]);
        rig.create_with("m", json!({ "version": "1", "maintenance": nightly }))
            .await;
        rig.until_ready("m", MillState::Running).await;
        let now = rig.position("m").await.since.expect("a time");
        let change = zone.following(now).nth(nth).expect("a change");
        let (at, back) = (change.timestamp(), Duration::from_secs(1));
        let is_forward = change.offset() > zone.to_offset(at - back);
        // Two o'clock does not exist in spring, and comes twice in autumn.
        let opens = if is_forward { at } else { at - hour };
        rig.kill().await;
        let until_then: Duration = (opens - 2 * hour).duration_since(now).unsigned_abs();
        tokio::time::advance(until_then).await;
        rig.start();

        upgrade(&rig, "2").await;
        rig.until_reason("m", "Ready", reasons::WAITING_FOR_WINDOW)
            .await;
        let waiting = rig.position("m").await.waiting.expect("a wait");
        assert_eq!(waiting.openings[0], opens);
        let next = waiting.openings[1].to_zoned(zone.clone());
        let day = opens.to_zoned(zone.clone()).date();
        assert_eq!(
            (next.date(), next.hour()),
            (day.tomorrow().expect("a day"), 2)
        );
        rig.pass(Duration::from_mins(119)).await;
        assert_eq!(state(&rig).await, "Running");
        rig.pass(Duration::from_mins(2)).await;
        assert_eq!(state(&rig).await, "Upgrading");

        // The work goes on when the window is shut, four hours later.
        rig.pass(Duration::from_mins(220)).await;
        upgrade(&rig, "3").await;
        rig.until_in("m", MillState::Upgrading).await;
        rig.pass(Duration::from_mins(25)).await;
        assert_eq!(state(&rig).await, "Upgrading");
        rig.pass(Duration::from_mins(10)).await;
        upgrade(&rig, "4").await;
        rig.until_reason("m", "Ready", reasons::WAITING_FOR_WINDOW)
            .await;
        // A deletion waits for nothing, and the upgrade is not made.
        rig.delete_until_gone("m").await;
        let entered = rig.server.versions().resource("mills").name("m");
        let entered = entered.course("/status/lifecycle/state");
        let upgrades = entered.iter().filter(|state| *state == "Upgrading");
        assert_eq!(upgrades.count(), 2);
    }
}
