//! The time limits for answers of the API server, and the wait for the server at the start.
//!
//! kube waits without a limit until an answer begins, and for the rest of one that is no watch: whatever waits for an
//! answer that is lost on the way would wait for ever.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http::header::{CONTENT_LENGTH, RETRY_AFTER};
use http::{HeaderValue, Request, Response, StatusCode, Uri};
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use okt_core::backoff::Backoff;
use parking_lot::Mutex;
use serde_json::{Map, Value};
use tokio::time::{Instant, Sleep, sleep_until, timeout};
use tower::BoxError;

use crate::clock::after;
use crate::texts::{chain, seconds};

/// The longest wait for an answer to begin; the API server itself gives up a request after a minute.
const BEGIN: Duration = Duration::from_mins(1);

/// The longest wait that a server may ask for.
const LONGEST_RETRY_AFTER: Duration = Duration::from_mins(10);

/// How long answers may take. Those that last by their nature are not limited once they have begun: logs, commands,
/// forwarded ports, proxied requests.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Until an answer begins.
    pub begin: Duration,
    /// From its beginning to its end, if it is no watch.
    pub rest: Duration,
    /// Between two messages of a watch. The API server sends bookmarks about once a minute
    /// (`defaultBookmarkFrequency` in `cacher.go`), but promises no interval: a watch that was only quiet begins anew
    /// where it was, which costs one request.
    pub silence: Duration,
}

impl Limits {
    /// The limits of all requests but those for leases.
    pub(crate) const USUAL: Self = Self {
        begin: BEGIN,
        rest: Duration::from_mins(2),
        silence: Duration::from_mins(2),
    };
}

/// An answer that did not come in time. The request may have been carried out.
#[derive(Clone, Copy, Debug, thiserror::Error)]
enum NoAnswer {
    #[error("no answer within {}", seconds(*.0))]
    Begin(Duration),
    #[error("the answer did not end within {}", seconds(*.0))]
    Rest(Duration),
    #[error("the watch was silent for {}", seconds(*.0))]
    Silence(Duration),
}

/// The backoff between attempts to reach an unavailable API server. If the process ended instead, its pod would wait up
/// to five minutes for its restart.
const UNTIL_CONTACT: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(20));

/// Waits until the API server answers, because it may be starting too.
///
/// # Errors
///
/// If a retry does not help: the server refuses this client, or is no API server.
pub async fn contact(client: &Client) -> Result<(), kube::Error> {
    let mut attempts = 0_u32;
    loop {
        let error = match answer(client.apiserver_version()).await {
            Ok(_) => return Ok(()),
            // The server answers. The request that needs a permission reports that it is missing; a starting server
            // grants permissions late.
            Err(kube::Error::Api(status)) if status.code == 403 => return Ok(()),
            Err(error) if may_pass(&error) => error,
            Err(error) => return Err(error),
        };
        attempts = attempts.saturating_add(1);
        let wait = UNTIL_CONTACT.wait(attempts, std::process::id().into());
        tracing::warn!(?wait, "cannot reach the Kubernetes API: {}", chain(&error));
        tokio::time::sleep(wait).await;
    }
}

/// Returns whether a failed request may succeed later although nothing is changed.
fn may_pass(error: &kube::Error) -> bool {
    match error {
        kube::Error::Api(status) => matches!(status.code, 408 | 429 | 500..),
        // No connection, a broken one, or no answer.
        kube::Error::Service(_) | kube::Error::HyperError(_) => true,
        _ => false,
    }
}

/// Waits for an answer for at most a minute: for the few requests of each transition, which a `limited` client would
/// make dearer.
///
/// # Errors
///
/// Those of the request, and [`kube::Error::Service`] if no answer came. The request may have been carried out then;
/// the next version of the object shows it.
pub async fn answer<T>(
    request: impl Future<Output = Result<T, kube::Error>>,
) -> Result<T, kube::Error> {
    match timeout(BEGIN, request).await {
        Ok(answer) => answer,
        Err(_) => Err(kube::Error::Service(NoAnswer::Begin(BEGIN).into())),
    }
}

/// When an API server was last heard of.
#[derive(Debug)]
pub struct Contact {
    last: Mutex<Instant>,
    /// Whether a refusal of what is read (403, 404) counts: where it is reported elsewhere.
    refusals_count: bool,
}

impl Contact {
    /// Notes that the server has just been heard of.
    pub fn new(refusals_count: bool) -> Self {
        Self {
            last: Mutex::new(Instant::now()),
            refusals_count,
        }
    }

    fn note(&self) {
        *self.last.lock() = Instant::now();
    }

    /// Returns whether an answer counts: that of a server that fails (5xx, 429) or does not know the client (401) does
    /// not.
    fn counts(&self, status: StatusCode) -> bool {
        let is_refusal = status == StatusCode::FORBIDDEN || status == StatusCode::NOT_FOUND;
        status.is_success() || (is_refusal && self.refusals_count)
    }

    /// Returns for how long nothing was heard.
    pub(crate) fn silence(&self) -> Duration {
        let last = self.last.lock();
        last.elapsed()
    }
}

/// Returns a client each of whose answers comes in time, or is an error: it begins within a minute, and ends two minutes
/// later; a watch is silent for two minutes at most.
///
/// kube waits for ever. [`Operator`](https://docs.rs/okt/latest/okt/struct.Operator.html) and [`Membership`](https://docs.rs/okt/latest/okt/struct.Membership.html) limit their requests
/// themselves, and those of [`Context::client`](https://docs.rs/okt/latest/okt/struct.Context.html#method.client): this is for a client of your own.
/// Logs, commands, forwarded ports and proxied requests may last once they have begun.
/// A `Retry-After` header is also in the details of the error, where [`kube::core::Status`] has it.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let client = okt::limit_answers(kube::Client::try_default().await?);
/// # Ok(())
/// # }
/// ```
#[must_use]
pub fn limit_answers(client: Client) -> Client {
    limited(client, Limits::USUAL, None)
}

/// Returns a client each of whose answers comes within these limits; `contact` notes them.
pub(crate) fn limited(client: Client, limits: Limits, contact: Option<Arc<Contact>>) -> Client {
    let namespace = client.default_namespace().to_owned();
    let service = tower::service_fn(move |request: Request<Body>| {
        let (client, contact) = (client.clone(), contact.clone());
        async move {
            let limit = BodyLimit::of(request.uri(), limits);
            let answer = match timeout(limits.begin, client.send(request)).await {
                Ok(answer) => answer?,
                Err(_) => return Err(NoAnswer::Begin(limits.begin).into()),
            };
            let contact = contact.filter(|contact| contact.counts(answer.status()));
            if let Some(contact) = &contact {
                contact.note();
            }
            let answer = answer.map(|body| Limited::new(body, limit, contact));
            // What a proxied application answers is its own.
            let is_own = limit != BodyLimit::None && !answer.status().is_success();
            if is_own && answer.headers().contains_key(RETRY_AFTER) {
                return with_retry_after(answer).await;
            }
            Ok::<_, BoxError>(answer)
        }
    });
    Client::new(service, namespace)
}

/// Returns whether a request watches.
pub(crate) fn is_watch(uri: &Uri) -> bool {
    let mut parameters = form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
    parameters.any(|(name, value)| name == "watch" && (value == "true" || value == "1"))
}

/// How long the body of an answer may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BodyLimit {
    None,
    Rest(Duration),
    Silence(Duration),
}

impl BodyLimit {
    fn of(uri: &Uri, limits: Limits) -> Self {
        if is_watch(uri) {
            return Self::Silence(limits.silence);
        }
        let parts: Vec<&str> = uri.path().trim_matches('/').split('/').collect();
        // Objects and namespaces may be called so too.
        let subresource = match parts[..] {
            ["api", _, "namespaces", _, _, _, subresource, ..]
            | ["api", _, "nodes", _, subresource, ..] => subresource,
            _ => "",
        };
        let lasting = ["log", "proxy", "exec", "attach", "portforward"];
        if lasting.contains(&subresource) {
            return Self::None;
        }
        Self::Rest(limits.rest)
    }

    fn length(self) -> Option<Duration> {
        match self {
            Self::None => None,
            Self::Rest(limit) | Self::Silence(limit) => Some(limit),
        }
    }
}

/// The body of an answer, which ends with an error if it takes too long.
struct Limited {
    body: Body,
    limit: BodyLimit,
    /// When it is too late; none without a limit.
    late: Option<Pin<Box<Sleep>>>,
    /// When its last part came.
    last: Instant,
    contact: Option<Arc<Contact>>,
}

impl Limited {
    fn new(body: Body, limit: BodyLimit, contact: Option<Arc<Contact>>) -> Self {
        let late = limit
            .length()
            .map(|limit| Box::pin(sleep_until(after(limit))));
        Self {
            body,
            limit,
            late,
            last: Instant::now(),
            contact,
        }
    }

    /// Completes when it is too late.
    fn poll_late(&mut self, cx: &mut Context<'_>) -> Poll<NoAnswer> {
        let Some(late) = &mut self.late else {
            return Poll::Pending;
        };
        loop {
            ready!(late.as_mut().poll(cx));
            match self.limit {
                BodyLimit::None => return Poll::Pending,
                BodyLimit::Rest(limit) => return Poll::Ready(NoAnswer::Rest(limit)),
                // The timer is set only when it fires, and not for each message.
                BodyLimit::Silence(limit) => match self.last.checked_add(limit) {
                    Some(until) if until > Instant::now() => late.as_mut().reset(until),
                    _ => return Poll::Ready(NoAnswer::Silence(limit)),
                },
            }
        }
    }
}

impl http_body::Body for Limited {
    type Data = <Body as http_body::Body>::Data;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, BoxError>>> {
        match Pin::new(&mut self.body).poll_frame(cx) {
            Poll::Ready(Some(Ok(frame))) => {
                self.last = Instant::now();
                if let Some(contact) = &self.contact {
                    contact.note();
                }
                // A body that never pauses ends in time too.
                match self.limit {
                    BodyLimit::Rest(_) => match self.poll_late(cx) {
                        Poll::Ready(late) => Poll::Ready(Some(Err(late.into()))),
                        Poll::Pending => Poll::Ready(Some(Ok(frame))),
                    },
                    BodyLimit::None | BodyLimit::Silence(_) => Poll::Ready(Some(Ok(frame))),
                }
            }
            Poll::Ready(Some(Err(error))) => Poll::Ready(Some(Err(error.into()))),
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Pending => self.poll_late(cx).map(|late| Some(Err(late.into()))),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Puts the `Retry-After` of an answer into its body. The API server's own limits (API Priority and Fairness) answer
/// with the header and a plain text.
async fn with_retry_after(answer: Response<Limited>) -> Result<Response<Limited>, BoxError> {
    let (mut parts, stream) = answer.into_parts();
    let body = stream.collect().await?.to_bytes();
    let header = parts
        .headers
        .get(RETRY_AFTER)
        .and_then(|it| it.to_str().ok());
    // Also a date is allowed; the API server sends none.
    let seconds: Option<u32> = header.and_then(|it| it.trim().parse().ok());
    let body = match seconds {
        None => body.to_vec(),
        Some(seconds) => {
            let body = asking_for(seconds, parts.status, &body)
                .to_string()
                .into_bytes();
            parts
                .headers
                .insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
            body
        }
    };
    let body = Limited::new(Body::from(body), BodyLimit::None, None);
    Ok(Response::from_parts(parts, body))
}

/// Returns a failure that asks for a wait, as the API server words it.
fn asking_for(seconds: u32, code: StatusCode, body: &[u8]) -> Value {
    let mut failure = match serde_json::from_slice(body) {
        Ok(Value::Object(failure)) if failure.contains_key("status") => failure,
        _ => Map::from_iter([
            ("kind".to_owned(), "Status".into()),
            ("apiVersion".to_owned(), "v1".into()),
            ("status".to_owned(), "Failure".into()),
            (
                "message".to_owned(),
                String::from_utf8_lossy(body).trim().into(),
            ),
            (
                "reason".to_owned(),
                code.canonical_reason().unwrap_or_default().into(),
            ),
            ("code".to_owned(), code.as_u16().into()),
        ]),
    };
    let details = failure.entry("details").or_insert(Value::Null);
    if !details.is_object() {
        *details = Map::new().into();
    }
    if let Value::Object(details) = details {
        details.entry("retryAfterSeconds").or_insert(seconds.into());
    }
    failure.into()
}

/// Returns how long the API server asks to wait before the next attempt; none if it does not ask.
pub fn retry_after(error: &kube::Error) -> Option<Duration> {
    let kube::Error::Api(status) = error else {
        return None;
    };
    let seconds = status.details.as_ref()?.retry_after_seconds;
    (seconds > 0).then(|| Duration::from_secs(seconds.into()).min(LONGEST_RETRY_AFTER))
}

#[cfg(test)]
mod tests {
    use futures::stream;
    use http_body_util::StreamBody;

    use super::*;

    /// Sends a request to a server that answers with these pieces, each after a wait; returns the body and when it ended.
    async fn sent(
        uri: &str,
        pieces: Vec<(Duration, &'static str)>,
    ) -> (Result<String, String>, Duration) {
        let server = tower::service_fn(move |_: Request<Body>| {
            let pieces = stream::unfold(pieces.clone().into_iter(), |mut pieces| async move {
                let (wait, piece) = pieces.next()?;
                tokio::time::sleep(wait).await;
                Some((Ok::<_, BoxError>(Frame::data(piece.into())), pieces))
            });
            std::future::ready(Ok::<_, BoxError>(Response::new(StreamBody::new(pieces))))
        });
        let client = limit_answers(Client::new(server, "default"));
        let begun = Instant::now();
        let request = Request::get(uri).body(Body::empty()).expect("a request");
        let answer = client.send(request).await.expect("an answer");
        let body = answer.into_body().collect().await;
        let text = body.map(|body| String::from_utf8_lossy(&body.to_bytes()).into_owned());
        (text.map_err(|error| chain(&error)), begun.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_ends_in_time_or_is_an_error_whatever_comes_of_it() {
        let (minute, second) = (Duration::from_mins(1), Duration::from_secs(1));
        let whole = vec![(second, "a"), (minute, "b")];
        let stalled = vec![(second, "a"), (Duration::from_hours(9), "b")];
        let trickling: Vec<_> = (0..9_000).map(|_| (second, "a")).collect();
        let in_bursts: Vec<_> = (0..9).map(|_| (minute, "a")).collect();
        for (uri, pieces, error, took) in [
            ("/apis/x", whole.clone(), None, 61),
            (
                "/apis/x",
                stalled.clone(),
                Some("the answer did not end within 120 s"),
                120,
            ),
            (
                "/apis/x",
                trickling.clone(),
                Some("the answer did not end within 120 s"),
                120,
            ),
            (
                "/api/v1/namespaces/proxy/configmaps/log",
                stalled.clone(),
                Some("the answer did not end within 120 s"),
                120,
            ),
            (
                "/apis/x?watch=true",
                stalled.clone(),
                Some("the watch was silent for 120 s"),
                121,
            ),
            (
                "/apis/x?watch=1",
                stalled.clone(),
                Some("the watch was silent for 120 s"),
                121,
            ),
            ("/apis/x?a=b&watch=true", in_bursts.clone(), None, 540),
            ("/apis/x?watch=true", trickling, None, 9_000),
            (
                "/apis/x?watch=false",
                in_bursts,
                Some("the answer did not end within 120 s"),
                120,
            ),
            (
                "/api/v1/namespaces/a/pods/b/log?follow=true",
                stalled,
                None,
                32_401,
            ),
        ] {
            let (body, time) = sent(uri, pieces).await;
            let error_text = body.err();
            assert_eq!(time.as_secs(), took, "{uri}: {error_text:?}");
            match error {
                Some(error) => assert!(
                    error_text.as_ref().is_some_and(|it| it.contains(error)),
                    "{uri}: {error_text:?}"
                ),
                None => assert_eq!(error_text, None, "{uri}"),
            }
        }
    }

    /// Returns the error of a request that is refused with 429, this header and this body.
    async fn refused(header: &'static str, body: &'static str) -> kube::Error {
        let server = tower::service_fn(move |_: Request<Body>| {
            let builder = Response::builder().status(429).header(RETRY_AFTER, header);
            let answer = builder.body(Body::from(body.as_bytes().to_vec()));
            std::future::ready(answer.map_err(BoxError::from))
        });
        let client = limit_answers(Client::new(server, "default"));
        client.apiserver_version().await.expect_err("a refusal")
    }

    #[tokio::test]
    async fn the_wait_that_a_header_asks_for_is_in_the_error() {
        let status = r#"{"kind":"Status","status":"Failure","message":"later","code":429,"details":{"name":"x"}}"#;
        let asked =
            r#"{"kind":"Status","status":"Failure","code":429,"details":{"retryAfterSeconds":2}}"#;
        for (header, body, wait) in [
            ("30", "Too many requests, please try again later.", Some(30)),
            ("30", status, Some(30)),
            ("30", asked, Some(2)),
            ("30", "", Some(30)),
            ("30", "[1]", Some(30)),
            ("30", r#"{"status":"Failure","details":7}"#, Some(30)),
            ("4000000000", status, Some(600)),
            ("99999999999", status, None),
            ("Wed, 21 Oct 2015 07:28:00 GMT", status, None),
            ("-1", status, None),
        ] {
            let error = refused(header, body).await;
            assert_eq!(
                retry_after(&error).map(|it| it.as_secs()),
                wait,
                "{header} {body}: {error}"
            );
        }
        let error = refused("30", status).await;
        assert!(error.to_string().contains("later"), "{error}");
    }
}
