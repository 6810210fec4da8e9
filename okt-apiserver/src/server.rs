//! Takes a request from its first byte to its answer, in stages:
//!
//! ```text
//! decode ── authorise ──┬─ read, watch ──────────────────────┬── answer
//!                       ├─ delete                            │
//!                       └─ write: admit ─ validate ─ commit ─┘
//! ```
//!
//! `decode` reads the path, the options and the body, `resource` chooses by verb. Faults strike before and after.

mod actions;
mod authorise;
mod decode;
mod deletion;
mod patches;
mod resource;
mod scale;

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{ACCEPT, HOST, USER_AGENT};
use http::{HeaderValue, Method, Request, Response, request};
use http_body_util::{BodyExt, LengthLimitError};
use tokio::time;
use tower::Service;

use self::authorise::authorise;
use self::decode::Call;
use self::resource::ResourceRequest;
use crate::answer::{self, ApiAnswer};
use crate::body::{Body, cut, reset};
use crate::endpoint::Endpoint;
use crate::faults::{Delay, Due, FaultKind, RequestFaults, TerminalFault};
use crate::feature_gate::FeatureGate;
use crate::path::{Query, RequestTarget};
use crate::read::{self, Form};
use crate::record::{RequestRecord, Verb};
use crate::refusal::Refusal;
use crate::{admin, discovery, options};

/// The maximum size of a request body, in bytes.
const BODY_LIMIT: usize = 3 * 1024 * 1024;

impl<B> Service<Request<B>> for Endpoint
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<tower::BoxError>,
{
    type Response = Response<Body>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        if !self.name().is_empty()
            && !request.headers().contains_key(USER_AGENT)
            && let Ok(name) = HeaderValue::from_str(self.name())
        {
            request.headers_mut().insert(USER_AGENT, name);
        }
        Box::pin(handle(self.clone(), request))
    }
}

/// Answers a request and records it.
///
/// # Errors
/// The connection breaks before an answer.
async fn handle<B>(endpoint: Endpoint, request: Request<B>) -> io::Result<Response<Body>>
where
    B: http_body::Body,
    B::Error: Into<tower::BoxError>,
{
    let (parts, body) = request.into_parts();
    let body = collect(body).await?;
    let mut query = Query::parse(parts.uri.query().unwrap_or_default());
    if let Some(answer) = administer(&endpoint, &parts, &query, &body) {
        return Ok(answer);
    }
    let shards = query.text("shardSelector").to_owned();
    if !endpoint.shared.enables(FeatureGate::ShardedListAndWatch) {
        query = query.without("shardSelector");
    }
    let call = Call {
        method: parts.method,
        path: parts.uri.path().to_owned(),
        query,
        headers: parts.headers,
        body: body.as_ref().cloned().unwrap_or_default(),
    };
    let target = resource::without_name(&endpoint.shared, &call, RequestTarget::parse(&call.path));
    let (mut record, verb) = call.record(&endpoint, &target);
    record.shard_selector = (!shards.is_empty()).then_some(shards);
    let mut faults = request_faults(&endpoint, &call, &mut record);
    let in_flight = std::mem::take(&mut faults.in_flight);
    let shared = &endpoint.shared;
    let is_recorded = shared.records();
    let number = is_recorded.then(|| shared.requests().push(record.clone()));
    let mut arrived = ArrivedRequest {
        endpoint,
        call,
        unreadable: body.err(),
        target,
        verb,
        record,
        number,
    };
    if in_flight.dues.is_empty() {
        return arrived.answer(faults).await;
    }
    // The task outlives a client that gives up.
    arrived.strike(in_flight.dues);
    let delivery = tokio::spawn(async move {
        time::sleep(in_flight.time).await;
        arrived.answer(faults).await
    });
    match delivery.await {
        Ok(answer) => answer,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        // The runtime shuts down.
        Err(_) => Err(reset()),
    }
}

/// Answers a request of a test in another language; `None` if it is none.
fn administer(
    endpoint: &Endpoint,
    head: &request::Parts,
    query: &Query,
    body: &Result<Bytes, Refusal>,
) -> Option<Response<Body>> {
    let (shared, path) = (&endpoint.shared, head.uri.path());
    if !admin::is_admin(path) {
        return None;
    }
    let answered = match body {
        Ok(body) => admin::answer(shared, &head.method, path, query, body),
        Err(refusal) => Err(refusal.clone()),
    };
    let answer = answered.unwrap_or_else(ApiAnswer::from);
    Some(answer::respond(answer, false))
}

/// A request that has reached the server, with its place in the recording.
struct ArrivedRequest {
    endpoint: Endpoint,
    call: Call,
    /// The refusal of a body that cannot be read.
    unreadable: Option<Refusal>,
    target: RequestTarget,
    /// `None` if the path does not support the method.
    verb: Option<Verb>,
    record: RequestRecord,
    /// Its number in the recording.
    number: Option<usize>,
}

impl ArrivedRequest {
    /// Carries out the request, with the faults that strike it.
    ///
    /// # Errors
    /// The connection breaks before an answer.
    async fn answer(mut self, faults: RequestFaults) -> io::Result<Response<Body>> {
        self.wait(faults.before).await;
        if let Some(terminal) = faults.early
            && let Some(instead) = self.apply_fault(terminal).await
        {
            return self.close(instead);
        }
        let answer = self.carry_out().await.unwrap_or_else(ApiAnswer::from);
        // The outcome is recorded whatever becomes of the answer.
        self.note();
        let in_yaml = Form::is_yaml(&self.call.header(ACCEPT));
        let mut response = answer::respond(answer, in_yaml);
        self.wait(faults.after).await;
        if let Some(terminal) = faults.late {
            if terminal.rule.fault == FaultKind::CutBody {
                response = response.map(|body| cut(body, terminal.rule.bytes));
            }
            if let Some(instead) = self.apply_fault(terminal).await {
                return self.close(instead);
            }
        }
        self.close(Ok(response))
    }

    async fn carry_out(&mut self) -> Result<ApiAnswer, Refusal> {
        if let Some(refusal) = self.unreadable.take() {
            return Err(refusal);
        }
        let (call, shared) = (&self.call, &self.endpoint.shared);
        if self.verb.is_some() && matches!(self.target, RequestTarget::Resource(_)) {
            authorise(shared, &self.record)?;
        }
        match &self.target {
            RequestTarget::Resource(path) if self.verb.is_none() => {
                Err(resource::misuse(&shared.lock(), call, path))
            }
            // Clients that watch over WebSockets fall back to HTTP if the answer is no switch of protocols.
            RequestTarget::Resource(_) if call.wants_web_socket() => Ok(ApiAnswer::text("")),
            RequestTarget::Resource(path) => {
                options::check(self.record.verb, &call.query)?;
                if let Some(version) = read::awaited_version(self.record.verb, &call.query)? {
                    let replica_view = &self.endpoint.replica_view;
                    replica_view.wait_for(|| shared.lock(), version).await?;
                }
                let record = &mut self.record;
                let answer = shared.with_webhooks(|calls| {
                    let request = ResourceRequest {
                        endpoint: &self.endpoint,
                        call,
                        path,
                        record,
                        calls,
                    };
                    request.answer()
                });
                answer.await
            }
            RequestTarget::Other(segments) => {
                if !matches!(call.method, Method::GET | Method::HEAD) {
                    return Err(Refusal::method_not_allowed());
                }
                let segments: Vec<_> = segments.iter().map(String::as_str).collect();
                let (accept, host) = (call.header(ACCEPT), call.header(HOST));
                discovery::answer(&shared.lock(), &segments, &accept, &host)
            }
        }
    }

    /// Returns the outcome that replaces the answer, or `None` if the answer is sent.
    async fn apply_fault(&mut self, terminal: TerminalFault) -> Option<io::Result<Response<Body>>> {
        self.strike([terminal.due]);
        match terminal.rule.fault {
            FaultKind::NoAnswer => std::future::pending().await,
            FaultKind::BreakConnection | FaultKind::Partition => Some(Err(reset())),
            // A body that is cut is part of the answer.
            _ => answer::fail(&terminal.rule, &self.record).map(Ok),
        }
    }

    async fn wait(&mut self, delay: Delay) {
        if !delay.dues.is_empty() {
            self.strike(delay.dues);
        }
        if !delay.time.is_zero() {
            time::sleep(delay.time).await;
        }
    }

    /// Applies faults; records each of them before it wakes the tests that wait for it.
    fn strike(&mut self, dues: impl IntoIterator<Item = Due>) {
        for due in dues {
            self.record.faults.push(due.fault().to_owned());
            self.note();
            due.happens();
        }
    }

    /// Updates the recording.
    fn note(&self) {
        if let Some(number) = self.number
            && let Some(kept) = self.endpoint.shared.requests().get_mut(number)
        {
            kept.catch_up(&self.record);
        }
    }

    fn close(mut self, mut response: io::Result<Response<Body>>) -> io::Result<Response<Body>> {
        if let Ok(response) = &mut response {
            self.record.status = response.status().as_u16();
            let audit_id = self.endpoint.shared.new_audit_id();
            response.headers_mut().insert("audit-id", audit_id);
        }
        let (verb, path, status) = (self.record.verb, &self.record.path, self.record.status);
        tracing::debug!(%verb, path, status, "answered");
        self.note();
        response
    }
}

fn request_faults(endpoint: &Endpoint, call: &Call, record: &mut RequestRecord) -> RequestFaults {
    let snapshot = endpoint.shared.book().snapshot();
    if record.verb == Verb::Create && (snapshot.is_some() || endpoint.shared.records()) {
        record.name = call.name_in_body();
    }
    snapshot.map_or_else(RequestFaults::default, |snapshot| {
        snapshot.of_request(record)
    })
}

/// Reads the body of a request.
///
/// # Errors
/// The body breaks off, so no client waits for an answer.
async fn collect<B>(body: B) -> io::Result<Result<Bytes, Refusal>>
where
    B: http_body::Body,
    B::Error: Into<tower::BoxError>,
{
    let body = http_body_util::Limited::new(body, BODY_LIMIT);
    match body.collect().await {
        Ok(body) => Ok(Ok(body.to_bytes())),
        Err(error) if error.is::<LengthLimitError>() => Ok(Err(Refusal::new(
            413,
            "RequestEntityTooLarge",
            format!("Request entity too large: limit is {BODY_LIMIT}"),
        ))),
        Err(error) => Err(io::Error::other(error)),
    }
}
