//! Compares the responses of the test double to CRDs with those of a real API server.
//!
//! `crd_rules.json` contains the CRDs and the response of kube-apiserver 1.36.1: nothing, or the code
//! and the refusal.
//! `ratcheting.json` contains a sequence of requests, and the code and the refusal of each: an object,
//! then a stricter schema, then various changes.

use okt_apiserver::ApiServer;
use serde_json::Value;

use crate::support::{CRDS, Comparison, send, without_reason};

/// Refusals whose messages show internal structures of the server, or several mistakes: the test only
/// requires that there is a refusal.
const REFUSED: [&str; 14] = [
    "bad kind",
    "bad plural",
    "bad version name",
    "conversion unknown",
    "embedded string",
    "group without dot",
    "no kind",
    "no plural",
    "no versions",
    "not stored",
    "bad pattern",
    "status with any of at root",
    "two versions one name",
    "null type",
];

#[tokio::test]
async fn crds_are_accepted_and_refused_as_on_a_real_server() {
    let table: Value = serde_json::from_str(include_str!("crd_rules.json")).expect("JSON");
    let mut comparison = Comparison::default();
    for case in table.as_array().expect("cases") {
        let name = case["name"].as_str().expect("a name");
        let expected = case["answer"].as_str().unwrap_or_default();
        let answer = match send(&ApiServer::new(), "POST", CRDS, &case["crd"]).await {
            Ok(_) => String::new(),
            Err((code, refusal)) => format!("{code} {refusal}"),
        };
        let is_same = if REFUSED.contains(&name) {
            answer.starts_with("422")
        } else {
            answer == expected
        };
        comparison.add(is_same, name, expected, &answer);
    }
    comparison.check();
}

#[tokio::test]
async fn unchanged_invalid_values_are_tolerated_as_on_a_real_server() {
    let steps: Value = serde_json::from_str(include_str!("ratcheting.json")).expect("JSON");
    let server = ApiServer::new();
    let mut comparison = Comparison::default();
    for step in steps.as_array().expect("steps") {
        let (method, path) = (&step["method"], &step["path"]);
        let method = method.as_str().expect("a method");
        let path = path.as_str().expect("a path");
        let mut body = step["body"].clone();
        if method == "PUT" {
            let now = send(&server, "GET", path, &Value::Null)
                .await
                .expect("it is there");
            body["metadata"]["resourceVersion"] = now["metadata"]["resourceVersion"].clone();
        }
        let answer = send(&server, method, path, &body).await;
        let refusal = answer.err().map(|(_, refusal)| without_reason(&refusal));
        let expected = step["answer"]
            .as_str()
            .map(without_reason)
            .unwrap_or_default();
        let refusal = refusal.unwrap_or_default();
        let what = format!("{method} {}", body["spec"]);
        comparison.add(refusal == expected, &what, &expected, &refusal);
    }
    comparison.check();
}
