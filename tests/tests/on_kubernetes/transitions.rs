//! These tests count the writes of 900 transitions on a real API server, with constant reconcile requests and delayed
//! watches.

use okt_tests::RunnerState;
use okt_tests::transitions::three_hundred_runners_cost;

use crate::on_kubernetes;

#[tokio::test]
#[ignore = "needs a real API server; run with --include-ignored"]
async fn nine_hundred_transitions_to_an_idle_rest_are_nine_hundred_patches() {
    let what = "900 transitions to an idle state";
    on_kubernetes(what, async |place| {
        three_hundred_runners_cost(&place, RunnerState::Idle, 900).await;
    })
    .await;
}

#[tokio::test]
#[ignore = "needs a real API server; run with --include-ignored"]
async fn work_at_rest_is_one_patch_more_of_each_object() {
    let what = "900 transitions to a state with work";
    on_kubernetes(what, async |place| {
        three_hundred_runners_cost(&place, RunnerState::Resting, 1200).await;
    })
    .await;
}
