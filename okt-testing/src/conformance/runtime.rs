//! Behaviours that kube's runtime needs: watchers, controllers, finalizers.

use std::{sync::Arc, time::Duration};

use futures::{StreamExt, TryStreamExt};
use kube::{
    ResourceExt,
    api::{DeleteParams, DynamicObject},
    runtime::{
        Controller,
        controller::Action,
        finalizer::{self, Event as FinalizerEvent, finalizer},
        watcher::{self, Event, watcher},
    },
};
use serde_json::json;

use super::{
    claim::{Failure, Given, Outcome, eventually},
    world::{World, version},
};

/// Returns an event of a watcher in short form.
fn short(event: &Event<DynamicObject>) -> String {
    match event {
        Event::Init => "INIT".to_owned(),
        Event::InitApply(object) => format!("INIT {}", object.name_any()),
        Event::InitDone => "DONE".to_owned(),
        Event::Apply(object) => format!("APPLY {}", object.name_any()),
        Event::Delete(object) => format!("DELETE {}", object.name_any()),
    }
}

async fn follow(world: &World, config: watcher::Config) -> Outcome {
    world.create("a", json!({})).await?;
    world.caught_up().await?;
    let mut stream = watcher(world.widgets(), config).boxed();
    let mut seen = Vec::new();
    for _ in 0..3 {
        seen.push(short(&stream.try_next().await?.given()?));
    }
    ensure_eq!(seen, ["INIT", "INIT a", "DONE"]);
    world.create("b", json!({})).await?;
    world
        .merge("a", json!({ "spec": { "color": "red" } }))
        .await?;
    world
        .widgets()
        .delete("b", &DeleteParams::default())
        .await?;
    seen.clear();
    for _ in 0..3 {
        seen.push(short(&stream.try_next().await?.given()?));
    }
    ensure_eq!(seen, ["APPLY b", "APPLY a", "DELETE b"]);
    Ok(())
}

async fn a_watcher_lists_and_then_watches(world: &World) -> Outcome {
    follow(world, watcher::Config::default()).await
}

async fn a_watcher_with_a_streamed_list_does_too(world: &World) -> Outcome {
    follow(world, watcher::Config::default().streaming_lists()).await
}

async fn a_watcher_with_pages_gets_all_of_them(world: &World) -> Outcome {
    for number in 0..7 {
        world.create(&format!("w{number}"), json!({})).await?;
    }
    let config = watcher::Config::default().page_size(3);
    let mut stream = watcher(world.widgets(), config).boxed();
    let mut seen = 0;
    loop {
        match stream.try_next().await?.given()? {
            Event::InitApply(_) => seen += 1,
            Event::InitDone => break,
            Event::Init | Event::Apply(_) | Event::Delete(_) => {}
        }
    }
    ensure_eq!(seen, 7);
    Ok(())
}

/// Copies the color into the status, with a finalizer.
async fn reconcile(
    object: Arc<DynamicObject>,
    world: Arc<World>,
) -> Result<Action, finalizer::Error<kube::Error>> {
    finalizer(&world.widgets(), "okt.dev/test", object, |event| async {
        if let FinalizerEvent::Apply(object) = event {
            let status = json!({ "phase": object.data["spec"]["color"] });
            world
                .apply_status("test", &object.name_any(), status)
                .await?;
        }
        Ok::<_, kube::Error>(Action::await_change())
    })
    .await
}

async fn a_controller_with_a_finalizer_settles_and_is_silent(world: &World) -> Outcome {
    let controller = Controller::new_with(
        world.widgets(),
        watcher::Config::default(),
        world.resource(),
    )
    .run(
        reconcile,
        |_, _, _| Action::requeue(Duration::from_secs(1)),
        Arc::new(world.clone()),
    )
    .for_each(async |_| {});
    let user = async {
        world.create("a", json!({ "color": "red" })).await?;
        let object = eventually("the status is there", || async {
            let object = world.get("a").await?;
            Ok((object.data["status"]["phase"] == "red").then_some(object))
        })
        .await?;
        ensure_eq!(object.finalizers(), ["okt.dev/test"]);

        // The controller's own write triggers it, and it has nothing more to write.
        tokio::time::sleep(Duration::from_secs(2)).await;
        let later = world.get("a").await?;
        ensure_eq!(version(&later)?, version(&object)?);

        world
            .widgets()
            .delete("a", &DeleteParams::default())
            .await?;
        eventually("the finalizer is off", || async {
            Ok(world.widgets().get_opt("a").await?.is_none().then_some(()))
        })
        .await
    };
    tokio::select! {
        () = controller => Err(Failure::new("the controller ended")),
        outcome = user => outcome,
    }
}

behaviours! { "runtime":
    34 a_watcher_lists_and_then_watches,
    35 a_watcher_with_a_streamed_list_does_too,
    further a_watcher_with_pages_gets_all_of_them,
    further a_controller_with_a_finalizer_settles_and_is_silent,
}
