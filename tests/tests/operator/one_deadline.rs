//! One deadline over several states, and one edge with several causes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kube::CustomResource;
use okt::{
    Action, Application, Context, DeadlineClock, Desired, Failure, LifecycleSpec, Observation,
    Status, lifecycle_graph,
};
use okt_tests::{Rig, Served};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// The life of an import.
#[lifecycle_graph]
#[deadline(Late, after = "1h", over(Fetching, Checking))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum ImportState {
    #[entry]
    #[child(Checking)]
    Fetching,

    #[trigger(Broken, after = "50m", on_error(attempts = 3))]
    #[child(Fetching)]
    #[child(Loaded)]
    Checking,

    #[rest(idle)]
    #[child(Gone)]
    Loaded,

    #[rest(hold, idle)]
    #[child(Fetching)]
    #[child(Gone)]
    Late,

    #[rest(hold, idle)]
    #[child(Fetching)]
    #[child(Gone)]
    Broken,

    #[leaf(idle)]
    Gone,
}

#[derive(CustomResource, LifecycleSpec, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "demo.okt.dev",
    version = "v1",
    kind = "Import",
    namespaced,
    status = "Status<ImportState>"
)]
struct ImportSpec {
    #[serde(default)]
    lifecycle: Desired<ImportState>,
}

#[derive(Clone, Default)]
struct Imports {
    is_complete: Arc<AtomicBool>,
    is_corrupt: Arc<AtomicBool>,
    counts_wall_time: Arc<AtomicBool>,
}

const MINUTE: Duration = Duration::from_mins(1);

impl ImportStateHandler for Imports {
    type Context = Action<Import>;
    type Error = Failure;

    /// It takes 20 minutes.
    async fn fetching(&self, cx: &Action<Import>) -> Result<import_state::AfterFetching, Failure> {
        if cx.time_in_state().unwrap_or_default() < MINUTE * 20 {
            return Ok(import_state::AfterFetching::Wait(MINUTE));
        }
        Ok(import_state::AfterFetching::Next)
    }

    /// It never ends, or fetches again after 15 minutes.
    async fn checking(&self, cx: &Action<Import>) -> Result<import_state::AfterChecking, Failure> {
        if self.is_corrupt.load(Ordering::Relaxed) {
            return Err(Failure::retry("Corrupt", "the sum differs"));
        }
        if self.is_complete.load(Ordering::Relaxed)
            || cx.time_in_state().unwrap_or_default() < MINUTE * 15
        {
            return Ok(import_state::AfterChecking::Wait(MINUTE));
        }
        Ok(import_state::AfterChecking::Fetching)
    }
}

impl Application for Imports {
    type Resource = Import;

    async fn observe(&self, _: &Context<Import>) -> Result<Observation<ImportState>, Failure> {
        Ok(Observation::unobserved())
    }

    fn deadlines_count(&self, _: ImportState) -> DeadlineClock {
        if self.counts_wall_time.load(Ordering::Relaxed) {
            DeadlineClock::Wall
        } else {
            DeadlineClock::Acting
        }
    }
}

impl Served for Imports {}

fn age(since: Option<jiff::Timestamp>, now: Option<jiff::Timestamp>) -> f64 {
    let (since, now) = (since.expect("a time"), now.expect("a time"));
    now.duration_since(since).as_secs_f64() / 60.0
}

#[tokio::test(start_paused = true)]
async fn a_deadline_over_several_states_counts_from_the_first_of_them() {
    let rig = Rig::<Imports>::of().await;
    rig.create_in("books", ImportState::Fetching).await;
    let began = rig.position("books").await.since;
    rig.until_in("books", ImportState::Late).await;
    let late = rig.position("books").await;
    // Fetching, Checking, Fetching, Checking: 20 + 15 + 20 + 5 minutes.
    assert_eq!(late.trail, ">(Fetching<<>>Checking)x2>Late>");
    let took = age(began, late.since);
    assert!((60.0..60.1).contains(&took), "{took} minutes");
    assert_eq!(late.deadline_since, None);
    let failure = late.failure.expect("a failure");
    assert_eq!(
        (failure.reason.as_str(), failure.message.as_str()),
        (
            "DeadlineExceeded",
            "in Checking when the deadline of 1h was over"
        )
    );
}

#[tokio::test(start_paused = true)]
async fn a_deadline_over_several_states_is_kept_across_restarts_and_begins_anew_after_rest() {
    let rig = Rig::<Imports>::of().await;
    rig.create_in("books", ImportState::Checking).await;
    let since = rig.position("books").await.deadline_since;
    for _ in 0..3 {
        rig.pass(MINUTE * 5).await;
        rig.restart().await;
    }
    rig.until_in("books", ImportState::Late).await;
    let took = age(since, rig.position("books").await.since);
    assert!((60.0..60.1).contains(&took), "{took} minutes");

    rig.ask_for("books", json!({ "state": "Loaded", "request": "again" }))
        .await;
    rig.until_in("books", ImportState::Fetching).await;
    let again = rig.position("books").await;
    assert_eq!(again.deadline_since, again.since);
}

#[tokio::test(start_paused = true)]
async fn an_absence_counts_only_where_the_wall_time_counts() {
    for counts_wall_time in [false, true] {
        let rig = Rig::<Imports>::of().await;
        let wall = &rig.app.counts_wall_time;
        wall.store(counts_wall_time, Ordering::Relaxed);
        rig.create_in("books", ImportState::Checking).await;
        rig.kill().await;
        rig.pass(MINUTE * 120).await;
        rig.start();
        rig.pass(MINUTE).await;
        let state = rig.position("books").await.state;
        let is_late = state.as_str() == "Late" || state.as_str() == "Broken";
        assert_eq!(is_late, counts_wall_time, "{state}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_edge_with_several_causes_is_taken_at_the_first_of_them() {
    let rig = Rig::<Imports>::of().await;
    rig.app.is_corrupt.store(true, Ordering::Relaxed);
    let failed = rig.create_in("corrupt", ImportState::Broken).await;
    let position = failed
        .status
        .expect("a status")
        .lifecycle
        .expect("a position");
    assert_eq!(position.failure.expect("a failure").reason, "Corrupt");
    let cause = position.history.last().map(|last| last.cause.as_str());
    assert_eq!(cause, Some("OnError"));

    rig.app.is_corrupt.store(false, Ordering::Relaxed);
    rig.app.is_complete.store(true, Ordering::Relaxed);
    rig.patch(
        "corrupt",
        json!({ "spec": { "lifecycle": { "request": "again" } } }),
    )
    .await;
    rig.until_in("corrupt", ImportState::Late).await;
}
