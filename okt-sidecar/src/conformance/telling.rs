//! Versions, paths, health, the token, and the status.

use std::time::Duration;

use http::Method;
use tokio::time::Instant;

use super::world::{Check, Stop, World, expect, same};
use crate::client::Endpoint;
use crate::wire::{Code, VERSION};

pub(super) async fn versions(world: &mut World<'_>) -> Check {
    let versions = world.client.versions().await?.versions;
    expect(versions.iter().any(|version| version == VERSION), || {
        format!("it names {versions:?}")
    })
}

pub(super) async fn unsupported_version(world: &mut World<'_>) -> Check {
    let path = "/lifecycle/v999/status".to_owned();
    let reply = world.client.raw(Method::GET, path, None, true).await?;
    world.is_refusal(&reply, Code::UnsupportedVersion).map(drop)
}

pub(super) async fn paths(world: &mut World<'_>) -> Check {
    let path = "/nothing-is-here".to_owned();
    let reply = world.client.raw(Method::GET, path, None, true).await?;
    world.is_refusal(&reply, Code::NotFound)?;
    let reply = world.send(Method::POST, "/status", None).await?;
    world.is_refusal(&reply, Code::MethodNotAllowed).map(drop)
}

pub(super) async fn health(world: &mut World<'_>) -> Check {
    for path in ["/livez", "/readyz"] {
        let reply = (world.client)
            .raw(Method::GET, path.to_owned(), None, false)
            .await?;
        same(path, reply.status.as_u16(), 200)?;
    }
    Ok(())
}

pub(super) async fn token(world: &mut World<'_>) -> Check {
    let needs_token = (world.endpoint.as_ref()).is_some_and(Endpoint::has_token);
    if !needs_token {
        return Err(Stop::Skipped("the endpoint has no token"));
    }
    let path = "/lifecycle/v1/status".to_owned();
    let reply = world.client.raw(Method::GET, path, None, false).await?;
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
        expect(states.contains(state), || {
            format!("{state} is not among {states:?}")
        })?;
    }
    Ok(())
}

pub(super) async fn status_at_once(world: &mut World<'_>) -> Check {
    let work = world.endless();
    world.begin(&work).await?;
    let asked = Instant::now();
    let status = world.client.status().await?;
    let took = asked.elapsed();
    expect(took < Duration::from_secs(1), || {
        format!("it took {took:?}")
    })?;
    let shown = status.action.map(|action| action.id);
    same("the action shown", shown, Some(work.id))
}
