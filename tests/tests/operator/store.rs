//! The cache of an operator, read by other code of the process, and watches that the process shares.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, StreamExt};
use k8s_openapi::api::core::v1::Secret;
use kube::api::ListParams;
use kube::runtime::controller::Action;
use kube::runtime::reflector::ObjectRef;
use kube::runtime::watcher::Event;
use kube::runtime::{Controller, WatchStreamExt, reflector, watcher};
use kube::{Api, Client, Resource, ResourceExt};
use okt::{Operator, Store};
use okt_testing::Verb;
use okt_tests::{
    Database, DatabaseState::*, Databases, Kiosks, Objects, Part, Rig, definition, numbered,
};
use parking_lot::Mutex;
use serde_json::json;

/// Starts the operator, and returns its store.
fn start(rig: &Rig) -> Store<Database> {
    let mut store = None;
    rig.start_with(|operator| {
        store = Some(operator.store());
        operator
    });
    store.expect("the operator was started")
}

fn name(name: &str) -> ObjectRef<Database> {
    ObjectRef::new(name).within("default")
}

#[tokio::test(start_paused = true)]
async fn a_store_has_what_the_watch_has_delivered() {
    let rig = Rig::without_operator().await;
    rig.create("db", json!({})).await;
    let store = start(&rig);
    assert!(!store.is_ready() && store.is_empty());
    store.wait_until_ready().await.expect("the operator runs");
    assert!(store.is_ready());
    rig.create("other", json!({})).await;
    rig.until_ready("db", Running).await;
    rig.until_ready("other", Running).await;
    rig.pass(Duration::from_secs(1)).await;

    let mut stored = rig.object("db").await;
    stored.metadata.managed_fields = None;
    let cached = store.get(&name("db")).expect("it decodes").expect("known");
    assert_eq!(json!(*cached), json!(stored));
    let mut names: Vec<String> = (store.iter())
        .map(|it| it.expect("it decodes").name_any())
        .collect();
    names.sort();
    assert_eq!((names, store.len()), (vec!["db".into(), "other".into()], 2));

    rig.delete_until_gone("other").await;
    rig.pass(Duration::from_secs(1)).await;
    assert!(store.get(&name("other")).expect("no error").is_none());
    assert_eq!(store.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_does_not_decode_is_an_error_of_its_own() {
    let rig = Rig::<Databases>::bare();
    let crd = definition::with_schema::<Database>(definition::any_spec);
    rig.define(crd).await;
    rig.create("db", json!({})).await;
    rig.create_with("broken", json!({ "storage": 3 })).await;
    let store = start(&rig);
    store.wait_until_ready().await.expect("the operator runs");
    let error = store.get(&name("broken")).expect_err("it does not decode");
    assert_eq!(error.metadata.name.as_deref(), Some("broken"));
    assert!(error.error.starts_with("spec.storage: "), "{error}");
    assert_eq!(store.iter().flatten().count(), 1);
    assert_eq!(store.len(), 2);
    let events: Vec<_> = store.events().take(4).collect().await;
    assert_eq!(events.iter().filter(|it| it.is_err()).count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_store_outlives_its_operator_and_says_when_it_was_never_filled() {
    let rig = Rig::without_operator().await;
    let never = Operator::new(rig.client.clone(), rig.app.clone()).store();
    let ended = never.wait_until_ready().await.expect_err("it never runs");
    assert_eq!(ended.to_string(), "the operator has ended");
    assert_eq!(never.events().count().await, 0);

    rig.create("db", json!({})).await;
    let store = start(&rig);
    store.wait_until_ready().await.expect("the operator runs");
    let events = tokio::spawn(store.events().count());
    rig.pass(Duration::from_secs(1)).await;
    rig.create("other", json!({})).await;
    rig.pass(Duration::from_secs(1)).await;
    rig.stop().await;
    assert!(
        events.await.expect("the events end") >= 4,
        "a list, and a change"
    );
    assert!(store.get(&name("db")).expect("it decodes").is_some());
}

#[tokio::test(start_paused = true)]
async fn events_are_a_list_and_then_each_change() {
    let rig = Rig::without_operator().await;
    rig.create("db", json!({})).await;
    let store = start(&rig);
    let events = tokio::spawn(async move {
        let mut all = Vec::new();
        let mut events = Box::pin(store.events());
        while let Some(event) = events.next().await {
            all.push(event.expect("no error"));
            if matches!(all.last(), Some(Event::Delete(_))) {
                break;
            }
        }
        all
    });
    rig.until_ready("db", Running).await;
    rig.pass(Duration::from_secs(1)).await;
    rig.delete_until_gone("db").await;
    let events = events.await.expect("the events of a life");
    let lines: Vec<String> = (events.iter())
        .map(|event| match event {
            Event::Init => "Init".to_owned(),
            Event::InitDone => "InitDone".to_owned(),
            Event::InitApply(db) => format!("InitApply {}", db.name_any()),
            Event::Apply(db) => {
                let position = db.status.as_ref().and_then(|it| it.lifecycle.as_ref());
                position.map_or_else(|| "none".into(), |it| it.state.to_string())
            }
            Event::Delete(db) => format!("Delete {}", db.name_any()),
        })
        .collect();
    let mut lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    lines.dedup();
    let [list @ .., delete] = &lines[..] else {
        panic!("no events");
    };
    assert_eq!(list[..3], ["Init", "InitApply db", "InitDone"]);
    assert!(list[3..].contains(&"Running"), "{list:?}");
    assert_eq!(*delete, "Delete db");
}

/// Returns the names and versions that a reader of events knows.
async fn known(events: impl Stream<Item = watcher::Result<Event<Database>>>) -> (usize, Versions) {
    let (mut lists, mut versions) = (0, Versions::new());
    let mut events = std::pin::pin!(events);
    // Whatever does not come within a second does not come.
    while let Ok(event) = tokio::time::timeout(Duration::from_secs(1), events.next()).await {
        match event.expect("it runs").expect("no error") {
            Event::Init => {
                lists += 1;
                versions.clear();
            }
            Event::InitDone => {}
            Event::InitApply(db) | Event::Apply(db) => {
                let version = db.resource_version().expect("a version");
                versions.insert(db.name_any(), version);
            }
            Event::Delete(db) => drop(versions.remove(&db.name_any())),
        }
    }
    (lists, versions)
}

type Versions = BTreeMap<String, String>;

#[tokio::test(start_paused = true)]
async fn a_reader_that_is_far_behind_gets_a_list_and_misses_nothing() {
    let rig = Rig::without_operator().await;
    let store = start(&rig);
    let mut behind = Box::pin(store.events());
    let init = behind.next().await.expect("it runs");
    assert!(matches!(init, Ok(Event::Init)));
    rig.create_all_ready(&numbered("db", 0..60), Running).await;
    rig.delete_until_gone("db-7").await;
    rig.pass(Duration::from_secs(1)).await;
    let (lists, versions) = known(behind).await;
    assert_eq!(
        lists, 1,
        "the list at the beginning, and one for all it missed"
    );
    let all = rig
        .api()
        .list(&ListParams::default())
        .await
        .expect("a list");
    let stored: Versions = (all.items.iter())
        .map(|db| (db.name_any(), db.resource_version().expect("a version")))
        .collect();
    assert_eq!(versions, stored);
}

/// The databases that a controller has reconciled.
type Audited = Arc<Mutex<Vec<String>>>;

async fn audit(database: Arc<Database>, audited: Arc<Audited>) -> Result<Action, Infallible> {
    audited.lock().push(database.name_any());
    Ok(Action::await_change())
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "it has the signature of kube"
)]
fn ignore(_: Arc<Database>, error: &Infallible, _: Arc<Audited>) -> Action {
    match *error {}
}

/// Returns the name of the object that depends on another one: they have the same name.
fn beside<K: Resource<DynamicType = ()>>(other: &impl ResourceExt) -> ObjectRef<K> {
    let namespace = other.namespace().unwrap_or_default();
    ObjectRef::new(&other.name_any()).within(&namespace)
}

/// Runs two operators and a controller of kube, which share their watches.
async fn process(client: Client, databases: Databases, kiosks: Kiosks, audited: Audited) {
    let databases = Operator::new(client.clone(), databases).virtual_time();
    let kiosks = Operator::new(client.clone(), kiosks).virtual_time();

    // A controller of kube reconciles the databases, too.
    let stored = databases.store();
    let (reader, writer) = reflector::store();
    let changed = stored.events().reflect(writer).applied_objects();
    let controller = Controller::for_stream(changed, reader);

    // A change of a database reconciles the kiosk of its name. The operator logs errors of the watch.
    let changed = stored.events().touched_objects();
    let kiosks = kiosks.reconcile_on(changed.filter_map(async |it| Some(beside(&it.ok()?))));

    // Both operators depend on the Secrets: one reflector of kube feeds them.
    let (_secrets, writer) = reflector::store_shared::<Secret>(256);
    let [for_databases, for_kiosks] = [(); 2].map(|()| writer.subscribe().expect("it is shared"));
    let databases = databases.reconcile_on(for_databases.map(|it| beside(&*it)));
    let kiosks = kiosks.reconcile_on(for_kiosks.map(|it| beside(&*it)));
    let secrets = watcher(Api::<Secret>::all(client), watcher::Config::default())
        .default_backoff()
        .reflect_shared(writer);

    let (databases, kiosks, ..) = tokio::join!(
        databases.run(std::future::pending()),
        kiosks.run(std::future::pending()),
        controller
            .run(audit, ignore, Arc::new(audited))
            .for_each(|_| std::future::ready(())),
        secrets.for_each(|_| std::future::ready(())),
    );
    databases.and(kiosks).expect("they run");
}

#[tokio::test(start_paused = true)]
async fn operators_and_controllers_of_a_process_share_one_list_and_one_watch_of_each_kind() {
    let rig = Rig::without_operator().await;
    let kiosks = Rig::<Kiosks>::beside(&rig).await;
    let secrets = rig.of::<Secret>();
    let secret = serde_json::from_value(json!({ "metadata": { "name": "orders" } }));
    let secret: Secret = secret.expect("a Secret");
    secrets.make(json!(&secret)).await;
    rig.create("orders", json!({})).await;
    kiosks.create("orders", json!({})).await;

    let audited = Audited::default();
    let client = rig.server.client_named("process");
    let (databases, others) = (rig.app.clone(), kiosks.app.clone());
    let process = tokio::spawn(process(client, databases, others, Arc::clone(&audited)));
    rig.until_ready("orders", Running).await;
    kiosks
        .until("orders", "is open", |it| it.status.is_some())
        .await;
    rig.pass(Duration::from_secs(20)).await;

    let counts = || {
        let audited = audited.lock().len();
        let of_kiosk = kiosks.app.asked("orders", Part::Observe);
        (rig.app.observations(), of_kiosk, audited)
    };
    let before = counts();
    rig.annotate("orders", "round", Some("1")).await;
    rig.pass(Duration::from_secs(1)).await;
    let after = counts();
    assert!(
        after.0 > before.0 && after.1 > before.1 && after.2 > before.2,
        "{before:?} {after:?}"
    );
    secrets
        .edit(
            "orders",
            json!({ "metadata": { "labels": { "round": "2" } } }),
        )
        .await;
    rig.pass(Duration::from_secs(1)).await;
    let last = counts();
    assert!(last.0 > after.0 && last.1 > after.1, "{after:?} {last:?}");

    let requests = rig.server.requests();
    let of = |kind: &str, verb: Verb| {
        let of_process = requests.iter().filter(|it| it.client == "process");
        of_process
            .filter(|it| it.resource == kind && it.verb == verb)
            .count()
    };
    for kind in ["databases", "kiosks", "secrets", "configmaps"] {
        assert_eq!(
            (of(kind, Verb::List), of(kind, Verb::Watch)),
            (1, 1),
            "{kind}"
        );
    }
    process.abort();
}

#[test]
fn the_page_shows_this_process() {
    let lines = |text: &str| -> String {
        let lines = text.lines().map(|line| format!("{}\n", line.trim()));
        lines.collect()
    };
    let page = include_str!("../../../docs/own-controller.md");
    let shown = page.split("```rust\n").nth(3).expect("a block");
    let (shown, _) = shown.split_once("```").expect("its end");
    assert!(lines(include_str!("store.rs")).contains(&lines(shown)));
}
