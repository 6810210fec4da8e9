//! This file tests that kube's runtime lives on this API.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures::{StreamExt, TryStreamExt};
use kube::{
    ResourceExt,
    api::{DeleteParams, DynamicObject},
    runtime::{
        Controller,
        controller::Action,
        finalizer::{Event as FinalizerEvent, finalizer},
        reflector::ObjectRef,
        watcher::{self, Event, watcher},
    },
};
use serde_json::json;
use tokio::time::timeout;

use crate::support::{apply_status, create, get, merge, server, widget_resource, widgets};

async fn follow(config: watcher::Config) {
    let (server, client) = server().await;
    create(&client, "a", json!({})).await;
    let mut stream = watcher(widgets(&client), config).boxed();
    assert!(matches!(stream.try_next().await, Ok(Some(Event::Init))));
    let Ok(Some(Event::InitApply(object))) = stream.try_next().await else {
        panic!("the object that is there")
    };
    assert_eq!(object.name_any(), "a");
    assert!(matches!(stream.try_next().await, Ok(Some(Event::InitDone))));
    merge(&client, "a", json!({ "spec": { "color": "red" } }))
        .await
        .unwrap();
    assert!(matches!(stream.try_next().await, Ok(Some(Event::Apply(_)))));

    // The watch breaks and its version is forgotten: the watcher lists anew.
    server.end_watches();
    create(&client, "b", json!({})).await;
    server.compact();
    widgets(&client)
        .delete("a", &DeleteParams::default())
        .await
        .unwrap();
    let mut seen = Vec::new();
    while let Some(event) = timeout(Duration::from_mins(1), stream.next())
        .await
        .unwrap()
    {
        match event {
            Ok(Event::InitApply(object)) => seen.push(object.name_any()),
            Ok(Event::InitDone) => break,
            Ok(_) | Err(_) => {}
        }
    }
    assert_eq!(seen, ["b"]);
}

#[tokio::test(start_paused = true)]
async fn a_watcher_lists_watches_and_recovers() {
    follow(watcher::Config::default()).await;
}

#[tokio::test(start_paused = true)]
async fn a_watcher_with_a_streamed_list_does_too() {
    follow(watcher::Config::default().streaming_lists()).await;
}

#[tokio::test(start_paused = true)]
async fn a_watcher_with_pages_gets_all_of_them() {
    let (_server, client) = server().await;
    for number in 0..7 {
        create(&client, &format!("w{number}"), json!({})).await;
    }
    let stream = watcher(widgets(&client), watcher::Config::default().page_size(3));
    let seen = stream
        .try_take_while(|event| {
            let more = !matches!(event, Event::InitDone);
            async move { Ok(more) }
        })
        .try_filter(|event| {
            let is = matches!(event, Event::InitApply(_));
            async move { is }
        })
        .count()
        .await;
    assert_eq!(seen, 7);
}

/// A controller that copies the color into the status, with a finalizer.
async fn reconcile(object: Arc<DynamicObject>, cx: Arc<Context>) -> Result<Action, Failed> {
    cx.runs.fetch_add(1, Ordering::Relaxed);
    let api = widgets(&cx.client);
    let outcome = finalizer(&api, "okt.dev/test", object, |event| async {
        if let FinalizerEvent::Apply(object) = event {
            let color = object.data["spec"]["color"].clone();
            apply_status(
                &cx.client,
                "test",
                &object.name_any(),
                json!({ "phase": color }),
            )
            .await?;
        }
        Ok::<_, kube::Error>(Action::await_change())
    });
    outcome.await.map_err(|error| Failed(error.to_string()))
}

struct Context {
    client: kube::Client,
    runs: AtomicUsize,
}

#[derive(Debug)]
struct Failed(String);

impl std::fmt::Display for Failed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Failed {}

#[tokio::test(start_paused = true)]
async fn a_controller_with_a_finalizer_settles_and_is_silent() {
    let (server, client) = server().await;
    server.set_watch_lag(Duration::from_millis(50));
    let cx = Arc::new(Context {
        client: client.clone(),
        runs: AtomicUsize::new(0),
    });
    let resource = widget_resource();
    let controller = Controller::new_with(widgets(&client), watcher::Config::default(), resource)
        .run(
            reconcile,
            |_, _, _| Action::requeue(Duration::from_secs(1)),
            Arc::clone(&cx),
        )
        .for_each(|_: Result<(ObjectRef<DynamicObject>, Action), _>| async {});
    let running = tokio::spawn(controller);

    create(&client, "a", json!({ "color": "red" })).await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    let object = get(&client, "a").await;
    assert_eq!(object.data["status"]["phase"], "red");
    assert_eq!(object.finalizers(), ["okt.dev/test"]);

    server.clear_requests();
    tokio::time::sleep(Duration::from_mins(10)).await;
    let writes: Vec<_> = server
        .requests()
        .into_iter()
        .filter(okt_testing::RequestRecord::is_write)
        .collect();
    assert_eq!(writes, [], "settled is silent");

    widgets(&client)
        .delete("a", &DeleteParams::default())
        .await
        .unwrap();
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert!(widgets(&client).get_opt("a").await.unwrap().is_none());
    assert!(cx.runs.load(Ordering::Relaxed) >= 3);
    running.abort();
}
