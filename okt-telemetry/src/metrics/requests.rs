//! The requests to the API server, under the names of client-go (`rest_client_*`).

use std::fmt::{self, Write};
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::FutureExt;
use futures::future::BoxFuture;
use http::{Method, Request, Response};
use kube::Config;
use kube::client::Body;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use tokio::time::Instant;
use tower::{Layer, Service};

/// The buckets of `rest_client_request_duration_seconds`, in seconds, as in controller-runtime 0.25.
const DURATION: [f64; 12] = [
    0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0,
];

/// The labels of an answer.
#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct Answered {
    code: Code,
    method: &'static str,
    host: Arc<str>,
}

/// The status code of an answer; none if there was no answer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Code(Option<u16>);

impl EncodeLabelValue for Code {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> fmt::Result {
        match self.0 {
            Some(code) => write!(encoder, "{code}"),
            // As client-go has it.
            None => encoder.write_str("<error>"),
        }
    }
}

/// The labels of a request.
#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct Asked {
    verb: &'static str,
    host: Arc<str>,
}

/// The metrics of requests to the API server.
#[derive(Clone)]
pub(crate) struct Requests {
    answers: Family<Answered, Counter>,
    durations: Family<Asked, Histogram, fn() -> Histogram>,
}

impl Requests {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let durations: fn() -> Histogram = || Histogram::new(DURATION);
        let all = Self {
            answers: Family::default(),
            durations: Family::new_with_constructor(durations),
        };
        registry.register(
            "rest_client_requests",
            "Number of HTTP requests, partitioned by status code, method, and host",
            all.answers.clone(),
        );
        registry.register(
            "rest_client_request_duration_seconds",
            "Request latency in seconds until the answer begins, broken down by verb and host",
            all.durations.clone(),
        );
        all
    }
}

impl CountRequests {
    pub(crate) fn new(requests: &Requests, config: &Config) -> Self {
        let host = config.cluster_url.host().unwrap_or_default();
        let host = match config.cluster_url.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        };
        Self {
            requests: requests.clone(),
            host: host.into(),
        }
    }
}

/// A layer of a client that counts its requests, from [`Monitoring::requests`](crate::monitoring::Monitoring::requests).
#[derive(Clone)]
pub struct CountRequests {
    requests: Requests,
    host: Arc<str>,
}

impl<S> Layer<S> for CountRequests {
    type Service = Counted<S>;

    fn layer(&self, inner: S) -> Counted<S> {
        Counted {
            inner,
            layer: self.clone(),
        }
    }
}

/// A client's service whose requests are counted.
#[derive(Clone)]
pub struct Counted<S> {
    inner: S,
    layer: CountRequests,
}

impl<S, B> Service<Request<Body>> for Counted<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Future: Send + 'static,
{
    type Response = Response<B>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Response<B>, S::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let sent = RequestTimer {
            layer: self.layer.clone(),
            method: method(request.method()),
            at: Instant::now(),
            code: Code(None),
        };
        let answer = self.inner.call(request);
        async move {
            // All of it, not only the field that changes.
            let mut sent = sent;
            let answer = answer.await;
            sent.code = Code(answer.as_ref().ok().map(|answer| answer.status().as_u16()));
            answer
        }
        .boxed()
    }
}

/// A request that was sent; it is counted when it is dropped, because whoever waits for the answer may give up.
struct RequestTimer {
    layer: CountRequests,
    method: &'static str,
    at: Instant,
    code: Code,
}

impl Drop for RequestTimer {
    fn drop(&mut self) {
        let CountRequests { requests, host } = &self.layer;
        let asked = Asked {
            verb: self.method,
            host: Arc::clone(host),
        };
        let time = self.at.elapsed().as_secs_f64();
        requests.durations.get_or_create(&asked).observe(time);
        let answered = Answered {
            code: self.code,
            method: self.method,
            host: Arc::clone(host),
        };
        requests.answers.get_or_create(&answered).inc();
    }
}

/// Returns the name of a method; there is a series for each.
fn method(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        _ => "OTHER",
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::future::pending;

    use prometheus_client::encoding::text::encode;

    use super::*;

    #[test]
    fn a_request_whose_answer_nobody_awaits_any_longer_counts_as_unanswered() {
        let mut registry = Registry::default();
        let requests = Requests::register(&mut registry);
        let host = "kubernetes".into();
        let silent = tower::service_fn(|_| pending::<Result<Response<Body>, Infallible>>());
        let mut counted = CountRequests { requests, host }.layer(silent);
        let mut sent = counted.call(Request::new(Body::empty()));
        assert!((&mut sent).now_or_never().is_none());
        drop(sent);
        let mut text = String::new();
        encode(&mut text, &registry).expect("text");
        let line = r#"rest_client_requests_total{code="<error>",method="GET",host="kubernetes"} 1"#;
        assert!(text.contains(line), "{text}");
    }
}
