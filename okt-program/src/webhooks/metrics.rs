//! The metrics of webhooks, under the names of controller-runtime.

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::Response;
use okt_telemetry::monitoring::Monitoring;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use tokio::time::Instant;

/// The buckets of `controller_runtime_webhook_latency_seconds`, in seconds, as in controller-runtime 0.25.
const LATENCY: [f64; 11] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
];

/// The labels of an answer: the status code, and the path of the webhook.
#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct Answered {
    code: u16,
    webhook: String,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct Asked {
    webhook: String,
}

/// How often and how fast webhooks answer.
#[derive(Clone)]
pub(super) struct WebhookMetrics {
    answers: Family<Answered, Counter>,
    latency: Family<Asked, Histogram, fn() -> Histogram>,
}

impl WebhookMetrics {
    pub(super) fn register(monitoring: &Monitoring) -> Self {
        let latency: fn() -> Histogram = || Histogram::new(LATENCY);
        let all = Self {
            answers: Family::default(),
            latency: Family::new_with_constructor(latency),
        };
        monitoring.register(|registry| {
            registry.register(
                "controller_runtime_webhook_requests",
                "Total number of admission and conversion requests by HTTP status code",
                all.answers.clone(),
            );
            registry.register(
                "controller_runtime_webhook_latency_seconds",
                "Latency of answers to admission and conversion requests in seconds",
                all.latency.clone(),
            );
        });
        all
    }
}

/// Counts a request, and measures its answer. Who asks for a kind that the program does not have makes no series.
pub(super) async fn measured(
    State(metrics): State<WebhookMetrics>,
    request: Request,
    next: Next,
) -> Response {
    let (webhook, begun) = (request.uri().path().to_owned(), Instant::now());
    let response = next.run(request).await;
    let code = response.status();
    if code != StatusCode::NOT_FOUND && code != StatusCode::METHOD_NOT_ALLOWED {
        let asked = Asked {
            webhook: webhook.clone(),
        };
        let taken = begun.elapsed().as_secs_f64();
        metrics.latency.get_or_create(&asked).observe(taken);
        let answered = Answered {
            code: code.as_u16(),
            webhook,
        };
        metrics.answers.get_or_create(&answered).inc();
    }
    response
}
