//! Rounds in which both sides bring charts to rest in alternation and are restarted, with the printed figures.

use std::error::Error;
use std::io;
use std::time::{Duration, Instant};

use okt_tests::measured::{Figures, Process, Table, megabytes, milliseconds, rounds};

use crate::achilles::Achilles;
use crate::child::{self, Job};
use crate::site::{Charts, Site};

const OKT: &str = "OKT";
const ACHILLES: &str = "Achilles";

/// The parameters of a measurement.
pub(crate) struct Measurement {
    pub(crate) objects: usize,
    pub(crate) rounds: usize,
    /// The other side, if it is measured.
    pub(crate) achilles: Option<Achilles>,
}

impl Measurement {
    /// Measures both sides in alternation and prints the tables.
    pub(crate) async fn bench(&self, site: &Site) -> Result<(), Box<dyn Error>> {
        println!("\n## On {}, {} objects", site.0.name, self.objects);
        for job in Job::ALL {
            let table = || Table::of([OKT, ACHILLES]);
            let mut tables = [table(), table()];
            let measured = rounds(self.rounds, &mut tables, async |round, [fresh, again]| {
                self.round(site, job, round, OKT, fresh, again).await?;
                if self.achilles.is_some() {
                    self.round(site, job, round, ACHILLES, fresh, again).await?;
                }
                Ok(())
            });
            let measured = measured.await;
            let [fresh, again] = tables;
            let what = match job {
                Job::Plain => "three conditions",
                Job::Map => "three conditions and a ConfigMap",
            };
            fresh.print(&format!("{what}: fresh objects to rest"));
            again.print(&format!("{what}: after a restart"));
            measured?;
        }
        Ok(())
    }

    async fn round(
        &self,
        site: &Site,
        job: Job,
        round: usize,
        side: &'static str,
        fresh: &mut Table,
        again: &mut Table,
    ) -> Result<(), Box<dyn Error>> {
        let name = format!("{}-{}-{round}", side.to_lowercase(), job.name());
        let charts = site.charts(&name, self.objects).await?;

        let begun = Instant::now();
        let ready = charts.become_ready(begun);
        let mut process = self.start(side, job, site, &charts)?;
        let ready = ready.await??;
        let figures = process.rest().await?;
        fresh.add(
            side,
            "objects per second until all are ready",
            self.rate(ready),
        );
        self.add(fresh, side, &process, &figures)?;
        let wanted = [self.objects, self.objects * job.maps()];
        check(side, job, "fresh objects", &figures, wanted)?;
        drop(process);

        let mut process = self.start(side, job, site, &charts)?;
        let figures = process.rest().await?;
        self.add(again, side, &process, &figures)?;
        check(side, job, "after a restart", &figures, [0, 0])
    }

    fn start(&self, side: &str, job: Job, site: &Site, charts: &Charts) -> io::Result<Process> {
        match &self.achilles {
            Some(achilles) if side == ACHILLES => {
                achilles.start(job, &site.0, &charts.namespace, self.objects)
            }
            _ => child::start(job, &site.0, &charts.namespace, self.objects),
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
    fn add(
        &self,
        table: &mut Table,
        side: &'static str,
        process: &Process,
        figures: &Figures,
    ) -> io::Result<()> {
        let each = self.objects as f64;
        let last = figures.last_write.max(figures.last_reconciliation);
        table.add(
            side,
            "objects per second until the last reconciliation and the last write",
            self.rate(last.unwrap_or_default()),
        );
        let mut row = |what: &str, count: u64| table.add(side, what, count as f64 / each);
        row("writes of the status per object", figures.of(STATUS));
        let maps = writes_of_maps(figures);
        row("writes of ConfigMaps per object", maps);
        let others = figures.writes - figures.of(STATUS) - maps;
        row("other writes per object", others);
        row("requests per object", figures.requests.values().sum());
        row("reconciliations per object", figures.reconciliations);
        let (cpu, memory) = (process.cpu()?, process.memory()?);
        table.add(side, "CPU, ms per object", milliseconds(cpu) / each);
        table.add(side, "resident memory, MB", megabytes(memory.now));
        table.add(side, "peak of it, MB", megabytes(memory.peak));
        Ok(())
    }

    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
    fn rate(&self, time: Duration) -> f64 {
        self.objects as f64 / time.as_secs_f64()
    }
}

const STATUS: &str = "PATCH charts/status";

fn writes_of_maps(figures: &Figures) -> u64 {
    let of_maps = figures.requests.iter().filter(|(request, _)| {
        request.ends_with(" configmaps")
            && !request.starts_with("GET")
            && !request.starts_with("WATCH")
    });
    of_maps.map(|(_, count)| count).sum()
}

/// Checks the goals of OKT: exactly these writes of the status and of `ConfigMap`s, and no others.
fn check(
    side: &str,
    job: Job,
    when: &str,
    figures: &Figures,
    wanted: [usize; 2],
) -> Result<(), Box<dyn Error>> {
    let [statuses, maps] = wanted.map(|count| count as u64);
    let as_wanted = figures.of(STATUS) == statuses
        && writes_of_maps(figures) == maps
        && figures.writes == statuses + maps;
    if side == OKT && !as_wanted {
        let requests = &figures.requests;
        return Err(format!(
            "{} {when}: {statuses} + {maps} writes are wanted: {requests:?}",
            job.name()
        )
        .into());
    }
    Ok(())
}
