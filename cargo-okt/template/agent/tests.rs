//! Tests of the operator with an API server in the test process and virtual time.

use std::fmt::Debug;
use std::future::pending;
use std::time::Duration;

use okt::k8s_openapi::api::apps::v1::StatefulSet;
use okt::kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use okt::kube::runtime::conditions::is_deleted;
use okt::kube::runtime::wait::{Condition, await_condition};
use okt::kube::{Api, Resource};
use okt::serde::de::DeserializeOwned;
use okt::serde_json::{self, Value, json};
use okt::sidecar::{AgentPods, InPods};
use okt::{Delegated, Lifecycle, Mark, Operator, crd};
use okt_testing::{ApiServer, Rehearsal, TestAgents};

use super::operator::{Pods, agent};
use super::resource::{Widget, WidgetState};

/// Returns the Pods of the objects.
fn pods() -> Pods {
    let agent = agent().expect("a configuration");
    Pods { agent }
}

/// Returns the operator with agents in this process.
fn operator(agents: &TestAgents) -> Delegated<InPods<Pods>> {
    Delegated(InPods(agents.of(), pods()))
}

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
async fn its_agent_starts_it_takes_another_spec_and_stops_it() {
    let server = ApiServer::new();
    let (client, user) = (server.client_named("operator"), server.client());
    let definition = crd::<Widget>().expect("a CRD");
    let made = Api::all(user.clone())
        .create(&PostParams::default(), &definition)
        .await;
    made.expect("the CRD is accepted");
    let agents = TestAgents::default();
    let operator = Operator::new(client, operator(&agents)).virtual_time();
    tokio::spawn(operator.run(pending()));

    let objects: Api<Widget> = Api::default_namespaced(user.clone());
    let object = serde_json::from_value(example()).expect("an object");
    let made = objects.create(&PostParams::default(), &object).await;
    let object = made.expect("it is accepted");
    until(&objects, is_ready).await;
    let sets: Api<StatefulSet> = Api::default_namespaced(user);
    let set = sets.get("first").await.expect("a StatefulSet");

    let another = Patch::Merge(json!({ "spec": { "message": "bye" } }));
    let params = PatchParams::default();
    let patched = objects.patch("first", &params, &another).await;
    let generation = patched.expect("it is accepted").metadata.generation;
    let took_it = |object: Option<&Widget>| {
        let status = object.and_then(|object| object.status.as_ref());
        is_ready(object) && status.is_some_and(|status| status.observed_generation == generation)
    };
    until(&objects, took_it).await;

    let deleted = objects.delete("first", &DeleteParams::default()).await;
    deleted.expect("a deletion");
    let uid = object.metadata.uid.as_deref().expect("a uid");
    until(&objects, is_deleted(uid)).await;
    // Kubernetes deletes what the object owns, a moment later.
    let uid = set.metadata.uid.expect("a uid");
    until(&sets, is_deleted(&uid)).await;
    assert_eq!(agents.done(&object), ["Starting", "Reconfiguring", "Stopping"]);
}

/// An agent refuses the work of a state that its file does not have.
#[test]
fn the_agent_does_the_work_of_each_state() {
    for (_, state) in WidgetState::GRAPH.iter() {
        let line = format!("\n  {}:\n", state.name);
        let has_it = include_str!("sidecar.yaml").contains(&line);
        assert_eq!(has_it, !state.is(Mark::Idle), "{}", state.name);
    }
}

#[tokio::test]
async fn the_agent_runs_beside_the_application() {
    let object = serde_json::from_value(example()).expect("an object");
    let cx = okt_testing::context(object)
        .watches(Pods::watches)
        .build();
    let resources = pods().resources(&cx, WidgetState::Running).await;
    let objects = resources.expect("no failure").objects().expect("objects");
    let kinds = objects.iter().map(|object| object["kind"].as_str());
    let needed = ["Secret", "ConfigMap", "Service", "NetworkPolicy", "Service", "StatefulSet"];
    assert!(kinds.eq(needed.map(Some)), "{objects:#?}");
    let pod = &objects[5]["spec"]["template"]["spec"];
    assert_eq!(pod["initContainers"][0]["name"], "okt-sidecar");
}

/// Compares the graph with `lifecycle.lock`: a change that takes something from stored objects needs a reason there.
#[test]
fn the_graph_is_that_of_the_lock_file() {
    okt_testing::lock::check("src/widget_mod/lifecycle.lock", [WidgetState::GRAPH]);
}

/// Rehearses faults: a crash before and after each write, a stale cache, lost work, two operators at once, and others.
#[test]
fn every_fault_ends_in_the_right_state() {
    Rehearsal::of(|| operator(&TestAgents::default()))
        .object(example())
        .delete()
        .random("secrets/first-widget-agent", "/data/token")
        .random("secrets/first-widget-agent", "/data/tls.crt")
        .random("secrets/first-widget-agent", "/data/tls.key")
        .ends_in(WidgetState::Gone)
        .check();
}
