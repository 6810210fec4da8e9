//! This file lets a thousand parcels live: from fresh to delivered, and then all deleted at once.

use std::error::Error;
use std::time::{Duration, Instant};

use crate::child::{Controller, Way};
use crate::site::{Site, until};
use crate::table::Table;

const ROUNDS: usize = 11;
const OBJECTS: usize = 1_000;
/// Of one object until it rests.
const TRANSITIONS: usize = 3;
/// The transitions and the finalizer.
pub(crate) const WRITES: usize = TRANSITIONS + 1;

/// Measures both ways in turns and prints the tables.
pub(crate) async fn bench(site: &Site) -> Result<(), Box<dyn Error>> {
    let (mut living, mut leaving) = (Table::default(), Table::default());
    for round in 0..ROUNDS {
        for way in Way::BOTH {
            life(site, way, round, &mut living, &mut leaving).await?;
        }
    }
    living.print("1,000 fresh objects to rest");
    leaving.print("1,000 settled objects deleted at once");
    Ok(())
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts and bytes are far below 2^52"
)]
async fn life(
    site: &Site,
    way: Way,
    round: usize,
    living: &mut Table,
    leaving: &mut Table,
) -> Result<(), Box<dyn Error>> {
    let each = OBJECTS as f64;
    let parcels = site.namespace(&format!("{}-{round}", way.name())).await?;
    parcels.create(0..OBJECTS).await?;

    let mut controller = Controller::start(way, &site.kubeconfig, &parcels.namespace, 0)?;
    until(async || {
        let enough = controller.figures()?.writes >= (OBJECTS * WRITES) as u64;
        Ok(enough && parcels.have_arrived(OBJECTS).await?)
    })
    .await?;
    let lived = controller.figures()?;
    let time = lived.last_write.unwrap_or_default();
    let cpu = controller.cpu()?;
    let memory = controller.memory()?;
    let (json, full) = parcels.size().await?;
    living.add(
        way,
        "transitions per second",
        each * TRANSITIONS as f64 / time.as_secs_f64(),
    );
    living.add(
        way,
        "CPU of the controller, ms per object",
        milliseconds(cpu) / each,
    );
    living.add(way, "writes per object", lived.writes as f64 / each);
    living.add(
        way,
        "bytes per write",
        lived.bytes_written as f64 / lived.writes as f64,
    );
    for (verb, count) in &lived.requests {
        living.add(way, &format!("{verb}, all objects together"), *count as f64);
    }
    living.add(way, "resident memory, MB", megabytes(memory.now));
    living.add(way, "bytes of JSON of an object", json as f64);
    living.add(way, "the same with managed fields", full as f64);

    let begun = Instant::now();
    parcels.delete().await?;
    parcels.are_gone().await?;
    let left = controller.figures()?;
    let writes = left.writes - lived.writes;
    leaving.add(
        way,
        "seconds until the last is gone",
        begun.elapsed().as_secs_f64(),
    );
    leaving.add(way, "writes per object", writes as f64 / each);
    let cpu = controller.cpu()?.saturating_sub(cpu);
    leaving.add(
        way,
        "CPU of the controller, ms per object",
        milliseconds(cpu) / each,
    );
    let memory = controller.memory()?;
    leaving.add(way, "resident memory, MB", megabytes(memory.now));
    leaving.add(way, "peak of it, MB", megabytes(memory.peak));
    Ok(())
}

pub(crate) fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

#[expect(clippy::cast_precision_loss, reason = "no process has 2^52 bytes")]
pub(crate) fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}
