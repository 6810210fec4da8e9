//! Compares the answers to unusual requests with those of a real API server (kube-apiserver 1.36.1).

use okt_testing::ApiServer;
use serde_json::{Value, json};

use crate::support::{CRDS, crd, post, raw, send};

const JSON: &str = "application/json";
const MERGE: &str = "application/merge-patch+json";
const CORE: &str = "/api/v1/namespaces/default";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const THINGS: &str = "/apis/rules.okt.dev/v1/namespaces/default/things";

/// Returns a server with a kind that has a scale, and a Deployment.
async fn server() -> ApiServer {
    let server = ApiServer::new();
    let numbers = json!({ "type": "object", "properties": { "n": { "type": "integer" }, "m": { "type": "integer" } } });
    let mut crd =
        crd(&json!({ "type": "object", "properties": { "spec": numbers, "status": numbers } }));
    crd["spec"]["versions"][0]["subresources"] = json!({
        "status": {},
        "scale": { "specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n" },
    });
    assert_eq!(post(&server, CRDS, &crd).await.0, 201);
    let template = json!({
        "metadata": { "labels": { "a": "b" } },
        "spec": { "containers": [{ "name": "a", "image": "x" }] },
    });
    let spec =
        json!({ "replicas": 1, "selector": { "matchLabels": { "a": "b" } }, "template": template });
    let deployment = json!({ "metadata": { "name": "d" }, "spec": spec });
    assert_eq!(post(&server, DEPLOYMENTS, &deployment).await.0, 201);
    assert_eq!(
        post(&server, THINGS, &thing("d", &json!({ "n": 1 })))
            .await
            .0,
        201
    );
    server
}

fn thing(name: &str, spec: &Value) -> Value {
    json!({ "apiVersion": "rules.okt.dev/v1", "kind": "Thing", "metadata": { "name": name }, "spec": spec })
}

#[tokio::test]
async fn a_custom_resource_is_created_at_the_path_of_any_object() {
    let server = server().await;
    let path = format!("{THINGS}/a");
    let empty = "the object provided is unrecognized (must be of type Thing): couldn't get version/kind; json parse error: unexpected end of JSON input (<empty>)";
    let (code, answer) = raw(&server, "POST", &path, JSON, "").await;
    assert_eq!((code, &answer["message"]), (400, &json!(empty)));
    assert_eq!(post(&server, &path, &thing("a", &json!({}))).await.0, 201);
    assert_eq!(post(&server, &path, &thing("b", &json!({}))).await.0, 201);
    let list = send(&server, "GET", THINGS, &Value::Null).await.unwrap();
    let items = list["items"].as_array().unwrap().iter();
    let names: Vec<_> = items.map(|item| &item["metadata"]["name"]).collect();
    assert_eq!(names, ["a", "b", "d"]);

    let refused = "create is not supported on resources of kind \"things.rules.okt.dev\"";
    let answer = post(&server, &format!("{path}/status"), &thing("a", &json!({}))).await;
    assert_eq!(answer, (405, refused.to_owned()));
    let cluster = "/apis/rules.okt.dev/v1/things/a";
    let (code, _) = raw(
        &server,
        "POST",
        cluster,
        JSON,
        &thing("a", &json!({})).to_string(),
    )
    .await;
    assert_eq!(code, 404);
    let map = json!({ "metadata": { "name": "a" } });
    let (code, _) = post(&server, &format!("{CORE}/configmaps/a"), &map).await;
    assert_eq!(code, 405);
}

#[tokio::test]
async fn a_page_is_not_continued_at_another_version() {
    let server = ApiServer::new();
    let list = send(&server, "GET", "/api/v1/namespaces?limit=1", &Value::Null).await;
    let list = list.unwrap();
    let token = list["metadata"]["continue"].as_str().unwrap();
    let page = |more: &str| format!("/api/v1/namespaces?limit=1&continue={token}{more}");
    let refused = "specifying resource version is not allowed when using continue";
    for version in ["5", "x"] {
        let path = page(&format!("&resourceVersion={version}"));
        let answer = send(&server, "GET", &path, &Value::Null).await;
        assert_eq!(answer, Err((400, refused.to_owned())), "{version}");
    }
    for version in ["", "&resourceVersion=0", "&resourceVersion="] {
        let answer = send(&server, "GET", &page(version), &Value::Null).await;
        assert!(answer.is_ok(), "{version}: {answer:?}");
    }
}

#[tokio::test]
async fn a_scale_has_a_whole_number_of_replicas_that_is_not_negative() {
    let server = server().await;
    let paths = [
        format!("{DEPLOYMENTS}/d/scale"),
        format!("{THINGS}/d/scale"),
    ];
    let [deployment, thing] = &paths;
    let negative = "spec.replicas: Invalid value: -1: must be greater than or equal to 0";
    let go = |found: &str| {
        format!(
            "json: cannot unmarshal {found} into Go struct field ScaleSpec.spec.replicas of type int32"
        )
    };
    let below = ".spec.n: Invalid value: -1: should be a non-negative integer";
    for (path, expected) in [(deployment, negative), (thing, below)] {
        let patch = json!({ "spec": { "replicas": -1 } });
        let expected = Err((422, expected.to_owned()));
        assert_eq!(send(&server, "PATCH", path, &patch).await, expected);
        let whole = json!({
            "apiVersion": "autoscaling/v1", "kind": "Scale",
            "metadata": { "name": "d" }, "spec": { "replicas": -1 },
        });
        assert_eq!(send(&server, "PUT", path, &whole).await, expected);
        for (number, found) in [
            ("1.0", "number 1.0"),
            ("1.5", "number 1.5"),
            ("3000000000", "number 3000000000"),
            ("\"x\"", "string"),
        ] {
            let patch = format!("{{\"spec\":{{\"replicas\":{number}}}}}");
            let (code, answer) = raw(&server, "PATCH", path, MERGE, &patch).await;
            let message = answer["message"].as_str().unwrap();
            assert_eq!(code, 422, "{message}");
            assert!(message.ends_with(&go(found)), "{message}");
        }
        let mut other = whole.clone();
        other["metadata"]["name"] = "e".into();
        other["spec"]["replicas"] = 1.into();
        let address = "the name of the object (e) does not match the name on the URL (d)";
        let answer = send(&server, "PUT", path, &other).await;
        assert_eq!(answer, Err((400, address.to_owned())));
    }
    let patch = json!({ "spec": { "replicas": "x" } });
    for (path, expected) in [
        (
            deployment,
            format!(
                "Scale in version \"v1\" cannot be handled as a Scale: {}",
                go("string")
            ),
        ),
        (
            thing,
            "no kind is registered for the type v1.Scale in scheme \"pkg/runtime/scheme.go:111\""
                .to_owned(),
        ),
    ] {
        assert_eq!(
            send(&server, "PUT", path, &patch).await,
            Err((400, expected))
        );
    }
    let strategic = "application/strategic-merge-patch+json";
    let (code, answer) = raw(
        &server,
        "PATCH",
        deployment,
        strategic,
        "{\"spec\":{\"replicas\":2.0}}",
    )
    .await;
    assert_eq!((code, &answer["spec"]["replicas"]), (200, &json!(2)));
}

#[tokio::test]
async fn a_whole_number_with_a_decimal_point_is_no_number_of_replicas() {
    let server = server().await;
    let refusal = |field: &str, number: u8| {
        format!(
            "Thing.rules.okt.dev \"d\" is invalid: .{field}.n: Invalid value: 0: .{field}.n accessor error: {number} is of the type float64, expected int64"
        )
    };
    let path = format!("{THINGS}/d");
    let status = format!("{path}/status");
    let json_patch = "application/json-patch+json";
    let merge = |field: &str| format!("{{\"{field}\":{{\"n\":2.0}}}}");
    let add = "[{\"op\":\"add\",\"path\":\"/spec/n\",\"value\":2.0}]".to_owned();
    for (path, media, body, field) in [
        (&path, MERGE, merge("spec"), "spec"),
        (&path, json_patch, add, "spec"),
        (&status, MERGE, merge("status"), "status"),
    ] {
        let (code, answer) = raw(&server, "PATCH", path, media, &body).await;
        assert_eq!((code, &answer["message"]), (422, &json!(refusal(field, 2))));
    }
    let made = thing("e", &json!({ "n": 77, "m": 88 })).to_string();
    let floats = made.replace("77", "1.0").replace("88", "1.0");
    let (code, answer) = raw(&server, "POST", THINGS, JSON, &floats).await;
    let expected = refusal("spec", 1).replace("\"d\"", "\"e\"");
    assert_eq!((code, &answer["message"]), (422, &json!(expected)));
    // YAML has no such difference, nor has any other field.
    let yaml = "application/yaml";
    let (code, answer) = raw(&server, "POST", THINGS, yaml, &floats).await;
    assert_eq!((code, &answer["spec"]), (201, &json!({ "n": 1, "m": 1 })));
    let (code, _) = raw(&server, "PATCH", &path, MERGE, "{\"spec\":{\"m\":2.0}}").await;
    assert_eq!(code, 200);
    let (code, _) = raw(&server, "PATCH", &status, MERGE, "{\"status\":{\"m\":2.0}}").await;
    assert_eq!(code, 200);
    let apply = json!({ "apiVersion": "rules.okt.dev/v1", "kind": "Thing", "spec": { "n": 77 } });
    let forced = format!("{path}?fieldManager=a&force=true");
    let body = apply.to_string().replace("77", "2.0");
    let (code, answer) = raw(
        &server,
        "PATCH",
        &forced,
        "application/apply-patch+yaml",
        &body,
    )
    .await;
    assert_eq!((code, &answer["spec"]["n"]), (200, &json!(2)));
}

#[tokio::test]
async fn a_whole_number_with_a_decimal_point_is_no_integer_of_a_built_in_kind() {
    let server = server().await;
    let go = |number: &str, field: &str| {
        format!("json: cannot unmarshal number {number} into Go struct field {field} of type int32")
    };
    for (path, kind, body, number, field) in [
        (
            "/apis/coordination.k8s.io/v1/namespaces/default/leases",
            "Lease",
            "{\"metadata\":{\"name\":\"r\"},\"spec\":{\"leaseDurationSeconds\":15.0}}",
            "15.0",
            "LeaseSpec.spec.leaseDurationSeconds",
        ),
        (
            "/api/v1/namespaces/default/services",
            "Service",
            "{\"metadata\":{\"name\":\"r\"},\"spec\":{\"ports\":[{\"port\":80.0}]}}",
            "80.0",
            "ServicePort.spec.ports.port",
        ),
        (
            "/api/v1/namespaces/default/pods",
            "Pod",
            "{\"metadata\":{\"name\":\"r\"},\"spec\":{\"containers\":[{\"name\":\"a\",\"resources\":{\"limits\":{\"cpu\":1.0}},\"readinessProbe\":{\"periodSeconds\":1.0}}]}}",
            "1.0",
            "Probe.spec.containers.readinessProbe.periodSeconds",
        ),
    ] {
        let (code, answer) = raw(&server, "POST", path, JSON, body).await;
        let expected = format!(
            "{kind} in version \"v1\" cannot be handled as a {kind}: {}",
            go(number, field)
        );
        assert_eq!((code, &answer["message"]), (400, &json!(expected)));
        let (code, _) = raw(&server, "POST", path, "application/yaml", body).await;
        assert_eq!(code, 201, "{path}");
    }
    let path = format!("{DEPLOYMENTS}/d");
    let patch = "{\"spec\":{\"replicas\":2.0}}";
    let (code, answer) = raw(&server, "PATCH", &path, MERGE, patch).await;
    let message = answer["message"].as_str().unwrap();
    let expected = go("2.0", "DeploymentSpec.spec.replicas");
    assert!(
        code == 422 && message.ends_with(&expected),
        "{code}: {message}"
    );
    let strategic = "application/strategic-merge-patch+json";
    let (code, answer) = raw(&server, "PATCH", &path, strategic, patch).await;
    assert_eq!((code, &answer["spec"]["replicas"]), (200, &json!(2)));
}
