//! Upgrades of a graph with objects in flight, as on a real API server.

use std::time::Duration;

use okt_testing::ApiServer;
use okt_tests::rollout::Place;
use okt_tests::upgrades;

fn place() -> Place {
    Place {
        client: ApiServer::new().client(),
        patience: Duration::from_secs(30),
        virtual_time: true,
    }
}

/// Each scenario is a test of its own.
macro_rules! scenarios {
    ($($scenario:ident)*) => {
        $(
            #[tokio::test(start_paused = true)]
            async fn $scenario() {
                upgrades::$scenario(&place()).await;
            }
        )*
    };
}

okt_tests::upgrade_scenarios!(scenarios);
