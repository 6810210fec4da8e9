//! The life of parcels: from creation to delivery, and then the deletion of all at once.

use std::error::Error;
use std::time::Instant;

use okt_tests::measured::{Table, megabytes, milliseconds, rounds, until};

use crate::child::Side;
use crate::site::Site;

pub(crate) const OBJECTS: usize = 1_000;
/// The transitions of one object until it rests.
pub(crate) const TRANSITIONS: usize = 3;
/// The writes of one object: the transitions and the finalizer.
pub(crate) const WRITES: usize = TRANSITIONS + 1;

/// Measures both controllers in alternation and prints the tables; the first is the one that is judged.
pub(crate) async fn bench(
    site: &Site,
    sides: &[Side; 2],
    objects: usize,
    count: usize,
) -> Result<(), Box<dyn Error>> {
    let titles = sides.each_ref().map(|side| side.title);
    let mut tables = [Table::of(titles), Table::of(titles)];
    let measured = rounds(count, &mut tables, async |round, [living, leaving]| {
        for side in sides.iter().rev() {
            life(site, side, (objects, round), living, leaving).await?;
        }
        Ok(())
    });
    let measured = measured.await;
    let [living, leaving] = tables;
    living.print(&format!("{objects} fresh objects to rest"));
    leaving.print(&format!("{objects} settled objects deleted at once"));
    measured
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts and bytes are far below 2^52"
)]
async fn life(
    site: &Site,
    side: &Side,
    (objects, round): (usize, usize),
    living: &mut Table,
    leaving: &mut Table,
) -> Result<(), Box<dyn Error>> {
    let each = objects as f64;
    let parcels = site.namespace(&format!("{}-{round}", side.name)).await?;
    parcels.create(0..objects).await?;

    let mut controller = side.start(&site.0.kubeconfig, &parcels.namespace)?;
    until(async || {
        let enough = controller.figures()?.writes >= (objects * WRITES) as u64;
        Ok(enough && parcels.have_arrived(objects).await?)
    })
    .await?;
    let lived = controller.figures()?;
    let time = lived.last_write.unwrap_or_default();
    let cpu = controller.cpu()?;
    let memory = controller.memory()?;
    let (json, full) = parcels.size().await?;
    living.add(
        side.title,
        "transitions per second",
        each * TRANSITIONS as f64 / time.as_secs_f64(),
    );
    living.add(
        side.title,
        "milliseconds until the first write",
        milliseconds(lived.first_write.unwrap_or_default()),
    );
    living.add(
        side.title,
        "CPU of the controller, ms per object",
        milliseconds(cpu) / each,
    );
    living.add(side.title, "writes per object", lived.writes as f64 / each);
    living.add(
        side.title,
        "bytes per write",
        lived.bytes_written as f64 / lived.writes as f64,
    );
    for (verb, count) in &lived.requests {
        living.add(
            side.title,
            &format!("{verb}, all objects together"),
            *count as f64,
        );
    }
    living.add(side.title, "resident memory, MB", megabytes(memory.now));
    living.add(
        side.title,
        "the same without code, MB",
        megabytes(memory.data),
    );
    living.add(side.title, "bytes of JSON of an object", json as f64);
    living.add(side.title, "the same with managed fields", full as f64);

    let begun = Instant::now();
    parcels.delete().await?;
    parcels.are_gone().await?;
    let left = controller.figures()?;
    let writes = left.writes - lived.writes;
    leaving.add(
        side.title,
        "seconds until the last is gone",
        begun.elapsed().as_secs_f64(),
    );
    leaving.add(side.title, "writes per object", writes as f64 / each);
    let cpu = controller.cpu()?.saturating_sub(cpu);
    leaving.add(
        side.title,
        "CPU of the controller, ms per object",
        milliseconds(cpu) / each,
    );
    let memory = controller.memory()?;
    leaving.add(side.title, "resident memory, MB", megabytes(memory.now));
    leaving.add(side.title, "peak of it, MB", megabytes(memory.peak));
    Ok(())
}
