//! Tests what a reviewer lets clients do.

use k8s_openapi::api::authorization::v1::SelfSubjectAccessReview;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod};
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use okt_apiserver::ApiServer;
use serde_json::json;

/// A server on which the operator may do nothing but ask.
fn closed() -> (ApiServer, kube::Client) {
    let server = ApiServer::new();
    server.set_reviewer(|review| review["spec"]["user"] == "user");
    let client = server.client_named("operator");
    (server, client)
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_not_allowed_is_403_in_the_words_of_rbac() {
    let (server, client) = closed();
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let everywhere: Api<Pod> = Api::all(client.clone());
    let namespaces: Api<Namespace> = Api::all(client);
    let patch = Patch::Apply(json!({ "apiVersion": "v1", "kind": "Pod" }));
    let params = PatchParams::apply("operator");
    let errors = [
        everywhere.list(&ListParams::default()).await.map(drop),
        pods.get("a").await.map(drop),
        pods.patch_status("a", &params, &patch).await.map(drop),
        pods.delete_collection(&DeleteParams::default(), &ListParams::default())
            .await
            .map(drop),
        namespaces
            .delete("b", &DeleteParams::default())
            .await
            .map(drop),
    ];
    let messages = errors.map(|answer| match answer {
        Err(kube::Error::Api(status)) if status.is_forbidden() => status.message.clone(),
        other => panic!("not 403: {other:?}"),
    });
    let cannot = |what: &str, place: &str| format!("User \"operator\" cannot {what} {place}");
    let (core, default) = ("in API group \"\"", "in the namespace \"default\"");
    assert_eq!(
        messages,
        [
            format!(
                "pods is forbidden: {}",
                cannot(
                    &format!("list resource \"pods\" {core}"),
                    "at the cluster scope"
                )
            ),
            format!(
                "pods \"a\" is forbidden: {}",
                cannot(&format!("get resource \"pods\" {core}"), default)
            ),
            format!(
                "pods \"a\" is forbidden: {}",
                cannot(&format!("patch resource \"pods/status\" {core}"), default)
            ),
            format!(
                "pods is forbidden: {}",
                cannot(
                    &format!("deletecollection resource \"pods\" {core}"),
                    default
                )
            ),
            format!(
                "namespaces \"b\" is forbidden: {}",
                cannot(
                    &format!("delete resource \"namespaces\" {core}"),
                    "in the namespace \"b\""
                )
            ),
        ]
    );
    assert!(
        server
            .requests()
            .iter()
            .all(|request| request.status == 403)
    );
}

#[tokio::test(start_paused = true)]
async fn an_apply_that_creates_needs_both_verbs() {
    let server = ApiServer::new();
    server.set_reviewer(|review| review["spec"]["resourceAttributes"]["verb"] != "create");
    let maps: Api<ConfigMap> = Api::default_namespaced(server.client_named("operator"));
    let config = json!({ "apiVersion": "v1", "kind": "ConfigMap" });
    let params = PatchParams::apply("operator");
    let refused = maps.patch("a", &params, &Patch::Apply(config)).await;
    let message = refused.expect_err("it may not create").to_string();
    let expected =
        "configmaps \"a\" is forbidden: User \"operator\" cannot create resource \"configmaps\"";
    assert!(message.contains(expected), "{message}");
    let created = maps
        .create(&PostParams::default(), &ConfigMap::default())
        .await;
    let message = created.expect_err("it may not create").to_string();
    assert!(message.contains("configmaps is forbidden"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn a_reviewer_may_use_the_server_and_sees_who_asks_for_itself() {
    let server = ApiServer::new();
    let within = server.clone();
    server.set_reviewer(move |review| {
        within.versions().len() > 1_000 || review["spec"]["user"] != "operator"
    });
    for (client, is_allowed) in [("operator", false), ("user", true)] {
        let reviews: Api<SelfSubjectAccessReview> = Api::all(server.client_named(client));
        let review = json!({ "spec": { "resourceAttributes": { "verb": "get" } } });
        let review = serde_json::from_value(review).expect("a review");
        let answer = reviews.create(&PostParams::default(), &review).await;
        let status = answer.expect("an answer").status.expect("a status");
        assert_eq!(status.allowed, is_allowed, "{client}");
    }
}

#[tokio::test(start_paused = true)]
async fn every_client_may_ask_what_it_may_do() {
    let (_, client) = closed();
    let reviews: Api<SelfSubjectAccessReview> = Api::all(client);
    let review = json!({ "spec": { "resourceAttributes": { "verb": "get", "resource": "pods" } } });
    let review = serde_json::from_value(review).expect("a review");
    let answer = reviews.create(&PostParams::default(), &review).await;
    let status = answer.expect("an answer").status.expect("a status");
    assert!(!status.allowed);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_is_allowed_is_served() {
    let (server, _) = closed();
    let maps: Api<ConfigMap> = Api::default_namespaced(server.client_named("user"));
    assert!(maps.list(&ListParams::default()).await.is_ok());
}
