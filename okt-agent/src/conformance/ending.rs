//! Results and acknowledgements; cancelling, waiting, output.

use std::time::Duration;

use bytes::Bytes;
use http::Method;
use serde_json::json;
use tokio::time::Instant;

use super::world::{Check, World, expect, same};
use crate::wire::{Code, Phase, Seen};

pub(super) async fn success_for_ever(world: &mut World<'_>) -> Check {
    let work = world.brief();
    let report = world.done(&work, Phase::Succeeded).await?;
    for acknowledged in [false, true] {
        let again = world.ask(&work).await?;
        expect(!again.began && again.report.attempt == 1, || {
            format!("it is begun again (acknowledged: {acknowledged})")
        })?;
        same("the phase", again.report.phase, Phase::Succeeded)?;
        world.acknowledge(&work.id, report.attempt).await?;
    }
    Ok(())
}

pub(super) async fn kept_until_acknowledged(world: &mut World<'_>) -> Check {
    let work = world.failing();
    world.done(&work, Phase::Failed).await?;
    for _ in 0..2 {
        let again = world.ask(&work).await?;
        expect(!again.began && again.report.attempt == 1, || {
            "another attempt is begun before the first is acknowledged".to_owned()
        })?;
        same("the phase", again.report.phase, Phase::Failed)?;
        expect(!again.report.acknowledged, || {
            "it says it is acknowledged".to_owned()
        })?;
    }
    let report = world.acknowledge(&work.id, 1).await?;
    expect(report.acknowledged, || {
        "the acknowledgement is not shown".to_owned()
    })?;
    let again = world.begin(&work).await?;
    same("the attempt after that", again.attempt, 2)?;
    world.ended(&work.id).await.map(drop)
}

pub(super) async fn failure_says_why(world: &mut World<'_>) -> Check {
    let work = world.failing();
    let report = world.done(&work, Phase::Failed).await?;
    let reason = report.reason.unwrap_or_default();
    let is_word = !reason.is_empty() && reason.bytes().all(|b| b.is_ascii_alphanumeric());
    expect(is_word, || {
        format!("the reason is {reason:?}, not one word")
    })?;
    expect(report.ended_at.is_some(), || {
        "endedAt is missing".to_owned()
    })
}

pub(super) async fn acknowledged_twice(world: &mut World<'_>) -> Check {
    let work = world.brief();
    let report = world.done(&work, Phase::Succeeded).await?;
    for _ in 0..2 {
        let report = world.acknowledge(&work.id, report.attempt).await?;
        expect(report.acknowledged, || "it is not acknowledged".to_owned())?;
    }
    Ok(())
}

pub(super) async fn other_attempt(world: &mut World<'_>) -> Check {
    let work = world.brief();
    let report = world.done(&work, Phase::Succeeded).await?;
    refuses(
        world,
        work.id.as_str(),
        report.attempt + 1,
        Code::OtherAttempt,
    )
    .await?;
    let report = world.client.report(&work.id, Duration::ZERO).await?;
    expect(!report.acknowledged, || {
        "it is acknowledged by that".to_owned()
    })
}

pub(super) async fn not_ended(world: &mut World<'_>) -> Check {
    let work = world.endless();
    world.begin(&work).await?;
    refuses(world, work.id.as_str(), 1, Code::NotEnded).await
}

async fn refuses(world: &mut World<'_>, id: &str, attempt: u32, code: Code) -> Check {
    let body = json!({ "attempt": attempt, "epoch": world.epoch });
    let body = Bytes::from(body.to_string());
    let path = format!("/actions/{id}/acknowledgement");
    let reply = (world.send(Method::PUT, &path, Some((body, "application/json")))).await?;
    world.is_refusal(&reply, code).map(drop)
}

pub(super) async fn cancels(world: &mut World<'_>) -> Check {
    let work = world.endless();
    world.begin(&work).await?;
    world.running(&work.id).await?;
    let told = world.client.cancel(&work.id, world.epoch).await?;
    expect(told.phase.is_final() || told.cancelling, || {
        "the answer does not say that it is ending".to_owned()
    })?;
    let report = world.ended(&work.id).await?;
    same("the phase", report.phase, Phase::Cancelled)?;
    let again = world.client.cancel(&work.id, world.epoch).await?;
    same(
        "the phase after another DELETE",
        again.phase,
        Phase::Cancelled,
    )
}

pub(super) async fn cancelled_before(world: &mut World<'_>) -> Check {
    let work = world.brief();
    let path = format!("/actions/{}?epoch={}", work.id, world.epoch);
    for _ in 0..2 {
        let reply = world.send(Method::DELETE, &path, None).await?;
        world.is_refusal(&reply, Code::NoSuchAction)?;
    }
    for _ in 0..2 {
        let late = world.ask(&work).await?;
        expect(!late.began, || "it is begun".to_owned())?;
        same("the phase", late.report.phase, Phase::Cancelled)?;
    }
    world.acknowledge(&work.id, 1).await?;
    let again = world.begin(&work).await?;
    same("the attempt after that", again.attempt, 2)?;
    world.ended(&work.id).await.map(drop)
}

pub(super) async fn cancels_nothing(world: &mut World<'_>) -> Check {
    let work = world.brief();
    world.done(&work, Phase::Succeeded).await?;
    let path = format!("/actions/{}?epoch={}", work.id, world.epoch);
    let reply = world.send(Method::DELETE, &path, None).await?;
    same("the status", reply.status.as_u16(), 200)?;
    let report = world.client.report(&work.id, Duration::ZERO).await?;
    same("the phase", report.phase, Phase::Succeeded)
}

pub(super) async fn wait(world: &mut World<'_>) -> Check {
    let work = world.endless();
    world.begin(&work).await?;
    let asked = Instant::now();
    world
        .client
        .report(&work.id, Duration::from_secs(1))
        .await?;
    let took = asked.elapsed();
    expect(
        (Duration::from_millis(900)..Duration::from_secs(15)).contains(&took),
        || format!("wait=1 answers after {took:?}"),
    )?;
    let client = world.client.clone();
    let id = work.id.clone();
    let waiting = tokio::spawn(async move { client.report(&id, Duration::from_secs(20)).await });
    world.client.cancel(&work.id, world.epoch).await?;
    let ended = world.ended(&work.id).await?;
    match tokio::time::timeout(Duration::from_secs(10), waiting).await {
        Ok(Ok(report)) => same("the phase", report?.phase, ended.phase),
        Ok(Err(_)) | Err(_) => expect(false, || {
            "wait=20 does not answer within 10 s of the end".to_owned()
        }),
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
    expect(application.seen == Seen::Unobserved || !before, || {
        format!("it tells {:?} of before the end", application.seen)
    })
}

pub(super) async fn output(world: &mut World<'_>) -> Check {
    let work = world.brief();
    world.done(&work, Phase::Succeeded).await?;
    let output = world.client.output(&work.id, 0).await?;
    expect(
        output.from <= output.to && output.to <= output.total,
        || {
            format!(
                "the range is {}..{} of {}",
                output.from, output.to, output.total
            )
        },
    )
}
