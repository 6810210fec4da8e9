//! The CRD: its content, and the writes that it accepts and refuses.

use std::time::Duration;

use expect_test::expect_file;
use kube::CustomResource;
use okt::{CrdError, Desired, Lifecycle, LifecycleSpec, StateOf, Status, crd};
use okt_testing::Fault;
use okt_testing::conditions::{self, Context};
use okt_tests::DatabaseState::{End, Running};
use okt_tests::{Database, DatabaseState, Databases, Rig, Served, SiteState, Sites};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

#[test]
fn the_definition_of_a_database_matches_its_snapshot() {
    let definition = crd::<Database>().expect("a CRD");
    let yaml = serde_saphyr::to_string(&definition).expect("YAML");
    expect_file!["./database.crd.yaml"].assert_eq(&yaml);
}

async fn database_at(lifecycle: Value) -> Rig {
    let rig = Rig::without_operator().await;
    rig.create("db", json!({})).await;
    rig.patch_status("db", json!({ "lifecycle": lifecycle }))
        .await
        .expect("it is accepted");
    rig
}

fn code(written: Result<(), kube::Error>) -> u16 {
    match written {
        Ok(()) => 200,
        Err(kube::Error::Api(status)) => status.code,
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test(start_paused = true)]
async fn the_graph_in_the_definition_refuses_undeclared_edges() {
    for (from, to, transition, jumps, answer) in [
        ("Start", "Running", 2, 0, 200),
        ("Start", "Failed", 2, 0, 200),
        ("Start", "Stopping", 2, 0, 422),
        ("Start", "Stopping", 2, 1, 200),
        ("Start", "Zombie", 2, 0, 422),
        ("Start", "Running", 1, 0, 422),
        ("Start", "Running", 3, 0, 422),
        ("Start", "Start", 2, 0, 422),
        ("Start", "Start", 0, 0, 422),
        ("Start", "Start", 1, 0, 200),
    ] {
        let rig = database_at(json!({ "state": from, "transition": 1, "jumps": 0 })).await;
        let next =
            json!({ "lifecycle": { "state": to, "transition": transition, "jumps": jumps } });
        let answered = code(rig.patch_status("db", next).await);
        assert_eq!(
            answered, answer,
            "{from} to {to}, transition {transition}, jumps {jumps}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn counters_never_decrease_and_a_recorded_lifecycle_stays() {
    let rig = database_at(json!({ "state": "Running", "transition": 5, "jumps": 2 })).await;
    let fewer = json!({ "lifecycle": { "state": "Running", "transition": 5, "jumps": 1 } });
    assert_eq!(code(rig.patch_status("db", fewer).await), 422);
    let fewer = json!({ "lifecycle": { "state": "Stopping", "transition": 4, "jumps": 2 } });
    assert_eq!(code(rig.patch_status("db", fewer).await), 422);
    assert_eq!(
        code(rig.patch_status("db", json!({ "lifecycle": null })).await),
        422
    );
}

#[tokio::test(start_paused = true)]
async fn the_first_state_is_the_entry_or_a_jump() {
    for (state, jumps, answer) in [
        ("Start", 0, 200),
        ("Running", 1, 200),
        ("Running", 0, 422),
        ("End", 0, 422),
    ] {
        let rig = Rig::without_operator().await;
        rig.create("db", json!({})).await;
        let first = json!({ "lifecycle": { "state": state, "transition": 1, "jumps": jumps } });
        assert_eq!(
            code(rig.patch_status("db", first).await),
            answer,
            "{state} {jumps}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_leaf_leads_to_the_entry_only() {
    for (to, answer) in [("Start", 200), ("Running", 422)] {
        let rig = database_at(json!({ "state": "End", "transition": 5, "jumps": 1 })).await;
        let next = json!({ "lifecycle": { "state": to, "transition": 6, "jumps": 1 } });
        assert_eq!(code(rig.patch_status("db", next).await), answer, "{to}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_renaming_is_neither_a_transition_nor_a_jump_and_old_names_keep_their_edges() {
    for (from, to, transition, answer) in [
        ("Draft", "Building", 1, 200),
        ("Building", "Draft", 1, 200),
        ("Draft", "Building", 2, 422),
        ("Draft", "Live", 2, 200),
        ("Draft", "Online", 2, 200),
        ("Building", "Live", 2, 200),
        ("Draft", "Archived", 2, 422),
    ] {
        let rig = Rig::<Sites>::without_operator_of().await;
        rig.create("s", json!({})).await;
        let first = json!({ "lifecycle": { "state": from, "transition": 1, "jumps": 0 } });
        rig.patch_status("s", first).await.expect("it is accepted");
        let next = json!({ "lifecycle": { "state": to, "transition": transition, "jumps": 0 } });
        let answered = code(rig.patch_status("s", next).await);
        assert_eq!(answered, answer, "{from} to {to}, transition {transition}");
    }
    let _ = SiteState::Building;
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
        assert_eq!(code(written.map(drop)), 422, "{lifecycle}");
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
