//! The operator: a rack owns boxes, which are `ConfigMap`s.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{CustomResource, ResourceExt};
use okt::{
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

/// The spec of a rack.
#[derive(CustomResource, LifecycleSpec, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "demo.okt.dev",
    version = "v1",
    kind = "Rack",
    namespaced,
    status = "Status<RackState>"
)]
pub(crate) struct RackSpec {
    /// The desired state of the rack.
    #[serde(default)]
    pub(crate) lifecycle: Desired<RackState>,
    /// The text of the first box.
    pub(crate) text: String,
}

impl Rack {
    /// Returns the rack with this number.
    pub(crate) fn numbered(number: usize) -> Self {
        let spec = RackSpec {
            lifecycle: Desired::default(),
            text: "x".to_owned(),
        };
        Self::new(&format!("rack-{number}"), spec)
    }
}

/// The boxes of each rack.
#[derive(Clone, Copy)]
pub(crate) struct Boxes {
    pub(crate) count: usize,
    /// The size of each box except the first, in bytes.
    pub(crate) size: usize,
}

impl Boxes {
    /// Returns the boxes of a rack; the first one holds the text of the spec.
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

/// Returns text that cannot be compressed much.
fn filling(seed: usize, size: usize) -> String {
    let mut state = seed as u64;
    let digits = std::iter::repeat_with(|| {
        // The generator of Knuth's MMIX, whose high bits are the good ones.
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        char::from(b'0' + ((state >> 33) % 64) as u8)
    });
    digits.take(size).collect()
}

/// The operator of racks; it caches its boxes completely or only their metadata.
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
