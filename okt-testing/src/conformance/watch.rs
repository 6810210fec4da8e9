//! Behaviours of watches.

use std::{pin::pin, time::Duration};

use futures::{StreamExt, TryStreamExt};
use kube::{
    ResourceExt,
    api::{DeleteParams, DynamicObject, ListParams, WatchEvent, WatchParams},
};
use serde_json::json;
use tokio::time::{Instant, timeout};

use super::{
    claim::{Failure, Given, Outcome},
    world::{World, events_only, version},
};

/// Watches from a version until `count` events came, and returns them in short form.
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
    let events = see(world, &events_only(), &version(&first)?, 3).await?;
    ensure_eq!(events, ["ADDED b", "MODIFIED a", "DELETED b"]);
    Ok(())
}

async fn a_watch_tells_what_happens_while_it_runs(world: &World) -> Outcome {
    let first = world.create("a", json!({})).await?;
    let api = world.widgets();
    let from = version(&first)?;
    let mut stream = pin!(api.watch(&events_only(), &from).await?);
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

async fn a_watch_from_a_version_to_come_tells_nothing_before_it(world: &World) -> Outcome {
    let mut number = 0;
    let mut make = async || {
        number += 1;
        let name = format!("a{number}");
        let made = world.create(&name, json!({})).await?;
        let made = version(&made)?.parse::<u64>().ok().given()?;
        Ok::<_, Failure>((made, format!("ADDED {name}")))
    };
    let api = world.widgets();
    // Other clients write to the same server, so the version may exist before the watch starts.
    let (from, events) = loop {
        let from = make().await?.0 + 10;
        let events = api.watch(&events_only(), &from.to_string()).await?;
        if make().await?.0 <= from {
            break (from, events);
        }
    };
    let mut later = Vec::new();
    while later.len() < 2 {
        let (made, event) = make().await?;
        later.extend((made > from).then_some(event));
    }
    let told = events.take(later.len()).map_ok(|event| short(&event));
    ensure_eq!(told.try_collect::<Vec<_>>().await?, later);
    Ok(())
}

async fn a_removal_carries_its_own_version(world: &World) -> Outcome {
    let first = world.create("a", json!({})).await?;
    world
        .widgets()
        .delete("a", &DeleteParams::default())
        .await?;
    let api = world.widgets();
    let mut stream = pin!(api.watch(&events_only(), &version(&first)?).await?);
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
    let events = see(world, &events_only(), &version(&first)?, 1).await?;
    ensure_eq!(events, ["ADDED b"]);
    Ok(())
}

async fn leaving_a_selection_is_deleted_and_entering_it_added(world: &World) -> Outcome {
    let first = world.create("a", json!({})).await?;
    for label in ["x", "y", "x"] {
        let patch = json!({ "metadata": { "labels": { "l": label } } });
        world.merge("a", patch).await?;
    }
    let params = events_only().labels("l=x");
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
    let params = events_only().fields("spec.color=blue");
    ensure_eq!(
        see(world, &params, &version(&first)?, 2).await?,
        ["ADDED b", "ADDED a"]
    );
    let params = events_only().fields("metadata.name=a");
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
        see(world, &events_only(), "0", 2).await?,
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
    let next = loop {
        match stream.next().await.given()?? {
            WatchEvent::Bookmark(_) => {}
            event => break event,
        }
    };
    ensure_eq!(short(&next), "ADDED b");
    Ok(())
}

async fn a_watch_without_a_version_begins_with_what_is_there(world: &World) -> Outcome {
    world.create("a", json!({})).await?;
    let path = format!("{}?watch=true&timeoutSeconds=10", world.path());
    let reply = world.send("GET", &path, &[], "").await?;
    let events = reply.lines()?;
    ensure_eq!(events.len(), 1);
    ensure_eq!(events[0]["type"], "ADDED");
    ensure_eq!(events[0]["object"]["metadata"]["name"], "a");
    Ok(())
}

async fn a_watch_from_before_the_kind_is_410_and_a_list_leads_on(world: &World) -> Outcome {
    world.create("a", json!({})).await?;
    let api = world.widgets();
    let params = events_only();
    let mut stream = pin!(api.watch(&params, "1").await?);
    let event = stream.next().await.given()??;
    let WatchEvent::Error(status) = event else {
        return Err(unexpected(&event));
    };
    ensure_eq!((status.code, status.reason.as_str()), (410, "Expired"));
    ensure!(
        status.message.starts_with("too old resource version: 1 ("),
        "{}",
        status.message
    );
    ensure!(stream.next().await.is_none());

    let list = api.list(&ListParams::default()).await?;
    let from = list.metadata.resource_version.given()?;
    world.create("b", json!({})).await?;
    ensure_eq!(see(world, &params, &from, 1).await?, ["ADDED b"]);
    Ok(())
}

async fn a_version_that_is_no_number_is_refused(world: &World) -> Outcome {
    let outcome = world.widgets().watch(&events_only(), "x").await;
    let Err(kube::Error::Api(status)) = outcome else {
        return Err(Failure::new("the watch was accepted"));
    };
    ensure_eq!(status.code, 500);
    let path = format!("{}?resourceVersion=x", world.path());
    let reply = world.send("GET", &path, &[], "").await?;
    ensure_eq!(reply.code, 400);
    ensure_eq!(
        reply.message()?,
        format!("invalid resource version: {}", status.message)
    );
    Ok(())
}

async fn bookmarks_come_before_the_end(world: &World) -> Outcome {
    let first = world.create("a", json!({})).await?;
    let params = WatchParams::default().fields("metadata.name=a").timeout(5);
    let api = world.widgets();
    let mut last = None;
    // A busy server may send two, or come too late for one.
    for round in 0..5 {
        let stream = api.watch(&params, &version(&first)?).await?;
        // On a quiet server there would be no new version for a bookmark.
        world.create(&format!("b{round}"), json!({})).await?;
        let events: Vec<_> = stream.try_collect().await?;
        let is_bookmark = |event: &WatchEvent<_>| matches!(event, WatchEvent::Bookmark(_));
        ensure!(events.iter().all(is_bookmark), "{events:?}");
        last = events.into_iter().last();
        if last.is_some() {
            break;
        }
    }
    let Some(WatchEvent::Bookmark(bookmark)) = last else {
        return Err(Failure::new("no bookmark came"));
    };
    // Its version is newer than that of any event.
    let told: u64 = bookmark.metadata.resource_version.parse()?;
    ensure!(told > version(&first)?.parse()?, "{told}");
    let params = params.disable_bookmarks().timeout(3);
    ensure_eq!(see(world, &params, &version(&first)?, 1).await?, [""; 0]);
    Ok(())
}

async fn a_watch_may_tell_tables(world: &World) -> Outcome {
    world.create("a", json!({})).await?;
    let path = format!("{}?watch=true&timeoutSeconds=10", world.path());
    let accept = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let reply = world.send("GET", &path, &[("accept", accept)], "").await?;
    let events = reply.lines()?;
    ensure_eq!(events[0]["type"], "ADDED");
    ensure_eq!(events[0]["object"]["kind"], "Table");
    ensure_eq!(events[0]["object"]["rows"][0]["cells"][0], "a");
    Ok(())
}

async fn a_watch_may_tell_metadata_alone(world: &World) -> Outcome {
    let first = world.create("a", json!({})).await?;
    world
        .merge("a", json!({ "spec": { "color": "red" } }))
        .await?;
    let api = world.widgets();
    let params = events_only();
    let mut stream = pin!(api.watch_metadata(&params, &version(&first)?).await?);
    let event = stream.next().await.given()??;
    ensure!(
        matches!(&event, WatchEvent::Modified(object) if object.name_any() == "a"),
        "{event:?}"
    );
    Ok(())
}

async fn a_watch_ends_at_its_timeout(world: &World) -> Outcome {
    let first = world.create("a", json!({})).await?;
    let before = Instant::now();
    let params = events_only().timeout(5);
    ensure_eq!(
        see(world, &params, &version(&first)?, 1).await?,
        Vec::<String>::new()
    );
    let seconds = before.elapsed().as_secs();
    ensure!((5..120).contains(&seconds), "after {seconds} s");
    Ok(())
}

behaviours! { "watch":
    33 a_watch_tells_everything_after_its_version_in_order,
    further a_watch_tells_what_happens_while_it_runs,
    further a_watch_from_a_version_to_come_tells_nothing_before_it,
    further a_removal_carries_its_own_version,
    further a_write_that_changes_nothing_is_no_event,
    37 leaving_a_selection_is_deleted_and_entering_it_added,
    further a_watch_by_field_sees_that_field_alone,
    further a_watch_from_nowhere_begins_with_what_is_there,
    further a_streamed_list_ends_with_a_bookmark,
    further a_watch_without_a_version_begins_with_what_is_there,
    further a_watch_from_before_the_kind_is_410_and_a_list_leads_on,
    further a_version_that_is_no_number_is_refused,
    further bookmarks_come_before_the_end,
    further a_watch_may_tell_tables,
    further a_watch_may_tell_metadata_alone,
    further a_watch_ends_at_its_timeout,
}
