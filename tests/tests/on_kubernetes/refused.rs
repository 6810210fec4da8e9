//! A refusal of the operator's own write by a real API server: a bug to report, not a loop.

use std::time::{Duration, Instant};

use okt::crd;
use okt_tests::{Cluster, Database, DatabaseState, Databases, definition, until};

use serde_json::json;

use crate::on_kubernetes;

/// The time for which the refused writes are recorded.
const WATCHED: Duration = Duration::from_secs(8);

#[tokio::test]
#[ignore = "needs a real API server; run with --include-ignored"]
async fn a_refused_write_is_reported_and_retried_with_backoff_until_the_crd_is_fixed() {
    on_kubernetes("refused writes", async |place| {
        // The CRD claims to hold the whole graph, but its rules lack an edge.
        let cluster: Cluster<Databases> = place.cluster();
        cluster.define(definition::without_an_edge()).await;
        let app = Databases::default();
        let operator = place.operate(app.clone());
        cluster.create("db", json!({})).await;
        let stalled = cluster.until_reason("db", "Stalled", "Refused").await;
        println!("{}", stalled.message);
        assert!(
            stalled
                .message
                .contains("the graph has no edge from Start to Running"),
            "{}",
            stalled.message
        );
        tokio::time::sleep(WATCHED).await;
        let answers = || -> Vec<u16> {
            let writes = operator.tap.writes();
            writes.iter().map(|write| write.status).collect()
        };
        until("it is retried", async || {
            answers().iter().filter(|it| **it == 422).count() >= 2
        })
        .await;
        let answers = answers();
        println!("answers to the writes of {WATCHED:?}: {answers:?}");
        let accepted = answers.iter().filter(|answer| **answer == 200).count();
        let refused = answers.iter().filter(|answer| **answer == 422).count();
        // The finalizer, the entry, the report of the refusal; then attempts after about 1, 2 and 4 seconds.
        assert_eq!(
            (accepted, accepted + refused),
            (3, answers.len()),
            "{answers:?}"
        );
        assert!(refused <= 6, "{answers:?}");
        assert_eq!(app.states("db"), [DatabaseState::Start]);
        let mended = Instant::now();
        cluster.define(crd::<Database>().expect("a CRD")).await;
        cluster.until_ready("db", DatabaseState::Running).await;
        println!("went on {:?} after the mending", mended.elapsed());
        assert_eq!(
            app.states("db"),
            [DatabaseState::Start, DatabaseState::Running]
        );
    })
    .await;
}
