//! Rule 1: requirements on every request.

use std::net::IpAddr;

use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Request};
use axum::http::HeaderMap;
use axum::http::header::HOST;
use axum::http::uri::Authority;

use crate::wire::{ActionId, ActionIdError, ActionRequest, Code, Problem, TRACEPARENT};

/// Checks the length of all fields that are answered and recorded repeatedly, that is, all but the input.
pub(super) fn bounded(request: &ActionRequest) -> Result<(), Problem> {
    let graph = request.graph.as_deref().unwrap_or_default();
    let mut texts = vec![
        ("state", request.state.as_str(), 1, 128),
        ("owner.uid", &request.owner.uid, 1, 128),
        ("owner.name", &request.owner.name, 1, 253),
        ("owner.namespace", &request.owner.namespace, 0, 253),
        ("graph", graph, 0, 256),
    ];
    let states = request.from.iter();
    texts.extend(states.map(|state| ("from", state.as_str(), 1, 128)));
    for (field, text, least, most) in texts {
        if !(least..=most).contains(&text.len()) {
            let detail = format!("{field} has to be {least} to {most} bytes long");
            return Err(Problem::new(Code::BadRequest, detail));
        }
    }
    if request.from.len() > 1024 {
        return Err(Problem::new(Code::BadRequest, "from names too many states"));
    }
    Ok(())
}

/// Returns the trace that a request belongs to (W3C Trace Context, version 00); none without a valid header.
pub(super) fn traceparent(headers: &HeaderMap) -> Option<String> {
    let text = headers.get(TRACEPARENT)?.to_str().ok()?;
    let parts: Vec<_> = text.split('-').collect();
    let [version, trace, span, flags] = parts[..] else {
        return None;
    };
    let is_hex = |part: &str, length: usize| {
        let is_digit = |it: u8| it.is_ascii_digit() || (b'a'..=b'f').contains(&it);
        part.len() == length && part.bytes().all(is_digit)
    };
    let is_right = version == "00" && is_hex(trace, 32) && is_hex(span, 16) && is_hex(flags, 2);
    is_right.then(|| text.to_owned())
}

/// Returns whether the request names this machine as its host, and no other one.
pub(super) fn is_for_this_machine(request: &Request) -> bool {
    let hosts = request.headers().get_all(HOST).iter();
    let mut named = hosts.map(|host| host.to_str().unwrap_or_default());
    let (Some(host), None) = (named.next(), named.next()) else {
        return false;
    };
    let whole = request.uri().authority().map(Authority::as_str);
    is_this_machine(host) && whole.is_none_or(is_this_machine)
}

fn is_this_machine(authority: &str) -> bool {
    let Ok(authority) = authority.parse::<Authority>() else {
        return false;
    };
    let host = authority.host();
    let ip = host.trim_matches(['[', ']']).parse::<IpAddr>();
    let is_this = host.eq_ignore_ascii_case("localhost") || ip.is_ok_and(|ip| ip.is_loopback());
    is_this && !authority.as_str().contains('@')
}

/// Returns the id from a path.
pub(super) fn action_id(id: Result<Path<String>, PathRejection>) -> Result<ActionId, Problem> {
    let bad = |error: String| Problem::new(Code::BadRequest, error);
    let Path(id) = id.map_err(|error| bad(error.body_text()))?;
    id.parse()
        .map_err(|error: ActionIdError| bad(error.to_string()))
}

/// Returns the refusal of an invalid query string.
#[expect(clippy::needless_pass_by_value, reason = "it is used in map_err")]
pub(super) fn bad_query(error: QueryRejection) -> Problem {
    Problem::new(Code::BadRequest, error.body_text())
}
