//! This file holds the answers of the double to CRDs against those of a real API server.
//!
//! `crd_rules.json` holds the CRDs and what kube-apiserver 1.36.1 answered: nothing, or the code and
//! the refusal.
//! `ratcheting.json` holds requests in a row, and the code and the refusal of each: an object, then a
//! stricter schema, then changes here and there.

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
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    match send(&ApiServer::new(), "POST", path, crd).await {
        Ok(_) => String::new(),
        Err((code, refusal)) => format!("{code} {refusal}"),
    }
}

/// The answer, or the code and why not.
async fn send(
    server: &ApiServer,
    method: &str,
    path: &str,
    body: &Value,
) -> Result<Value, (u16, String)> {
    let media = if method == "PATCH" {
        "application/merge-patch+json"
    } else {
        "application/json"
    };
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", media)
        .body(serde_json::to_vec(body).expect("JSON"))
        .expect("a request");
    match server.client().request::<Value>(request).await {
        Ok(answer) => Ok(answer),
        Err(kube::Error::Api(status)) => {
            let message = status.message.clone();
            let refusal = message.split_once(" is invalid: ").map(|(_, it)| it);
            Err((status.code, refusal.unwrap_or(&message).to_owned()))
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

#[tokio::test]
async fn what_an_update_leaves_as_it_was_is_tolerated_as_on_a_real_server() {
    let steps: Value = serde_json::from_str(include_str!("ratcheting.json")).expect("JSON");
    let server = ApiServer::new();
    let mut differ = Vec::new();
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
        if refusal.clone().unwrap_or_default() != expected {
            differ.push(format!(
                "{method} {}\n  real:   {expected}\n  double: {refusal:?}",
                body["spec"]
            ));
        }
    }
    assert!(
        differ.is_empty(),
        "{} differ:\n{}",
        differ.len(),
        differ.join("\n")
    );
}

/// Why an evaluation failed is said by the library in its own words.
fn without_reason(answer: &str) -> String {
    match (
        answer.split_once(": \"object\": "),
        answer.split_once(" evaluating rule: "),
    ) {
        (Some((before, _)), Some((_, after))) => format!("{before}: evaluating rule: {after}"),
        _ => answer.to_owned(),
    }
}
