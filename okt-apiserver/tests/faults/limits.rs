//! Tests of the limits and counts of faults.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use okt_apiserver::{ApiServer, Chaos, EventKind, Fault, Injected, Verb};
use serde_json::json;
use tokio::time::{Instant, timeout};

use crate::support::{create, empty, map, maps, set, with_a};

/// Sends a mix of six requests and returns how many match the limits of a fault.
async fn strikes(fault: Fault) -> u64 {
    let server = ApiServer::new();
    let client = server.client_named("operator");
    let other = server.replica("b").client();
    let fault = server.inject(fault.times(0));
    let maps_of_a = maps(client.clone());
    create(&maps_of_a, "a").await.unwrap();
    create(&maps(other), "b").await.unwrap();
    let by = PatchParams::apply("okt").force();
    let applied = Patch::Apply(json!({ "apiVersion": "v1", "kind": "ConfigMap", "data": {} }));
    maps_of_a.patch("a", &by, &applied).await.unwrap();
    let system: Api<Secret> = Api::namespaced(client.clone(), "kube-system");
    system.list(&ListParams::default()).await.unwrap();
    let deployments: Api<Deployment> = Api::default_namespaced(client);
    let deployment = json!({ "metadata": { "name": "d" }, "spec": {
        "selector": { "matchLabels": { "a": "b" } },
        "template": {
            "metadata": { "labels": { "a": "b" } },
            "spec": { "containers": [{ "name": "a", "image": "a" }] },
        },
    } });
    let deployment = serde_json::from_value(deployment).unwrap();
    deployments
        .create(&PostParams::default(), &deployment)
        .await
        .unwrap();
    let status = Patch::Merge(json!({ "status": { "replicas": 1 } }));
    deployments
        .patch_status("d", &PatchParams::default(), &status)
        .await
        .unwrap();
    fault.matched()
}

#[tokio::test(start_paused = true)]
async fn a_fault_without_limits_strikes_everything() {
    assert_eq!(strikes(Fault::conflict()).await, 6);
}

#[tokio::test(start_paused = true)]
async fn each_limit_matches_what_it_names() {
    let fault = Fault::conflict;
    for (fault, count) in [
        (fault().on(Verb::Create), 3),
        (fault().on(Verb::Create).on(Verb::List), 4),
        (fault().on_writes(), 5),
        (fault().on_reads(), 1),
        (fault().resource("configmaps"), 3),
        (fault().resource("deployments"), 2),
        (fault().resource("deployments.apps"), 2),
        (fault().resource("deployments.extensions"), 0),
        (fault().resource("deployments/status"), 1),
        (fault().resource("deployments").subresource("status"), 1),
        (fault().resource("deployments").subresource(""), 1),
        (fault().namespace("kube-system"), 1),
        (fault().name("a"), 2),
        (fault().name("a").name("b"), 3),
        (fault().name("a").resource("secrets"), 0),
        (fault().manager("okt"), 1),
        (fault().client("operator"), 5),
        (fault().client(""), 1),
        (fault().replica("b"), 1),
        (fault().replica(""), 5),
        (
            fault().matching(|request| request.path.contains("kube-")),
            1,
        ),
    ] {
        let words = format!("{fault:?}");
        assert_eq!(strikes(fault).await, count, "{words}");
    }
}

/// Returns which of ten gets fail.
async fn failing(fault: impl FnOnce(&ApiServer) -> Injected) -> Vec<usize> {
    let (server, maps, _) = with_a().await;
    let fault = fault(&server);
    let mut failing = Vec::new();
    for number in 1..=10 {
        if maps.get("a").await.is_err() {
            failing.push(number);
        }
    }
    assert_eq!(fault.struck(), failing.len() as u64);
    failing
}

#[tokio::test(start_paused = true)]
async fn counts_select_the_matches_that_are_struck() {
    let fault = Fault::unavailable;
    assert_eq!(failing(|s| s.inject(fault().times(2))).await, [1, 2]);
    assert_eq!(failing(|s| s.inject(fault().skip(8))).await, [9, 10]);
    assert_eq!(
        failing(|s| s.inject(fault().skip(3).times(2))).await,
        [4, 5]
    );
    assert_eq!(failing(|s| s.inject(fault().nth(7))).await, [7]);
    assert_eq!(failing(|s| s.inject(fault().every(3))).await, [3, 6, 9]);
}

#[tokio::test(start_paused = true)]
async fn an_ended_fault_strikes_nothing() {
    let (server, maps, _) = with_a().await;
    let outage = server.inject(Fault::unavailable());
    maps.get("a").await.unwrap_err();
    outage.end();
    maps.get("a").await.unwrap();
    assert_eq!(outage.struck(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_test_can_wait_for_a_strike() {
    let server = ApiServer::new();
    let cut = server.inject(Fault::no_answer().after_commit().on(Verb::Create).nth(2));
    let maps_of_operator = maps(server.client());
    let operator = tokio::spawn(async move {
        for name in ["a", "b", "c"] {
            create(&maps_of_operator, name).await.unwrap();
        }
    });
    cut.struck_at_least(1).await;
    operator.abort();
    let there = maps(server.client())
        .list(&ListParams::default())
        .await
        .unwrap();
    assert_eq!(there.items.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_creation_has_the_name_in_its_body() {
    let (server, maps) = empty();
    server.inject(Fault::conflict().name("b"));
    create(&maps, "a").await.unwrap();
    create(&maps, "b").await.unwrap_err();
}

#[test]
fn misuse_panics_with_a_clear_message() {
    fn panic_of(misuse: impl FnOnce()) -> String {
        let panic = catch_unwind(AssertUnwindSafe(misuse)).expect_err("it is misuse");
        let text = panic.downcast_ref::<String>().cloned();
        text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
            .expect("a text")
    }
    assert_eq!(
        panic_of(|| drop(Chaos::none(1).with(2.0, Fault::conflict()))),
        "the rate of a fault is between 0 and 1 (e.g. 0.05 for one in twenty), not 2"
    );
    assert_eq!(
        panic_of(|| drop(
            Chaos::none(1)
                .with(0.75, Fault::conflict())
                .with(0.5, Fault::timeout())
        )),
        "the rates of faults for requests come to 1.25, which is more than 1"
    );
    let inject = |fault: Fault| panic_of(|| drop(ApiServer::new().inject(fault)));
    assert_eq!(
        inject(Fault::conflict().nth(0)),
        "`nth` counts from 1: there is no match of number 0"
    );
    assert_eq!(
        inject(Fault::conflict().every(0)),
        "`every` counts from 1: every(1) strikes all matches"
    );
    assert_eq!(
        inject(Fault::answer(200, "OK", "fine")),
        "an answer needs a `code` between 400 and 599"
    );
    let bookmarks = Fault::withhold_bookmarks().event(EventKind::Modified);
    assert_eq!(
        panic_of(|| drop(ApiServer::new().inject(bookmarks))),
        "a fault of bookmarks has no other `event`"
    );
    for name in ["ConfigMap", "", "a/b/c", "config maps"] {
        let expected = "a resource is named by its plural (e.g. databases, databases.demo.okt.dev/status), not by ";
        let expected = format!("{expected}{name:?}");
        assert_eq!(
            panic_of(|| drop(Fault::conflict().resource(name))),
            expected
        );
        assert_eq!(panic_of(|| drop(Chaos::none(1).resource(name))), expected);
    }
    assert_eq!(
        panic_of(|| drop(ApiServer::new().versions().course("data"))),
        "a field is named by a JSON pointer (e.g. /status/phase), not by \"data\""
    );
}

#[tokio::test(start_paused = true)]
async fn a_named_client_is_the_manager_of_what_it_writes() {
    let server = ApiServer::new();
    let maps = maps(server.client_named("operator"));
    let mut full = map("a");
    // An empty map has no owned fields, and then there are no managed fields.
    full.data = Some([("y".to_owned(), "0".to_owned())].into());
    maps.create(&PostParams::default(), &full).await.unwrap();
    let written = set(&maps, "a", "1").await.unwrap();
    let managers = written.metadata.managed_fields.unwrap();
    assert!(
        managers
            .iter()
            .all(|entry| entry.manager.as_deref() == Some("operator"))
    );
}

#[tokio::test(start_paused = true)]
async fn a_creation_has_its_name_without_a_fault_too() {
    let (server, maps, _) = with_a().await;
    create(&maps, "a").await.unwrap_err();
    let names: Vec<_> = server.requests().into_iter().map(|r| r.name).collect();
    assert_eq!(names, [Some("a".to_owned()), Some("a".to_owned())]);
}

#[tokio::test(start_paused = true)]
async fn nth_strikes_nothing_if_another_fault_strikes_that_match() {
    let (server, maps) = empty();
    server.inject(Fault::unavailable().on(Verb::Create).nth(1));
    let second = server.inject(Fault::conflict().on(Verb::Create).nth(1));
    create(&maps, "a").await.unwrap_err();
    create(&maps, "b").await.unwrap();
    assert_eq!(second.struck(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_strike_after_the_commit_counts_when_the_write_is_done() {
    let server = ApiServer::new();
    server.inject(Fault::delay(Duration::from_secs(5)));
    let late = server.inject(Fault::delay(Duration::from_secs(5)).after_commit());
    let cut = server.inject(Fault::timeout().after_commit());
    let writer = maps(server.client());
    let before = Instant::now();
    let writing = tokio::spawn(async move { create(&writer, "a").await });
    late.struck_at_least(1).await;
    assert_eq!(before.elapsed(), Duration::from_secs(5));
    assert_eq!(server.versions().resource("configmaps").len(), 1);
    assert_eq!(cut.struck(), 0);
    cut.struck_at_least(1).await;
    assert_eq!(before.elapsed(), Duration::from_secs(10));
    writing.await.unwrap().unwrap_err();
    assert_eq!(
        server.requests()[0].faults,
        [
            "a delay of 5s",
            "a delay of 5s after the commit",
            "504 Timeout after the commit"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_request_that_the_client_gave_up_is_not_struck() {
    let server = ApiServer::new();
    server.inject(Fault::delay(Duration::from_secs(5)));
    let cut = server.inject(Fault::timeout().after_commit());
    let maps = maps(server.client());
    let asking = create(&maps, "a");
    assert!(timeout(Duration::from_secs(1), asking).await.is_err());
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!((cut.struck(), cut.matched()), (0, 1));
    assert_eq!(server.strikes().len(), 1, "the delay");
    assert_eq!(server.requests()[0].faults, ["a delay of 5s"]);
}

#[tokio::test]
async fn a_predicate_may_use_the_server() {
    let server = Arc::new(ApiServer::new());
    let asked = Arc::downgrade(&server);
    let fault = Fault::unavailable().matching(move |_| {
        let server = asked.upgrade().expect("the test holds it");
        server.inject(Fault::conflict().times(0));
        server.strikes().is_empty()
    });
    server.inject(fault);
    let maps = maps(server.client());
    let answered = tokio::task::spawn_blocking({
        let runtime = tokio::runtime::Handle::current();
        move || runtime.block_on(create(&maps, "a"))
    });
    let answered = timeout(Duration::from_mins(10), answered).await;
    answered.expect("no deadlock").unwrap().unwrap_err();
}
