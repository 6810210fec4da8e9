//! Owned resources: applied, repaired, deleted, waited for, watched.

mod deleting;
mod making;
mod readiness;
mod recorded;
mod refused;
mod release;
mod repairing;
mod replacing;
mod sharing;
mod templates;
mod waiting;
mod watching;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use okt::Resources;
use okt_tests::{Objects, Rig, ShopState::Open, Shops};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

type Shop = Rig<Shops>;

fn map(name: &str, text: &str) -> ConfigMap {
    of(json!({ "metadata": { "name": name }, "data": { "text": text } }))
}

fn of<T: DeserializeOwned>(object: Value) -> T {
    serde_json::from_value(object).expect("an object")
}

fn deployment(name: &str) -> Deployment {
    of(json!({
        "metadata": { "name": name },
        "spec": {
            "replicas": 2,
            "selector": { "matchLabels": { "app": name } },
            "template": {
                "metadata": { "labels": { "app": name } },
                "spec": { "containers": [{
                    "name": "web",
                    "image": "web:1",
                    "ports": [{ "containerPort": 80 }],
                    "resources": { "limits": { "cpu": "1000m" } },
                }] },
            },
        },
    }))
}

async fn edit(rig: &Shop, name: &str, patch: Value) {
    rig.of::<ConfigMap>().edit(name, patch).await;
}

/// Returns the writes to anything but the shop itself.
fn writes(rig: &Shop) -> Vec<String> {
    let all = rig.wire.writes().into_iter();
    all.filter(|write| !write.contains("/shops/")).collect()
}

/// Creates a shop with these resources and waits until it is open.
async fn open(resources: Resources) -> Shop {
    let rig = Shop::prepared("shop", |app| app.declare(resources)).await;
    rig.until_ready("shop", Open).await;
    rig
}

/// Declares these resources, and requests a reconciliation.
fn redeclare(rig: &Shop, resources: Resources) {
    rig.app.declare(resources);
    rig.request("shop");
}
