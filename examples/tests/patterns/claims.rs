//! Claims: an object in a namespace, and the one in no namespace that it is given.

use std::future::pending;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, Resource, ResourceExt};
use okt_examples::claims::{Zone, ZoneClaim, ZoneClaimSpec, ZoneClaims, ZoneSpec, zone_of};
use okt_runtime::{FINALIZER, OWNER_LABEL, Operator, PAUSED_ANNOTATION, crd};
use okt_testing::ApiServer;
use serde_json::{Value, json};
use tokio::time::Instant;

/// The zone of the claim that these tests make.
const ZONE: &str = "team-a.shop";

/// A cluster in which the operator of claims runs.
struct Land {
    server: ApiServer,
    claims: Api<ZoneClaim>,
    zones: Api<Zone>,
}

impl Land {
    async fn new() -> Self {
        let server = ApiServer::new();
        let user = server.client();
        define(&user).await;
        let operator = Operator::new(server.client_named("operator"), ZoneClaims).virtual_time();
        tokio::spawn(async move { operator.run(pending()).await.expect("it runs") });
        Self {
            server,
            claims: Api::namespaced(user.clone(), "team-a"),
            zones: Api::all(user),
        }
    }

    /// Creates the claim.
    async fn claims(&self, metadata: Value) -> ZoneClaim {
        let mut claim = claim("team-a", "shop");
        claim.metadata.annotations = serde_json::from_value(metadata).expect("annotations");
        let made = self.claims.create(&PostParams::default(), &claim).await;
        made.expect("accepted")
    }

    /// A claim, and its zone that is ready.
    async fn bound() -> Self {
        let land = Self::new().await;
        land.claims(json!({})).await;
        land.until("False WaitingForResources").await;
        land.zone_says(
            json!({ "type": "Ready", "status": "True", "reason": "Complete" }),
            0,
        )
        .await;
        land.until("True Complete").await;
        land
    }

    /// The operator of zones says something.
    async fn zone_says(&self, condition: Value, records: i32) {
        let zone = self.zone().await.expect("there is a zone");
        let mut condition = condition;
        condition["message"] = json!("");
        condition["lastTransitionTime"] = json!("2026-11-22T09:00:00Z");
        let status = json!({ "status": {
            "observedGeneration": zone.metadata.generation,
            "conditions": [condition],
            "records": records,
        } });
        let patch = Patch::Merge(status);
        let patched = self
            .zones
            .patch_status(ZONE, &PatchParams::default(), &patch)
            .await;
        patched.expect("accepted");
    }

    async fn zone(&self) -> Option<Zone> {
        self.zones.get_opt(ZONE).await.expect("an answer")
    }

    async fn claim(&self) -> Option<ZoneClaim> {
        self.claims.get_opt("shop").await.expect("an answer")
    }

    async fn delete(&self) {
        let deleted = self.claims.delete("shop", &DeleteParams::default()).await;
        deleted.expect("a deletion");
    }

    /// What a condition of the claim says, as `Status Reason: message`.
    async fn says(&self, condition: &str) -> String {
        let status = self.claim().await.and_then(|claim| claim.status);
        let all = status.map(|status| status.conditions).unwrap_or_default();
        let said = all.iter().find(|it| it.type_ == condition);
        said.map_or_else(String::new, |it| {
            format!("{} {}: {}", it.status, it.reason, it.message)
        })
    }

    /// Waits until the condition `Ready` of the claim says this.
    async fn until(&self, what: &str) {
        let so = async || self.says("Ready").await.starts_with(what);
        self.until_so(what, so).await;
    }

    async fn until_so(&self, what: &str, mut so: impl AsyncFnMut() -> bool) {
        let since = Instant::now();
        while !so().await {
            let claim = self.claim().await;
            let waits = since.elapsed() < Duration::from_mins(5);
            assert!(waits, "waited in vain until {what}: {claim:#?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    async fn until_gone(&self) {
        let gone = async || self.claim().await.is_none();
        self.until_so("the claim is gone", gone).await;
    }

    /// Nothing more happens, for an hour.
    async fn rests(&self) {
        tokio::time::sleep(Duration::from_secs(30)).await;
        let mark = self.server.mark();
        tokio::time::sleep(Duration::from_hours(1)).await;
        let written = self.server.requests_since(mark);
        let written: Vec<_> = written.iter().filter(|it| it.is_write()).collect();
        assert!(written.is_empty(), "{written:#?}");
    }
}

async fn define(user: &Client) {
    for definition in [crd::<ZoneClaim>(), crd::<Zone>()] {
        let definition = definition.expect("a CRD");
        let made = Api::all(user.clone())
            .create(&PostParams::default(), &definition)
            .await;
        made.expect("the CRD is accepted");
    }
    let team = json!({ "metadata": { "name": "team-a" } });
    let team: Namespace = serde_json::from_value(team).expect("a namespace");
    let made = Api::all(user.clone())
        .create(&PostParams::default(), &team)
        .await;
    made.expect("accepted");
}

fn claim(namespace: &str, name: &str) -> ZoneClaim {
    let domain = "shop.example.com".to_owned();
    let mut claim = ZoneClaim::new(name, ZoneClaimSpec { domain });
    claim.metadata.namespace = Some(namespace.to_owned());
    claim
}

#[tokio::test(start_paused = true)]
async fn a_claim_is_given_a_zone_and_ready_when_that_is() {
    let land = Land::new().await;
    let claim = land.claims(json!({})).await;
    let unseen = "False WaitingForResources: Zone team-a.shop: its controller has not seen it yet";
    land.until(unseen).await;
    assert_eq!(land.says("Bound").await, unseen);
    let zone = land.zone().await.expect("there is a zone");
    assert_eq!(zone.spec.domain, "shop.example.com");
    assert_eq!(zone.labels()[OWNER_LABEL], claim.uid().expect("a uid"));
    assert!(zone.owner_references().is_empty());
    // Held before there was anything to hold it for.
    let writes = land.server.requests();
    let writes: Vec<_> = (writes.iter().filter(|it| it.client == "operator"))
        .filter(|it| it.is_write())
        .map(|it| it.resource.as_str())
        .collect();
    assert_eq!(writes[..2], ["zoneclaims", "zones"]);
    let claim = land.claim().await.expect("it is there");
    assert_eq!(claim.finalizers(), [FINALIZER]);

    let ready = |status: &str| json!({ "type": "Ready", "status": status, "reason": "Served" });
    land.zone_says(ready("True"), 0).await;
    land.until("True Complete").await;
    assert_eq!(
        land.says("Bound").await,
        "True Bind: the zone team-a.shop is ready"
    );
    let status = land.claim().await.and_then(|claim| claim.status);
    assert_eq!(status.expect("a status").extra.zone.as_deref(), Some(ZONE));
    land.rests().await;

    land.zone_says(ready("False"), 0).await;
    land.until("False WaitingForResources: Zone team-a.shop: Served")
        .await;
    let stalled = json!({ "type": "Stalled", "status": "True", "reason": "DomainTaken" });
    land.zone_says(stalled, 0).await;
    land.until("False ResourceNotReady: Zone team-a.shop: DomainTaken")
        .await;
    assert!(
        land.says("Stalled")
            .await
            .starts_with("True ResourceNotReady")
    );
    land.zone_says(ready("True"), 0).await;
    land.until("True Complete").await;
}

#[tokio::test(start_paused = true)]
async fn a_zone_that_somebody_deletes_is_made_again_and_a_change_reaches_it() {
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
    // What its operator has made for it, and does not let go yet.
    let zone = land.zone().await.expect("there is a zone");
    let mut owner = zone.controller_owner_ref(&()).expect("it can own");
    owner.block_owner_deletion = Some(true);
    let mut records = ConfigMap::default();
    records.metadata.name = Some("records".to_owned());
    records.metadata.owner_references = Some(vec![owner]);
    records.metadata.finalizers = Some(vec!["zones.example.com/hold".to_owned()]);
    let maps: Api<ConfigMap> = Api::default_namespaced(land.server.client());
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
    land.zone_says(ready.clone(), 7).await;
    land.rests().await;
    let before = land.zone().await;
    land.delete().await;
    land.until("False InUse: the zone team-a.shop still has records")
        .await;
    assert!(land.says("Released").await.starts_with("False InUse"));
    land.rests().await;
    assert_eq!(
        land.zone().await.map(|zone| zone.metadata),
        before.map(|zone| zone.metadata)
    );
    land.zone_says(ready, 0).await;
    land.until_gone().await;
    assert!(land.zone().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_zone_of_somebody_else_is_not_taken_and_outlives_the_claim() {
    let land = Land::new().await;
    let domain = "theirs.example.com".to_owned();
    let theirs = Zone::new(ZONE, ZoneSpec { domain });
    let made = land.zones.create(&PostParams::default(), &theirs).await;
    made.expect("accepted");
    let before = land.zone().await;
    land.claims(json!({})).await;
    land.until("False NotOwned: Zone team-a.shop exists and was not made for this object")
        .await;
    assert!(land.says("Bound").await.starts_with("False NotOwned"));
    land.delete().await;
    land.until_gone().await;
    let metadata = |zone: Option<Zone>| zone.map(|zone| zone.metadata);
    assert_eq!(metadata(land.zone().await), metadata(before));
}

#[tokio::test(start_paused = true)]
async fn a_paused_claim_is_not_bound_and_can_be_deleted() {
    let land = Land::new().await;
    land.claims(json!({ PAUSED_ANNOTATION: "true" })).await;
    let paused = async || land.says("Paused").await.starts_with("True");
    land.until_so("it is paused", paused).await;
    land.rests().await;
    assert!(land.zone().await.is_none());
    land.delete().await;
    land.until_gone().await;
    let requests = land.server.requests();
    assert!(
        !requests
            .iter()
            .any(|it| it.resource == "zones" && it.is_write())
    );
}

/// A pause holds no deletion, which nobody could take back; what should be held, the step `Release` holds.
#[tokio::test(start_paused = true)]
async fn a_paused_claim_that_is_deleted_is_kept_only_while_its_zone_is_in_use() {
    let land = Land::bound().await;
    let ready = json!({ "type": "Ready", "status": "True", "reason": "Complete" });
    land.zone_says(ready.clone(), 1).await;
    let pause = json!({ "metadata": { "annotations": { PAUSED_ANNOTATION: "true" } } });
    let params = PatchParams::default();
    let pause = Patch::Merge(pause);
    let paused = land.claims.patch("shop", &params, &pause).await;
    paused.expect("accepted");
    land.delete().await;
    land.until("False InUse").await;
    land.zone_says(ready, 0).await;
    land.until_gone().await;
    assert!(land.zone().await.is_none());
}

#[test]
fn no_two_claims_have_zones_of_one_name() {
    let of = |namespace: &str, name: &str| zone_of(&claim(namespace, name));
    assert_eq!(of("team-a", "shop"), ZONE);
    // Put together with another sign they would be the same.
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
    // One more would be too long.
    assert!(names[3].contains('.'));
    assert!(names[..3].iter().all(|name| !name.contains('.')));
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 4);
}
