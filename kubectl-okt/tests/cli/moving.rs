//! The commands that write, and those that wait.

use expect_test::expect;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};

use crate::world::{World, brokers, has, long_ago, status};

/// Returns the status of a database that has come to a state.
fn at(state: &str) -> Value {
    let lifecycle = json!({
        "state": state, "since": long_ago(), "transition": 2, "jumps": 1,
        "desired": { "state": state, "transition": 0, "reached": true }, "trail": ">Start>", "history": [],
    });
    status(lifecycle, ("True", state, "as desired"), false)
}

async fn lifecycle(world: &World, name: &str) -> Value {
    let object = world.databases().get(name).await.expect("a database");
    object.data["spec"]["lifecycle"].clone()
}

#[tokio::test]
async fn go_asks_for_a_state_after_it_showed_the_route() {
    let world = World::start().await;
    world.database("a", json!({}), at("Running")).await;
    expect![[r"
        Database default/a: Running → ReadOnly
        ReadOnly is asked for; `kubectl okt wait -n default databases.demo.okt.dev/a ReadOnly` waits for it
    "]]
    .assert_eq(&world.prints(&["go", "db/a", "readonly"]).await);
    assert_eq!(lifecycle(&world, "a").await, json!({ "state": "ReadOnly" }));
    let visit = world
        .prints(&["go", "db/a", "Servicing", "--request", "nightly"])
        .await;
    has(&visit, "Running → Servicing");
    // What the command asked for before, it still asks for.
    let both =
        json!({ "state": "ReadOnly", "visit": { "state": "Servicing", "request": "nightly" } });
    assert_eq!(lifecycle(&world, "a").await, both);
}

#[tokio::test]
async fn go_refuses_what_the_graph_refuses() {
    let world = World::start().await;
    world
        .database("a", json!({ "state": "ReadOnly" }), at("ReadOnly"))
        .await;
    expect![[r"
        error: no route leads from ReadOnly to Running: the data may be older
    "]]
    .assert_eq(&world.refuses(3, &["go", "db/a", "Running"]).await);
    expect![[r"
        error: no route leads from ReadOnly to Stopping: nobody may ask for Stopping; you may ask for Running, Servicing, ReadOnly, End
    "]].assert_eq(&world.refuses(3, &["go", "db/a", "Stopping"]).await);
    expect![[r"
        error: the graph has no state `Sleeping`; it has Start, Running, Servicing, ReadOnly, Stopping, Failed, End
    "]].assert_eq(&world.refuses(3, &["go", "db/a", "Sleeping"]).await);
    assert_eq!(lifecycle(&world, "a").await, json!({ "state": "ReadOnly" }));
}

#[tokio::test]
async fn go_stops_where_another_manager_owns_the_field() {
    let world = World::start().await;
    world.database("a", json!({}), at("Running")).await;
    let git = json!({ "apiVersion": "demo.okt.dev/v1", "kind": "Database", "spec": { "lifecycle": { "state": "Running" } } });
    let manager = PatchParams::apply("argocd-controller");
    world
        .databases()
        .patch("a", &manager, &Patch::Apply(&git))
        .await
        .expect("it is applied");
    expect![[r#"
        Database default/a: Running → ReadOnly
        error: another manager owns the field: Apply failed with 1 conflict: conflict with "argocd-controller": .spec.lifecycle.state; change it there (e.g. in Git), or the two fight
    "#]].assert_eq(&world.refuses(3, &["go", "db/a", "ReadOnly"]).await);
    assert_eq!(lifecycle(&world, "a").await, json!({ "state": "Running" }));
}

#[tokio::test]
async fn a_dry_run_changes_nothing() {
    let world = World::start().await;
    world.database("a", json!({}), at("Running")).await;
    let printed = world.prints(&["go", "db/a", "ReadOnly", "--dry-run"]).await;
    has(&printed, "ReadOnly may be asked for");
    assert_eq!(lifecycle(&world, "a").await, json!({}));
}

#[tokio::test]
async fn retry_makes_a_new_request() {
    let world = World::start().await;
    world.database("a", json!({}), at("Failed")).await;
    world.prints(&["retry", "db/a"]).await;
    let first = lifecycle(&world, "a").await["request"].clone();
    assert!(first.is_string(), "{first}");
    world.prints(&["retry", "a"]).await;
    assert_ne!(lifecycle(&world, "a").await["request"], first);
}

#[tokio::test]
async fn pause_and_resume_are_an_annotation() {
    let world = World::start().await;
    world.database("a", json!({}), at("Running")).await;
    let paused = || async {
        let object = world.databases().get("a").await.expect("a database");
        object
            .metadata
            .annotations
            .unwrap_or_default()
            .get("okt.dev/paused")
            .cloned()
    };
    expect![[r"
        Database default/a is paused; `kubectl okt resume -n default databases.demo.okt.dev/a` ends that
    "]]
    .assert_eq(&world.prints(&["pause", "a"]).await);
    assert_eq!(paused().await.as_deref(), Some("true"));
    let printed = world.refuses(3, &["wait", "a", "ReadOnly"]).await;
    has(
        &printed,
        "`kubectl okt resume -n default databases.demo.okt.dev/a`",
    );
    let printed = world.prints(&["go", "a", "ReadOnly", "--dry-run"]).await;
    has(&printed, "it is paused");
    let printed = world.prints(&["retry", "a", "--dry-run"]).await;
    assert_eq!(printed, "Database default/a may be asked to try again\n");
    expect![[r"
        Database default/a goes on
    "]]
    .assert_eq(&world.prints(&["resume", "a"]).await);
    assert_eq!(paused().await, None);
    expect![[r"
        Database default/a is not paused
    "]]
    .assert_eq(&world.prints(&["resume", "a"]).await);
}

#[tokio::test]
async fn only_an_object_that_is_being_deleted_is_abandoned() {
    let world = World::start().await;
    world.database("a", json!({}), at("Running")).await;
    expect![[r"
        error: Database default/a is not being deleted; only an object that cannot end is abandoned: delete it first
    "]].assert_eq(&world.refuses(3, &["abandon", "a", "--yes"]).await);
    let finalizer = json!({ "metadata": { "finalizers": ["okt.dev/lifecycle"] } });
    let api = world.databases();
    api.patch("a", &PatchParams::default(), &Patch::Merge(&finalizer))
        .await
        .expect("a finalizer");
    api.delete("a", &DeleteParams::default())
        .await
        .expect("a deletion");
    expect![[r"
        Database default/a is in Running. If you abandon it, the object disappears, and its application and the resources that its operator would delete stay.
        error: nothing was changed: there is no terminal to ask at; --yes does not ask
    "]].assert_eq(&world.refuses(3, &["abandon", "a"]).await);
    expect![[r"
        Database default/a is in Running. If you abandon it, the object disappears, and its application and the resources that its operator would delete stay.
        Database default/a is abandoned
    "]].assert_eq(&world.prints(&["abandon", "a", "--yes"]).await);
    let object = api.get("a").await.expect("a database");
    let annotations = object.metadata.annotations.unwrap_or_default();
    assert_eq!(
        annotations.get("okt.dev/abandon"),
        object.metadata.uid.as_ref()
    );
}

#[tokio::test]
async fn wait_ends_where_the_object_arrives_and_where_it_cannot_get_on() {
    let world = World::start().await;
    world.database("there", json!({}), at("Running")).await;
    expect![[r"
        Database default/there is in Running
    "]]
    .assert_eq(&world.prints(&["wait", "there"]).await);
    let held = json!({ "state": "Failed", "transition": 2, "jumps": 1, "trail": ">Start>Failed>", "history": [] });
    let why = "Failed holds: set spec.lifecycle.request to a new text to go to Running";
    world
        .database(
            "held",
            json!({}),
            status(held, ("False", "Failed", why), true),
        )
        .await;
    expect![[r"
        error: Database default/held is in Failed, Failed: Failed holds: set spec.lifecycle.request to a new text to go to Running; `kubectl okt why -n default databases.demo.okt.dev/held` says what to do
    "]].assert_eq(&world.refuses(3, &["wait", "held"]).await);
    world.database("new", json!({}), Value::Null).await;
    expect![[r"
        error: the time to wait is over: Database default/new is in no state, NotReported: no operator has reported on the object yet; `kubectl okt why -n default databases.demo.okt.dev/new` says why
    "]].assert_eq(&world.refuses(4, &["wait", "new", "--timeout", "100ms"]).await);
    let visited = |outcome: &str| {
        let visit =
            json!({ "state": "Servicing", "request": "a", "transition": 2, "outcome": outcome });
        let at =
            json!({ "state": "Running", "transition": 4, "jumps": 1, "trail": "", "visit": visit });
        status(at, ("True", "Running", "in Running, as desired"), false)
    };
    let visit = json!({ "visit": { "state": "Servicing", "request": "a" } });
    world
        .database("visited", visit.clone(), visited("Reached"))
        .await;
    expect![[r"
        Database default/visited has been in Servicing, and is in Running
    "]]
    .assert_eq(&world.prints(&["wait", "visited", "Servicing"]).await);
    world.database("refused", visit, visited("Refused")).await;
    expect![[r"
        error: the visit is over, and its outcome is Refused: Database default/refused is in Running, Running: in Running, as desired
    "]]
    .assert_eq(&world.refuses(3, &["wait", "refused", "Servicing"]).await);
    let printed = world
        .refuses(3, &["go", "visited", "Servicing", "--request", "a"])
        .await;
    has(
        &printed,
        "has served this request already, and the outcome is Reached",
    );
    world
        .refuses(2, &["go", "visited", "Servicing", "--request", ""])
        .await;
    expect![[r"
        error: nothing asks for ReadOnly: Database default/there is in Running, Running: as desired; `kubectl okt go -n default databases.demo.okt.dev/there ReadOnly` does
    "]]
    .assert_eq(&world.refuses(3, &["wait", "there", "ReadOnly"]).await);
    expect![[r"
        error: there is no object nobody in the namespace default; `kubectl okt list -A` shows all objects
    "]].assert_eq(&world.refuses(1, &["wait", "nobody"]).await);
}

#[tokio::test]
async fn diff_names_the_objects_that_a_release_would_lose() {
    let world = World::start().await;
    world
        .database("a", json!({ "state": "ReadOnly" }), at("ReadOnly"))
        .await;
    world.database("b", json!({}), at("Running")).await;
    let crd = okt::crd::<crate::world::Database>().expect("a CRD");
    let crd = serde_json::to_string(&crd).expect("JSON");
    let same = world.file("same.json", &crd);
    expect![[r"
        no differences in the graphs
    "]]
    .assert_eq(&world.prints(&["diff", &same]).await);
    let new = world.file("new.json", &crd.replace("ReadOnly", "Frozen"));
    expect![[r"
        databases.demo.okt.dev
          - state `ReadOnly`
              an object that is stored in it has no place in the graph
          - child `Running → ReadOnly`
          + state `Frozen`
          + child `Running → Frozen`
          ! objects in the state ReadOnly, which the new graph does not have: default/a
          ! objects with the desired state ReadOnly, which the new graph does not have: default/a
        error: 1 object is in or asks for a state that the new graph does not have
    "]]
    .assert_eq(&world.refuses(3, &["diff", &new]).await);
    expect![[r"
        databases.demo.okt.dev
          - state `ReadOnly`
              an object that is stored in it has no place in the graph
          - child `Running → ReadOnly`
          + state `Frozen`
          + child `Running → Frozen`
        error: stored objects may lose something by 1 of 4 changes
    "]]
    .assert_eq(&world.refuses(3, &["diff", &new, "--old", &same]).await);
    let other = world.file("other.json", &brokers());
    expect![[r"
        brokers.demo.okt.dev
          + the kind is new
        databases.demo.okt.dev
          - the kind is removed
              its objects, if there are any, have no operator any more
        error: stored objects may lose something by 1 of 2 changes
    "]]
    .assert_eq(&world.refuses(3, &["diff", &other, "--old", &same]).await);
    for text in ["hello", "[a, b]", "1"] {
        let none = world.file("none.yaml", text);
        let printed = world.refuses(1, &["diff", &none]).await;
        has(&printed, "there are none in it");
    }
    let bad = world.file("bad.yaml", "a: [");
    let printed = world.refuses(1, &["diff", &bad]).await;
    has(&printed, "bad.yaml: ");
}
