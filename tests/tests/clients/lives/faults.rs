//! Faults that are injected over HTTP for the clients of an operator, each of which must strike.

use serde_json::{Value, json};

use super::api::{Api, Kind};

/// The verbs of writes that do not delete.
const WRITES: [&str; 4] = ["create", "update", "patch", "apply"];

/// An injected fault: one rule for each client of the operator.
#[derive(Debug)]
pub(super) struct InjectedFault {
    rule: Value,
    ids: Vec<u64>,
}

/// Returns a fault of the writes of a resource (e.g. `websites.web.example.com/status`); `/` at its end is the object
/// without its subresources.
pub(super) fn of_writes(fault: &str, resource: &str, times: u64) -> Value {
    json!({ "fault": fault, "resource": resource, "verbs": WRITES, "times": times })
}

/// Returns a fault of the events of a kind.
pub(super) fn of_events(fault: &str, kind: Kind) -> Value {
    json!({ "fault": fault, "resource": kind.resource() })
}

/// Returns a rule with one more field.
pub(super) fn with(mut rule: Value, field: &str, value: impl Into<Value>) -> Value {
    rule[field] = value.into();
    rule
}

/// Returns how many responses the faults that have not ended have cut off.
pub(super) async fn cut_bodies(api: &Api) -> usize {
    let all = api.okt("GET", "faults", &Value::Null).await;
    let faults = all["items"].as_array().into_iter().flatten();
    let strikes = faults.flat_map(|fault| fault["strikes"].as_array().into_iter().flatten());
    strikes
        .filter(|strike| {
            strike
                .as_str()
                .is_some_and(|strike| strike.contains("a body cut"))
        })
        .count()
}

impl InjectedFault {
    /// Injects a fault, or a chaos if the rule has a seed.
    pub(super) async fn inject(api: &Api, clients: &[&str], rule: Value) -> Self {
        let path = if rule["seed"].is_null() {
            "faults"
        } else {
            "chaos"
        };
        let mut ids = Vec::new();
        for client in clients {
            let limited = with(rule.clone(), "client", *client);
            let injected = api.okt("POST", path, &limited).await;
            ids.push(injected["id"].as_u64().expect("an id"));
        }
        Self { rule, ids }
    }

    /// Returns how often it has struck.
    pub(super) async fn struck(&self, api: &Api) -> u64 {
        let mut struck = 0;
        for id in &self.ids {
            let fault = api.okt("GET", &format!("faults/{id}"), &Value::Null).await;
            struck += fault["struck"].as_u64().expect("a number");
        }
        struck
    }

    /// Ends it and prints its strikes.
    ///
    /// # Panics
    /// If it has never struck.
    pub(super) async fn end(self, api: &Api, operator: &str) {
        let mut strikes = Vec::new();
        for id in self.ids {
            let path = format!("faults/{id}");
            let ended = api.okt("DELETE", &path, &Value::Null).await;
            strikes.extend(ended["strikes"].as_array().cloned().unwrap_or_default());
        }
        println!("{operator}: {} struck {} times", self.rule, strikes.len());
        for strike in strikes.iter().take(4) {
            println!("  {}", strike.as_str().unwrap_or_default());
        }
        assert!(
            !strikes.is_empty(),
            "{operator}: {} never struck",
            self.rule
        );
    }
}
