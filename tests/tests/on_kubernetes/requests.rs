//! Requests for visits with arguments on a real API server: the CRDs, the rules, and a life with a kill.

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use okt::reasons;
use okt::{Application, Request, RequestObject, RequestOutcome, Requests};
use okt_tests::{Do, Objects, Restore, RestoreSchedule, Save, VaultState, Vaults, assert_contains};
use serde_json::{Value, json};

use crate::{Scene, on_kubernetes};

/// Defines the kinds of requests before the operator starts to list them.
async fn with_requests(place: &okt_tests::rollout::Place) -> Scene<Vaults> {
    let crds: Api<CustomResourceDefinition> = Api::all(place.client.clone());
    for kind in Vaults::requests(Requests::default()).kinds {
        for crd in kind.crds().expect("CRDs") {
            crds.make(json!(crd)).await;
        }
    }
    let scene = Scene::<Vaults>::set(place, |_| {}).await;
    scene.create("v", json!({})).await;
    scene.until_ready("v", VaultState::Open).await;
    scene
}

async fn until<A: Request>(requests: &Api<RequestObject<A>>, name: &str, expected: RequestOutcome) {
    okt_tests::until(&format!("{name} is {expected:?}"), async || {
        let status = requests.read(name).await.status;
        status.and_then(|it| it.outcome) == Some(expected)
    })
    .await;
}

fn restore(name: &str, spec: &Value) -> Restore {
    serde_json::from_value(json!({ "metadata": { "name": name }, "spec": spec }))
        .expect("a restore")
}

#[tokio::test]
#[ignore = "starts a real API server; run with --include-ignored"]
async fn requests_are_served_in_order_through_a_kill_and_cannot_be_changed() {
    on_kubernetes("requests", async |place| {
        let mut scene = with_requests(&place).await;
        let (restores, saves): (Api<Restore>, Api<Save>) = (scene.of(), scene.of());
        scene.app.attempts.lock().push_back(Do::Hangs);
        let of = |backup: &str| json!({ "target": { "name": "v" }, "args": { "backup": backup } });
        let params = PostParams::default();
        let made = restores.create(&params, &restore("one", &of("b1"))).await;
        made.expect("it is accepted");
        scene.until_in("v", VaultState::Restoring).await;
        let made = restores.create(&params, &restore("two", &of("b2"))).await;
        made.expect("it is accepted");
        let saving = json!({ "target": { "name": "v" }, "args": { "bucket": "b3" } });
        // Later than the restores by their creation times, which have seconds.
        tokio::time::sleep(Duration::from_secs(2)).await;
        saves
            .make(json!({ "metadata": { "name": "three" }, "spec": saving }))
            .await;
        scene.restart().await;
        until(&saves, "three", RequestOutcome::Reached).await;
        until(&restores, "one", RequestOutcome::Reached).await;
        assert_eq!(scene.app.args(), ["b1", "b1", "b2", "b3"]);

        let other = Patch::Merge(json!({ "spec": { "args": { "backup": "other" } } }));
        let changed = restores.patch("one", &PatchParams::default(), &other).await;
        assert_contains(
            &changed.expect_err("immutable").to_string(),
            "cannot be changed",
        );

        // What the operator recorded and somebody else changes is not acted upon.
        scene.app.attempts.lock().push_back(Do::Hangs);
        let made = restores.create(&params, &restore("four", &of("b4"))).await;
        made.expect("it is accepted");
        scene.until_in("v", VaultState::Restoring).await;
        let args = json!({ "args": { "value": { "backup": "other" } } });
        let edited = json!({ "lifecycle": { "request": args } });
        scene.patch_status("v", edited).await.expect("a status");
        let part = "somebody else than the operator has changed `value`";
        scene
            .until_message("v", "Stalled", reasons::UNDECODABLE, part)
            .await;
    })
    .await;
}

#[tokio::test]
#[ignore = "starts a real API server; run with --include-ignored"]
async fn a_schedule_is_checked_by_the_server_and_says_when_it_is_next() {
    on_kubernetes("schedules of requests", async |place| {
        let scene = with_requests(&place).await;
        let schedules: Api<RestoreSchedule> = scene.of();
        let template = json!({ "target": { "name": "v" }, "args": { "backup": "latest" } });
        let schedule = |name: &str, text: &str| {
            let object = json!({
                "metadata": { "name": name },
                "spec": { "schedule": text, "timeZone": "Europe/Berlin", "template": template },
            });
            serde_json::from_value::<RestoreSchedule>(object).expect("a schedule")
        };
        let params = PostParams::default();
        let made = schedules
            .create(&params, &schedule("six", "0 0 2 * * 6"))
            .await;
        assert_contains(&made.expect_err("six fields").to_string(), "spec.schedule");
        let long = "x".repeat(60);
        let made = schedules
            .create(&params, &schedule(&long, "0 2 * * *"))
            .await;
        assert_contains(&made.expect_err("a long name").to_string(), "at most 52");
        let made = schedules
            .create(&params, &schedule("nightly", "0 2 * * *"))
            .await;
        made.expect("it is accepted");
        okt_tests::until("the schedule has a next time", async || {
            let status = schedules.read("nightly").await.status.unwrap_or_default();
            assert_eq!((status.problem.as_str(), status.last), ("", None));
            status.next.is_some()
        })
        .await;
    })
    .await;
}
