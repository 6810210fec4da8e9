//! Sends random bodies for every kind without a CRD to both servers: each is a valid manifest with a mistake or two.
//!
//! `OKT_BODIES` sets their number, `OKT_SEED` repeats a run, and `OKT_SHOW` sets how many differences of each kind are
//! explained.

use std::collections::BTreeMap;

use http::Request;
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use okt_testing::{ApiServer, Kubernetes};
use regex::Regex;
use serde_json::{Value, json};

use crate::dice::Dice;
use crate::{FIXED, number, print};

const KINDS: &str = include_str!("../../../okt-apiserver/src/types/kinds.txt");
const MANIFESTS: &str = include_str!("manifests.yaml");
/// The maximum number of bodies in a thousand that one server takes and the other refuses, or that they refuse
/// with other codes.
const BOUND: usize = 5;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a real API server; run with --include-ignored"]
async fn random_bodies_of_all_kinds_are_judged_alike() {
    let started = Kubernetes::start_or_skip("the differential test of bodies").await;
    let Some(kubernetes) = started.expect("the real server starts") else {
        return;
    };
    let (real, double) = (kubernetes.client(), ApiServer::new().client());
    let manifests: Vec<Value> = serde_saphyr::from_multiple(MANIFESTS).expect("they are YAML");
    let bodies = usize::try_from(number("OKT_BODIES").unwrap_or(4000)).expect("it is small");
    let seed = number("OKT_SEED").unwrap_or(FIXED);
    let shown = usize::try_from(number("OKT_SHOW").unwrap_or(1)).expect("it is small");
    let mut dice = Dice::new(seed);
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut explained: BTreeMap<String, usize> = BTreeMap::new();
    for index in 0..bodies {
        let manifest = &manifests[index % manifests.len()];
        // The first bodies are the manifests as they are.
        let body = match index / manifests.len() {
            0 => manifest.clone(),
            _ => mutated(&mut dice, manifest, &manifests),
        };
        let answers = (send(&real, &body).await, send(&double, &body).await);
        let verdict = compare(&answers.0, &answers.1);
        *counts.entry(verdict).or_default() += 1;
        let place = format!("{verdict} {}", manifest["kind"]);
        let count = explained.entry(place.clone()).or_default();
        if verdict != "same" && *count < shown {
            *count += 1;
            print(&format!(
                "{place}\n  body   {body}\n  real   {}\n  double {}",
                answers.0, answers.1
            ));
        }
    }
    kubernetes.stop().await;
    let judged = counts.get("judged").copied().unwrap_or(0);
    print(&format!(
        "OKT_SEED={seed}: of {bodies} bodies {counts:?}: {judged} are judged differently"
    ));
    assert!(
        judged * 1000 <= bodies * BOUND,
        "more than {BOUND} in 1,000 bodies are judged differently"
    );
}

/// The answer to a body: its code, and the object or the message.
struct Answer {
    code: u16,
    body: Value,
}

impl std::fmt::Display for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.code, self.body)
    }
}

/// Creates an object in a dry run.
async fn send(client: &Client, body: &Value) -> Answer {
    let version = body["apiVersion"].as_str().expect("a version");
    let kind = body["kind"].as_str().expect("a kind");
    let line = KINDS
        .lines()
        .map(|line| line.split(' ').collect::<Vec<_>>());
    let line = line
        .into_iter()
        .find(|words| words.starts_with(&[version, kind]))
        .expect("it is served");
    let root = if version.contains('/') { "apis" } else { "api" };
    let scope = if line[4].split(',').any(|word| word == "cluster") {
        ""
    } else {
        "/namespaces/default"
    };
    let path = format!(
        "/{root}/{version}{scope}/{}?dryRun=All&fieldValidation=Strict",
        line[2]
    );
    let request = Request::post(path)
        .header("content-type", "application/json")
        .body(Body::from(body.to_string().into_bytes()));
    let reply = client
        .send(request.expect("it is well formed"))
        .await
        .expect("an answer");
    let code = reply.status().as_u16();
    let bytes = reply
        .into_body()
        .collect()
        .await
        .expect("a body")
        .to_bytes();
    let found: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let body = if code < 300 {
        normal(found)
    } else {
        found["message"].clone()
    };
    Answer { code, body }
}

/// Returns an object without what two servers choose differently.
fn normal(mut object: Value) -> Value {
    for key in [
        "uid",
        "creationTimestamp",
        "managedFields",
        "resourceVersion",
    ] {
        object["metadata"]
            .as_object_mut()
            .expect("metadata")
            .remove(key);
    }
    let uid = Regex::new("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}").expect("it is valid");
    let address = Regex::new(r#""10\.(0|96)\.\d+\.\d+""#).expect("it is valid");
    let port = Regex::new(r#""(healthCheckNodePort|nodePort)":\d+"#).expect("it is valid");
    let time = Regex::new(r#""lastPhaseTransitionTime":"[^"]*""#).expect("it is valid");
    let text = object.to_string();
    let text = uid.replace_all(&text, "uid");
    let text = address.replace_all(&text, "\"address\"");
    let text = port.replace_all(&text, "\"$1\":0");
    let text = time.replace_all(&text, "\"lastPhaseTransitionTime\":\"\"");
    serde_json::from_str(&text).expect("it is still JSON")
}

fn compare(real: &Answer, double: &Answer) -> &'static str {
    let is_taken = |answer: &Answer| answer.code < 300;
    if is_taken(real) != is_taken(double) || real.code != double.code {
        "judged"
    } else if real.body == double.body {
        "same"
    } else if is_taken(real) {
        "object"
    } else {
        "message"
    }
}

/// Returns a manifest with one or two changes.
fn mutated(dice: &mut Dice, manifest: &Value, all: &[Value]) -> Value {
    let mut body = manifest.clone();
    for _ in 0..=usize::from(dice.chance(25)) {
        let mut paths = Vec::new();
        pointers(&body, "", &mut paths);
        paths.retain(|path| {
            !matches!(
                path.as_str(),
                "/apiVersion" | "/kind" | "/metadata" | "/metadata/namespace"
            )
        });
        if paths.is_empty() {
            return body;
        }
        let path = dice.pick(&paths).clone();
        let (parent, key) = path.rsplit_once('/').expect("it begins with a slash");
        let change = dice.below(10);
        if change < 3 {
            remove(body.pointer_mut(parent).expect("a parent"), key);
            continue;
        }
        let target = body.pointer_mut(&path).expect("a value");
        match (change, target) {
            (7, Value::Object(fields)) => {
                let name = dice.pick(&["unknown", "status", "name", "enabled", "Spec"]);
                fields.insert((*name).to_owned(), value(dice));
            }
            (8, Value::Array(items)) if !items.is_empty() => items.push(items[0].clone()),
            (9, target) => {
                let mut same = Vec::new();
                for other in all {
                    let mut paths = Vec::new();
                    pointers(other, "", &mut paths);
                    let named = paths
                        .iter()
                        .filter(|path| path.rsplit('/').next() == Some(key));
                    same.extend(named.filter_map(|path| other.pointer(path)));
                }
                *target = dice.pick(&same).to_owned().clone();
            }
            (_, target) => *target = value(dice),
        }
    }
    body
}

fn remove(parent: &mut Value, key: &str) {
    match parent {
        Value::Object(fields) => drop(fields.remove(&key.replace("~1", "/").replace("~0", "~"))),
        Value::Array(items) => drop(items.remove(key.parse().expect("an index"))),
        _ => {}
    }
}

/// Collects the JSON pointers of all values below a value.
fn pointers(value: &Value, path: &str, all: &mut Vec<String>) {
    let children: Vec<(String, &Value)> = match value {
        Value::Object(fields) => fields
            .iter()
            .map(|(key, value)| (key.replace('~', "~0").replace('/', "~1"), value))
            .collect(),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .map(|(at, value)| (at.to_string(), value))
            .collect(),
        _ => Vec::new(),
    };
    for (key, value) in children {
        let path = format!("{path}/{key}");
        pointers(value, &path, all);
        all.push(path);
    }
}

/// Returns a value that is right somewhere and wrong in most places.
fn value(dice: &mut Dice) -> Value {
    let long = "x".repeat(70);
    let values = json!([
        null, "", 0, -1, 1, 70000, 1.5, true, [], {}, "a", "A B", "a.b", "1", "-", ["a"], { "a": "b" }, long,
        3_000_000_000_u64, "1Gi", "50%", "Always", "/a", [1], [null], { "a": 1 }, "latest",
    ]);
    dice.pick(values.as_array().expect("a list")).clone()
}
