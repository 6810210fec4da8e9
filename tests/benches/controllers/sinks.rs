//! An operator that reports what happens, compared with one that reports nothing: the life of a thousand parcels.

use std::error::Error;
use std::sync::Arc;

use axum::Router;
use axum::http::StatusCode;
use kube::Client;
use okt::reach::Reach;
use okt::{CloudEvents, LifecycleEvent, Monitoring, Operator, Sink, Traces};
use okt_tests::measured::{Table, milliseconds, rounds, until};
use tokio::net::TcpListener;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::prelude::*;

use crate::child::Way;
use crate::lives::{OBJECTS, TRANSITIONS, WRITES};
use crate::site::Site;
use crate::with_okt::Parcels;

/// Measures each in alternation with an operator that tells nothing, and prints a table for each.
pub(crate) async fn bench(site: &Site, count: usize) -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    let receiver = Router::new().fallback(|| std::future::ready(StatusCode::OK));
    let receiver = tokio::spawn(axum::serve(listener, receiver).into_future());
    for way in [Way::Measured, Way::Telling, Way::TellingInBatches] {
        let mut tables = [Table::of([way, Way::WithOkt].map(Way::title))];
        let measured = rounds(count, &mut tables, async |round, [table]| {
            for each in [way, Way::WithOkt] {
                let parcels = format!("{}-{round}-{}", way.name(), each.name());
                life(site, each, &parcels, &url, table).await?;
            }
            Ok(())
        });
        let measured = measured.await;
        let [table] = tables;
        table.print(&format!("1,000 fresh objects to rest, {}", way.title()));
        measured?;
    }
    receiver.abort();
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
async fn life(
    site: &Site,
    way: Way,
    namespace: &str,
    url: &str,
    table: &mut Table,
) -> Result<(), Box<dyn Error>> {
    let each = OBJECTS as f64;
    let parcels = site.namespace(namespace).await?;
    parcels.create(0..OBJECTS).await?;
    let mut controller = way.start_in(&site.0.kubeconfig, &parcels.namespace, 0, url)?;
    until(async || {
        let enough = controller.figures()?.writes >= (OBJECTS * WRITES) as u64;
        Ok(enough && parcels.have_arrived(OBJECTS).await?)
    })
    .await?;
    let lived = controller.figures()?;
    let time = lived.last_write.unwrap_or_default();
    let mut row = |what: &str, figure: f64| table.add(way.title(), what, figure);
    row(
        "transitions per second",
        each * TRANSITIONS as f64 / time.as_secs_f64(),
    );
    row(
        "CPU of the controller, ms per object",
        milliseconds(controller.cpu()?) / each,
    );
    row("writes per object", lived.writes as f64 / each);
    parcels.delete().await?;
    parcels.are_gone().await
}

/// Lets an operator tell what happens in every way: metrics, logs, traces and `CloudEvents` to this URL, Kubernetes
/// Events as by default, and a sink of its own.
pub(crate) fn all(
    operator: Operator<Parcels>,
    client: Client,
    url: &str,
    mode: fn(CloudEvents) -> CloudEvents,
) -> Result<Operator<Parcels>, Box<dyn Error>> {
    let http = Reach::new(client).http();
    let traces = Traces::to(url, "parcels", &http).map_err(|error| -> Box<dyn Error> { error })?;
    let lines = tracing_subscriber::fmt::layer()
        .json()
        .with_writer(std::io::sink)
        .with_filter(LevelFilter::INFO);
    tracing_subscriber::registry()
        .with(lines)
        .with(traces.layer())
        .init();
    let events = CloudEvents::new(http, format!("{url}/events"))?;
    let operator = operator.deliver(mode(events));
    Ok(operator.monitoring(&Monitoring::new()).sink(Counted))
}

/// A sink that only takes.
struct Counted;

impl Sink for Counted {
    async fn record(&self, event: Arc<LifecycleEvent>) {
        std::hint::black_box(event);
    }
}
