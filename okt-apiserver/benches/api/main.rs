//! Measures the API in the process, and compares it with a real server if there is one.
//!
//! Prints the table of `docs/benchmarks.md`.
//! The machine may be shared: of several runs the fastest counts, because it had the least disturbance.

mod boiler;
mod memory;
mod runs;

use std::error::Error;
use std::time::{Duration, Instant};

use kube::Api;
use okt_apiserver::ApiServer;
use tokio::runtime::Builder;

use self::boiler::Boiler;
use self::memory::PerObject;
use self::runs::{Figures, PerSecond};

fn main() -> Result<(), Box<dyn Error>> {
    let one = Builder::new_current_thread().enable_all().build()?;
    let two = Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    // First the measurement that can be made once in a process, then the one that needs an empty heap.
    let first = one.block_on(Start::once())?;
    let weight = one.block_on(memory::per_object())?;
    let start = one.block_on(Start::fastest())?;
    // Short runs, so that other work on the machine does not disturb all of them.
    let double =
        two.block_on(async { Figures::of(&ApiServer::new().client(), 20, 4_000).await })?;
    let real = two.block_on(real());
    print(weight.as_ref(), (first, start), &double, real.as_ref());
    Ok(())
}

/// Measures a real server; it may have to be built first.
#[cfg(feature = "kubernetes")]
async fn real() -> Result<Figures, String> {
    let kubernetes = okt_apiserver::Kubernetes::start().await;
    let kubernetes = kubernetes.map_err(|error| error.to_string())?;
    let figures = Figures::of(&kubernetes.client(), 4, 2_000).await;
    kubernetes.stop().await;
    figures.map_err(|error| error.to_string())
}

#[cfg(not(feature = "kubernetes"))]
#[expect(
    clippy::unused_async,
    reason = "with the feature there is something to wait for"
)]
async fn real() -> Result<Figures, String> {
    Err("this is built without the feature `kubernetes`".to_owned())
}

/// The time until the API works.
#[derive(Clone, Copy)]
struct Start {
    /// The time of [`ApiServer::new`] alone.
    new: Duration,
    /// The time until the first response for the kind of an applied CRD.
    answers: Duration,
}

impl Start {
    async fn fastest() -> kube::Result<Self> {
        let mut fastest = Self::once().await?;
        for _ in 0..20 {
            let again = Self::once().await?;
            fastest.new = fastest.new.min(again.new);
            fastest.answers = fastest.answers.min(again.answers);
        }
        Ok(fastest)
    }

    async fn once() -> kube::Result<Self> {
        let begun = Instant::now();
        let server = ApiServer::new();
        let new = begun.elapsed();
        let client = server.client();
        boiler::declare(&client).await?;
        let boilers: Api<Boiler> = Api::default_namespaced(client);
        boilers.get_opt("nothing").await?;
        Ok(Self {
            new,
            answers: begun.elapsed(),
        })
    }
}

fn print(
    weight: Option<&PerObject>,
    (first, later): (Start, Start),
    double: &Figures,
    real: Result<&Figures, &String>,
) {
    println!("| what | ratio to a real server | in the process | real server | goal |");
    println!("|---|---|---|---|---|");
    let row = |what: &str, of: fn(&Figures) -> PerSecond, goal: &str| {
        let (ours, theirs) = (of(double).0, real.map(|real| of(real).0));
        let ratio = theirs.map_or("–".to_owned(), |theirs| format!("{:.1}", ours / theirs));
        let theirs = theirs.map_or("–".to_owned(), |theirs| format!("{theirs:.0} /s"));
        println!("| {what} | {ratio} | {ours:.0} /s | {theirs} | {goal} |");
    };
    row("status applies, 16 at once", |f| f.applies, "20,000 /s");
    row(
        "status applies, one after another",
        |f| f.applies_alone,
        "–",
    );
    row("creates, 16 at once", |f| f.creates, "–");
    row("gets, 16 at once", |f| f.gets, "–");
    row("lists of 1,000 objects", |f| f.lists, "–");
    row("events to 20 watches", |f| f.events, "–");
    let milliseconds = |time: Duration| format!("{:.2} ms", time.as_secs_f64() * 1e3);
    println!(
        "| `ApiServer::new` | – | {} | – | – |",
        milliseconds(later.new)
    );
    println!(
        "| start until the first answer, a CRD applied | – | {} | – | 5 ms |",
        milliseconds(later.answers)
    );
    println!(
        "| the same for the first server of a process | – | {} | – | 5 ms |",
        milliseconds(first.answers)
    );
    match weight {
        Some(weight) => println!(
            "| memory of an object beyond its {} bytes of JSON | – | {} bytes | – | 4,096 bytes |",
            weight.json,
            weight.resident.saturating_sub(weight.json),
        ),
        None => println!("Memory is weighed on Linux only."),
    }
    if let Err(why) = real {
        println!("\nNo real server beside it: {why}.");
    }
}
