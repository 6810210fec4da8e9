//! What is older than what was taken: epochs, transitions and runs, owners; and what was made for another graph.

use std::time::Duration;

use bytes::Bytes;
use http::Method;
use serde_json::json;

use super::world::{Check, Stop, World, expect, same};
use crate::wire::{Code, Phase};

pub(super) async fn transition(world: &mut World<'_>) -> Check {
    let (older, mut newer) = (world.brief(), world.brief());
    newer.request.fence.run = 2;
    world.done(&newer, Phase::Succeeded).await?;
    world.refused(&older, Code::Fenced).await?;
    let mut first_run = world.brief();
    first_run.request.fence = newer.request.fence;
    first_run.request.fence.run = 1;
    world.refused(&first_run, Code::Fenced).await.map(drop)
}

pub(super) async fn asking(world: &mut World<'_>) -> Check {
    raise(world).await?;
    let mut work = world.brief();
    work.request.fence.epoch -= 1;
    world.refused(&work, Code::Fenced).await.map(drop)
}

pub(super) async fn cancelling(world: &mut World<'_>) -> Check {
    raise(world).await?;
    let work = world.endless();
    world.begin(&work).await?;
    world.running(&work.id).await?;
    let path = format!("/actions/{}?epoch={}", work.id, world.epoch - 1);
    let reply = world.send(Method::DELETE, &path, None).await?;
    world.is_refusal(&reply, Code::Fenced)?;
    world.running(&work.id).await?;
    let report = world.client.report(&work.id, Duration::ZERO).await?;
    expect(!report.cancelling, || {
        "it is cancelled all the same".to_owned()
    })
}

pub(super) async fn acknowledging(world: &mut World<'_>) -> Check {
    raise(world).await?;
    let work = world.brief();
    world.done(&work, Phase::Succeeded).await?;
    let body = json!({ "attempt": 1, "epoch": world.epoch - 1 });
    let body = Bytes::from(body.to_string());
    let path = format!("/actions/{}/acknowledgement", work.id);
    let reply = (world.send(Method::PUT, &path, Some((body, "application/json")))).await?;
    world.is_refusal(&reply, Code::Fenced)?;
    let report = world.client.report(&work.id, Duration::ZERO).await?;
    expect(!report.acknowledged, || {
        "it is acknowledged all the same".to_owned()
    })
}

/// Has the agent take a higher epoch.
async fn raise(world: &mut World<'_>) -> Check {
    world.epoch += 1;
    let work = world.brief();
    world.done(&work, Phase::Succeeded).await.map(drop)
}

pub(super) async fn graph(world: &mut World<'_>) -> Check {
    let Some(graph) = world.client.status().await?.graph else {
        return Err(Stop::Skipped("the agent is bound to no graph"));
    };
    let mut work = world.brief();
    work.request.graph = Some(format!("{graph}-other"));
    world.refused(&work, Code::OtherGraph).await.map(drop)
}

pub(super) async fn foreign_owner(world: &mut World<'_>) -> Check {
    let bound = world.brief();
    world.done(&bound, Phase::Succeeded).await?;
    let mut as_old = world.brief();
    as_old.request.owner.uid.push_str("-twin");
    world.refused(&as_old, Code::ForeignOwner).await?;
    let mut older = as_old;
    older.request.owner.created_at -= Duration::from_hours(1);
    world.refused(&older, Code::ForeignOwner).await.map(drop)
}

pub(super) async fn newer_owner(world: &mut World<'_>) -> Check {
    let before = world.brief();
    world.done(&before, Phase::Succeeded).await?;
    let mut work = world.brief();
    // Its transitions are its own, and begin again.
    work.request.owner.uid.push_str("-next");
    work.request.owner.created_at += Duration::from_secs(1);
    work.request.fence.transition = 1;
    world.done(&work, Phase::Succeeded).await?;
    let owner = world.client.status().await?.owner.map(|owner| owner.uid);
    same("the owner", owner, Some(work.request.owner.uid.clone()))?;
    let back = world.brief();
    world.refused(&back, Code::ForeignOwner).await.map(drop)
}
