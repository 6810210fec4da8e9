//! Restarts of controllers on settled objects, after which they are idle.

use std::error::Error;
use std::time::Duration;

use okt_tests::measured::{Table, megabytes, milliseconds, rounds, until};
use tokio::time::sleep;

use crate::child::Way;
use crate::lives::WRITES;
use crate::site::{Parcels, Site};

/// The time for which a controller idles once; it must write nothing.
const IDLE: Duration = Duration::from_mins(1);
/// The name of the measured memory.
const MEMORY: &str = "resident memory, MB";
/// The time to wait before memory is measured.
pub(crate) const PAUSE: Duration = Duration::from_secs(1);

/// Measures both controllers in alternation for each number of settled objects, and prints a table for each.
#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
pub(crate) async fn bench(
    site: &Site,
    sizes: &[usize],
    count: usize,
) -> Result<(), Box<dyn Error>> {
    let mut namespaces = Vec::new();
    for way in Way::BOTH {
        namespaces.push((
            way,
            site.namespace(&format!("{}-settled", way.name())).await?,
        ));
    }
    let mut before = 0;
    let mut empty: Option<[f64; 2]> = None;
    for &size in sizes {
        let mut tables = [Table::of(Way::TITLES)];
        for (way, parcels) in &namespaces {
            settle(site, *way, parcels, before..size).await?;
        }
        let measured = rounds(count, &mut tables, async |round, [table]| {
            for (way, parcels) in &namespaces {
                restart(site, *way, parcels, size, round == 1, table).await?;
            }
            Ok(())
        });
        let measured = measured.await;
        let [mut table] = tables;
        let memory = Way::TITLES.map(|title| table.median(title, MEMORY).unwrap_or_default());
        if let Some(empty) = &empty {
            for (title, (memory, empty)) in
                Way::TITLES.into_iter().zip(memory.into_iter().zip(empty))
            {
                let bytes = (memory - empty) * 1e6 / size as f64;
                table.add(title, "memory of an object, bytes", bytes);
            }
        }
        if size == 0 {
            empty = Some(memory);
        }
        table.print(&format!("a restart on {size} settled objects"));
        measured?;
        before = size;
    }
    Ok(())
}

/// Creates objects and lets the controller bring them to rest.
pub(crate) async fn settle(
    site: &Site,
    way: Way,
    parcels: &Parcels,
    numbers: std::ops::Range<usize>,
) -> Result<(), Box<dyn Error>> {
    if numbers.is_empty() {
        return Ok(());
    }
    let (all, writes) = (numbers.end, (numbers.len() * WRITES) as u64);
    // The objects are created before the controller starts, because the pages of a list expire while they are read.
    parcels.create(numbers).await?;
    let mut controller = way.start(&site.0.kubeconfig, &parcels.namespace, 0)?;
    until(async || {
        sleep(PAUSE).await;
        Ok(controller.figures()?.writes >= writes && parcels.have_arrived(all).await?)
    })
    .await
}

#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
async fn restart(
    site: &Site,
    way: Way,
    parcels: &Parcels,
    size: usize,
    idles: bool,
    table: &mut Table,
) -> Result<(), Box<dyn Error>> {
    let mut controller = way.start(&site.0.kubeconfig, &parcels.namespace, size)?;
    until(async || Ok(controller.figures()?.reconciliations >= size as u64)).await?;
    let cpu = controller.cpu()?;
    sleep(PAUSE).await;
    let figures = controller.figures()?;
    let memory = controller.memory()?;
    let mut row = |what: &str, figure: f64| table.add(way.title(), what, figure);
    if let Some(time) = figures.all_reconciled {
        row(
            "seconds until every object was reconciled",
            time.as_secs_f64(),
        );
        row("CPU until then, ms", milliseconds(cpu));
    }
    row(
        "requests until then",
        figures.requests.values().sum::<u64>() as f64,
    );
    row(MEMORY, megabytes(memory.now));
    row("peak of it, MB", megabytes(memory.peak));
    if idles {
        let cpu = controller.cpu()?;
        sleep(IDLE).await;
        let after = controller.figures()?;
        row(
            "writes since the start, 60 s idle included",
            after.writes as f64,
        );
        row(
            "reconciliations in 60 s idle",
            (after.reconciliations - figures.reconciliations) as f64,
        );
        let used = controller.cpu()?.saturating_sub(cpu);
        row("CPU in 60 s idle, ms", milliseconds(used));
        row(
            "resident memory after 60 s idle, MB",
            megabytes(controller.memory()?.now),
        );
    }
    Ok(())
}
