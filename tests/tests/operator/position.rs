//! The record comes first: no work begins before its position is stored.

use okt::Lifecycle;
use okt_testing::Fault;
use okt_tests::{DatabaseState::*, Reply, Rig};
use serde_json::json;

#[tokio::test(start_paused = true)]
async fn a_handler_finds_its_position_stored_when_it_begins() {
    let rig = Rig::new().await;
    rig.app.observe_into(rig.client.clone());
    rig.server
        .set_watch_lag(std::time::Duration::from_millis(30));
    rig.app.next_time(Start, Reply::Fail("not yet"));
    rig.create_ready("db", Running).await;
    // A new revision runs the work again under a new id, which is also stored first.
    rig.patch("db", json!({ "spec": { "storage": "2Gi" } }))
        .await;
    rig.until_ready("db", Running).await;
    rig.visit("db", "Servicing", None).await;
    rig.until_ready("db", Running).await;
    rig.delete_until_gone("db").await;
    let ran = rig.app.ran();
    assert_eq!(ran.len(), 7, "{ran:#?}");
    for ran in ran {
        let expected = (ran.state.name().to_owned(), ran.id.clone());
        assert_eq!(ran.stored, Some(expected));
    }
}

#[tokio::test(start_paused = true)]
async fn no_work_starts_while_the_server_refuses_its_record() {
    let rig = Rig::without_operator().await;
    let outage = rig.inject(Fault::unavailable().subresource("status"));
    rig.start();
    rig.create("db", json!({})).await;
    rig.pass(std::time::Duration::from_mins(2)).await;
    assert_eq!(rig.app.ran(), []);
    outage.end();
    rig.until_ready("db", Running).await;
}
