//! What a status records: objects that somebody else has changed, that a later release does not declare, that have
//! finished, or that are kept while nobody can say so.

use std::marker::PhantomData;
use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PropagationPolicy};
use kube::runtime::reflector::ObjectRef;
use kube::{Api, ResourceExt};
use okt::{Declared, Failure, Operator, Resources, Watches};
use okt_testing::Fault;
use okt_tests::{OPERATOR, Objects, Rig, ShopState::Open, assert_contains};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::release::{Owns, Release};
use super::{Shop, map, of, open, redeclare};

/// Returns a map in another namespace, which has no owner reference.
fn elsewhere(name: &str) -> Declared {
    let mut map = map(name, "x");
    map.metadata.namespace = Some("elsewhere".to_owned());
    Declared::of(map).unowned()
}

fn maps_elsewhere(rig: &Shop) -> Api<ConfigMap> {
    Api::namespaced(rig.client.clone(), "elsewhere")
}

/// Creates a shop with these resources, and a namespace for some of them, and waits until it is open.
async fn open_with_another_namespace(resources: Resources) -> Shop {
    let rig = Shop::without_operator_of().await;
    rig.create_namespace("elsewhere").await;
    rig.app.declare(resources);
    rig.start();
    rig.create_ready("shop", Open).await;
    rig
}

/// The ways in which somebody who may write an object hides whose it is.
fn disguises() -> Vec<(&'static str, Value)> {
    let labels = json!({ "okt.dev/owner": null, "okt.dev/owner-kind": null });
    let all = json!({ "metadata": {
        "labels": { "okt.dev/owner": null, "okt.dev/owner-kind": null, "okt.dev/owner-hash": null },
        "annotations": { "okt.dev/owner-name": null, "okt.dev/applied": null, "okt.dev/unowned": null },
        "managedFields": [{}],
    } });
    vec![
        (
            "the label of its kind is gone",
            json!({ "metadata": { "labels": { "okt.dev/owner-kind": null } } }),
        ),
        (
            "its labels are gone",
            json!({ "metadata": { "labels": labels } }),
        ),
        (
            "another owner",
            json!({ "metadata": { "labels": { "okt.dev/owner": "another" } } }),
        ),
        (
            "its mark of no owner is gone",
            json!({ "metadata": { "annotations": { "okt.dev/unowned": null } } }),
        ),
        (
            "another name of its owner",
            json!({ "metadata": { "annotations": { "okt.dev/owner-name": "a/b" } } }),
        ),
        (
            "no managed fields",
            json!({ "metadata": { "managedFields": [{}] } }),
        ),
        ("nothing is left of it", all),
    ]
}

#[tokio::test(start_paused = true)]
async fn an_unowned_resource_goes_with_its_owner_however_somebody_else_disguises_it() {
    for (disguise, patch) in disguises() {
        let rig = open_with_another_namespace(Resources::new().with(elsewhere("a"))).await;
        rig.pass(Duration::from_mins(5)).await;
        rig.stop().await;
        let maps = maps_elsewhere(&rig);
        maps.edit("a", patch).await;
        rig.delete("shop").await;
        rig.start();
        rig.until_gone("shop").await;
        rig.pass(Duration::from_secs(1)).await;
        assert!(!maps.has("a").await, "{disguise}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_disguised_resource_is_repaired_and_goes_when_it_is_no_longer_declared() {
    for (disguise, patch) in disguises() {
        let rig = open_with_another_namespace(Resources::new().with(elsewhere("a"))).await;
        let maps = maps_elsewhere(&rig);
        let patch = Patch::Merge(patch);
        let params = PatchParams::default();
        maps.patch("a", &params, &patch)
            .await
            .expect("it is accepted");
        rig.pass(Duration::from_mins(10)).await;
        let there = maps.read("a").await;
        let uid = rig.object("shop").await.metadata.uid;
        assert_eq!(
            there.labels().get("okt.dev/owner"),
            uid.as_ref(),
            "{disguise}"
        );
        maps.patch("a", &params, &patch)
            .await
            .expect("it is accepted");
        redeclare(&rig, Resources::new());
        rig.pass(Duration::from_mins(10)).await;
        assert!(!maps.has("a").await, "{disguise}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_that_took_the_name_of_a_recorded_one_stays() {
    let rig = open_with_another_namespace(Resources::new().with(elsewhere("a"))).await;
    rig.stop().await;
    let maps = maps_elsewhere(&rig);
    maps.remove("a").await;
    let theirs: ConfigMap =
        of(json!({ "metadata": { "name": "a" }, "data": { "text": "theirs" } }));
    maps.make(json!(&theirs)).await;
    rig.delete("shop").await;
    rig.start();
    rig.until_gone("shop").await;
    rig.pass(Duration::from_secs(1)).await;
    assert!(maps.has("a").await);
}

/// Jobs alone.
struct Fewer;

impl Owns for Fewer {
    fn watches(watches: Watches<okt_tests::Shop>) -> Watches<okt_tests::Shop> {
        watches.owns::<Job>()
    }
}

/// Starts a release that declares nothing, and no kind but Jobs.
fn start_with_fewer_kinds(rig: &Shop) -> JoinHandle<Result<(), okt::OperatorError>> {
    rig.app.declare(Resources::new());
    let release = Release(rig.app.clone(), PhantomData::<Fewer>);
    let operator = Operator::new(rig.server.client_named(OPERATOR), release);
    tokio::spawn(operator.virtual_time().run(std::future::pending()))
}

#[tokio::test(start_paused = true)]
async fn resources_of_kinds_that_a_release_no_longer_declares_go() {
    for deletes in [false, true] {
        let owned = Resources::new().with(elsewhere("a")).apply(map("b", "x"));
        let rig = open_with_another_namespace(owned).await;
        rig.stop().await;
        if deletes {
            rig.delete("shop").await;
        }
        let operator = start_with_fewer_kinds(&rig);
        if deletes {
            rig.until_gone("shop").await;
        } else {
            rig.pass(Duration::from_mins(10)).await;
            rig.until_ready("shop", Open).await;
            assert_eq!(rig.text("b").await, None);
        }
        let left = maps_elsewhere(&rig).get_opt("a").await;
        assert!(left.expect("a read").is_none(), "deletes: {deletes}");
        operator.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_asked_about_kinds_of_which_nothing_was_left_and_data_stay() {
    let secret: Secret = of(json!({ "metadata": { "name": "data" } }));
    let rig = open(Resources::new().apply(map("b", "x")).apply(secret)).await;
    redeclare(&rig, Resources::new());
    rig.pass(Duration::from_mins(5)).await;
    assert_eq!(rig.text("b").await, None);
    rig.stop().await;
    let refused = |kind: &str| rig.inject(Fault::forbidden().resource(kind));
    let _faults = [refused("configmaps"), refused("secrets")];
    let operator = start_with_fewer_kinds(&rig);
    rig.pass(Duration::from_mins(10)).await;
    rig.until_ready("shop", Open).await;
    rig.delete_until_gone("shop").await;
    operator.abort();
}

#[tokio::test(start_paused = true)]
async fn an_operator_that_may_not_reach_a_former_kind_says_so_and_goes_on_when_it_may() {
    let rig = open_with_another_namespace(Resources::new().with(elsewhere("a"))).await;
    rig.stop().await;
    let fault = rig.inject(Fault::forbidden().resource("configmaps"));
    rig.delete("shop").await;
    let operator = start_with_fewer_kinds(&rig);
    let ready = rig.until_reason("shop", "Ready", "ResourceForbidden").await;
    let message = "an earlier release owned this kind: declare it with `owns`";
    assert_contains(&ready.message, message);
    fault.end();
    rig.until_gone("shop").await;
    operator.abort();
}

fn job(text: &str) -> Job {
    of(json!({
        "metadata": { "name": "migration" },
        "spec": { "template": { "spec": {
            "containers": [{ "name": "migration", "image": text }],
            "restartPolicy": "Never",
        } } },
    }))
}

/// Shops whose release owns Jobs.
type JobShop = Rig<Release<Fewer>>;

async fn open_with_jobs(resources: Resources) -> JobShop {
    let rig = JobShop::without_operator_of().await;
    rig.app.0.declare(resources);
    rig.start();
    rig.create_ready("shop", Open).await;
    rig
}

fn jobs(rig: &JobShop) -> Api<Job> {
    Api::namespaced(rig.client.clone(), "default")
}

async fn migration(rig: &JobShop) -> Option<String> {
    let job = jobs(rig).get_opt("migration").await.expect("a read");
    job.and_then(|job| job.uid())
}

/// Ends the job as the controller of Jobs does: the reason comes first, then the end.
async fn ends(rig: &JobShop, end: &str) {
    let time = "2026-11-26T00:00:00Z";
    let (reason, completion) = match end {
        "Complete" => ("SuccessCriteriaMet", Some(time)),
        _ => ("FailureTarget", None),
    };
    let conditions = [reason, end].map(|condition| {
        json!({
            "type": condition, "status": "True", "reason": "Test", "message": "a test",
            "lastProbeTime": time, "lastTransitionTime": time,
        })
    });
    let mut status = json!({ "startTime": time, "conditions": conditions });
    if let Some(time) = completion {
        status["completionTime"] = time.into();
    }
    jobs(rig).edit_status("migration", status).await;
}

/// Deletes the job at once, as its time to live does, and whoever cleans up.
async fn vanishes(rig: &JobShop) {
    jobs(rig)
        .delete("migration", &DeleteParams::background())
        .await
        .expect("it goes");
}

#[tokio::test(start_paused = true)]
async fn a_job_that_is_complete_does_not_run_again_when_it_is_gone() {
    let mut with_a_time_to_live = job("migration:1");
    with_a_time_to_live
        .spec
        .as_mut()
        .expect("a spec")
        .ttl_seconds_after_finished = Some(0);
    let declared = [
        Declared::of(with_a_time_to_live).ready(),
        Declared::of(job("migration:1")).once().ready(),
        Declared::of(job("migration:1")).once(),
    ];
    for declared in declared {
        for (is_seen, restarts) in [(true, false), (true, true), (false, false)] {
            let rig = JobShop::without_operator_of().await;
            rig.app.0.declare(Resources::new().with(declared.clone()));
            rig.start();
            rig.create("shop", json!({})).await;
            rig.pass(Duration::from_mins(1)).await;
            assert!(migration(&rig).await.is_some());
            ends(&rig, "Complete").await;
            if is_seen {
                rig.until_ready("shop", Open).await;
            }
            if restarts {
                rig.stop().await;
            }
            vanishes(&rig).await;
            if restarts {
                rig.start();
            }
            rig.pass(Duration::from_hours(1)).await;
            rig.until_ready("shop", Open).await;
            assert_eq!(
                migration(&rig).await,
                None,
                "seen: {is_seen}, restarts: {restarts}"
            );
            // Another declaration is another job.
            let other = Declared::of(job("migration:2")).once();
            rig.app.0.declare(Resources::new().with(other));
            rig.request("shop");
            rig.pass(Duration::from_mins(5)).await;
            assert!(migration(&rig).await.is_some());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_that_is_done_runs_again_in_a_later_visit() {
    for vanishes_first in [false, true] {
        let declared = Resources::new().with(Declared::of(job("migration:1")).once());
        let rig = open_with_jobs(declared.clone()).await;
        ends(&rig, "Complete").await;
        rig.pass(Duration::from_mins(1)).await;
        if vanishes_first {
            vanishes(&rig).await;
            rig.pass(Duration::from_mins(1)).await;
        }
        // The next state does not declare it.
        rig.app.0.declare(Resources::new());
        rig.request("shop");
        rig.pass(Duration::from_mins(5)).await;
        assert_eq!(migration(&rig).await, None);
        rig.app.0.declare(declared);
        rig.request("shop");
        rig.pass(Duration::from_mins(5)).await;
        assert!(migration(&rig).await.is_some(), "{vanishes_first}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_that_is_done_stays_with_the_orphans_of_its_owner() {
    let rig = open_with_jobs(Resources::new().with(Declared::of(job("migration:1")).once())).await;
    ends(&rig, "Complete").await;
    rig.pass(Duration::from_mins(1)).await;
    let params = DeleteParams {
        propagation_policy: Some(PropagationPolicy::Orphan),
        ..DeleteParams::default()
    };
    rig.api()
        .delete("shop", &params)
        .await
        .expect("it is accepted");
    rig.until_gone("shop").await;
    rig.pass(Duration::from_mins(1)).await;
    assert!(migration(&rig).await.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_job_that_has_not_finished_runs_again_when_it_is_gone() {
    let rig = open_with_jobs(Resources::new().with(Declared::of(job("migration:1")).once())).await;
    let before = migration(&rig).await;
    vanishes(&rig).await;
    rig.pass(Duration::from_mins(5)).await;
    let after = migration(&rig).await;
    assert!(after.is_some() && after != before, "{before:?} {after:?}");
}

#[tokio::test(start_paused = true)]
async fn a_job_that_has_failed_and_is_gone_is_reported_and_runs_again_where_that_is_declared() {
    let once = Declared::of(job("migration:1")).once().ready();
    let rig = JobShop::without_operator_of().await;
    rig.app.0.declare(Resources::new().with(once.clone()));
    rig.start();
    rig.create("shop", json!({})).await;
    rig.pass(Duration::from_mins(1)).await;
    ends(&rig, "Failed").await;
    rig.until_reason("shop", "Stalled", "ResourceNotReady")
        .await;
    vanishes(&rig).await;
    rig.pass(Duration::from_hours(1)).await;
    assert_eq!(migration(&rig).await, None);
    rig.until_message(
        "shop",
        "Stalled",
        "ResourceNotReady",
        "has failed and is gone",
    )
    .await;
    rig.app.0.declare(Resources::new().with(once.recreate()));
    rig.request("shop");
    rig.pass(Duration::from_mins(10)).await;
    assert!(migration(&rig).await.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_deletion_goes_on_by_the_last_declaration_when_nothing_is_declared_any_more() {
    let owned = Resources::new().with(elsewhere("a")).with(elsewhere("b"));
    for restarts in [false, true] {
        let rig = open_with_another_namespace(owned.clone()).await;
        let across = ObjectRef::<ConfigMap>::new("b").within("elsewhere");
        redeclare(
            &rig,
            Resources::new().with(elsewhere("a")).keep_across(&across),
        );
        rig.pass(Duration::from_mins(1)).await;
        if restarts {
            rig.restart().await;
        }
        let gone = Failure::retry("NoSecret", "the Secret is gone");
        rig.app.fail_to_declare(Some(gone));
        rig.delete("shop").await;
        let ready = rig.until_reason("shop", "Ready", "NoSecret").await;
        let message = "after ten minutes the deletion goes on by what was declared before";
        assert_contains(&ready.message, message);
        rig.until_gone("shop").await;
        let left = maps_elsewhere(&rig)
            .list(&ListParams::default())
            .await
            .expect("a list");
        let left: Vec<String> = left.iter().map(ResourceExt::name_any).collect();
        assert_eq!(left, ["b"], "restarts: {restarts}");
    }
}
