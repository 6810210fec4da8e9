//! Tests the server with many objects at once, and with hours of paused time.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::StreamExt;
use futures::future::{join_all, try_join_all};
use kube::ResourceExt;
use kube::runtime::{WatchStreamExt, watcher};
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::support::{apply_status, get, server, try_create, version, widgets};

#[tokio::test(start_paused = true)]
async fn a_thousand_objects_can_wait_an_hour_of_paused_time() {
    let (server, client) = server().await;
    server.set_watch_lag(Duration::from_mins(1));
    let began = Instant::now();
    let stream = watcher(widgets(&client), watcher::Config::default());
    let mut seen = stream.applied_objects().boxed();

    // Create each object, wait for an hour, and then apply a status.
    let lives = (0..1000).map(|number| {
        let client = client.clone();
        async move {
            let name = format!("w{number}");
            try_create(&client, &name, json!({ "replicas": 2 })).await?;
            sleep(Duration::from_hours(1)).await;
            apply_status(&client, "test", &name, json!({ "phase": "Rested" })).await
        }
    });
    let lives = async { try_join_all(lives).await.expect("no write is refused") };
    let watched = async {
        let mut rested = BTreeSet::new();
        while rested.len() < 1000 {
            let widget = seen.next().await.expect("a watcher has no end");
            let widget = widget.expect("nothing goes wrong");
            if widget.data["status"]["phase"] == "Rested" {
                rested.insert(widget.name_any());
            }
        }
        began.elapsed()
    };
    let (lives, watched) = tokio::join!(lives, watched);

    assert_eq!(lives.len(), 1000);
    // Requests take no time, so the total is the hour and the lag of the last event.
    let expected = Duration::from_mins(61);
    assert!(
        watched >= expected && watched < expected + Duration::from_secs(1),
        "{watched:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_applies_lose_no_write() {
    let (_server, client) = server().await;
    let made = try_create(&client, "a", json!({})).await.expect("new");
    let managers = (0..8).map(|manager| {
        let client = client.clone();
        tokio::spawn(async move {
            for turn in 0..50 {
                let condition = json!({ "type": format!("C{manager}"), "status": "True", "message": format!("{turn}") });
                let status = json!({ "conditions": [condition] });
                let manager = format!("m{manager}");
                apply_status(&client, &manager, "a", status).await?;
            }
            Ok::<_, kube::Error>(())
        })
    });
    for outcome in join_all(managers).await {
        outcome
            .expect("no task panics")
            .expect("no apply is refused");
    }
    let after = get(&client, "a").await;
    let conditions = after.data["status"]["conditions"].as_array();
    let conditions = conditions.expect("a list");
    assert_eq!(conditions.len(), 8);
    assert!(
        conditions
            .iter()
            .all(|condition| condition["message"] == "49")
    );
    // Each apply was exactly one write.
    let number = |text: String| text.parse::<u64>().expect("a number");
    assert_eq!(number(version(&after)), number(version(&made)) + 8 * 50);
}
