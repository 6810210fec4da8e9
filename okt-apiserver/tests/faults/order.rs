//! Tests that faults of single events break no guarantee of a watch.

use std::time::Duration;

use futures::StreamExt;
use kube::api::{WatchEvent, WatchParams};
use okt_apiserver::{ApiServer, Chaos, Fault};
use tokio::time::{Instant, timeout};

use crate::support::{
    create, empty, is_silent, maps, set, take, until_silence, version, watch, with_a,
};

#[tokio::test(start_paused = true)]
async fn no_bookmark_is_older_than_the_start_of_the_watch() {
    let server = ApiServer::new();
    let behind = maps(server.replica("b").client());
    create(&behind, "a").await.unwrap();
    server.replica("b").freeze();
    let newest = set(&behind, "a", "1").await.unwrap();
    for from in [version(&newest), String::new()] {
        let params = WatchParams::default();
        let mut events = behind.watch(&params, &from).await.unwrap().boxed();
        let seen = until_silence(&mut events).await;
        assert!(!seen.contains(&"BOOKMARK".to_owned()), "{seen:?}");
    }
    // Once the replica has seen that version, it may send a bookmark.
    server.replica("b").release();
    let from = version(&newest);
    let watch = behind.watch(&WatchParams::default(), &from).await;
    let mut events = watch.unwrap().boxed();
    match events.next().await {
        Some(Ok(WatchEvent::Bookmark(bookmark))) => {
            assert_eq!(bookmark.metadata.resource_version, version(&newest));
        }
        other => panic!("expected a bookmark, got {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn an_event_of_a_streamed_list_is_not_merged_with_one_after_its_end() {
    let (server, maps, _) = with_a().await;
    create(&maps, "b").await.unwrap();
    server.inject(Fault::merge_events(Duration::from_secs(5)).name("a").nth(1));
    let params = WatchParams::default().initial_events();
    let mut events = maps.watch(&params, "").await.unwrap().boxed();
    let nothing = timeout(Duration::from_secs(1), events.next()).await;
    assert!(nothing.is_err(), "a waits for its next event");
    set(&maps, "a", "1").await.unwrap();
    let seen = take(&mut events, 4).await;
    assert_eq!(seen, ["ADDED a=", "ADDED b=", "BOOKMARK", "MODIFIED a=1"]);
}

#[tokio::test(start_paused = true)]
async fn a_held_event_that_is_merged_stays_held() {
    let (server, maps, first) = with_a().await;
    let hold = server.inject(Fault::hold_events().name("a"));
    server.inject(Fault::merge_events(Duration::from_secs(5)).nth(1));
    let mut events = watch(&maps, &version(&first)).await;
    set(&maps, "a", "1").await.unwrap();
    create(&maps, "b").await.unwrap();
    set(&maps, "a", "2").await.unwrap();
    assert!(is_silent(&mut events).await);
    hold.end();
    assert_eq!(take(&mut events, 2).await, ["ADDED b=", "MODIFIED a=2"]);
}

#[tokio::test(start_paused = true)]
async fn a_lagging_event_that_is_merged_still_lags() {
    let (server, maps, first) = with_a().await;
    server.inject(Fault::lag(Duration::from_secs(3)).nth(1));
    server.inject(Fault::merge_events(Duration::from_secs(5)).nth(1));
    let mut events = watch(&maps, &version(&first)).await;
    set(&maps, "a", "1").await.unwrap();
    set(&maps, "a", "2").await.unwrap();
    let before = Instant::now();
    assert_eq!(take(&mut events, 1).await, ["MODIFIED a=2"]);
    assert_eq!(before.elapsed(), Duration::from_secs(3));
}

#[tokio::test(start_paused = true)]
async fn events_held_by_a_chaos_are_sent_when_its_time_is_over() {
    let (server, maps, first) = with_a().await;
    let always = Chaos::none(1).with(1.0, Fault::hold_events());
    server.misbehave(always.lasting(Duration::from_secs(10)));
    let mut events = watch(&maps, &version(&first)).await;
    set(&maps, "a", "1").await.unwrap();
    let before = Instant::now();
    let seen = timeout(Duration::from_mins(1), take(&mut events, 1)).await;
    assert_eq!(seen.expect("let go"), ["MODIFIED a=1"]);
    assert_eq!(before.elapsed(), Duration::from_secs(10));
}

#[tokio::test(start_paused = true)]
async fn events_held_by_a_chaos_are_sent_after_its_last_strike() {
    let (server, maps, first) = with_a().await;
    let always = Chaos::none(1).with(1.0, Fault::hold_events());
    server.misbehave(always.at_most(2));
    let mut one = watch(&maps, &version(&first)).await;
    set(&maps, "a", "1").await.unwrap();
    assert!(is_silent(&mut one).await);
    let mut two = watch(&maps, &version(&first)).await;
    let seen = timeout(Duration::from_mins(1), take(&mut two, 1)).await;
    assert_eq!(seen.expect("let go"), ["MODIFIED a=1"]);
    let seen = timeout(Duration::from_mins(1), take(&mut one, 1)).await;
    assert_eq!(seen.expect("let go"), ["MODIFIED a=1"]);
}

#[tokio::test(start_paused = true)]
async fn a_watch_with_a_timeout_of_zero_does_not_end() {
    let (_server, maps) = empty();
    let params = WatchParams::default().timeout(0).disable_bookmarks();
    let mut events = maps.watch(&params, "0").await.unwrap().boxed();
    let silence = timeout(Duration::from_mins(10), events.next()).await;
    assert!(silence.is_err(), "it ended");
}
