//! Helpers for these tests: requests with their refusals, and the comparison with a real server.

use http::Request;
use okt_apiserver::ApiServer;
use serde_json::{Value, json};

pub(crate) const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Returns the CRD of a kind of one version with this schema.
pub(crate) fn crd(schema: &Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "things.rules.okt.dev" },
        "spec": {
            "group": "rules.okt.dev",
            "scope": "Namespaced",
            "names": { "plural": "things", "kind": "Thing" },
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "schema": { "openAPIV3Schema": schema },
            }],
        },
    })
}

/// Sends a request and returns the response, or the code and the refusal.
pub(crate) async fn send(
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

/// Sends a POST and returns the code and the refusal.
pub(crate) async fn post(server: &ApiServer, path: &str, object: &Value) -> (u16, String) {
    match send(server, "POST", path, object).await {
        Ok(_) => (201, String::new()),
        Err(refusal) => refusal,
    }
}

/// Removes the reason why an evaluation failed, because the library has its own messages.
pub(crate) fn without_reason(answer: &str) -> String {
    match (
        answer.split_once(": \"object\": "),
        answer.split_once(" evaluating rule: "),
    ) {
        (Some((before, _)), Some((_, after))) => format!("{before}: evaluating rule: {after}"),
        _ => answer.to_owned(),
    }
}

/// The differences between the test double and the real server.
#[derive(Default)]
pub(crate) struct Comparison {
    same: usize,
    differ: Vec<String>,
}

impl Comparison {
    pub(crate) fn add(&mut self, is_same: bool, what: &str, real: &str, double: &str) {
        if is_same {
            self.same += 1;
        } else {
            let difference = format!("{what}\n  real:   {real}\n  double: {double}");
            self.differ.push(difference);
        }
    }

    /// Checks that all responses are the same.
    pub(crate) fn check(&self) {
        let Self { same, differ } = self;
        let count = differ.len();
        let differ = differ.join("\n");
        assert_eq!(count, 0, "{same} the same, {count} differ:\n{differ}");
    }
}
