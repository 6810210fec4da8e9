//! Tests that no request of a client makes the server panic or hang.

use http::Request;
use kube::Client;
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::runtime::Builder;

use crate::support::{create, get, json_patch, merge, refusal, server};

const WIDGET: &str = "/apis/demo.okt.dev/v1/namespaces/default/widgets/a";
const TYPES: [&str; 7] = [
    "application/json",
    "application/yaml",
    "application/merge-patch+json",
    "application/json-patch+json",
    "application/apply-patch+yaml",
    "application/strategic-merge-patch+json",
    "text/plain",
];

/// Sends a request and returns the status; it fails if there is no response.
async fn send(client: &Client, request: Request<Vec<u8>>) -> u16 {
    let response = client
        .send(request.map(Into::into))
        .await
        .expect("an answer");
    response.status().as_u16()
}

fn any_json() -> impl Strategy<Value = Value> {
    let keys = prop::sample::select(vec![
        "metadata",
        "spec",
        "status",
        "name",
        "kind",
        "apiVersion",
        "labels",
        "finalizers",
        "conditions",
        "type",
        "color",
        "replicas",
        "tags",
        "managedFields",
        "ownerReferences",
        "lifecycle",
        "state",
        "op",
        "path",
        "value",
        "fieldsV1",
        "$patch",
        "uid",
        "free",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-zA-Z./{}\":-]{0,8}".prop_map(Value::from),
        Just(json!("demo.okt.dev/v1")),
        Just(json!("Widget")),
        Just(json!("a")),
        Just(json!("/spec/color")),
        Just(json!("replace")),
    ];
    leaf.prop_recursive(5, 40, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(keys.clone(), inner, 0..5).prop_map(|map| {
                Value::Object(map.into_iter().map(|(k, v)| (k.to_owned(), v)).collect())
            }),
        ]
    })
}

/// Generates objects that pass the first checks.
fn any_widget() -> impl Strategy<Value = Value> {
    (any_json(), any_json(), any_json()).prop_map(|(metadata, spec, status)| {
        let mut metadata = if metadata.is_object() {
            metadata
        } else {
            json!({})
        };
        metadata["name"] = "a".into();
        json!({
            "apiVersion": "demo.okt.dev/v1",
            "kind": "Widget",
            "metadata": metadata,
            "spec": spec,
            "status": status,
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_body_has_an_answer(
        bodies in prop::collection::vec(prop_oneof![any_json(), any_widget()], 1..12),
    ) {
        let runtime = Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let (_server, client) = server().await;
            create(&client, "a", json!({})).await;
            for body in bodies {
                let body = body.to_string().into_bytes();
                for media in TYPES {
                    for (method, path) in [
                        ("PATCH", format!("{WIDGET}?fieldManager=m&force=true")),
                        ("PATCH", format!("{WIDGET}/status?fieldManager=n")),
                        ("PATCH", format!("{WIDGET}/scale")),
                        ("PUT", WIDGET.to_owned()),
                        ("PUT", format!("{WIDGET}/status")),
                        ("POST", WIDGET.trim_end_matches("/a").to_owned()),
                        ("DELETE", format!("{WIDGET}?dryRun=All")),
                    ] {
                        let request = Request::builder()
                            .method(method)
                            .uri(&path)
                            .header("content-type", media)
                            .body(body.clone())
                            .unwrap();
                        let status = send(&client, request).await;
                        assert!((200..=501).contains(&status), "{method} {path}: {status}");
                    }
                }
            }
        });
    }

    #[test]
    fn any_path_has_an_answer(path in "(/(api|apis|v1|namespaces|default|widgets|watch|openapi|v3|demo\\.okt\\.dev|[a-z%]{0,4})){0,8}(\\?[a-zA-Z=&%,!()]{0,20})?") {
        prop_assume!(path.parse::<http::Uri>().is_ok());
        let runtime = Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let (_server, client) = server().await;
            for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] {
                let uri = if path.starts_with('/') { path.clone() } else { format!("/{path}") };
                let Ok(request) = Request::builder().method(method).uri(&uri).body(Vec::new()) else {
                    continue;
                };
                send(&client, request).await;
            }
        });
    }
}

#[tokio::test]
async fn a_patch_that_nests_too_deeply_is_501_and_changes_nothing() {
    let (_server, client) = server().await;
    create(&client, "a", json!({ "free": {} })).await;
    let nested = |levels: usize| (0..levels).fold(json!({}), |inner, _| json!({ "a": inner }));
    merge(&client, "a", json!({ "spec": { "free": nested(40) } }))
        .await
        .expect("this is deep, but not too deep");
    // Each patch is valid alone, but their result is nested too deeply.
    let path = format!("/spec/free{}", "/a".repeat(40));
    let deeper = json!([{ "op": "replace", "path": path, "value": nested(80) }]);
    let status = refusal(json_patch(&client, "a", deeper).await);
    assert_eq!(status.code, 501);
    assert!(status.message.contains("deeper than 100 levels"));
    assert_eq!(get(&client, "a").await.data["spec"]["free"], nested(40));
}

#[tokio::test]
async fn a_patch_with_exponential_growth_is_refused() {
    let (_server, client) = server().await;
    create(&client, "a", json!({})).await;
    let doubling: Vec<_> = (0..40)
        .map(|n| json!({ "op": "copy", "from": "/spec", "path": format!("/spec/a{n}") }))
        .collect();
    let patched = json_patch(&client, "a", Value::Array(doubling)).await;
    assert_eq!(refusal(patched).code, 422);
    let nesting: Vec<_> = (0..10_000)
        .map(|_| json!({ "op": "copy", "from": "/spec", "path": "/spec/a" }))
        .collect();
    let patched = json_patch(&client, "a", Value::Array(nesting)).await;
    assert_eq!(refusal(patched).code, 501);
}

#[tokio::test]
async fn the_largest_generation_does_not_overflow() {
    let (_server, client) = server().await;
    let map = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": "a", "generation": i64::MAX, "finalizers": ["okt.dev/keep"] },
    });
    let maps = "/api/v1/namespaces/default/configmaps";
    let request = |method: &str, path: String, body: &Value| {
        let request = Request::builder().method(method).uri(path);
        let request = request.header("content-type", "application/json");
        request
            .body(serde_json::to_vec(body).expect("JSON"))
            .expect("a request")
    };
    assert_eq!(
        send(&client, request("POST", maps.to_owned(), &map)).await,
        201
    );
    let delete = request("DELETE", format!("{maps}/a"), &json!({}));
    assert_eq!(send(&client, delete).await, 200);
}
