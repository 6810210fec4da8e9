//! Tests the calls with which a test disturbs the server: compact the history, delay and end watches.

use std::pin::pin;
use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use kube::ResourceExt;
use kube::api::{DeleteParams, DynamicObject, ListParams, WatchEvent, WatchParams};
use kube::runtime::watcher::{self, Event, watcher};
use serde_json::json;
use tokio::time::{Instant, timeout};

use crate::support::{create, get, merge, refusal, server, version, widgets};

#[tokio::test]
async fn all_clients_of_a_server_share_one_store() {
    let (server, client) = server().await;
    create(&client, "a", json!({})).await;
    get(&server.client(), "a").await;
    get(&server.clone().client(), "a").await;
}

#[tokio::test]
async fn a_page_of_a_compacted_version_is_410() {
    let (server, client) = server().await;
    for name in ["a", "b", "c"] {
        create(&client, name, json!({})).await;
    }
    let first = widgets(&client)
        .list(&ListParams::default().limit(1))
        .await
        .unwrap();
    create(&client, "d", json!({})).await;
    server.compact();
    let token = first.metadata.continue_.unwrap();
    let params = ListParams::default().limit(1).continue_token(&token);
    let status = refusal(widgets(&client).list(&params).await);
    assert_eq!((status.code, status.reason.as_str()), (410, "Expired"));
}

#[tokio::test]
async fn a_watch_from_a_compacted_version_is_410() {
    let (server, client) = server().await;
    let first = create(&client, "a", json!({})).await;
    create(&client, "b", json!({})).await;
    server.compact();
    let api = widgets(&client);
    let watch = api.watch(&WatchParams::default(), &version(&first)).await;
    let event = pin!(watch.unwrap()).next().await.unwrap().unwrap();
    assert!(
        matches!(&event, WatchEvent::Error(status) if status.code == 410),
        "{event:?}"
    );
}

/// Returns the name of the added object.
fn added(event: Option<kube::Result<WatchEvent<DynamicObject>>>) -> String {
    match event {
        Some(Ok(WatchEvent::Added(object))) => object.name_any(),
        other => panic!("not an addition: {other:?}"),
    }
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
    assert_eq!(added(stream.next().await), "b");
    assert_eq!(before.elapsed().as_secs(), 2);
    assert_eq!(added(stream.next().await), "c");
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

async fn follow(config: watcher::Config) {
    let (server, client) = server().await;
    create(&client, "a", json!({})).await;
    let mut stream = watcher(widgets(&client), config).boxed();
    assert!(matches!(stream.try_next().await, Ok(Some(Event::Init))));
    let Ok(Some(Event::InitApply(object))) = stream.try_next().await else {
        panic!("expected the existing object")
    };
    assert_eq!(object.name_any(), "a");
    assert!(matches!(stream.try_next().await, Ok(Some(Event::InitDone))));
    merge(&client, "a", json!({ "spec": { "color": "red" } }))
        .await
        .unwrap();
    assert!(matches!(stream.try_next().await, Ok(Some(Event::Apply(_)))));

    // The watch breaks and its version is compacted: the watcher relists.
    server.end_watches();
    create(&client, "b", json!({})).await;
    server.compact();
    widgets(&client)
        .delete("a", &DeleteParams::default())
        .await
        .unwrap();
    let mut seen = Vec::new();
    while let Some(event) = timeout(Duration::from_mins(1), stream.next())
        .await
        .unwrap()
    {
        match event {
            Ok(Event::InitApply(object)) => seen.push(object.name_any()),
            Ok(Event::InitDone) => break,
            Ok(_) | Err(_) => {}
        }
    }
    assert_eq!(seen, ["b"]);
}

#[tokio::test(start_paused = true)]
async fn a_watcher_whose_version_is_compacted_relists() {
    follow(watcher::Config::default()).await;
}

#[tokio::test(start_paused = true)]
async fn a_watcher_with_a_streamed_list_relists_too() {
    follow(watcher::Config::default().streaming_lists()).await;
}
