//! A webhook that drops what operators record, on a real API server: `why` names it.

use std::future::ready;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use axum::routing::post;
use axum::{Json, Router};
use axum_server::tls_rustls::RustlsConfig;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use expect_test::expect;
use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, PostParams};
use kube::{Api, Client};
use okt::{Group, Membership, Operator, crd};
use okt_apiserver::Kubernetes;
use okt_tests::{Cluster, Database, Databases, until};
use rustls::ServerConfig;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::PrivateKeyDer;
use serde_json::{Value, json};

use crate::real::run_until;

/// The maximum wait for a condition.
const PATIENCE: Duration = Duration::from_mins(5);

/// Returns what the webhook answers: the object of the review without this field.
fn dropped(review: &Value, field: &str) -> Json<Value> {
    let request = &review["request"];
    let allowed = request["resource"]["resource"] == "databases";
    let mut response = json!({ "uid": request["uid"], "allowed": allowed });
    if request["object"].pointer(field).is_some() {
        let patch = json!([{ "op": "remove", "path": field }]).to_string();
        response["patchType"] = json!("JSONPatch");
        response["patch"] = json!(STANDARD.encode(patch));
    }
    Json(
        json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response }),
    )
}

/// Serves the answers on this machine; returns the part of a webhook that leads there.
fn serve(field: &'static str) -> Value {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).expect("a key");
    let tls = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|config| {
            let config = config.with_no_client_auth();
            config.with_single_cert(vec![made.cert.der().clone()], key)
        })
        .expect("settings of TLS");
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("it listens");
    listener.set_nonblocking(true).expect("a listener");
    let port = listener.local_addr().expect("an address").port();
    let answer = post(move |Json(review): Json<Value>| ready(dropped(&review, field)));
    let routes = Router::new().route("/", answer);
    let tls = RustlsConfig::from_config(Arc::new(tls));
    let server = axum_server::from_tcp_rustls(listener, tls).expect("a server");
    tokio::spawn(server.serve(routes.into_make_service()));
    json!({
        "url": format!("https://localhost:{port}/"),
        "caBundle": STANDARD.encode(made.cert.pem()),
    })
}

/// Puts the webhook before the status of databases, and waits until the server asks it.
async fn trim(client: &Client, field: &'static str) {
    let configuration: MutatingWebhookConfiguration = serde_json::from_value(json!({
        "metadata": { "name": "trim" },
        "webhooks": [{
            "name": "trim.policy.example.com",
            "admissionReviewVersions": ["v1"],
            "clientConfig": serve(field),
            "sideEffects": "None",
            "rules": [
                {
                    "apiGroups": ["demo.okt.dev"], "apiVersions": ["*"], "operations": ["UPDATE"],
                    "resources": ["databases/status"],
                },
                { "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"] },
            ],
        }],
    }))
    .expect("a configuration");
    let all: Api<MutatingWebhookConfiguration> = Api::all(client.clone());
    all.create(&PostParams::default(), &configuration)
        .await
        .expect("it is put there");
    until("the webhook is asked", async || is_asked(client).await).await;
}

/// Returns whether the server asks the webhook: it refuses each map.
async fn is_asked(client: &Client) -> bool {
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let map = json!({ "metadata": { "name": "asked" } });
    let map: ConfigMap = serde_json::from_value(map).expect("a map");
    let dry = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    maps.create(&dry, &map).await.is_err()
}

#[tokio::test]
#[ignore = "needs a real API server; run with --include-ignored"]
async fn a_webhook_that_drops_what_is_recorded_is_named() {
    let Some(server) = Kubernetes::start_or_skip("a webhook that drops the status")
        .await
        .expect("a server")
    else {
        return;
    };
    let client = server.client();
    let cluster: Cluster<Databases> = Cluster::new(client.clone(), PATIENCE);
    cluster
        .define(crd::<Database>().expect("a definition"))
        .await;
    let membership = Membership::join(client.clone(), Group::new("databases", "default"));
    let operator = Operator::new(client.clone(), Databases::default()).replicas(&membership);
    let operator = tokio::spawn(operator.run(std::future::pending()));

    let configurations: Api<MutatingWebhookConfiguration> = Api::all(client.clone());
    let dropped = [
        // As from a tool that applies its own copy of the object.
        (
            "/status",
            "nothing is recorded since",
            expect![[r"
                Its operator has put its finalizer on the object, and nothing is recorded since: what it writes to the status is dropped or refused, or it has ended.
                  → the webhook trim.policy.example.com in mutatingwebhookconfiguration/trim may change the status: if it drops fields, the operator can record nothing; exclude the status subresource in its rules
                  → 1 of 1 replicas of databases in the namespace default act; their log says what they could not write: kubectl -n default logs -l app.kubernetes.io/name=databases
            "]],
        ),
        // As from a tool that knows other fields only.
        (
            "/status/lifecycle",
            "Its operator cannot record what it does",
            expect![[r"
                Its operator cannot record what it does: the API server does not keep what the operator writes: record a status: the answer has no `lifecycle`; an admission webhook or a proxy changes the status on its way; the write is retried
                  → the webhook trim.policy.example.com in mutatingwebhookconfiguration/trim may change the status: if it drops fields, the operator can record nothing; exclude the status subresource in its rules
                  → see the log of the API server; the operator tries again by itself
            "]],
        ),
    ];
    for (field, words, cause) in dropped {
        trim(&client, field).await;
        let name = field.rsplit('/').next().unwrap_or_default();
        cluster.create(name, json!({})).await;
        let printed = run_until(&server, "", &["why", name], |code, printed| {
            assert_eq!(code, Some(0), "{printed}");
            printed.contains(words)
        })
        .await;
        let paragraph = printed.split("\n\n").nth(1).expect("a cause");
        cause.assert_eq(&format!("{}\n", paragraph.trim_end()));
        configurations
            .delete("trim", &DeleteParams::default())
            .await
            .expect("it is deleted");
        // Until then the server asks it, and not the next one.
        until("the webhook is forgotten", async || {
            !is_asked(&client).await
        })
        .await;
    }
    operator.abort();
    let _ = operator.await;
    membership.leave().await;
    server.stop().await;
}
