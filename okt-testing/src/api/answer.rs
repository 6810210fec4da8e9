//! Converts answers and failures to HTTP responses.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER, WARNING};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use http_body_util::{BodyExt, StreamBody};
use serde_json::{Value, json};

use crate::api::body::{Body, whole};
use crate::api::faults::FailureResponse;
use crate::api::record::{RequestRecord, Verb};
use crate::api::refusal::Refusal;
use crate::api::watch::Watch;

const JSON: &str = "application/json";

/// An answer before its conversion to an HTTP response.
pub(crate) enum ApiAnswer {
    Object(Value),
    /// A body that is already JSON.
    Json {
        code: u16,
        body: Bytes,
        warnings: Vec<String>,
    },
    Text(&'static str),
    Typed {
        content_type: &'static str,
        body: Bytes,
    },
    Watch {
        watch: Box<Watch>,
        warnings: Vec<String>,
    },
}

impl ApiAnswer {
    pub(crate) fn ok(body: Value) -> Self {
        Self::Object(body)
    }

    /// An answer to a request that is accepted but not completed.
    pub(crate) fn accepted(body: &Value) -> Self {
        Self::Json {
            code: 202,
            body: bytes_of(body),
            warnings: Vec::new(),
        }
    }

    pub(crate) fn json(body: Bytes) -> Self {
        Self::Json {
            code: 200,
            body,
            warnings: Vec::new(),
        }
    }

    /// Returns the answer with this warning before all others.
    pub(crate) fn warned(self, warning: &str) -> Self {
        let before = |mut warnings: Vec<String>| {
            warnings.insert(0, warning.to_owned());
            warnings
        };
        match self {
            Self::Object(body) => Self::json(bytes_of(&body)).warned(warning),
            Self::Json {
                code,
                body,
                warnings,
            } => Self::Json {
                code,
                body,
                warnings: before(warnings),
            },
            Self::Watch { watch, warnings } => Self::Watch {
                watch,
                warnings: before(warnings),
            },
            Self::Text(_) | Self::Typed { .. } => self,
        }
    }
}

/// Returns the response, in YAML if the client prefers it to JSON.
pub(crate) fn respond(answer: Result<ApiAnswer, Refusal>, in_yaml: bool) -> Response<Body> {
    let (code, content_type, body, warnings) = match answer {
        Ok(ApiAnswer::Object(body)) => (200, JSON, bytes_of(&body), Vec::new()),
        Ok(ApiAnswer::Json {
            code,
            body,
            warnings,
        }) => (code, JSON, body, warnings),
        Ok(ApiAnswer::Typed { content_type, body }) => (200, content_type, body, Vec::new()),
        Ok(ApiAnswer::Text(text)) => (
            200,
            "text/plain; charset=utf-8",
            Bytes::from_static(text.as_bytes()),
            Vec::new(),
        ),
        Ok(ApiAnswer::Watch { watch, warnings }) => {
            let body = StreamBody::new(watch.stream()).boxed_unsync();
            let mut response = Response::new(body);
            let json = HeaderValue::from_static(JSON);
            response.headers_mut().insert(CONTENT_TYPE, json);
            warn(response.headers_mut(), warnings);
            return response;
        }
        Err(refusal) => {
            let (content_type, body) = match refusal.plain_text() {
                Some(text) => ("text/plain; charset=utf-8", Bytes::from(text)),
                None => (JSON, bytes_of(&refusal.body())),
            };
            (refusal.code, content_type, body, refusal.warnings)
        }
    };
    let (content_type, body) = match content_type {
        JSON if in_yaml => to_yaml(body),
        content_type => (content_type, body),
    };
    let mut response = Response::new(whole(body));
    *response.status_mut() =
        http::StatusCode::from_u16(code).unwrap_or(http::StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    warn(headers, warnings);
    response
}

/// Converts a body; one that cannot be converted stays as it is.
fn to_yaml(json: Bytes) -> (&'static str, Bytes) {
    let value = serde_json::from_slice::<Value>(&json).ok();
    match value.and_then(|value| serde_saphyr::to_string(&value).ok()) {
        Some(yaml) => ("application/yaml", Bytes::from(yaml)),
        None => (JSON, json),
    }
}

fn warn(headers: &mut HeaderMap, warnings: Vec<String>) {
    for warning in warnings {
        if let Ok(value) =
            HeaderValue::from_bytes(format!("299 - {}", Value::from(warning)).as_bytes())
        {
            headers.append(WARNING, value);
        }
    }
}

fn bytes_of(body: &Value) -> Bytes {
    Bytes::from(body.to_string())
}

/// Returns the response of a fault.
pub(crate) fn fail(failure: &FailureResponse, request: &RequestRecord) -> Response<Body> {
    let mut body = failure.body(request);
    let mut code = failure.code;
    if request.verb == Verb::Watch && code == 410 {
        // A watch from an expired version starts, and ends with an error event.
        body = json!({ "type": "ERROR", "object": body });
        code = 200;
    }
    let mut text = body.to_string();
    text.push('\n');
    let mut response = Response::new(whole(Bytes::from(text)));
    *response.status_mut() =
        StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
    if let Some(seconds) = failure.retry_after_seconds {
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}
