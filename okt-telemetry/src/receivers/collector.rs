//! Sends spans to an OpenTelemetry collector, by OTLP over HTTP.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use okt_reach::reach::Http;
use opentelemetry::global;
use opentelemetry::trace::TracerProvider;
use opentelemetry_http::hyper::HyperClient;
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SdkTracerProvider, SpanData};
use tokio::runtime::Handle;
use tracing_opentelemetry::OpenTelemetryLayer;
use tracing_subscriber::filter::{FilterExt, LevelFilter, Targets, filter_fn};
use tracing_subscriber::layer::Layer;
use tracing_subscriber::registry::LookupSpan;

use crate::spans::{Ids, OnlyTraces, Provider, TRACER};

/// The longest time of an export.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Exports the spans of a process to an OpenTelemetry collector. Call [`end`](Self::end) before the process ends.
///
/// `run --otlp-endpoint URL` does this. With a `main` of your own, add its layer to your subscriber:
///
/// ```no_run
/// # async fn example(client: kube::Client) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
/// use okt::Traces;
/// use okt::reach::Reach;
/// use tracing_subscriber::prelude::*;
///
/// let http = Reach::new(client).http();
/// let traces = Traces::to("http://collector.monitoring.svc:4318", "databases", &http)?;
/// tracing_subscriber::registry().with(traces.layer()).init();
/// // Run your operators; then send what is left:
/// traces.end().await;
/// # Ok(())
/// # }
/// ```
pub struct Traces {
    provider: SdkTracerProvider,
}

impl Traces {
    /// Creates an exporter to a collector: OTLP over HTTP with protobuf, at `/v1/traces` below `endpoint`.
    ///
    /// `service` is the name of the program; `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` come first.
    /// It must be called within tokio.
    ///
    /// # Errors
    ///
    /// If the endpoint is no URL; only another one helps. A collector that does not answer is no error: spans are tried
    /// for a while, and then dropped.
    pub fn to(
        endpoint: &str,
        service: &str,
        http: &Http,
    ) -> Result<Self, Box<dyn Error + Send + Sync>> {
        let client = HyperClient::new(http.https_connector(), TIMEOUT, None);
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(client)
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(format!("{}/v1/traces", endpoint.trim_end_matches('/')))
            .with_timeout(TIMEOUT)
            .build()?;
        let exporter = OnTokio {
            exporter: Arc::new(exporter),
            runtime: Handle::try_current()?,
            is_away: AtomicBool::new(false),
        };
        let variables = ["OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES"];
        let named = variables.iter().filter_map(|name| std::env::var(name).ok());
        let resource = Resource::builder();
        let resource = if named.into_iter().any(|it| !it.is_empty()) {
            resource
        } else {
            resource.with_service_name(service.to_owned())
        };
        let provider = SdkTracerProvider::builder()
            .with_id_generator(Ids)
            .with_sampler(OnlyTraces)
            .with_resource(resource.build())
            .with_batch_exporter(exporter)
            .build();
        global::set_tracer_provider(provider.clone());
        Ok(Self { provider })
    }

    /// Returns the layer that takes the spans.
    pub fn layer<S>(&self) -> impl Layer<S> + Send + Sync + use<S>
    where
        S: tracing::Subscriber + for<'a> LookupSpan<'a> + Send + Sync,
    {
        let tracer = self.provider.tracer(TRACER);
        // The requests of kube are spans of the level debug.
        let targets = Targets::new()
            .with_default(LevelFilter::INFO)
            .with_target("kube_client::client::builder", LevelFilter::DEBUG);
        // Lines of the log stay in the log.
        let spans = filter_fn(|metadata| !metadata.is_event());
        OpenTelemetryLayer::new(tracer)
            .with_location(false)
            .with_threads(false)
            .and_then(Provider(self.provider.clone()))
            .with_filter(targets.and(spans))
    }

    /// Sends the spans that are not sent.
    pub async fn end(self) {
        // It waits for the thread that exports.
        let ended = tokio::task::spawn_blocking(move || self.provider.shutdown());
        if let Ok(Err(error)) = ended.await {
            tracing::warn!("cannot send the last spans: {error}");
        }
    }
}

/// An exporter whose requests run in tokio: the SDK calls it from a thread of its own.
#[derive(Debug)]
struct OnTokio<E> {
    exporter: Arc<E>,
    runtime: Handle,
    /// Whether the last export failed.
    is_away: AtomicBool,
}

impl<E: opentelemetry_sdk::trace::SpanExporter + 'static> opentelemetry_sdk::trace::SpanExporter
    for OnTokio<E>
{
    fn set_resource(&mut self, resource: &Resource) {
        // It is called before the first export.
        if let Some(exporter) = Arc::get_mut(&mut self.exporter) {
            exporter.set_resource(resource);
        }
    }

    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let exporter = Arc::clone(&self.exporter);
        let sent = self
            .runtime
            .spawn(async move { exporter.export(batch).await });
        match sent.await {
            Ok(result) => {
                let was_away = self.is_away.swap(result.is_err(), Ordering::Relaxed);
                if let Err(error) = &result
                    && !was_away
                {
                    tracing::warn!("cannot send spans to the collector: {error}");
                }
                result
            }
            // The runtime ends.
            Err(error) => Err(opentelemetry_sdk::error::OTelSdkError::InternalFailure(
                error.to_string(),
            )),
        }
    }
}
