//! Tests of requests that arrive late, also after their client has given up.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use okt_apiserver::{ApiServer, Chaos, Fault, Verb};
use serde_json::json;
use tokio::time::{Instant, sleep, timeout};

use crate::support::{Retries, create, empty, maps, over_http, set, with_a, x};

const SECOND: Duration = Duration::from_secs(1);

async fn is_there(maps: &Api<ConfigMap>, name: &str) -> bool {
    maps.get_opt(name).await.unwrap().is_some()
}

#[tokio::test(start_paused = true)]
async fn a_late_request_is_carried_out_although_its_client_gave_up() {
    let (server, maps) = empty();
    let late = server.inject(Fault::deliver_late(5 * SECOND).on(Verb::Create));
    assert!(timeout(SECOND, create(&maps, "a")).await.is_err());
    assert_eq!(late.struck(), 1);
    let strike = "create configmaps default/a: a delivery after 5s";
    assert_eq!(late.strikes()[0].to_string(), strike);
    sleep(3 * SECOND).await;
    assert!(!is_there(&maps, "a").await);
    assert_eq!(server.requests()[0].status, 0, "it is on its way");
    sleep(2 * SECOND).await;
    assert!(is_there(&maps, "a").await);
    let request = &server.requests()[0];
    assert_eq!(request.status, 201);
    assert!(request.committed.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_client_that_waits_gets_the_answer_of_its_late_request() {
    let (server, maps) = empty();
    server.inject(Fault::deliver_late(5 * SECOND).on(Verb::Create));
    server.inject(Fault::delay(SECOND).on(Verb::Create));
    let before = Instant::now();
    create(&maps, "a").await.unwrap();
    assert_eq!(before.elapsed(), 6 * SECOND);
    // After the commit it is an answer that is late.
    server.calm();
    server.inject(
        Fault::deliver_late(5 * SECOND)
            .after_commit()
            .on(Verb::Create),
    );
    assert!(timeout(SECOND, create(&maps, "b")).await.is_err());
    assert!(is_there(&maps, "b").await);
}

#[tokio::test(start_paused = true)]
async fn a_late_write_comes_after_newer_ones() {
    let (server, maps, _) = with_a().await;
    server.inject(Fault::deliver_late(5 * SECOND).on(Verb::Patch).times(1));
    assert!(timeout(SECOND, set(&maps, "a", "old")).await.is_err());
    set(&maps, "a", "new").await.unwrap();
    assert_eq!(x(&maps.get("a").await.unwrap()), "new");
    sleep(5 * SECOND).await;
    assert_eq!(x(&maps.get("a").await.unwrap()), "old");
}

#[tokio::test(start_paused = true)]
async fn a_late_renewal_changes_no_lease_but_its_own() {
    let server = ApiServer::new();
    let leases: Api<Lease> = Api::default_namespaced(server.client());
    let create = async || {
        let lease = json!({ "metadata": { "name": "a" }, "spec": { "holderIdentity": "new" } });
        let lease = serde_json::from_value(lease).unwrap();
        leases.create(&PostParams::default(), &lease).await.unwrap()
    };
    let uid = create().await.uid();
    server.inject(Fault::deliver_late(5 * SECOND).on(Verb::Patch));
    let renewal = json!({ "metadata": { "uid": uid }, "spec": { "holderIdentity": "former" } });
    let renew = async || {
        let (params, renewal) = (PatchParams::default(), Patch::Merge(&renewal));
        let renewing = leases.patch("a", &params, &renewal);
        assert!(timeout(SECOND, renewing).await.is_err());
    };
    renew().await;
    leases.delete("a", &DeleteParams::default()).await.unwrap();
    sleep(5 * SECOND).await;
    assert!(leases.get_opt("a").await.unwrap().is_none());
    renew().await;
    create().await;
    sleep(5 * SECOND).await;
    let lease = leases.get("a").await.unwrap();
    assert_eq!(lease.spec.unwrap().holder_identity.as_deref(), Some("new"));
    let answers: Vec<_> = (server.requests().iter())
        .filter(|request| request.verb == Verb::Patch)
        .map(|request| request.status)
        .collect();
    assert_eq!(answers, [404, 422]);
}

#[tokio::test(start_paused = true)]
async fn the_answer_of_a_late_request_can_be_lost() {
    let (server, maps) = empty();
    server.inject(Fault::deliver_late(5 * SECOND).on(Verb::Create));
    let lost = server.inject(Fault::no_answer().after_commit().on(Verb::Create));
    assert!(timeout(60 * SECOND, create(&maps, "a")).await.is_err());
    assert_eq!(lost.struck(), 1);
    assert!(is_there(&maps, "a").await);
    let faults = &server.requests()[0].faults;
    assert_eq!(
        *faults,
        ["a delivery after 5s", "no answer after the commit"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_chaos_delivers_late_by_any_time_up_to_the_given_one() {
    let (server, maps) = empty();
    server.misbehave(Chaos::none(1).with(1.0, Fault::deliver_late(9 * SECOND)));
    for number in 0..20 {
        let before = Instant::now();
        create(&maps, &format!("map-{number}")).await.unwrap();
        assert!(before.elapsed() <= 9 * SECOND);
    }
    assert_eq!(server.strikes().len(), 20);
}

#[tokio::test]
async fn a_request_over_http_arrives_although_its_connection_is_closed() {
    let server = ApiServer::new();
    let served = server.serve().await.unwrap();
    let over_http = maps(over_http(&served, Retries::Default).await);
    let late = server.inject(Fault::deliver_late(SECOND).on(Verb::Create));
    let creating = tokio::spawn(async move { create(&over_http, "a").await });
    late.struck_at_least(1).await;
    creating.abort();
    let maps = maps(server.client());
    while !is_there(&maps, "a").await {
        sleep(Duration::from_millis(20)).await;
    }
}
