//! This file is the job: a rack owns boxes, which are maps of settings.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{CustomResource, ResourceExt};
use okt_runtime::{
    Action, Application, Context, Desired, Failure, LifecycleSpec, Observation, Resources, Status,
    Watches, lifecycle_graph,
};
use okt_tests::measured::Tally;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// The life of a rack.
#[lifecycle_graph]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RackState {
    /// It stands.
    #[entry]
    #[rest(idle)]
    #[child(Gone)]
    Standing,

    /// No more.
    #[leaf(idle)]
    Gone,
}

/// What a user asks for.
#[derive(CustomResource, LifecycleSpec, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "demo.okt.dev",
    version = "v1",
    kind = "Rack",
    namespaced,
    status = "Status<RackState>"
)]
pub(crate) struct RackSpec {
    /// Where it should be in its life.
    #[serde(default)]
    pub(crate) lifecycle: Desired<RackState>,
    /// What the first of its boxes holds.
    pub(crate) text: String,
}

impl Rack {
    /// The one of this number.
    pub(crate) fn numbered(number: usize) -> Self {
        let spec = RackSpec {
            lifecycle: Desired::default(),
            text: "x".to_owned(),
        };
        Self::new(&format!("rack-{number}"), spec)
    }
}

/// What is on each rack.
#[derive(Clone, Copy)]
pub(crate) struct Boxes {
    pub(crate) count: usize,
    /// How many bytes are in each, but for the first one.
    pub(crate) size: usize,
}

impl Boxes {
    /// Those of a rack: the first one holds what the spec says.
    pub(crate) fn of(self, rack: &Rack) -> impl Iterator<Item = ConfigMap> {
        (0..self.count).map(move |number| {
            let text = match number {
                0 => rack.spec.text.clone(),
                _ => filling(number, self.size),
            };
            serde_json::from_value(json!({
                "metadata": { "name": format!("{}-{number}", rack.name_any()), "namespace": rack.namespace() },
                "data": { "text": text, "number": number.to_string() },
            }))
            .expect("a map")
        })
    }
}

/// Text that no packing makes small.
fn filling(seed: usize, size: usize) -> String {
    let mut state = seed as u64;
    let digits = std::iter::repeat_with(|| {
        // The generator of Knuth's MMIX; its high bits are the good ones.
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        char::from(b'0' + ((state >> 33) % 64) as u8)
    });
    digits.take(size).collect()
}

/// The operator of racks; of its boxes it may cache the metadata only.
pub(crate) struct Racks<const METADATA: bool> {
    pub(crate) boxes: Boxes,
    pub(crate) tally: Arc<Tally>,
}

impl<const METADATA: bool> RackStateHandler for Racks<METADATA> {
    type Context = Action<Rack>;
    type Error = Failure;
}

impl<const METADATA: bool> Application for Racks<METADATA> {
    type Resource = Rack;

    fn watches(watches: Watches<Rack>) -> Watches<Rack> {
        if METADATA {
            watches.owns_meta::<ConfigMap>()
        } else {
            watches.owns::<ConfigMap>()
        }
    }

    async fn observe(&self, _: &Context<Rack>) -> Result<Observation<RackState>, Failure> {
        self.tally.reconciled();
        Ok(Observation::unobserved())
    }

    async fn resources(&self, cx: &Context<Rack>, _: RackState) -> Result<Resources, Failure> {
        let boxes = self.boxes.of(cx.object());
        Ok(boxes.fold(Resources::new(), Resources::apply))
    }
}
