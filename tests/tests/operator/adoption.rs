//! A CRD that exists already, with objects and a controller of its own, is taken over by an operator.
#![expect(
    unreachable_pub,
    reason = "the page shows these types as a crate has them"
)]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Patch, PatchParams, PostParams};
use kube::core::DynamicObject;
use kube::{CustomResource, ResourceExt};
use okt::{
    Action, Application, Context, Desired, FINALIZER, Failure, LifecycleSpec, Observation,
    StateOnRecord, Status, crd_union, lifecycle_graph,
};
use okt_tests::{Objects, Rig, Served};
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use self::CellarState::*;

/// What an operator does not do within this time, it does not do at all.
const LONG: Duration = Duration::from_mins(10);

#[lifecycle_graph]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellarState {
    #[entry]
    #[child(Stocked)]
    Filling,
    #[rest(idle)]
    #[condition(Available)]
    #[child(Emptying)]
    Stocked,
    #[child(Empty)]
    Emptying,
    #[leaf(idle)]
    Empty,
}

#[derive(CustomResource, LifecycleSpec, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "demo.okt.dev",
    version = "v1",
    kind = "Cellar",
    namespaced,
    status = "Status<CellarState, CellarExtra>"
)]
#[serde(rename_all = "camelCase")]
pub struct CellarSpec {
    /// New: the default leaves the stored objects valid.
    #[serde(default)]
    pub lifecycle: Desired<CellarState>,
    pub bottles: u32,
}

/// The status of the old controller, without its `conditions` and `observedGeneration`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CellarExtra {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shelves: Option<u32>,
}

/// The operator of cellars; clones share what they know.
#[derive(Clone, Default)]
struct Cellars(Arc<Mutex<World>>);

#[derive(Default)]
struct World {
    /// The cellars that exist outside of the cluster.
    stocked: BTreeSet<String>,
    worked: Vec<(String, CellarState)>,
}

impl Cellars {
    fn world<T>(&self, of: impl FnOnce(&mut World) -> T) -> T {
        of(&mut self.0.lock())
    }

    fn worked(&self) -> Vec<(String, CellarState)> {
        self.world(|world| world.worked.clone())
    }
}

impl CellarStateHandler for Cellars {
    type Context = Action<Cellar>;
    type Error = Failure;

    async fn filling(&self, cx: &Action<Cellar>) -> Result<cellar_state::AfterFilling, Failure> {
        let name = cx.object().name_any();
        self.world(|world| {
            world.stocked.insert(name.clone());
            world.worked.push((name, Filling));
        });
        Ok(cellar_state::AfterFilling::Next)
    }

    async fn emptying(&self, cx: &Action<Cellar>) -> Result<cellar_state::AfterEmptying, Failure> {
        let name = cx.object().name_any();
        self.world(|world| {
            world.stocked.remove(&name);
            world.worked.push((name, Emptying));
        });
        Ok(cellar_state::AfterEmptying::Next)
    }
}

impl Application for Cellars {
    type Resource = Cellar;

    async fn observe(&self, cx: &Context<Cellar>) -> Result<Observation<CellarState>, Failure> {
        let name = cx.object().name_any();
        let is_stocked = self.world(|world| world.stocked.contains(&name));
        Ok(if is_stocked && cx.state() == StateOnRecord::New {
            Observation::in_state(Stocked)
        } else {
            Observation::unobserved()
        })
    }

    async fn extra(&self, cx: &Context<Cellar>) -> Result<CellarExtra, Failure> {
        let status = cx.object().status.as_ref();
        Ok(status.map(|it| it.extra.clone()).unwrap_or_default())
    }
}

impl Served for Cellars {}

/// Returns the CRD of the old controller.
fn old_crd() -> CustomResourceDefinition {
    let text = |of: &str| json!({ "type": of });
    let condition = json!({ "type": "object", "properties": {
        "type": text("string"), "status": text("string"), "reason": text("string"),
        "message": text("string"), "lastTransitionTime": text("string"),
    } });
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "cellars.demo.okt.dev" },
        "spec": {
            "group": "demo.okt.dev",
            "names": { "kind": "Cellar", "plural": "cellars", "singular": "cellar" },
            "scope": "Namespaced",
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": { "type": "object", "properties": {
                    "spec": { "type": "object", "properties": { "bottles": text("integer") } },
                    "status": { "type": "object", "properties": {
                        "observedGeneration": text("integer"),
                        "shelves": text("integer"),
                        "keeper": text("string"),
                        "conditions": { "type": "array", "items": condition },
                    } },
                } } },
            }],
        },
    });
    serde_json::from_value(crd).expect("a CRD")
}

/// The status as the old controller writes it.
fn old_status() -> Value {
    let condition = |name: &str, reason: &str| {
        json!({
            "type": name, "status": "True", "reason": reason, "message": "by hand",
            "lastTransitionTime": "2024-05-01T10:00:00Z",
        })
    };
    json!({
        "observedGeneration": 1,
        "shelves": 12,
        "keeper": "Ann",
        "conditions": [
            condition("Ready", "AllStocked"),
            condition("Reconciling", "Counting"),
            condition("Insured", "ByContract"),
        ],
    })
}

/// Replaces the whole status, as a client with the old types does.
async fn write_old_status(rig: &Rig<Cellars>, name: &str) -> kube::Result<DynamicObject> {
    let mut object = rig.raw().read(name).await;
    object.data["status"] = old_status();
    let params = PostParams {
        field_manager: Some("old-controller".into()),
        ..Default::default()
    };
    rig.raw().replace_status(name, &params, &object).await
}

/// Returns a cluster with objects of the old controller: `red` and `white` are stocked, `new` is not.
async fn inherited() -> Rig<Cellars> {
    let rig = Rig::<Cellars>::bare();
    rig.define(old_crd()).await;
    for name in ["red", "white", "new"] {
        rig.create_raw(json!({
            "apiVersion": "demo.okt.dev/v1",
            "kind": "Cellar",
            "metadata": { "name": name, "finalizers": ["example.com/old"] },
            "spec": { "bottles": 600 },
        }))
        .await;
    }
    for name in ["red", "white"] {
        write_old_status(&rig, name).await.expect("it is accepted");
        rig.app.world(|world| world.stocked.insert(name.into()));
    }
    rig
}

/// Applies the union of the old CRD and the operator's, as `kubectl apply --server-side --force-conflicts` does.
async fn apply_crd(rig: &Rig<Cellars>) {
    let crds = rig.of::<CustomResourceDefinition>();
    let params = PatchParams::apply("kubectl").force();
    let old = crds.get("cellars.demo.okt.dev").await.expect("the old CRD");
    let new = Patch::Apply(crd_union::<Cellar>(&old).expect("a CRD"));
    let applied = crds.patch("cellars.demo.okt.dev", &params, &new).await;
    applied.expect("the CRD is accepted");
}

/// Returns the parts of a status that are not the operator's: a field of `Extra`, another one, and a condition.
async fn foreign(rig: &Rig<Cellars>, name: &str) -> Value {
    let status = &rig.raw().read(name).await.data["status"];
    let mut conditions = status["conditions"].as_array().expect("a list").iter();
    let insured = conditions.find(|it| it["type"] == "Insured");
    json!([status["shelves"], status["keeper"], insured])
}

#[tokio::test(start_paused = true)]
async fn objects_of_an_old_controller_are_taken_over_where_they_are() {
    let rig = inherited().await;
    let mut before = Vec::new();
    for name in ["red", "white", "new"] {
        rig.pause(name).await;
        before.push(rig.object(name).await);
    }
    let insured = old_status()["conditions"][2].clone();
    apply_crd(&rig).await;
    rig.start();

    // While they are paused, the operator observes and reports, and does nothing.
    rig.pass(LONG).await;
    assert_eq!(rig.app.worked(), []);
    assert_eq!(rig.shows("red", "Paused").await, "True Paused");
    for name in ["red", "white", "new"] {
        rig.unpause(name).await;
    }
    for name in ["red", "white", "new"] {
        rig.until_ready(name, Stocked).await;
    }
    rig.pass(LONG).await;
    assert_eq!(rig.app.worked(), [("new".to_owned(), Filling)]);
    for name in ["red", "white"] {
        assert_eq!(foreign(&rig, name).await, json!([12, "Ann", insured]));
        assert_eq!(rig.position(name).await.state.known(), Some(Stocked));
        assert_eq!(rig.condition(name, "Reconciling").await, None);
        assert_eq!(rig.shows(name, "Available").await, "True Stocked");
    }
    for old in before {
        let now = rig.get(&old.name_any()).await.expect("it is there");
        assert_eq!((now.uid(), now.spec.bottles), (old.uid(), 600));
        assert_eq!(now.finalizers(), ["example.com/old", FINALIZER]);
    }

    // A deletion waits for the finalizer of the old controller.
    rig.delete("red").await;
    rig.until_in("red", Empty).await;
    rig.pass(LONG).await;
    let red = rig.object("red").await;
    assert_eq!(red.finalizers(), ["example.com/old"]);
    rig.patch("red", json!({ "metadata": { "finalizers": null } }))
        .await;
    rig.until_gone("red").await;
}

#[tokio::test(start_paused = true)]
async fn an_operator_that_starts_before_the_crd_has_its_fields_waits_and_writes_nothing() {
    let rig = inherited().await;
    rig.start();
    rig.pass(LONG).await;
    assert_eq!(rig.wire.writes(), [""; 0]);
    assert_eq!(rig.app.worked(), []);
    apply_crd(&rig).await;
    rig.until_ready("red", Stocked).await;
    rig.until_ready("new", Stocked).await;
    assert_eq!(rig.app.worked(), [("new".to_owned(), Filling)]);
}

#[tokio::test(start_paused = true)]
async fn an_old_controller_that_still_runs_is_refused_and_nothing_is_lost() {
    let rig = inherited().await;
    apply_crd(&rig).await;
    rig.start();
    rig.until_ready("red", Stocked).await;
    let before = rig.get("red").await.and_then(|it| it.status);
    let refused = write_old_status(&rig, "red")
        .await
        .expect_err("it is refused");
    println!("{refused}");
    assert!(refused.to_string().contains("lifecycle"), "{refused}");
    assert_eq!(rig.get("red").await.and_then(|it| it.status), before);
    rig.pass(LONG).await;
    assert_eq!(rig.app.worked(), [("new".to_owned(), Filling)]);
}

#[test]
fn the_page_shows_these_types() {
    let page = include_str!("../../../docs/adopting.md");
    let shown = page.split("```rust\n").nth(1).expect("a block");
    let (shown, _) = shown.split_once("```").expect("its end");
    assert!(include_str!("adoption.rs").contains(shown));
}
