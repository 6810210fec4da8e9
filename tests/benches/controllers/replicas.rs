//! Each of three replicas that share objects, compared with one replica that has them all.
//!
//! Each of them lists the objects, and then receives one change of each third object.

use std::error::Error;

use okt_tests::measured::{Process, megabytes, milliseconds, until};
use tokio::time::sleep;

use crate::child::Way;
use crate::restarts::{PAUSE, settle};
use crate::site::{Parcels, Site};

/// The number of replicas that share the objects.
const REPLICAS: usize = 3;

/// What one replica has used.
struct Used {
    received: f64,
    cpu: f64,
    memory: f64,
    peak: f64,
    reconciliations: u64,
}

/// Measures one replica, and then three, on the same settled objects; prints the shares.
pub(crate) async fn bench(site: &Site, size: usize, title: &str) -> Result<(), Box<dyn Error>> {
    let empty = site.namespace("replicas-empty").await?;
    let idle = run(site, &empty, 0, 1, "idle").await?;
    let parcels = site.namespace("replicas").await?;
    settle(site, Way::WithOkt, &parcels, 0..1).await?;
    parcels.copy(1..size).await?;
    let all = run(site, &parcels, size, 1, "all").await?;
    let shared = run(site, &parcels, size, REPLICAS, "shared").await?;
    let (idle, all) = (&idle[0], &all[0]);
    println!("\n### {size} objects, {title}: one replica with all, and each of {REPLICAS}\n");
    println!(
        "| | bytes received, MB | CPU, ms | memory, MB | above an idle one | peak, MB | reconciliations |"
    );
    println!("|---|---|---|---|---|---|---|");
    let row = |name: String, used: &Used| {
        println!(
            "| {name} | {:.1} | {:.0} | {:.1} | {:.1} | {:.1} | {} |",
            used.received,
            used.cpu,
            used.memory,
            used.memory - idle.memory,
            used.peak,
            used.reconciliations
        );
    };
    row("idle, no objects".to_owned(), idle);
    row("one with all".to_owned(), all);
    let share = |name: String, used: &Used| {
        println!(
            "| {name} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} | |",
            used.received / all.received,
            used.cpu / all.cpu,
            used.memory / all.memory,
            (used.memory - idle.memory) / (all.memory - idle.memory),
            used.peak / all.peak,
        );
    };
    for (number, used) in shared.iter().enumerate() {
        row(format!("replica {}", number + 1), used);
        share("… of the one with all".to_owned(), used);
    }
    Ok(())
}

/// Runs replicas until each object was reconciled, and each third of them again after a change; returns what each has used.
async fn run(
    site: &Site,
    parcels: &Parcels,
    size: usize,
    replicas: usize,
    group: &str,
) -> Result<Vec<Used>, Box<dyn Error>> {
    // A new table is handed out when all have joined, so the ranges are shared from the beginning.
    let mut running: Vec<Process> = (0..replicas)
        .map(|_| Way::Replica.start_in(&site.0.kubeconfig, &parcels.namespace, size, group))
        .collect::<Result<_, _>>()?;
    let reconciled = |running: &mut Vec<Process>| -> Result<u64, Box<dyn Error>> {
        let figures: Result<Vec<_>, _> = running.iter_mut().map(Process::figures).collect();
        Ok(figures?.iter().map(|figures| figures.reconciliations).sum())
    };
    until(async || {
        sleep(PAUSE).await;
        Ok(reconciled(&mut running)? >= size as u64)
    })
    .await?;
    let changed = size / 3;
    parcels.touch(0..changed, group).await?;
    until(async || {
        sleep(PAUSE).await;
        Ok(reconciled(&mut running)? >= (size + changed) as u64)
    })
    .await?;
    sleep(5 * PAUSE).await;
    (running.iter_mut())
        .map(|process| {
            let figures = process.figures()?;
            if figures.of("PATCH parcels") + figures.of("PATCH parcels/status") > 0 {
                return Err("a settled object was written".into());
            }
            let memory = process.memory()?;
            Ok(Used {
                received: megabytes(figures.bytes_received),
                cpu: milliseconds(process.cpu()?),
                memory: megabytes(memory.now),
                peak: megabytes(memory.peak),
                reconciliations: figures.reconciliations,
            })
        })
        .collect()
}
