//! An application whose error type panics: OKT contains a panic in any line of user code.

use kube::CustomResource;
use okt::{Action, Application, Desired, Failure, LifecycleSpec, Status, lifecycle_graph};
use okt_tests::{Rig, Served, assert_contains};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A lifecycle with one piece of work.
#[lifecycle_graph]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum CarelessState {
    #[entry]
    #[trigger(Broken, on_error(attempts = 2))]
    #[child(Broken)]
    Working,
    #[rest(hold, idle)]
    #[child(Gone)]
    Broken,
    #[leaf(idle)]
    Gone,
}

#[derive(CustomResource, LifecycleSpec, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "demo.okt.dev",
    version = "v1",
    kind = "Careless",
    plural = "careless",
    namespaced,
    status = "Status<CarelessState>"
)]
struct CarelessSpec {
    #[serde(default)]
    lifecycle: Desired<CarelessState>,
}

#[derive(Clone, Default)]
struct Author;

/// An error whose conversion into `Failure` panics.
struct Unspeakable;

impl From<Unspeakable> for Failure {
    fn from(_: Unspeakable) -> Self {
        panic!("no words")
    }
}

impl CarelessStateHandler for Author {
    type Context = Action<Careless>;
    type Error = Unspeakable;

    async fn working(
        &self,
        _: &Action<Careless>,
    ) -> Result<careless_state::AfterWorking, Unspeakable> {
        Err(Unspeakable)
    }
}

impl Application for Author {
    type Resource = Careless;
}

impl Served for Author {}

#[tokio::test(start_paused = true)]
async fn an_error_whose_conversion_panics_counts_as_a_failed_attempt() {
    let rig = Rig::<Author>::of().await;
    rig.create_in("c", CarelessState::Broken).await;
    let failure = rig.position("c").await.failure.expect("a failure");
    assert_eq!(failure.reason, "Panicked");
    assert_contains(&failure.message, "no words");
}
