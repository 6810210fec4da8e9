//! Transitions as `CloudEvents` 1.0 over HTTP.
//!
//! The specifications are <https://github.com/cloudevents/spec> (core, JSON format and HTTP binding, 1.0.2). The official
//! SDK checks them in a test; it is no dependency of operators, because it does not encode the values of headers, and
//! brings a second library of times and one of errors.

mod batches;

use std::fmt;
use std::sync::Arc;

use futures::FutureExt;
use http::StatusCode;
use okt_reach::reach::{Http, HttpError, parsed};
use okt_wire::texts::qualified;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde_json::{Map, Value, json};

use self::batches::{BatchAnswer, Batches};
use crate::delivery::{Delivery, TransitionEvent, Undelivered};

/// The type of the events; a change that receivers must know is another one.
const TYPE: &str = "dev.okt.lifecycle.transition.v1";

/// The schema of the data (`docs/transition.v1.schema.json`).
const SCHEMA: &str = "https://okt.dev/schemas/transition.v1.schema.json";

/// The largest answer that is read, in bytes; nothing in it matters.
const ANSWER_LIMIT: usize = 64 * 1024;

/// The characters that a header has in percent-encoding (HTTP binding, 3.1.3.2).
const ENCODED: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'%');

/// Sends each transition of the objects to a URL as a `CloudEvent` 1.0, for
/// [`Operator::deliver`](https://docs.rs/okt/latest/okt/struct.Operator.html#method.deliver).
///
/// `run --cloudevents-sink URL` does the same.
///
/// ```no_run
/// # fn example<A: okt::Application>(client: kube::Client, operator: okt::Operator<A>) -> Result<(), Box<dyn std::error::Error>> {
/// use okt::CloudEvents;
/// use okt::reach::Reach;
///
/// let http = Reach::new(client).http();
/// let events = CloudEvents::new(http, "http://broker.events.svc/default")?;
/// let operator = operator.deliver(events.source("https://kubernetes.example.com/eu-1"));
/// # Ok(())
/// # }
/// ```
///
/// The receiver answers 2xx when it has the event. After 400, 413, 415 and 422 the operator logs that the event is
/// refused, and goes on; after any other answer it retries.
/// `docs/monitoring.md` describes the events.
#[derive(Clone, Debug)]
pub struct CloudEvents {
    http: Http,
    url: String,
    source: String,
    mode: ContentMode,
}

/// How events are written into requests (HTTP binding, 3).
#[derive(Clone)]
enum ContentMode {
    Structured,
    Binary,
    Batched(Arc<Batches>),
}

impl fmt::Debug for ContentMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Structured => "Structured",
            Self::Binary => "Binary",
            Self::Batched(_) => "Batched",
        })
    }
}

/// A URL that no event can be sent to.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("cannot send CloudEvents to this URL: {0}")]
pub struct CloudEventsError(String);

impl CloudEvents {
    /// Creates a delivery to this URL, in the structured content mode: one JSON object for each event.
    ///
    /// # Errors
    ///
    /// If `url` is no URL of a host with http or https; only another one helps.
    pub fn new(http: Http, url: impl Into<String>) -> Result<Self, CloudEventsError> {
        let url = url.into();
        match parsed(&url) {
            Ok(_) => Ok(Self {
                http,
                url,
                source: String::new(),
                mode: ContentMode::Structured,
            }),
            Err(why) => Err(CloudEventsError(why)),
        }
    }

    /// Uses the binary content mode: the attributes are headers, and the body is the data.
    #[must_use]
    pub fn binary(mut self) -> Self {
        self.mode = ContentMode::Binary;
        self
    }

    /// Uses the batched content mode: while a request is under way, the events of other objects wait for the next one, which
    /// has up to 100 of them as a JSON array. An event waits for no other one to come.
    ///
    /// If the receiver answers 415 (`Unsupported Media Type`), events are sent one by one from then on, in the structured
    /// mode. If it refuses some events in one request, each of them is sent alone, so that only the wrong ones are lost.
    #[must_use]
    pub fn batched(mut self) -> Self {
        self.mode = ContentMode::Batched(Arc::default());
        self
    }

    /// Puts the URL of the cluster before the path of the object in the attribute `source`, to tell clusters apart.
    #[must_use]
    pub fn source(mut self, cluster: impl Into<String>) -> Self {
        let mut source: String = cluster.into();
        source.truncate(source.trim_end_matches('/').len());
        self.source = source;
        self
    }
}

impl Delivery for CloudEvents {
    async fn deliver(&self, event: &TransitionEvent) -> Result<(), Undelivered> {
        match &self.mode {
            ContentMode::Binary => self.send_binary(event).await,
            ContentMode::Batched(batches) if !batches.are_unsupported() => {
                let text = structured(event, &self.source).to_string();
                let send = |events| self.send_batch(events).boxed();
                match batches.deliver(text, send).await {
                    Some(delivered) => delivered,
                    None => self.send_structured(event).await,
                }
            }
            ContentMode::Structured | ContentMode::Batched(_) => self.send_structured(event).await,
        }
    }
}

impl CloudEvents {
    async fn send_binary(&self, event: &TransitionEvent) -> Result<(), Undelivered> {
        let mut request = self.http.post(&self.url).limit(ANSWER_LIMIT);
        for (name, value) in attributes(event, &self.source) {
            let value = value.as_str().unwrap_or_default();
            let value = utf8_percent_encode(value, ENCODED).to_string();
            request = request.header(&format!("ce-{name}"), &value);
        }
        let request = request.body("application/json", data(event).to_string());
        request
            .send()
            .await
            .map(drop)
            .or_else(|error| taken(&error))
    }

    async fn send_structured(&self, event: &TransitionEvent) -> Result<(), Undelivered> {
        let text = structured(event, &self.source).to_string();
        let sent = self.send("application/cloudevents+json; charset=UTF-8", text);
        sent.await.or_else(|error| taken(&error))
    }

    /// Sends a JSON array of events.
    async fn send_batch(&self, events: String) -> BatchAnswer {
        let kind = "application/cloudevents-batch+json; charset=UTF-8";
        let Err(error) = self.send(kind, events).await else {
            return BatchAnswer::Taken;
        };
        if error.status() == Some(StatusCode::UNSUPPORTED_MEDIA_TYPE) {
            let url = &self.url;
            tracing::warn!(%url, "the receiver of CloudEvents takes no batches; they are sent one by one");
            return BatchAnswer::Unsupported;
        }
        match taken(&error) {
            Ok(()) => BatchAnswer::Taken,
            Err(undelivered) if undelivered.is_refused => BatchAnswer::Refused(error.to_string()),
            Err(_) => BatchAnswer::Retry(error.to_string()),
        }
    }

    async fn send(&self, kind: &str, text: String) -> Result<(), HttpError> {
        let request = self.http.post(&self.url).limit(ANSWER_LIMIT);
        request.body(kind, text).send().await.map(drop)
    }
}

/// Returns an event in the JSON format.
fn structured(event: &TransitionEvent, cluster: &str) -> Value {
    let mut all = attributes(event, cluster);
    all.insert("datacontenttype".to_owned(), json!("application/json"));
    all.insert("data".to_owned(), data(event));
    Value::Object(all)
}

/// Returns whether the receiver has the event although its answer is an error.
fn taken(error: &HttpError) -> Result<(), Undelivered> {
    match error.status() {
        Some(status) if status.is_success() => Ok(()),
        Some(
            StatusCode::BAD_REQUEST
            | StatusCode::PAYLOAD_TOO_LARGE
            | StatusCode::UNSUPPORTED_MEDIA_TYPE
            | StatusCode::UNPROCESSABLE_ENTITY,
        ) => Err(Undelivered::refused(error.to_string())),
        Some(_) | None => Err(Undelivered::retry(error.to_string())),
    }
}

/// Returns the attributes of an event, all of them texts. `cluster` comes before the path of the object.
fn attributes(event: &TransitionEvent, cluster: &str) -> Map<String, Value> {
    let generation = event.transition.generation;
    let all = [
        ("specversion", Some("1.0".to_owned())),
        ("id", Some(event.id())),
        ("source", Some(format!("{cluster}{}", path(event)))),
        ("type", Some(TYPE.to_owned())),
        ("subject", Some(subject(event))),
        ("time", event.time().map(|time| time.to_string())),
        ("dataschema", Some(SCHEMA.to_owned())),
        // A text in which later transitions come later.
        ("sequence", Some(format!("{:020}", event.number()))),
        ("partitionkey", Some(event.uid().to_owned())),
        (
            "correlationid",
            generation.map(|generation| format!("{}/{generation}", event.uid())),
        ),
        ("causationid", event.cause_id()),
        ("traceparent", event.traceparent()),
    ];
    all.into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), Value::String(value?))))
        .collect()
}

/// Returns the path of the object at the API server.
fn path(event: &TransitionEvent) -> String {
    let object = &event.object;
    let version = object.api_version.as_deref().unwrap_or_default();
    let root = if version.contains('/') { "apis" } else { "api" };
    let namespace = object.namespace.as_deref();
    let segment = namespace.map_or(String::new(), |it| format!("/namespaces/{it}"));
    let name = object.name.as_deref().unwrap_or_default();
    format!("/{root}/{version}{segment}/{}/{name}", event.plural)
}

fn subject(event: &TransitionEvent) -> String {
    let name = event.object.name.as_deref().unwrap_or_default();
    qualified(event.object.namespace.as_deref(), name)
}

/// Returns the data of an event, according to its schema.
fn data(event: &TransitionEvent) -> Value {
    let (object, transition) = (&event.object, &event.transition);
    let mut data = json!({
        "apiVersion": object.api_version,
        "kind": object.kind,
        "name": object.name,
        "uid": object.uid,
        "transition": transition.transition,
        "to": transition.to,
        "cause": transition.cause,
    });
    if !transition.changed.is_empty() {
        data["changed"] = json!(transition.changed);
    }
    if let Some(namespace) = &object.namespace {
        data["namespace"] = json!(namespace);
    }
    if !transition.from.is_empty() {
        data["from"] = json!(transition.from);
    }
    if let Some(generation) = transition.generation {
        data["generation"] = json!(generation);
    }
    data
}
