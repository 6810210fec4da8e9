//! The size of the largest possible status.

use std::time::Duration;

use kube::CustomResource;
use okt::{
    Action, Application, Context, Desired, Failure, LifecycleSpec, Observation, Status,
    lifecycle_graph,
};
use okt_tests::{Objects, Rig, Served};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// States whose names have the maximum length.
#[lifecycle_graph]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
enum LongState {
    #[entry]
    #[serde(rename = "AaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaA")]
    #[child(First)]
    Begin,
    #[rest]
    #[serde(rename = "BbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbB")]
    #[condition(FirstConditionWithALongName)]
    #[condition(SecondConditionWithALongName)]
    #[condition(ThirdConditionWithALongName)]
    #[child(Second)]
    #[child(Over)]
    First,
    #[visit]
    #[serde(rename = "CcccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccC")]
    #[child(First)]
    Second,
    #[leaf(idle)]
    #[serde(rename = "DdddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddD")]
    Over,
}

#[derive(CustomResource, LifecycleSpec, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "demo.okt.dev",
    version = "v1",
    kind = "Long",
    namespaced,
    status = "Status<LongState>"
)]
struct LongSpec {
    #[serde(default)]
    lifecycle: Desired<LongState>,
    #[serde(default)]
    size: u32,
}

#[derive(Clone, Default)]
struct Longs;

impl LongStateHandler for Longs {
    type Context = Action<Long>;
    type Error = Failure;

    async fn begin(&self, _: &Action<Long>) -> Result<long_state::AfterBegin, Failure> {
        Ok(long_state::AfterBegin::Next)
    }

    async fn first(&self, cx: &Action<Long>) -> Result<long_state::AfterFirst, Failure> {
        if cx.object().spec.size == 0 {
            return Ok(long_state::AfterFirst::Stay);
        }
        cx.progress("p".repeat(5000));
        Err(Failure::retry("R".repeat(5000), "m".repeat(50_000)))
    }

    async fn second(&self, _: &Action<Long>) -> Result<long_state::AfterSecond, Failure> {
        Ok(long_state::AfterSecond::Next)
    }
}

impl Application for Longs {
    type Resource = Long;

    async fn observe(&self, _: &Context<Long>) -> Result<Observation<LongState>, Failure> {
        Ok(Observation::unreachable("n".repeat(50_000)))
    }
}

impl Served for Longs {}

#[tokio::test(start_paused = true)]
async fn a_status_stays_within_eight_kibibytes_and_is_accepted() {
    let rig = Rig::<Longs>::of().await;
    rig.create("long", json!({ "request": "r".repeat(253) }))
        .await;
    rig.until_in("long", LongState::First).await;
    for visit in 0..8 {
        let request = format!("{visit}{}", "v".repeat(252));
        let name = "CcccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccC";
        rig.ask_for(
            "long",
            json!({ "visit": { "state": name, "request": request } }),
        )
        .await;
        rig.pass(Duration::from_mins(2)).await;
    }
    rig.patch("long", json!({ "spec": { "size": 1 } })).await;
    rig.pass(Duration::from_mins(30)).await;
    let raw = rig.raw().read("long").await;
    let status = raw.data.get("status").expect("a status");
    let text = |path: &str| {
        status
            .pointer(path)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .len()
    };
    assert_eq!(text("/lifecycle/action/message"), 256);
    assert_eq!(text("/lifecycle/action/failure/message"), 512);
    assert_eq!(
        status["lifecycle"]["history"].as_array().map(Vec::len),
        Some(10)
    );
    let part = |name: &str| status[name].to_string().len();
    let bytes = status.to_string().len();
    println!(
        "the largest status: {bytes} bytes, {} of them conditions, {} history",
        part("conditions"),
        status["lifecycle"]["history"].to_string().len()
    );
    assert!(bytes <= 8 * 1024, "{bytes}");
}
