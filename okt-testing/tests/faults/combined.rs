//! Tests of several faults at once.

use std::time::Duration;

use okt_testing::Fault;
use tokio::time::Instant;

use crate::support::{create, empty, refusal, set, take, version, watch, with_a};

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
