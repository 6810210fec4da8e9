//! Tests of the recordings of requests, versions, events and strikes.

use std::time::Duration;

use kube::api::{DeleteParams, ListParams};
use okt_apiserver::{ApiServer, EventKind, Fault, RequestRecord, Verb};
use tokio::time::Instant;

use crate::support::{create, empty, maps, set, take, version, watch, with_a};

#[tokio::test(start_paused = true)]
async fn a_request_has_its_time_client_and_replica() {
    let server = ApiServer::new();
    let start = Instant::now();
    tokio::time::advance(Duration::from_secs(4)).await;
    let maps = maps(server.replica("b").client_named("operator"));
    create(&maps, "a").await.unwrap();
    let requests = server.requests();
    let [request] = requests.as_slice() else {
        panic!("one request")
    };
    assert_eq!(request.at - start, Duration::from_secs(4));
    assert_eq!(
        (request.client.as_str(), request.replica.as_str()),
        ("operator", "b")
    );
    assert_eq!((request.status, request.committed.is_some()), (201, true));
    assert_eq!(
        request.to_string(),
        "create configmaps default/a of operator"
    );
}

#[tokio::test(start_paused = true)]
async fn a_request_has_its_faults_and_whether_it_was_committed() {
    let (server, maps) = empty();
    server.inject(Fault::timeout().name("a").after_commit());
    server.inject(Fault::timeout().name("b"));
    server.inject(Fault::break_connection().name("c").after_commit());
    server.inject(Fault::delay(Duration::from_secs(1)).name("c"));
    for name in ["a", "b", "c"] {
        create(&maps, name).await.unwrap_err();
    }
    let found: Vec<_> = server
        .requests()
        .into_iter()
        .map(|request| {
            (
                request.faults.join(", "),
                request.status,
                request.committed.is_some(),
            )
        })
        .collect();
    let of = |faults: &str, status, committed| (faults.to_owned(), status, committed);
    assert_eq!(
        found,
        [
            of("504 Timeout after the commit", 504, true),
            of("504 Timeout", 504, false),
            of(
                "a delay of 1s, a broken connection after the commit",
                0,
                true
            ),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_pending_request_is_recorded() {
    let server = ApiServer::new();
    server.inject(Fault::no_answer());
    let maps = maps(server.client());
    let asking = tokio::spawn(async move { create(&maps, "a").await });
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(server.requests()[0].status, 0);
    assert_eq!(server.requests()[0].faults, ["no answer"]);
    asking.abort();
}

#[tokio::test(start_paused = true)]
async fn a_write_that_changes_nothing_is_not_committed() {
    let (server, maps, _) = with_a().await;
    set(&maps, "a", "1").await.unwrap();
    let mark = server.mark();
    set(&maps, "a", "1").await.unwrap();
    let requests = server.requests_since(mark);
    assert_eq!(requests.len(), 1);
    assert!(requests[0].is_write() && requests[0].committed.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_mark_separates_earlier_and_later_records() {
    let (server, maps, first) = with_a().await;
    let mut events = watch(&maps, &version(&first)).await;
    set(&maps, "a", "1").await.unwrap();
    take(&mut events, 1).await;
    let mark = server.mark();
    assert_eq!(server.requests_since(mark), []);
    assert_eq!(server.events_since(mark), []);
    assert!(server.versions().since(mark).is_empty());
    set(&maps, "a", "2").await.unwrap();
    take(&mut events, 1).await;
    assert_eq!(server.requests_since(mark).len(), 1);
    assert_eq!(server.events_since(mark).len(), 1);
    assert_eq!(server.versions().since(mark).course("/data/x"), ["2"]);
    server.clear_requests();
    assert_eq!(server.requests_since(mark), []);
}

#[tokio::test(start_paused = true)]
async fn all_versions_are_recorded_also_after_compaction_and_deletion() {
    let (server, maps, _) = with_a().await;
    create(&maps, "b").await.unwrap();
    set(&maps, "a", "1").await.unwrap();
    server.compact();
    maps.delete("a", &DeleteParams::default()).await.unwrap();
    let versions = server
        .versions()
        .resource("configmaps")
        .namespace("default");
    let found: Vec<_> = versions
        .iter()
        .map(|version| format!("{} {}", version.kind, version.name))
        .collect();
    assert_eq!(found, ["ADDED a", "ADDED b", "MODIFIED a", "DELETED a"]);
    let numbers: Vec<_> = versions.iter().map(|version| version.version).collect();
    assert!(numbers.is_sorted());
    assert_eq!(
        versions.name("a").course("/data/x"),
        [serde_json::Value::Null, "1".into()]
    );
}

#[tokio::test(start_paused = true)]
async fn events_are_recorded_as_they_were_sent() {
    let server = ApiServer::new();
    let maps = maps(server.client_named("operator"));
    let first = create(&maps, "a").await.unwrap();
    server.inject(Fault::repeat_event().nth(1));
    server.inject(Fault::drop_event().nth(2));
    let mut events = watch(&maps, &version(&first)).await;
    for x in ["1", "2", "3"] {
        set(&maps, "a", x).await.unwrap();
    }
    take(&mut events, 3).await;
    let sent = server.events();
    assert_eq!(sent.len(), 3);
    assert_eq!(sent[0], sent[1]);
    assert!(sent[2].version > sent[1].version + 1);
    assert_eq!(
        (sent[2].client.as_str(), sent[2].kind),
        ("operator", EventKind::Modified)
    );
}

#[tokio::test(start_paused = true)]
async fn strikes_are_recorded_in_order_and_readable() {
    let server = ApiServer::new();
    let maps = maps(server.client_named("operator"));
    server.inject(Fault::unavailable().on(Verb::List));
    server.inject(Fault::conflict().on(Verb::Create).times(1));
    create(&maps, "a").await.unwrap_err();
    maps.list(&ListParams::default()).await.unwrap_err();
    let found: Vec<_> = server.strikes().iter().map(ToString::to_string).collect();
    assert_eq!(
        found,
        [
            "create configmaps default/a of operator: 409 Conflict",
            "list configmaps in default of operator: 503 ServiceUnavailable",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_server_without_recording_keeps_only_the_watch_history() {
    let server = ApiServer::new();
    server.set_recording(false);
    let maps = maps(server.client());
    let first = create(&maps, "a").await.unwrap();
    for number in 0..5000 {
        set(&maps, "a", &number.to_string()).await.unwrap();
    }
    let mut events = watch(&maps, &version(&set(&maps, "a", "x").await.unwrap())).await;
    set(&maps, "a", "y").await.unwrap();
    assert_eq!(take(&mut events, 1).await, ["MODIFIED a=y"]);
    assert_eq!(
        server
            .requests()
            .iter()
            .filter(|r| RequestRecord::is_write(r))
            .count(),
        0
    );
    assert_eq!(server.events(), []);
    assert_eq!(server.versions().resource("configmaps").len(), 4096);
    let mut gone = watch(&maps, &version(&first)).await;
    assert_eq!(take(&mut gone, 1).await, ["ERROR 410"]);
}

#[tokio::test(start_paused = true)]
async fn a_long_history_is_recorded_but_not_replayed_to_watches() {
    let (server, maps, first) = with_a().await;
    for number in 0..4200 {
        set(&maps, "a", &number.to_string()).await.unwrap();
    }
    assert_eq!(server.versions().resource("configmaps").len(), 4201);
    let mut gone = watch(&maps, &version(&first)).await;
    assert_eq!(take(&mut gone, 1).await, ["ERROR 410"]);
}

#[tokio::test(start_paused = true)]
async fn a_commit_is_recorded_if_the_client_gave_up() {
    let server = ApiServer::new();
    server.inject(Fault::delay(Duration::from_secs(9)).after_commit());
    let maps = maps(server.client());
    let asking = create(&maps, "a");
    let given_up = tokio::time::timeout(Duration::from_secs(1), asking).await;
    assert!(given_up.is_err());
    let [request] = server.requests().try_into().expect("one request");
    let version = server.versions().resource("configmaps");
    let version = version.iter().next().map(|version| version.version);
    assert_eq!((request.status, request.committed), (0, version));
    assert_eq!(request.faults, ["a delay of 9s after the commit"]);
}
