//! The operator in a cluster inside the test process, where an hour passes at once.

use std::future::pending;
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{DeleteParams, PostParams};
use kube::{Api, Client};
use okt::{Operator, crd};
use okt_examples::memcached::{Memcached, Memcacheds};
use okt_testing::{ApiServer, Fault, Verb};
use serde_json::json;
use tokio::task::JoinHandle;

use crate::stage::{NAME, Stage, Tally};
use crate::story;

const NAMESPACE: &str = "default";

/// A server with the CRD.
async fn server() -> (ApiServer, Client, Stage) {
    let server = ApiServer::new();
    let user = server.client();
    let definition = crd::<Memcached>().expect("a CRD");
    let made = Api::all(user.clone())
        .create(&PostParams::default(), &definition)
        .await;
    made.expect("the CRD is accepted");
    let mut stage = Stage::of(&user, NAMESPACE, Tally::Recorded(server.clone()));
    stage.patience = Duration::from_mins(5);
    stage.quiet = Duration::from_hours(1);
    (server, user, stage)
}

fn operate(server: &ApiServer) -> JoinHandle<()> {
    let app = Memcacheds::new().expect("templates");
    let operator = Operator::new(server.client_named("operator"), app).virtual_time();
    tokio::spawn(async move { operator.run(pending()).await.expect("it runs") })
}

#[tokio::test(start_paused = true)]
async fn a_cache_is_created_scaled_repaired_and_deleted() {
    let (server, _, stage) = server().await;
    operate(&server);
    story::of_a_cache(&stage).await;
}

#[tokio::test(start_paused = true)]
async fn a_restart_writes_nothing() {
    let (server, _, stage) = server().await;
    let operator = operate(&server);
    stage.create(&json!({ "size": 0 })).await.expect("accepted");
    let made = async || stage.versions().await.iter().all(Option::is_some);
    stage.until_so("all of it is made", made).await;
    stage.servers(0).await;
    stage.until_ready(0).await;
    operator.abort();
    let _ = operator.await;
    operate(&server);
    stage.nothing_is_written().await;
}

#[tokio::test(start_paused = true)]
async fn an_invalid_cache_gets_no_resources_and_can_be_deleted() {
    let (server, _, stage) = server().await;
    operate(&server);
    let made = stage.create(&json!({ "maxItemMib": 100 })).await;
    made.expect("the schema takes it");
    let so = async || stage.shows("Stalled").await.is_some();
    stage.until_so("it is stalled", so).await;
    stage.nothing_is_written().await;
    assert_eq!(stage.versions().await, [None, None, None]);
    stage.delete(&DeleteParams::default()).await;
    stage.until_gone().await;
}

#[tokio::test(start_paused = true)]
async fn the_schema_refuses_invalid_specs() {
    let (_, _, stage) = server().await;
    for nonsense in [
        json!({ "size": -1 }),
        json!({ "version": "1 && reboot" }),
        json!({ "memoryMib": 0 }),
        json!({ "users": "kube-system/admins" }),
    ] {
        match stage.create(&nonsense).await {
            Err(kube::Error::Api(status)) => assert_eq!(status.code, 422, "{nonsense}"),
            other => panic!("{nonsense}: {other:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn servers_with_users_wait_for_their_secret() {
    let (server, user, stage) = server().await;
    operate(&server);
    let made = stage.create(&json!({ "size": 1, "users": "people" })).await;
    made.expect("accepted");
    let waits = "False WaitingForUsers: there is no Secret people with a key `users`";
    stage.until_shows("Ready", waits).await;
    assert_eq!(stage.versions().await, [None, None, None]);
    let secret: Secret = serde_json::from_value(json!({
        "metadata": { "name": "people" },
        "stringData": { "users": "ann:secret" },
    }))
    .expect("a secret");
    let secrets: Api<Secret> = Api::namespaced(user, NAMESPACE);
    let made = secrets.create(&PostParams::default(), &secret).await;
    made.expect("accepted");
    let made = async || stage.versions().await.iter().all(Option::is_some);
    stage.until_so("all of it is made", made).await;
    let pod = stage.deployment().await.spec.template.spec;
    let pod = serde_json::to_value(pod).expect("JSON");
    assert_eq!(pod["containers"][0]["args"][2], "-Y/etc/memcached/users");
    assert_eq!(pod["volumes"][0]["secret"]["secretName"], "people");
    stage.servers(1).await;
    stage.until_ready(1).await;
}

#[tokio::test(start_paused = true)]
async fn orphan_deletion_leaves_the_servers_running() {
    let (server, _, stage) = server().await;
    operate(&server);
    stage.create(&json!({ "size": 1 })).await.expect("accepted");
    let made = async || stage.versions().await.iter().all(Option::is_some);
    stage.until_so("all of it is made", made).await;
    stage.servers(1).await;
    stage.until_ready(1).await;
    stage.delete(&DeleteParams::orphan()).await;
    stage.until_gone().await;
    let deployment = stage.deployment().await;
    assert_eq!(deployment.spec.replicas, Some(1));
    assert_eq!(deployment.metadata.owner_references, None);
}

#[tokio::test(start_paused = true)]
async fn a_foreign_deployment_is_not_adopted() {
    let (server, _, stage) = server().await;
    let theirs: Deployment = serde_json::from_value(json!({
        "metadata": { "name": NAME },
        "spec": {
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "web", "image": "web:1" }] },
            },
        },
    }))
    .expect("a Deployment");
    let made = stage
        .deployments
        .create(&PostParams::default(), &theirs)
        .await;
    let theirs = made.expect("accepted");
    operate(&server);
    stage.create(&json!({})).await.expect("accepted");
    let why =
        "Deployment cache exists and was not made for this object: delete or rename one of them";
    stage
        .until_shows("Ready", &format!("False NotOwned: {why}"))
        .await;
    stage.delete(&DeleteParams::default()).await;
    stage.until_gone().await;
    assert_eq!(stage.deployment().await, theirs);
}

#[tokio::test(start_paused = true)]
async fn a_failed_apply_is_retried() {
    let (server, _, stage) = server().await;
    operate(&server);
    let fails = Fault::internal_error().on(Verb::Apply);
    server.inject(fails.resource("deployments").times(3));
    stage.create(&json!({ "size": 1 })).await.expect("accepted");
    let failed = async || {
        let shown = stage.shows("UpToDate").await.unwrap_or_default();
        shown.starts_with("False ResourceFailed: Deployment cache: ")
    };
    stage.until_so("it says what has failed", failed).await;
    let made = async || stage.versions().await.iter().all(Option::is_some);
    stage.until_so("all of it is made", made).await;
    stage.servers(1).await;
    stage.until_ready(1).await;
}
