//! These tests upgrade a graph with objects in transition, on a real API server.

use okt_tests::upgrades;

use crate::on_kubernetes;

/// Defines one test for each scenario.
macro_rules! scenarios {
    ($($scenario:ident)*) => {
        $(
            #[tokio::test]
            #[ignore = "needs a real API server; run with --include-ignored"]
            async fn $scenario() {
                on_kubernetes(stringify!($scenario), async |place| upgrades::$scenario(&place).await).await;
            }
        )*
    };
}

okt_tests::upgrade_scenarios!(scenarios);
