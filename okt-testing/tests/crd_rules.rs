//! This file holds the answers of the double to CRDs against those of a real API server.
//!
//! `crd_rules.json` holds the CRDs and what kube-apiserver 1.36.1 answered: nothing, or the code and
//! the refusal.

use http::Request;
use okt_testing::ApiServer;
use serde_json::Value;

/// Refusals whose sentences show the server's own structures, or mistakes that come in a row: here
/// it must be enough that there is a refusal.
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

/// A kind without a served version, and conversion webhooks.
const NOT_SERVED: [&str; 2] = ["not served", "webhook without client"];

async fn post(crd: &Value) -> String {
    let request = Request::post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions")
        .header("content-type", "application/json")
        .body(serde_json::to_vec(crd).expect("JSON"))
        .expect("a request");
    match ApiServer::new().client().request::<Value>(request).await {
        Ok(_) => String::new(),
        Err(kube::Error::Api(status)) => {
            let message = status.message.clone();
            let refusal = message.split_once(" is invalid: ").map(|(_, it)| it);
            format!("{} {}", status.code, refusal.unwrap_or(&message))
        }
        Err(error) => panic!("no answer: {error}"),
    }
}

#[tokio::test]
async fn crds_are_accepted_and_refused_as_a_real_server_does() {
    let table: Value = serde_json::from_str(include_str!("crd_rules.json")).expect("JSON");
    let mut differ = Vec::new();
    for case in table.as_array().expect("cases") {
        let name = case["name"].as_str().expect("a name");
        let expected = case["answer"].as_str().unwrap_or_default();
        let answer = post(&case["crd"]).await;
        let fits = if NOT_SERVED.contains(&name) {
            answer.starts_with("501")
        } else if REFUSED.contains(&name) {
            answer.starts_with("422")
        } else {
            answer == expected
        };
        if !fits {
            differ.push(format!("{name}\n  real:   {expected}\n  double: {answer}"));
        }
    }
    assert!(
        differ.is_empty(),
        "{} differ:\n{}",
        differ.len(),
        differ.join("\n")
    );
}
