//! These tests rehearse the lives of applications with every possible fault.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::request::Parts;
use http::{Method, Request, Response};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::Client;
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use kube::client::Body;
use kube::core::ApiResource;
use okt::{Application, Declared, Failure, Resources};
use okt_testing::controllers::{deployment_controller, job_controller};
use okt_testing::{ApiServer, EventKind, Rehearsal};
use okt_tests::{
    Barge, BargeState, Barges, BrokerState, Brokers, DatabaseState::*, Databases, Ladders, Mistake,
    QueueState, Queues, Reply, Scripted, Served, ShopState, Shops, Sight, WebAppState, WebApps,
    assert_contains,
};
use parking_lot::Mutex;
use serde_json::{Value, json};

/// A complete life of a database.
fn rehearsal() -> Rehearsal<Databases> {
    Rehearsal::of(Databases::default)
        .object(Databases::object("db", json!({})))
        .ask_for(json!({ "visit": { "state": "Servicing", "request": "1" } }))
        .patch(json!({ "spec": { "storage": "2Gi" } }))
        .happens("the server breaks", |app| {
            app.sees("db", Sight::Event(Running, Failed));
        })
        .happens("the server is mended", |app| {
            app.sees("db", Sight::Unobserved);
        })
        .ask_for(json!({ "request": "mended" }))
        .delete()
        .ends_in(End)
}

/// A visit that never ends by itself, and so fails after half an hour.
fn overdue() -> Rehearsal<Databases> {
    let fresh = || {
        let databases = Databases::default();
        for _ in 0..20 {
            databases.next_time(Servicing, Reply::Hang);
        }
        databases
    };
    Rehearsal::of(fresh)
        .object(Databases::object("db", json!({})))
        .ask_for(json!({ "visit": { "state": "Servicing", "request": "1" } }))
        .ends_in(Failed)
}

fn map(name: &str, text: &str) -> ConfigMap {
    let map = json!({ "metadata": { "name": name }, "data": { "text": text } });
    serde_json::from_value(map).expect("a map")
}

fn role(name: &str) -> Declared {
    let role = json!({ "metadata": { "name": name } });
    Declared::of(serde_json::from_value::<ClusterRole>(role).expect("a role"))
}

/// An object with owned resources, some of which change and are deleted.
fn shop() -> Rehearsal<Shops> {
    let role = || role("shop").unowned();
    let fresh = move || {
        let shops = Shops::default();
        let resources = Resources::new().apply(map("a", "x")).apply(map("b", "x"));
        shops.declare(resources.with(role()));
        shops
    };
    Rehearsal::of(fresh)
        .object(Shops::object("shop", json!({})))
        .happens("other things are declared", move |app: &Shops| {
            app.declare(Resources::new().apply(map("a", "y")).with(role()));
        })
        .patch(json!({ "spec": { "key": "other" } }))
        .delete()
        .ends_in(ShopState::Closed)
}

/// An object with a pass that runs repeatedly, and with owned resources, some of which change and are deleted.
fn ladder() -> Rehearsal<Ladders> {
    let role = || role("ladder").unowned();
    let put = |text| Declared::of(map("a", text));
    let fresh = move || {
        let ladders = Ladders::default();
        let all = [put("x"), Declared::of(map("b", "x")).wave(1), role()];
        ladders.script.put("Mutator", all);
        ladders.script.set("Updater", Scripted::Commit);
        // Changes outside the cluster cause no event.
        let again = Scripted::RequeueAfter(Duration::from_secs(30));
        ladders.script.set("CRChecker", again);
        ladders
    };
    let mut ladder = Ladders::object("ladder", json!({}));
    ladder["spec"] = json!({});
    Rehearsal::of(fresh)
        .object(ladder)
        .happens("other things are put", move |app: &Ladders| {
            app.script.put("Mutator", [put("y"), role()]);
        })
        .happens("a step does not find it sound", |app: &Ladders| {
            let failure = Failure::permanent("Invalid", "so many rungs");
            app.script.set("CRChecker", Scripted::Fail(failure));
        })
        .patch(json!({ "spec": { "rungs": 1000 } }))
        .delete()
}

/// An object with a pass and a lifecycle.
fn queue() -> Rehearsal<Queues> {
    let fresh = move || {
        let queues = Queues::default();
        // Work that ends at once may be recorded with the results of the pass or after them.
        for state in ["Joining", "Draining"] {
            queues.script.work_takes(state, Duration::from_secs(1));
        }
        queues.script.put("Apply", [role("ground")]);
        queues.script.put("Serving", [role("house")]);
        queues
    };
    Rehearsal::of(fresh)
        .object(Queues::object("queue", json!({})))
        .happens("the ground gives way", |app: &Queues| {
            let failure = Failure::permanent("Sinking", "it is sand");
            app.script.set("Check", Scripted::Fail(failure));
        })
        .patch(json!({ "metadata": { "labels": { "a": "b" } } }))
        .happens("it holds again", |app: &Queues| {
            app.script.set("Check", Scripted::Done);
        })
        .patch(json!({ "metadata": { "labels": { "a": "c" } } }))
        .delete()
        .ends_in(QueueState::Gone)
}

#[test]
#[ignore = "takes a minute; run with --include-ignored"]
fn an_object_with_a_pass_survives_every_fault_with_its_owned_resources() {
    ladder().check();
}

#[test]
#[ignore = "takes a minute; run with --include-ignored"]
fn an_object_with_a_pass_and_a_lifecycle_survives_every_fault() {
    queue().check();
}

#[test]
#[ignore = "takes a minute; run with --include-ignored"]
fn a_shop_survives_every_fault_with_its_owned_resources() {
    shop().check();
}

#[test]
#[ignore = "takes a minute; run with --include-ignored"]
fn a_database_survives_every_fault() {
    rehearsal().check();
}

#[test]
fn a_deadline_holds_under_every_fault() {
    overdue().check();
}

/// A web app whose Job and Deployment other controllers bring to ready.
fn web_app(mistake: Option<Mistake>, jobs_fail: bool) -> Rehearsal<WebApps> {
    Rehearsal::of(move || WebApps { mistake })
        .object(json!({
            "apiVersion": "demo.okt.dev/v1",
            "kind": "WebApp",
            "metadata": { "name": "shop" },
            "spec": { "version": "1" },
        }))
        .cluster(move |client| job_controller().fails(move |_| jobs_fail).run(client))
        .cluster(|client| deployment_controller().run(client))
        .patch(json!({ "spec": { "version": "2" } }))
        .ends_in(WebAppState::Serving)
        .holds("there was one Job", |server| {
            let jobs = server.versions().resource("jobs");
            let names: BTreeSet<&str> = jobs.iter().map(|job| &*job.name).collect();
            names.len() == 1
        })
        .holds("the Deployment came after the schema", |server| {
            let versions = server.versions();
            let first = |resource: &str, is_it: fn(&Value) -> bool| {
                let mut all = versions.iter().filter(|it| it.resource == resource);
                all.find(|it| is_it(&it.object())).map(|it| it.version)
            };
            let complete = first("jobs", |job| job["status"]["succeeded"] == 1);
            first("deployments", |_| true) > complete
        })
}

#[test]
#[ignore = "takes a quarter of a minute; run with --include-ignored"]
fn an_application_of_a_job_and_a_deployment_survives_every_fault() {
    web_app(None, false)
        .delete()
        .ends_in(WebAppState::Gone)
        .check();
}

#[test]
#[ignore = "takes a quarter of a minute; run with --include-ignored"]
fn the_rehearsal_finds_mistakes_in_an_operator_of_a_job_and_a_deployment() {
    for (mistake, plan, finding) in [
        (
            Mistake::DoesNotWait,
            "undisturbed",
            "the Deployment came after the schema",
        ),
        (
            Mistake::CreatesOnce,
            "crash",
            r#"state is "Failed", undisturbed "Serving""#,
        ),
        (
            Mistake::CreatesForEachAttempt,
            "attempt",
            "there was one Job",
        ),
    ] {
        let report = web_app(Some(mistake), false).run();
        println!("{mistake:?}: {report}");
        let is_found = (report.found()).any(|(name, broken)| {
            name.contains(plan) && broken.iter().any(|it| it.contains(finding))
        });
        assert!(is_found, "{mistake:?}: {report}");
    }
}

/// Creates two other barges, which are upgraded first.
async fn other_barges(client: Client) {
    let kind = ApiResource::erase::<Barge>(&());
    let api: Api<DynamicObject> = Api::default_namespaced_with(client, &kind);
    for name in ["b", "c"] {
        // One after the other, so that each run has the same events.
        tokio::time::sleep(Duration::from_secs(10)).await;
        let barge = serde_json::from_value(Barges::object(name, json!({}))).expect("a barge");
        let created = api.create(&PostParams::default(), &barge).await;
        created.expect("a barge");
    }
    for name in ["b", "c"] {
        tokio::time::sleep(Duration::from_secs(10)).await;
        let version = Patch::Merge(json!({ "spec": { "version": "2" } }));
        let changed = api.patch(name, &PatchParams::default(), &version).await;
        changed.expect("a barge");
    }
    // A person mends what has failed: it keeps its place until then.
    for number in 0_u32.. {
        tokio::time::sleep(Duration::from_mins(10)).await;
        for name in ["b", "c"] {
            let barge = api.get(name).await.expect("a barge");
            if barge.data["status"]["lifecycle"]["state"] == "Failed" {
                let desired = json!({ "state": "Running", "request": format!("mended-{number}") });
                let mended = Patch::Merge(json!({ "spec": { "lifecycle": desired } }));
                let mended = api.patch(name, &PatchParams::default(), &mended).await;
                mended.expect("a barge");
            }
        }
    }
}

/// Returns the largest number of barges that were in their limit at a time, by every version of each.
fn most_inside(server: &ApiServer) -> usize {
    let (mut inside, mut most) = (BTreeSet::new(), 0);
    for version in server
        .versions()
        .iter()
        .filter(|it| it.resource == "barges")
    {
        let barge: Option<Barge> = serde_json::from_value(version.object()).ok();
        if barge.is_some_and(|barge| barge.is_inside()) {
            inside.insert(version.name.clone());
        } else {
            inside.remove(&version.name);
        }
        most = most.max(inside.len());
    }
    most
}

/// A barge that is upgraded after two others, in a limit of one.
fn barge() -> Rehearsal<Barges> {
    let mut barge = Barges::object("a", json!({}));
    barge["spec"]["version"] = json!("1");
    Rehearsal::of(Barges::default)
        .object(barge)
        .cluster(other_barges)
        .patch(json!({ "spec": { "version": "2" } }))
        .ends_in(BargeState::Running)
        .holds("one was in the limit at a time", |server| {
            most_inside(server) == 1
        })
}

#[test]
#[ignore = "takes a minute; run with --include-ignored"]
fn three_objects_with_a_limit_of_one_survive_every_fault() {
    barge().check();
}

/// A shop whose map has another text in each run.
fn shop_with_a_random_text() -> Rehearsal<Shops> {
    let runs = AtomicUsize::new(0);
    let fresh = move || {
        let run = runs.fetch_add(1, Ordering::Relaxed);
        let shops = Shops::default();
        shops.declare(Resources::new().apply(map("password", &format!("random {run}"))));
        shops
    };
    let object = Shops::object("shop", json!({ "state": "Open" }));
    Rehearsal::of(fresh).object(object).ends_in(ShopState::Open)
}

#[test]
fn a_rehearsal_says_where_two_runs_differ_and_leaves_out_what_is_random() {
    let report = shop_with_a_random_text().run();
    assert_contains(
        &report.to_string(),
        r#"after the creation: owned.configmaps/default/password.data.text is "random"#,
    );
    let named = shop_with_a_random_text().random("configmaps/password", "/data/text");
    let report = named.run();
    assert!(report.is_good(), "{report}");
    // A fault deletes the shop, so that it was closed, too.
    let text = report.to_string();
    assert!(!text.contains("never entered"), "{text}");
    let misspelt = shop_with_a_random_text().random("configmaps/password", "/data/test");
    assert_contains(
        &misspelt.run().to_string(),
        "no owned resource configmaps/password has a value at /data/test",
    );
}

#[test]
fn what_the_way_out_needs_is_gone_after_it() {
    let fresh = || {
        let shops = Shops::default();
        let needed = Declared::of(map("needed", "x")).unowned().during_deletion();
        shops.declare(Resources::new().with(needed));
        shops
    };
    let report = Rehearsal::of(fresh)
        .object(Shops::object("shop", json!({ "state": "Open" })))
        .delete()
        .ends_in(ShopState::Closed)
        .holds("nothing is left", |server| {
            let versions = server.versions().resource("configmaps");
            let last = versions.into_iter().last();
            last.is_none_or(|it| it.kind == EventKind::Deleted)
        })
        .run();
    assert!(report.is_good(), "{report}");
}

#[test]
fn a_rehearsal_says_where_the_life_ends() {
    let report = web_app(None, true).run();
    let text = report.to_string();
    assert_contains(&text, "it ended in Failed, not in Serving");
}

/// Returns the findings of a rehearsal with a bug in the operator's requests.
fn found<A: Application + Clone>(rehearsal: Rehearsal<A>, bug: Bug) -> Vec<String> {
    let report = rehearsal
        .__through(move |client| planted(client, bug))
        .run();
    println!("{report}");
    let found = report.found().flat_map(|(_, broken)| broken);
    found.cloned().collect()
}

/// A bug in the writes of a status.
#[derive(Clone, Copy)]
enum Bug {
    /// Writes the status even if the object has changed meanwhile.
    NoResourceVersion,
    /// Reports a write as done before it is done.
    WritesLate,
    /// Reports as recorded what a handler remembers, and records it with the next write.
    RemembersLate,
}

/// The delay of a write that is already reported as done.
const LATE: Duration = Duration::from_secs(1);

/// Returns a client whose writes of a status have a bug.
fn planted(client: Client, bug: Bug) -> Client {
    let namespace = client.default_namespace().to_owned();
    let remembered = Arc::new(Mutex::new(None));
    let service = tower::service_fn(move |request: Request<Body>| {
        let (client, remembered) = (client.clone(), Arc::clone(&remembered));
        async move {
            if request.method() != Method::PATCH || !request.uri().path().ends_with("/status") {
                return client.send(request).await;
            }
            let (parts, body) = request.into_parts();
            let body = body.collect_bytes().await?;
            let mut status: Value = serde_json::from_slice(&body).expect("JSON");
            let again = |parts: &Parts, body: &Value| {
                Request::from_parts(parts.clone(), Body::from(body.to_string().into_bytes()))
            };
            match bug {
                Bug::NoResourceVersion => status["metadata"] = json!({}),
                Bug::WritesLate => {
                    let (late_client, late) = (client.clone(), again(&parts, &status));
                    tokio::spawn(async move {
                        tokio::time::sleep(LATE).await;
                        // The write fails if the object has changed meanwhile.
                        let _ = late_client.send(late).await;
                    });
                    let mut parts = parts;
                    let uri = format!("{}&dryRun=All", parts.uri);
                    parts.uri = uri.parse().expect("an address");
                    return client.send(again(&parts, &status)).await;
                }
                Bug::RemembersLate => {
                    let position = status.pointer_mut("/status/lifecycle");
                    let position = position.and_then(Value::as_object_mut);
                    let memory = position.and_then(|it| {
                        let memory = it.remove("memory")?;
                        let late = remembered.lock().replace(memory.clone());
                        it.extend(late.map(|late| ("memory".to_owned(), late)));
                        Some(memory)
                    });
                    let Some(memory) = memory else {
                        return client.send(again(&parts, &status)).await;
                    };
                    let (parts, body) = client.send(again(&parts, &status)).await?.into_parts();
                    let body = body.collect_bytes().await?;
                    let mut answer: Value = serde_json::from_slice(&body).expect("JSON");
                    if parts.status.is_success() {
                        answer["status"]["lifecycle"]["memory"] = memory;
                    }
                    let body = Body::from(answer.to_string().into_bytes());
                    return Ok(Response::from_parts(parts, body));
                }
            }
            client.send(again(&parts, &status)).await
        }
    });
    Client::new(service, namespace)
}

fn has(found: &[String], words: &str) -> bool {
    found.iter().any(|found| found.contains(words))
}

#[test]
#[ignore = "takes a minute; run with --include-ignored"]
fn the_rehearsal_finds_an_operator_that_overwrites_unseen_changes() {
    let found = found(rehearsal(), Bug::NoResourceVersion);
    assert!(has(&found, "refused with 422"), "{found:#?}");
}

#[test]
#[ignore = "takes a minute; run with --include-ignored"]
fn the_rehearsal_finds_an_operator_that_acts_before_its_write() {
    let found = found(rehearsal(), Bug::WritesLate);
    assert!(
        has(&found, "began before its position was written"),
        "{found:#?}"
    );
}

#[test]
#[ignore = "takes a minute; run with --include-ignored"]
fn the_rehearsal_finds_memory_that_is_read_before_it_is_recorded() {
    let life = || {
        let mut broker = Brokers::object("a", json!({}));
        broker["spec"]["nodes"] = json!(3);
        Rehearsal::of(Brokers::default)
            .object(broker)
            .patch(json!({ "spec": { "nodes": 4 } }))
            .ends_in(BrokerState::Running)
    };
    life().check();
    let found = found(life(), Bug::RemembersLate);
    assert!(has(&found, "data.text is \"0\""), "{found:#?}");
}
