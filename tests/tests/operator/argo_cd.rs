//! The health check and the actions for Argo CD, on objects of an operator that runs.

use std::collections::BTreeSet;
use std::process::Command;
use std::time::Duration;

use kube::api::{DynamicObject, PostParams};
use mlua::{Lua, LuaSerdeExt};
use okt_tests::{DatabaseState::*, Databases, Objects, Reply, Rig, Sight};
use serde_json::{Value, json};

/// Returns a customization that a program prints for its kind.
fn customization(program: &str, what: &str, kind: &str) -> String {
    let output = Command::new(program).arg("argo-cd").output();
    let map: Value = serde_saphyr::from_slice(&output.expect("it starts").stdout).expect("a map");
    let text = &map["data"][format!("resource.customizations.{what}.demo.okt.dev_{kind}")];
    text.as_str().expect("a text").to_owned()
}

fn of_databases(what: &str) -> String {
    customization(env!("CARGO_BIN_EXE_databases"), what, "Database")
}

/// Runs a script with an object, as Argo CD does.
fn run(script: &str, object: &Value) -> Value {
    let lua = Lua::new();
    let object = lua.to_value(object).expect("a table");
    lua.globals().set("obj", object).expect("a global");
    let result = lua.load(script).eval().expect("it runs");
    lua.from_value(result).expect("a table")
}

/// Returns the health of an object, as Argo CD would show it.
fn health(script: &str, object: &Value) -> (String, String) {
    let health = run(script, object);
    let text = |name: &str| health[name].as_str().unwrap_or_default().to_owned();
    (text("status"), text("message"))
}

/// The actions of a kind.
struct ArgoActions(Value);

impl ArgoActions {
    fn of(text: &str) -> Self {
        Self(serde_saphyr::from_str(text).expect("YAML"))
    }

    fn names(&self) -> BTreeSet<&str> {
        let definitions = self.0["definitions"].as_array().expect("definitions");
        let names = definitions.iter().map(|it| it["name"].as_str());
        names.collect::<Option<_>>().expect("names")
    }

    /// Returns the actions that Argo CD offers for an object.
    fn offered(&self, object: &Value) -> Vec<String> {
        let script = self.0["discovery.lua"].as_str().expect("a script");
        let found = run(script, object);
        let found = found.as_object().expect("a table");
        let names: BTreeSet<_> = found.keys().map(String::as_str).collect();
        assert_eq!(names, self.names());
        let mut offered: Vec<_> = found
            .iter()
            .filter(|(_, action)| action["disabled"] == false)
            .map(|(name, _)| name.clone())
            .collect();
        offered.sort();
        offered
    }

    /// Does what Argo CD does for an action: it changes the object by the script, and stores it.
    async fn take(&self, rig: &Rig, name: &str) {
        let object = now(rig).await;
        let offered = self.offered(&object);
        assert!(offered.iter().any(|it| it == name), "{name}: {offered:?}");
        let mut definitions = self.0["definitions"].as_array().expect("a list").iter();
        let action = definitions.find(|it| it["name"] == name).expect(name);
        let changed = run(action["action.lua"].as_str().expect("a script"), &object);
        let changed: DynamicObject = serde_json::from_value(changed).expect("an object");
        let replaced = rig
            .raw()
            .replace("db", &PostParams::default(), &changed)
            .await;
        replaced.expect("the change is accepted");
    }
}

async fn now(rig: &Rig) -> Value {
    let object = rig.raw().read("db").await;
    serde_json::to_value(object).expect("JSON")
}

#[tokio::test(start_paused = true)]
async fn argo_cd_shows_each_phase_of_a_lifecycle_as_people_expect() {
    let script = of_databases("health");
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
    rig.app.sees("db", Sight::Event(Running, Failed));
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

#[tokio::test(start_paused = true)]
async fn argo_cd_offers_the_ways_of_the_graph_and_they_lead_there() {
    let actions = ArgoActions::of(&of_databases("actions"));
    let rig = Rig::<Databases>::without_operator().await;
    rig.create("db", json!({})).await;
    let fresh = ["go-Running", "pause", "retry", "visit-Servicing"];
    let offered = actions.offered(&now(&rig).await);
    assert!(
        fresh.iter().all(|name| offered.iter().any(|it| it == name)),
        "{offered:?}"
    );
    rig.start();
    rig.until_ready("db", Running).await;
    let at_rest = ["go-End", "pause", "retry", "visit-Servicing"];
    assert_eq!(actions.offered(&now(&rig).await), at_rest);
    actions.take(&rig, "pause").await;
    rig.until_reason("db", "Paused", "Paused").await;
    let offered = actions.offered(&now(&rig).await);
    assert_eq!(offered, ["go-End", "resume", "retry", "visit-Servicing"]);
    actions.take(&rig, "resume").await;
    rig.until_ready("db", Running).await;
    let work = Reply::After(Duration::from_mins(1), okt::Answer::Next);
    rig.app.next_time(Servicing, work);
    actions.take(&rig, "visit-Servicing").await;
    rig.until_in("db", Servicing).await;
    rig.until_ready("db", Running).await;
    rig.app.sees("db", Sight::Event(Running, Failed));
    rig.request("db");
    rig.until_in("db", Failed).await;
    rig.app.sees("db", Sight::Unobserved);
    // The desired state is the same, and only a new request leads out of a state that holds.
    actions.take(&rig, "go-Running").await;
    rig.until_ready("db", Running).await;
    actions.take(&rig, "go-End").await;
    rig.until_in("db", End).await;
    let mut deleted = now(&rig).await;
    deleted["metadata"]["deletionTimestamp"] = json!("2026-11-23T00:00:00Z");
    assert_eq!(actions.offered(&deleted), ["pause"]);
}
