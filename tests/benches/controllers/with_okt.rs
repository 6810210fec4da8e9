//! The controller with OKT: a parcel is packed, carried, delivered, and taken back when its object is
//! deleted.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use kube::CustomResource;
use okt::{
    Action, Application, Context, Desired, Failure, LifecycleSpec, Observation, Status,
    lifecycle_graph,
};
use okt_tests::measured::Tally;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The life of a parcel.
#[lifecycle_graph]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ParcelState {
    /// It is being packed.
    #[entry]
    #[child(Travelling)]
    Packing,

    /// It is on its way.
    #[child(Delivered)]
    Travelling,

    /// It has arrived.
    #[rest(idle)]
    #[condition(Arrived, reason = "Delivered")]
    #[child(Returning)]
    Delivered,

    /// It is being taken back.
    #[child(Gone)]
    Returning,

    /// It is in the store again.
    #[leaf(idle)]
    Gone,
}

/// The spec of a parcel.
#[derive(CustomResource, LifecycleSpec, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "bench.okt.dev",
    version = "v1",
    kind = "Parcel",
    namespaced,
    status = "Status<ParcelState>"
)]
pub(crate) struct ParcelSpec {
    #[serde(default)]
    pub(crate) lifecycle: Desired<ParcelState>,
    pub(crate) recipient: String,
    pub(crate) address: String,
    pub(crate) grams: u32,
}

/// Carries parcels at once, or packs them forever.
pub(crate) struct Parcels {
    tally: Arc<Tally>,
    /// Whether packing never ends.
    pub(crate) at_work: bool,
    pub(crate) observe_every: Duration,
}

impl Parcels {
    pub(crate) fn new(tally: Arc<Tally>) -> Self {
        Self {
            tally,
            at_work: false,
            observe_every: Duration::from_secs(30),
        }
    }
}

impl ParcelStateHandler for Parcels {
    type Context = Action<Parcel>;
    type Error = Failure;

    async fn packing(&self, _: &Action<Parcel>) -> Result<parcel_state::AfterPacking, Failure> {
        if self.at_work {
            self.tally.reconciled();
            pending::<()>().await;
        }
        Ok(parcel_state::AfterPacking::Travelling)
    }

    async fn travelling(
        &self,
        _: &Action<Parcel>,
    ) -> Result<parcel_state::AfterTravelling, Failure> {
        Ok(parcel_state::AfterTravelling::Delivered)
    }

    async fn returning(&self, _: &Action<Parcel>) -> Result<parcel_state::AfterReturning, Failure> {
        Ok(parcel_state::AfterReturning::Gone)
    }
}

impl Application for Parcels {
    type Resource = Parcel;

    async fn observe(&self, _: &Context<Parcel>) -> Result<Observation<ParcelState>, Failure> {
        if !self.at_work {
            self.tally.reconciled();
        }
        Ok(Observation::unobserved())
    }

    fn observe_every(&self, _: ParcelState) -> Duration {
        self.observe_every
    }
}
