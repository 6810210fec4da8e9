//! Transitions as `CloudEvents` over HTTP, read by the official SDK.

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

/// A receiver of `CloudEvents` over HTTP.
struct Receiver {
    url: String,
    events: Arc<Mutex<Vec<Event>>>,
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
        let (into, codes) = (Arc::clone(&events), Arc::clone(&answers));
        let take = async move |headers: HeaderMap, body: Bytes| {
            let event = to_event(&headers, body.to_vec()).expect("a CloudEvent");
            let mut codes = codes.lock();
            if let Some(code) = codes.pop() {
                return code;
            }
            let mut events = into.lock();
            events.push(event);
            StatusCode::ACCEPTED
        };
        let router = Router::new().route("/events", post(take));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self {
            url: format!("http://{address}/events"),
            events,
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
