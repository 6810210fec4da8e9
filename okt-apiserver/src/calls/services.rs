//! [`Services`]: the Services that the test itself answers for, and the way to all others.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::header::{ACCEPT, CONTENT_TYPE, HOST};
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::BodyExt;
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::timeout;
use tower::{BoxError, Service, ServiceExt};

use super::{CallFailure, CallResult, LATE, WebhookCall, network};
use crate::client_config::WebhookPlace;
use crate::kind::KindId;
use crate::object::text;
use crate::store::{Key, Store};

const JSON: &str = "application/json";

type Answered = BoxFuture<'static, Result<Response<Bytes>, BoxError>>;
type Handler = Arc<dyn Fn(Request<Body>) -> Answered + Send + Sync>;

/// The Services that are answered without a socket, by namespace and name.
#[derive(Default)]
pub(crate) struct Services {
    handlers: Mutex<BTreeMap<(String, String), Handler>>,
    calls: AtomicU64,
}

impl fmt::Debug for Services {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let handlers = self.handlers.lock();
        f.debug_list().entries(handlers.keys()).finish()
    }
}

impl Services {
    /// Sends the requests to a Service to this handler.
    pub(crate) fn set<S, B>(&self, namespace: &str, name: &str, service: S)
    where
        S: Service<Request<Body>, Response = Response<B>> + Clone + Send + Sync + 'static,
        S::Error: Into<BoxError> + Send,
        S::Future: Send,
        B: http_body::Body<Data: Send, Error: Into<BoxError>> + Send + 'static,
    {
        let handler = move |request| -> Answered {
            let service = service.clone();
            async move {
                let response = service.oneshot(request).await.map_err(Into::into)?;
                let (head, body) = response.into_parts();
                let body = body.collect().await.map_err(Into::into)?.to_bytes();
                Ok(Response::from_parts(head, body))
            }
            .boxed()
        };
        let place = (namespace.to_owned(), name.to_owned());
        self.handlers.lock().insert(place, Arc::new(handler));
    }

    /// Calls a webhook.
    pub(super) async fn call(&self, call: &WebhookCall, store: &Mutex<Store>) -> CallResult {
        let number = self.calls.fetch_add(1, Ordering::Relaxed);
        let uid = format!("{number:08x}-0000-4000-9000-{number:012x}");
        let url = format!("{}?timeout={}s", call.client.url(), call.timeout);
        let answer = match self.send(call, &url, &uid, store).await {
            Ok(answer) => answer,
            Err(why) => return Err(CallFailure::Missing(format!("Post \"{url}\": {why}"))),
        };
        if !answer.status().is_success() {
            return Err(CallFailure::Missing(refused(&answer)));
        }
        check_review(call, &uid, answer.body())
    }

    /// Sends the request.
    ///
    /// # Errors
    /// There is no answer: why, in the words of a Go client.
    async fn send(
        &self,
        call: &WebhookCall,
        url: &str,
        uid: &str,
        store: &Mutex<Store>,
    ) -> Result<Response<Bytes>, String> {
        let limit = Duration::from_secs(call.timeout);
        let request = http_request(call, url, uid)?;
        let WebhookPlace::Service {
            namespace,
            name,
            port,
            ..
        } = &call.client.place
        else {
            return network::send(request, None, &call.client.authorities, limit).await;
        };
        let place = (namespace.clone(), name.clone());
        let handler = self.handlers.lock().get(&place).cloned();
        let Some(handler) = handler else {
            let host = host_of(&store.lock(), namespace, name)?;
            let authorities = &call.client.authorities;
            return network::send(request, Some((&host, *port)), authorities, limit).await;
        };
        match timeout(limit, handler(request)).await {
            Ok(answer) => answer.map_err(|error| error.to_string()),
            Err(_) => Err(LATE.to_owned()),
        }
    }
}

fn http_request(call: &WebhookCall, url: &str, uid: &str) -> Result<Request<Body>, String> {
    let mut request: Value = serde_json::from_str(&call.request).unwrap_or_default();
    request["uid"] = uid.into();
    let (api_version, kind) = &call.review;
    let review = json!({ "apiVersion": api_version, "kind": kind, "request": request });
    let uri: http::Uri = url.parse().map_err(|error| format!("{error}"))?;
    let host = uri.authority().map(ToString::to_string);
    Request::post(uri)
        .header(HOST, host.unwrap_or_default())
        .header(ACCEPT, "application/json, */*")
        .header(CONTENT_TYPE, JSON)
        .body(Body::from(review.to_string().into_bytes()))
        .map_err(|error| error.to_string())
}

/// Returns the host of a Service as a server without a kube-proxy finds it.
fn host_of(store: &Store, namespace: &str, name: &str) -> Result<String, String> {
    let stored = store.get(&KindId::new("", "services"), &Key::new(namespace, name));
    let Some(stored) = stored else {
        return Err(format!("service \"{name}\" not found"));
    };
    let service = stored.read();
    if text(&service, &["spec", "type"]) == "ExternalName" {
        return Ok(text(&service, &["spec", "externalName"]).to_owned());
    }
    match text(&service, &["spec", "clusterIP"]) {
        "" | "None" => Err(format!("service \"{name}\" has no address")),
        address => Ok(address.to_owned()),
    }
}

/// Returns the error of a Go client for an answer without success.
fn refused(answer: &Response<Bytes>) -> String {
    let (status, body) = (answer.status(), answer.body());
    let given: Value = serde_json::from_slice(body).unwrap_or_default();
    let message = text(&given, &["message"]);
    if text(&given, &["kind"]) == "Status" && !message.is_empty() {
        return message.to_owned();
    }
    let known = match status {
        StatusCode::UNAUTHORIZED => "the server has asked for the client to provide credentials",
        StatusCode::NOT_FOUND => "the server could not find the requested resource",
        StatusCode::METHOD_NOT_ALLOWED => {
            "the server does not allow this method on the requested resource"
        }
        StatusCode::CONFLICT => "the server reported a conflict",
        StatusCode::UNPROCESSABLE_ENTITY => {
            "the server rejected our request due to an error in our request"
        }
        StatusCode::TOO_MANY_REQUESTS => {
            "the server has received too many requests and has asked us to try again later"
        }
        StatusCode::SERVICE_UNAVAILABLE => "the server is currently unable to handle the request",
        StatusCode::GATEWAY_TIMEOUT => {
            "the server was unable to return a response in the time allotted, but may still be processing the request"
        }
        StatusCode::BAD_REQUEST => "the server rejected our request for an unknown reason",
        _ if status.is_server_error() => {
            let media = answer
                .headers()
                .get(CONTENT_TYPE)
                .map(HeaderValue::as_bytes);
            let is_text = media.is_none_or(|media| media.starts_with(b"text/"));
            let body = String::from_utf8_lossy(body);
            let body = if is_text { body.trim() } else { "unknown" };
            return format!(
                "an error on the server ({body:?}) has prevented the request from succeeding"
            );
        }
        _ => {
            return format!(
                "the server responded with the status code {} but did not return more information",
                status.as_u16()
            );
        }
    };
    known.to_owned()
}

/// Returns the response of a review that belongs to a request.
fn check_review(call: &WebhookCall, uid: &str, body: &[u8]) -> CallResult {
    let answer: Value = serde_json::from_slice(body).map_err(|error| {
        CallFailure::Missing(format!(
            "couldn't get version/kind; json parse error: {error}"
        ))
    })?;
    let (api_version, kind) = &call.review;
    let is_checked = api_version.ends_with("/v1");
    let is_conversion = *kind == "ConversionReview";
    let found = (text(&answer, &["apiVersion"]), text(&answer, &["kind"]));
    let is_other = is_checked && found != (api_version, kind);
    let other = || {
        let shown = |(version, kind): (&str, &str)| {
            let version = if version.is_empty() { "/" } else { version };
            format!("{version}, Kind={kind}")
        };
        let (expected, got) = (shown((api_version, kind)), shown(found));
        CallFailure::Invalid(format!(
            "expected webhook response of {expected}, got {got}"
        ))
    };
    if is_other && is_conversion {
        return Err(other());
    }
    let Some(response) = answer.get("response").filter(|it| it.is_object()) else {
        let absent = if is_conversion {
            "no response provided"
        } else {
            "webhook response was absent"
        };
        return Err(CallFailure::Invalid(absent.to_owned()));
    };
    let given = text(response, &["uid"]);
    if is_checked && given != uid {
        let why = format!("expected response.uid={uid:?}, got {given:?}");
        return Err(CallFailure::Invalid(why));
    }
    if is_other {
        return Err(other());
    }
    Ok(response.clone())
}
