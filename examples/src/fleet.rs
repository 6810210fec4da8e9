//! A fleet of shops: a new release of the operator renders another image, and two shops at a time take it.
//!
//! A shop whose new image does not come up keeps its place in the limit. So a bad release stops by itself, after the
//! second shop at the latest; a person looks, and goes on by hand.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use kube::{CustomResource, ResourceExt};
use okt::{
    Action, Application, Context, Declared, Desired, Failure, LifecycleSpec, Limit, Resources,
    ResultExt, Status, Watches, Which, lifecycle_graph,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// The life of a shop.
#[lifecycle_graph]
#[limit(rollout, states(Upgrading, Failed))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShopState {
    /// It is set up.
    #[entry]
    #[child(Running)]
    Start,
    /// It serves; another image waits for a place in the roll-out.
    #[rest(idle)]
    #[trigger(Upgrading, on_change)]
    #[child(Gone)]
    Running,
    /// Its Deployment gets another image.
    #[trigger(Failed, after = "10m")]
    #[child(Running)]
    Upgrading,
    /// The new image does not come up. It keeps its place until a person has looked.
    #[rest(hold, idle)]
    #[trigger(Upgrading, on_change)]
    #[child(Upgrading)]
    #[child(Gone)]
    Failed,
    /// It is gone.
    #[leaf(idle)]
    Gone,
}

/// A shop of the fleet.
#[derive(CustomResource, LifecycleSpec, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "demo.okt.dev",
    version = "v1",
    kind = "Shop",
    namespaced,
    status = "Status<ShopState>"
)]
pub struct ShopSpec {
    /// The desired state.
    #[serde(default)]
    pub lifecycle: Desired<ShopState>,
    /// The memory of its server (e.g. `256Mi`).
    #[serde(default)]
    pub memory: String,
}

/// The operator of a fleet, with its options.
#[derive(clap::Args, Clone, Debug)]
pub struct Fleet {
    /// The tag of the image [default: the release of the operator].
    #[arg(long, value_name = "TAG", default_value = env!("CARGO_PKG_VERSION"))]
    pub release: String,
    /// How many shops take it at a time.
    #[arg(long, value_name = "NUMBER", default_value_t = 2)]
    pub places: u32,
}

impl ShopStateHandler for Fleet {
    type Context = Action<Shop>;
    type Error = Failure;

    async fn start(&self, _: &Action<Shop>) -> Result<shop_state::AfterStart, Failure> {
        Ok(shop_state::AfterStart::Running)
    }

    async fn upgrading(&self, cx: &Action<Shop>) -> Result<shop_state::AfterUpgrading, Failure> {
        if let Some(server) = cx.unready(&[Which::of::<Deployment>()]).first() {
            cx.progress(server.to_string());
            return Ok(shop_state::AfterUpgrading::Wait(Duration::from_secs(5)));
        }
        Ok(shop_state::AfterUpgrading::Running)
    }
}

impl Fleet {
    fn server(&self, shop: &Shop) -> Result<Deployment, Failure> {
        let labels = json!({ "shop": shop.name_any() });
        let server = json!({
            "metadata": { "name": shop.name_any() },
            "spec": {
                "selector": { "matchLabels": labels },
                "template": {
                    "metadata": { "labels": labels },
                    "spec": { "containers": [{
                        "name": "shop",
                        "image": format!("shop:{}", self.release),
                        "resources": { "limits": { "memory": shop.spec.memory } },
                    }] },
                },
            },
        });
        serde_json::from_value(server).permanent("BadServer")
    }
}

impl Application for Fleet {
    type Resource = Shop;

    fn watches(watches: Watches<Shop>) -> Watches<Shop> {
        watches.owns::<Deployment>()
    }

    async fn resources(&self, cx: &Context<Shop>, _: ShopState) -> Result<Resources, Failure> {
        let server = Declared::of(self.server(cx.object())?).changes_in([ShopState::Upgrading]);
        Ok(Resources::new().with(server))
    }

    fn limit(&self, _: &Shop, _: shop_state::Gate) -> Limit {
        Limit::of(self.places)
    }
}
