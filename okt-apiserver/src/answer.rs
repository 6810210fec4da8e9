//! Converts answers and failures to HTTP responses.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER, WARNING};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use http_body_util::{BodyExt, StreamBody};
use serde_json::{Value, json};

use crate::body::{Body, whole};
use crate::faults::Rule;
use crate::record::{RequestRecord, Verb};
use crate::refusal::Refusal;
use crate::types;
use crate::watch::Watch;

const JSON: &str = "application/json";

/// Says what a real server serves here, and this one does not.
const NOT_SERVED: HeaderName = HeaderName::from_static("okt-not-served");

const TEXT: &str = "text/plain; charset=utf-8";

/// An answer before its conversion to an HTTP response.
pub(crate) struct ApiAnswer {
    pub(crate) code: u16,
    content_type: &'static str,
    body: AnswerBody,
    pub(crate) warnings: Vec<String>,
    /// What a real server serves here, and this one does not.
    not_served: Option<String>,
}

enum AnswerBody {
    /// It is written when the response is: the store is locked while answers are made.
    Json(Value),
    Whole(Bytes),
    Watch(Box<Watch>),
}

impl ApiAnswer {
    fn new(content_type: &'static str, body: AnswerBody) -> Self {
        Self {
            code: 200,
            content_type,
            body,
            warnings: Vec::new(),
            not_served: None,
        }
    }

    pub(crate) fn ok(body: Value) -> Self {
        Self::new(JSON, AnswerBody::Json(body))
    }

    pub(crate) fn created(body: Value) -> Self {
        Self {
            code: 201,
            ..Self::ok(body)
        }
    }

    pub(crate) fn json(body: Bytes) -> Self {
        Self::of_type(JSON, body)
    }

    pub(crate) fn text(text: &'static str) -> Self {
        Self::of_type(TEXT, Bytes::from_static(text.as_bytes()))
    }

    pub(crate) fn of_type(content_type: &'static str, body: Bytes) -> Self {
        Self::new(content_type, AnswerBody::Whole(body))
    }

    pub(crate) fn watch(watch: Watch) -> Self {
        Self::new(JSON, AnswerBody::Watch(Box::new(watch)))
    }
}

impl From<Refusal> for ApiAnswer {
    fn from(refusal: Refusal) -> Self {
        let answer = match refusal.plain_text() {
            Some(text) => Self::of_type(TEXT, Bytes::from(text)),
            None => Self::ok(refusal.body()),
        };
        Self {
            code: refusal.code,
            not_served: refusal.missing().map(str::to_owned),
            warnings: refusal.warnings,
            ..answer
        }
    }
}

pub(crate) fn respond(answer: ApiAnswer, in_yaml: bool) -> Response<Body> {
    let (content_type, body) = match answer.body {
        AnswerBody::Watch(watch) => {
            let stream = StreamBody::new(watch.stream());
            (answer.content_type, stream.boxed_unsync())
        }
        AnswerBody::Json(value) => written(JSON, types::to_text(&value).into(), in_yaml),
        AnswerBody::Whole(bytes) => written(answer.content_type, bytes, in_yaml),
    };
    let mut response = response(answer.code, content_type, body);
    for warning in answer.warnings {
        let warning = format!("299 - {}", Value::from(warning));
        if let Ok(value) = HeaderValue::from_bytes(warning.as_bytes()) {
            response.headers_mut().append(WARNING, value);
        }
    }
    if let Some(what) = answer.not_served {
        tracing::warn!(
            what,
            "a real server serves this, and okt-apiserver does not"
        );
        if let Ok(value) = HeaderValue::from_str(&what) {
            response.headers_mut().insert(NOT_SERVED, value);
        }
    }
    response
}

fn response(code: u16, content_type: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() =
        StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let content_type = HeaderValue::from_static(content_type);
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

/// Returns the content type and the body; JSON in YAML, if the client prefers that.
fn written(content_type: &'static str, bytes: Bytes, in_yaml: bool) -> (&'static str, Body) {
    let (content_type, bytes) = match content_type {
        JSON if in_yaml => to_yaml(bytes),
        JSON => (JSON, [&*bytes, b"\n"].concat().into()),
        content_type => (content_type, bytes),
    };
    (content_type, whole(bytes))
}

fn to_yaml(json: Bytes) -> (&'static str, Bytes) {
    let value = serde_json::from_slice::<Value>(&json).ok();
    match value.and_then(|value| serde_saphyr::to_string(&value).ok()) {
        Some(yaml) => ("application/yaml", Bytes::from(yaml)),
        None => (JSON, json),
    }
}

/// Returns the response of a fault, if it is one.
pub(crate) fn fail(rule: &Rule, request: &RequestRecord) -> Option<Response<Body>> {
    let refusal = rule.refusal(request)?;
    let (mut code, mut body) = (refusal.code, refusal.body());
    if request.verb == Verb::Watch && code == 410 {
        // A watch from an expired version starts, and ends with an error event.
        body = json!({ "type": "ERROR", "object": body });
        code = 200;
    }
    let mut text = body.to_string();
    text.push('\n');
    let mut response = response(code, JSON, whole(Bytes::from(text)));
    if let Some(seconds) = rule.retry_after() {
        let seconds = HeaderValue::from(seconds);
        response.headers_mut().insert(RETRY_AFTER, seconds);
    }
    Some(response)
}
