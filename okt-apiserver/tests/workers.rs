//! Tests the controller of the example: only a lagging watch reveals the wrong variant.

#[path = "../examples/workers/controller.rs"]
mod controller;

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ListParams, PostParams};
use kube::{Api, CustomResourceExt, ResourceExt};
use okt_apiserver::{ApiServer, Chaos, EventKind, Fault, RequestRecord, Seed, Verb};

use controller::{Bookkeeping, Pool, PoolSpec};

/// Runs a server with a pool of three for an hour, and returns the names of all workers created.
async fn workers(bookkeeping: Bookkeeping, misbehave: impl FnOnce(&ApiServer)) -> Vec<String> {
    let server = ApiServer::new();
    let client = server.client();
    let crds = Api::all(client.clone());
    crds.create(&PostParams::default(), &Pool::crd())
        .await
        .expect("the CRD");
    let pools: Api<Pool> = Api::default_namespaced(client.clone());
    let pool = Pool::new("pool", PoolSpec { workers: 3 });
    pools
        .create(&PostParams::default(), &pool)
        .await
        .expect("the pool");

    misbehave(&server);
    let operator = server.client_named("operator");
    let running = tokio::spawn(controller::run(operator, bookkeeping));
    tokio::time::sleep(Duration::from_mins(30)).await;
    server.calm();
    tokio::time::sleep(Duration::from_mins(20)).await;
    let settled = server.mark();
    tokio::time::sleep(Duration::from_mins(10)).await;
    running.abort();

    let requests = server.requests_since(settled).into_iter();
    assert_eq!(
        requests.filter(RequestRecord::is_write).count(),
        0,
        "no writes at rest"
    );
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let there = maps.list(&ListParams::default()).await.expect("a list");
    let made: Vec<_> = (server.versions().resource("configmaps").into_iter())
        .filter(|version| version.kind == EventKind::Added)
        .map(|version| version.name)
        .collect();
    assert_eq!(there.items.len(), made.len(), "nothing is deleted here");
    assert!(there.items.iter().all(|map| made.contains(&map.name_any())));
    made
}

fn late(server: &ApiServer) {
    server.set_watch_lag(Duration::from_secs(3));
}

#[tokio::test(start_paused = true)]
async fn counting_creates_three_workers_if_the_cache_is_current() {
    assert_eq!(workers(Bookkeeping::Count, |_| {}).await.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn counting_creates_too_many_workers_if_the_cache_is_stale() {
    let made = workers(Bookkeeping::Count, late).await;
    assert!(made.len() > 3, "{made:?}");
}

#[tokio::test(start_paused = true)]
async fn naming_creates_three_workers_if_the_cache_is_stale() {
    assert_eq!(workers(Bookkeeping::Names, late).await.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn naming_creates_three_workers_if_a_response_is_lost() {
    let lost = |server: &ApiServer| {
        late(server);
        server.inject(Fault::timeout().on(Verb::Create).after_commit().times(2));
    };
    assert_eq!(workers(Bookkeeping::Names, lost).await.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn naming_creates_three_workers_under_chaos() {
    let mut struck = 0;
    for seed in Seed::several(10) {
        let mut chaos = None;
        let made = workers(Bookkeeping::Names, |server| {
            late(server);
            let mix = Chaos::seeded(seed).times_as_often(3.0);
            chaos = Some(server.misbehave(mix.client("operator")));
        });
        assert_eq!(made.await.len(), 3, "seed {seed}");
        struck += chaos.map_or(0, |chaos| chaos.struck());
    }
    assert!(struck > 10, "it struck {struck} times only");
}

#[tokio::test(start_paused = true)]
async fn the_same_run_creates_the_same_workers() {
    let first = workers(Bookkeeping::Count, late).await;
    assert_eq!(workers(Bookkeeping::Count, late).await, first);
}
