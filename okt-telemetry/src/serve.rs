//! Serves the metrics and the health of a process over HTTP.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use okt_serve::{ListenAddress, bind, server};
use okt_wire::clock::after;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::monitoring::Monitoring;

/// How many connections a server of metrics or health has at most: a few are used, and all servers of a process together
/// stay far below the 1,024 files that it may often have open.
pub(super) const SCRAPERS: usize = 128;

/// For how many times as long as it took to make is a text given to others: however many read it, making it takes a tenth
/// of a core. A text about a few objects is always new; one about many costs a look at each of them.
const SHARED: u32 = 10;

/// The content type of the metrics.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

impl Monitoring {
    /// Serves `/metrics` at one address, and `/livez`, `/readyz` and `/statusz` at another one or the same, until the
    /// returned future is dropped.
    ///
    /// `/livez` answers as long as the process can answer; `/readyz` as [`readiness`](Self::readiness) says, with 503 if
    /// it is an error; `/statusz` is a page for people ([`status`](Self::status)).
    /// Whoever reaches the addresses can read them: metrics and status contain states and reasons, and no names of
    /// objects.
    ///
    /// ```no_run
    /// # async fn example(monitoring: okt::Monitoring) -> Result<(), Box<dyn std::error::Error>> {
    /// let served = monitoring.serve(Some(":8080".parse()?), Some(":8081".parse()?)).await?;
    /// tokio::spawn(served);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// If an address cannot be listened on: it is in use, or the process may not; a retry helps once that has changed.
    pub async fn serve(
        &self,
        metrics: Option<ListenAddress>,
        health: Option<ListenAddress>,
    ) -> io::Result<impl Future<Output = ()> + Send + use<>> {
        let is_one = metrics.is_some() && metrics == health;
        let mut servers = Vec::new();
        if let Some(address) = metrics {
            let mut routes = self.metrics_routes();
            if is_one {
                routes = routes.merge(self.health_routes());
            }
            servers.push((bind(address, "metrics").await?, routes));
        }
        if let Some(address) = health.filter(|_| !is_one) {
            servers.push((bind(address, "health").await?, self.health_routes()));
        }
        let served = servers
            .into_iter()
            .map(|(listener, routes)| server(listener, SCRAPERS).serve(routes.into_make_service()));
        let served = futures::future::join_all(served);
        // It never ends with an error: the server goes on after a connection that failed.
        Ok(async move { drop(served.await) })
    }

    pub(super) fn metrics_routes(&self) -> Router {
        let (monitoring, shared) = (self.clone(), SharedText::default());
        let metrics = move || {
            let text = shared.get(|| monitoring.metrics());
            std::future::ready(([(header::CONTENT_TYPE, OPEN_METRICS)], text))
        };
        Router::new().route("/metrics", get(metrics))
    }

    fn health_routes(&self) -> Router {
        let (readiness, monitoring) = (self.clone(), self.clone());
        let shared = SharedText::default();
        let status = move || {
            let page = shared.get(|| monitoring.status());
            std::future::ready(([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], page))
        };
        let live = || std::future::ready("ok\n");
        let ready = move || {
            let answer: Response = match readiness.readiness() {
                Ok(lines) => lines.into_response(),
                Err(lines) => (StatusCode::SERVICE_UNAVAILABLE, lines).into_response(),
            };
            std::future::ready(answer)
        };
        Router::new()
            .route("/livez", get(live))
            // The path that kubebuilder's manifests have.
            .route("/healthz", get(live))
            .route("/readyz", get(ready))
            .route("/statusz", get(status))
    }
}

/// A text that many may read at once.
#[derive(Clone, Default)]
struct SharedText(Arc<Mutex<Option<Made>>>);

/// The last text, and until when it is given to others.
struct Made {
    until: Instant,
    text: Bytes,
}

impl Made {
    /// Returns a text that took this time to make.
    fn of(text: Bytes, took: Duration) -> Self {
        Self {
            until: after(took.saturating_mul(SHARED)),
            text,
        }
    }
}

impl SharedText {
    /// Returns the text, or makes it if the last one is old.
    fn get(&self, make: impl FnOnce() -> String) -> Bytes {
        let mut last = self.0.lock();
        let begun = Instant::now();
        if let Some(made) = last.as_ref().filter(|made| begun < made.until) {
            return made.text.clone();
        }
        let text = Bytes::from(make());
        *last = Some(Made::of(text.clone(), begun.elapsed()));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_text_is_shared_for_ten_times_as_long_as_it_took() {
        let took = Duration::from_millis(20);
        let shared = SharedText(Arc::new(Mutex::new(Some(Made::of("first".into(), took)))));
        tokio::time::advance(took * (SHARED - 1)).await;
        assert_eq!(shared.get(|| "second".to_owned()), "first");
        tokio::time::advance(took).await;
        assert_eq!(shared.get(|| "third".to_owned()), "third");
        assert_eq!(
            shared.get(|| "fourth".to_owned()),
            "fourth",
            "the third cost nothing"
        );
    }
}
