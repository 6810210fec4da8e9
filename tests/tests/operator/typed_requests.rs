//! Requests for visits with arguments: each is served at most once, in order, with its arguments, and gets its outcome.
use std::collections::BTreeSet;
use std::time::Duration;

use jiff::tz::TimeZone;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, DynamicObject};
use kube::{Api, ResourceExt};
use okt::reasons;
use okt::{Application, Request, RequestObject, RequestOutcome, Requests, rbac};
use okt_testing::{Fault, Verb};
use okt_tests::{
    Do, OPERATOR, Objects, Restore, RestoreSchedule, Rig, Save, VaultState, Vaults,
    assert_contains, numbered,
};
use serde_json::{Value, json};

type Vaultage = Rig<Vaults>;

/// Creates a cluster with the kinds of requests, and no operator.
async fn without_operator() -> Vaultage {
    let rig = Rig::without_operator_of().await;
    for kind in Vaults::requests(Requests::default()).kinds {
        for crd in kind.crds().expect("CRDs") {
            rig.of::<CustomResourceDefinition>().make(json!(crd)).await;
        }
    }
    rig
}

/// Creates an open vault.
async fn open() -> Vaultage {
    let rig = without_operator().await;
    rig.start();
    rig.create("v", json!({})).await;
    rig.until_ready("v", VaultState::Open).await;
    rig
}

fn restores(rig: &Vaultage) -> Api<Restore> {
    rig.of()
}

fn saves(rig: &Vaultage) -> Api<Save> {
    rig.of()
}

/// Asks for a restore of a vault from the backup of the name of the request.
async fn ask(rig: &Vaultage, name: &str) {
    ask_with(
        rig,
        name,
        json!({ "target": { "name": "v" }, "args": { "backup": name } }),
    )
    .await;
}

async fn ask_with(rig: &Vaultage, name: &str, spec: Value) {
    restores(rig)
        .make(json!({ "metadata": { "name": name }, "spec": spec }))
        .await;
    // Requests of one second are served by their names.
    rig.pass(Duration::from_secs(1)).await;
}

/// Asks for a vault to be saved.
async fn save(rig: &Vaultage, name: &str) {
    let spec = json!({ "target": { "name": "v" }, "args": { "bucket": name } });
    saves(rig)
        .make(json!({ "metadata": { "name": name }, "spec": spec }))
        .await;
    rig.pass(Duration::from_secs(1)).await;
}

fn outcome<A: Request>(request: &RequestObject<A>) -> Option<RequestOutcome> {
    request.status.as_ref()?.outcome
}

/// Waits until a request has an outcome.
async fn until<A: Request>(
    rig: &Vaultage,
    requests: &Api<RequestObject<A>>,
    name: &str,
    expected: RequestOutcome,
) -> RequestObject<A> {
    let mut last = None;
    for _ in 0..2000 {
        let request = requests.read(name).await;
        if outcome(&request) == Some(expected) {
            return request;
        }
        last = outcome(&request);
        rig.pass(Duration::from_secs(1)).await;
    }
    panic!("{name} is {last:?}, and not {expected:?}")
}

/// Returns the reason and the message of the condition that is true.
fn why<A: Request>(request: &RequestObject<A>) -> (String, String) {
    let conditions = request.status.iter().flat_map(|it| &it.conditions);
    let mut held = conditions.filter(|it| it.status == "True");
    let held = held.next().expect("a condition");
    (held.reason.clone(), held.message.clone())
}

#[tokio::test(start_paused = true)]
async fn a_request_is_served_with_its_arguments_and_gets_its_result_for_four_writes() {
    let rig = open().await;
    rig.wire.clear();
    ask(&rig, "night").await;
    let served = until(&rig, &restores(&rig), "night", RequestOutcome::Reached).await;
    assert_eq!(rig.app.args(), ["night"]);
    let status = served.status.clone().expect("a status");
    assert_eq!(status.result.map(|it| it.records), Some(7));
    assert_eq!(served.labels()["okt.dev/finished"], "Reached");
    assert_eq!(why(&served).0, "Reached");
    let complete = status.conditions.iter().find(|it| it.type_ == "Complete");
    assert_eq!(complete.expect("a condition").status, "True");
    let id = rig.app.log.lock()[0].0.clone();
    assert_eq!(status.action, Some(id), "the id of its work");
    rig.until_ready("v", VaultState::Open).await;
    let writes = rig.wire.writes();
    let of = |kind: &str| writes.iter().filter(|it| it.contains(kind)).count();
    // Running, the outcome, the label; and of the vault one for each transition.
    assert_eq!(
        (of("/restores/night"), of("/vaults/v/status")),
        (3, 2),
        "{writes:?}"
    );
    rig.writes_nothing_for(Duration::from_mins(30)).await;
}

#[tokio::test(start_paused = true)]
async fn fifty_requests_are_served_once_each_in_order_through_kills() {
    let rig = open().await;
    let names = numbered("r", 10..60);
    rig.app.attempts.lock().push_back(Do::Hangs);
    for name in &names {
        ask(&rig, name).await;
    }
    for _ in 0..20 {
        rig.pass(Duration::from_millis(300)).await;
        rig.restart().await;
    }
    for name in &names {
        until(&rig, &restores(&rig), name, RequestOutcome::Reached).await;
    }
    let mut ids: Vec<(String, String)> = rig.app.log.lock().clone();
    ids.dedup();
    let served: Vec<&String> = ids.iter().map(|(_, args)| args).collect();
    assert_eq!(served, names.iter().collect::<Vec<_>>(), "each by one id");
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_deleted_while_it_runs_ends_as_usual_with_its_arguments() {
    let rig = open().await;
    rig.app.attempts.lock().push_back(Do::Hangs);
    save(&rig, "one").await;
    rig.until_in("v", VaultState::Saving).await;
    rig.pass(Duration::from_secs(5)).await;
    save(&rig, "two").await;
    rig.kill().await;
    saves(&rig).remove("one").await;
    rig.start();
    until(&rig, &saves(&rig), "two", RequestOutcome::Reached).await;
    let log = rig.app.log.lock().clone();
    assert_eq!(rig.app.args(), ["one", "one", "two"]);
    assert_eq!(log[0].0, log[1].0, "one id");
}

#[tokio::test(start_paused = true)]
async fn a_deleted_request_leads_out_by_on_abort_and_the_next_one_is_served() {
    let rig = open().await;
    rig.app.attempts.lock().push_back(Do::Hangs);
    ask(&rig, "one").await;
    rig.until_in("v", VaultState::Restoring).await;
    ask(&rig, "two").await;
    restores(&rig).remove("one").await;
    until(&rig, &restores(&rig), "two", RequestOutcome::Reached).await;
    assert_eq!(rig.app.args(), ["one", "two"]);
    let causes: Vec<String> = rig
        .position("v")
        .await
        .history
        .iter()
        .map(|it| it.cause.clone())
        .collect();
    let expected = [
        "Created", "Handler", "Request", "OnAbort", "Request", "Handler",
    ];
    assert_eq!(causes, expected);
}

#[tokio::test(start_paused = true)]
async fn an_outcome_that_could_not_be_written_is_written_before_the_next_request_begins() {
    let rig = open().await;
    let lost = Fault::forbidden().client(OPERATOR).resource("restores");
    let lost = rig.server.inject(lost.on(Verb::Patch));
    ask(&rig, "one").await;
    ask(&rig, "two").await;
    ask(&rig, "three").await;
    rig.pass(Duration::from_mins(2)).await;
    // The work of the vault goes on, and no other request begins.
    assert_eq!(
        (rig.app.args(), rig.position("v").await.transition),
        (vec!["one".to_owned()], 4)
    );
    let asked = lost.struck();
    rig.pass(Duration::from_mins(10)).await;
    assert!(
        lost.struck() - asked < 20,
        "they are tried less and less often"
    );
    rig.kill().await;
    lost.end();
    rig.start();
    until(&rig, &restores(&rig), "three", RequestOutcome::Reached).await;
    until(&rig, &restores(&rig), "one", RequestOutcome::Reached).await;
    assert_eq!(rig.app.args(), ["one", "two", "three"]);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_fails_has_its_reason_is_not_tried_again_and_blocks_no_other() {
    let rig = open().await;
    rig.app
        .attempts
        .lock()
        .extend([Do::Fails, Do::Fails, Do::Talks, Do::Talks]);
    ask(&rig, "one").await;
    let failed = until(&rig, &restores(&rig), "one", RequestOutcome::Failed).await;
    assert_eq!(
        why(&failed),
        ("NoSpace".to_owned(), "the disk is full".to_owned())
    );
    rig.until_in("v", VaultState::Broken).await;
    // A new one leads out of the holding state; a result that is too long is no result.
    ask(&rig, "two").await;
    let failed = until(&rig, &restores(&rig), "two", RequestOutcome::Failed).await;
    assert_eq!(why(&failed).0, reasons::BAD_RESULT);
    rig.until_in("v", VaultState::Broken).await;
    save(&rig, "three").await;
    until(&rig, &saves(&rig), "three", RequestOutcome::Reached).await;
    assert_eq!(rig.app.args(), ["one", "one", "two", "three"]);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_fails_without_on_error_is_over_and_the_object_goes_on() {
    let rig = open().await;
    rig.app.attempts.lock().push_back(Do::GivesUp);
    save(&rig, "one").await;
    save(&rig, "two").await;
    let failed = until(&rig, &saves(&rig), "one", RequestOutcome::Failed).await;
    assert_eq!(
        why(&failed),
        ("NoBucket".to_owned(), "there is no such bucket".to_owned())
    );
    until(&rig, &saves(&rig), "two", RequestOutcome::Reached).await;
    assert_eq!(rig.app.args(), ["one", "two"]);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_has_begun_is_not_begun_again_when_somebody_removes_its_record() {
    let rig = open().await;
    rig.app.attempts.lock().push_back(Do::Hangs);
    save(&rig, "one").await;
    until(&rig, &saves(&rig), "one", RequestOutcome::Running).await;
    let removed = json!({ "lifecycle": { "request": null } });
    rig.patch_status("v", removed).await.expect("a status");
    let lost = until(&rig, &saves(&rig), "one", RequestOutcome::NotReplayed).await;
    assert_contains(&why(&lost).1, "it had begun");
    rig.restart().await;
    save(&rig, "two").await;
    until(&rig, &saves(&rig), "two", RequestOutcome::Reached).await;
    assert_eq!(rig.app.args(), ["one", "two"]);
}

#[tokio::test(start_paused = true)]
async fn a_request_may_be_made_before_its_object() {
    let rig = without_operator().await;
    rig.start();
    ask(&rig, "one").await;
    until(&rig, &restores(&rig), "one", RequestOutcome::Queued).await;
    rig.create("v", json!({})).await;
    until(&rig, &restores(&rig), "one", RequestOutcome::Reached).await;
    assert_eq!(rig.app.args(), ["one"]);
}

#[tokio::test(start_paused = true)]
async fn an_outcome_that_is_refused_is_written_without_its_result_or_dropped() {
    let rig = open().await;
    let refused = || {
        let refused = Fault::answer(422, "Invalid", "spec.result is no number");
        refused
            .client(OPERATOR)
            .resource("restores")
            .on(Verb::Patch)
    };
    rig.app.attempts.lock().push_back(Do::Hangs);
    ask(&rig, "one").await;
    until(&rig, &restores(&rig), "one", RequestOutcome::Running).await;
    rig.server.inject(refused().times(1));
    rig.restart().await;
    let reached = until(&rig, &restores(&rig), "one", RequestOutcome::Reached).await;
    assert_eq!(why(&reached).0, reasons::BAD_RESULT);
    assert!(reached.status.expect("a status").result.is_none());
    // One that takes nothing at all keeps no other from being served.
    let always = rig.server.inject(refused().name("two"));
    ask(&rig, "two").await;
    ask(&rig, "three").await;
    until(&rig, &restores(&rig), "three", RequestOutcome::Reached).await;
    assert!(always.struck() < 20);
}

#[tokio::test(start_paused = true)]
async fn an_object_whose_older_requests_take_no_outcome_says_so_and_does_not_begin() {
    let rig = without_operator().await;
    rig.create("v", json!({})).await;
    ask(&rig, "one").await;
    let lost = Fault::forbidden().client(OPERATOR).resource("restores");
    let lost = rig.server.inject(lost.on(Verb::Patch));
    rig.start();
    rig.until_message("v", "Ready", reasons::WRITE_FAILED, "outcome of a request")
        .await;
    lost.end();
    until(&rig, &restores(&rig), "one", RequestOutcome::NotReplayed).await;
    rig.until_ready("v", VaultState::Open).await;
}

#[tokio::test(start_paused = true)]
async fn a_deletion_waits_for_outcomes_and_goes_on_when_they_cannot_be_written() {
    for lasts in [false, true] {
        let rig = open().await;
        rig.app.attempts.lock().push_back(Do::Hangs);
        ask(&rig, "one").await;
        rig.until_in("v", VaultState::Restoring).await;
        ask(&rig, "two").await;
        until(&rig, &restores(&rig), "two", RequestOutcome::Queued).await;
        let lost = Fault::forbidden().client(OPERATOR).resource("restores");
        let lost = rig.server.inject(lost.on(Verb::Patch));
        rig.api()
            .delete("v", &DeleteParams::default())
            .await
            .expect("deleted");
        rig.restart().await;
        rig.pass(Duration::from_secs(5)).await;
        if !lasts {
            assert!(rig.api().has("v").await);
            lost.end();
        }
        rig.until_gone("v").await;
        let two = outcome(&restores(&rig).read("two").await);
        let expected = if lasts {
            RequestOutcome::Queued
        } else {
            RequestOutcome::Overtaken
        };
        assert_eq!(two, Some(expected));
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_older_than_the_arrival_in_a_holding_state_waits() {
    let rig = open().await;
    rig.app.attempts.lock().extend([Do::Hangs]);
    ask(&rig, "one").await;
    rig.until_in("v", VaultState::Restoring).await;
    ask(&rig, "two").await;
    rig.app.attempts.lock().extend([Do::Fails, Do::Fails]);
    rig.restart().await;
    until(&rig, &restores(&rig), "one", RequestOutcome::Failed).await;
    rig.pass(Duration::from_mins(5)).await;
    assert_eq!(rig.position("v").await.state.as_str(), "Broken");
    let waits = restores(&rig).read("two").await;
    assert_eq!(outcome(&waits), Some(RequestOutcome::Queued));
    rig.patch(
        "v",
        json!({ "spec": { "lifecycle": { "request": "again" } } }),
    )
    .await;
    until(&rig, &restores(&rig), "two", RequestOutcome::Reached).await;
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_served_is_refused_by_the_schema_or_with_its_reason() {
    let rig = open().await;
    let target = json!({ "name": "v" });
    let refused = |spec: Value| {
        let restores = restores(&rig);
        async move {
            let request = json!({
                "apiVersion": "demo.okt.dev/v1",
                "kind": "Restore",
                "metadata": { "name": "x" },
                "spec": spec,
            });
            let raw: Api<DynamicObject> = Api::default_namespaced_with(
                restores.into_client(),
                &ApiResource::erase::<Restore>(&()),
            );
            let request = serde_json::from_value(request).expect("an object");
            let made = raw.create(&PostParams::default(), &request).await;
            made.expect_err("refused").to_string()
        }
    };
    assert_contains(&refused(json!({ "target": target })).await, "spec.args");
    assert_contains(
        &refused(json!({ "target": target, "args": { "backup": 3 } })).await,
        "spec.args.backup",
    );
    ask_with(&rig, "late", json!({ "target": target, "args": { "backup": "b" }, "startBefore": "2020-01-01T00:00:00Z" })).await;
    until(&rig, &restores(&rig), "late", RequestOutcome::Expired).await;
    let long = "x".repeat(3000);
    ask_with(
        &rig,
        "long",
        json!({ "target": target, "args": { "backup": long } }),
    )
    .await;
    let long = until(&rig, &restores(&rig), "long", RequestOutcome::Refused).await;
    assert_contains(&why(&long).1, "2048 at most");
    assert_eq!(rig.app.args(), Vec::<String>::new());
    let other = Patch::Merge(json!({ "spec": { "target": { "name": "w" } } }));
    let restores = restores(&rig);
    let changed = restores
        .patch("long", &PatchParams::default(), &other)
        .await;
    assert_contains(
        &changed.expect_err("immutable").to_string(),
        "cannot be changed",
    );
}

#[tokio::test(start_paused = true)]
async fn a_request_expires_while_it_waits_and_is_overtaken_by_a_deletion() {
    let rig = open().await;
    rig.app.attempts.lock().push_back(Do::Hangs);
    ask(&rig, "one").await;
    rig.until_in("v", VaultState::Restoring).await;
    let since = rig.position("v").await.since.expect("a time");
    let soon = since + Duration::from_mins(2);
    ask_with(&rig, "two", json!({ "target": { "name": "v" }, "args": { "backup": "b" }, "startBefore": soon.to_string() })).await;
    ask(&rig, "three").await;
    until(&rig, &restores(&rig), "two", RequestOutcome::Expired).await;
    rig.api()
        .delete("v", &DeleteParams::default())
        .await
        .expect("deleted");
    until(&rig, &restores(&rig), "three", RequestOutcome::Overtaken).await;
    rig.app.attempts.lock().push_back(Do::Fails);
    rig.restart().await;
    until(&rig, &restores(&rig), "one", RequestOutcome::Overtaken).await;
    rig.until_gone("v").await;
}

#[tokio::test(start_paused = true)]
async fn a_request_for_an_object_that_does_not_exist_waits_ten_minutes() {
    let rig = open().await;
    let spec = json!({ "target": { "name": "nowhere" }, "args": { "backup": "b" } });
    ask_with(&rig, "one", spec).await;
    let waits = until(&rig, &restores(&rig), "one", RequestOutcome::Queued).await;
    let conditions = waits.status.expect("a status").conditions;
    assert_contains(&conditions[0].message, "does not exist");
    let gone = until(&rig, &restores(&rig), "one", RequestOutcome::TargetGone).await;
    assert_eq!(why(&gone).0, "TargetGone");
}

#[tokio::test(start_paused = true)]
async fn a_restored_cluster_repeats_no_request() {
    let rig = open().await;
    ask(&rig, "one").await;
    until(&rig, &restores(&rig), "one", RequestOutcome::Reached).await;
    rig.kill().await;
    // What a backup of objects without their status restores.
    let labels = restores(&rig).read("one").await.labels().clone();
    restores(&rig).remove("one").await;
    let spec = json!({ "target": { "name": "v" }, "args": { "backup": "one" } });
    restores(&rig)
        .make(json!({ "metadata": { "name": "one", "labels": labels }, "spec": spec }))
        .await;
    rig.abandon("v").await;
    rig.api()
        .delete("v", &DeleteParams::default())
        .await
        .expect("deleted");
    rig.patch("v", json!({ "metadata": { "finalizers": null } }))
        .await;
    rig.create("v", json!({})).await;
    ask(&rig, "two").await;
    rig.start();
    let unseen = until(&rig, &restores(&rig), "two", RequestOutcome::NotReplayed).await;
    assert_contains(&why(&unseen).1, "make another one");
    rig.until_ready("v", VaultState::Open).await;
    ask(&rig, "three").await;
    until(&rig, &restores(&rig), "three", RequestOutcome::Reached).await;
    assert_eq!(rig.app.args(), ["one", "three"]);
    assert_eq!(outcome(&restores(&rig).read("one").await), None);
}

#[tokio::test(start_paused = true)]
async fn a_finished_request_is_deleted_when_its_time_is_over() {
    let rig = open().await;
    ask(&rig, "one").await;
    let spec = json!({ "target": { "name": "v" }, "args": { "backup": "b" }, "ttlSecondsAfterFinished": 60 });
    ask_with(&rig, "short", spec).await;
    until(&rig, &restores(&rig), "short", RequestOutcome::Reached).await;
    rig.pass(Duration::from_mins(20)).await;
    let has = |name: &'static str| {
        let restores = restores(&rig);
        async move { restores.has(name).await }
    };
    assert_eq!((has("one").await, has("short").await), (true, false));
    rig.pass(Duration::from_hours(1)).await;
    assert!(!has("one").await);
}

#[tokio::test(start_paused = true)]
async fn arguments_on_record_that_somebody_changes_are_not_acted_upon() {
    let rig = open().await;
    rig.app.attempts.lock().push_back(Do::Hangs);
    ask(&rig, "one").await;
    rig.until_in("v", VaultState::Restoring).await;
    let edited =
        json!({ "lifecycle": { "request": { "args": { "value": { "backup": "other" } } } } });
    rig.patch_status("v", edited).await.expect("a status");
    let part = "somebody else than the operator has changed `value`";
    rig.until_message("v", "Stalled", reasons::UNDECODABLE, part)
        .await;
    rig.restart().await;
    rig.pass(Duration::from_mins(5)).await;
    assert_eq!(rig.app.args(), ["one"]);
}

#[tokio::test(start_paused = true)]
async fn a_state_for_requests_without_a_request_is_left_and_nothing_is_done_there() {
    let rig = open().await;
    // Another writer moves the object there.
    let position = rig.position("v").await;
    let moved =
        json!({ "lifecycle": { "state": "Saving", "transition": position.transition + 1 } });
    rig.patch_status("v", moved).await.expect("a status");
    rig.until_ready("v", VaultState::Open).await;
    assert_eq!(rig.app.args(), Vec::<String>::new());
}

/// Returns the names of all restores.
async fn names(rig: &Vaultage) -> Vec<String> {
    let all = restores(rig)
        .list(&ListParams::default())
        .await
        .expect("a list");
    all.items.iter().map(ResourceExt::name_any).collect()
}

/// Returns what the printed role of the operator permits on a kind.
fn granted(plural: &str) -> BTreeSet<String> {
    let roles = rbac::<Vaults>(&[] as &[&str], None).expect("roles");
    let rules = roles.cluster_roles[0].rules.clone().unwrap_or_default();
    let all = rules.iter().flat_map(|rule| {
        let of = rule.resources.iter().flatten();
        of.flat_map(|resource| {
            rule.verbs
                .iter()
                .map(move |verb| format!("{verb} {resource}"))
        })
    });
    let is_of = |it: &String| {
        let resource = it.split(' ').nth(1).unwrap_or_default();
        resource.split('/').next() == Some(plural)
    };
    all.filter(is_of).collect()
}

/// Returns what the operator has asked for of a kind.
fn asked(rig: &Vaultage, plural: &str) -> BTreeSet<String> {
    let requests = rig.server.requests().into_iter();
    let own = requests.filter(|it| it.client == OPERATOR && it.resource == plural);
    own.map(|it| {
        let verb = format!("{:?}", it.verb).to_lowercase();
        match it.subresource {
            Some(part) => format!("{verb} {plural}/{part}"),
            None => format!("{verb} {plural}"),
        }
    })
    .collect()
}

/// Makes a schedule of restores, the first half an hour from now: no time comes at the moments at which a test looks.
async fn schedule_hourly(rig: &Vaultage) {
    let since = rig.position("v").await.since.expect("a time");
    let minute = (since.to_zoned(TimeZone::UTC).minute() + 30) % 60;
    let template = json!({ "target": { "name": "v" }, "args": { "backup": "latest" } });
    let spec = json!({ "schedule": format!("{minute} * * * *"), "template": template });
    let schedule = json!({ "metadata": { "name": "hourly" }, "spec": spec });
    rig.of::<RestoreSchedule>().make(schedule).await;
}

#[tokio::test(start_paused = true)]
async fn after_an_outage_a_suspension_and_a_restore_one_request_is_made_and_none_is_repeated() {
    let rig = open().await;
    schedule_hourly(&rig).await;
    let schedules = rig.of::<RestoreSchedule>();
    for suspend in [true, false] {
        let suspend = json!({ "spec": { "suspend": suspend } });
        schedules.edit("hourly", suspend).await;
        rig.pass(Duration::from_hours(3)).await;
    }
    assert_eq!(rig.app.args().len(), 3, "none for the suspension");
    rig.kill().await;
    rig.pass(Duration::from_hours(5)).await;
    rig.restart().await;
    rig.pass(Duration::from_mins(1)).await;
    assert_eq!(rig.app.args().len(), 4, "one for five missed times");

    // What a backup of objects without their status restores.
    rig.kill().await;
    let stored = restores(&rig).all().await;
    let spec = json!(schedules.read("hourly").await.spec);
    schedules.remove("hourly").await;
    schedules
        .make(json!({ "metadata": { "name": "hourly" }, "spec": spec }))
        .await;
    for request in &stored {
        let name = request.name_any();
        restores(&rig).remove(&name).await;
        let metadata = json!({ "name": name, "labels": request.labels() });
        let spec = json!({ "target": { "name": "v" }, "args": { "backup": "latest" } });
        let again = json!({ "metadata": metadata, "spec": spec });
        restores(&rig).make(again).await;
    }
    rig.start();
    rig.pass(Duration::from_mins(5)).await;
    assert_eq!(rig.app.args().len(), 4, "nothing is repeated");
    rig.pass(Duration::from_hours(1)).await;
    assert_eq!(rig.app.args().len(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_was_made_before_a_crash_is_the_one_for_its_time() {
    let rig = open().await;
    schedule_hourly(&rig).await;
    rig.pass(Duration::from_mins(1)).await;
    // The request is made, and that cannot be recorded.
    let lost = Fault::forbidden().client(OPERATOR);
    let lost = lost.resource("restoreschedules").on(Verb::Patch);
    let lost = rig.server.inject(lost);
    rig.pass(Duration::from_mins(45)).await;
    assert!(lost.struck() > 1);
    rig.restart().await;
    lost.end();
    rig.pass(Duration::from_mins(5)).await;
    assert_eq!((names(&rig).await.len(), rig.app.args().len()), (1, 1));
    let status = rig.of::<RestoreSchedule>().read("hourly").await.status;
    assert!(status.expect("a status").last.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_schedule_makes_one_request_per_time_and_one_after_an_outage() {
    let rig = open().await;
    schedule_hourly(&rig).await;
    rig.pass(Duration::from_secs(5)).await;
    assert_eq!(
        names(&rig).await,
        Vec::<String>::new(),
        "a new one makes nothing"
    );
    rig.pass(Duration::from_hours(2)).await;
    assert_eq!(rig.app.args().len(), 2);
    rig.kill().await;
    rig.pass(Duration::from_hours(5)).await;
    rig.start();
    rig.pass(Duration::from_mins(1)).await;
    assert_eq!(rig.app.args().len(), 3, "one for five missed times");
    rig.pass(Duration::from_hours(4)).await;
    assert_eq!(rig.app.args().len(), 7);
    let kept = names(&rig).await;
    assert!(kept.len() <= 4, "three are kept: {kept:?}");
    assert_eq!(granted("restores"), asked(&rig, "restores"));
    assert_eq!(granted("restoreschedules"), asked(&rig, "restoreschedules"));
    assert!(
        kept.iter().all(|it| it.starts_with("hourly-20")),
        "{kept:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_schedule_that_cannot_be_followed_says_why() {
    let rig = open().await;
    let make = |name: &'static str, times: &'static str, zone: &'static str| {
        let template = json!({ "target": { "name": "v" }, "args": { "backup": "b" } });
        let spec = json!({ "schedule": times, "timeZone": zone, "template": template });
        let schedules = rig.of::<RestoreSchedule>();
        async move {
            schedules
                .make(json!({ "metadata": { "name": name }, "spec": spec }))
                .await
        }
    };
    make("wrong", "0 25 * * *", "Etc/UTC").await;
    make("never", "0 2 30 2 *", "Etc/UTC").await;
    make("nowhere", "0 2 * * *", "Europe/Berlni").await;
    rig.pass(Duration::from_mins(1)).await;
    let problem = |name: &'static str| {
        let schedules = rig.of::<RestoreSchedule>();
        async move { schedules.read(name).await.status.expect("a status").problem }
    };
    assert_contains(&problem("wrong").await, "names no times");
    assert_contains(&problem("never").await, "names no time to come");
    assert_contains(&problem("nowhere").await, "there is no time zone");
}
