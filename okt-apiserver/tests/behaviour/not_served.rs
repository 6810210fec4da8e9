//! Tests that requests which the test double does not serve get a 501 with an explanation.

use http::Request;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{LogParams, Patch, PatchParams};
use okt_apiserver::ApiServer;
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::support::{create, create_crd, refusal, server, widget_crd, widgets};

#[tokio::test]
async fn the_log_of_a_pod_is_501() {
    let client = ApiServer::new().client();
    let pods: Api<Pod> = Api::default_namespaced(client);
    let status = refusal(pods.logs("a", &LogParams::default()).await);
    assert_eq!(status.code, 501);
    assert_eq!(
        status.message,
        "okt-apiserver does not serve this: pods/log of v1"
    );
}

#[tokio::test]
async fn what_is_known_to_be_missing_stands_in_a_header() {
    let server = ApiServer::new();
    let ask = async |path: &'static str| {
        let request = Request::get(path).body(String::new()).expect("a request");
        let answer = server.endpoint().oneshot(request).await.expect("an answer");
        let what = answer.headers().get("okt-not-served");
        let what = what.map(|what| what.to_str().expect("text").to_owned());
        (answer.status().as_u16(), what)
    };
    let missing = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers/a";
    let what = "horizontalpodautoscalers of autoscaling/v1".to_owned();
    assert_eq!(ask(missing).await, (501, Some(what)));
    for unknown in [
        "/apis/route.openshift.io/v1/routes",
        "/api/v1/namespaces/default/pods/a/x",
    ] {
        assert_eq!(ask(unknown).await, (404, None), "{unknown}");
    }
}

/// Returns the CRD of the widgets with the versions `v1` and `v2`.
fn two_versions() -> Value {
    let mut crd = widget_crd();
    let mut second = crd["spec"]["versions"][0].clone();
    second["name"] = "v2".into();
    second["storage"] = false.into();
    crd["spec"]["versions"].as_array_mut().unwrap().push(second);
    crd
}

#[tokio::test]
async fn a_crd_with_an_unsupported_column_or_rule_is_501() {
    let mut column = widget_crd();
    column["spec"]["versions"][0]["additionalPrinterColumns"] =
        json!([{ "name": "Any", "type": "string", "jsonPath": "..color" }]);
    let mut rule = widget_crd();
    let schema = &mut rule["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    schema["properties"]["spec"]["x-kubernetes-validations"] =
        json!([{ "rule": "self.labels.all(key, value, key != value)" }]);
    for (crd, expected) in [(column, "the JSON path ..color"), (rule, "two variables")] {
        let status = refusal(create_crd(&ApiServer::new().client(), crd).await);
        let reason = status.reason.as_str();
        assert_eq!((status.code, reason), (501, "NotImplemented"));
        let message = &status.message;
        assert!(message.contains(expected), "{message}");
    }
}

#[tokio::test]
async fn removing_a_version_in_which_objects_are_stored_is_501() {
    let client = ApiServer::new().client();
    create_crd(&client, two_versions()).await.unwrap();
    create(&client, "a", json!({})).await;
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    let name = "widgets.demo.okt.dev";
    let params = PatchParams::default();
    let mut crd = two_versions();
    crd["spec"]["versions"][0]["storage"] = false.into();
    crd["spec"]["versions"][1]["storage"] = true.into();
    let switched = json!({ "spec": { "versions": crd["spec"]["versions"] } });
    let patch = Patch::Merge(switched);
    crds.patch(name, &params, &patch).await.unwrap();
    // Claim that all objects were migrated, which is false.
    let claim = Patch::Merge(json!({ "status": { "storedVersions": ["v2"] } }));
    crds.patch_status(name, &params, &claim).await.unwrap();
    let rest = json!({ "spec": { "versions": [crd["spec"]["versions"][1]] } });
    let status = refusal(crds.patch(name, &params, &Patch::Merge(rest)).await);
    assert_eq!(status.code, 501);
    let message = &status.message;
    assert!(
        message.contains("version demo.okt.dev/v1, in which objects are still stored"),
        "{message}"
    );
}

#[tokio::test]
async fn an_applied_scale_of_a_custom_resource_is_501() {
    let (_server, client) = server().await;
    create(&client, "a", json!({ "replicas": 2 })).await;
    let scale = Patch::Apply(json!({
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": { "name": "a" },
        "spec": { "replicas": 5 },
    }));
    let params = PatchParams::apply("scaler").force();
    let status = refusal(widgets(&client).patch_scale("a", &params, &scale).await);
    assert_eq!(status.code, 501);
    let message = &status.message;
    assert!(
        message.contains("the scale of a custom resource"),
        "{message}"
    );
}
