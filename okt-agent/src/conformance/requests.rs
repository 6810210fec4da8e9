//! Requests for work: once, a thousand times, while other work runs, and for unknown work.

use std::time::Duration;

use http::Method;
use jiff::Timestamp;
use serde_json::json;
use tokio::task::JoinSet;

use super::world::{Check, Stop, World, expect, expect_or, same};
use crate::client::ClientError;
use crate::wire::{Code, Phase};

/// The number of concurrent requests.
const AT_ONCE: usize = 1000;

pub(super) async fn begins_once(world: &mut World<'_>) -> Check {
    let work = world.brief();
    let first = world.begin(&work).await?;
    same("the first attempt", first.attempt, 1)?;
    for _ in 0..3 {
        let again = world.ask(&work).await?;
        expect(!again.began, "the same PUT answers 201 again")?;
        same("the attempt", again.report.attempt, 1)?;
    }
    let report = world.ended(&work.id).await?;
    same("the phase", report.phase, Phase::Succeeded)
}

pub(super) async fn thousand_at_once(world: &mut World<'_>) -> Check {
    let work = world.brief();
    let mut asked = JoinSet::new();
    for _ in 0..AT_ONCE {
        let (client, work) = (world.client.clone(), work.clone());
        asked.spawn(async move {
            let mut tries = 0;
            loop {
                tries += 1;
                match client.ask(&work.id, &work.request, None).await {
                    // A client that was refused retries, as an operator would.
                    Err(error) if passes(&error) && tries <= 600 => {
                        tokio::time::sleep(Duration::from_millis(100)).await;
                    }
                    answer => return answer,
                }
            }
        });
    }
    let mut began = 0;
    while let Some(answer) = asked.join_next().await {
        let answer = answer.map_err(|error| Stop::Broken(error.to_string()))??;
        same("the attempt", answer.report.attempt, 1)?;
        began += usize::from(answer.began);
    }
    // The one answer with 201 may have been lost.
    expect_or(began <= 1, || {
        format!("{began} of {AT_ONCE} answers are 201")
    })?;
    let report = world.ended(&work.id).await?;
    same("the attempt at the end", report.attempt, 1)
}

/// Returns whether an overloaded agent may answer like this.
fn passes(error: &ClientError) -> bool {
    match error.code() {
        Some(code) => code == Code::Overloaded,
        None => error.retry_helps(),
    }
}

pub(super) async fn busy(world: &mut World<'_>) -> Check {
    let first = world.begin_endless().await?;
    let second = world.brief();
    let problem = world.refused(&second, Code::Busy).await?;
    same("`running`", problem.running, Some(first.id))
}

pub(super) async fn other_work(world: &mut World<'_>) -> Check {
    let work = world.begin_endless().await?;
    let mut others = vec![work.clone(); 5];
    others[0].request.state.clone_from(&world.states.brief);
    others[1].request.owner.uid.push_str("-other");
    others[2].request.fence.transition += 1;
    others[3].request.fence.run += 1;
    let input = &mut others[4].request.input;
    input.insert("other".to_owned(), json!(true));
    for other in others {
        world.refused(&other, Code::OtherWork).await?;
    }
    Ok(())
}

pub(super) async fn other_epoch(world: &mut World<'_>) -> Check {
    let mut work = world.begin_endless().await?;
    world.epoch += 1;
    work.request.fence.epoch = world.epoch;
    let asked = world.ask(&work).await?;
    expect(!asked.began, "it is begun again")?;
    let fence = world.client.status().await?.fence;
    same("the epoch of the status", fence.epoch, world.epoch)
}

pub(super) async fn no_such_work(world: &mut World<'_>) -> Check {
    let work = world.work("NoSuchState-conformance");
    world.refused(&work, Code::NoSuchWork).await.map(drop)
}

pub(super) async fn no_such_action(world: &mut World<'_>) -> Check {
    let work = world.brief();
    for rest in ["", "/output"] {
        let path = format!("/actions/{}{rest}", work.id);
        let refused = world.refuses(Method::GET, &path, None, Code::NoSuchAction);
        refused.await?;
    }
    let cancelled = world.refuses_cancel(&work, world.epoch, Code::NoSuchAction);
    cancelled.await
}

pub(super) async fn wrong_state(world: &mut World<'_>) -> Check {
    let mut work = world.brief();
    work.request.from = vec!["NoSuchState-conformance".to_owned()];
    world.refused(&work, Code::WrongState).await.map(drop)
}

pub(super) async fn list(world: &mut World<'_>) -> Check {
    let (first, second) = (world.done_brief().await?, world.done_brief().await?);
    let list = world.client.actions().await?;
    let place = |id| list.iter().position(|action| action.id == id);
    let (older, newer) = (place(first.id), place(second.id));
    let both = older.is_some() && newer.is_some();
    expect(both, "what is not acknowledged is not in it")?;
    expect(newer < older, "the older is first")?;
    let times: Vec<Timestamp> = list.iter().map(|action| action.started_at).collect();
    expect_or(times.is_sorted_by(|a, b| a >= b), || {
        format!("it is out of order: {times:?}")
    })
}
