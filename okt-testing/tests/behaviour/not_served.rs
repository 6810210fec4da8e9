//! Tests that requests which the test double does not serve get a 501 with an explanation.

use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::{Node, Pod, ServiceAccount};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{EvictParams, ListParams, Patch, PatchParams, PostParams};
use okt_testing::ApiServer;
use serde_json::{Value, json};

use crate::support::{create, create_crd, refusal, server, widget_crd, widgets};

#[tokio::test]
async fn a_resource_or_subresource_that_is_not_served_is_501() {
    let client = ApiServer::new().client();
    let nodes: Api<Node> = Api::all(client.clone());
    let status = refusal(nodes.list(&ListParams::default()).await);
    assert_eq!(status.code, 501);
    assert_eq!(
        status.message,
        "okt-testing does not serve this: the resource nodes of /v1"
    );
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let status = refusal(pods.evict("a", &EvictParams::default()).await);
    assert_eq!(status.code, 501);
    assert_eq!(
        status.message,
        "okt-testing does not serve this: the subresource eviction of pods"
    );
    let accounts: Api<ServiceAccount> = Api::default_namespaced(client);
    let (params, request) = (PostParams::default(), TokenRequest::default());
    let token = accounts.create_token_request("x", &params, &request);
    let status = refusal(token.await);
    assert_eq!(status.code, 501);
    assert_eq!(
        status.message,
        "okt-testing does not serve this: the subresource token of serviceaccounts"
    );
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
