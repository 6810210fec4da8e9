//! Watches: by metadata alone, with selectors, of dynamic kinds, and from other sources.

use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service, ServiceAccount};
use kube::runtime::reflector::ObjectRef;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Resource, ResourceExt};
use okt::{Declared, Operator, Resources};
use okt_testing::{ApiServer, Verb};
use okt_tests::{OPERATOR, Objects, Rig, StallState::*, Stalls, jobs};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::map;

type Stall = Rig<Stalls>;

async fn open(resources: Resources) -> Stall {
    let rig = Stall::without_operator_of().await;
    rig.app.declare(resources);
    rig.start();
    rig.create_ready("stall", Open).await;
    rig.pass(Duration::from_secs(1)).await;
    rig
}

async fn make<T>(rig: &Stall, object: Value)
where
    T: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
        + DeserializeOwned
        + serde::Serialize
        + Clone
        + std::fmt::Debug,
{
    let api = rig.of::<T>();
    api.make(object).await;
    rig.pass(Duration::from_secs(1)).await;
}

fn job(name: &str) -> Declared {
    Declared::dynamic(json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": { "name": name },
        "spec": { "template": { "spec": {
            "restartPolicy": "Never",
            "containers": [{ "name": "a", "image": "a" }],
        } } },
    }))
}

#[tokio::test(start_paused = true)]
async fn a_resource_watched_by_metadata_is_written_once_repaired_and_deleted() {
    let rig = open(Resources::new().apply(map("a", "x")).apply(map("b", "x"))).await;
    let maps = rig.of::<ConfigMap>();
    rig.wire.clear();
    rig.restart().await;
    rig.pass(Duration::from_mins(10)).await;
    assert_eq!(rig.wire.writes(), [""; 0]);
    maps.edit("a", json!({ "data": { "text": "spoilt" } }))
        .await;
    rig.pass(Duration::from_secs(5)).await;
    let map = maps.read("a").await;
    assert_eq!(map.data.expect("data")["text"], "x");
    rig.app
        .declare(Resources::new().apply(super::map("a", "y")));
    rig.request("stall");
    rig.pass(Duration::from_mins(1)).await;
    assert!(!maps.has("b").await);
    let map = maps.read("a").await;
    assert_eq!(map.data.expect("data")["text"], "y");
    assert_eq!(rig.shows("stall", "Ready").await, "True Open");
}

#[tokio::test(start_paused = true)]
async fn a_resource_watched_by_metadata_cannot_be_waited_for() {
    let rig = Stall::without_operator_of().await;
    rig.app.declare(Resources::new().apply_ready(map("a", "x")));
    rig.start();
    rig.create("stall", json!({})).await;
    let stalled = rig.until_reason("stall", "Stalled", "BadResource").await;
    let message = "ConfigMap a has to be ready, of which only the metadata is watched: declare its kind with `owns`";
    assert!(stalled.message.starts_with(message), "{}", stalled.message);
}

#[tokio::test(start_paused = true)]
async fn only_objects_that_match_the_selector_can_be_referred_to() {
    let rig = open(Resources::new()).await;
    make::<Secret>(&rig, json!({ "metadata": { "name": "permit" } })).await;
    rig.request("stall");
    rig.pass(Duration::from_secs(1)).await;
    assert!(!rig.app.seen().permit);
    let secrets = rig.of::<Secret>();
    secrets
        .edit(
            "permit",
            json!({ "metadata": { "labels": { "demo.okt.dev/permit": "" } } }),
        )
        .await;
    rig.pass(Duration::from_secs(1)).await;
    assert!(
        rig.app.seen().permit,
        "the change triggers a reconciliation"
    );
}

#[tokio::test(start_paused = true)]
async fn a_change_of_an_object_that_concerns_another_reconciles_the_other() {
    let rig = open(Resources::new()).await;
    let before = rig.app.seen().observations;
    let labels = json!({ "demo.okt.dev/stall": "stall" });
    make::<ServiceAccount>(&rig, json!({ "metadata": { "name": "other" } })).await;
    assert_eq!(rig.app.seen().observations, before, "it has no such label");
    let account = json!({ "metadata": { "name": "one", "labels": labels } });
    make::<ServiceAccount>(&rig, account).await;
    assert_eq!(rig.app.seen().observations, before + 1);
    let accounts = rig.of::<ServiceAccount>();
    let gone = accounts
        .delete("one", &kube::api::DeleteParams::default())
        .await;
    gone.expect("it is deleted");
    rig.pass(Duration::from_secs(1)).await;
    assert_eq!(rig.app.seen().observations, before + 2);
}

#[tokio::test(start_paused = true)]
async fn dynamic_kinds_are_owned_referred_to_and_kept_like_others() {
    let rig = open(Resources::new().with(job("a")).with(job("b"))).await;
    make::<Service>(
        &rig,
        json!({ "metadata": { "name": "plan" }, "spec": { "ports": [{ "port": 80 }] } }),
    )
    .await;
    assert_eq!(rig.app.seen().jobs, ["Job/a", "Job/b"]);
    assert!(rig.app.seen().plan);
    rig.app.declare(Resources::new().keep_dynamic(&jobs(), "a"));
    rig.request("stall");
    rig.pass(Duration::from_mins(1)).await;
    let jobs = rig.of::<Job>();
    assert!(jobs.has("a").await);
    assert!(!jobs.has("b").await);
}

#[tokio::test(start_paused = true)]
async fn a_settled_object_causes_no_requests_but_its_watches() {
    let rig = open(Resources::new().apply(map("a", "x")).with(job("a"))).await;
    let mark = rig.server.mark();
    rig.pass(Duration::from_mins(4)).await;
    let asked = rig.server.requests_since(mark).into_iter();
    let asked: Vec<_> = asked
        .filter(|it| it.client == OPERATOR && it.verb != Verb::Watch)
        .collect();
    assert!(asked.is_empty(), "{asked:#?}");
}

#[tokio::test(start_paused = true)]
async fn each_of_several_streams_requests_reconciliations() {
    let rig = Stall::without_operator_of().await;
    let elsewhere = ApiServer::new();
    let maps: Api<ConfigMap> = Api::namespaced(elsewhere.client(), "default");
    let touched = watcher(maps.clone(), watcher::Config::default())
        .default_backoff()
        .touched_objects();
    let named = touched.filter_map(async |map| {
        let map = map.ok()?;
        Some(ObjectRef::new(&map.name_any()).within("default"))
    });
    let (request, requests) = futures::channel::mpsc::unbounded();
    let operator = Operator::new(rig.client.clone(), rig.app.clone())
        .virtual_time()
        .reconcile_on(named)
        .reconcile_on(requests);
    let running = tokio::spawn(operator.run(std::future::pending()));
    rig.create_ready("stall", Open).await;
    rig.pass(Duration::from_secs(1)).await;
    let before = rig.app.seen().observations;
    maps.make(json!(&map("stall", "x"))).await;
    rig.pass(Duration::from_secs(1)).await;
    assert_eq!(
        rig.app.seen().observations,
        before + 1,
        "from another cluster"
    );
    let stall = ObjectRef::new("stall").within("default");
    request.unbounded_send(stall).expect("the operator runs");
    rig.pass(Duration::from_secs(1)).await;
    assert_eq!(rig.app.seen().observations, before + 2, "from a channel");
    running.abort();
}
