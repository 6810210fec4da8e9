//! This file says what watches tell.

use std::{pin::pin, time::Duration};

use futures::{StreamExt, TryStreamExt};
use kube::{
    ResourceExt,
    api::{DeleteParams, DynamicObject, WatchEvent, WatchParams},
};
use serde_json::json;
use tokio::time::{Instant, timeout};

use super::{
    claim::{Failure, Given, Outcome},
    world::{World, version},
};

/// Watches from a version until `count` events came; what they are, in short.
async fn see(
    world: &World,
    params: &WatchParams,
    from: &str,
    count: usize,
) -> kube::Result<Vec<String>> {
    let api = world.widgets();
    let stream = api.watch(params, from).await?;
    let events = stream.take(count).map_ok(|event| short(&event));
    events.try_collect().await
}

fn short(event: &WatchEvent<DynamicObject>) -> String {
    match event {
        WatchEvent::Added(object) => format!("ADDED {}", object.name_any()),
        WatchEvent::Modified(object) => format!("MODIFIED {}", object.name_any()),
        WatchEvent::Deleted(object) => format!("DELETED {}", object.name_any()),
        WatchEvent::Bookmark(_) => "BOOKMARK".to_owned(),
        WatchEvent::Error(status) => format!("ERROR {}", status.code),
    }
}

fn unexpected(event: &WatchEvent<DynamicObject>) -> Failure {
    Failure::new(format!("not the event that was expected: {event:?}"))
}

async fn a_watch_tells_everything_after_its_version_in_order(world: &World) -> Outcome {
    let first = world.create("a", json!({})).await?;
    world.create("b", json!({})).await?;
    world
        .merge("a", json!({ "spec": { "color": "red" } }))
        .await?;
    world
        .widgets()
        .delete("b", &DeleteParams::default())
        .await?;
    let events = see(world, &WatchParams::default(), &version(&first)?, 3).await?;
    ensure_eq!(events, ["ADDED b", "MODIFIED a", "DELETED b"]);
    Ok(())
}

async fn a_watch_tells_what_happens_while_it_runs(world: &World) -> Outcome {
    let first = world.create("a", json!({})).await?;
    let api = world.widgets();
    let from = version(&first)?;
    let mut stream = pin!(api.watch(&WatchParams::default(), &from).await?);
    ensure!(
        timeout(Duration::from_millis(20), stream.next())
            .await
            .is_err(),
        "nothing yet"
    );
    let changed = world
        .merge("a", json!({ "spec": { "color": "red" } }))
        .await?;
    let event = stream.next().await.given()??;
    let WatchEvent::Modified(object) = event else {
        return Err(unexpected(&event));
    };
    ensure_eq!(object, changed);
    Ok(())
}

async fn a_removal_carries_its_own_version(world: &World) -> Outcome {
    let first = world.create("a", json!({})).await?;
    world
        .widgets()
        .delete("a", &DeleteParams::default())
        .await?;
    let api = world.widgets();
    let mut stream = pin!(
        api.watch(&WatchParams::default(), &version(&first)?)
            .await?
    );
    let event = stream.next().await.given()??;
    let WatchEvent::Deleted(object) = event else {
        return Err(unexpected(&event));
    };
    let number = |object| Ok::<u64, Failure>(version(object)?.parse()?);
    ensure!(number(&object)? > number(&first)?);
    Ok(())
}

async fn a_write_that_changes_nothing_is_no_event(world: &World) -> Outcome {
    world.create("a", json!({})).await?;
    let first = world
        .merge("a", json!({ "spec": { "color": "red" } }))
        .await?;
    world.merge("a", json!({})).await?;
    world.create("b", json!({})).await?;
    let events = see(world, &WatchParams::default(), &version(&first)?, 1).await?;
    ensure_eq!(events, ["ADDED b"]);
    Ok(())
}

async fn leaving_a_selection_is_deleted_and_entering_it_added(world: &World) -> Outcome {
    let first = world.create("a", json!({})).await?;
    for label in ["x", "y", "x"] {
        let patch = json!({ "metadata": { "labels": { "l": label } } });
        world.merge("a", patch).await?;
    }
    let params = WatchParams::default().labels("l=x");
    let events = see(world, &params, &version(&first)?, 3).await?;
    ensure_eq!(events, ["ADDED a", "DELETED a", "ADDED a"]);
    Ok(())
}

async fn a_watch_by_field_sees_that_field_alone(world: &World) -> Outcome {
    let first = world.create("a", json!({ "color": "red" })).await?;
    world.create("b", json!({ "color": "blue" })).await?;
    world
        .merge("a", json!({ "spec": { "color": "blue" } }))
        .await?;
    let params = WatchParams::default().fields("spec.color=blue");
    ensure_eq!(
        see(world, &params, &version(&first)?, 2).await?,
        ["ADDED b", "ADDED a"]
    );
    let params = WatchParams::default().fields("metadata.name=a");
    ensure_eq!(
        see(world, &params, &version(&first)?, 1).await?,
        ["MODIFIED a"]
    );
    Ok(())
}

async fn a_watch_from_nowhere_begins_with_what_is_there(world: &World) -> Outcome {
    world.create("a", json!({})).await?;
    world.create("b", json!({})).await?;
    world.caught_up().await?;
    ensure_eq!(
        see(world, &WatchParams::default(), "0", 2).await?,
        ["ADDED a", "ADDED b"]
    );
    Ok(())
}

async fn a_streamed_list_ends_with_a_bookmark(world: &World) -> Outcome {
    world.create("a", json!({})).await?;
    world.caught_up().await?;
    let params = WatchParams::default().initial_events();
    let api = world.widgets();
    let mut stream = pin!(api.watch(&params, "0").await?);
    ensure_eq!(short(&stream.next().await.given()??), "ADDED a");
    let event = stream.next().await.given()??;
    let WatchEvent::Bookmark(bookmark) = event else {
        return Err(unexpected(&event));
    };
    let end = bookmark
        .metadata
        .annotations
        .get("k8s.io/initial-events-end");
    ensure_eq!(end.map(String::as_str), Some("true"));
    world.create("b", json!({})).await?;
    ensure_eq!(short(&stream.next().await.given()??), "ADDED b");
    Ok(())
}

async fn a_watch_ends_at_its_timeout(world: &World) -> Outcome {
    let first = world.create("a", json!({})).await?;
    let before = Instant::now();
    let params = WatchParams {
        bookmarks: false,
        ..WatchParams::default()
    }
    .timeout(5);
    ensure_eq!(
        see(world, &params, &version(&first)?, 1).await?,
        Vec::<String>::new()
    );
    let seconds = before.elapsed().as_secs();
    ensure!((5..10).contains(&seconds), "after {seconds} s");
    Ok(())
}

behaviours! { "watch":
    33 a_watch_tells_everything_after_its_version_in_order,
    further a_watch_tells_what_happens_while_it_runs,
    further a_removal_carries_its_own_version,
    further a_write_that_changes_nothing_is_no_event,
    37 leaving_a_selection_is_deleted_and_entering_it_added,
    further a_watch_by_field_sees_that_field_alone,
    further a_watch_from_nowhere_begins_with_what_is_there,
    further a_streamed_list_ends_with_a_bookmark,
    further a_watch_ends_at_its_timeout,
}
