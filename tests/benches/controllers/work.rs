//! The memory of an operator with many running actions, compared to one with settled objects.

use std::error::Error;

use okt_tests::measured::{Memory, Table, megabytes, until};
use tokio::time::sleep;

use crate::child::Way;
use crate::restarts::{PAUSE, settle};
use crate::site::{Parcels, Site};

const ROUNDS: usize = 3;
/// The default number of concurrent actions: 4,096, less the eighth that is reserved for deletions.
const ACTIONS: usize = 3_584;

/// Restarts both in alternation, each with the same number of objects, and prints a table.
#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
pub(crate) async fn bench(site: &Site) -> Result<(), Box<dyn Error>> {
    let rest = site.namespace("at-rest").await?;
    settle(site, Way::WithOkt, &rest, 0..ACTIONS).await?;
    let work = site.namespace("at-work").await?;
    work.create(0..ACTIONS).await?;
    let mut table = Table::of([Way::AtWork, Way::WithOkt].map(Way::title));
    // The first start creates the actions; the measured starts resume them.
    weigh(site, Way::AtWork, &work).await?;
    for _ in 0..ROUNDS {
        let at_work = weigh(site, Way::AtWork, &work).await?;
        let at_rest = weigh(site, Way::WithOkt, &rest).await?;
        for (way, memory) in [(Way::AtWork, &at_work), (Way::WithOkt, &at_rest)] {
            table.add(way.title(), "resident memory, MB", megabytes(memory.now));
            table.add(way.title(), "peak of it, MB", megabytes(memory.peak));
        }
        let each = (at_work.now as f64 - at_rest.now as f64) / ACTIONS as f64;
        table.add(Way::AtWork.title(), "bytes for each action", each);
    }
    table.print(&format!("{ACTIONS} actions at the same time"));
    Ok(())
}

/// Starts an operator and measures its memory once all actions run or all objects are reconciled.
async fn weigh(site: &Site, way: Way, parcels: &Parcels) -> Result<Memory, Box<dyn Error>> {
    let mut operator = way.start(&site.0.kubeconfig, &parcels.namespace, ACTIONS)?;
    until(async || Ok(operator.figures()?.reconciliations >= ACTIONS as u64)).await?;
    sleep(PAUSE).await;
    Ok(operator.memory()?)
}
