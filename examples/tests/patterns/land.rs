//! A cluster with the operator of claims, as a team and the operator of zones use it.

use std::future::pending;
use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::runtime::wait::{await_condition, conditions::is_crd_established};
use kube::{Api, Client, ResourceExt};
use okt::{Operator, crd};
use okt_examples::claims::{Zone, ZoneClaim, ZoneClaimSpec, ZoneClaims};
use okt_testing::{ApiServer, RequestRecord};
use serde_json::{Value, json};
use tokio::time::Instant;

/// The zone of the claim that these tests make.
pub(crate) const ZONE: &str = "team-a.shop";

/// A cluster with the operator of claims.
pub(crate) struct Land {
    /// `None` for a real cluster.
    pub(crate) server: Option<ApiServer>,
    pub(crate) client: Client,
    pub(crate) claims: Api<ZoneClaim>,
    pub(crate) zones: Api<Zone>,
}

impl Land {
    pub(crate) async fn new() -> Self {
        let server = ApiServer::new();
        let operator = server.client_named("operator");
        let operator = Operator::new(operator, ZoneClaims).virtual_time();
        let land = Self::of(server.client(), operator).await;
        Self {
            server: Some(server),
            ..land
        }
    }

    pub(crate) async fn of(client: Client, operator: Operator<ZoneClaims>) -> Self {
        define(&client).await;
        tokio::spawn(async move { operator.run(pending()).await.expect("it runs") });
        Self {
            server: None,
            claims: Api::namespaced(client.clone(), "team-a"),
            zones: Api::all(client.clone()),
            client,
        }
    }

    pub(crate) fn requests(&self) -> Vec<RequestRecord> {
        let server = self.server.as_ref();
        server.expect("it is in this process").requests()
    }

    /// Creates the claim.
    pub(crate) async fn claims(&self, metadata: Value) -> ZoneClaim {
        let mut claim = claim("team-a", "shop");
        claim.metadata.annotations = serde_json::from_value(metadata).expect("annotations");
        let made = self.claims.create(&PostParams::default(), &claim).await;
        made.expect("accepted")
    }

    /// Creates a claim with a zone that is ready.
    pub(crate) async fn bound() -> Self {
        let land = Self::new().await;
        land.is_bound().await;
        land
    }

    pub(crate) async fn is_bound(&self) {
        self.claims(json!({})).await;
        let made = async || self.zone().await.is_some();
        self.until_so("there is a zone", made).await;
        self.until_zone(
            json!({ "type": "Ready", "status": "True", "reason": "Complete" }),
            0,
        )
        .await;
        self.until("True Complete").await;
    }

    /// Writes the status of the zone, as the operator of zones does.
    pub(crate) async fn until_zone(&self, condition: Value, records: i32) {
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

    pub(crate) async fn zone(&self) -> Option<Zone> {
        self.zones.get_opt(ZONE).await.expect("an answer")
    }

    pub(crate) async fn claim(&self) -> Option<ZoneClaim> {
        self.claims.get_opt("shop").await.expect("an answer")
    }

    pub(crate) async fn delete(&self) {
        let deleted = self.claims.delete("shop", &DeleteParams::default()).await;
        deleted.expect("a deletion");
    }

    /// Returns a condition of the claim as `Status Reason: message`.
    pub(crate) async fn shows(&self, condition: &str) -> String {
        let status = self.claim().await.and_then(|claim| claim.status);
        let all = status.map(|status| status.conditions).unwrap_or_default();
        let found = all.iter().find(|it| it.type_ == condition);
        found.map_or_else(String::new, |it| {
            format!("{} {}: {}", it.status, it.reason, it.message)
        })
    }

    /// Waits until the condition `Ready` of the claim starts with this text.
    pub(crate) async fn until(&self, what: &str) {
        let so = async || self.shows("Ready").await.starts_with(what);
        self.until_so(what, so).await;
    }

    pub(crate) async fn until_so(&self, what: &str, mut so: impl AsyncFnMut() -> bool) {
        let since = Instant::now();
        while !so().await {
            let claim = self.claim().await;
            let waits = since.elapsed() < Duration::from_mins(5);
            assert!(waits, "waited in vain until {what}: {claim:#?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    pub(crate) async fn until_gone(&self) {
        let gone = async || self.claim().await.is_none();
        self.until_so("the claim is gone", gone).await;
    }

    /// Asserts that nothing more happens: in this process for an hour, on a real server for long enough to collect
    /// garbage.
    pub(crate) async fn rests(&self) {
        if self.server.is_none() {
            let before = self.zone().await.map(|zone| zone.metadata);
            tokio::time::sleep(Duration::from_secs(3)).await;
            let after = self.zone().await.map(|zone| zone.metadata);
            assert_eq!(after, before);
            return;
        }
        tokio::time::sleep(Duration::from_secs(30)).await;
        let before = self.requests().len();
        tokio::time::sleep(Duration::from_hours(1)).await;
        let written = self.requests().split_off(before);
        let written: Vec<_> = written.iter().filter(|it| it.is_write()).collect();
        assert!(written.is_empty(), "{written:#?}");
    }
}

pub(crate) async fn define(user: &Client) {
    for definition in [crd::<ZoneClaim>(), crd::<Zone>()] {
        let definition = definition.expect("a CRD");
        let made = Api::all(user.clone())
            .create(&PostParams::default(), &definition)
            .await;
        let name = made.expect("the CRD is accepted").name_any();
        let established = await_condition(Api::all(user.clone()), &name, is_crd_established());
        established.await.expect("a watch");
    }
    let team = json!({ "metadata": { "name": "team-a" } });
    let team: Namespace = serde_json::from_value(team).expect("a namespace");
    let made = Api::all(user.clone())
        .create(&PostParams::default(), &team)
        .await;
    made.expect("accepted");
}

pub(crate) fn claim(namespace: &str, name: &str) -> ZoneClaim {
    let domain = "shop.example.com".to_owned();
    let mut claim = ZoneClaim::new(name, ZoneClaimSpec { domain });
    claim.metadata.namespace = Some(namespace.to_owned());
    claim
}
