//! A proxy between an operator and a real API server, which swallows all bytes and closes nothing.

use std::time::Duration;

use kube::Client;
use okt::{Operator, crd};
use okt_tests::{Cluster, Database, DatabaseState::Running, Databases, Proxy};
use serde_json::json;
use tokio::time::sleep;

use crate::{SERVER, on_kubernetes};

#[tokio::test]
#[ignore = "needs a real API server; run with --include-ignored"]
async fn an_operator_behind_a_proxy_that_swallowed_everything_goes_on() {
    on_kubernetes("a proxy that swallows", async |place| {
        let cluster: Cluster<Databases> = place.cluster();
        cluster.define(crd::<Database>().expect("a CRD")).await;
        let Some(Some(server)) = SERVER.get() else {
            return;
        };
        let mut config = server.config();
        let port = config.cluster_url.port_u16().expect("a port");
        let proxy = Proxy::to(([127, 0, 0, 1], port).into()).await;
        let address = format!("https://127.0.0.1:{}", proxy.address().port());
        config.cluster_url = address.parse().expect("an address");
        let client = Client::try_from(config).expect("a client");
        let operator = Operator::new(client, Databases::default()).virtual_time();
        let operator = tokio::spawn(operator.run(std::future::pending()));
        cluster.create_ready("first", Running).await;
        proxy.swallow(true);
        cluster.create("second", json!({})).await;
        // Nothing comes any more, so only timers are left.
        tokio::time::pause();
        sleep(Duration::from_mins(7)).await;
        tokio::time::resume();
        let second = cluster.object("second").await;
        assert!(
            second
                .status
                .is_none_or(|status| status.lifecycle.is_none())
        );
        proxy.swallow(false);
        cluster.until_ready("second", Running).await;
        operator.abort();
    })
    .await;
}
