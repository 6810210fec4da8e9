//! Tests of several faults at once.

use std::time::Duration;

use okt_apiserver::Fault;
use tokio::time::{Instant, sleep};

use crate::support::{create, empty, is_silent, maps, refusal, set, take, version, watch, with_a};

#[tokio::test(start_paused = true)]
async fn delays_add_up_and_of_other_faults_only_the_first_strikes() {
    let (server, maps) = empty();
    server.inject(Fault::delay(Duration::from_secs(1)));
    let first = server.inject(Fault::conflict());
    let second = server.inject(Fault::unavailable());
    server.inject(Fault::delay(Duration::from_secs(2)));
    let before = Instant::now();
    assert_eq!(refusal(create(&maps, "a").await).code, 409);
    assert_eq!(before.elapsed(), Duration::from_secs(3));
    assert_eq!((first.struck(), second.struck()), (1, 0));
    assert_eq!((first.matched(), second.matched()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn calm_ends_all_faults_and_lags() {
    let (server, maps, first) = with_a().await;
    let mut events = watch(&maps, &version(&first)).await;
    server.set_watch_lag(Duration::from_secs(9));
    server.inject(Fault::hold_events());
    server.inject(Fault::unavailable().on_reads());
    set(&maps, "a", "1").await.unwrap();
    maps.get("a").await.unwrap_err();
    server.calm();
    let before = Instant::now();
    assert_eq!(take(&mut events, 1).await, ["MODIFIED a=1"]);
    assert_eq!(before.elapsed(), Duration::ZERO);
    maps.get("a").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn nothing_comes_through_a_partition_whatever_else_strikes() {
    let (server, user, first) = with_a().await;
    let operator = maps(server.client_named("operator"));
    let mut events = watch(&operator, &version(&first)).await;
    server.inject(Fault::repeat_event().times(1));
    let partition = server.inject(Fault::partition("operator"));
    server.inject(Fault::conflict().on_reads());
    set(&user, "a", "1").await.unwrap();
    // Not even a bookmark, which comes every minute.
    sleep(Duration::from_mins(2)).await;
    assert!(is_silent(&mut events).await);
    let get = operator.get("a").await.unwrap_err();
    assert!(!matches!(get, kube::Error::Api(_)), "an answer: {get}");
    partition.end();
    assert_eq!(take(&mut events, 2).await, ["MODIFIED a=1", "MODIFIED a=1"]);
}
