//! The agent in a server: it keeps the protocol, and its work applies the settings.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use okt_agent::conformance::{States, Subject, Verdict};
use okt_agent::wire::{Code, Phase, Seen};
use okt_examples::notes::{Error, Settings, endpoint};
use serde_json::json;

use crate::scene::{Scene, announced, backup, order};

#[tokio::test]
async fn only_the_user_of_the_server_can_call_its_agent() {
    let scene = Scene::started(0).await;
    let socket = scene.instance.data().join("agent.sock");
    let mode = std::fs::metadata(socket).expect("a socket").permissions();
    assert_eq!(mode.mode() & 0o777, 0o600);
    // Clients with documents use another address, at which there is no agent.
    let place = announced(scene.instance.data());
    let url = format!("http://{place}/lifecycle/v1/status");
    let client = reqwest::Client::builder().no_proxy().build();
    let answer = client.expect("a client").get(url).send().await;
    assert_eq!(answer.expect("an answer").status(), 404);
}

/// The brief work is to become read-only, the failing work lacks a spec, the endless work is a backup that pauses.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_agent_keeps_the_protocol() {
    let scene = Scene::started(3_600_000).await;
    scene.add(20).await;
    let states = States {
        brief: "ReadOnly".to_owned(),
        failing: "Running".to_owned(),
        endless: "Servicing".to_owned(),
    };
    let subject = Subject::new(endpoint(scene.instance.data()), states).expect("an endpoint");
    let instance = scene.instance.clone();
    let subject = subject.restart(move || {
        let instance = instance.clone();
        async move {
            instance.kill().await.map_err(|error| error.to_string())?;
            instance.start().await.map_err(|error| error.to_string())
        }
    });

    let report = subject.check().await;

    assert!(report.is_kept(), "{report}");
    let skipped: Vec<&str> = (report.findings.iter())
        .filter(|finding| matches!(finding.verdict, Verdict::Skipped(_)))
        .map(|finding| finding.check)
        .collect();
    // It has a socket, and is bound to no graph.
    assert_eq!(skipped, ["token", "other-graph"]);
}

#[tokio::test]
async fn a_second_action_waits_for_the_end_of_the_first() {
    let scene = Scene::started(3_600_000).await;
    scene.add(20).await;
    let (one, two) = (backup(1), order("Stopping", 2, &Settings::default()));

    assert!(scene.ask(&one).await);
    assert!(!scene.ask(&one).await);
    let agent = scene.instance.agent();
    let error = agent.ask(&two.id, &two.request, None).await;

    let error = error.expect_err("a busy agent");
    assert_eq!(error.code(), Some(Code::Busy));
    let running = error.problem().and_then(|problem| problem.running.clone());
    assert_eq!(running, Some(one.id));
}

#[tokio::test]
async fn invalid_settings_are_reported_as_permanent_failures() {
    let scene = Scene::started(0).await;
    let large = Settings {
        maximum_body_bytes: Some(1 << 40),
        ..Settings::default()
    };
    let mut nothing = order("Running", 2, &large);
    nothing.request.input.clear();
    let mut odd = order("Running", 3, &large);
    odd.request.input["spec"] = json!({ "maximumBodyBytes": "many" });
    for (order, reason) in [
        (order("Running", 1, &large), "BadSettings"),
        (nothing, "NoSpec"),
        (odd, "BadSettings"),
    ] {
        let report = scene.done(&order).await;
        assert_eq!(report.phase, Phase::Failed, "{report:?}");
        assert_eq!(report.reason.as_deref(), Some(reason), "{report:?}");
        assert!(report.permanent, "{report:?}");
    }
    scene.add(1).await;
}

#[tokio::test]
async fn settings_outlive_a_restart() {
    let scene = Scene::started(0).await;
    let settings = Settings {
        maximum_body_bytes: Some(10),
        ..Settings::default()
    };
    let report = scene.done(&order("Running", 1, &settings)).await;
    assert_eq!(report.phase, Phase::Succeeded);
    scene.instance.kill().await.expect("a kill");
    scene.instance.start().await.expect("a restart");

    let error = scene
        .instance
        .add("title", "longer than ten bytes")
        .await
        .expect_err("a long body");

    assert!(
        matches!(error, Error::Refused { status: 413, .. }),
        "{error}"
    );
}

#[tokio::test]
async fn a_read_only_notebook_stays_read_only_after_a_restart_and_reports_it() {
    let scene = Scene::started(0).await;
    scene.add(2).await;
    let report = scene
        .done(&order("ReadOnly", 1, &Settings::default()))
        .await;
    assert_eq!(report.phase, Phase::Succeeded);

    for _ in 0..2 {
        let error = scene.instance.add("title", "").await;
        let error = error.expect_err("a closed notebook");
        assert!(
            matches!(error, Error::Refused { status: 403, .. }),
            "{error}"
        );
        assert_eq!(scene.instance.count().await.expect("a count"), 2);
        let state = "ReadOnly".to_owned();
        while scene.answering().await.application.seen == Seen::Unobserved {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let seen = scene.answering().await.application.seen;
        assert_eq!(seen, Seen::In { state });
        scene.instance.kill().await.expect("a kill");
        scene.instance.start().await.expect("a restart");
    }
}
