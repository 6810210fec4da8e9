//! Tests of the operator with an API server in the test process and virtual time.

use std::fmt::Debug;
use std::future::pending;
use std::time::Duration;

use okt::kube::api::{DeleteParams, PostParams};
use okt::kube::runtime::conditions::is_deleted;
use okt::kube::runtime::wait::{Condition, await_condition};
use okt::kube::{Api, Resource};
use okt::serde::de::DeserializeOwned;
use okt::serde_json::{self, Value, json};
use okt::{AsResource, Delegated, External, Found, Lifecycle, Operator, crd};
use okt_testing::{ApiServer, Rehearsal};

use super::operator::{Keeper, id};
use super::resource::{Widget, WidgetState};

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
async fn it_becomes_ready_is_repaired_and_goes() {
    let server = ApiServer::new();
    let (client, user) = (server.client_named("operator"), server.client());
    let definition = crd::<Widget>().expect("a CRD");
    let made = Api::all(user.clone())
        .create(&PostParams::default(), &definition)
        .await;
    made.expect("the CRD is accepted");
    let keeper = Keeper::default();
    let application = Delegated(AsResource(keeper.clone()));
    let operator = Operator::new(client, application).virtual_time();
    tokio::spawn(operator.run(pending()));

    let objects: Api<Widget> = Api::default_namespaced(user);
    let object = serde_json::from_value(example()).expect("an object");
    let made = objects.create(&PostParams::default(), &object).await;
    let object = made.expect("it is accepted");
    until(&objects, is_ready).await;
    let message = async || keeper.service.find(&id(&object)).await.expect("an answer");
    assert_eq!(message().await.as_deref(), Some("hello"));

    // Others change it.
    let changed = keeper.service.put(id(&object), "bye".to_owned()).await;
    changed.expect("an answer");
    tokio::time::sleep(Duration::from_mins(2)).await;
    assert_eq!(message().await.as_deref(), Some("hello"));

    let deleted = objects.delete("first", &DeleteParams::default()).await;
    deleted.expect("a deletion");
    let uid = object.metadata.uid.as_deref().expect("a uid");
    until(&objects, is_deleted(uid)).await;
    assert_eq!(message().await, None);
}

/// A method is called like any function: `okt_testing` makes its argument.
#[tokio::test]
async fn a_resource_with_another_message_is_outdated() {
    let keeper = Keeper::default();
    let object = serde_json::from_value(example()).expect("an object");
    let cx = okt_testing::context(object).build();
    let made = keeper.service.put(id(cx.object()), "bye".to_owned()).await;
    made.expect("an answer");
    let found = keeper.get(&cx).await.expect("no failure");
    assert_eq!(found, Found::Outdated);
}

/// Compares the graph with `lifecycle.lock`: a change that takes something from stored objects needs a reason there.
#[test]
fn the_graph_is_that_of_the_lock_file() {
    okt_testing::lock::check("src/widget_mod/lifecycle.lock", [WidgetState::GRAPH]);
}

/// Rehearses faults: a crash before and after each write, a stale cache, lost work, two operators at once, and others.
#[test]
fn every_fault_ends_in_the_right_state() {
    Rehearsal::of(|| Delegated(AsResource(Keeper::default())))
        .object(example())
        .delete()
        .ends_in(WidgetState::Gone)
        .check();
}
