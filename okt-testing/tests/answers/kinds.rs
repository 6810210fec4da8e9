//! Compares built-in kinds that few operators own with those of a real API server (kube-apiserver 1.36.1): how they are
//! created, updated and shown.

use http::Request;
use okt_testing::ApiServer;
use serde_json::{Value, json};

use crate::support::{post, send};

const CORE: &str = "/api/v1/namespaces/default";

/// Returns the cells of a list as kubectl shows it, without the age.
async fn cells(server: &ApiServer, path: &str) -> Vec<Value> {
    let request = Request::get(path)
        .header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
        .body(Vec::new())
        .expect("a request");
    let table: Value = server.client().request(request).await.expect("a table");
    let columns = table["columnDefinitions"].as_array().expect("columns");
    let cells = table["rows"][0]["cells"].as_array().expect("cells");
    let shown = columns.iter().zip(cells);
    let shown = shown.filter(|(column, _)| column["name"] != "Age");
    shown.map(|(_, cell)| cell.clone()).collect()
}

#[tokio::test]
async fn kinds_that_kubectl_asks_for_are_served() {
    let template = json!({
        "metadata": { "labels": { "a": "b" } },
        "spec": { "containers": [{ "name": "a", "image": "x" }] },
    });
    let backend = json!({ "service": { "name": "s", "port": { "number": 80 } } });
    let paths = json!([{ "path": "/", "pathType": "Prefix", "backend": backend }]);
    let none = json!(null);
    for (path, object, status, generation, upserts, shown) in [
        (
            format!("{CORE}/resourcequotas"),
            json!({ "spec": { "hard": { "pods": "2" } } }),
            json!({}),
            &none,
            false,
            json!(["a", "", ""]),
        ),
        (
            format!("{CORE}/endpoints"),
            json!({ "subsets": [{ "addresses": [{ "ip": "10.1.1.1" }], "ports": [{ "port": 80 }] }] }),
            none.clone(),
            &none,
            true,
            json!(["a", "10.1.1.1:80"]),
        ),
        (
            "/api/v1/persistentvolumes".to_owned(),
            json!({ "spec": {
                "capacity": { "storage": "1Gi" }, "accessModes": ["ReadWriteOnce"], "hostPath": { "path": "/x" },
            } }),
            none.clone(),
            &none,
            false,
            json!([
                "a",
                "1Gi",
                "RWO",
                "Retain",
                "Pending",
                "",
                "",
                "<unset>",
                "",
                "Filesystem"
            ]),
        ),
        (
            format!("{CORE}/replicationcontrollers"),
            json!({ "spec": { "replicas": 1, "selector": { "a": "b" }, "template": template } }),
            none.clone(),
            &json!(1),
            false,
            json!(["a", 1, 0, 0, "a", "x", "a=b"]),
        ),
        (
            "/apis/networking.k8s.io/v1/namespaces/default/ingresses".to_owned(),
            json!({ "spec": { "rules": [{ "host": "a.b", "http": { "paths": paths } }] } }),
            json!({ "loadBalancer": {} }),
            &json!(1),
            false,
            json!(["a", "<none>", "a.b", "", "80"]),
        ),
    ] {
        let server = ApiServer::new();
        let mut named = object.clone();
        named["metadata"]["name"] = "a".into();
        let made = send(&server, "POST", &path, &named)
            .await
            .expect("an object");
        assert_eq!(made.get("status").unwrap_or(&none), &status, "{path}");
        let labelled = json!({ "metadata": { "labels": { "a": "b" } } });
        let item = format!("{path}/a");
        let changed = send(&server, "PATCH", &item, &labelled)
            .await
            .expect("an object");
        let found = changed["metadata"].get("generation").unwrap_or(&none);
        assert_eq!(found, generation, "{path}");
        named["metadata"]["name"] = "b".into();
        let answer = send(&server, "PUT", &format!("{path}/b"), &named).await;
        assert_eq!(answer.map_err(|(code, _)| code).is_ok(), upserts, "{path}");
        assert_eq!(Value::from(cells(&server, &path).await), shown, "{path}");
    }
}

#[tokio::test]
async fn the_limits_of_a_namespace_are_served() {
    let server = ApiServer::new();
    let path = format!("{CORE}/limitranges");
    let limits = json!([{ "type": "Container", "max": { "cpu": "1" } }]);
    let range = json!({ "metadata": { "name": "a" }, "spec": { "limits": limits } });
    assert_eq!(post(&server, &path, &range).await.0, 201);
    let list = send(&server, "GET", &path, &Value::Null).await.unwrap();
    assert_eq!(list["kind"], "LimitRangeList");
    assert_eq!(list["items"][0]["spec"]["limits"], limits);
}

#[tokio::test]
async fn endpoints_are_deprecated() {
    let server = ApiServer::new();
    let request = Request::get(format!("{CORE}/endpoints")).body(kube::client::Body::empty());
    let answer = server.client().send(request.unwrap()).await.unwrap();
    let warning =
        "299 - \"v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice\"";
    assert_eq!(answer.headers()["warning"], warning);
}
