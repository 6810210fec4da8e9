//! Tests of responses that come late, in part or not at all.

use std::time::Duration;

use futures::StreamExt;
use kube::api::ListParams;
use okt_apiserver::{Fault, Verb};
use tokio::time::{Instant, timeout};

use crate::support::{create, empty, set, take, version, watch, with_a, x};

#[tokio::test(start_paused = true)]
async fn a_delay_is_on_tokios_clock_and_comes_before_the_commit() {
    let (server, maps, _) = with_a().await;
    server.inject(Fault::delay(Duration::from_secs(7)).on(Verb::Patch));
    let before = Instant::now();
    let given_up = timeout(Duration::from_secs(6), set(&maps, "a", "1")).await;
    assert!(given_up.is_err());
    assert_eq!(x(&maps.get("a").await.unwrap()), "", "the client gave up");
    set(&maps, "a", "2").await.unwrap();
    assert_eq!(before.elapsed(), Duration::from_secs(6 + 7));
}

#[tokio::test(start_paused = true)]
async fn a_delay_after_the_commit_keeps_the_write_if_the_client_gives_up() {
    let (server, maps, _) = with_a().await;
    let delay = Fault::delay(Duration::from_secs(7)).on(Verb::Patch);
    server.inject(delay.after_commit());
    let given_up = timeout(Duration::from_secs(6), set(&maps, "a", "1")).await;
    assert!(given_up.is_err());
    assert_eq!(x(&maps.get("a").await.unwrap()), "1");
}

#[tokio::test(start_paused = true)]
async fn a_fault_before_the_commit_writes_nothing_and_one_after_it_keeps_the_write() {
    let forever = Duration::from_hours(100);
    for (fault, expected) in [
        (Fault::timeout(), "Ok(Err(Api("),
        (Fault::break_connection(), "Ok(Err(Service("),
        // A request without a response waits forever.
        (Fault::no_answer(), "Err(Elapsed("),
    ] {
        for is_written in [false, true] {
            let (server, maps) = empty();
            let fault = fault.clone().on(Verb::Create).times(1);
            let fault = if is_written {
                fault.after_commit()
            } else {
                fault
            };
            let fault = server.inject(fault);
            let answer = format!("{:?}", timeout(forever, create(&maps, "a")).await);
            assert!(answer.starts_with(expected), "{answer}");
            assert_eq!(fault.struck(), 1);
            let found = maps.get_opt("a").await.unwrap();
            assert_eq!(found.is_some(), is_written, "{answer}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_cut_body_is_an_error_and_the_write_is_committed() {
    let (server, maps) = empty();
    server.inject(Fault::cut_body(10).on(Verb::Create));
    create(&maps, "a").await.unwrap_err();
    assert!(maps.get_opt("a").await.unwrap().is_some());
    server.inject(Fault::cut_body(30).on_reads());
    maps.get("a").await.unwrap_err();
    maps.list(&ListParams::default()).await.unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn a_cut_watch_ends_in_the_middle_of_a_line() {
    let (server, maps, first) = with_a().await;
    server.inject(Fault::cut_body(350).on(Verb::Watch));
    let mut events = watch(&maps, &version(&first)).await;
    for number in 0..10 {
        set(&maps, "a", &number.to_string()).await.unwrap();
    }
    let seen = take(&mut events, 100).await;
    assert_eq!(seen, ["MODIFIED a=0"], "kube takes half a line for the end");
    assert!(events.next().await.is_none());
}
