//! This module is an operator of claims: it gives an object in a namespace a cluster-scoped object.
//!
//! `docs/claims.md` explains the pattern. Zones have their own operator, which is not part of this module.

use std::time::Duration;

use kube::{CustomResource, ResourceExt};
use okt::{
    Application, Context, Declared, Failure, LifecycleSpec, Pass, PassGraph, PassStatus, Step,
    Watches, lifecycle_graph,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The longest name of an object.
const NAME_LIMIT: usize = 253;

/// A DNS zone; its name is unique in the world, so it is cluster-scoped.
#[derive(CustomResource, LifecycleSpec, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "demo.okt.dev",
    version = "v1",
    kind = "Zone",
    status = "PassStatus<ZoneExtra>"
)]
#[lifecycle(none)]
pub struct ZoneSpec {
    /// The DNS name of the zone.
    pub domain: String,
}

/// The status fields of a zone in addition to the conditions.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ZoneExtra {
    /// How many records the zone has.
    #[serde(default)]
    pub records: i32,
}

/// A team's claim to a zone, in the namespace of the team.
#[derive(CustomResource, LifecycleSpec, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "demo.okt.dev",
    version = "v1",
    kind = "ZoneClaim",
    namespaced,
    status = "PassStatus<ZoneClaimExtra>",
    printcolumn(name = "Zone", type_ = "string", json_path = ".status.zone")
)]
#[lifecycle(none)]
pub struct ZoneClaimSpec {
    /// The DNS name of the requested zone.
    pub domain: String,
}

/// The status fields of a claim in addition to the conditions.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ZoneClaimExtra {
    /// The zone created for the claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
}

/// The pass of a claim.
#[lifecycle_graph(pass)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimPass {
    /// Applies the zone and waits until it is ready.
    #[entry]
    #[condition(Bound)]
    #[trigger(Release, on_delete)]
    #[child(End)]
    Bind,
    /// On deletion, waits until the zone has no records.
    #[condition(Released)]
    #[child(End)]
    Release,
    /// The pass is over.
    #[leaf(idle)]
    End,
}

/// The operator of claims.
#[derive(Clone, Copy, Debug)]
pub struct ZoneClaims;

impl ClaimPassHandler for ZoneClaims {
    type Context = Pass<ZoneClaim>;
    type Error = Failure;

    async fn bind(&self, cx: &Pass<ZoneClaim>) -> Result<Step<claim_pass::AfterBind>, Failure> {
        let claim = cx.object();
        let domain = claim.spec.domain.clone();
        let name = zone_of(claim);
        let zone = Zone::new(&name, ZoneSpec { domain });
        // What lives in a namespace can own nothing that does not: the operator deletes it.
        cx.declare(Declared::of(zone).unowned().ready());
        cx.commit().await?;
        Ok(Step::done(claim_pass::AfterBind::Next).text(format!("the zone {name} is ready")))
    }

    async fn release(
        &self,
        cx: &Pass<ZoneClaim>,
    ) -> Result<Step<claim_pass::AfterRelease>, Failure> {
        let used = |zone: &Zone| zone.status.as_ref().is_some_and(|it| it.extra.records > 0);
        match cx.owned::<Zone>()?.into_iter().find(used) {
            Some(zone) => Ok(Step::wait("InUse", Duration::from_mins(10))
                .text(format!("the zone {} still has records", zone.name_any()))),
            None => Ok(Step::done(claim_pass::AfterRelease::Next)),
        }
    }
}

impl Application for ZoneClaims {
    type Resource = ZoneClaim;

    fn watches(watches: Watches<ZoneClaim>) -> Watches<ZoneClaim> {
        watches.owns::<Zone>()
    }

    fn pass() -> Option<PassGraph<Self>> {
        Some(PassGraph::of::<ClaimPass>())
    }

    async fn extra(&self, cx: &Context<ZoneClaim>) -> Result<ZoneClaimExtra, Failure> {
        let zone = cx.owned::<Zone>()?.first().map(ResourceExt::name_any);
        Ok(ZoneClaimExtra { zone })
    }
}

/// Returns the name of a claim's zone, which is unique per claim.
///
/// A namespace has no dot in its name, so it ends at the first dot.
/// A name that would be too long ends in a hash instead and has no dot.
pub fn zone_of(claim: &ZoneClaim) -> String {
    let namespace = claim.namespace().unwrap_or_default();
    let name = format!("{namespace}.{}", claim.name_any());
    if name.len() <= NAME_LIMIT {
        return name;
    }
    let hash = Sha256::digest(&name);
    let half = hash.iter().take(16);
    let hash = half.fold(0, |hash, byte| hash << 8 | u128::from(*byte));
    format!("{namespace}-{hash:032x}")
}
