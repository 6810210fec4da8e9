//! Tests of several API servers, some of which are behind.

use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{GetParams, ListParams, PostParams, VersionMatch, WatchParams};
use kube::runtime::{WatchStreamExt, reflector, watcher};
use kube::{Api, ResourceExt};
use okt_apiserver::ApiServer;
use tokio::time::Instant;

use crate::support::{create, map, maps, refusal, set, take, version, watch, x};

/// Creates a server with the map `m`, and returns it with the config maps of its replica `b` and this one.
async fn with_m() -> (ApiServer, Api<ConfigMap>, ConfigMap) {
    let server = ApiServer::new();
    let b = maps(server.replica("b").client());
    let first = create(&b, "m").await.unwrap();
    (server, b, first)
}

async fn listed(maps: &Api<ConfigMap>, params: &ListParams) -> Vec<String> {
    let list = maps.list(params).await.unwrap();
    list.items
        .iter()
        .map(|map| format!("{}={}", map.name_any(), x(map)))
        .collect()
}

fn cached() -> ListParams {
    ListParams::default().match_any()
}

fn cached_get() -> GetParams {
    GetParams {
        resource_version: Some("0".to_owned()),
    }
}

#[tokio::test(start_paused = true)]
async fn reads_of_version_0_use_the_cache_of_their_replica_and_other_reads_are_current() {
    let server = ApiServer::new();
    let (a, b) = (
        maps(server.replica("a").client()),
        maps(server.replica("b").client()),
    );
    create(&a, "m").await.unwrap();
    server.replica("b").freeze();
    set(&a, "m", "1").await.unwrap();
    create(&a, "n").await.unwrap();
    assert_eq!(listed(&b, &cached()).await, ["m="]);
    assert_eq!(x(&b.get_with("m", &cached_get()).await.unwrap()), "");
    assert_eq!(refusal(b.get_with("n", &cached_get()).await).code, 404);
    assert_eq!(listed(&b, &ListParams::default()).await, ["m=1", "n="]);
    assert_eq!(x(&b.get("m").await.unwrap()), "1");
    assert_eq!(listed(&a, &cached()).await, ["m=1", "n="]);
    server.replica("b").release();
    assert_eq!(listed(&b, &cached()).await, ["m=1", "n="]);
}

#[tokio::test(start_paused = true)]
async fn a_list_from_a_stale_cache_has_the_stale_version() {
    let (server, b, first) = with_m().await;
    server.replica("b").freeze();
    set(&b, "m", "1").await.unwrap();
    let list = b.list(&cached()).await.unwrap();
    assert_eq!(list.metadata.resource_version, first.resource_version());
}

#[tokio::test(start_paused = true)]
async fn a_lagging_replica_sees_each_change_after_the_lag() {
    let (server, b, _) = with_m().await;
    server.replica("b").set_lag(Duration::from_secs(5));
    set(&b, "m", "1").await.unwrap();
    tokio::time::advance(Duration::from_secs(3)).await;
    set(&b, "m", "2").await.unwrap();
    assert_eq!(listed(&b, &cached()).await, ["m="]);
    tokio::time::advance(Duration::from_secs(2)).await;
    assert_eq!(listed(&b, &cached()).await, ["m=1"]);
    tokio::time::advance(Duration::from_secs(3)).await;
    assert_eq!(listed(&b, &cached()).await, ["m=2"]);
}

#[tokio::test(start_paused = true)]
async fn a_new_lag_hides_no_change_that_was_seen() {
    let (server, b, _) = with_m().await;
    server.replica("b").set_lag(Duration::from_hours(1));
    assert_eq!(listed(&b, &cached()).await, ["m="]);
}

#[tokio::test(start_paused = true)]
async fn a_watch_on_a_replica_is_as_late_as_the_replica() {
    let (server, b, first) = with_m().await;
    server.replica("b").freeze();
    let mut late = watch(&b, &version(&first)).await;
    let mut current = watch(&maps(server.client()), &version(&first)).await;
    let second = set(&b, "m", "1").await.unwrap();
    assert_eq!(take(&mut current, 1).await, ["MODIFIED m=1"]);
    // A watch from a version that the replica has not seen yet sends nothing until then.
    let mut ahead = watch(&b, &version(&second)).await;
    set(&b, "m", "2").await.unwrap();
    server.replica("b").release();
    assert_eq!(take(&mut late, 2).await, ["MODIFIED m=1", "MODIFIED m=2"]);
    assert_eq!(take(&mut ahead, 1).await, ["MODIFIED m=2"]);
}

#[tokio::test(start_paused = true)]
async fn a_streamed_list_of_version_0_starts_stale_and_catches_up() {
    let (server, b, _) = with_m().await;
    server.replica("b").freeze();
    set(&b, "m", "1").await.unwrap();
    let params = WatchParams::default().initial_events();
    let mut events = b.watch(&params, "0").await.unwrap().boxed();
    assert_eq!(take(&mut events, 2).await, ["ADDED m=", "BOOKMARK"]);
    server.replica("b").release();
    assert_eq!(take(&mut events, 1).await, ["MODIFIED m=1"]);
}

#[tokio::test(start_paused = true)]
async fn a_read_with_a_minimum_version_waits_for_it() {
    let (server, b, _) = with_m().await;
    server.replica("b").set_lag(Duration::from_secs(2));
    let second = set(&b, "m", "1").await.unwrap();
    let before = Instant::now();
    let params = ListParams::default()
        .at(&version(&second))
        .matching(VersionMatch::NotOlderThan);
    assert_eq!(listed(&b, &params).await, ["m=1"]);
    assert_eq!(before.elapsed(), Duration::from_secs(2));
}

#[tokio::test(start_paused = true)]
async fn a_read_that_waits_too_long_is_504() {
    let (server, b, _) = with_m().await;
    server.replica("b").freeze();
    let second = set(&b, "m", "1").await.unwrap();
    let before = Instant::now();
    let get = GetParams {
        resource_version: second.resource_version(),
    };
    let status = refusal(b.get_with("m", &get).await);
    assert_eq!(status.code, 504);
    assert!(
        status
            .message
            .starts_with("Timeout: Too large resource version"),
        "{}",
        status.message
    );
    assert_eq!(status.details.unwrap().retry_after_seconds, 1);
    assert_eq!(before.elapsed(), Duration::from_secs(3));
}

#[tokio::test(start_paused = true)]
async fn writes_through_a_stale_replica_use_the_current_store() {
    let (server, b, first) = with_m().await;
    server.replica("b").freeze();
    set(&b, "m", "1").await.unwrap();
    let mut stale = map("m");
    stale.metadata.resource_version = first.resource_version();
    let status = refusal(b.replace("m", &PostParams::default(), &stale).await);
    assert!(status.is_conflict());
}

#[tokio::test(start_paused = true)]
async fn a_replica_can_be_frozen_at_any_earlier_version() {
    let server = ApiServer::new();
    let maps_now = maps(server.client());
    create(&maps_now, "m").await.unwrap();
    for x in ["1", "2", "3"] {
        set(&maps_now, "m", x).await.unwrap();
    }
    server.compact();
    let mut seen = Vec::new();
    for version in server.versions().resource("configmaps") {
        let past = server.replica("past");
        past.freeze_at(version.version);
        seen.extend(listed(&maps(past.client()), &cached()).await);
    }
    assert_eq!(seen, ["m=", "m=1", "m=2", "m=3"]);
    // A watch can start from there, although the history is compacted for other replicas.
    let first = server
        .versions()
        .resource("configmaps")
        .iter()
        .next()
        .map(|v| v.version);
    let first = first.expect("a version");
    let past = server.replica("past");
    past.freeze_at(first);
    let mut events = watch(&maps(past.client()), &first.to_string()).await;
    past.release();
    assert_eq!(
        take(&mut events, 3).await,
        ["MODIFIED m=1", "MODIFIED m=2", "MODIFIED m=3"]
    );
}

#[tokio::test(start_paused = true)]
async fn ending_the_watches_of_one_replica_keeps_those_of_others() {
    let server = ApiServer::new();
    let (a, b) = (
        maps(server.replica("a").client()),
        maps(server.replica("b").client()),
    );
    let first = create(&a, "m").await.unwrap();
    let mut of_a = watch(&a, &version(&first)).await;
    let mut of_b = watch(&b, &version(&first)).await;
    server.replica("b").end_watches();
    set(&a, "m", "1").await.unwrap();
    assert_eq!(take(&mut of_a, 1).await, ["MODIFIED m=1"]);
    assert!(of_b.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_restarted_controller_that_lists_from_a_stale_cache_sees_the_past() {
    let server = ApiServer::new();
    let user = maps(server.client());
    create(&user, "m").await.unwrap();
    server.replica("b").freeze();
    set(&user, "m", "1").await.unwrap();
    for (replica, expected) in [("a", "1"), ("b", "")] {
        let (reader, writer) = reflector::store();
        let maps = maps(server.replica(replica).client());
        let config = watcher::Config::default().streaming_lists();
        let stream = reflector(writer, watcher(maps, config)).default_backoff();
        let running = tokio::spawn(stream.for_each(|_| async {}));
        reader.wait_until_ready().await.unwrap();
        assert_eq!(x(&reader.state()[0]), expected, "{replica}");
        running.abort();
    }
}
