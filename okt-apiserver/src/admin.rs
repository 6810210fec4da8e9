//! The API of tests in other languages, below `/okt/v1` of a served API: it injects faults and returns the recordings.
//!
//! It is [`ApiServer`] over HTTP: each request is one call of it. No fault strikes these requests, and none is recorded.

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::answer::ApiAnswer;
use crate::api_server::ApiServer;
use crate::faults::{self, Chaos, Limits, Resource, Rule};
use crate::path::Query;
use crate::refusal::Refusal;
use crate::state::Shared;

/// The first segments of all paths.
const ROOT: [&str; 2] = ["okt", "v1"];

/// A chaos as a request asks for it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ChaosRule {
    seed: u64,
    at_most: Option<u64>,
    #[serde(default, rename = "seconds", deserialize_with = "faults::time")]
    time: Option<Duration>,
    #[serde(flatten, deserialize_with = "faults::limits")]
    limits: Limits,
}

/// The lag of watches as a request asks for it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WatchRule {
    #[serde(rename = "lagSeconds", deserialize_with = "faults::time")]
    lag: Option<Duration>,
}

/// Whether a path is one of this API.
pub(crate) fn is_admin(path: &str) -> bool {
    path.starts_with("/okt/v1/")
}

/// Answers a request; the path is one of [`is_admin`].
pub(crate) fn answer(
    shared: &Arc<Shared>,
    method: &Method,
    path: &str,
    query: &Query,
    body: &[u8],
) -> Result<ApiAnswer, Refusal> {
    let server = ApiServer::of(shared);
    let segments: Vec<_> = path
        .split('/')
        .filter(|it| !it.is_empty())
        .skip(ROOT.len())
        .collect();
    let done = || Ok(ApiAnswer::ok(json!({})));
    match (method.as_str(), segments.as_slice()) {
        ("GET", segments) => show(shared, &server, segments, query),
        ("POST", ["faults"]) => {
            let rule: Rule = parse(body)?;
            let injected = server.inject_rule(rule).map_err(Refusal::bad_request)?;
            Ok(ApiAnswer::created(injected.show()))
        }
        ("POST", ["chaos"]) => {
            let rule: ChaosRule = parse(body)?;
            Ok(ApiAnswer::created(server.misbehave(rule.chaos()).show()))
        }
        ("DELETE", ["faults"]) => {
            server.calm();
            done()
        }
        ("DELETE", ["faults", number]) => {
            let ended = number_of(number).and_then(|it| shared.book().end_one(it));
            ended.map(ApiAnswer::ok).ok_or_else(|| no_fault(number))
        }
        ("PUT", ["watches"]) => {
            let rule: WatchRule = parse(body)?;
            server.set_watch_lag(rule.lag.unwrap_or_default());
            done()
        }
        ("DELETE", ["watches"]) => {
            server.end_watches();
            done()
        }
        ("POST", ["compact"]) => {
            server.compact();
            done()
        }
        (
            _,
            [
                "faults" | "chaos" | "requests" | "versions" | "watches" | "compact",
                ..,
            ],
        ) => Err(Refusal::method_not_allowed()),
        _ => Err(Refusal::unknown_path()),
    }
}

/// Returns what a GET asks for.
fn show(
    shared: &Shared,
    server: &ApiServer,
    segments: &[&str],
    query: &Query,
) -> Result<ApiAnswer, Refusal> {
    match segments {
        ["faults"] => Ok(ApiAnswer::ok(shared.book().show_all())),
        ["faults", number] => {
            let shown = number_of(number).and_then(|it| shared.book().show(it));
            shown.map(ApiAnswer::ok).ok_or_else(|| no_fault(number))
        }
        ["requests"] => requests(shared, query).map(ApiAnswer::ok),
        ["versions"] => versions(server, query).map(ApiAnswer::ok),
        ["chaos" | "watches" | "compact"] => Err(Refusal::method_not_allowed()),
        _ => Err(Refusal::unknown_path()),
    }
}

fn no_fault(number: &str) -> Refusal {
    Refusal::new(404, "NotFound", format!("there is no fault {number}"))
}

/// Returns the number from which on a request asks for recordings.
fn since(query: &Query) -> Result<u64, Refusal> {
    let Some(text) = query.first("since") else {
        return Ok(0);
    };
    text.parse()
        .map_err(|_| Refusal::bad_request(format!("`since` is a number, not {text:?}")))
}

fn number_of(text: &str) -> Option<u64> {
    text.parse().ok()
}

fn parse<'b, T: Deserialize<'b>>(body: &'b [u8]) -> Result<T, Refusal> {
    serde_json::from_slice(body).map_err(|error| Refusal::bad_request(error.to_string()))
}

impl ChaosRule {
    fn chaos(self) -> Chaos {
        let mut chaos = Chaos::seeded(self.seed).within(self.limits);
        if let Some(strikes) = self.at_most {
            chaos = chaos.at_most(strikes);
        }
        if let Some(time) = self.time {
            chaos = chaos.lasting(time);
        }
        chaos
    }
}

/// Returns the recorded requests from the number `since` on, and the number of the next one.
fn requests(shared: &Shared, query: &Query) -> Result<Value, Refusal> {
    let since = usize::try_from(since(query)?).unwrap_or(usize::MAX);
    let recorded = shared.requests();
    let items = recorded.since(since).iter().map(|request| {
        json!({
            "client": request.client,
            "verb": request.verb.as_str(),
            "path": request.path,
            "group": request.group,
            "version": request.version,
            "resource": request.resource,
            "subresource": request.subresource,
            "namespace": request.namespace,
            "name": request.name,
            "fieldManager": request.field_manager,
            "dryRun": request.dry_run,
            "status": request.status,
            "committed": request.committed,
            "faults": request.faults,
        })
    });
    Ok(json!({ "next": recorded.next(), "items": items.collect::<Vec<_>>() }))
}

/// Returns every state of every object, or of those that the query names.
fn versions(server: &ApiServer, query: &Query) -> Result<Value, Refusal> {
    let mut versions = server.versions();
    if let Some(resource) = query.first("resource") {
        let named: Result<Resource, _> = resource.parse();
        named.map_err(Refusal::bad_request)?;
        versions = versions.resource(resource);
    }
    if let Some(namespace) = query.first("namespace") {
        versions = versions.namespace(namespace);
    }
    if let Some(name) = query.first("name") {
        versions = versions.name(name);
    }
    let since = since(query)?;
    let items = versions.iter().filter(|version| version.version > since).map(|version| {
        json!({ "type": version.kind.as_str(), "version": version.version, "object": version.object() })
    });
    Ok(json!({ "items": items.collect::<Vec<_>>() }))
}
