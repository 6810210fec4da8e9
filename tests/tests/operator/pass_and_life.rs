//! A pass and a lifecycle of one object: infrastructure first, then the application, in one status with one writer.

use std::time::Duration;

use k8s_openapi::api::rbac::v1::ClusterRole;
use okt::{Declared, Failure};
use okt_tests::{Objects, QueueState::*, Queues, Rig, Scripted};
use serde_json::json;

type Post = Rig<Queues>;

fn role(name: &str) -> Declared {
    Declared::dynamic(json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": { "name": name },
        "rules": [],
    }))
}

async fn is_there(rig: &Post, name: &str) -> bool {
    let roles = rig.of::<ClusterRole>();
    roles.has(name).await
}

#[tokio::test(start_paused = true)]
async fn pass_and_lifecycle_are_ready_in_one_status() {
    let rig = Post::without_operator_of().await;
    rig.app.script.put("Apply", [role("base")]);
    rig.app.script.put("Serving", [role("guest")]);
    rig.start();
    rig.create_ready("post", Serving).await;
    assert!(is_there(&rig, "base").await && is_there(&rig, "guest").await);
    assert_eq!(rig.shows("post", "Founded").await, "True Apply");
    assert_eq!(rig.shows("post", "Available").await, "True Serving");
    assert_eq!(rig.app.script.worked(), ["Joining"]);
    rig.wire.clear();
    rig.restart().await;
    rig.pass(Duration::from_mins(10)).await;
    assert_eq!(rig.wire.writes(), [""; 0]);
    assert!(is_there(&rig, "base").await && is_there(&rig, "guest").await);
}

#[tokio::test(start_paused = true)]
async fn work_begins_only_when_the_pass_is_complete() {
    let rig = Post::without_operator_of().await;
    let wait = Scripted::Wait("WaitingForDisk", Duration::from_secs(5), "there is none");
    rig.app.script.set("Apply", wait);
    rig.start();
    rig.create("post", json!({})).await;
    rig.pass(Duration::from_mins(2)).await;
    assert_eq!(rig.app.script.worked(), [""; 0]);
    assert_eq!(rig.shows("post", "Ready").await, "False WaitingForDisk");
    assert_eq!(rig.shows("post", "Founded").await, "False WaitingForDisk");
    rig.app.script.set("Apply", Scripted::Done);
    rig.until_ready("post", Serving).await;
    assert_eq!(rig.app.script.worked(), ["Joining"]);
}

#[tokio::test(start_paused = true)]
async fn a_pass_that_fails_later_makes_the_object_unready_and_moves_nothing() {
    let rig = Post::of().await;
    let at = rig.create_ready("post", Serving).await;
    let fails = Scripted::Fail(Failure::retry("NoQuota", "it is used up"));
    rig.app.script.set("Apply", fails);
    rig.request("post");
    rig.pass(Duration::from_secs(5)).await;
    assert_eq!(rig.shows("post", "Ready").await, "False NoQuota");
    assert_eq!(rig.shows("post", "Reconciling").await, "True NoQuota");
    let transition = at
        .status
        .and_then(|it| it.lifecycle)
        .expect("a position")
        .transition;
    assert_eq!(rig.position("post").await.transition, transition);
    rig.app.script.set("Apply", Scripted::Done);
    rig.until_ready("post", Serving).await;
    assert_eq!(rig.shows("post", "Founded").await, "True Apply");
}

#[tokio::test(start_paused = true)]
async fn a_pause_does_not_make_an_unready_object_ready() {
    let rig = Post::of().await;
    rig.create_ready("post", Serving).await;
    let fails = Scripted::Fail(Failure::retry("NoQuota", "it is used up"));
    rig.app.script.set("Apply", fails);
    rig.request("post");
    rig.pass(Duration::from_secs(5)).await;
    rig.pause("post").await;
    rig.pass(Duration::from_mins(5)).await;
    assert_eq!(rig.shows("post", "Ready").await, "False NoQuota");
    assert_eq!(rig.shows("post", "Founded").await, "False NoQuota");
}

#[tokio::test(start_paused = true)]
async fn resources_of_the_pass_and_of_the_state_are_pruned_together() {
    let rig = Post::without_operator_of().await;
    rig.app.script.put("Apply", [role("base")]);
    rig.app.script.put("Serving", [role("guest")]);
    rig.start();
    rig.create_ready("post", Serving).await;
    rig.app.script.put("Apply", []);
    rig.request("post");
    rig.pass(Duration::from_secs(5)).await;
    assert!(!is_there(&rig, "base").await, "no step applies it any more");
    assert!(is_there(&rig, "guest").await);
}

#[tokio::test(start_paused = true)]
async fn on_deletion_the_lifecycle_ends_first_then_the_pass_then_the_finalizer() {
    let rig = Post::without_operator_of().await;
    rig.app.script.put("Apply", [role("base")]);
    rig.start();
    rig.create_ready("post", Serving).await;
    rig.app.script.taken();
    let wait = Scripted::Wait(
        "WaitingForChildDeletion",
        Duration::from_secs(5),
        "one is left",
    );
    rig.app.script.set("Finalize", wait);
    rig.delete("post").await;
    rig.until_in("post", Gone).await;
    assert_eq!(rig.app.script.worked()[..2], ["Joining", "Draining"]);
    assert!(
        is_there(&rig, "base").await,
        "resources of the pass outlive the lifecycle"
    );
    rig.pass(Duration::from_secs(20)).await;
    let taken = rig.app.script.taken();
    assert_eq!(
        taken[..2],
        ["Check", "Finalize"],
        "not before the lifecycle has ended"
    );
    assert!(rig.get("post").await.is_some());
    assert_eq!(
        rig.shows("post", "Ready").await,
        "False WaitingForChildDeletion"
    );
    rig.app.script.set("Finalize", Scripted::Done);
    rig.pass(Duration::from_secs(10)).await;
    assert!(rig.get("post").await.is_none());
    assert_eq!(
        rig.app.script.worked(),
        ["Joining", "Draining", "Gone"],
        "no work is done twice"
    );
}

#[tokio::test(start_paused = true)]
async fn a_stopping_operator_leaves_the_on_delete_steps_to_the_next() {
    let rig = Post::without_operator_of().await;
    rig.app.script.put("Apply", [role("base")]);
    rig.app.script.work_takes("Gone", Duration::from_secs(10));
    rig.start();
    rig.create_ready("post", Serving).await;
    rig.delete("post").await;
    rig.until_in("post", Gone).await;
    rig.pass(Duration::from_secs(1)).await;
    rig.app.script.taken();
    rig.stop().await;
    assert_eq!(rig.app.script.worked().last(), Some(&"Gone"));
    assert_eq!(rig.app.script.taken(), [""; 0]);
    assert!(rig.get("post").await.is_some(), "its pass is not complete");
    rig.start();
    rig.pass(Duration::from_mins(1)).await;
    assert_eq!(rig.app.script.taken()[..2], ["Check", "Finalize"]);
    assert!(rig.get("post").await.is_none());
}

#[tokio::test(start_paused = true)]
async fn on_delete_steps_that_give_up_are_retried() {
    let rig = Rig::<Queues>::of().await;
    rig.create_ready("queue", Serving).await;
    rig.app
        .script
        .set("Finalize", Scripted::GiveUp("not today"));
    rig.delete("queue").await;
    rig.pass(Duration::from_mins(10)).await;
    let tried = rig.app.script.taken().into_iter();
    let tried = tried.filter(|step| *step == "Finalize").count();
    assert!((5..=60).contains(&tried), "{tried}");
    rig.app.script.set("Finalize", Scripted::Done);
    rig.until_gone("queue").await;
}

#[tokio::test(start_paused = true)]
async fn an_undecodable_object_is_not_released_before_its_on_delete_steps() {
    for begun in [false, true] {
        let rig = Rig::<Queues>::lenient().await;
        rig.start();
        let unreadable = json!({ "spec": { "lifecycle": 5 } });
        if begun {
            rig.create_ready("queue", Serving).await;
            rig.patch("queue", unreadable).await;
        } else {
            let mut object = unreadable;
            object["apiVersion"] = json!("demo.okt.dev/v1");
            object["kind"] = json!("Queue");
            // It had the finalizer when it could be read.
            object["metadata"] = json!({ "name": "queue", "finalizers": [okt::FINALIZER] });
            rig.create_raw(object).await;
        }
        let is_reported = async |what: &str| {
            let queue = rig.raw().read("queue").await;
            queue.data["status"]["conditions"]
                .to_string()
                .contains(what)
        };
        rig.pass(Duration::from_mins(1)).await;
        assert!(is_reported("Undecodable").await);
        rig.delete("queue").await;
        rig.pass(Duration::from_hours(1)).await;
        assert!(is_reported("okt.dev/abandon").await);
        rig.patch("queue", json!({ "spec": { "lifecycle": {} } }))
            .await;
        rig.until_gone("queue").await;
        assert!(rig.app.script.taken().contains(&"Finalize"), "{begun}");
    }
}
