//! Tests of the faults of watch events.

use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{DeleteParams, WatchParams};
use okt_apiserver::{ApiServer, EventKind, Fault, OnEvent};
use tokio::time::{Instant, timeout};

use crate::support::{
    Events, create, is_silent, maps, set, take, until_silence, version, watch, with_a,
};

/// Creates a server with one map and a fault, and a watch of the later events.
async fn scene(fault: Fault<OnEvent>) -> (ApiServer, Api<ConfigMap>, Events) {
    let (server, maps, first) = with_a().await;
    server.inject(fault);
    let events = watch(&maps, &version(&first)).await;
    (server, maps, events)
}

#[tokio::test(start_paused = true)]
async fn a_lagging_event_delays_the_events_after_it() {
    let (_server, maps, mut events) = scene(Fault::lag(Duration::from_secs(3)).nth(2)).await;
    for x in ["1", "2", "3"] {
        set(&maps, "a", x).await.unwrap();
    }
    let before = Instant::now();
    assert_eq!(take(&mut events, 1).await, ["MODIFIED a=1"]);
    assert_eq!(before.elapsed(), Duration::ZERO);
    assert_eq!(take(&mut events, 1).await, ["MODIFIED a=2"]);
    assert_eq!(before.elapsed(), Duration::from_secs(3));
    assert_eq!(take(&mut events, 1).await, ["MODIFIED a=3"]);
    assert_eq!(before.elapsed(), Duration::from_secs(3));
}

#[tokio::test(start_paused = true)]
async fn held_events_come_when_the_fault_ends() {
    let (server, maps, first) = with_a().await;
    let hold = server.inject(Fault::hold_events().name("a"));
    let mut events = watch(&maps, &version(&first)).await;
    set(&maps, "a", "1").await.unwrap();
    create(&maps, "b").await.unwrap();
    assert!(is_silent(&mut events).await);
    hold.end();
    assert_eq!(take(&mut events, 2).await, ["MODIFIED a=1", "ADDED b="]);
}

#[tokio::test(start_paused = true)]
async fn an_event_is_dropped_or_doubled_or_breaks_its_stream() {
    for (fault, expected) in [
        (Fault::drop_event(), &["MODIFIED a=1", "MODIFIED a=3"][..]),
        (
            Fault::repeat_event(),
            &[
                "MODIFIED a=1",
                "MODIFIED a=2",
                "MODIFIED a=2",
                "MODIFIED a=3",
            ],
        ),
        // A stream that breaks within an event does not deliver it.
        (Fault::break_stream(), &["MODIFIED a=1"]),
        (Fault::expire_stream(), &["MODIFIED a=1", "ERROR 410"]),
    ] {
        let what = format!("{fault:?}");
        let (_server, maps, mut events) = scene(fault.nth(2)).await;
        for x in ["1", "2", "3"] {
            set(&maps, "a", x).await.unwrap();
        }
        let seen = until_silence(&mut events).await;
        assert_eq!(seen, expected, "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn merged_events_are_sent_as_one_in_place_of_the_second() {
    let merge = Fault::merge_events(Duration::from_secs(5)).name("a").nth(1);
    let (_server, maps, mut events) = scene(merge).await;
    set(&maps, "a", "1").await.unwrap();
    create(&maps, "b").await.unwrap();
    set(&maps, "a", "2").await.unwrap();
    set(&maps, "a", "3").await.unwrap();
    let seen = take(&mut events, 3).await;
    assert_eq!(seen, ["ADDED b=", "MODIFIED a=2", "MODIFIED a=3"]);
}

#[tokio::test(start_paused = true)]
async fn an_event_without_a_later_one_is_sent_unmerged() {
    let merge = Fault::merge_events(Duration::from_secs(5));
    let (_server, maps, mut events) = scene(merge).await;
    set(&maps, "a", "1").await.unwrap();
    let before = Instant::now();
    assert_eq!(take(&mut events, 1).await, ["MODIFIED a=1"]);
    assert_eq!(before.elapsed(), Duration::from_secs(5));
}

#[tokio::test(start_paused = true)]
async fn a_creation_merged_with_its_deletion_sends_no_event() {
    let merge = Fault::merge_events(Duration::from_secs(5)).name("b").nth(1);
    let (_server, maps, mut events) = scene(merge).await;
    create(&maps, "b").await.unwrap();
    maps.delete("b", &DeleteParams::default()).await.unwrap();
    set(&maps, "a", "1").await.unwrap();
    assert_eq!(take(&mut events, 1).await, ["MODIFIED a=1"]);
}

#[tokio::test(start_paused = true)]
async fn a_deletion_merged_with_a_new_creation_is_a_modification() {
    let merge = Fault::merge_events(Duration::from_secs(5)).event(EventKind::Deleted);
    let (_server, maps, mut events) = scene(merge).await;
    maps.delete("a", &DeleteParams::default()).await.unwrap();
    create(&maps, "a").await.unwrap();
    assert_eq!(take(&mut events, 1).await, ["MODIFIED a="]);
}

#[tokio::test(start_paused = true)]
async fn a_stream_ends_after_the_event_and_can_be_resumed() {
    let (_server, maps, mut events) = scene(Fault::end_stream().nth(2)).await;
    let mut last = String::new();
    for x in ["1", "2", "3"] {
        let changed = set(&maps, "a", x).await.unwrap();
        if x == "2" {
            last = version(&changed);
        }
    }
    let seen = take(&mut events, 9).await;
    assert_eq!(seen, ["MODIFIED a=1", "MODIFIED a=2"]);
    let mut events = watch(&maps, &last).await;
    assert_eq!(take(&mut events, 1).await, ["MODIFIED a=3"]);
}

#[tokio::test(start_paused = true)]
async fn events_are_selected_by_kind_and_name() {
    let fault = Fault::drop_event().event(EventKind::Modified).name("b");
    let (_server, maps, mut events) = scene(fault).await;
    create(&maps, "b").await.unwrap();
    set(&maps, "b", "1").await.unwrap();
    set(&maps, "a", "1").await.unwrap();
    maps.delete("b", &DeleteParams::default()).await.unwrap();
    let seen = take(&mut events, 3).await;
    assert_eq!(seen, ["ADDED b=", "MODIFIED a=1", "DELETED b=1"]);
}

#[tokio::test(start_paused = true)]
async fn events_are_selected_by_the_watching_client() {
    let server = ApiServer::new();
    let maps_of = |client| maps(server.client_named(client));
    let first = create(&maps_of("user"), "a").await.unwrap();
    server.inject(Fault::drop_event().client("operator"));
    let mut user = watch(&maps_of("user"), &version(&first)).await;
    let mut operator = watch(&maps_of("operator"), &version(&first)).await;
    set(&maps_of("user"), "a", "1").await.unwrap();
    assert_eq!(take(&mut user, 1).await, ["MODIFIED a=1"]);
    assert!(is_silent(&mut operator).await);
}

#[tokio::test(start_paused = true)]
async fn bookmarks_are_withheld_except_at_the_end_of_a_list() {
    let (server, maps, _) = with_a().await;
    server.inject(Fault::withhold_bookmarks());
    let params = WatchParams::default().initial_events();
    let mut events = maps.watch(&params, "0").await.unwrap().boxed();
    let seen = until_silence(&mut events).await;
    assert_eq!(seen, ["ADDED a=", "BOOKMARK"]);
}

#[tokio::test(start_paused = true)]
async fn a_lag_and_a_merge_may_last_forever() {
    for fault in [
        Fault::lag(Duration::MAX),
        Fault::merge_events(Duration::MAX),
    ] {
        let (_server, maps, mut events) = scene(fault.nth(1)).await;
        set(&maps, "a", "1").await.unwrap();
        let a_while = Duration::from_mins(1);
        assert!(timeout(a_while, take(&mut events, 1)).await.is_err());
    }
}
