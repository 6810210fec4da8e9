//! Upgrades of a graph with objects in flight, on a real API server.

use okt_tests::upgrades;

use crate::on_kubernetes;

/// Each scenario is a test of its own.
macro_rules! scenarios {
    ($($scenario:ident)*) => {
        $(
            #[tokio::test]
            async fn $scenario() {
                on_kubernetes(stringify!($scenario), async |place| upgrades::$scenario(&place).await).await;
            }
        )*
    };
}

scenarios! {
    additions_the_definition_first
    additions_the_operator_first
    removals_the_operator_first
    removals_the_definition_first
    renames_the_definition_first
    renames_the_operator_first
    a_union_lets_both_releases_write
    a_union_lets_two_states_become_one
}
