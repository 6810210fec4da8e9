//! Almost valid requests and journals: each gets the documented answer, without a panic.

use std::path::Path;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::http::{HeaderName, HeaderValue, Request, Uri};
use okt_fuzz::{Dice, check};
use serde_json::{Value, json};
use tower::ServiceExt as _;

use super::super::journal;
use super::super::memory::{AgentMemory, MemoryChange};
use super::puppet::{Life, once, work};
use crate::wire::{Code, Problem, TEXT_LIMIT};

/// The limit for the answer to one request: a list of all remembered actions.
const LONGEST: usize = 4 * 1024 * 1024;

const PATHS: [&str; 10] = [
    "/lifecycle",
    "/lifecycle/v1/status",
    "/lifecycle/v1/actions",
    "/lifecycle/v1/actions/a",
    "/lifecycle/v1/actions/a?wait=0",
    "/lifecycle/v1/actions/a?epoch=1",
    "/lifecycle/v1/actions/a/acknowledgement",
    "/lifecycle/v1/actions/a/output?from=3",
    "/readyz",
    "/metrics",
];

const HEADERS: [&str; 5] = [
    "content-type",
    "content-length",
    "host",
    "authorization",
    "accept",
];

const VALUES: [&str; 6] = [
    "application/json",
    "5",
    "99999999999999999999",
    "localhost",
    "Bearer x",
    "*/*",
];

fn request(dice: &mut Dice) -> Option<Request<Body>> {
    let ask = dice.below(2) == 0;
    let seed = if ask {
        let transition = 1 + dice.below(9) as u64;
        let epoch = dice.below(3) as u64;
        work("Once", epoch, transition, &json!({ "print": "text" }))
    } else {
        json!({ "attempt": 1 + dice.below(3), "epoch": dice.below(3) })
    };
    let body = dice.json(&seed);
    let mut path = (*dice.pick(&PATHS)).to_owned();
    if ask {
        path = format!("/lifecycle/v1/actions/a{}", dice.below(20));
    }
    if dice.below(4) == 0 {
        path = String::from_utf8_lossy(&dice.bytes(path.as_bytes())).into_owned();
    }
    let method = if ask {
        &"PUT"
    } else {
        dice.pick(&["GET", "PUT", "DELETE", "POST"])
    };
    // An invalid URI never reaches the agent.
    let uri = path.parse::<Uri>().ok()?;
    let mut request = Request::builder()
        .method(*method)
        .uri(uri)
        .body(Body::from(body))
        .ok()?;
    let headers = request.headers_mut();
    for _ in 0..dice.below(3) {
        let name = dice.pick(&HEADERS);
        let value = dice.pick(&VALUES);
        if let Ok(value) = HeaderValue::from_bytes(&dice.bytes(value.as_bytes())) {
            headers.append(HeaderName::from_static(name), value);
        }
    }
    Some(request)
}

/// Returns a runtime whose time is paused.
fn runtime() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().start_paused(true).build().unwrap()
}

#[test]
fn every_request_is_answered_in_the_documented_form() {
    let runtime = runtime();
    let life = runtime.block_on(Life::new());
    check(1500, |dice| {
        let Some(request) = request(dice) else {
            return;
        };
        runtime.block_on(async {
            let answer = life.started.router().oneshot(request).await.unwrap();
            let status = answer.status().as_u16();
            let body = to_bytes(answer.into_body(), LONGEST)
                .await
                .expect("it is not longer");
            if status >= 400 {
                let problem: Problem = serde_json::from_slice(&body).expect("a problem");
                assert_eq!(problem.status, status);
                assert!(problem.code != Code::Other && !problem.detail.is_empty());
                assert!(
                    problem.detail.len() <= TEXT_LIMIT,
                    "{}",
                    problem.detail.len()
                );
            } else {
                assert!([200, 201, 202].contains(&status), "{status}");
            }
        });
    });
    runtime.block_on(async {
        assert!(life.ready().await);
        // The next agent reads the taken requests from the journal.
        let fence = life.status().await["fence"].clone();
        let life = life.crash().await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(life.ready().await);
        assert_eq!(life.status().await["fence"], fence);
    });
}

#[tokio::test(start_paused = true)]
async fn a_refusal_that_quotes_the_request_is_short() {
    let life = Life::new().await;
    let mut elsewhere = once(1, &json!({}));
    elsewhere["from"] = vec!["x".repeat(128); 1000].into();
    let long = "x".repeat(60_000);
    for answer in [
        life.put("a", elsewhere).await,
        life.put("a", json!({ "state": 1, long.clone(): 1 })).await,
        life.get(&format!("a?{long}=1")).await,
        life.call("PUT", &format!("/{long}"), Value::Null).await,
    ] {
        assert!(answer.status >= 400, "{}", answer.status);
        let detail = answer.json["detail"].as_str().expect("a text");
        assert!((1..=TEXT_LIMIT).contains(&detail.len()), "{}", detail.len());
    }
}

/// Returns the lines of an agent's journal, as JSON.
fn lines() -> Vec<Value> {
    runtime().block_on(async {
        let life = Life::new().await;
        for (id, transition) in [("a", 1), ("b", 2)] {
            let input = json!({ "remember": { "pid": 7 }, "seconds": 1 });
            life.put(id, work("Twice", 1, transition, &input)).await;
            life.end(id).await;
            life.acknowledge(id, 1, 1).await;
        }
        life.cancel("c", 2).await;
        let text = std::fs::read_to_string(life.journal()).unwrap();
        let json = text.lines().filter_map(|line| line.split_once(' '));
        json.map(|(_, json)| serde_json::from_str(json).unwrap())
            .collect()
    })
}

#[test]
fn every_journal_is_used_or_said_to_be_damaged() {
    let lines = lines();
    let file = Path::new("journal");
    check(3000, |dice| {
        let mut text = Vec::new();
        for line in &lines {
            let json = if dice.below(4) == 0 {
                dice.json(line)
            } else {
                line.to_string().into_bytes()
            };
            let sum = crc32fast::hash(&json);
            text.extend(format!("{sum:08x} ").into_bytes());
            text.extend(json);
            text.push(b'\n');
        }
        if dice.below(2) == 0 {
            text = dice.bytes(&text);
        }
        match journal::read(file, &text) {
            Ok(memory) => {
                // The next journal rebuilds the memory that was read.
                let mut again = AgentMemory::default();
                for change in memory.changes() {
                    let line = serde_json::to_string(&change).unwrap();
                    again.apply(serde_json::from_str::<MemoryChange>(&line).unwrap());
                }
                assert_eq!(again, memory);
            }
            Err(damage) => assert!(damage.to_string().starts_with("journal:"), "{damage}"),
        }
    });
}
