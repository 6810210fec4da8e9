//! Upgrades of a graph with objects in flight, on a real API server.

use okt_tests::upgrades;

use crate::on_kubernetes;

/// Each scenario is a test of its own.
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
