//! This file takes a request to the part that answers it.
//!
//! In-process clients and HTTP connections both end here, on one store behind one lock.

mod call;
mod resource;

use std::{
    convert::Infallible,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use http::{
    HeaderValue, Method, Request, Response,
    header::{ACCEPT, CONTENT_TYPE, WARNING},
};
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use serde_json::Value;

use self::call::Call;
use crate::{
    discovery,
    path::{Query, Target},
    record::{RequestRecord, Verb},
    refusal::Refusal,
    store::Store,
    watch::Watch,
};

pub(crate) type Body = UnsyncBoxBody<Bytes, Infallible>;

/// A body of more bytes is not read.
const BODY_LIMIT: usize = 3 * 1024 * 1024;

/// What all clients share.
pub(crate) struct Shared {
    store: Mutex<Store>,
    requests: Mutex<Vec<RequestRecord>>,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

impl Shared {
    pub(crate) fn new() -> Self {
        Self {
            store: Mutex::new(Store::new()),
            requests: Mutex::new(Vec::new()),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Store> {
        // A change is complete before the lock is released, so a panic elsewhere spoils nothing.
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn requests(&self) -> MutexGuard<'_, Vec<RequestRecord>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An answer before it is put into HTTP.
pub(crate) enum Answer {
    Object(Value),
    /// A body that is JSON already.
    Json {
        code: u16,
        body: Bytes,
        warnings: Vec<String>,
    },
    Text(&'static str),
    Typed {
        content_type: &'static str,
        body: Value,
    },
    Watch(Box<Watch>),
}

impl Answer {
    pub(crate) fn ok(body: Value) -> Self {
        Self::Object(body)
    }

    pub(crate) fn json(body: Bytes) -> Self {
        Self::Json {
            code: 200,
            body,
            warnings: Vec::new(),
        }
    }
}

/// Answers a request and records it.
pub(crate) async fn handle<B>(shared: &Arc<Shared>, request: Request<B>) -> Response<Body>
where
    B: http_body::Body,
    B::Error: Into<tower::BoxError>,
{
    let (parts, body) = request.into_parts();
    let mut record = RequestRecord {
        verb: Verb::Get,
        path: parts.uri.path().to_owned(),
        group: String::new(),
        version: String::new(),
        resource: String::new(),
        subresource: None,
        namespace: None,
        name: None,
        field_manager: None,
        dry_run: false,
        status: 0,
    };
    let answer = match collect(body).await {
        Ok(body) => {
            let call = Call {
                method: parts.method,
                path: parts.uri.path().to_owned(),
                query: Query::parse(parts.uri.query().unwrap_or_default()),
                headers: parts.headers,
                body,
            };
            answer(shared, &call, &mut record)
        }
        Err(refusal) => Err(refusal),
    };
    let response = respond(answer);
    record.status = response.status().as_u16();
    tracing::debug!(verb = %record.verb, path = record.path, status = record.status, "answered");
    shared.requests().push(record);
    response
}

async fn collect<B>(body: B) -> Result<Bytes, Refusal>
where
    B: http_body::Body,
    B::Error: Into<tower::BoxError>,
{
    let body = http_body_util::Limited::new(body, BODY_LIMIT);
    match body.collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(_) => Err(Refusal::new(
            413,
            "RequestEntityTooLarge",
            format!("Request entity too large: limit is {BODY_LIMIT}"),
        )),
    }
}

fn respond(answer: Result<Answer, Refusal>) -> Response<Body> {
    let (code, content_type, body, warnings) = match answer {
        Ok(Answer::Object(body)) => (200, "application/json", bytes_of(&body), Vec::new()),
        Ok(Answer::Json {
            code,
            body,
            warnings,
        }) => (code, "application/json", body, warnings),
        Ok(Answer::Typed { content_type, body }) => {
            (200, content_type, bytes_of(&body), Vec::new())
        }
        Ok(Answer::Text(text)) => (
            200,
            "text/plain; charset=utf-8",
            Bytes::from_static(text.as_bytes()),
            Vec::new(),
        ),
        Ok(Answer::Watch(watch)) => {
            let body = StreamBody::new(watch.stream()).boxed_unsync();
            let mut response = Response::new(body);
            let json = HeaderValue::from_static("application/json");
            response.headers_mut().insert(CONTENT_TYPE, json);
            return response;
        }
        Err(refusal) => (
            refusal.code,
            "application/json",
            bytes_of(&refusal.body()),
            Vec::new(),
        ),
    };
    let mut response = Response::new(Full::new(body).boxed_unsync());
    *response.status_mut() =
        http::StatusCode::from_u16(code).unwrap_or(http::StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    for warning in warnings {
        if let Ok(value) = HeaderValue::from_str(&format!("299 - {}", Value::from(warning))) {
            headers.append(WARNING, value);
        }
    }
    response
}

fn bytes_of(body: &Value) -> Bytes {
    Bytes::from(body.to_string())
}

fn answer(
    shared: &Arc<Shared>,
    call: &Call,
    record: &mut RequestRecord,
) -> Result<Answer, Refusal> {
    match Target::parse(&call.path) {
        Target::Resource(path) => resource::answer(shared, call, path, record),
        Target::Other(segments) => {
            if !matches!(call.method, Method::GET | Method::HEAD) {
                return Err(Refusal::method_not_allowed());
            }
            let segments: Vec<_> = segments.iter().map(String::as_str).collect();
            discovery::answer(&shared.lock(), &segments, &call.header(ACCEPT))
        }
    }
}
