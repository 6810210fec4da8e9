//! The CRD: its content, and the writes that it accepts and refuses.

use std::time::Duration;

use expect_test::expect_file;
use kube::CustomResource;
use okt::{CrdError, Desired, Lifecycle, LifecycleSpec, StateOf, Status, crd};
use okt_testing::Fault;
use okt_testing::conditions::{self, Context};
use okt_tests::DatabaseState::{End, Running};
use okt_tests::{Database, DatabaseState, Databases, Rig, Served, Sites, rules};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

#[test]
fn the_definition_of_a_database_matches_its_snapshot() {
    let definition = crd::<Database>().expect("a CRD");
    let yaml = serde_saphyr::to_string(&definition).expect("YAML");
    expect_file!["./database.crd.yaml"].assert_eq(&yaml);
}

#[tokio::test(start_paused = true)]
async fn the_rules_refuse_undeclared_edges_and_counters_that_go_back() {
    let rig = Rig::without_operator().await;
    rules::check_messages(&rig).await;
}

#[tokio::test(start_paused = true)]
async fn a_renaming_is_neither_a_transition_nor_a_jump_and_old_names_keep_their_edges() {
    let moves = [
        ("Draft", "Building", 1, true),
        ("Building", "Draft", 1, true),
        ("Draft", "Building", 2, false),
        ("Draft", "Live", 2, true),
        ("Draft", "Online", 2, true),
        ("Building", "Live", 2, true),
        ("Draft", "Archived", 2, false),
    ];
    let rig = Rig::<Sites>::without_operator_of().await;
    rules::check_moves(&rig, (1, 0), &moves).await;
}

#[tokio::test(start_paused = true)]
async fn a_new_object_reads_as_not_yet_observed() {
    let rig = Rig::without_operator().await;
    let database = rig.create("db", json!({})).await;
    assert_eq!(
        database.status.expect("a status").observed_generation,
        Some(-1)
    );
}

#[tokio::test(start_paused = true)]
async fn a_desired_state_that_the_graph_does_not_know_is_refused() {
    for lifecycle in [
        json!({ "state": "Flying" }),
        json!({ "state": "Servicing" }),
        json!({ "visit": { "state": "Stopping" } }),
        json!({ "visit": { "request": "no state" } }),
    ] {
        let rig = Rig::without_operator().await;
        rig.create("db", json!({})).await;
        let patch = kube::api::Patch::Merge(json!({ "spec": { "lifecycle": lifecycle } }));
        let written = rig
            .raw()
            .patch("db", &kube::api::PatchParams::default(), &patch)
            .await;
        let error = written.map(drop).expect_err("it is refused");
        assert!(
            matches!(&error, kube::Error::Api(status) if status.code == 422),
            "{lifecycle}: {error}"
        );
    }
}

/// Adds a field that OKT owns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Clash {
    conditions: Vec<String>,
}

#[derive(CustomResource, LifecycleSpec, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "demo.okt.dev",
    version = "v1",
    kind = "Clashing",
    namespaced,
    status = "Status<DatabaseState, Clash>"
)]
struct ClashingSpec {
    lifecycle: Desired<DatabaseState>,
}

#[derive(CustomResource, LifecycleSpec, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "demo.okt.dev",
    version = "v1",
    kind = "Listing",
    namespaced,
    status = "Status<DatabaseState, Vec<String>>"
)]
struct ListingSpec {
    lifecycle: Desired<DatabaseState>,
}

#[derive(CustomResource, LifecycleSpec, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(group = "demo.okt.dev", version = "v1", kind = "Nothing", namespaced)]
#[kube(status = "Status<DatabaseState, ()>")]
struct NothingSpec {
    lifecycle: Desired<DatabaseState>,
}

#[test]
fn a_status_may_not_add_a_field_that_okt_writes() {
    let error = crd::<Clashing>().expect_err("it clashes");
    assert_eq!(
        error,
        CrdError::FieldTaken {
            kind: "Clashing".into(),
            field: "conditions".into()
        }
    );
    let error = crd::<Listing>().expect_err("a list has no fields");
    assert_eq!(
        error,
        CrdError::NoStruct {
            kind: "Listing".into()
        }
    );
    crd::<Nothing>().expect("nothing is added");
}

#[test]
fn generated_crds_break_no_rule_for_schemas() {
    fn of<A: Served>() -> Vec<String> {
        let crd = serde_json::to_value(crd::<A::Resource>().expect("a CRD")).expect("JSON");
        let states = StateOf::<A>::GRAPH.states.iter();
        let declared = states.flat_map(|state| state.conditions);
        let context = Context::new().declares(declared.map(|condition| condition.name));
        let found = conditions::lint(None, &crd, &context);
        found.iter().map(ToString::to_string).collect()
    }
    assert_eq!(of::<Databases>(), [""; 0]);
    assert_eq!(of::<Sites>(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn without_its_definition_an_operator_asks_for_no_object_and_begins_when_it_comes() {
    let rig = Rig::<Databases>::bare();
    rig.start();
    rig.pass(Duration::from_mins(10)).await;
    let asked = rig.server.requests().into_iter();
    let asked: Vec<String> = (asked.filter(|request| request.path.contains("/databases")))
        .map(|request| request.to_string())
        .collect();
    assert_eq!(asked, [""; 0]);
    rig.define(crd::<Database>().expect("a CRD")).await;
    rig.create_ready("db", DatabaseState::Running).await;
}

#[tokio::test(start_paused = true)]
async fn an_operator_that_may_not_read_its_definition_operates_its_objects_all_the_same() {
    let mut rig = Rig::without_operator().await;
    rig.options.namespaces = vec!["default".to_owned()];
    let fault = rig.inject(Fault::forbidden().resource("customresourcedefinitions"));
    rig.start();
    rig.create_ready("db", Running).await;
    rig.pass(Duration::from_hours(1)).await;
    rig.ask_for("db", json!({ "state": "End" })).await;
    rig.until_ready("db", End).await;
    fault.end();
}
