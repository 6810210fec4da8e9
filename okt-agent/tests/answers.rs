//! Almost valid answers of an agent: the client takes or refuses each of them, without a panic.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderName, HeaderValue, Response};
use okt_agent::client::{Client, ClientError};
use okt_agent::wire::{Acknowledgement, ActionId, ActionReport, TEXT_LIMIT};
use okt_fuzz::{Dice, check};
use parking_lot::Mutex;
use serde_json::{Value, json};

/// Returns valid answers to vary.
fn seeds() -> [Value; 5] {
    let report = json!({
        "id": "7c5d.12", "state": "Servicing", "phase": "Failed", "attempt": 1, "reason": "DiskFull",
        "message": "no room", "permanent": true, "progress": { "percent": 40, "message": "copied" },
        "startedAt": "2026-11-21T08:59:58Z", "endedAt": "2026-11-21T09:59:58Z", "outputBytes": 120,
    });
    [
        json!({ "versions": ["v1"] }),
        json!({
            "agent": { "name": "okt-sidecar", "version": "0.1.0" }, "bootId": "b0c0", "graph": "sha256:x",
            "states": ["Servicing"],
            "application": {
                "seen": "in", "state": "Running", "events": ["Upgradable"],
                "observedAt": "2026-11-21T09:00:00Z", "ageMs": 740,
            },
            "action": report, "object": { "namespace": "shop", "name": "orders" },
            "owner": { "uid": "7c5d", "createdAt": "2026-11-20T10:00:00Z", "name": "orders", "namespace": "shop" },
            "fence": { "epoch": 4, "transition": 12, "run": 1, "recordedAt": "2026-11-21T08:59:57Z" },
        }),
        json!({ "actions": [report] }),
        report,
        json!({
            "status": 409, "code": "Busy", "detail": "7c5d.11 is under way", "mender": "time", "retry": true,
            "running": "7c5d.11",
        }),
    ]
}

fn answer(dice: &mut Dice, seeds: &[Value]) -> Response<Body> {
    let seed = dice.pick(seeds).clone();
    let body = dice.json(&seed);
    let status = *dice.pick(&[200, 201, 202, 400, 401, 404, 409, 412, 503, 500, 302, 204]);
    let mut answer = Response::new(Body::from(Bytes::from(body)));
    *answer.status_mut() = status.try_into().expect("a status");
    let names = "okt-output-from okt-output-to okt-output-total okt-output-gap location";
    for name in names.split(' ') {
        if dice.below(4) > 0
            && let Ok(value) = HeaderValue::from_bytes(&dice.bytes(b"120"))
        {
            let name = HeaderName::from_static(name);
            answer.headers_mut().insert(name, value);
        }
    }
    answer
}

fn is_short(report: &ActionReport) {
    let progress = report.progress.iter().map(|progress| &progress.message);
    let texts = report.reason.iter().chain(progress);
    for text in texts.chain([&report.message]) {
        assert!(text.len() <= TEXT_LIMIT, "{} bytes", text.len());
    }
}

#[test]
fn every_answer_is_taken_or_refused() {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let built = builder.enable_all().start_paused(true).build();
    let runtime = built.expect("a runtime");
    let seeds = seeds();
    let id: ActionId = "7c5d.12".parse().expect("an id");
    check(1500, |dice| {
        let first = Arc::new(Mutex::new(Some(answer(dice, &seeds))));
        let versions = dice.below(8) > 0;
        let client = Client::over(tower::service_fn(move |request: axum::http::Request<_>| {
            let is_first = request.uri().path() == "/lifecycle" && versions;
            let first = Arc::clone(&first);
            let known = json!({ "versions": ["v1"] }).to_string();
            async move {
                if is_first {
                    return Ok::<_, Infallible>(Response::new(Body::from(known)));
                }
                let answer = first.lock().take();
                Ok(answer.unwrap_or_default())
            }
        }));
        let taken = Acknowledgement {
            attempt: 1,
            epoch: 1,
        };
        let which = dice.below(6);
        let asked = async {
            match which {
                0 => {
                    let status = client.status().await?;
                    status.action.iter().for_each(is_short);
                    Ok(())
                }
                1 => {
                    client.actions().await?.iter().for_each(is_short);
                    Ok(())
                }
                2 => {
                    is_short(&client.report(&id, Duration::ZERO).await?);
                    Ok(())
                }
                3 => client.output(&id, 0).await.map(drop),
                4 => client.acknowledge(&id, &taken).await.map(drop),
                _ => client.is_ready().await.map(drop),
            }
        };
        if let Err(error) = runtime.block_on(asked) {
            // People read it, and the agent chooses the words.
            let text = error.to_string();
            let few = matches!(error, ClientError::NoCommonVersion { .. });
            let most = if few { 9 * TEXT_LIMIT } else { 2 * TEXT_LIMIT };
            assert!(text.len() < most, "{} bytes: {text:.200}", text.len());
        }
    });
}
