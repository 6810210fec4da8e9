//! This file is the tour itself: one function per stop, in order; the stops with failures are in `accidents`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kube::api::DeleteParams;
use okt::{Lifecycle, VisitOutcome};
use okt_examples::desk::{Trouble, at, condition, position};
use okt_examples::notes::{Instance, archived, open_backup};
use okt_examples::notes_operator::{Notes, NotesState};
use okt_examples::screen::{self, check, heading, note};
use serde_json::json;

use crate::accidents::{held_in_failed, killed_operator, killed_server};
use crate::data::{DATABASE, backups};
use crate::scene::Scene;

/// The notebooks, and how many documents each gets at first.
const NOTEBOOKS: [(&str, u64); 3] = [("alpha", 80), ("beta", 20), ("gamma", 10)];

/// Runs the whole tour.
pub(crate) async fn all(scene: &mut Scene) -> Result<(), Trouble> {
    screen::note(
        "This program starts a Kubernetes API on this machine, an operator of `Notes` objects (a process), and a document server for each object (also a process). It then breaks them, and checks after each step that the operator repairs what it should.",
    );
    screen::note(&format!("API on {}", scene.address()));
    screen::note(&format!("kubeconfig {}", scene.kubeconfig.display()));
    screen::note(
        "A line of an object says from which state to which it went, why, and its trail: the path so far. `<<>>` and `x2` fold a loop: `(A<<>>B)x2` is A, B, A, B. `…` stands for what does not fit.",
    );
    creation(scene).await?;
    backup_while_writing(scene).await?;
    killed_server(scene).await?;
    killed_operator(scene).await?;
    refused_state(scene).await?;
    held_in_failed(scene).await?;
    summary(scene).await?;
    deletion(scene).await?;
    metrics(scene).await
}

/// Creates notebooks whose backups pause after each step, long enough to be watched, and waits until they run.
async fn create(scene: &Scene, names: [&str; 3], pause: u64) -> Result<(), Trouble> {
    for name in names {
        let spec = json!({ "backupPauseMs": pause });
        scene.desk.create(name, spec).await?;
    }
    for name in names {
        scene.desk.until_ready(name, NotesState::Running).await?;
    }
    Ok(())
}

async fn creation(scene: &Scene) -> Result<(), Trouble> {
    heading(
        1,
        "Three notebooks are created; the graph leads each to Running",
    );
    create(scene, NOTEBOOKS.map(|(name, _)| name), 120).await?;
    for (name, documents) in NOTEBOOKS {
        let notes = scene.desk.get(name).await?;
        let trail = position(&notes).map_or("", |position| &position.trail);
        check(
            trail == ">Start>Running>",
            &format!("{name} walked {trail}"),
        );
        let server = scene.instance(name)?;
        write(&server, documents).await?;
        let held = server.count().await?;
        check(
            held == documents,
            &format!("{name} holds the {documents} documents it was given"),
        );
    }
    Ok(())
}

/// Adds documents long enough to fill pages.
async fn write(server: &Instance, documents: u64) -> Result<(), Trouble> {
    let body = "All happy operators are alike. ".repeat(120);
    for number in 1..=documents {
        server.add(&format!("document {number}"), &body).await?;
    }
    Ok(())
}

async fn backup_while_writing(scene: &Scene) -> Result<(), Trouble> {
    heading(
        2,
        "A visit to Servicing: alpha is backed up while documents are written",
    );
    let server = scene.instance("alpha")?;
    let before = server.count().await?;
    let stop = Arc::new(AtomicBool::new(false));
    let writer = tokio::spawn(keep_writing(server.clone(), Arc::clone(&stop)));
    ask_for_backup(scene, "alpha", "nightly-1").await?;
    let notes = scene
        .desk
        .until("alpha", "has made its visit", |notes| {
            visited(notes, "nightly-1")
        })
        .await?;
    stop.store(true, Ordering::Relaxed);
    let written = writer.await??;
    scene.desk.until_ready("alpha", NotesState::Running).await?;
    let after = server.count().await?;
    check(
        written > 0,
        &format!("{written} documents were written meanwhile, none refused"),
    );
    check(
        after == before + written,
        &format!("alpha holds {after} documents: {before} and {written}"),
    );
    let id = backups(&server)?;
    check(id.len() == 1, "one backup was made");
    for backup in id {
        let saved = open_backup(&backup)?;
        check(
            (before..=after).contains(&saved),
            &format!("the backup opens, passes its integrity check and holds {saved} documents"),
        );
    }
    let visit = position(&notes).and_then(|position| position.visit.as_ref());
    let request = visit.map_or("", |visit| &visit.request);
    check(
        request == "nightly-1",
        "status says that the visit nightly-1 was Reached",
    );
    Ok(())
}

async fn keep_writing(server: Instance, stop: Arc<AtomicBool>) -> Result<u64, Trouble> {
    let mut written = 0;
    while !stop.load(Ordering::Relaxed) {
        server.add("meanwhile", "written during the backup").await?;
        written += 1;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(written)
}

/// Requests a visit to Servicing.
pub(crate) async fn ask_for_backup(
    scene: &Scene,
    name: &str,
    request: &str,
) -> Result<(), Trouble> {
    let visit = json!({ "visit": { "state": "Servicing", "request": request } });
    scene.desk.ask_for(name, visit).await
}

/// Whether the visit of this request was made.
pub(crate) fn visited(notes: &Notes, request: &str) -> bool {
    let visit = position(notes).and_then(|position| position.visit.as_ref());
    visit.is_some_and(|visit| visit.request == request && visit.outcome == VisitOutcome::Reached)
}

/// Sets the desired state of gamma to `ReadOnly` and waits until gamma reaches it.
async fn gamma_read_only(scene: &Scene) -> Result<(), Trouble> {
    let desk = &scene.desk;
    desk.ask_for("gamma", json!({ "state": "ReadOnly" }))
        .await?;
    desk.until_ready("gamma", NotesState::ReadOnly).await?;
    Ok(())
}

async fn refused_state(scene: &Scene) -> Result<(), Trouble> {
    heading(
        5,
        "A desired state without a route is refused, and the conditions say why",
    );
    gamma_read_only(scene).await?;
    let server = scene.instance("gamma")?;
    check(
        server.add("one more", "please").await.is_err(),
        "gamma is read-only: a document is refused",
    );
    scene
        .desk
        .ask_for("gamma", json!({ "state": "Running" }))
        .await?;
    let notes = scene
        .desk
        .until("gamma", "says NoRoute", |notes| {
            condition(notes, "Stalled").is_some_and(|condition| condition.reason == "NoRoute")
        })
        .await?;
    if let Some(stalled) = condition(&notes, "Stalled") {
        note(&format!(
            "Stalled={} {}: {}",
            stalled.status, stalled.reason, stalled.message
        ));
    }
    let ready = condition(&notes, "Ready").map_or("", |ready| &ready.status);
    check(
        ready == "False",
        "Ready is False, so kubectl wait and Argo CD see it",
    );
    check(at(&notes) == Some(NotesState::ReadOnly), "nothing moved");
    gamma_read_only(scene).await?;
    check(
        true,
        "the desired state is taken back, gamma is ready again",
    );
    Ok(())
}

async fn summary(scene: &Scene) -> Result<(), Trouble> {
    let mut rows = Vec::new();
    for (name, _) in NOTEBOOKS {
        let server = scene.instance(name)?;
        let notes = scene.desk.get(name).await?;
        let Some(position) = position(&notes) else {
            continue;
        };
        let reason = condition(&notes, "Ready");
        rows.push(vec![
            name.to_owned(),
            position.state.to_string(),
            reason.map_or_else(String::new, |ready| ready.status.clone()),
            server.count().await?.to_string(),
            position.transition.to_string(),
            position.trail.clone(),
        ]);
    }
    screen::table(
        &[
            "NAME",
            "STATE",
            "READY",
            "DOCUMENTS",
            "TRANSITIONS",
            "TRAIL",
        ],
        &rows,
    );
    Ok(())
}

async fn deletion(scene: &Scene) -> Result<(), Trouble> {
    heading(
        7,
        "All are deleted, along the graph: drained, archived, and only then gone",
    );
    let mut held = Vec::new();
    for (name, _) in NOTEBOOKS {
        held.push((name, scene.instance(name)?.count().await?));
        scene
            .desk
            .api
            .delete(name, &DeleteParams::default())
            .await?;
    }
    for (name, documents) in held {
        scene.desk.until_gone(name).await?;
        let server = scene.instance(name)?;
        check(
            !server.data().exists(),
            &format!("{name}: the finalizer and the data directory are gone"),
        );
        let archive = archived(&scene.keeper.archive(), name)?.ok_or("there is no archive")?;
        let saved = open_backup(&archive.join(DATABASE))?;
        check(
            saved == documents,
            &format!("{name}: its archive opens and holds all {documents} documents"),
        );
    }
    Ok(())
}

/// Shows what the operator counted since it was started again.
async fn metrics(scene: &Scene) -> Result<(), Trouble> {
    heading(
        8,
        "What the operator counted since it was started again (/metrics)",
    );
    // Metrics are counted after the write that they are about, and the operator hears of the last deletions later than
    // this program.
    let text = scene
        .desk
        .wait("all deletions are counted", async || {
            let text = scene.metrics().await?;
            let ends = samples(&text, "okt_transitions_total{");
            let ends = ends.filter(|(labels, _)| label(labels, "to") == "End");
            let all = ends.map(|(_, value)| value).sum::<f64>() >= 3.0;
            Ok((all && sum(&text, "okt_objects{", "") == 0.0).then_some(text))
        })
        .await?;
    let transitions = samples(&text, "okt_transitions_total{");
    let rows: Vec<_> = transitions
        .map(|(labels, value)| {
            let label = |name| label(labels, name).to_owned();
            vec![
                label("from"),
                label("to"),
                label("edge"),
                label("cause"),
                value.to_string(),
            ]
        })
        .collect();
    screen::table(&["FROM", "TO", "EDGE", "CAUSE", "TRANSITIONS"], &rows);
    let errors = sum(&text, "controller_runtime_reconcile_errors_total{", "");
    let requests = sum(&text, "rest_client_requests_total{", "");
    let writes = sum(&text, "okt_writes_total{", "");
    note(&format!(
        "{requests} requests to the API, {writes} writes of objects, {errors} reconciliations with an error"
    ));
    check(true, "no object is left in any state");
    Ok(())
}

/// Returns the labels and the value of each sample of a metric, whose name ends with `{`.
fn samples<'a>(text: &'a str, name: &str) -> impl Iterator<Item = (&'a str, f64)> {
    let lines = text.lines().filter_map(move |line| line.strip_prefix(name));
    lines.filter_map(|line| {
        let (labels, value) = line.split_once("} ")?;
        // An exemplar may follow.
        let value = value.split(' ').next()?;
        Some((labels, value.parse().ok()?))
    })
}

/// Returns the sum of the samples of a metric that have this label.
fn sum(text: &str, name: &str, label: &str) -> f64 {
    let samples = samples(text, name).filter(|(labels, _)| labels.contains(label));
    samples.map(|(_, value)| value).sum()
}

fn label<'a>(labels: &'a str, name: &str) -> &'a str {
    let value = labels.split(&format!("{name}=\"")).nth(1);
    value
        .and_then(|value| value.split('"').next())
        .unwrap_or_default()
}

/// Leaves three new notebooks to the user; returns only with an error.
pub(crate) async fn stay(scene: &Scene) -> Result<(), Trouble> {
    heading(9, "Three new notebooks stay up; now it is yours");
    create(scene, ["red", "green", "blue"], 100).await?;
    let kubeconfig = scene.kubeconfig.display();
    let kubectl = format!("kubectl --kubeconfig {kubeconfig}");
    let okt = format!("cargo run -q -p kubectl-okt -- --kubeconfig {kubeconfig}");
    let visit = r#"{"spec":{"lifecycle":{"visit":{"state":"Servicing","request":"now"}}}}"#;
    note("");
    note(&format!("{kubectl} get notes -w"));
    note(&format!("{kubectl} wait notes/red --for=condition=Ready"));
    note(&format!(
        "{kubectl} patch notes red --type merge -p '{visit}'"
    ));
    note(&format!("{kubectl} delete notes blue"));
    note(&format!("{okt} why red"));
    note(&format!("{okt} map"));
    note("");
    note(&format!("Ctrl-C ends it. The states: {}", states()));
    std::future::pending().await
}

fn states() -> String {
    let names: Vec<&str> = NotesState::GRAPH
        .states
        .iter()
        .map(|state| state.name)
        .collect();
    names.join(", ")
}
