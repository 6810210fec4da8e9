//! An agent that is killed and started again with the same records.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::world::{Check, Stop, World, expect, expect_or, same};
use crate::wire::{ActionReport, Code, Phase};

/// The time limit for the start of an agent.
const START: Duration = Duration::from_mins(2);

pub(super) async fn guesses_nothing(world: &mut World<'_>) -> Check {
    let work = world.begin_endless().await?;
    world.running(&work.id).await?;
    let before = world.client.status().await?.boot_id;
    kill(world).await?;
    let status = world.client.status().await?;
    expect(status.boot_id != before, "bootId is the same")?;
    // The agent first cleans up what is left of the attempt. Until then it reports the action as running.
    let done = |report: &ActionReport| Ok(report.phase.is_final() || report.resumed);
    let otherwise = "is neither ended nor resumed";
    let report = world.wait(&work.id, otherwise, done).await?;
    let fits = report.phase == Phase::Unknown || !report.phase.is_final();
    expect_or(fits && report.attempt == 1, || {
        format!("it is {:?}, attempt {}", report.phase, report.attempt)
    })?;
    let again = world.ask(&work).await?;
    expect(!again.began, "asking again begins another attempt")
}

pub(super) async fn keeps_results(world: &mut World<'_>) -> Check {
    let succeeded = world.done_brief().await?;
    let failed = world.failing();
    world.done(&failed, Phase::Failed).await?;
    kill(world).await?;
    for (work, phase) in [(succeeded, Phase::Succeeded), (failed, Phase::Failed)] {
        let again = world.ask(&work).await?;
        expect_or(!again.began, || {
            format!("what was {phase:?} is begun again")
        })?;
        same("the phase", again.report.phase, phase)?;
    }
    Ok(())
}

pub(super) async fn keeps_fences(world: &mut World<'_>) -> Check {
    world.epoch += 1;
    world.done_brief().await?;
    kill(world).await?;
    let mut deposed = world.brief();
    deposed.request.fence.epoch -= 1;
    world.refused(&deposed, Code::Fenced).await?;
    let mut foreign = world.brief();
    foreign.request.owner.name.push_str("-other");
    world.refused(&foreign, Code::ForeignOwner).await.map(drop)
}

/// Kills the agent, and waits until it answers again.
async fn kill(world: &mut World<'_>) -> Check {
    let Some(restart) = &world.restart else {
        return Err(Stop::Skipped("there is no way to kill the agent"));
    };
    restart()
        .await
        .map_err(|why| Stop::Broken(format!("it was not started again: {why}")))?;
    let until = Instant::now() + START;
    while world.client.status().await.is_err() {
        expect(Instant::now() < until, "it does not answer")?;
        sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}
