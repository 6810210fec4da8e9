//! Objects that the API server lets a program check and complete before it stores them.

use http::Request;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use kube::client::Body;
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Client, CustomResourceExt, ResourceExt};
use okt_examples::tents::v1;
use okt_testing::{Kubernetes, free_ports};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::replica::Replica;
use crate::{STAGE, show_logs, until};

/// Who may store what, and what the API server says.
const ANSWERS: &str = r#"create v1, for nobody: 422 admission webhook "validate.tents.demo.okt.dev" denied the request: spec.people: a tent is for somebody
create v1alpha1, for nobody: 422 admission webhook "validate.tents.demo.okt.dev" denied the request: spec.people: a tent is for somebody
create v1, for many: 201
create v1alpha1, for many: 201
create v1, with stoves: 201, warning 299 - "there are fewer lamps than stoves: whoever cooks at night sees nothing"
patch the field: 422 admission webhook "validate.tents.demo.okt.dev" denied the request: spec.site.field: a tent is not carried to another field
patch a label: 200
delete: 200
"#;

/// Applies what `manifests` prints for the webhooks, with a program outside of the cluster.
async fn install(client: &Client, port: u16) {
    let mut program = Command::new(env!("CARGO_BIN_EXE_tents"));
    let printed = program.args(["manifests", "--image", "tents"]).output();
    let printed = String::from_utf8(printed.await.expect("it runs").stdout).expect("text");
    let documents: Vec<Value> = serde_saphyr::from_multiple(&printed).expect("YAML");
    let kinds = [
        "CustomResourceDefinition",
        "MutatingWebhookConfiguration",
        "ValidatingWebhookConfiguration",
    ];
    let is_one = |document: &Value| kinds.iter().any(|kind| document["kind"] == *kind);
    let wanted: Vec<_> = documents.into_iter().filter(is_one).collect();
    assert_eq!(wanted.len(), kinds.len());
    for mut document in wanted {
        let config = match document.get_mut("webhooks") {
            Some(webhooks) => {
                // After the time the server goes on without an answer, and a busy machine takes some.
                webhooks[0]["timeoutSeconds"] = json!(30);
                &mut webhooks[0]["clientConfig"]
            }
            None => &mut document["spec"]["conversion"]["webhook"]["clientConfig"],
        };
        let path = config["service"]["path"].as_str().expect("a path");
        *config = json!({ "url": format!("https://localhost:{port}{path}") });
        let api_version = document["apiVersion"].as_str().expect("one");
        let (group, version) = api_version.split_once('/').expect("a group");
        let kind = document["kind"].as_str().expect("one");
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &kind);
        let name = document["metadata"]["name"].as_str().expect("one");
        let parameters = PatchParams::apply("test").force();
        let applied = api.patch(name, &parameters, &Patch::Apply(&document)).await;
        applied.expect("it is accepted");
    }
}

/// Lets a version be stored, as while a release is brought out.
async fn store_as(client: &Client, version: &str) {
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    let name = v1::Tent::crd_name();
    let mut crd = crds.get(name).await.expect("it is there");
    for it in &mut crd.spec.versions {
        it.storage = it.name == version;
    }
    let stored = crds.replace(name, &PostParams::default(), &crd).await;
    stored.expect("it is accepted");
}

/// Sends a request about tents (`v1`) or one of them (`v1/hot`); returns the answer as text.
async fn send(client: &Client, verb: &str, place: &str, body: &Value) -> String {
    sent(client, verb, place, body).await.0
}

/// Sends a request; returns the answer as text, and the object in it.
async fn sent(client: &Client, verb: &str, place: &str, body: &Value) -> (String, Value) {
    let (version, rest) = place.split_at(place.find(['/', '?']).unwrap_or(place.len()));
    let path = format!("/apis/demo.okt.dev/{version}/namespaces/default/tents{rest}");
    let mut body = body.clone();
    if verb == "POST" {
        body["apiVersion"] = json!(format!("demo.okt.dev/{version}"));
    }
    let content = if verb == "PATCH" {
        "application/merge-patch+json"
    } else {
        "application/json"
    };
    let request = Request::builder()
        .method(verb)
        .uri(path)
        .header("Content-Type", content)
        .body(Body::from(body.to_string().into_bytes()));
    let answer = client.send(request.expect("a request")).await;
    let answer = answer.expect("an answer");
    let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
    let content = answer.into_body().collect_bytes().await.expect("a body");
    // Where the kind is not served yet, the answer is a plain text.
    let object: Value = serde_json::from_slice(&content).unwrap_or_default();
    let mut text = status.to_string();
    if status >= 400 {
        text.push_str(&format!(
            " {}",
            object["message"].as_str().unwrap_or_default()
        ));
    }
    for warning in headers.get_all("Warning") {
        text.push_str(&format!(", warning {}", warning.to_str().expect("text")));
    }
    (text, object)
}

fn tent(name: &str, spec: &Value) -> Value {
    json!({ "kind": "Tent", "metadata": { "name": name }, "spec": spec })
}

fn first(name: &str, size: u8) -> Value {
    tent(name, &json!({ "size": size, "site": "hill/3" }))
}

fn last(name: &str, people: u8, stoves: u8) -> Value {
    let site = json!({ "field": "hill" });
    tent(
        name,
        &json!({ "people": people, "site": site, "stoves": stoves }),
    )
}

fn replica(kubernetes: &Kubernetes, name: &'static str, port: u16, metrics: u16) -> Replica {
    let mut program = Command::new(env!("CARGO_BIN_EXE_tents"));
    program.args(["run", "--webhook-address", &format!("127.0.0.1:{port}")]);
    program.args(["--metrics-address", &format!("127.0.0.1:{metrics}")]);
    Replica::start_program(name, kubernetes.kubeconfig(), program)
}

#[tokio::test]
#[ignore = "needs a real API server; run with --include-ignored"]
async fn objects_are_checked_and_completed_and_nobody_is_locked_out_without_a_webhook() {
    let _stage = STAGE.lock().await;
    show_logs();
    let started = Kubernetes::start_or_skip("admission").await;
    let Some(kubernetes) = started.expect("a server") else {
        return;
    };
    let client = kubernetes.client();
    let [port, metrics, next_metrics] = free_ports().expect("three ports");
    install(&client, port).await;
    let answering = replica(&kubernetes, "first", port, metrics);
    until("the webhooks are trusted", async || {
        let refused = send(&client, "POST", "v1?dryRun=All", &last("x", 0, 0)).await;
        // The server reads the authority of each webhook at another moment.
        let converted = send(&client, "POST", "v1alpha1?dryRun=All", &first("x", 1)).await;
        let (_, tent) = sent(&client, "POST", "v1?dryRun=All", &last("x", 6, 0)).await;
        let is_complete = tent["spec"]["lamps"] == json!(["entrance"]);
        (refused.starts_with("422") && converted == "201" && is_complete).then_some(())
    })
    .await;
    let mut answers = String::new();
    let moved = json!({ "spec": { "site": { "field": "river" } } });
    let labelled = json!({ "metadata": { "labels": { "color": "red" } } });
    for (what, verb, place, body) in [
        ("create v1, for nobody", "POST", "v1", last("none", 0, 0)),
        (
            "create v1alpha1, for nobody",
            "POST",
            "v1alpha1",
            first("none", 0),
        ),
        ("create v1, for many", "POST", "v1", last("many", 6, 0)),
        (
            "create v1alpha1, for many",
            "POST",
            "v1alpha1",
            first("some", 6),
        ),
        ("create v1, with stoves", "POST", "v1", last("hot", 2, 3)),
        ("patch the field", "PATCH", "v1/many", moved),
        ("patch a label", "PATCH", "v1/many", labelled),
        ("delete", "DELETE", "v1/hot", json!({})),
    ] {
        let answer = send(&client, verb, place, &body).await;
        answers.push_str(&format!("{what}: {answer}\n"));
    }
    assert_eq!(answers, ANSWERS);
    let metrics = reqwest::get(format!("http://127.0.0.1:{metrics}/metrics")).await;
    let metrics = metrics.expect("an answer").text().await.expect("text");
    for webhook in ["convert", "validate", "complete"] {
        let counted = format!(
            r#"controller_runtime_webhook_requests_total{{code="200",webhook="/{webhook}/tents.demo.okt.dev"}}"#
        );
        assert!(metrics.contains(&counted), "{metrics}");
    }
    let tents: Api<v1::Tent> = Api::default_namespaced(client.clone());
    for name in ["many", "some"] {
        let tent = tents.get(name).await.expect("it is there");
        assert_eq!(tent.spec.lamps, ["entrance"], "{name}");
    }

    // While no webhook answers, objects pass; the next operator reports what it does not act upon.
    drop(answering);
    until("no webhook answers", async || {
        let answer = send(&client, "POST", "v1", &last("none", 0, 0)).await;
        (answer == "201").then_some(())
    })
    .await;
    let answer = send(&client, "POST", "v1", &last("late", 6, 0)).await;
    assert_eq!(answer, "201");
    // So does what is stored as it comes: nobody has to convert it to ask about it.
    store_as(&client, "v1alpha1").await;
    until("the first version is stored", async || {
        let answer = send(&client, "POST", "v1alpha1", &first("early", 1)).await;
        (answer == "201").then_some(())
    })
    .await;
    let _next = replica(&kubernetes, "second", port, next_metrics);
    let stalled = until("it is reported", async || {
        let tent = tents.get("none").await.expect("it is there");
        let mut conditions = tent.status?.conditions.into_iter();
        conditions.find(|it| it.type_ == "Stalled" && it.status == "True")
    })
    .await;
    assert_eq!(stalled.reason, "Invalid");
    until("the other one stands", async || {
        let tent = tents.get("late").await.expect("it is there");
        let position = tent.status?.lifecycle?;
        (position.state.known() == Some(v1::TentState::Standing)).then_some(())
    })
    .await;
    let answer = send(&client, "DELETE", "v1/none", &json!({})).await;
    assert_eq!(answer, "200");
    until("it is gone", async || {
        let all = tents.list(&kube::api::ListParams::default()).await.ok()?;
        (!all.items.iter().any(|it| it.name_any() == "none")).then_some(())
    })
    .await;
    kubernetes.stop().await;
}
