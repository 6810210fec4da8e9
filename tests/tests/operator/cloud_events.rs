//! Transitions as `CloudEvents` over HTTP, read by the official SDK.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use cloudevents::binding::http::to_event;
use cloudevents::event::{Data, ExtensionValue};
use cloudevents::{AttributesReader, Event};
use okt::CloudEvents;
use okt::reach::Reach;
use okt_tests::{DatabaseState::*, Rig, in_time};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// A receiver of `CloudEvents` over HTTP, one by one or in batches.
struct Receiver {
    url: String,
    events: Arc<Mutex<Vec<Event>>>,
    /// How many events were in each request that was answered with 202.
    requests: Arc<Mutex<Vec<usize>>>,
    /// The subject of events that are refused, with all that come with them.
    refused: Arc<Mutex<String>>,
    /// The status codes of the next answers; 202 when there are none.
    answers: Arc<Mutex<Vec<StatusCode>>>,
}

impl Receiver {
    async fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (events, answers) = (
            Arc::<Mutex<Vec<Event>>>::default(),
            Arc::<Mutex<Vec<StatusCode>>>::default(),
        );
        let requests = Arc::<Mutex<Vec<usize>>>::default();
        let refused = Arc::<Mutex<String>>::default();
        let (into, codes, lengths, wrong) = (
            Arc::clone(&events),
            Arc::clone(&answers),
            Arc::clone(&requests),
            Arc::clone(&refused),
        );
        let take = async move |headers: HeaderMap, body: Bytes| {
            let received = read(&headers, &body);
            let mut codes = codes.lock();
            if let Some(code) = codes.pop() {
                return code;
            }
            let wrong = wrong.lock();
            if received.iter().any(|it| it.subject() == Some(&wrong)) {
                return StatusCode::BAD_REQUEST;
            }
            lengths.lock().push(received.len());
            let mut events = into.lock();
            events.extend(received);
            StatusCode::ACCEPTED
        };
        let router = Router::new().route("/events", post(take));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self {
            url: format!("http://{address}/events"),
            events,
            requests,
            refused,
            answers,
        }
    }

    /// Waits until there are this many events, and returns them.
    async fn events(&self, number: usize) -> Vec<Event> {
        let received = || {
            let events = self.events.lock();
            events.clone()
        };
        let enough = async {
            while received().len() < number {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            received()
        };
        in_time(&format!("there are {number} events"), enough).await
    }
}

/// Reads the events of a request, in any mode.
fn read(headers: &HeaderMap, body: &Bytes) -> Vec<Event> {
    let kind = headers["content-type"].to_str().expect("a text");
    if kind.starts_with("application/cloudevents-batch+json") {
        return serde_json::from_slice(body).expect("CloudEvents");
    }
    vec![to_event(headers, body.to_vec()).expect("a CloudEvent")]
}

/// Returns an extension attribute as text.
fn extension<'a>(event: &'a Event, name: &str) -> &'a str {
    match event.extension(name) {
        Some(ExtensionValue::String(text)) => text,
        other => panic!("{name} is {other:?}"),
    }
}

/// Returns the data of an event, and checks them against their schema.
fn data(event: &Event) -> Value {
    let data: Value = match event.data().expect("data") {
        Data::Json(value) => value.clone(),
        Data::Binary(bytes) => serde_json::from_slice(bytes).expect("JSON"),
        Data::String(text) => serde_json::from_str(text).expect("JSON"),
    };
    let schema = include_str!("../../../docs/transition.v1.schema.json");
    let schema: Value = serde_json::from_str(schema).expect("a schema");
    let id = schema["$id"].as_str().expect("an id").to_owned();
    assert_eq!(event.dataschema().expect("a schema").as_str(), id);
    let schema = jsonschema::validator_for(&schema).expect("a schema");
    let errors: Vec<String> = schema.iter_errors(&data).map(|it| it.to_string()).collect();
    assert_eq!(errors, [""; 0], "{data}");
    data
}

#[tokio::test]
async fn the_official_sdk_reads_the_events_of_both_modes() {
    for is_binary in [false, true] {
        let (rig, receiver) = (Rig::without_operator().await, Receiver::open().await);
        let http = Reach::inside(rig.client.clone()).http();
        let mut events = CloudEvents::new(http, &receiver.url).expect("a URL");
        events = events.source("https://eu-1.example.com/");
        if is_binary {
            events = events.binary();
        }
        rig.start_with(|operator| operator.deliver(events));
        let db = rig.create_ready("db", Running).await;
        let uid = db.metadata.uid.as_deref().expect("a uid");
        let events = receiver.events(2).await;
        let moved = &events[1];
        assert_eq!(moved.id(), format!("{uid}/2"));
        assert_eq!(
            moved.source().as_str(),
            "https://eu-1.example.com/apis/demo.okt.dev/v1/namespaces/default/databases/db"
        );
        assert_eq!(moved.ty(), "dev.okt.lifecycle.transition.v1");
        assert_eq!(moved.subject(), Some("default/db"));
        assert_eq!(moved.datacontenttype(), Some("application/json"));
        let since = rig.position("db").await.since.expect("a time");
        let time = moved.time().expect("a time").timestamp_millis();
        assert_eq!(time, since.as_millisecond());
        assert_eq!(extension(moved, "sequence"), "00000000000000000002");
        assert_eq!(extension(moved, "partitionkey"), uid);
        assert_eq!(extension(moved, "correlationid"), format!("{uid}/1"));
        assert_eq!(extension(moved, "causationid"), format!("{uid}/1"));
        let traceparent = extension(moved, "traceparent");
        assert_eq!(traceparent.len(), 55, "{traceparent}");
        assert_eq!(
            data(moved),
            json!({
                "apiVersion": "demo.okt.dev/v1", "kind": "Database", "namespace": "default", "name": "db",
                "uid": uid, "generation": 1, "transition": 2, "from": "Start", "to": "Running",
                "cause": "DesiredState",
            })
        );
        assert!(events[0].extension("causationid").is_none());
        assert!(data(&events[0]).get("from").is_none());
        rig.stop().await;
    }
}

#[tokio::test]
async fn an_event_is_sent_again_after_503_and_not_after_400() {
    let (rig, receiver) = (Rig::without_operator().await, Receiver::open().await);
    // In reverse order.
    *receiver.answers.lock() = vec![StatusCode::BAD_REQUEST, StatusCode::SERVICE_UNAVAILABLE];
    let http = Reach::inside(rig.client.clone()).http();
    let events = CloudEvents::new(http, &receiver.url).expect("a URL");
    rig.start_with(|operator| operator.deliver(events));
    rig.create_ready("db", Running).await;
    // The first is sent twice, and then refused.
    let events = receiver.events(1).await;
    assert!(events[0].id().ends_with("/2"), "{}", events[0].id());
    rig.stop().await;
}

/// Lets databases run whose events are sent in batches to a receiver, and returns their number.
async fn run_many(rig: &Rig, receiver: &Receiver) -> usize {
    const OBJECTS: usize = 20;
    let http = Reach::inside(rig.client.clone()).http();
    let events = CloudEvents::new(http, &receiver.url).expect("a URL");
    for number in 0..OBJECTS {
        rig.create(&format!("db-{number}"), json!({})).await;
    }
    rig.start_with(|operator| operator.deliver(events.batched()));
    OBJECTS
}

/// Returns the ids of events, each once.
fn ids(events: &[Event]) -> BTreeSet<&str> {
    events.iter().map(AttributesReader::id).collect()
}

#[tokio::test]
async fn events_that_wait_for_a_request_are_sent_together_each_once_and_in_order() {
    let (rig, receiver) = (Rig::without_operator().await, Receiver::open().await);
    let objects = run_many(&rig, &receiver).await;
    let events = receiver.events(2 * objects).await;
    assert_eq!(
        (events.len(), ids(&events).len()),
        (2 * objects, 2 * objects)
    );
    let mut last = BTreeMap::new();
    for event in &events {
        data(event);
        let sequence = extension(event, "sequence").to_owned();
        let before = last.insert(extension(event, "partitionkey"), sequence.clone());
        assert!(before.is_none_or(|before| before < sequence));
    }
    let requests = receiver.requests.lock().clone();
    assert!(requests.len() < events.len(), "{requests:?}");
    rig.stop().await;
}

#[tokio::test]
async fn one_refused_event_takes_no_other_with_it_and_a_failed_batch_is_sent_again() {
    let (rig, receiver) = (Rig::without_operator().await, Receiver::open().await);
    "default/db-3".clone_into(&mut receiver.refused.lock());
    *receiver.answers.lock() = vec![StatusCode::SERVICE_UNAVAILABLE];
    let objects = run_many(&rig, &receiver).await;
    let events = receiver.events(2 * (objects - 1)).await;
    assert_eq!(ids(&events).len(), 2 * (objects - 1));
    rig.stop().await;
}

#[tokio::test]
async fn a_receiver_that_takes_no_batches_gets_all_events_one_by_one() {
    let (rig, receiver) = (Rig::without_operator().await, Receiver::open().await);
    *receiver.answers.lock() = vec![StatusCode::UNSUPPORTED_MEDIA_TYPE];
    let objects = run_many(&rig, &receiver).await;
    let events = receiver.events(2 * objects).await;
    assert_eq!(ids(&events).len(), 2 * objects);
    let requests = receiver.requests.lock().clone();
    assert!(requests.iter().all(|length| *length == 1), "{requests:?}");
    rig.stop().await;
}

#[tokio::test]
async fn a_url_that_is_none_is_refused_at_once() {
    let rig = Rig::without_operator().await;
    let http = Reach::inside(rig.client.clone()).http();
    for (url, why) in [
        (
            "broker",
            "no URL that begins with http:// or https:// and a host",
        ),
        (
            "ftp://broker/",
            "no URL that begins with http:// or https:// and a host",
        ),
        (
            "http://user:word@broker/",
            "users and passwords go into a header",
        ),
    ] {
        let error = CloudEvents::new(http.clone(), url)
            .expect_err(url)
            .to_string();
        assert!(error.ends_with(why), "{error}");
        assert!(!error.contains("word@"), "{error}");
    }
}
