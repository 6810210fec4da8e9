//! Claims: an object in a namespace gets a cluster-scoped object.

use std::panic::{AssertUnwindSafe, resume_unwind};

use futures::FutureExt;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, CustomResourceExt, Resource, ResourceExt};
use okt::{FINALIZER, OWNER_LABEL, Operator, PAUSED_ANNOTATION};
use okt_examples::claims::{Zone, ZoneClaim, ZoneClaims, ZoneSpec, zone_of};
use okt_testing::Kubernetes;
use serde_json::json;

use crate::land::{Land, ZONE, claim};

#[tokio::test(start_paused = true)]
async fn a_claim_is_given_a_zone_and_ready_when_that_is() {
    let land = Land::new().await;
    let claim = land.claims(json!({})).await;
    let unseen =
        "False WaitingForResources: Zone team-a.shop: its controller has not observed it yet";
    land.until(unseen).await;
    assert_eq!(land.shows("Bound").await, unseen);
    let zone = land.zone().await.expect("there is a zone");
    assert_eq!(zone.spec.domain, "shop.example.com");
    assert_eq!(zone.labels()[OWNER_LABEL], claim.uid().expect("a uid"));
    assert!(zone.owner_references().is_empty());
    // The claim gets its finalizer and its status before the zone is created.
    let writes = land.requests();
    let writes: Vec<_> = (writes.iter().filter(|it| it.client == "operator"))
        .filter(|it| it.is_write())
        .map(|it| it.resource.as_str())
        .collect();
    assert_eq!(writes[..3], ["zoneclaims", "zoneclaims", "zones"]);
    let claim = land.claim().await.expect("it is there");
    assert_eq!(claim.finalizers(), [FINALIZER]);

    let ready = |status: &str| json!({ "type": "Ready", "status": status, "reason": "Served" });
    land.until_zone(ready("True"), 0).await;
    land.until("True Complete").await;
    assert_eq!(
        land.shows("Bound").await,
        "True Bind: the zone team-a.shop is ready"
    );
    let status = land.claim().await.and_then(|claim| claim.status);
    assert_eq!(status.expect("a status").extra.zone.as_deref(), Some(ZONE));
    land.rests().await;

    land.until_zone(ready("False"), 0).await;
    land.until("False WaitingForResources: Zone team-a.shop: Served")
        .await;
    let stalled = json!({ "type": "Stalled", "status": "True", "reason": "DomainTaken" });
    land.until_zone(stalled, 0).await;
    land.until("False ResourceNotReady: Zone team-a.shop: DomainTaken")
        .await;
    assert!(
        land.shows("Stalled")
            .await
            .starts_with("True ResourceNotReady")
    );
    land.until_zone(ready("True"), 0).await;
    land.until("True Complete").await;
}

#[tokio::test(start_paused = true)]
async fn a_deleted_zone_is_created_again_and_a_change_reaches_it() {
    let land = Land::bound().await;
    let before = land.zone().await.expect("there is a zone").uid();
    let deleted = land.zones.delete(ZONE, &DeleteParams::default()).await;
    deleted.expect("a deletion");
    let again = async || land.zone().await.is_some_and(|zone| zone.uid() != before);
    land.until_so("there is another zone", again).await;
    let change = Patch::Merge(json!({ "spec": { "domain": "shop.example.org" } }));
    let params = PatchParams::default();
    let changed = land.claims.patch("shop", &params, &change).await;
    changed.expect("accepted");
    let so = async || {
        let zone = land.zone().await;
        zone.is_some_and(|zone| zone.spec.domain == "shop.example.org")
    };
    land.until_so("the zone has the other domain", so).await;
}

#[tokio::test(start_paused = true)]
async fn the_zone_goes_before_its_claim_and_is_waited_for() {
    let land = Land::bound().await;
    goes_after_its_zone(&land).await;
}

#[tokio::test]
#[ignore = "needs a real API server; run with --include-ignored"]
async fn a_claim_is_bound_and_goes_on_a_real_api_server_that_collects_garbage() {
    let started = Kubernetes::start_or_skip("a claim on a real API server").await;
    let Some(kubernetes) = started.expect("a server") else {
        return;
    };
    let client = kubernetes.client();
    let operator = Operator::new(client.clone(), ZoneClaims);
    let story = async {
        let land = Land::of(client.clone(), operator).await;
        land.is_bound().await;
        land.rests().await;
        goes_after_its_zone(&land).await;
    };
    let ended = AssertUnwindSafe(story).catch_unwind().await;
    for name in [ZoneClaim::crd_name(), Zone::crd_name()] {
        let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
        // It may not exist.
        let _ = crds.delete(name, &DeleteParams::default()).await;
    }
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let _ = namespaces.delete("team-a", &DeleteParams::default()).await;
    kubernetes.stop().await;
    if let Err(panic) = ended {
        resume_unwind(panic);
    }
}

async fn goes_after_its_zone(land: &Land) {
    // An object that the operator of zones made for the zone and does not release yet.
    let zone = land.zone().await.expect("there is a zone");
    let mut owner = zone.controller_owner_ref(&()).expect("it can own");
    owner.block_owner_deletion = Some(true);
    let mut records = ConfigMap::default();
    records.metadata.name = Some("records".to_owned());
    records.metadata.owner_references = Some(vec![owner]);
    records.metadata.finalizers = Some(vec!["zones.example.com/hold".to_owned()]);
    let maps: Api<ConfigMap> = Api::namespaced(land.client.clone(), "team-a");
    let made = maps.create(&PostParams::default(), &records).await;
    made.expect("accepted");
    land.delete().await;
    land.until("False WaitingForResources: Zone team-a.shop is not gone yet")
        .await;
    land.rests().await;
    let zone = land.zone().await.expect("it is held");
    assert!(zone.metadata.deletion_timestamp.is_some());
    let free = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    let freed = maps.patch("records", &PatchParams::default(), &free).await;
    freed.expect("accepted");
    land.until_gone().await;
    assert!(land.zone().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_zone_in_use_keeps_its_claim_and_is_not_touched() {
    let land = Land::bound().await;
    let ready = json!({ "type": "Ready", "status": "True", "reason": "Complete" });
    land.until_zone(ready.clone(), 7).await;
    land.rests().await;
    let before = land.zone().await;
    land.delete().await;
    land.until("False InUse: the zone team-a.shop still has records")
        .await;
    assert!(land.shows("Released").await.starts_with("False InUse"));
    land.rests().await;
    assert_eq!(
        land.zone().await.map(|zone| zone.metadata),
        before.map(|zone| zone.metadata)
    );
    land.until_zone(ready, 0).await;
    land.until_gone().await;
    assert!(land.zone().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_zone_of_another_owner_is_not_taken_over_and_outlives_the_claim() {
    let land = Land::new().await;
    let domain = "theirs.example.com".to_owned();
    let theirs = Zone::new(ZONE, ZoneSpec { domain });
    let made = land.zones.create(&PostParams::default(), &theirs).await;
    made.expect("accepted");
    let before = land.zone().await;
    land.claims(json!({})).await;
    land.until("False NotOwned: Zone team-a.shop exists and was not made for this object")
        .await;
    assert!(land.shows("Bound").await.starts_with("False NotOwned"));
    land.delete().await;
    land.until_gone().await;
    let metadata = |zone: Option<Zone>| zone.map(|zone| zone.metadata);
    assert_eq!(metadata(land.zone().await), metadata(before));
}

#[tokio::test(start_paused = true)]
async fn a_paused_claim_is_not_bound_and_can_be_deleted() {
    let land = Land::new().await;
    land.claims(json!({ PAUSED_ANNOTATION: "true" })).await;
    let paused = async || land.shows("Paused").await.starts_with("True");
    land.until_so("it is paused", paused).await;
    land.rests().await;
    assert!(land.zone().await.is_none());
    land.delete().await;
    land.until_gone().await;
    let requests = land.requests();
    assert!(
        !requests
            .iter()
            .any(|it| it.resource == "zones" && it.is_write())
    );
}

/// A pause does not block a deletion, which cannot be taken back; the step `Release` blocks it where needed.
#[tokio::test(start_paused = true)]
async fn a_paused_claim_that_is_deleted_is_kept_only_while_its_zone_is_in_use() {
    let land = Land::bound().await;
    let ready = json!({ "type": "Ready", "status": "True", "reason": "Complete" });
    land.until_zone(ready.clone(), 1).await;
    let pause = json!({ "metadata": { "annotations": { PAUSED_ANNOTATION: "true" } } });
    let params = PatchParams::default();
    let pause = Patch::Merge(pause);
    let paused = land.claims.patch("shop", &params, &pause).await;
    paused.expect("accepted");
    land.delete().await;
    land.until("False InUse").await;
    land.until_zone(ready, 0).await;
    land.until_gone().await;
    assert!(land.zone().await.is_none());
}

#[test]
fn no_two_claims_have_zones_of_one_name() {
    let of = |namespace: &str, name: &str| zone_of(&claim(namespace, name));
    assert_eq!(of("team-a", "shop"), ZONE);
    // With another separator these names would be the same.
    assert_ne!(of("a-b", "c"), of("a", "b-c"));
    assert_ne!(of("a", "b.c"), of("a", "b-c"));
    let namespace = "n".repeat(63);
    let long = ["a".repeat(253), "a".repeat(252) + "b", "a".repeat(190)];
    let mut names: Vec<_> = long.iter().map(|name| of(&namespace, name)).collect();
    names.push(of(&namespace, &"a".repeat(189)));
    for name in &names {
        assert!(name.len() <= 253, "{name}");
        assert!(name.starts_with(&namespace), "{name}");
    }
    // One more character would be too long.
    assert!(names[3].contains('.'));
    assert!(names[..3].iter().all(|name| !name.contains('.')));
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 4);
}
