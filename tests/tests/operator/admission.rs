//! Objects that came past the webhooks: the operator checks and completes what it reads.

use std::sync::Arc;
use std::time::Duration;

use kube::CustomResource;
use okt::{
    Action, Admission, Application, Desired, Failure, LifecycleSpec, Status, Validation,
    lifecycle_graph, reasons,
};
use okt_tests::{Rig, Served};
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The life of a raft.
#[lifecycle_graph]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RaftState {
    #[entry]
    #[rest]
    #[child(Sinking)]
    Afloat,
    #[child(Sunk)]
    Sinking,
    #[leaf(idle)]
    Sunk,
}

/// A raft of logs.
#[derive(CustomResource, LifecycleSpec, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "demo.okt.dev",
    version = "v1",
    kind = "Raft",
    namespaced,
    status = "Status<RaftState>"
)]
pub(crate) struct RaftSpec {
    #[serde(default)]
    lifecycle: Desired<RaftState>,
    logs: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ropes: Option<u32>,
}

/// The logs and ropes of a raft.
type Parts = (u32, Option<u32>);

/// Ties rafts; `tied` has the parts of each.
#[derive(Clone, Default)]
struct Rafts {
    tied: Arc<Mutex<Vec<Parts>>>,
}

impl RaftStateHandler for Rafts {
    type Context = Action<Raft>;
    type Error = Failure;

    async fn afloat(&self, action: &Action<Raft>) -> Result<raft_state::AfterAfloat, Failure> {
        let spec = &action.object().spec;
        self.tied.lock().push((spec.logs, spec.ropes));
        Ok(raft_state::AfterAfloat::Stay)
    }

    async fn sinking(&self, _: &Action<Raft>) -> Result<raft_state::AfterSinking, Failure> {
        Ok(raft_state::AfterSinking::Sunk)
    }
}

impl Application for Rafts {
    type Resource = Raft;

    fn admission(admission: Admission<Raft>) -> Admission<Raft> {
        admission.validated_by(validate).completed_by(complete)
    }
}

impl Served for Rafts {}

fn validate(old: Option<&Raft>, new: &Raft) -> Validation {
    let mut validation = Validation::default();
    assert_ne!(new.spec.logs, 13, "nobody goes on that one");
    if new.spec.logs < 2 {
        validation.refuse("spec.logs", "one log turns over");
    }
    if old.is_none_or(|old| old.spec.logs != new.spec.logs) && new.spec.logs > 99 {
        validation.refuse("spec.logs", "no raft becomes so large");
    }
    validation
}

fn complete(raft: &mut Raft) {
    raft.spec.ropes.get_or_insert(raft.spec.logs + 1);
}

async fn rafts() -> Rig<Rafts> {
    let rig = Rig::<Rafts>::of().await;
    rig.start();
    rig
}

fn logs(number: u32) -> Value {
    json!({ "logs": number })
}

#[tokio::test(start_paused = true)]
async fn an_object_that_came_past_the_webhook_is_reported_and_not_acted_upon_until_it_is_valid() {
    let rig = rafts().await;
    rig.create_with("a", logs(1)).await;
    let why = "the operator does not act upon this object: spec.logs: one log turns over";
    rig.until_message("a", "Stalled", reasons::INVALID, why)
        .await;
    rig.pass(Duration::from_hours(1)).await;
    let raft = rig.get("a").await.expect("it is there");
    assert!(raft.status.is_none_or(|it| it.lifecycle.is_none()));
    assert_eq!(*rig.app.tied.lock(), []);
    rig.patch("a", json!({ "spec": { "logs": 3 } })).await;
    rig.until_ready("a", RaftState::Afloat).await;
    assert_eq!(*rig.app.tied.lock(), [(3, Some(4))]);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_became_invalid_keeps_its_position_and_can_be_deleted() {
    let rig = rafts().await;
    rig.create_with("a", logs(2)).await;
    rig.until_ready("a", RaftState::Afloat).await;
    rig.patch("a", json!({ "spec": { "logs": 0 } })).await;
    let why = "spec.logs: one log turns over";
    rig.until_message("a", "Stalled", reasons::INVALID, why)
        .await;
    assert_eq!(rig.position("a").await.state.as_str(), "Afloat");
    rig.delete("a").await;
    rig.until_gone("a").await;
}

#[tokio::test(start_paused = true)]
async fn what_only_a_change_breaks_does_not_stop_an_object_that_has_it() {
    let rig = rafts().await;
    rig.create_with("a", logs(100)).await;
    rig.until_ready("a", RaftState::Afloat).await;
    assert_eq!(*rig.app.tied.lock(), [(100, Some(101))]);
}

#[tokio::test(start_paused = true)]
async fn a_check_that_panics_stops_its_object_alone() {
    let rig = rafts().await;
    rig.create_with("a", logs(13)).await;
    rig.create_with("b", logs(12)).await;
    rig.until_ready("b", RaftState::Afloat).await;
    let why = "nobody goes on that one";
    rig.until_message("a", "Stalled", reasons::INVALID, why)
        .await;
}
