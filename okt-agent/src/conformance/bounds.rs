//! Requests that are malformed, huge or unfinished.

use std::time::Duration;

use bytes::Bytes;
use http::Method;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::world::{Check, Stop, World, expect_or};
use crate::client::JSON;
use crate::wire::{BODY_LIMIT, Code};

/// The number of half-open connections, and the time within which each must be closed.
const HALF_OPEN: usize = 300;
const CLOSED: Duration = Duration::from_mins(1);

pub(super) async fn malformed(world: &mut World<'_>) -> Check {
    let work = world.brief();
    let bodies = ["", "{", "[]", "null", "{\"state\": 7}", "{} {}", "\u{0}"];
    let path = format!("/actions/{}", work.id);
    for body in bodies {
        let put = Some((Bytes::from(body), JSON));
        let refused = world.refuses(Method::PUT, &path, put, Code::BadRequest);
        refused.await.map_err(|stop| of_case(stop, body))?;
    }
    Ok(())
}

pub(super) async fn unknown_field(world: &mut World<'_>) -> Check {
    let work = world.brief();
    let path = format!("/actions/{}", work.id);
    for place in ["", "/fence", "/owner"] {
        let mut body = work.body()?;
        let fields = body.pointer_mut(place).and_then(|at| at.as_object_mut());
        fields.map(|fields| fields.insert("noSuchField".to_owned(), json!(1)));
        let refused = world.refuses_put(&path, &body, Code::BadRequest);
        let case = format!("noSuchField in `{place}/`");
        refused.await.map_err(|stop| of_case(stop, &case))?;
    }
    Ok(())
}

pub(super) async fn bad_id(world: &mut World<'_>) -> Check {
    let body = world.brief().body()?;
    for id in ["a%20b", "a%2Fb", ".hidden", "%C3%A9", &"x".repeat(129)] {
        let path = format!("/actions/{id}");
        let refused = world.refuses_put(&path, &body, Code::BadRequest);
        refused.await.map_err(|stop| of_case(stop, id))?;
    }
    Ok(())
}

pub(super) async fn too_large(world: &mut World<'_>) -> Check {
    let mut work = world.brief();
    let filler = "x".repeat(BODY_LIMIT);
    let input = &mut work.request.input;
    input.insert("filler".to_owned(), filler.into());
    world.refused(&work, Code::TooLarge).await?;
    world.client.status().await?;
    Ok(())
}

pub(super) async fn media_type(world: &mut World<'_>) -> Check {
    let work = world.brief();
    let body = Bytes::from(work.body()?.to_string());
    let path = format!("/actions/{}", work.id);
    let put = Some((body, "text/plain"));
    let refused = world.refuses(Method::PUT, &path, put, Code::UnsupportedMediaType);
    refused.await.map(drop)
}

/// Opens connections, sends half a request on each, and waits until all are closed.
pub(super) async fn slow(world: &mut World<'_>) -> Check {
    let Some(endpoint) = world.endpoint.clone() else {
        return Err(Stop::Skipped("there are no connections to be opened"));
    };
    if endpoint.is_tls() {
        return Err(Stop::Skipped("connections with TLS are not left half open"));
    }
    let mut open = JoinSet::new();
    for _ in 0..HALF_OPEN {
        // A connection that is closed at once is fine too.
        let Ok(mut connection) = endpoint.connect().await else {
            continue;
        };
        open.spawn(async move {
            let half = b"PUT /lifecycle/v1/actions/slow HTTP/1.1\r\nHost: agent\r\nContent-";
            if connection.write_all(half).await.is_err() {
                return true;
            }
            let mut answer = Vec::new();
            let mut rest = connection.take(64 * 1024);
            timeout(CLOSED, rest.read_to_end(&mut answer)).await.is_ok()
        });
    }
    let mut left_open = 0;
    while let Some(closed) = open.join_next().await {
        left_open += usize::from(!closed.unwrap_or(true));
    }
    expect_or(left_open == 0, || {
        format!("{left_open} of {HALF_OPEN} are open after {CLOSED:?}")
    })?;
    world.client.status().await?;
    Ok(())
}

fn of_case(stop: Stop, case: &str) -> Stop {
    match stop {
        Stop::Broken(why) => Stop::Broken(format!("{why}, for {case:?}")),
        Stop::Skipped(why) => Stop::Skipped(why),
    }
}
