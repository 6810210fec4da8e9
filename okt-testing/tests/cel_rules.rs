//! This file holds the answers of the double to CEL rules against those of a real API server.
//!
//! `cel_rules.json` holds the rules, the schemas that they stand on, and what kube-apiserver 1.36.1
//! answered when a CRD with them was created: nothing, or the refusal, without the line and column
//! that it shows.

use http::Request;
use okt_testing::ApiServer;
use serde_json::{Value, json};

/// What the server answers to a CRD with that schema.
async fn ask(server: &ApiServer, schema: &Value) -> (u16, String) {
    let crd = json!({
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
    });
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All";
    let request = Request::post(path)
        .header("content-type", "application/json")
        .body(serde_json::to_vec(&crd).expect("JSON"))
        .expect("a request");
    match server.client().request::<Value>(request).await {
        Ok(_) => (201, String::new()),
        Err(kube::Error::Api(status)) => {
            let message = status.message.clone();
            let refusal = message.split_once(" is invalid: ").map(|(_, it)| it);
            (status.code, refusal.unwrap_or(&message).to_owned())
        }
        Err(error) => panic!("no answer: {error}"),
    }
}

#[tokio::test]
async fn rules_are_accepted_and_refused_as_a_real_server_does() {
    let table: Value = serde_json::from_str(include_str!("cel_rules.json")).expect("JSON");
    let server = ApiServer::new();
    let (mut same, mut not_served, mut wrong) = (0, Vec::new(), Vec::new());
    for case in table["cases"].as_array().expect("cases") {
        let name = case["schema"].as_str().expect("a name");
        let mut schema = table["schemas"][name].clone();
        if let Some(rule) = case.get("rule") {
            schema["x-kubernetes-validations"] = json!([{ "rule": rule }]);
        }
        if !name.starts_with("root") {
            schema = json!({ "type": "object", "properties": { "spec": schema } });
        }
        let (code, answer) = ask(&server, &schema).await;
        let expected = case["answer"].as_str().unwrap_or_default();
        if code == 501 {
            not_served.push(format!("{name}: {} {answer}", case["rule"]));
        } else if answer == expected {
            same += 1;
        } else {
            wrong.push(format!(
                "{name}: {}\n  real:   {expected}\n  double: {answer}",
                case["rule"]
            ));
        }
    }
    eprintln!("{same} the same, {} not served", not_served.len());
    assert!(
        wrong.is_empty(),
        "{} differ:\n{}\nnot served:\n{}",
        wrong.len(),
        wrong.join("\n"),
        not_served.join("\n")
    );
}
