//! Compares the columns of a CRD with those of a real API server.
//!
//! `columns.json` contains an object, and for each JSON path (of type string if no type is named) the cell that
//! kube-apiserver 1.36.1 shows, or that the server cannot read the path and leaves the column out.

use http::Request;
use okt_apiserver::ApiServer;
use serde_json::{Value, json};

use crate::support::{CRDS, Comparison, crd, post};

/// The number of paths of the table that the test double does not serve.
const NOT_SERVED: usize = 39;

/// Returns the CRD of a kind with any content and one column.
fn with_column(case: &Value) -> Value {
    let kind = case.get("type").cloned().unwrap_or("string".into());
    let mut crd = crd(&json!({
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": true,
    }));
    crd["spec"]["versions"][0]["additionalPrinterColumns"] =
        json!([{ "name": "It", "type": kind, "jsonPath": case["path"] }]);
    crd
}

/// Returns the cells of the only object, without its name.
async fn cells(server: &ApiServer, path: &str) -> Value {
    let request = Request::get(path)
        .header("accept", "application/json;as=Table;g=meta.k8s.io;v=v1")
        .body(Vec::new())
        .expect("a request");
    let table: Value = server.client().request(request).await.expect("a table");
    let cells = table["rows"][0]["cells"].as_array().expect("cells");
    cells.iter().skip(1).cloned().collect()
}

#[tokio::test]
async fn columns_show_the_same_cells_as_on_a_real_server() {
    let table: Value = serde_json::from_str(include_str!("columns.json")).expect("JSON");
    let mut object = table["object"].clone();
    object["apiVersion"] = "rules.okt.dev/v1".into();
    let things = "/apis/rules.okt.dev/v1/namespaces/default/things";
    let mut comparison = Comparison::default();
    let mut not_served = Vec::new();
    for case in table["cases"].as_array().expect("cases") {
        let server = ApiServer::new();
        let (code, answer) = post(&server, CRDS, &with_column(case)).await;
        let what = case.to_string();
        let real: Value = case.get("cell").into_iter().cloned().collect();
        if code == 501 {
            not_served.push(what);
            continue;
        }
        let double = if code == 201 {
            post(&server, things, &object).await;
            cells(&server, things).await
        } else {
            answer.into()
        };
        comparison.add(
            double == real,
            &what,
            &real.to_string(),
            &double.to_string(),
        );
    }
    comparison.check();
    assert_eq!(not_served.len(), NOT_SERVED, "{not_served:?}");
}
