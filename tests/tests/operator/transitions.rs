//! The cost of 900 transitions under constant reconcile requests and lagging watches, as on a real API server.

use std::time::Duration;

use okt_testing::ApiServer;
use okt_tests::RunnerState;
use okt_tests::rollout::Place;
use okt_tests::transitions::three_hundred_runners_cost;

fn place() -> Place {
    Place {
        client: ApiServer::new().client(),
        patience: Duration::from_mins(10),
        virtual_time: true,
    }
}

#[tokio::test(start_paused = true)]
async fn nine_hundred_transitions_to_an_idle_rest_are_nine_hundred_patches() {
    three_hundred_runners_cost(&place(), RunnerState::Idle, 900).await;
}

#[tokio::test(start_paused = true)]
async fn work_at_rest_is_one_patch_more_of_each_object() {
    three_hundred_runners_cost(&place(), RunnerState::Resting, 1200).await;
}
