//! Results and acknowledgements; cancelling, waiting, output.

use std::time::Duration;

use http::Method;
use tokio::time::Instant;

use super::world::{Check, World, expect, expect_or, same};
use crate::client::Output;
use crate::wire::{Code, Phase, Seen};

pub(super) async fn success_for_ever(world: &mut World<'_>) -> Check {
    let work = world.done_brief().await?;
    for acknowledged in [false, true] {
        let again = world.ask(&work).await?;
        expect_or(!again.began && again.report.attempt == 1, || {
            format!("it is begun again (acknowledged: {acknowledged})")
        })?;
        same("the phase", again.report.phase, Phase::Succeeded)?;
        world.acknowledge(&work.id, 1).await?;
    }
    Ok(())
}

pub(super) async fn kept_until_acknowledged(world: &mut World<'_>) -> Check {
    let work = world.failing();
    world.done(&work, Phase::Failed).await?;
    for _ in 0..2 {
        let again = world.ask(&work).await?;
        expect(
            !again.began && again.report.attempt == 1,
            "another attempt is begun before the first is acknowledged",
        )?;
        same("the phase", again.report.phase, Phase::Failed)?;
        let acknowledged = again.report.acknowledged;
        expect(!acknowledged, "it is reported as acknowledged")?;
    }
    let report = world.acknowledge(&work.id, 1).await?;
    expect(report.acknowledged, "the acknowledgement is not shown")?;
    let again = world.begin(&work).await?;
    same("the attempt after that", again.attempt, 2)?;
    world.ended(&work.id).await.map(drop)
}

pub(super) async fn failure_says_why(world: &mut World<'_>) -> Check {
    let work = world.failing();
    let report = world.done(&work, Phase::Failed).await?;
    let reason = report.reason.unwrap_or_default();
    let is_word = !reason.is_empty() && reason.bytes().all(|b| b.is_ascii_alphanumeric());
    expect_or(is_word, || {
        format!("the reason is {reason:?}, not one word")
    })?;
    expect(report.ended_at.is_some(), "endedAt is missing")
}

pub(super) async fn acknowledged_twice(world: &mut World<'_>) -> Check {
    let work = world.done_brief().await?;
    for _ in 0..2 {
        let report = world.acknowledge(&work.id, 1).await?;
        expect(report.acknowledged, "it is not acknowledged")?;
    }
    Ok(())
}

pub(super) async fn other_attempt(world: &mut World<'_>) -> Check {
    let work = world.done_brief().await?;
    let refused = world.refuses_acknowledgement(&work, 2, world.epoch, Code::OtherAttempt);
    refused.await?;
    let report = world.report(&work.id).await?;
    expect(!report.acknowledged, "it is acknowledged by that")
}

pub(super) async fn not_ended(world: &mut World<'_>) -> Check {
    let work = world.begin_endless().await?;
    let refused = world.refuses_acknowledgement(&work, 1, world.epoch, Code::NotEnded);
    refused.await
}

pub(super) async fn cancels(world: &mut World<'_>) -> Check {
    let work = world.begin_endless().await?;
    world.running(&work.id).await?;
    let answer = world.client.cancel(&work.id, world.epoch).await?;
    let is_ending = answer.phase.is_final() || answer.cancelling;
    expect(is_ending, "the answer does not show that it is ending")?;
    let report = world.ended(&work.id).await?;
    same("the phase", report.phase, Phase::Cancelled)?;
    let again = world.client.cancel(&work.id, world.epoch).await?;
    let what = "the phase after another DELETE";
    same(what, again.phase, Phase::Cancelled)
}

pub(super) async fn cancelled_before(world: &mut World<'_>) -> Check {
    let work = world.brief();
    for _ in 0..2 {
        let refused = world.refuses_cancel(&work, world.epoch, Code::NoSuchAction);
        refused.await?;
    }
    for _ in 0..2 {
        let late = world.ask(&work).await?;
        expect(!late.began, "it is begun")?;
        same("the phase", late.report.phase, Phase::Cancelled)?;
    }
    world.acknowledge(&work.id, 1).await?;
    let again = world.begin(&work).await?;
    same("the attempt after that", again.attempt, 2)?;
    world.ended(&work.id).await.map(drop)
}

pub(super) async fn cancels_nothing(world: &mut World<'_>) -> Check {
    let work = world.done_brief().await?;
    let path = format!("/actions/{}?epoch={}", work.id, world.epoch);
    let reply = world.send(Method::DELETE, &path, None).await?;
    same("the status", reply.status.as_u16(), 200)?;
    let report = world.report(&work.id).await?;
    same("the phase", report.phase, Phase::Succeeded)
}

pub(super) async fn wait(world: &mut World<'_>) -> Check {
    let work = world.begin_endless().await?;
    let (client, id) = (world.client.clone(), work.id.clone());
    let asked = Instant::now();
    client.report(&id, Duration::from_secs(1)).await?;
    let took = asked.elapsed();
    expect_or(
        (Duration::from_millis(900)..Duration::from_secs(15)).contains(&took),
        || format!("wait=1 answers after {took:?}"),
    )?;
    let waiting = tokio::spawn(async move { client.report(&id, Duration::from_secs(20)).await });
    world.client.cancel(&work.id, world.epoch).await?;
    let ended = world.ended(&work.id).await?;
    match tokio::time::timeout(Duration::from_secs(10), waiting).await {
        Ok(Ok(report)) => same("the phase", report?.phase, ended.phase),
        Ok(Err(_)) | Err(_) => expect(false, "wait=20 does not answer within 10 s of the end"),
    }
}

pub(super) async fn unobserved_after_end(world: &mut World<'_>) -> Check {
    let work = world.brief();
    let report = world.done(&work, Phase::Succeeded).await?;
    let application = world.client.status().await?.application;
    // Both times are of the agent's clock.
    let before = match (application.observed_at, report.ended_at) {
        (Some(observed), Some(ended)) => observed < ended,
        (None, _) => application.seen != Seen::Unobserved,
        (Some(_), None) => true,
    };
    expect_or(application.seen == Seen::Unobserved || !before, || {
        format!("it reports {:?} of before the end", application.seen)
    })
}

pub(super) async fn output(world: &mut World<'_>) -> Check {
    let work = world.done_brief().await?;
    let Output {
        from, to, total, ..
    } = world.client.output(&work.id, 0).await?;
    expect_or(from <= to && to <= total, || {
        format!("the range is {from}..{to} of {total}")
    })
}
