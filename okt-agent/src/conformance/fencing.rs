//! Stale requests: by epoch, transition and run, or owner; and requests for another graph.

use std::time::Duration;

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
    let work = world.begin_endless().await?;
    world.running(&work.id).await?;
    let refused = world.refuses_cancel(&work, world.epoch - 1, Code::Fenced);
    refused.await?;
    world.running(&work.id).await?;
    let report = world.report(&work.id).await?;
    expect(!report.cancelling, "it is cancelled all the same")
}

pub(super) async fn acknowledging(world: &mut World<'_>) -> Check {
    raise(world).await?;
    let work = world.done_brief().await?;
    let refused = world.refuses_acknowledgement(&work, 1, world.epoch - 1, Code::Fenced);
    refused.await?;
    let report = world.report(&work.id).await?;
    expect(!report.acknowledged, "it is acknowledged all the same")
}

/// Makes the agent take a higher epoch.
async fn raise(world: &mut World<'_>) -> Check {
    world.epoch += 1;
    world.done_brief().await.map(drop)
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
    let mut lower = world.brief();
    let higher = world.done_brief().await?;
    lower.request.fence.recorded_at = higher.request.fence.recorded_at + Duration::from_millis(1);
    world.done(&lower, Phase::Succeeded).await?;
    // Later work after this must be taken too.
    world.done_brief().await.map(drop)
}

pub(super) async fn far_epoch(world: &mut World<'_>) -> Check {
    let highest = world.client.status().await?.fence.epoch;
    let mut work = world.brief();
    work.request.fence.epoch = EPOCH_LIMIT + 1;
    world.refused(&work, Code::BadRequest).await?;
    let refused = world.refuses_cancel(&work, u64::MAX, Code::BadRequest);
    refused.await?;
    let epoch = world.client.status().await?.fence.epoch;
    same("the epoch of the status", epoch, highest)
}

pub(super) async fn foreign_owner(world: &mut World<'_>) -> Check {
    world.done_brief().await?;
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
    let expected = Some(world.owner.object());
    same("the object of the status", object, expected)
}

pub(super) async fn newer_owner(world: &mut World<'_>) -> Check {
    world.done_brief().await?;
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
    world.done_brief().await?;
    let mut work = world.brief();
    work.request.owner.uid.push_str("-twin");
    world.done(&work, Phase::Succeeded).await?;
    let mut back = world.brief();
    back.request.owner.created_at += Duration::from_hours(1);
    world.refused(&back, Code::ForeignOwner).await?;
    world.owner = work.request.owner;
    Ok(())
}
