//! Requests for work: once, a thousand times, while other work runs, and for unknown work.

use std::time::Duration;

use http::Method;
use jiff::Timestamp;
use serde_json::json;
use tokio::task::JoinSet;

use super::world::{Check, Stop, World, expect, same};
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
        expect(!again.began, || "the same PUT answers 201 again".to_owned())?;
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
            // A client that was refused retries, as an operator would.
            for _ in 0..600 {
                match client.ask(&work.id, &work.request, None).await {
                    Err(error) if passes(&error) => {
                        tokio::time::sleep(Duration::from_millis(100)).await;
                    }
                    answer => return answer.map(|asked| (asked.began, asked.report.attempt)),
                }
            }
            client
                .ask(&work.id, &work.request, None)
                .await
                .map(|asked| (asked.began, asked.report.attempt))
        });
    }
    let mut began = 0;
    while let Some(answer) = asked.join_next().await {
        let answer = answer.map_err(|error| Stop::Broken(error.to_string()))?;
        let (first, attempt) = answer?;
        same("the attempt", attempt, 1)?;
        began += usize::from(first);
    }
    // The one answer with 201 may have been lost.
    expect(began <= 1, || {
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
    let (first, second) = (world.endless(), world.brief());
    world.begin(&first).await?;
    let problem = world.refused(&second, Code::Busy).await?;
    same("`running`", problem.running, Some(first.id))
}

pub(super) async fn other_work(world: &mut World<'_>) -> Check {
    let work = world.endless();
    world.begin(&work).await?;
    let mut others = vec![work.clone(); 5];
    others[0].request.state.clone_from(&world.states.brief);
    others[1].request.owner.uid.push_str("-other");
    others[2].request.fence.transition += 1;
    others[3].request.fence.run += 1;
    others[4]
        .request
        .input
        .insert("other".to_owned(), json!(true));
    for other in others {
        world.refused(&other, Code::OtherWork).await?;
    }
    Ok(())
}

pub(super) async fn other_epoch(world: &mut World<'_>) -> Check {
    let mut work = world.endless();
    world.begin(&work).await?;
    world.epoch += 1;
    work.request.fence.epoch = world.epoch;
    let asked = world.ask(&work).await?;
    expect(!asked.began, || "it is begun again".to_owned())?;
    let fence = world.client.status().await?.fence;
    same("the epoch of the status", fence.epoch, world.epoch)
}

pub(super) async fn no_such_work(world: &mut World<'_>) -> Check {
    let work = world.work("NoSuchState-conformance");
    world.refused(&work, Code::NoSuchWork).await.map(drop)
}

pub(super) async fn no_such_action(world: &mut World<'_>) -> Check {
    let id = world.brief().id;
    for (method, path) in [
        (Method::GET, format!("/actions/{id}")),
        (
            Method::DELETE,
            format!("/actions/{id}?epoch={}", world.epoch),
        ),
        (Method::GET, format!("/actions/{id}/output")),
    ] {
        let reply = world.send(method, &path, None).await?;
        world.is_refusal(&reply, Code::NoSuchAction)?;
    }
    Ok(())
}

pub(super) async fn wrong_state(world: &mut World<'_>) -> Check {
    let mut work = world.brief();
    work.request.from = vec!["NoSuchState-conformance".to_owned()];
    world.refused(&work, Code::WrongState).await.map(drop)
}

pub(super) async fn list(world: &mut World<'_>) -> Check {
    let (first, second) = (world.brief(), world.brief());
    world.done(&first, Phase::Succeeded).await?;
    world.done(&second, Phase::Succeeded).await?;
    let list = world.client.actions().await?;
    let place = |id| list.iter().position(|action| action.id == id);
    match (place(first.id), place(second.id)) {
        (Some(older), Some(newer)) => expect(newer < older, || "the older is first".to_owned())?,
        _ => {
            return Err(Stop::Broken(
                "what is not acknowledged is not in it".to_owned(),
            ));
        }
    }
    let times: Vec<Timestamp> = list.iter().map(|action| action.started_at).collect();
    expect(times.is_sorted_by(|a, b| a >= b), || {
        format!("it is out of order: {times:?}")
    })
}
