//! This file is the tour itself: one function per stop, in order.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kube::api::DeleteParams;
use okt_examples::desk::{Trouble, at, condition, position};
use okt_examples::notes::{Instance, Observed, open_backup};
use okt_examples::notes_operator::{Notes, NotesState, archived};
use okt_examples::screen::{self, check, heading, note};
use okt_runtime::{Lifecycle, Outcome, PAUSED_ANNOTATION};
use serde_json::json;

use crate::scene::Scene;

/// The notebooks, and how many documents each is given at first.
const NOTEBOOKS: [(&str, u64); 3] = [("alpha", 80), ("beta", 20), ("gamma", 10)];

/// Walks the whole tour.
pub(crate) async fn all(scene: &mut Scene) -> Result<(), Trouble> {
    screen::note(&format!("API on {}", scene.address()));
    screen::note(&format!("kubeconfig {}", scene.kubeconfig.display()));
    creation(scene).await?;
    backup_while_writing(scene).await?;
    killed_server(scene).await?;
    killed_operator(scene).await?;
    refused_wish(scene).await?;
    held_in_failed(scene).await?;
    summary(scene).await?;
    deletion(scene).await
}

async fn creation(scene: &Scene) -> Result<(), Trouble> {
    heading(
        1,
        "Three notebooks are created; the graph leads each to Running",
    );
    for (name, _) in NOTEBOOKS {
        // A pause after each step makes a backup long enough to watch.
        scene
            .desk
            .create(name, json!({ "backupPauseMs": 60 }))
            .await?;
    }
    for (name, documents) in NOTEBOOKS {
        let notes = scene.desk.until_ready(name, NotesState::Running).await?;
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
    scene
        .desk
        .wish(
            "alpha",
            json!({ "visit": { "state": "Servicing", "request": "nightly-1" } }),
        )
        .await?;
    scene.desk.until_in("alpha", NotesState::Servicing).await?;
    let notes = scene
        .desk
        .until("alpha", "has made its visit", visited)
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

fn visited(notes: &Notes) -> bool {
    let visit = position(notes).and_then(|position| position.visit.as_ref());
    visit.is_some_and(|visit| visit.outcome == Outcome::Reached)
}

fn backups(server: &Instance) -> Result<Vec<std::path::PathBuf>, Trouble> {
    let mut found = Vec::new();
    for entry in server.data().join("backups").read_dir()? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "db") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

async fn killed_server(scene: &Scene) -> Result<(), Trouble> {
    heading(
        3,
        "The server of beta is killed; observation sees it, the graph leads back to Running",
    );
    let server = scene.instance("beta")?;
    let (before, boot) = (server.count().await?, boot_id(&server).await?);
    let transition = transitions(&scene.desk.get("beta").await?);
    let killed = server.kill().await?;
    check(killed, "SIGKILL was sent to the server of beta");
    scene
        .desk
        .until("beta", "has left Running", |notes| {
            transitions(notes) > transition
        })
        .await?;
    scene.desk.until_ready("beta", NotesState::Running).await?;
    check(
        boot_id(&server).await? != boot,
        "another process serves beta now",
    );
    let after = server.count().await?;
    check(
        after == before,
        &format!("its {after} documents are all there"),
    );
    Ok(())
}

async fn boot_id(server: &Instance) -> Result<String, Trouble> {
    match server.status().await? {
        Observed::Answering(status) => Ok(status.boot_id),
        Observed::NotRunning { .. } => Err("the server does not run".into()),
        Observed::NotAnswering { why, .. } => Err(why.into()),
    }
}

fn transitions(notes: &Notes) -> u64 {
    position(notes).map_or(0, |position| position.transition)
}

async fn killed_operator(scene: &mut Scene) -> Result<(), Trouble> {
    heading(
        4,
        "The operator is killed in the middle of a backup; the next one resumes it",
    );
    let server = scene.instance("alpha")?;
    let (made, started) = (
        backups(&server)?.len(),
        transitions(&scene.desk.get("alpha").await?),
    );
    scene
        .desk
        .wish(
            "alpha",
            json!({ "visit": { "state": "Servicing", "request": "nightly-2" } }),
        )
        .await?;
    let notes = scene.desk.until_in("alpha", NotesState::Servicing).await?;
    let id = action_id(&notes);
    scene
        .desk
        .wait("alpha's server works on it", async || {
            Ok(match server.status().await? {
                Observed::Answering(status) => status.action.filter(|action| action.id == id),
                Observed::NotRunning { .. } | Observed::NotAnswering { .. } => None,
            })
        })
        .await?;
    scene.kill_operator().await?;
    note(&format!(
        "SIGKILL to the operator while action {} runs",
        short(&id)
    ));
    tokio::time::sleep(Duration::from_millis(500)).await;
    let notes = scene.desk.get("alpha").await?;
    check(
        at(&notes) == Some(NotesState::Servicing),
        "the position is stored: alpha is in Servicing",
    );
    let pid = scene.start_operator()?;
    note(&format!("a new operator starts (pid {pid})"));
    scene
        .desk
        .until("alpha", "has made its second visit", |notes| {
            visited(notes)
                && position(notes)
                    .and_then(|position| position.visit.as_ref())
                    .is_some_and(|visit| visit.request == "nightly-2")
        })
        .await?;
    let notes = scene.desk.until_ready("alpha", NotesState::Running).await?;
    let done = server.action(&id).await?;
    check(
        done.id == id,
        &format!("action {} was resumed under its own id", short(&id)),
    );
    let backups = backups(&server)?.len();
    check(backups == made + 1, "one backup more, not two");
    let steps = transitions(&notes) - started;
    check(
        steps == 2,
        "two transitions, to Servicing and back, in spite of the kill",
    );
    Ok(())
}

fn action_id(notes: &Notes) -> String {
    position(notes)
        .and_then(|position| position.action.as_ref())
        .map_or_else(String::new, |action| action.id.clone())
}

/// An id with the end of its uid only.
fn short(id: &str) -> String {
    match id.split_once('/') {
        Some((uid, rest)) => format!(
            "…{}/{rest}",
            uid.get(uid.len().saturating_sub(6)..).unwrap_or(uid)
        ),
        None => id.to_owned(),
    }
}

async fn refused_wish(scene: &Scene) -> Result<(), Trouble> {
    heading(5, "A wish that has no route is refused, and says so");
    scene
        .desk
        .wish("gamma", json!({ "state": "ReadOnly" }))
        .await?;
    scene
        .desk
        .until_ready("gamma", NotesState::ReadOnly)
        .await?;
    let server = scene.instance("gamma")?;
    check(
        server.add("one more", "please").await.is_err(),
        "gamma is read-only: a document is refused",
    );
    scene
        .desk
        .wish("gamma", json!({ "state": "Running" }))
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
    scene
        .desk
        .wish("gamma", json!({ "state": "ReadOnly" }))
        .await?;
    scene
        .desk
        .until_ready("gamma", NotesState::ReadOnly)
        .await?;
    check(true, "the wish is taken back, gamma is ready again");
    Ok(())
}

async fn held_in_failed(scene: &Scene) -> Result<(), Trouble> {
    heading(
        6,
        "beta's data is spoilt: it is held in Failed until somebody asks again",
    );
    let server = scene.instance("beta")?;
    scene
        .desk
        .wish(
            "beta",
            json!({ "visit": { "state": "Servicing", "request": "before-the-accident" } }),
        )
        .await?;
    scene.desk.until("beta", "is backed up", visited).await?;
    scene.desk.until_ready("beta", NotesState::Running).await?;
    let backup = backups(&server)?.pop().ok_or("beta has no backup")?;
    let saved = open_backup(&backup)?;
    pause(scene, true).await?;
    server.kill().await?;
    spoil(&server)?;
    note("paused, its server killed, its database overwritten, no longer paused");
    pause(scene, false).await?;
    let notes = scene.desk.until_in("beta", NotesState::Failed).await?;
    let stalled = scene
        .desk
        .until("beta", "is stalled", |notes| {
            condition(notes, "Stalled").is_some()
        })
        .await?;
    let message = condition(&stalled, "Stalled").map_or("", |stalled| &stalled.message);
    note(&format!("Stalled: {message}"));
    let transition = transitions(&notes);
    tokio::time::sleep(Duration::from_secs(3)).await;
    let notes = scene.desk.get("beta").await?;
    check(
        at(&notes) == Some(NotesState::Failed) && transitions(&notes) == transition,
        "beta stays in Failed, although its spec wishes Running",
    );
    restore(&server, &backup)?;
    note("the backup is put back, and somebody asks again: spec.lifecycle.request=repaired");
    scene
        .desk
        .wish("beta", json!({ "request": "repaired" }))
        .await?;
    scene.desk.until_ready("beta", NotesState::Running).await?;
    let held = server.count().await?;
    check(
        held == saved,
        &format!("beta runs again with the {saved} documents of its backup"),
    );
    Ok(())
}

async fn pause(scene: &Scene, pause: bool) -> Result<(), Trouble> {
    let value = if pause { json!("true") } else { json!(null) };
    scene
        .desk
        .patch(
            "beta",
            json!({ "metadata": { "annotations": { PAUSED_ANNOTATION: value } } }),
        )
        .await?;
    if pause {
        scene
            .desk
            .until("beta", "says it is paused", |notes| {
                condition(notes, "Paused").is_some_and(|condition| condition.status == "True")
            })
            .await?;
    }
    Ok(())
}

/// The files of a database: itself, and what `SQLite` keeps beside it.
const DATABASE: [&str; 3] = ["notes.db", "notes.db-wal", "notes.db-shm"];

fn spoil(server: &Instance) -> Result<(), Trouble> {
    remove_database(server)?;
    std::fs::write(
        server.data().join(DATABASE[0]),
        "this was a database once".repeat(200),
    )?;
    Ok(())
}

fn restore(server: &Instance, backup: &std::path::Path) -> Result<(), Trouble> {
    remove_database(server)?;
    std::fs::copy(backup, server.data().join(DATABASE[0]))?;
    Ok(())
}

fn remove_database(server: &Instance) -> Result<(), Trouble> {
    for file in DATABASE {
        match std::fs::remove_file(server.data().join(file)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            Ok(()) | Err(_) => {}
        }
    }
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
        let saved = open_backup(&archive.join(DATABASE[0]))?;
        check(
            saved == documents,
            &format!("{name}: its archive opens and holds all {documents} documents"),
        );
    }
    Ok(())
}

/// Leaves three new notebooks to the user; ends only with trouble.
pub(crate) async fn stay(scene: &Scene) -> Result<(), Trouble> {
    heading(8, "Three new notebooks stay up; now it is yours");
    for name in ["red", "green", "blue"] {
        scene
            .desk
            .create(name, json!({ "backupPauseMs": 100 }))
            .await?;
    }
    for name in ["red", "green", "blue"] {
        scene.desk.until_ready(name, NotesState::Running).await?;
    }
    let kubectl = format!("kubectl --kubeconfig {}", scene.kubeconfig.display());
    let visit = r#"{"spec":{"lifecycle":{"visit":{"state":"Servicing","request":"now"}}}}"#;
    note("");
    note(&format!("{kubectl} get notes -w"));
    note(&format!("{kubectl} wait notes/red --for=condition=Ready"));
    note(&format!(
        "{kubectl} patch notes red --type merge -p '{visit}'"
    ));
    note(&format!("{kubectl} delete notes blue"));
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
