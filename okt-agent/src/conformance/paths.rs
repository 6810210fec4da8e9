//! Versions, paths, health, the token, and the status.

use std::time::Duration;

use http::Method;
use tokio::time::Instant;

use super::world::{Check, Stop, World, expect_or, same};
use crate::client::Endpoint;
use crate::wire::{Code, VERSION};

/// How often the status is asked for until an answer comes at once.
const TRIES: usize = 5;

pub(super) async fn versions(world: &mut World<'_>) -> Check {
    let versions = world.client.versions().await?.versions;
    expect_or(versions.iter().any(|version| version == VERSION), || {
        format!("it names {versions:?}")
    })
}

pub(super) async fn unsupported_version(world: &mut World<'_>) -> Check {
    let path = "/lifecycle/v999/status";
    let reply = world.client.raw(Method::GET, path, None).await?;
    world.is_refusal(&reply, Code::UnsupportedVersion).map(drop)
}

pub(super) async fn paths(world: &mut World<'_>) -> Check {
    let reply = world.client.raw(Method::GET, "/nothing-is-here", None);
    world.is_refusal(&reply.await?, Code::NotFound)?;
    let code = Code::MethodNotAllowed;
    let refused = world.refuses(Method::POST, "/status", None, code);
    refused.await.map(drop)
}

pub(super) async fn health(world: &mut World<'_>) -> Check {
    for path in ["/livez", "/readyz"] {
        let reply = world.client.get_without_token(path).await?;
        same(path, reply.status.as_u16(), 200)?;
    }
    Ok(())
}

pub(super) async fn token(world: &mut World<'_>) -> Check {
    if !world.endpoint.as_ref().is_some_and(Endpoint::has_token) {
        return Err(Stop::Skipped("the endpoint has no token"));
    }
    let path = "/lifecycle/v1/status";
    let reply = world.client.get_without_token(path).await?;
    world.is_refusal(&reply, Code::Unauthorized).map(drop)
}

pub(super) async fn status(world: &mut World<'_>) -> Check {
    let first = world.client.status().await?;
    let second = world.client.status().await?;
    same("the second bootId", &second.boot_id, &first.boot_id)?;
    let mut states = first.states.clone();
    states.sort();
    same("the list of states", &first.states, &states)?;
    let used = &world.states;
    for state in [&used.brief, &used.failing, &used.endless] {
        expect_or(states.contains(state), || {
            format!("{state} is not among {states:?}")
        })?;
    }
    Ok(())
}

pub(super) async fn status_at_once(world: &mut World<'_>) -> Check {
    let work = world.begin_endless().await?;
    // A busy machine delays some answers, an agent that waits for its work each of them.
    let mut best = Duration::MAX;
    let mut shown = None;
    for _ in 0..TRIES {
        let asked = Instant::now();
        let status = world.client.status().await?;
        best = best.min(asked.elapsed());
        shown = status.action.map(|action| action.id);
        if best < Duration::from_secs(1) {
            break;
        }
    }
    expect_or(best < Duration::from_secs(1), || {
        format!("it took {best:?} at best")
    })?;
    same("the action shown", shown, Some(work.id))
}
