//! Passes of a resource without a lifecycle.

mod deleting;
mod free_style;
mod outputs;
mod pausing;
mod results;
mod shipped;
mod triggers;

use std::time::Duration;

use okt::Declared;
use okt_tests::{Chart, Charts, Rig};
use serde_json::json;

type Board = Rig<Charts>;

fn map(name: &str, text: &str) -> Declared {
    Declared::dynamic(json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": name },
        "data": { "text": text },
    }))
}

/// Creates a chart and waits until its pass has run once.
async fn ran(script: impl FnOnce(&Charts)) -> Board {
    let rig = Board::without_operator_of().await;
    script(&rig.app);
    rig.start();
    rig.pass(Duration::from_secs(1)).await;
    rig.create("chart", json!({})).await;
    rig.pass(Duration::from_millis(500)).await;
    rig
}

/// Returns each condition except `Deleting` and `Paused`, as `Type Status Reason: message`.
fn conditions_of(chart: &Chart) -> Vec<String> {
    let conditions = chart.status.iter().flat_map(|status| &status.conditions);
    conditions
        .filter(|it| it.type_ != "Deleting" && it.type_ != "Paused")
        .map(|it| format!("{} {} {}: {}", it.type_, it.status, it.reason, it.message))
        .collect()
}

async fn conditions(rig: &Board) -> Vec<String> {
    conditions_of(&rig.object("chart").await)
}

fn status_writes(rig: &Board) -> usize {
    let writes = rig.wire.writes().into_iter();
    writes
        .filter(|it| it.contains("/charts/chart/status"))
        .count()
}

/// Changes the labels twenty times in two seconds; returns the steps that run meanwhile.
async fn steps_while_it_is_labelled(rig: &Board) -> Vec<&'static str> {
    rig.app.script.taken();
    for number in 0..20 {
        let label = json!({ "metadata": { "labels": { "number": number.to_string() } } });
        rig.patch("chart", label).await;
        rig.pass(Duration::from_millis(100)).await;
    }
    rig.app.script.taken()
}

const DONE: &str = "Ready True Complete: every step of the pass is done";
