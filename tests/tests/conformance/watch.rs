//! Behaviors of watches.

use std::pin::pin;
use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use kube::ResourceExt;
use kube::api::{DynamicObject, WatchEvent, WatchParams};
use serde_json::json;
use tokio::time::{Instant, timeout};

use crate::behaviour::behaviours;
use crate::world::{TABLE, World, events_only, version};

/// Watches from a version until `count` events came, and returns them in short form.
async fn see(world: &World, params: &WatchParams, from: u64, count: usize) -> Vec<String> {
    let api = world.widgets();
    let stream = api.watch(params, &from.to_string()).await;
    let events = stream.expect("a watch").take(count);
    let events = events.map_ok(|event| short(&event));
    events.try_collect().await.expect("events")
}

fn short(event: &WatchEvent<DynamicObject>) -> String {
    match event {
        WatchEvent::Added(object) => format!("ADDED {}", object.name_any()),
        WatchEvent::Modified(object) => format!("MODIFIED {}", object.name_any()),
        WatchEvent::Deleted(object) => format!("DELETED {}", object.name_any()),
        WatchEvent::Bookmark(_) => "BOOKMARK".to_owned(),
        WatchEvent::Error(status) => format!("ERROR {}", status.code),
    }
}

async fn a_watch_sends_everything_after_its_version_in_order(world: &World) {
    let first = world.create("a", json!({})).await.ok();
    world.create("b", json!({})).await.ok();
    world.set("a", json!({ "color": "red" })).await.ok();
    world.remove("b").await.ok();
    let events = see(world, &events_only(), version(&first), 3).await;
    assert_eq!(events, ["ADDED b", "MODIFIED a", "DELETED b"]);
}

async fn a_watch_sends_what_happens_while_it_runs(world: &World) {
    let first = world.create("a", json!({})).await.ok();
    let api = world.widgets();
    let from = version(&first).to_string();
    let mut stream = pin!(api.watch(&events_only(), &from).await.expect("a watch"));
    let nothing = timeout(Duration::from_millis(20), stream.next()).await;
    assert!(nothing.is_err(), "{nothing:?}");
    let changed = world.set("a", json!({ "color": "red" })).await.ok();
    let event = stream.next().await.expect("an event").expect("no error");
    let WatchEvent::Modified(object) = event else {
        panic!("{event:?}")
    };
    assert_eq!(serde_json::to_value(object).expect("JSON"), changed);
}

async fn a_watch_from_a_version_to_come_sends_nothing_before_it(world: &World) {
    let mut number = 0;
    let mut make = async || {
        number += 1;
        let name = format!("a{number}");
        let made = world.create(&name, json!({})).await.ok();
        (version(&made), format!("ADDED {name}"))
    };
    let api = world.widgets();
    // Other clients write to the same server, so the version may exist before the watch starts.
    let (from, events) = loop {
        let from = make().await.0 + 10;
        let events = api.watch(&events_only(), &from.to_string()).await;
        if make().await.0 <= from {
            break (from, events.expect("a watch"));
        }
    };
    let mut later = Vec::new();
    while later.len() < 2 {
        let (made, event) = make().await;
        later.extend((made > from).then_some(event));
    }
    let events = events.take(later.len()).map_ok(|event| short(&event));
    let events: Vec<_> = events.try_collect().await.expect("events");
    assert_eq!(events, later);
}

async fn a_removal_carries_its_own_version(world: &World) {
    let first = world.create("a", json!({})).await.ok();
    world.remove("a").await.ok();
    let api = world.widgets();
    let from = version(&first).to_string();
    let mut stream = pin!(api.watch(&events_only(), &from).await.expect("a watch"));
    let event = stream.next().await.expect("an event").expect("no error");
    let WatchEvent::Deleted(object) = event else {
        panic!("{event:?}")
    };
    let removed = object.resource_version().expect("a version");
    assert!(removed.parse::<u64>().expect("a number") > version(&first));
}

async fn a_write_that_changes_nothing_is_no_event(world: &World) {
    world.create("a", json!({})).await.ok();
    let first = world.set("a", json!({ "color": "red" })).await.ok();
    world.merge("a", json!({})).await.ok();
    world.create("b", json!({})).await.ok();
    let events = see(world, &events_only(), version(&first), 1).await;
    assert_eq!(events, ["ADDED b"]);
}

async fn leaving_a_selection_is_deleted_and_entering_it_added(world: &World) {
    let first = world.create("a", json!({})).await.ok();
    for label in ["x", "y", "x"] {
        let labels = json!({ "labels": { "l": label } });
        world.mark("a", labels).await.ok();
    }
    let params = events_only().labels("l=x");
    let events = see(world, &params, version(&first), 3).await;
    assert_eq!(events, ["ADDED a", "DELETED a", "ADDED a"]);
}

async fn a_watch_by_field_sees_that_field_alone(world: &World) {
    let first = world.create("a", json!({ "color": "red" })).await.ok();
    world.create("b", json!({ "color": "blue" })).await.ok();
    world.set("a", json!({ "color": "blue" })).await.ok();
    for (field, expected) in [
        ("spec.color=blue", &["ADDED b", "ADDED a"][..]),
        ("metadata.name=a", &["MODIFIED a"]),
    ] {
        let params = events_only().fields(field);
        let events = see(world, &params, version(&first), expected.len()).await;
        assert_eq!(events, expected);
    }
}

async fn a_watch_from_nowhere_begins_with_what_is_there(world: &World) {
    world.create("a", json!({})).await.ok();
    world.create("b", json!({})).await.ok();
    world.caught_up().await;
    let events = see(world, &events_only(), 0, 2).await;
    assert_eq!(events, ["ADDED a", "ADDED b"]);
    let path = format!("{}?watch=true&timeoutSeconds=10", world.path());
    let events = world.get(&path).await.lines();
    assert_eq!(events.len(), 2, "without a version, too");
    assert_eq!(events[0]["type"], "ADDED");
    assert_eq!(events[0]["object"]["metadata"]["name"], "a");
}

async fn a_streamed_list_ends_with_a_bookmark(world: &World) {
    world.create("a", json!({})).await.ok();
    world.caught_up().await;
    let params = WatchParams::default().initial_events();
    let api = world.widgets();
    let mut stream = pin!(api.watch(&params, "0").await.expect("a watch"));
    let mut next = async || stream.next().await.expect("an event").expect("no error");
    assert_eq!(short(&next().await), "ADDED a");
    let event = next().await;
    let WatchEvent::Bookmark(bookmark) = event else {
        panic!("{event:?}")
    };
    let notes = &bookmark.metadata.annotations;
    assert_eq!(notes["k8s.io/initial-events-end"], "true");
    world.create("b", json!({})).await.ok();
    let later = loop {
        match next().await {
            WatchEvent::Bookmark(_) => {}
            event => break event,
        }
    };
    assert_eq!(short(&later), "ADDED b");
}

async fn a_watch_from_before_the_kind_is_410_and_a_list_leads_on(world: &World) {
    world.create("a", json!({})).await.ok();
    let api = world.widgets();
    let params = events_only();
    let stream = api.watch(&params, "1").await.expect("a watch");
    let events: Vec<_> = stream.try_collect().await.expect("events");
    let [WatchEvent::Error(status)] = events.as_slice() else {
        panic!("{events:?}")
    };
    assert_eq!((status.code, status.reason.as_str()), (410, "Expired"));
    let old = "too old resource version: 1 (";
    assert!(status.message.starts_with(old), "{}", status.message);

    let list = world.get(&world.path()).await.ok();
    world.create("b", json!({})).await.ok();
    let events = see(world, &params, version(&list), 1).await;
    assert_eq!(events, ["ADDED b"]);
}

async fn a_version_that_is_no_number_is_refused(world: &World) {
    let list = format!("{}?resourceVersion=x", world.path());
    let watch = world.get(&format!("{list}&watch=1")).await;
    let status = watch.refused(500, "…");
    let why = status["message"].as_str().expect("a message");
    let message = format!("invalid resource version: {why}");
    world.get(&list).await.refused(400, &message);
}

async fn bookmarks_come_before_the_end(world: &World) {
    let first = version(&world.create("a", json!({})).await.ok());
    let params = WatchParams::default().fields("metadata.name=a").timeout(5);
    let api = world.widgets();
    let mut last = None;
    // A busy server may send two, or come too late for one.
    for round in 0..5 {
        let stream = api.watch(&params, &first.to_string()).await;
        // On a quiet server there would be no new version for a bookmark.
        world.create(&format!("b{round}"), json!({})).await.ok();
        let events = stream.expect("a watch").try_collect::<Vec<_>>().await;
        let events = events.expect("events");
        let is_bookmark = |event: &WatchEvent<_>| matches!(event, WatchEvent::Bookmark(_));
        assert!(events.iter().all(is_bookmark), "{events:?}");
        last = events.into_iter().last();
        if last.is_some() {
            break;
        }
    }
    let Some(WatchEvent::Bookmark(bookmark)) = last else {
        panic!("no bookmark came")
    };
    // Its version is newer than that of any event.
    let version = bookmark.metadata.resource_version;
    assert!(version.parse::<u64>().expect("a number") > first);
    let params = params.disable_bookmarks().timeout(3);
    assert_eq!(see(world, &params, first, 1).await, [""; 0]);
}

async fn a_watch_may_send_tables(world: &World) {
    world.create("a", json!({})).await.ok();
    let path = format!("{}?watch=true&timeoutSeconds=10", world.path());
    let events = world.get_as(&path, TABLE).await.lines();
    assert_eq!(events[0]["type"], "ADDED");
    assert_eq!(events[0]["object"]["kind"], "Table");
    assert_eq!(events[0]["object"]["rows"][0]["cells"][0], "a");
}

async fn a_watch_may_send_metadata_alone(world: &World) {
    let first = version(&world.create("a", json!({})).await.ok());
    world.set("a", json!({ "color": "red" })).await.ok();
    let api = world.widgets();
    let stream = api.watch_metadata(&events_only(), &first.to_string()).await;
    let mut stream = pin!(stream.expect("a watch"));
    let event = stream.next().await.expect("an event").expect("no error");
    let is_it = matches!(&event, WatchEvent::Modified(object) if object.name_any() == "a");
    assert!(is_it, "{event:?}");
}

async fn a_watch_ends_at_its_timeout(world: &World) {
    let first = world.create("a", json!({})).await.ok();
    let before = Instant::now();
    let params = events_only().timeout(5);
    assert_eq!(see(world, &params, version(&first), 1).await, [""; 0]);
    let seconds = before.elapsed().as_secs();
    assert!((5..120).contains(&seconds), "after {seconds} s");
}

behaviours! { "watch":
    a_watch_sends_everything_after_its_version_in_order,
    a_watch_sends_what_happens_while_it_runs,
    a_watch_from_a_version_to_come_sends_nothing_before_it,
    a_removal_carries_its_own_version,
    a_write_that_changes_nothing_is_no_event,
    leaving_a_selection_is_deleted_and_entering_it_added,
    a_watch_by_field_sees_that_field_alone,
    a_watch_from_nowhere_begins_with_what_is_there,
    a_streamed_list_ends_with_a_bookmark,
    a_watch_from_before_the_kind_is_410_and_a_list_leads_on,
    a_version_that_is_no_number_is_refused,
    bookmarks_come_before_the_end,
    a_watch_may_send_tables,
    a_watch_may_send_metadata_alone,
    a_watch_ends_at_its_timeout,
}
