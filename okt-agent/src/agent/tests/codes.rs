//! Each operation answers each code that `openapi.yaml` names for it.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::http::Request;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Frame;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::time::sleep;

use super::super::command::{ActorRequest, Command};
use super::openapi::{check, document, operations};
use super::puppet::{Answer, Life, answer, call, work};
use crate::wire::BODY_LIMIT;

const ACTION: &str = "/lifecycle/v1/actions/{id}";
const ACKNOWLEDGEMENT: &str = "/lifecycle/v1/actions/{id}/acknowledgement";
const OUTPUT: &str = "/lifecycle/v1/actions/{id}/output";

/// A body that never ends.
struct Endless;

impl HttpBody for Endless {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Pending
    }
}

type Change = fn(&mut Value);

/// The answers so far.
struct Given {
    document: Value,
    codes: BTreeSet<(String, String, String)>,
}

impl Given {
    /// Records an answer, which must be this refusal.
    #[track_caller]
    fn take(&mut self, method: &str, template: &str, answer: &Answer, code: &str) {
        check(&self.document, method, template, answer);
        assert_eq!(answer.code().1, code, "{method} {template}");
        let given = (template.to_owned(), method.to_owned(), code.to_owned());
        self.codes.insert(given);
    }

    /// Expects this refusal from all operations that change something.
    async fn all(&mut self, router: &Router, code: &str) {
        for (method, template, body) in [
            ("PUT", ACTION, work("Once", 9, 9, &json!({}))),
            ("DELETE", ACTION, Value::Null),
            ("PUT", ACKNOWLEDGEMENT, json!({ "attempt": 1, "epoch": 9 })),
        ] {
            let path =
                template.replace("{id}", "a") + if method == "DELETE" { "?epoch=9" } else { "" };
            let answer = call(router.clone(), method, &path, body).await;
            self.take(method, template, &answer, code);
        }
    }

    /// Sends invalid bodies.
    async fn bodies(&mut self, router: &Router) {
        for template in [ACTION, ACKNOWLEDGEMENT] {
            let json = "application/json";
            let endless = Body::new(UnsyncBoxBody::new(Endless));
            let bodies = [
                (json, Body::from("{"), "BadRequest"),
                (json, endless, "TooSlow"),
                (json, " ".repeat(BODY_LIMIT + 1).into(), "TooLarge"),
                ("text/plain", Body::from("{}"), "UnsupportedMediaType"),
            ];
            for (kind, body, code) in bodies {
                let put = Request::put(template.replace("{id}", "a"));
                let request = put.header("content-type", kind).body(body).unwrap();
                let answer = answer(router.clone(), request).await;
                self.take("PUT", template, &answer, code);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn every_operation_answers_each_code_that_the_document_names_for_it() {
    let mut given = Given {
        document: document(),
        codes: BTreeSet::new(),
    };
    let life = Life::with(|agent| agent.waits(0)).await;
    given.bodies(&life.started.router()).await;

    // Refusals by the rules while an action runs, and after it.
    let input = json!({ "seconds": 60 });
    let put = |epoch, transition, change: Change| {
        let mut request = work("Once", epoch, transition, &input);
        change(&mut request);
        life.put("b", request)
    };
    assert_eq!(life.put("a", work("Once", 2, 2, &input)).await.status, 201);
    let changes: [(u64, Change, &str); 5] = [
        (1, |_| {}, "Fenced"),
        (2, |it| it["owner"]["name"] = json!("other"), "ForeignOwner"),
        (2, |it| it["graph"] = json!("other"), "OtherGraph"),
        (2, |it| it["state"] = json!("Dancing"), "NoSuchWork"),
        (2, |_| {}, "Busy"),
    ];
    for (epoch, change, code) in changes {
        given.take("PUT", ACTION, &put(epoch, 3, change).await, code);
    }
    let other = life.put("a", work("Once", 2, 3, &input)).await;
    given.take("PUT", ACTION, &other, "OtherWork");
    for (template, path, code) in [
        (ACTION, "a?wait=x", "BadRequest"),
        (ACTION, "a?wait=1", "Overloaded"),
        (ACTION, "b", "NoSuchAction"),
        (OUTPUT, "a/output?from=x", "BadRequest"),
        (OUTPUT, "b/output", "NoSuchAction"),
    ] {
        given.take("GET", template, &life.get(path).await, code);
    }
    for (query, code) in [
        ("a?epoch=x", "BadRequest"),
        ("a?epoch=1", "Fenced"),
        ("c?epoch=2", "NoSuchAction"),
    ] {
        let path = format!("/lifecycle/v1/actions/{query}");
        let answer = life.call("DELETE", &path, Value::Null).await;
        given.take("DELETE", ACTION, &answer, code);
    }
    for (id, attempt, epoch, code) in [
        ("a", 1, 2, "NotEnded"),
        ("a", 1, 1, "Fenced"),
        ("a", 2, 2, "OtherAttempt"),
        ("b", 1, 2, "NoSuchAction"),
    ] {
        let answer = life.acknowledge(id, attempt, epoch).await;
        given.take("PUT", ACKNOWLEDGEMENT, &answer, code);
    }
    sleep(Duration::from_mins(2)).await;
    let elsewhere = put(2, 3, |it| it["from"] = json!(["Nowhere"])).await;
    given.take("PUT", ACTION, &elsewhere, "WrongState");

    // The queue for the disk is full: none of these commands is answered before the next request.
    let requests = life.started.service.requests.clone();
    let cancel = || ActorRequest::Command {
        command: Command::Cancel {
            id: "z".parse().unwrap(),
            epoch: 0,
        },
        reply: oneshot::channel().0,
    };
    for (method, template, body) in [
        ("PUT", ACTION, work("Once", 2, 3, &input)),
        ("DELETE", ACTION, Value::Null),
        ("PUT", ACKNOWLEDGEMENT, json!({ "attempt": 1, "epoch": 2 })),
    ] {
        while requests.try_send(cancel()).is_ok() {}
        let answer = life
            .call(method, &template.replace("{id}", "b"), body)
            .await;
        given.take(method, template, &answer, "Overloaded");
    }

    // An agent that has stopped, and one with a damaged journal.
    let router = life.started.router();
    let (journal, world, directory) = (life.journal(), life.world, life.directory);
    life.started.stop().await;
    given.all(&router, "Stopping").await;
    let unready = call(router.clone(), "GET", "/readyz", Value::Null).await;
    given.take("GET", "/readyz", &unready, "Stopping");
    drop(router);
    std::fs::write(journal, "damaged\n").unwrap();
    let life = Life::start(world, directory, |agent| agent).await;
    given.all(&life.started.router(), "CannotRecord").await;
    for template in [ACTION, OUTPUT, "/lifecycle/v1/actions", "/readyz"] {
        let path = template.replace("{id}", "a");
        let answer = life.call("GET", &path, Value::Null).await;
        given.take("GET", template, &answer, "CannotRecord");
    }

    let mut named = BTreeSet::new();
    for (path, method) in operations(&given.document) {
        let codes = &given.document["paths"][&path][method.to_lowercase()]["x-codes"];
        for code in codes.as_array().unwrap() {
            let code = code.as_str().unwrap().to_owned();
            named.insert((path.clone(), method.clone(), code));
        }
    }
    assert_eq!(given.codes, named);
}
