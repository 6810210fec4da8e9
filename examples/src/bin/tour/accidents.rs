//! This file is the part of the tour that kills servers and the operator and corrupts data, and shows the recovery.

use std::time::Duration;

use okt::PAUSED_ANNOTATION;
use okt::sidecar::id_at_agent;
use okt_agent::wire::{ActionId, Phase};
use okt_examples::desk::{Trouble, at, condition, position};
use okt_examples::notes::{Instance, Observed, open_backup};
use okt_examples::notes_operator::{Notes, NotesState};
use okt_examples::screen::{check, heading, note};
use serde_json::json;

use crate::data::{backups, restore, spoil};
use crate::scene::Scene;
use crate::stops::{ask_for_backup, visited};

pub(crate) async fn killed_server(scene: &Scene) -> Result<(), Trouble> {
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

pub(crate) async fn killed_operator(scene: &mut Scene) -> Result<(), Trouble> {
    heading(
        4,
        "The operator is killed in the middle of a backup; the next one resumes it",
    );
    let server = scene.instance("alpha")?;
    let (made, started) = (
        backups(&server)?.len(),
        transitions(&scene.desk.get("alpha").await?),
    );
    ask_for_backup(scene, "alpha", "nightly-2").await?;
    let notes = scene.desk.until_in("alpha", NotesState::Servicing).await?;
    let id = action_id(&notes)?;
    scene
        .desk
        .wait("alpha's agent works on it", async || {
            Ok(match server.status().await? {
                Observed::Answering(status) => (status.action)
                    .filter(|action| action.id == id && action.phase == Phase::Running),
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
            visited(notes, "nightly-2")
        })
        .await?;
    let notes = scene.desk.until_ready("alpha", NotesState::Running).await?;
    let done = server.agent().report(&id, Duration::ZERO).await?;
    check(
        done.phase == Phase::Succeeded && done.attempt == 1,
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

/// Returns the id that the agent uses for the action of a notebook.
fn action_id(notes: &Notes) -> Result<ActionId, Trouble> {
    let action = position(notes).and_then(|position| position.action.as_ref());
    let action = action.ok_or("there is no action")?;
    Ok(id_at_agent(&action.id).parse()?)
}

/// Shortens an id to the end of its uid and the rest.
fn short(id: &ActionId) -> String {
    let (uid, rest) = id.as_str().split_once('.').unwrap_or_default();
    let end = uid.get(uid.len().saturating_sub(6)..).unwrap_or(uid);
    format!("…{end}.{rest}")
}

pub(crate) async fn held_in_failed(scene: &Scene) -> Result<(), Trouble> {
    heading(
        6,
        "beta's data is spoilt: it is held in Failed until a user asks again",
    );
    let server = scene.instance("beta")?;
    let request = "before-the-accident";
    ask_for_backup(scene, "beta", request).await?;
    scene
        .desk
        .until("beta", "is backed up", |notes| visited(notes, request))
        .await?;
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
        "beta stays in Failed, although its spec asks for Running",
    );
    restore(&server, &backup)?;
    note("the backup is put back, and the user asks again: spec.lifecycle.request=repaired");
    scene
        .desk
        .ask_for("beta", json!({ "request": "repaired" }))
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
