//! Applications that hang: no other object waits for them, whatever part of their code hangs.

use std::time::Duration;

use kube::Resource;
use okt_tests::{Kiosk, KioskState::*, Kiosks, Part, Rig};
use serde_json::json;
use tokio::time::Instant;

type Market = Rig<Kiosks>;

const HEALTHY: usize = 20;

/// How much longer a change of a healthy object may take than without hanging objects.
const LATER: Duration = Duration::from_secs(2);

async fn create(rig: &Market, name: &str, hangs: &[Part]) {
    rig.create_with(name, json!({ "hangs": hangs })).await;
}

/// Waits until a condition holds for all healthy objects; returns how long that took.
async fn all(rig: &Market, what: &str, so: impl Fn(Option<&Kiosk>) -> bool) -> Duration {
    let since = Instant::now();
    for number in 0..HEALTHY {
        let name = format!("healthy-{number}");
        loop {
            let kiosk = rig.get(&name).await;
            if so(kiosk.as_ref()) {
                break;
            }
            let waited = since.elapsed();
            assert!(waited < Duration::from_mins(1), "{name} is not {what}");
            rig.pass(Duration::from_millis(10)).await;
        }
    }
    since.elapsed()
}

fn is_ready(kiosk: Option<&Kiosk>) -> bool {
    let generation = kiosk.and_then(|kiosk| kiosk.meta().generation);
    let status = kiosk.and_then(|kiosk| kiosk.status.as_ref());
    let mut conditions = status.into_iter().flat_map(|status| &status.conditions);
    conditions.any(|it| {
        it.type_ == "Ready" && it.status == "True" && it.observed_generation == generation
    })
}

/// Measures how long changes of healthy objects take at most next to this many hanging ones, which hang in different
/// parts of their code.
async fn longest(hanging: usize) -> Vec<(&'static str, Duration)> {
    const PARTS: [Part; 4] = [Part::Observe, Part::Resources, Part::Extra, Part::Building];
    let rig = Market::of().await;
    for (number, part) in (0..hanging).zip(PARTS.into_iter().cycle()) {
        create(&rig, &format!("hanging-{number}"), &[part]).await;
    }
    let mut took = Vec::new();
    for number in 0..HEALTHY {
        create(&rig, &format!("healthy-{number}"), &[]).await;
    }
    took.push(("created", all(&rig, "ready", is_ready).await));
    // From here on the observations of the hanging objects are spread over time.
    rig.pass(Duration::from_secs(63)).await;
    for number in 0..HEALTHY {
        let name = format!("healthy-{number}");
        let maps = json!({ "spec": { "maps": { (&name): "a" } } });
        rig.patch(&name, maps).await;
    }
    let changed = all(&rig, "ready after a change", is_ready).await;
    took.push(("changed", changed));
    rig.pass(Duration::from_secs(47)).await;
    for number in 0..HEALTHY {
        rig.delete(&format!("healthy-{number}")).await;
    }
    took.push(("deleted", all(&rig, "gone", |kiosk| kiosk.is_none()).await));
    took
}

async fn nobody_waits_for(hanging: usize) {
    let alone = longest(0).await;
    let beside = longest(hanging).await;
    for ((what, alone), (_, beside)) in alone.iter().zip(beside) {
        println!("{what} after {beside:?} with {hanging} hanging objects, after {alone:?} alone");
        assert!(
            beside <= *alone + LATER,
            "{what}: {beside:?}, alone {alone:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn no_object_waits_for_256_applications_that_hang() {
    nobody_waits_for(256).await;
}

#[tokio::test(start_paused = true)]
#[ignore = "takes half a minute; run with --include-ignored"]
async fn no_object_waits_for_2000_applications_that_hang() {
    nobody_waits_for(2000).await;
}

#[tokio::test(start_paused = true)]
async fn each_part_that_does_not_answer_is_called_with_growing_waits() {
    for part in [Part::Observe, Part::Resources, Part::Extra] {
        let rig = Market::of().await;
        create(&rig, "quiet", &[part]).await;
        rig.pass(Duration::from_mins(5)).await;
        let before = rig.app.asked("quiet", part);
        rig.pass(Duration::from_hours(1)).await;
        let asked = rig.app.asked("quiet", part) - before;
        assert!((9..=15).contains(&asked), "{part:?}: {asked} in an hour");
    }
}

#[tokio::test(start_paused = true)]
async fn an_application_that_does_not_answer_is_observed_less_and_less_often_and_the_message_says_so()
 {
    let rig = Market::of().await;
    create(&rig, "quiet", &[Part::Observe]).await;
    rig.pass(Duration::from_mins(5)).await;
    let ready = rig.condition("quiet", "Ready").await.expect("a condition");
    assert_eq!((&*ready.status, &*ready.reason), ("Unknown", "Unreachable"));
    assert!(
        ready
            .message
            .contains("the wait between observations grows"),
        "{}",
        ready.message
    );
    // Once it answers, OKT observes it as often as others.
    rig.patch("quiet", json!({ "spec": { "hangs": [] } })).await;
    rig.request("quiet");
    rig.until_ready("quiet", Open).await;
    let before = rig.app.asked("quiet", Part::Observe);
    rig.pass(Duration::from_mins(10)).await;
    let asked = rig.app.asked("quiet", Part::Observe) - before;
    assert!((18..=22).contains(&asked), "{asked}");
}
