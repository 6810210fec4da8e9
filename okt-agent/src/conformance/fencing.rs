//! Stale requests: by epoch, transition and run, or owner; and requests for another graph.

use std::time::Duration;

use bytes::Bytes;
use http::Method;
use serde_json::json;

use super::world::{Check, Stop, World, expect, same};
use crate::wire::{Code, EPOCH_LIMIT, Phase};

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

/// Makes the agent take a higher epoch.
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

pub(super) async fn restored(world: &mut World<'_>) -> Check {
    let (mut lower, higher) = (world.brief(), world.brief());
    world.done(&higher, Phase::Succeeded).await?;
    lower.request.fence.recorded_at = higher.request.fence.recorded_at + Duration::from_millis(1);
    world.done(&lower, Phase::Succeeded).await?;
    // Later work after this must be taken too.
    let next = world.brief();
    world.done(&next, Phase::Succeeded).await.map(drop)
}

pub(super) async fn far_epoch(world: &mut World<'_>) -> Check {
    let highest = world.client.status().await?.fence.epoch;
    let mut work = world.brief();
    work.request.fence.epoch = EPOCH_LIMIT + 1;
    world.refused(&work, Code::BadRequest).await?;
    let path = format!("/actions/{}?epoch={}", work.id, u64::MAX);
    let reply = world.send(Method::DELETE, &path, None).await?;
    world.is_refusal(&reply, Code::BadRequest)?;
    let epoch = world.client.status().await?.fence.epoch;
    same("the epoch of the status", epoch, highest)
}

pub(super) async fn foreign_owner(world: &mut World<'_>) -> Check {
    let bound = world.brief();
    world.done(&bound, Phase::Succeeded).await?;
    let mut older = world.brief();
    older.request.owner.uid.push_str("-older");
    older.request.owner.created_at -= Duration::from_hours(1);
    world.refused(&older, Code::ForeignOwner).await?;
    let mut others = [world.brief(), world.brief()];
    others[0].request.owner.name.push_str("-other");
    others[1].request.owner.namespace.push_str("-other");
    for mut other in others {
        other.request.owner.uid.push_str("-other");
        other.request.owner.created_at += Duration::from_secs(1);
        world.refused(&other, Code::ForeignOwner).await?;
    }
    let object = world.client.status().await?.object;
    same(
        "the object of the status",
        object,
        Some(world.owner.object()),
    )
}

pub(super) async fn newer_owner(world: &mut World<'_>) -> Check {
    let before = world.brief();
    world.done(&before, Phase::Succeeded).await?;
    let mut work = world.brief();
    // The new owner counts its own transitions from 1.
    work.request.owner.uid.push_str("-next");
    work.request.owner.created_at += Duration::from_secs(1);
    work.request.fence.transition = 1;
    world.done(&work, Phase::Succeeded).await?;
    let owner = world.client.status().await?.owner.map(|owner| owner.uid);
    same("the owner", owner, Some(work.request.owner.uid.clone()))?;
    let back = world.brief();
    world.refused(&back, Code::ForeignOwner).await?;
    world.owner = work.request.owner;
    Ok(())
}

pub(super) async fn same_second_owner(world: &mut World<'_>) -> Check {
    let before = world.brief();
    world.done(&before, Phase::Succeeded).await?;
    let mut work = world.brief();
    work.request.owner.uid.push_str("-twin");
    world.done(&work, Phase::Succeeded).await?;
    let mut back = world.brief();
    back.request.owner.created_at += Duration::from_hours(1);
    world.refused(&back, Code::ForeignOwner).await?;
    world.owner = work.request.owner;
    Ok(())
}
