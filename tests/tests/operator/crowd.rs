//! Many objects at once: the requests to the API stay bounded, and every object reaches its end.

use std::collections::BTreeSet;
use std::time::Duration;

use kube::api::{DeleteParams, ListParams};
use okt_testing::Fault;
use okt_tests::{DatabaseState::*, OPERATOR, Rig, numbered};

const OBJECTS: usize = 200;
/// How many reconciliations an operator runs at the same time by default.
const AT_ONCE: usize = 16;
/// How long the server takes for a write.
const SLOW: Duration = Duration::from_millis(100);

#[tokio::test(start_paused = true)]
async fn objects_deleted_at_once_are_stopped_once_each_and_released_sixteen_at_a_time() {
    let rig = Rig::new().await;
    let name = |number| format!("db-{number}");
    rig.create_all_ready(&numbered("db", 0..OBJECTS), Running)
        .await;

    let settled = rig.server.mark();
    rig.inject(Fault::delay(SLOW).on_writes());
    let (delete, list) = (DeleteParams::default(), ListParams::default());
    let deleted = rig.raw().delete_collection(&delete, &list).await;
    deleted.expect("the deletion is accepted");
    for number in 0..OBJECTS {
        rig.until_gone(&name(number)).await;
    }

    let stopped: Vec<_> = (rig.app.ran().into_iter())
        .filter(|ran| ran.state == Stopping)
        .map(|ran| ran.name)
        .collect();
    assert_eq!(stopped.len(), OBJECTS);
    assert_eq!(stopped.iter().collect::<BTreeSet<_>>().len(), OBJECTS);
    assert_eq!(rig.app.overlaps(), 0);

    let writes: Vec<_> = (rig.server.requests_since(settled).into_iter())
        .filter(|request| request.client == OPERATOR && request.is_write())
        .collect();
    // The writes are those of Stopping, of the leaf and of the finalizer.
    assert_eq!(writes.len(), 3 * OBJECTS);
    for crowd in writes.windows(AT_ONCE + 1) {
        let time = crowd[AT_ONCE].at.duration_since(crowd[0].at);
        assert!(time >= SLOW, "{} writes within {time:?}", crowd.len());
    }
}
