//! Objects that are deleted and created again, because a field of them cannot change or because they failed.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::Job;
use kube::Api;
use kube::api::PropagationPolicy;
use okt::{Declared, Resources};
use okt_tests::{Objects, Rig, ShopState::Open, WebApps};
use serde_json::json;

use super::{Shop, deployment, of, open, redeclare};

/// A Deployment whose selector, which cannot change, is this label.
fn selecting(label: &str) -> Deployment {
    let mut all = serde_json::to_value(deployment("web")).expect("JSON");
    all["spec"]["selector"]["matchLabels"] = json!({ "app": label });
    all["spec"]["template"]["metadata"]["labels"] = json!({ "app": label });
    of(all)
}

fn deployments(rig: &Shop) -> Api<Deployment> {
    rig.of()
}

async fn uid(rig: &Shop) -> String {
    let web = deployments(rig).read("web").await;
    web.metadata.uid.expect("a uid")
}

async fn fail(rig: &Shop) {
    let failed = json!({ "conditions": [{
        "type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "too slow",
    }] });
    deployments(rig).edit_status("web", failed).await;
}

#[tokio::test(start_paused = true)]
async fn a_field_that_cannot_change_stalls_the_object_or_replaces_the_resource_if_declared() {
    let rig = open(Resources::new().apply(selecting("a"))).await;
    let old = uid(&rig).await;
    redeclare(&rig, Resources::new().apply(selecting("b")));
    rig.until_message("shop", "Stalled", "ResourceImmutable", "field is immutable")
        .await;
    assert_eq!(uid(&rig).await, old);

    let declared = Declared::of(selecting("b")).recreate();
    rig.app.declare(Resources::new().with(declared));
    rig.patch("shop", json!({ "spec": { "key": "another" } }))
        .await;
    rig.pass(Duration::from_mins(1)).await;
    assert_ne!(uid(&rig).await, old);
    let web = deployments(&rig).read("web").await;
    let labels = web.spec.selector.match_labels;
    assert_eq!(labels, Some([("app".to_owned(), "b".to_owned())].into()));
    rig.until_ready("shop", Open).await;
}

#[tokio::test(start_paused = true)]
async fn a_failed_resource_is_replaced_if_declared_and_ever_more_slowly() {
    let rig = open(Resources::new().with(Declared::of(deployment("web")).recreate())).await;
    rig.pass(Duration::from_mins(1)).await;
    let mut uids = vec![uid(&rig).await];
    let mut shown = Vec::new();
    for _ in 0..600 {
        let seen = deployments(&rig).get_opt("web").await.expect("a read");
        if let Some(seen) = seen.filter(|it| it.metadata.deletion_timestamp.is_none()) {
            let now = seen.metadata.uid.expect("a uid");
            if uids.last() != Some(&now) {
                uids.push(now);
            }
            fail(&rig).await;
        }
        shown.push(rig.shows("shop", "Ready").await);
        rig.pass(Duration::from_secs(1)).await;
    }
    assert!((4..=12).contains(&uids.len()), "{} in 10 min", uids.len());
    assert!(
        shown.contains(&"False ResourceNotReady".to_owned()),
        "{shown:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_failed_resource_stays_without_that_declaration() {
    let rig = open(Resources::new().apply(deployment("web"))).await;
    let old = uid(&rig).await;
    fail(&rig).await;
    rig.pass(Duration::from_mins(10)).await;
    assert_eq!(uid(&rig).await, old);
}

#[tokio::test(start_paused = true)]
async fn a_job_whose_template_changed_is_replaced_without_a_declaration() {
    let rig = Rig::<WebApps>::of().await;
    let jobs = rig.of::<Job>();
    rig.create_with("shop", json!({ "version": "1" })).await;
    rig.pass(Duration::from_secs(5)).await;
    let old = jobs.read("schema").await;
    rig.patch("shop", json!({ "spec": { "version": "2" } }))
        .await;
    rig.pass(Duration::from_mins(1)).await;
    let new = jobs.read("schema").await;
    assert_ne!(new.metadata.uid, old.metadata.uid);
    let template = new.spec.expect("a spec").template;
    let pod = template.spec.expect("a spec");
    assert_eq!(pod.containers[0].image.as_deref(), Some("web:2"));
    assert_eq!(rig.shows("shop", "Stalled").await, "");
}

/// Makes a map that the deployment owns, as its Pods are.
async fn depend(rig: &Shop) {
    let owner = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": uid(rig).await });
    let dependent = json!({ "metadata": { "name": "pod", "ownerReferences": [owner] } });
    rig.of::<ConfigMap>().make(dependent).await;
}

async fn stays(rig: &Shop) -> bool {
    rig.of::<ConfigMap>().has("pod").await
}

#[tokio::test(start_paused = true)]
async fn what_depends_on_an_object_that_okt_deletes_goes_or_stays_as_declared() {
    for policy in [
        None,
        Some(PropagationPolicy::Background),
        Some(PropagationPolicy::Orphan),
    ] {
        let orphans = policy == Some(PropagationPolicy::Orphan);
        let declared = |label: &str| {
            let declared = Declared::of(selecting(label)).recreate();
            match policy.clone() {
                Some(policy) => declared.propagation(policy),
                None => declared,
            }
        };
        // Created again by its new declaration, although the object has no policy on record yet.
        let rig = open(Resources::new().with(Declared::of(selecting("a")).recreate())).await;
        depend(&rig).await;
        let old = uid(&rig).await;
        rig.app.declare(Resources::new().with(declared("b")));
        rig.patch("shop", json!({ "spec": { "key": "another" } }))
            .await;
        rig.until_ready("shop", Open).await;
        assert_ne!(uid(&rig).await, old);
        assert_eq!(stays(&rig).await, orphans, "{policy:?}");
        // And pruned, by the policy on record.
        if !orphans {
            depend(&rig).await;
        }
        redeclare(&rig, Resources::new());
        rig.pass(Duration::from_mins(2)).await;
        assert!(!deployments(&rig).has("web").await);
        assert_eq!(stays(&rig).await, orphans, "{policy:?}");
    }
}
