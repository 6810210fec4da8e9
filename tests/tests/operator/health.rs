//! The health check for Argo CD, on statuses that an operator wrote.

use std::process::Command;
use std::time::Duration;

use mlua::{Lua, LuaSerdeExt};
use okt_tests::{DatabaseState::*, Databases, Objects, Reply, Rig};
use serde_json::{Value, json};

/// Returns the script that the program prints for databases.
fn script() -> String {
    let mut program = Command::new(env!("CARGO_BIN_EXE_databases"));
    let output = program.arg("health").output().expect("it starts");
    let map: Value = serde_saphyr::from_slice(&output.stdout).expect("a config map");
    let script = &map["data"]["resource.customizations.health.demo.okt.dev_Database"];
    script.as_str().expect("a script").to_owned()
}

/// Returns the health of an object, as Argo CD would show it.
fn health(script: &str, object: &Value) -> (String, String) {
    let lua = Lua::new();
    let object = lua.to_value(object).expect("a table");
    lua.globals().set("obj", object).expect("a global");
    let health: Value = {
        let health = lua.load(script).eval().expect("it runs");
        lua.from_value(health).expect("a table")
    };
    let text = |name: &str| health[name].as_str().unwrap_or_default().to_owned();
    (text("status"), text("message"))
}

async fn now(rig: &Rig) -> Value {
    let object = rig.raw().read("db").await;
    serde_json::to_value(object).expect("JSON")
}

#[tokio::test(start_paused = true)]
async fn argo_cd_shows_each_phase_of_a_lifecycle_as_people_expect() {
    let script = script();
    let rig = Rig::<Databases>::without_operator().await;
    rig.create("db", json!({})).await;
    let shown = health(&script, &now(&rig).await);
    assert_eq!(shown.0, "Progressing", "fresh");
    rig.start();
    rig.app.next_time(
        Start,
        Reply::After(Duration::from_mins(1), okt::Answer::Next),
    );
    rig.until_in("db", Start).await;
    assert_eq!(health(&script, &now(&rig).await).0, "Progressing", "moving");
    rig.until_ready("db", Running).await;
    assert_eq!(health(&script, &now(&rig).await).0, "Healthy");
    rig.pause("db").await;
    rig.until_reason("db", "Paused", "Paused").await;
    assert_eq!(health(&script, &now(&rig).await).0, "Suspended");
    rig.unpause("db").await;
    rig.until_ready("db", Running).await;
    rig.app.sees("db", okt_tests::Sight::Event(Running, Failed));
    rig.request("db");
    rig.until_in("db", Failed).await;
    let (status, message) = health(&script, &now(&rig).await);
    assert_eq!(status, "Degraded");
    assert!(!message.is_empty());
    let mut changed = now(&rig).await;
    changed["status"]["conditions"] = json!([]);
    changed["metadata"]["generation"] = json!(99);
    assert_eq!(health(&script, &changed).0, "Progressing", "not seen yet");
    changed["metadata"]["deletionTimestamp"] = json!("2026-11-23T00:00:00Z");
    assert_eq!(health(&script, &changed).0, "Progressing", "being deleted");
}
