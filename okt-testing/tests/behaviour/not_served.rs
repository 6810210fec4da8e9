//! This file tests that what the double does not do is answered with 501 and a sentence.

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::{
    Api,
    api::{EvictParams, ListParams},
};
use okt_testing::ApiServer;
use serde_json::json;

use crate::support::{create_crd, refusal, widget_crd};

#[tokio::test]
async fn what_a_real_server_has_beyond_this_is_501() {
    let client = ApiServer::new().client();
    let nodes: Api<Node> = Api::all(client.clone());
    let status = refusal(nodes.list(&ListParams::default()).await);
    assert_eq!(status.code, 501);
    assert_eq!(
        status.message,
        "okt-testing does not serve this: the resource nodes of /v1"
    );
    let pods: Api<Pod> = Api::default_namespaced(client);
    let status = refusal(pods.evict("a", &EvictParams::default()).await);
    assert_eq!(status.code, 405, "a POST to a subresource");
}

#[tokio::test]
async fn what_is_not_served_says_so() {
    let client = ApiServer::new().client();
    let mut crd = widget_crd();
    let mut second = crd["spec"]["versions"][0].clone();
    second["name"] = "v2".into();
    second["storage"] = false.into();
    crd["spec"]["versions"].as_array_mut().unwrap().push(second);
    let status = refusal(create_crd(&client, crd).await);
    assert_eq!(
        (status.code, status.reason.as_str()),
        (501, "NotImplemented")
    );
    assert!(
        status.message.contains("more than one served version"),
        "{}",
        status.message
    );
}

#[tokio::test]
async fn a_rule_that_the_library_cannot_evaluate_is_501() {
    let client = ApiServer::new().client();
    let mut crd = widget_crd();
    let schema = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    schema["properties"]["spec"]["x-kubernetes-validations"] =
        json!([{ "rule": "self.labels.all(key, value, key != value)" }]);
    let status = refusal(create_crd(&client, crd).await);
    assert_eq!(status.code, 501);
    assert!(
        status.message.contains("two variables"),
        "{}",
        status.message
    );
}
