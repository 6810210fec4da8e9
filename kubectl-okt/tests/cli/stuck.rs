//! Objects that real operators left where they are: `why` names the cause and the remedy.
//!
//! Each operator runs under paused time until it reports, and is then killed, so that nothing changes any more.

use std::time::Duration;

use expect_test::{Expect, expect};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use okt::{Answer, Lifecycle, Resources};
use okt_apiserver::Fault;
use okt_tests::DatabaseState::{Running, Servicing, Stopping};
use okt_tests::{
    BargeState, Barges, MillState, Mills, Reply, Rig, RunnerState, Runners, Served, Sight, Stalls,
};
use serde_json::json;

use crate::world::Shell;

/// Kills the operator, and compares what `why` prints about an object.
async fn why<A: Served>(rig: &Rig<A>, object: &str, expected: Expect) {
    expected.assert_eq(&explanation(rig, object).await);
}

/// Kills the operator, and returns what `why` prints about an object, without times.
async fn explanation<A: Served>(rig: &Rig<A>, object: &str) -> String {
    rig.kill().await;
    let shell = Shell::of(&rig.server).await;
    let printed = shell.prints(&["why", object]).await;
    let lines: Vec<_> = printed.lines().map(timeless).collect();
    lines.join("\n") + "\n"
}

/// Removes the times from a line: the one in a state, and the one of an event.
fn timeless(line: &str) -> String {
    if line.starts_with("  20") {
        return line
            .split_once("Z ")
            .map_or(line, |(_, event)| event)
            .to_owned();
    }
    let parts = line.split_once(", for ").and_then(|(before, rest)| {
        let (_, after) = rest.split_once(',')?;
        Some(format!("{before},{after}"))
    });
    parts.unwrap_or_else(|| line.to_owned())
}

fn map(name: &str, value: &str) -> ConfigMap {
    let map = json!({ "metadata": { "name": name }, "data": { "a": value } });
    serde_json::from_value(map).expect("a map")
}

#[tokio::test(start_paused = true)]
async fn no_route() {
    let rig = Rig::<Runners>::of().await;
    rig.create("a", json!({})).await;
    rig.until_in("a", RunnerState::Idle).await;
    rig.ask_for("a", json!({ "state": "Resting" })).await;
    rig.until_reason("a", "Ready", "NoRoute").await;
    why(
        &rig,
        "runner/a",
        expect![[r"
            Runner default/a is in Idle, and is to be in Resting.

            No route leads to the desired state: no route from Idle to Resting: nobody runs twice
              → kubectl okt go -n default runners.demo.okt.dev/a STATE, with one that a route leads to: Idle, Gone

            The last warnings about the object:
            NoRoute: no route from Idle to Resting: nobody runs twice
        "]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn held() {
    let rig = Rig::new().await;
    for _ in 0..5 {
        rig.app.next_time(
            okt_tests::DatabaseState::Start,
            Reply::Fail("no space left on /data"),
        );
    }
    rig.create("a", json!({})).await;
    rig.until_in("a", okt_tests::DatabaseState::Failed).await;
    rig.until_reason("a", "Stalled", "Failed").await;
    why(&rig, "database/a", expect![[r"
        Database default/a is in Failed, and is to be in Running.
        The route: Failed → Running

        Failed is a holding state: the object stays until a person decides. What led there: Refused: no space left on /data.
          → kubectl okt retry -n default databases.demo.okt.dev/a
          → or choose another state: kubectl okt go -n default databases.demo.okt.dev/a STATE (Running, Servicing, End)

        The last warnings about the object:
        Refused: no space left on /data
        Failed: Refused: no space left on /data; Failed holds: set spec.lifecycle.request to a new text to go to Running
    "]]).await;

    rig.start();
    rig.ask_for("a", json!({ "request": "there is space" }))
        .await;
    rig.until_reason("a", "Ready", "Running").await;
    why(&rig, "database/a", expect![[r"
        Database default/a is in Running, and is to be in Running.

        Nothing is wrong: in Running, as desired.

        The last warnings about the object, which is ready now:
        Refused: no space left on /data
        Failed: Refused: no space left on /data; Failed holds: set spec.lifecycle.request to a new text to go to Running
    "]]).await;
}

/// The commands of the page about alerts, where a name stands for an object.
#[tokio::test(start_paused = true)]
async fn the_commands_of_the_alerts_are_for_an_object_that_a_person_should_look_at() {
    let rig = Rig::new().await;
    for _ in 0..5 {
        let failure = Reply::Fail("no space left on /data");
        rig.app.next_time(okt_tests::DatabaseState::Start, failure);
    }
    rig.create("orders", json!({})).await;
    rig.until_reason("orders", "Stalled", "Failed").await;
    rig.kill().await;
    let shell = Shell::of(&rig.server).await;

    let page = include_str!("../../../okt/src/alerts.md");
    let lines = page.split(['\n', '`']).map(str::trim);
    let commands = lines.filter_map(|line| line.strip_prefix("kubectl okt "));
    let mut known = 0;
    for command in commands {
        let command = command.split('#').next().unwrap_or_default();
        let mut words: Vec<_> = command.split_whitespace().collect();
        words.retain(|word| !["-n", "shop"].contains(word));
        for word in &mut words {
            match *word {
                "TYPE/NAME" => *word = "database/orders",
                "STATE" => *word = "Running",
                _ => {}
            }
        }
        if matches!(words[..], ["trail" | "retry"]) {
            words.push("database/orders");
        }
        shell.prints(&words).await;
        known += 1;
    }
    assert_eq!(known, 8, "commands of the page");

    // `kubectl get databases --sort-by`
    let column = page.split("--sort-by .").nth(1).expect("a column");
    let column = column.split('`').next().unwrap_or_default();
    let object = rig.get("orders").await.expect("the object");
    let object = serde_json::to_value(object).expect("JSON");
    let value = object.pointer(&format!("/{}", column.replace('.', "/")));
    assert!(value.is_some_and(serde_json::Value::is_string), "{column}");
}

#[tokio::test(start_paused = true)]
async fn paused() {
    let rig = Rig::new().await;
    rig.create("a", json!({})).await;
    rig.until_ready("a", Running).await;
    rig.annotate("a", "okt.dev/paused", Some("true")).await;
    rig.ask_for("a", json!({ "state": "End" })).await;
    rig.until_reason("a", "Ready", "Paused").await;
    why(
        &rig,
        "database/a",
        expect![[r"
            Database default/a is in Running, and is to be in End.
            The route: Running → Stopping → End

            It is paused by the annotation okt.dev/paused.
              → kubectl okt resume -n default databases.demo.okt.dev/a
        "]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn agent_unreachable() {
    let rig = Rig::new().await;
    rig.create("a", json!({})).await;
    rig.until_ready("a", Running).await;
    rig.app.sees("a", Sight::Unreachable);
    rig.until_reason("a", "Ready", "Unreachable").await;
    why(&rig, "database/a", expect![[r"
        Database default/a is in Running, and is to be in Running.

        Its operator cannot reach the application: the application cannot be reached: connection refused
          → see whether the pods of the application run and whether a network policy lets the operator in; the operator tries again by itself
    "]]).await;
}

#[tokio::test(start_paused = true)]
async fn failed_permanently() {
    let rig = Rig::new().await;
    rig.app
        .next_time(Stopping, Reply::FailPermanently("the disk is read-only"));
    rig.create("a", json!({ "state": "End" })).await;
    rig.until_in("a", Stopping).await;
    rig.until("a", "it is stalled", |it| {
        it.status
            .iter()
            .flat_map(|it| &it.conditions)
            .any(|it| it.type_ == "Stalled")
    })
    .await;
    why(
        &rig,
        "database/a",
        expect![[r"
            Database default/a is in Stopping, and is to be in End.
            The route: Stopping → End

            The work of Stopping failed permanently: Impossible: the disk is read-only
              → correct the spec, and the work begins again: kubectl edit -n default databases.demo.okt.dev/a
              → or mend what the message names elsewhere, then: kubectl okt retry -n default databases.demo.okt.dev/a

            The last warnings about the object:
            Impossible: the disk is read-only; it is retried when the spec changes
        "]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn unknown_state() {
    let rig = Rig::new().await;
    rig.create("a", json!({})).await;
    rig.until_ready("a", Running).await;
    rig.app.sees("a", Sight::Named("Upgrading"));
    rig.until_reason("a", "Ready", "UnforeseenState").await;
    why(&rig, "database/a", expect![[r"
        Database default/a is in Running, and is to be in Running.

        The graph does not have the state that the object is in: the application says it is in `Upgrading`, which the graph does not know; declare the state, or map it in `observe`
          → run a release of the operator whose graph has the state, by that name or by `#[was(..)]`
          → kubectl okt graph databases.demo.okt.dev shows the states of the CRD
    "]]).await;
}

#[tokio::test(start_paused = true)]
async fn state_that_the_definition_lacks() {
    let rig = Rig::new().await;
    rig.create("a", json!({})).await;
    rig.until_ready("a", Running).await;
    rig.kill().await;
    let definitions: Api<CustomResourceDefinition> = Api::all(rig.client.clone());
    let name = "databases.demo.okt.dev";
    let definition = definitions.get(name).await.expect("a definition");
    let graph = &definition.metadata.annotations.expect("annotations")["okt.dev/graph"];
    let renamed = graph.replace("\"Running\"", "\"Serving\"");
    let patch = json!({ "metadata": { "annotations": { "okt.dev/graph": renamed } } });
    let patched = definitions
        .patch(name, &PatchParams::default(), &Patch::Merge(patch))
        .await;
    patched.expect("it is accepted");
    why(&rig, "database/a", expect![[r"
        Database default/a is in Running, and is to be in Serving.

        The graph of databases.demo.okt.dev in the cluster does not have Running: the operator that recorded it is of another release than the definition.
          → apply the CRD of the operator that is to run: the output of its subcommand `crd`
          → kubectl okt graph databases.demo.okt.dev shows the states of the CRD
    "]]).await;
}

#[tokio::test(start_paused = true)]
async fn repeating_transitions() {
    let rig = Rig::new().await;
    for _ in 0..1000 {
        rig.app
            .next_time(Running, Reply::Answer(Answer::To(Servicing.id())));
    }
    rig.create("a", json!({})).await;
    rig.until_reason("a", "Ready", "LoopDetected").await;
    // It may have made another move until it was killed.
    let printed = explanation(&rig, "database/a").await;
    let (_, cause) = printed.split_once("\n\n").expect("a cause");
    // Its event may not have arrived.
    let (cause, _) = cause.split_once("\n\n").unwrap_or((cause, ""));
    let cause = cause.trim_end();
    expect![[r"
        It repeats transitions: the object makes transitions without coming to rest, so each next one waits longer, at most 6m; status.lifecycle.rounds counts them. Compare what the handlers and `observe` answer with the trail; another spec, or a new text in spec.lifecycle.request, ends the delay
          → kubectl okt trail -n default databases.demo.okt.dev/a shows them
          → kubectl okt retry -n default databases.demo.okt.dev/a
    "]]
    .assert_eq(&format!("{cause}\n"));
}

#[tokio::test(start_paused = true)]
async fn a_window_that_is_shut() {
    let rig = Rig::<Mills>::of().await;
    // The last day of February that comes each four years.
    let windows = json!([{ "start": "0 2 29 2 *", "duration": "4h", "timeZone": "Europe/Berlin" }]);
    rig.create_with("m", json!({ "version": "1", "maintenance": windows }))
        .await;
    rig.until_ready("m", MillState::Running).await;
    rig.patch("m", json!({ "spec": { "version": "2" } })).await;
    rig.until_reason("m", "Ready", "WaitingForWindow").await;
    rig.pass(Duration::from_mins(3)).await;
    why(&rig, "mill/m", expect![[r"
        Mill default/m is in Running, and is to be in Running.

        Upgrading waits for the window maintenance, which opens at 2028-02-29T02:00+01:00. It opens on Tue 2028-02-29 01:00 UTC, then on Sun 2032-02-29 01:00 UTC, then on Fri 2036-02-29 01:00 UTC.
          → change the window if it has to be sooner: kubectl edit -n default mills.demo.okt.dev/m
    "]]).await;
}

#[tokio::test(start_paused = true)]
async fn an_approval_that_is_missing_and_then_given() {
    let rig = Rig::<Mills>::of().await;
    let spec = json!({ "version": "1", "careful": true });
    rig.create_with("m", spec).await;
    rig.until_ready("m", MillState::Running).await;
    let shell = Shell::of(&rig.server).await;
    expect![[r"
        error: Mill default/m waits for no approval
    "]]
    .assert_eq(&shell.refuses(3, &["approve", "mill/m"]).await);
    rig.patch(
        "m",
        json!({ "spec": { "version": "2", "lifecycle": { "approve": "12345678" } } }),
    )
    .await;
    rig.until_reason("m", "Ready", "WaitingForApproval").await;
    rig.pass(Duration::from_mins(3)).await;
    let waiting = rig.position("m").await.waiting.expect("a wait");
    let plan = waiting.plan.expect("a plan");
    let shown = |text: &str| text.replace(&plan, "PLAN");
    let why = explanation(&rig, "mill/m").await;
    expect![[r"
        Mill default/m is in Running, and is to be in Running.

        Upgrading waits for the approval major: approve plan PLAN in `spec.lifecycle.approve`. The spec approves 12345678, which is no plan of the object now.
          → kubectl okt approve -n default mills.demo.okt.dev/m shows the plan
          → kubectl okt approve -n default mills.demo.okt.dev/m PLAN
    "]].assert_eq(&shown(&why));
    let printed = shell.prints(&["approve", "mill/m"]).await;
    expect![[r"
        Mill default/m waits for the approval of plan PLAN: Running → Upgrading, cause OnChange (version)
        `kubectl okt approve -n default mills.demo.okt.dev/m PLAN` approves it
    "]]
    .assert_eq(&shown(&printed));
    let refused = shell.refuses(3, &["approve", "mill/m", "12345678"]).await;
    expect![[r"
        error: 12345678 is not the plan of Mill default/m, which is PLAN: `kubectl okt approve -n default mills.demo.okt.dev/m` shows it
    "]].assert_eq(&shown(&refused));
    // The one who wrote another plan into the spec keeps the field.
    let refused = shell.refuses(3, &["approve", "mill/m", &plan]).await;
    expect![[r#"
        error: another manager owns the field: Apply failed with 1 conflict: conflict with "unknown" using demo.okt.dev/v1: .spec.lifecycle.approve; change it there (e.g. in Git), or the two fight
    "#]].assert_eq(&shown(&refused));
    rig.patch("m", json!({ "spec": { "lifecycle": { "approve": null } } }))
        .await;
    let printed = shell
        .prints(&["approve", "mill/m", &plan, "--dry-run"])
        .await;
    expect![[r"
        plan PLAN of Mill default/m may be approved
    "]]
    .assert_eq(&shown(&printed));
    let printed = shell.prints(&["approve", "mill/m", &plan]).await;
    expect![[r"
        plan PLAN of Mill default/m is approved
    "]]
    .assert_eq(&shown(&printed));
    rig.start();
    rig.until_in("m", MillState::Upgrading).await;
}

#[tokio::test(start_paused = true)]
async fn a_limit_that_is_full() {
    let rig = Rig::<Barges>::of().await;
    let shell = Shell::of(&rig.server).await;
    expect![[r"
        error: no object has asked for a place in a limit `rollout` yet
    "]]
    .assert_eq(&shell.refuses(3, &["limit", "rollout", "--max", "2"]).await);
    for name in ["a", "b", "c"] {
        rig.create_with(name, json!({ "version": "1" })).await;
        rig.until_ready(name, BargeState::Running).await;
    }
    for name in ["a", "b", "c"] {
        rig.patch(name, json!({ "spec": { "version": "2" } })).await;
        rig.pass(Duration::from_secs(2)).await;
    }
    rig.pass(Duration::from_mins(3)).await;
    rig.until_reason("c", "Ready", "WaitingForLimit").await;
    let why = explanation(&rig, "barge/c").await;
    expect![[r"
        Barge default/c is in Running, and is to be in Running.

        Upgrading waits for a place in the limit rollout. Places taken: 1 of 1 (default/a for 0s). One other object comes before it.
          → see why those inside do not come out: kubectl okt why TYPE/NAME
          → let more in: kubectl okt limit rollout --kind barges.demo.okt.dev --max 2
    "]].assert_eq(&why);
    let limits = shell.prints(&["limit"]).await;
    expect![[r"
        KIND                  LIMIT     INSIDE   OF   SET BY HAND
        barges.demo.okt.dev   rollout   1        1
    "]]
    .assert_eq(&limits);
    let set = shell.prints(&["limit", "rollout", "--max", "2"]).await;
    expect![[r"
        rollout of barges.demo.okt.dev: at most 2 inside; who is inside stays there
    "]]
    .assert_eq(&set);
    rig.start();
    rig.until_in("b", BargeState::Upgrading).await;
    let unset = shell.prints(&["limit", "rollout", "--no-max"]).await;
    expect![[r"
        rollout of barges.demo.okt.dev: as its operator says
    "]]
    .assert_eq(&unset);
}

#[tokio::test(start_paused = true)]
async fn foreign_owner() {
    let rig = Rig::<Stalls>::without_operator_of().await;
    let maps: Api<ConfigMap> = Api::namespaced(rig.client.clone(), "default");
    maps.create(&PostParams::default(), &map("settings", "mine"))
        .await
        .expect("a map");
    rig.app
        .declare(Resources::new().apply(map("settings", "theirs")));
    rig.start();
    rig.create("a", json!({})).await;
    rig.until_reason("a", "Ready", "NotOwned").await;
    why(&rig, "stall/a", expect![[r"
        Stall default/a is in Building, and is to be in Open.
        The route: Building → Open

        An object that it needs belongs to another owner: ConfigMap settings exists and was not made for this object: delete or rename one of them
          → delete or rename the object that the message names, or change the spec so that another name is used

        The last warnings about the object:
        NotOwned: ConfigMap settings exists and was not made for this object: delete or rename one of them
    "]]).await;
}

#[tokio::test(start_paused = true)]
async fn missing_secret() {
    let rig = Rig::<Stalls>::without_operator_of().await;
    let web = json!({
        "metadata": { "name": "web" },
        "spec": {
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "web", "image": "web" }] },
            },
        },
    });
    let web: Deployment = serde_json::from_value(web).expect("a deployment");
    rig.app.declare(Resources::new().apply_ready(web));
    rig.start();
    rig.create("a", json!({})).await;
    rig.until_reason("a", "Ready", "WaitingForResources").await;
    let pod: Pod = serde_json::from_value(json!({
        "metadata": { "name": "web-7c9d-x2" },
        "spec": { "containers": [{ "name": "web", "image": "web" }] },
    }))
    .expect("a pod");
    let pods: Api<Pod> = Api::namespaced(rig.client.clone(), "default");
    pods.create(&PostParams::default(), &pod)
        .await
        .expect("a pod");
    let waiting = json!({ "status": { "containerStatuses": [{
        "name": "web", "image": "web", "imageID": "", "ready": false, "restartCount": 0,
        "state": { "waiting": { "reason": "CreateContainerConfigError", "message": "secret \"permit\" not found" } },
    }] } });
    let merge = Patch::Merge(&waiting);
    pods.patch_status("web-7c9d-x2", &PatchParams::default(), &merge)
        .await
        .expect("a status");
    why(&rig, "stall/a", expect![[r#"
        Stall default/a is in Building, and is to be in Open.
        The route: Building → Open

        It waits for a resource: Deployment web: its controller has not observed it yet
          → kubectl describe shows what the resource that the message names lacks (e.g. a Secret or a volume)

        Pod web-7c9d-x2 waits: CreateContainerConfigError: secret "permit" not found
    "#]]).await;
}

#[tokio::test(start_paused = true)]
async fn job_that_fails() {
    let rig = Rig::<Stalls>::without_operator_of().await;
    let job = json!({
        "metadata": { "name": "load" },
        "spec": { "template": { "spec": { "restartPolicy": "Never", "containers": [{ "name": "a", "image": "a" }] } } },
    });
    let job: Job = serde_json::from_value(job).expect("a job");
    rig.app.declare(Resources::new().apply_ready(job));
    rig.start();
    rig.create("a", json!({})).await;
    rig.until_reason("a", "Ready", "WaitingForResources").await;
    let jobs: Api<Job> = Api::namespaced(rig.client.clone(), "default");
    let condition = |kind: &str| {
        json!({
            "type": kind, "status": "True", "reason": "BackoffLimitExceeded",
            "message": "Job has reached the specified backoff limit",
        })
    };
    let failed = json!({ "status": {
        "startTime": "2026-01-01T00:00:00Z",
        "conditions": [condition("FailureTarget"), condition("Failed")],
    } });
    jobs.patch_status("load", &PatchParams::default(), &Patch::Merge(&failed))
        .await
        .expect("a status");
    rig.until_reason("a", "Ready", "ResourceNotReady").await;
    why(&rig, "stall/a", expect![[r"
        Stall default/a is in Building, and is to be in Open.
        The route: Building → Open

        A resource that it needs has failed: Job load: BackoffLimitExceeded: Job has reached the specified backoff limit
          → read the events and the logs of the resource that the message names (kubectl describe, kubectl logs); after mending the cause:
          → kubectl okt retry -n default stalls.demo.okt.dev/a

        The last warnings about the object:
        ResourceNotReady: Job load: BackoffLimitExceeded: Job has reached the specified backoff limit
    "]]).await;
}

#[tokio::test(start_paused = true)]
async fn quota() {
    let rig = Rig::<Stalls>::without_operator_of().await;
    let message = "configmaps \"settings\" is forbidden: exceeded quota: team, requested: configmaps=1, used: configmaps=5, limited: configmaps=5";
    rig.server.inject(
        Fault::answer(403, "Forbidden", message)
            .resource("configmaps")
            .matching(|request| !["get", "list", "watch"].contains(&request.verb.as_str())),
    );
    rig.app
        .declare(Resources::new().apply(map("settings", "mine")));
    rig.start();
    rig.create("a", json!({})).await;
    rig.until_reason("a", "Ready", "ResourceForbidden").await;
    why(&rig, "stall/a", expect![[r#"
        Stall default/a is in Building, and is to be in Open.
        The route: Building → Open

        A quota is exhausted: ConfigMap settings: 403 configmaps "settings" is forbidden: exceeded quota: team, requested: configmaps=1, used: configmaps=5, limited: configmaps=5; raise the quota of the namespace, or ask for less
          → kubectl describe resourcequota shows the quota; raise it, or free some of it; the operator tries again by itself
    "#]]).await;
}

#[tokio::test(start_paused = true)]
async fn finalizer_of_another_controller() {
    let rig = Rig::new().await;
    rig.create("a", json!({})).await;
    rig.until_ready("a", Running).await;
    let object = rig.raw().get("a").await.expect("a database");
    let mut finalizers = object.metadata.finalizers.unwrap_or_default();
    finalizers.push("backup.example.com/keep".to_owned());
    rig.patch("a", json!({ "metadata": { "finalizers": finalizers } }))
        .await;
    rig.delete("a").await;
    rig.until("a", "the operator is done", |it| {
        it.metadata
            .finalizers
            .as_ref()
            .is_some_and(|it| it.len() == 1)
    })
    .await;
    why(&rig, "database/a", expect![[r"
        Database default/a is in End, and is to be in its end, because it is being deleted.

        Its operator is done with the deletion and has removed its finalizer. Finalizers of other controllers keep the object: backup.example.com/keep.
          → find the controller that owns backup.example.com/keep, and see why it does not finish
          → remove the finalizer by hand only if that controller is gone for ever: what it would clean up stays
    "]]).await;
}

#[tokio::test(start_paused = true)]
async fn no_leader() {
    let rig = Rig::new().await;
    rig.kill().await;
    lease(&rig, "2026-11-21T09:00:00.000000Z", "true").await;
    rig.create("a", json!({})).await;
    why(&rig, "database/a", expect![[r"
        Database default/a is in no state yet.

        No operator has reported on the object.
          → no replica of databases in the namespace default renews its lease: kubectl -n default get pods
    "]]).await;
}

#[tokio::test(start_paused = true)]
async fn crd_too_old() {
    let rig = Rig::new().await;
    rig.kill().await;
    let now = jiff::Timestamp::now() + Duration::from_mins(1);
    lease(&rig, &format!("{now:.6}"), "false").await;
    rig.create("a", json!({})).await;
    why(&rig, "database/a", expect![[r"
        Database default/a is in no state yet.

        No operator has reported on the object.
          → none of the 1 replicas of databases in the namespace default is ready: its CRD may be older than the operator (apply the output of its subcommand `crd`), or its roles too few (`rbac`); its log says which: kubectl -n default logs -l app.kubernetes.io/name=databases
    "]]).await;
}

/// Creates the lease of a replica.
async fn lease<A: Served>(rig: &Rig<A>, renewed: &str, ready: &str) {
    let lease: Lease = serde_json::from_value(json!({
        "metadata": {
            "name": "databases-a", "labels": { "okt.dev/ranges": "databases" }, "annotations": { "okt.dev/ready": ready },
        },
        "spec": { "renewTime": renewed, "leaseDurationSeconds": 15 },
    }))
    .expect("a lease");
    let leases: Api<Lease> = Api::namespaced(rig.client.clone(), "default");
    leases
        .create(&PostParams::default(), &lease)
        .await
        .expect("a lease");
}
