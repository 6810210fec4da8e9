//! Tests of the operator with an API server in the test process and virtual time.

use std::fmt::Debug;
use std::future::pending;
use std::time::Duration;

use okt::k8s_openapi::api::core::v1::ConfigMap;
use okt::kube::api::{DeleteParams, PostParams};
use okt::kube::runtime::conditions::is_deleted;
use okt::kube::runtime::wait::{Condition, await_condition};
use okt::kube::{Api, Resource};
use okt::serde::de::DeserializeOwned;
use okt::serde_json::{self, Value, json};
use okt::{Operator, crd};
use okt_testing::{ApiServer, Fault, Verb};

use super::operator::Keeper;
use super::resource::{Widget, WidgetPassHandler};

/// Returns the object of `examples/widget_mod.yaml`.
fn example() -> Value {
    json!({
        "apiVersion": "example.com/v1alpha1",
        "kind": "Widget",
        "metadata": { "name": "first" },
        "spec": { "message": "hello" },
    })
}

fn is_ready(object: Option<&Widget>) -> bool {
    let status = object.and_then(|object| object.status.as_ref());
    let mut conditions = status.into_iter().flat_map(|status| &status.conditions);
    conditions.any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// Waits until an object meets a condition, for at most an hour of virtual time.
async fn until<K>(objects: &Api<K>, so: impl Condition<K>)
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let so = await_condition(objects.clone(), "first", so);
    if let Ok(watched) = tokio::time::timeout(Duration::from_hours(1), so).await {
        watched.expect("a watch");
        return;
    }
    let object = objects.get_opt("first").await.expect("an answer");
    panic!("not within an hour: {object:#?}");
}

/// Starts an API server with an operator.
async fn start() -> ApiServer {
    let server = ApiServer::new();
    let definition = crd::<Widget>().expect("a CRD");
    let made = Api::all(server.client())
        .create(&PostParams::default(), &definition)
        .await;
    made.expect("the CRD is accepted");
    let operator = Operator::new(server.client_named("operator"), Keeper);
    tokio::spawn(operator.virtual_time().run(pending()));
    server
}

/// Creates the object of `examples/widget_mod.yaml` and waits until it is ready; returns its uid.
async fn ready(objects: &Api<Widget>) -> String {
    let object = serde_json::from_value(example()).expect("an object");
    let made = objects.create(&PostParams::default(), &object).await;
    until(objects, is_ready).await;
    made.expect("it is accepted").metadata.uid.expect("a uid")
}

#[tokio::test(start_paused = true)]
async fn it_becomes_ready_keeps_its_settings_and_goes() {
    let server = start().await;
    let objects: Api<Widget> = Api::default_namespaced(server.client());
    let uid = ready(&objects).await;

    let settings: Api<ConfigMap> = Api::default_namespaced(server.client());
    let made = settings.get("first").await.expect("settings");
    assert_eq!(made.data.expect("data")["message"], "hello");
    // An object that is as its spec asks causes no writes.
    let settled = server.mark();
    tokio::time::sleep(Duration::from_hours(1)).await;
    let mut requests = server.requests_since(settled);
    requests.retain(|request| request.client == "operator" && request.is_write());
    assert!(requests.is_empty(), "{requests:#?}");

    let deleted = objects.delete("first", &DeleteParams::default()).await;
    deleted.expect("a deletion");
    until(&objects, is_deleted(&uid)).await;
    // Kubernetes deletes what the object owns, a moment later.
    let uid = made.metadata.uid.expect("a uid");
    until(&settings, is_deleted(&uid)).await;
}

#[tokio::test(start_paused = true)]
async fn a_failed_apply_is_retried() {
    let server = start().await;
    let fails = Fault::internal_error().on(Verb::Apply);
    server.inject(fails.resource("configmaps").times(3));
    let objects: Api<Widget> = Api::default_namespaced(server.client());
    ready(&objects).await;
    let settings: Api<ConfigMap> = Api::default_namespaced(server.client());
    settings.get("first").await.expect("settings");
}

/// A step is called like any function: `okt_testing` makes its argument.
#[tokio::test]
async fn an_empty_message_is_refused() {
    let mut object = example();
    object["spec"]["message"] = json!(" ");
    let cx = okt_testing::pass(serde_json::from_value(object).expect("an object")).build();
    let failure = Keeper.check(&cx).await.expect_err("it is refused");
    assert!(failure.to_string().contains("spec.message"), "{failure}");
}

#[tokio::test]
async fn a_message_is_accepted() {
    let object = serde_json::from_value(example()).expect("an object");
    let cx = okt_testing::pass(object).build();
    Keeper.check(&cx).await.expect("no failure");
}
