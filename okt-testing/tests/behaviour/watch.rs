//! This file tests watches.

use std::{pin::pin, time::Duration};

use futures::{StreamExt, TryStreamExt};
use kube::{
    Client, ResourceExt,
    api::{DeleteParams, DynamicObject, WatchEvent, WatchParams},
};
use serde_json::json;
use tokio::time::{Instant, timeout};

use crate::support::{create, merge, server, version, widgets};

/// Watches from a version until `count` events came; what they are, in short.
async fn see(client: &Client, params: &WatchParams, from: &str, count: usize) -> Vec<String> {
    let api = widgets(client);
    let stream = api.watch(params, from).await.unwrap();
    let events: Vec<_> = stream
        .take(count)
        .map_ok(|event| short(&event))
        .try_collect()
        .await
        .unwrap();
    events
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

#[tokio::test]
async fn a_watch_tells_everything_after_its_version_in_order() {
    let (_server, client) = server().await;
    let first = create(&client, "a", json!({})).await;
    create(&client, "b", json!({})).await;
    merge(&client, "a", json!({ "spec": { "color": "red" } }))
        .await
        .unwrap();
    widgets(&client)
        .delete("b", &DeleteParams::default())
        .await
        .unwrap();
    let events = see(&client, &WatchParams::default(), &version(&first), 3).await;
    assert_eq!(events, ["ADDED b", "MODIFIED a", "DELETED b"]);
}

#[tokio::test]
async fn a_watch_tells_what_happens_while_it_runs() {
    let (_server, client) = server().await;
    let first = create(&client, "a", json!({})).await;
    let api = widgets(&client);
    let from = version(&first);
    let mut stream = pin!(api.watch(&WatchParams::default(), &from).await.unwrap());
    assert!(
        timeout(Duration::from_millis(20), stream.next())
            .await
            .is_err(),
        "nothing yet"
    );
    let changed = merge(&client, "a", json!({ "spec": { "color": "red" } }))
        .await
        .unwrap();
    let event = stream.next().await.unwrap().unwrap();
    let WatchEvent::Modified(object) = event else {
        panic!("{event:?}")
    };
    assert_eq!(object, changed);
}

#[tokio::test]
async fn a_removal_carries_its_own_version() {
    let (_server, client) = server().await;
    let first = create(&client, "a", json!({})).await;
    widgets(&client)
        .delete("a", &DeleteParams::default())
        .await
        .unwrap();
    let api = widgets(&client);
    let mut stream = pin!(
        api.watch(&WatchParams::default(), &version(&first))
            .await
            .unwrap()
    );
    let event = stream.next().await.unwrap().unwrap();
    let WatchEvent::Deleted(object) = event else {
        panic!("{event:?}")
    };
    let number = |object: &DynamicObject| version(object).parse::<u64>().unwrap();
    assert!(number(&object) > number(&first));
}

#[tokio::test]
async fn a_write_that_changes_nothing_is_no_event() {
    let (_server, client) = server().await;
    create(&client, "a", json!({})).await;
    let first = merge(&client, "a", json!({ "spec": { "color": "red" } }))
        .await
        .unwrap();
    merge(&client, "a", json!({})).await.unwrap();
    create(&client, "b", json!({})).await;
    let events = see(&client, &WatchParams::default(), &version(&first), 1).await;
    assert_eq!(events, ["ADDED b"]);
}

#[tokio::test]
async fn leaving_a_selection_is_deleted_and_entering_it_added() {
    let (_server, client) = server().await;
    let first = create(&client, "a", json!({})).await;
    for label in ["x", "y", "x"] {
        let patch = json!({ "metadata": { "labels": { "l": label } } });
        merge(&client, "a", patch).await.unwrap();
    }
    let params = WatchParams::default().labels("l=x");
    let events = see(&client, &params, &version(&first), 3).await;
    assert_eq!(events, ["ADDED a", "DELETED a", "ADDED a"]);
}

#[tokio::test]
async fn a_watch_by_field_sees_that_field_alone() {
    let (_server, client) = server().await;
    let first = create(&client, "a", json!({ "color": "red" })).await;
    create(&client, "b", json!({ "color": "blue" })).await;
    merge(&client, "a", json!({ "spec": { "color": "blue" } }))
        .await
        .unwrap();
    let params = WatchParams::default().fields("spec.color=blue");
    assert_eq!(
        see(&client, &params, &version(&first), 2).await,
        ["ADDED b", "ADDED a"]
    );
    let params = WatchParams::default().fields("metadata.name=a");
    assert_eq!(
        see(&client, &params, &version(&first), 1).await,
        ["MODIFIED a"]
    );
}

#[tokio::test]
async fn a_watch_from_nowhere_begins_with_what_is_there() {
    let (_server, client) = server().await;
    create(&client, "a", json!({})).await;
    create(&client, "b", json!({})).await;
    assert_eq!(
        see(&client, &WatchParams::default(), "0", 2).await,
        ["ADDED a", "ADDED b"]
    );
}

#[tokio::test]
async fn a_streamed_list_ends_with_a_bookmark() {
    let (_server, client) = server().await;
    create(&client, "a", json!({})).await;
    let params = WatchParams::default().initial_events();
    let api = widgets(&client);
    let mut stream = pin!(api.watch(&params, "0").await.unwrap());
    assert_eq!(short(&stream.next().await.unwrap().unwrap()), "ADDED a");
    let event = stream.next().await.unwrap().unwrap();
    let WatchEvent::Bookmark(bookmark) = event else {
        panic!("{event:?}")
    };
    let end = bookmark
        .metadata
        .annotations
        .get("k8s.io/initial-events-end");
    assert_eq!(end.map(String::as_str), Some("true"));
    create(&client, "b", json!({})).await;
    assert_eq!(short(&stream.next().await.unwrap().unwrap()), "ADDED b");
}

#[tokio::test]
async fn a_watch_from_a_forgotten_version_is_410() {
    let (server, client) = server().await;
    let first = create(&client, "a", json!({})).await;
    create(&client, "b", json!({})).await;
    server.compact();
    assert_eq!(
        see(&client, &WatchParams::default(), &version(&first), 1).await,
        ["ERROR 410"]
    );
}

#[tokio::test(start_paused = true)]
async fn bookmarks_come_each_minute() {
    let (_server, client) = server().await;
    let first = create(&client, "a", json!({})).await;
    let before = Instant::now();
    let events = see(&client, &WatchParams::default(), &version(&first), 1).await;
    assert_eq!(events, ["BOOKMARK"]);
    assert_eq!(before.elapsed().as_secs(), 60);
}

#[tokio::test(start_paused = true)]
async fn a_watch_ends_at_its_timeout() {
    let (_server, client) = server().await;
    let first = create(&client, "a", json!({})).await;
    let before = Instant::now();
    let params = WatchParams {
        bookmarks: false,
        ..WatchParams::default()
    }
    .timeout(5);
    assert_eq!(
        see(&client, &params, &version(&first), 1).await,
        Vec::<String>::new()
    );
    assert_eq!(before.elapsed().as_secs(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_lagging_watch_is_late_and_in_order_while_reads_are_current() {
    let (server, client) = server().await;
    let first = create(&client, "a", json!({})).await;
    server.set_watch_lag(Duration::from_secs(3));
    create(&client, "b", json!({})).await;
    tokio::time::advance(Duration::from_secs(1)).await;
    create(&client, "c", json!({})).await;
    widgets(&client).get("c").await.expect("a read is current");
    let before = Instant::now();
    let api = widgets(&client);
    let mut stream = pin!(
        api.watch(&WatchParams::default(), &version(&first))
            .await
            .unwrap()
    );
    assert_eq!(short(&stream.next().await.unwrap().unwrap()), "ADDED b");
    assert_eq!(before.elapsed().as_secs(), 2);
    assert_eq!(short(&stream.next().await.unwrap().unwrap()), "ADDED c");
    assert_eq!(before.elapsed().as_secs(), 3);
}

#[tokio::test]
async fn ended_watches_end() {
    let (server, client) = server().await;
    let first = create(&client, "a", json!({})).await;
    let api = widgets(&client);
    let mut stream = pin!(
        api.watch(&WatchParams::default(), &version(&first))
            .await
            .unwrap()
    );
    server.end_watches();
    assert!(stream.next().await.is_none());
}
