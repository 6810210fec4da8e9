//! Tests of responses that come late, in part or not at all.

use std::time::Duration;

use futures::StreamExt;
use kube::api::ListParams;
use okt_testing::{ApiServer, Fault, Verb};
use tokio::time::{Instant, timeout};

use crate::support::{create, maps, set, take, version, watch, x};

#[tokio::test(start_paused = true)]
async fn a_delay_is_on_tokios_clock_and_comes_before_the_commit() {
    let server = ApiServer::new();
    let maps = maps(server.client());
    create(&maps, "a").await.unwrap();
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
    let server = ApiServer::new();
    let maps = maps(server.client());
    create(&maps, "a").await.unwrap();
    let delay = Fault::delay(Duration::from_secs(7)).on(Verb::Patch);
    server.inject(delay.after_commit());
    let given_up = timeout(Duration::from_secs(6), set(&maps, "a", "1")).await;
    assert!(given_up.is_err());
    assert_eq!(x(&maps.get("a").await.unwrap()), "1");
}

#[tokio::test(start_paused = true)]
async fn a_request_without_a_response_waits_forever() {
    let server = ApiServer::new();
    let maps = maps(server.client());
    for (fault, written) in [
        (Fault::no_answer(), false),
        (Fault::no_answer().after_commit(), true),
    ] {
        let silence = server.inject(fault.on(Verb::Create).times(1));
        let name = if written { "written" } else { "lost" };
        let answer = timeout(Duration::from_hours(100), create(&maps, name)).await;
        assert!(answer.is_err());
        assert_eq!(silence.struck(), 1);
        assert_eq!(maps.get_opt(name).await.unwrap().is_some(), written);
    }
}

#[tokio::test(start_paused = true)]
async fn a_broken_connection_is_an_error_of_the_service() {
    let server = ApiServer::new();
    let maps = maps(server.client());
    for (fault, written) in [
        (Fault::break_connection(), false),
        (Fault::break_connection().after_commit(), true),
    ] {
        server.inject(fault.on(Verb::Create).times(1));
        let name = if written { "written" } else { "lost" };
        let broken = create(&maps, name).await.unwrap_err();
        assert!(matches!(broken, kube::Error::Service(_)), "{broken:?}");
        assert_eq!(maps.get_opt(name).await.unwrap().is_some(), written);
    }
}

#[tokio::test(start_paused = true)]
async fn a_cut_body_is_an_error_and_the_write_is_committed() {
    let server = ApiServer::new();
    let maps = maps(server.client());
    server.inject(Fault::cut_body(10).on(Verb::Create));
    create(&maps, "a").await.unwrap_err();
    assert!(maps.get_opt("a").await.unwrap().is_some());
    server.inject(Fault::cut_body(30).on_reads());
    maps.get("a").await.unwrap_err();
    maps.list(&ListParams::default()).await.unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn a_cut_watch_ends_in_the_middle_of_a_line() {
    let server = ApiServer::new();
    let maps = maps(server.client());
    let first = create(&maps, "a").await.unwrap();
    server.inject(Fault::cut_body(350).on(Verb::Watch));
    let mut events = watch(&maps, &version(&first)).await;
    for number in 0..10 {
        set(&maps, "a", &number.to_string()).await.unwrap();
    }
    let seen = take(&mut events, 100).await;
    assert_eq!(seen, ["MODIFIED a=0"], "kube takes half a line for the end");
    assert!(events.next().await.is_none());
}
