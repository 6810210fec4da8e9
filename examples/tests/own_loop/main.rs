//! A plain kube-rs controller on OKT's lifecycle keeps the guarantees of an operator.

mod operated;
#[expect(dead_code, unreachable_pub, reason = "a program, as a module")]
#[path = "../../src/bin/own_loop.rs"]
mod own_loop;
mod place;
mod steps;

use std::time::Duration;

use kube::api::{DeleteParams, Patch, PatchParams};
use okt_testing::{Fault, Verb};
use serde_json::{Value, json};

use crate::place::Place;

#[tokio::test(start_paused = true)]
async fn a_notice_is_posted_with_one_write_for_each_transition() {
    let place = Place::new().await;
    place.create("hello").await;
    place.until_ready().await;
    assert_eq!(place.text().await.as_deref(), Some("hello"));
    let writes = [
        "patch notices default/welcome",
        "apply notices/status default/welcome",
        "apply configmaps default/welcome",
        "apply notices/status default/welcome",
    ];
    assert_eq!(place.writes(), writes);
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert_eq!(place.writes(), writes, "nothing is written at rest");
    place.check();
}

#[tokio::test(start_paused = true)]
async fn a_changed_text_is_posted_again_under_another_id() {
    let place = Place::new().await;
    place.create("hello").await;
    place.until_ready().await;
    let first = place.action().await;
    place.change("good bye").await;
    place.until_text("good bye").await;
    place.until_ready().await;
    assert_ne!(place.action().await, first);
    assert_eq!(place.trail().await, ">Posting>Posted>Posting>Posted>");
    place.check();
}

#[tokio::test(start_paused = true)]
async fn a_text_that_others_removed_is_posted_again() {
    let place = Place::new().await;
    place.create("hello").await;
    place.until_ready().await;
    let params = DeleteParams::default();
    (place.maps.delete("welcome", &params).await).expect("accepted");
    place.until_text("hello").await;
    place.until_ready().await;
    let cause = place.status().await["lifecycle"]["history"][2]["cause"].clone();
    assert_eq!(cause, "Observed");
    place.check();
}

#[tokio::test(start_paused = true)]
async fn a_deleted_notice_keeps_its_finalizer_until_the_text_is_gone() {
    let place = Place::new().await;
    place.create("hello").await;
    place.until_ready().await;
    place.server.clear_requests();
    place.delete().await;
    place.until_gone().await;
    assert_eq!(
        place.writes(),
        [
            "apply notices/status default/welcome",
            "delete configmaps default/welcome",
            "apply notices/status default/welcome",
            "patch notices default/welcome",
        ]
    );
    place.check();
}

#[tokio::test(start_paused = true)]
async fn work_that_fails_is_retried_with_backoff_and_reported_once() {
    let place = Place::new().await;
    let fault = Fault::forbidden().on(Verb::Apply).resource("configmaps");
    let fault = place.server.inject(fault.client("controller"));
    place.create("hello").await;
    tokio::time::sleep(Duration::from_mins(30)).await;
    // After 1, 2, 4, .. s, and then every 5 minutes.
    assert!((8..=20).contains(&fault.struck()), "{}", fault.struck());
    let writes = place.writes();
    let of_status = writes.iter().filter(|it| it.contains("/status"));
    assert_eq!(of_status.count(), 2, "{writes:#?}");
    let status = place.status().await;
    let failure = &status["lifecycle"]["action"]["failure"]["reason"];
    assert_eq!(failure, "Error", "{status:#}");
    fault.end();
    place.until_ready().await;
    place.check();
}

#[tokio::test(start_paused = true)]
async fn a_result_is_kept_until_it_is_written() {
    let place = Place::new().await;
    // The second status has the result of the work.
    let fault = Fault::unavailable()
        .on(Verb::Apply)
        .resource("notices/status");
    let fault = place.server.inject(fault.skip(1).times(5));
    place.create("hello").await;
    place.until_ready().await;
    assert_eq!(fault.struck(), 5);
    let writes = place.writes();
    let of_text = writes.iter().filter(|it| it.contains("configmaps"));
    assert_eq!(of_text.count(), 1, "{writes:#?}");
    place.check();
}

#[tokio::test(start_paused = true)]
async fn an_old_object_in_the_cache_is_not_acted_upon() {
    let place = Place::new().await;
    place.server.set_watch_lag(Duration::from_secs(3));
    place.create("hello").await;
    place.until_ready().await;
    place.change("good bye").await;
    place.until_text("good bye").await;
    place.delete().await;
    place.until_gone().await;
    let requests = place.server.requests();
    let refused = requests.iter().filter(|it| it.status == 409);
    assert_eq!(refused.count(), 0, "{requests:#?}");
    let of_text = place.writes();
    let of_text = of_text.iter().filter(|it| it.contains("apply configmaps"));
    assert_eq!(of_text.count(), 2);
    place.check();
}

#[tokio::test(start_paused = true)]
async fn a_paused_notice_waits_and_its_deletion_does_not() {
    let place = Place::new().await;
    place.create("hello").await;
    place.until_ready().await;
    let pause = json!({ "metadata": { "annotations": { "okt.dev/paused": "true" } } });
    let params = PatchParams::default();
    let paused = place
        .notices
        .patch("welcome", &params, &Patch::Merge(pause))
        .await;
    paused.expect("accepted");
    place.change("good bye").await;
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert_eq!(place.text().await.as_deref(), Some("hello"));
    assert_eq!(place.condition("Paused").await, "True");
    place.delete().await;
    place.until_gone().await;
    place.check();
}

#[test]
fn the_page_shows_the_controller() {
    let read = |path: &str| {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        std::fs::read_to_string(root.join(path)).expect(path)
    };
    let page = read("docs/own-controller.md");
    let shown = page.split("```rust\n").nth(1).expect("a block");
    let (shown, _) = shown.split_once("```").expect("its end");
    assert!(read("examples/src/bin/own_loop.rs").contains(shown));
}

/// Runs the life of a notice; a controller that dies at a write is followed by another. Returns the states that the
/// notice went through, and the number of writes.
async fn life(dies_at: Option<(u64, bool)>) -> (Vec<Value>, u64) {
    let place = Place::new().await;
    let all = Fault::forbidden().on_writes().client("controller").times(0);
    let all = place.server.inject(all);
    let follower = dies_at.map(|(number, after)| {
        let fault = Fault::no_answer().on_writes().client("controller");
        let fault = if after { fault.after_commit() } else { fault };
        place.follow(place.server.inject(fault.nth(number)))
    });
    place.create("hello").await;
    place.until_ready().await;
    place.change("good bye").await;
    place.until_text("good bye").await;
    place.until_ready().await;
    place.delete().await;
    place.until_gone().await;
    if let Some(follower) = follower {
        let died = tokio::time::timeout(Duration::from_mins(1), follower);
        died.await.expect("the controller dies").expect("no panic");
    }
    place.check();
    let versions = place.server.versions().resource("notices");
    (versions.course("/status/lifecycle/state"), all.matched())
}

#[tokio::test(start_paused = true)]
async fn a_crash_at_any_write_repeats_work_under_its_id_and_changes_nothing_else() {
    let (undisturbed, writes) = life(None).await;
    let states = [
        "Posting", "Posted", "Posting", "Posted", "Removing", "Removed",
    ];
    assert_eq!(undisturbed[1..], states.map(Value::from));
    assert!(writes > 8, "{writes}");
    for number in 1..=writes {
        for after in [false, true] {
            let (course, _) = life(Some((number, after))).await;
            assert_eq!(course, undisturbed, "dies at {number}, after it: {after}");
        }
    }
}
