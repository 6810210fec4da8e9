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
use okt::{Lifecycle, Operator, crd};
use okt_testing::{ApiServer, Rehearsal};

use super::operator::Keeper;
use super::resource::{Widget, WidgetState, WidgetStateHandler, widget_state};

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

#[tokio::test(start_paused = true)]
async fn it_becomes_ready_keeps_its_settings_and_goes() {
    let server = ApiServer::new();
    let (client, user) = (server.client_named("operator"), server.client());
    let definition = crd::<Widget>().expect("a CRD");
    let made = Api::all(user.clone())
        .create(&PostParams::default(), &definition)
        .await;
    made.expect("the CRD is accepted");
    tokio::spawn(Operator::new(client, Keeper).virtual_time().run(pending()));

    let objects: Api<Widget> = Api::default_namespaced(user.clone());
    let object = serde_json::from_value(example()).expect("an object");
    let made = objects.create(&PostParams::default(), &object).await;
    let uid = made.expect("it is accepted").metadata.uid.expect("a uid");
    until(&objects, is_ready).await;

    let settings: Api<ConfigMap> = Api::default_namespaced(user);
    let made = settings.get("first").await.expect("settings");
    assert_eq!(made.data.expect("data")["message"], "hello");
    // A resting object causes no writes.
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

/// A handler is called like any function: `okt_testing` makes its argument.
#[tokio::test]
async fn a_first_attempt_starts_the_application() {
    let object = serde_json::from_value(example()).expect("an object");
    let cx = okt_testing::action(object).build();
    let next = Keeper.starting(&cx).await.expect("no failure");
    assert!(
        matches!(next, widget_state::AfterStarting::Running),
        "{next:?}"
    );
}

/// Compares the graph with `lifecycle.lock`: a change that takes something from stored objects needs a reason there.
#[test]
fn the_graph_is_that_of_the_lock_file() {
    okt_testing::lock::check("src/widget_mod/lifecycle.lock", [WidgetState::GRAPH]);
}

/// Rehearses faults: a crash before and after each write, a stale cache, lost work, two operators at once, and others.
#[test]
fn every_fault_ends_in_the_right_state() {
    Rehearsal::of(|| Keeper)
        .object(example())
        .delete()
        .ends_in(WidgetState::Gone)
        .check();
}
