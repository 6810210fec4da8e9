//! Servers that do not keep the status they receive: work begins only for a position that the answer contains.

use std::time::Duration;

use http::{Method, Request, Response};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use okt::Operator;
use okt_testing::Fault;
use okt_tests::{DatabaseState::Running, Databases, OPERATOR, Rig};
use serde_json::{Value, json};

/// Changes the status writes and their answers on their way.
#[derive(Clone, Copy)]
struct Changed {
    /// Changes the request.
    request: fn(&mut Value),
    /// Changes the answer.
    answer: fn(&mut Value),
    /// Whether the operator receives watch events of the stored object.
    seen: bool,
}

fn unchanged(_: &mut Value) {}

async fn changed(body: Body, change: fn(&mut Value)) -> Result<Body, kube::Error> {
    let bytes = body.collect().await?.to_bytes();
    let mut object: Value = serde_json::from_slice(&bytes).expect("JSON");
    change(&mut object);
    Ok(Body::from(object.to_string().into_bytes()))
}

impl Changed {
    fn on(self, client: &Client) -> Client {
        let inner = client.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let client = inner.clone();
            async move {
                let is_status =
                    request.method() == Method::PATCH && request.uri().path().ends_with("/status");
                if !is_status {
                    return client.send(request).await;
                }
                let (head, body) = request.into_parts();
                let body = changed(body, self.request).await?;
                let response = client.send(Request::from_parts(head, body)).await?;
                let (mut head, body) = response.into_parts();
                head.headers.remove("content-length");
                let body = changed(body, self.answer).await?;
                Ok::<_, kube::Error>(Response::from_parts(head, body))
            }
        });
        Client::new(service, client.default_namespace())
    }
}

/// Asserts that no work begins within an hour, and that it begins once the server is honest; returns what the object
/// says in that hour.
async fn begins_nothing(changed: Changed) -> String {
    let rig = Rig::<Databases>::without_operator_of().await;
    rig.create("db", json!({})).await;
    let events = Fault::hold_events().resource("databases").client(OPERATOR);
    let events = (!changed.seen).then(|| rig.server.inject(events));
    let client = changed.on(&rig.server.client_named(OPERATOR));
    let operator = Operator::new(client, rig.app.clone()).virtual_time();
    let operator = tokio::spawn(operator.run(std::future::pending()));
    rig.pass(Duration::from_hours(1)).await;
    assert_eq!(rig.app.ran(), []);
    // The finalizer, and the status attempts where the operator receives the events.
    let writes = rig.wire.writes().len();
    assert!((1..=60).contains(&writes), "{writes} writes");
    let message = rig
        .condition("db", "Stalled")
        .await
        .map_or_else(String::new, |it| it.message);
    operator.abort();
    let _ = operator.await;
    if let Some(events) = events {
        events.end();
    }
    rig.start();
    rig.until_ready("db", Running).await;
    message
}

#[tokio::test(start_paused = true)]
async fn no_work_begins_for_a_position_that_a_webhook_dropped_and_the_object_says_so() {
    let message = begins_nothing(Changed {
        request: |object| {
            if let Some(status) = object["status"].as_object_mut() {
                status.remove("lifecycle");
            }
        },
        answer: unchanged,
        seen: true,
    })
    .await;
    let why = "record a status: the answer has no `lifecycle`; an admission webhook or a proxy";
    assert!(message.contains(why), "{message}");
}

#[tokio::test(start_paused = true)]
async fn no_work_begins_for_a_position_that_the_answer_lacks() {
    begins_nothing(Changed {
        request: unchanged,
        answer: |object| {
            if let Some(object) = object.as_object_mut() {
                object.remove("status");
            }
        },
        seen: false,
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn no_work_begins_for_a_position_that_the_answer_has_otherwise() {
    begins_nothing(Changed {
        request: unchanged,
        answer: |object| {
            if let Some(transition) = object.pointer_mut("/status/lifecycle/transition") {
                *transition = json!(7);
            }
        },
        seen: false,
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn no_work_begins_for_a_position_that_a_webhook_dropped_in_part() {
    begins_nothing(Changed {
        request: |object| {
            if let Some(position) = object["status"]["lifecycle"].as_object_mut() {
                position.remove("desired");
            }
        },
        answer: unchanged,
        seen: true,
    })
    .await;
}
