//! Behaviors that kube's runtime needs: watchers, controllers, finalizers.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::BoxStream;
use kube::ResourceExt;
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::runtime::Controller;
use kube::runtime::controller::Action;
use kube::runtime::finalizer::{self, Event as FinalizerEvent, finalizer};
use kube::runtime::watcher::{self, Event, watcher};
use serde_json::json;

use crate::behaviour::behaviours;
use crate::world::{World, eventually, version};

/// Returns the next events of a watcher in short form.
async fn take(
    stream: &mut BoxStream<'_, watcher::Result<Event<DynamicObject>>>,
    count: usize,
) -> Vec<String> {
    let short = |event: Event<DynamicObject>| match event {
        Event::Init => "INIT".to_owned(),
        Event::InitApply(object) => format!("INIT {}", object.name_any()),
        Event::InitDone => "DONE".to_owned(),
        Event::Apply(object) => format!("APPLY {}", object.name_any()),
        Event::Delete(object) => format!("DELETE {}", object.name_any()),
    };
    let events = stream.take(count).map(|event| event.expect("no error"));
    events.map(short).collect().await
}

async fn a_watcher_lists_and_then_watches(world: &World) {
    for (name, config) in [
        ("a", watcher::Config::default()),
        ("b", watcher::Config::default().streaming_lists()),
    ] {
        world.create(name, json!({})).await.ok();
        world.caught_up().await;
        let only = config.fields(&format!("metadata.name={name}"));
        let mut stream = watcher(world.widgets(), only).boxed();
        let listed = take(&mut stream, 3).await;
        assert_eq!(listed, ["INIT", &format!("INIT {name}"), "DONE"]);
        world.set(name, json!({ "color": "red" })).await.ok();
        world.remove(name).await.ok();
        let watched = take(&mut stream, 2).await;
        let expected = ["APPLY", "DELETE"].map(|event| format!("{event} {name}"));
        assert_eq!(watched, expected);
    }
}

async fn a_watcher_with_pages_gets_all_of_them(world: &World) {
    let mut expected = vec!["INIT".to_owned()];
    for number in 0..7 {
        world.create(&format!("w{number}"), json!({})).await.ok();
        expected.push(format!("INIT w{number}"));
    }
    expected.push("DONE".to_owned());
    let config = watcher::Config::default().page_size(3);
    let mut stream = watcher(world.widgets(), config).boxed();
    assert_eq!(take(&mut stream, 9).await, expected);
}

/// Copies the color into the status, with a finalizer.
async fn reconcile(
    object: Arc<DynamicObject>,
    world: Arc<World>,
) -> Result<Action, finalizer::Error<kube::Error>> {
    let widgets = world.widgets();
    finalizer(&widgets, "okt.dev/test", object, |event| async {
        if let FinalizerEvent::Apply(object) = event {
            let status = json!({
                "apiVersion": world.api_version(),
                "kind": "Widget",
                "status": { "phase": object.data["spec"]["color"] },
            });
            let params = PatchParams::apply("test");
            let patch = Patch::Apply(status);
            widgets
                .patch_status(&object.name_any(), &params, &patch)
                .await?;
        }
        Ok::<_, kube::Error>(Action::await_change())
    })
    .await
}

async fn a_controller_with_a_finalizer_settles_and_is_silent(world: &World) {
    let config = watcher::Config::default();
    let controller = Controller::new_with(world.widgets(), config, world.resource())
        .run(
            reconcile,
            |_, _, _| Action::requeue(Duration::from_secs(1)),
            Arc::new(world.clone()),
        )
        .for_each(async |_| {});
    let user = async {
        world.create("a", json!({ "color": "red" })).await.ok();
        let object = eventually("the status is there", async || {
            let object = world.read("a").await;
            (object["status"]["phase"] == "red").then_some(object)
        })
        .await;
        assert_eq!(object["metadata"]["finalizers"], json!(["okt.dev/test"]));

        // The controller's own write triggers it, and it has nothing more to write.
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(version(&world.read("a").await), version(&object));
        world.remove("a").await.ok();
        eventually("the finalizer is off", async || {
            world.is_gone("a").await.then_some(())
        })
        .await;
    };
    tokio::select! {
        () = controller => panic!("the controller ended"),
        () = user => {}
    }
}

behaviours! { "runtime":
    a_watcher_lists_and_then_watches,
    a_watcher_with_pages_gets_all_of_them,
    a_controller_with_a_finalizer_settles_and_is_silent,
}
