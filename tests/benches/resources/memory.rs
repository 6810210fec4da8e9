//! The memory of operators that cache owned objects completely, or only their metadata.
//!
//! Each operator runs in its own process and starts with settled objects; the two alternate.

use std::error::Error;
use std::future::pending;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::{env, io};

use futures::{StreamExt, TryStreamExt, stream};
use kube::api::PostParams;
use kube::{Api, Client};
use okt::{Operator, OperatorError, crd};
use okt_tests::measured::{Host, Process, Table, Tally, counted, megabytes, milliseconds};

use crate::racks::{Boxes, Rack, Racks};

/// The first argument of a child process.
pub(crate) const CHILD: &str = "operator";
const METADATA: &str = "owns_meta";
const WHOLE: &str = "owns";
const ROUNDS: usize = 5;
/// The size of the text in each owned object, in bytes.
const SIZES: [usize; 2] = [64, 4_096];

/// Measures both in alternation and prints a table for each size.
pub(crate) async fn bench(racks: usize, count: usize) -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let host = Host::double(directory.path()).await?;
    host.install(&crd::<Rack>()?).await?;
    // A server without objects shows the memory of the program itself.
    for (racks, size) in [(0, 0)].into_iter().chain(SIZES.map(|size| (racks, size))) {
        let boxes = Boxes { count, size };
        let hall = format!("of-{size}");
        host.namespace(&hall).await?;
        fill(&host, &hall, racks).await?;
        start(WHOLE, &host, &hall, racks, boxes)?.rest().await?;
        let mut table = Table::of([METADATA, WHOLE]);
        for _ in 0..ROUNDS {
            for way in [WHOLE, METADATA] {
                weigh(way, &host, &hall, racks, boxes, &mut table).await?;
            }
        }
        let owned = racks * count;
        table.print(&format!(
            "{owned} owned ConfigMaps with {size} bytes of text"
        ));
    }
    Ok(())
}

/// Creates the racks of a namespace, without boxes.
async fn fill(host: &Host, hall: &str, racks: usize) -> kube::Result<()> {
    let api: Api<Rack> = Api::namespaced(host.client.clone(), hall);
    let api = &api;
    stream::iter(0..racks)
        .map(|number| async move {
            let rack = Rack::numbered(number);
            api.create(&PostParams::default(), &rack).await
        })
        .buffer_unordered(16)
        .try_for_each(|_| std::future::ready(Ok(())))
        .await
}

#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
async fn weigh(
    way: &'static str,
    host: &Host,
    hall: &str,
    racks: usize,
    boxes: Boxes,
    table: &mut Table,
) -> Result<(), Box<dyn Error>> {
    let mut process = start(way, host, hall, racks, boxes)?;
    let figures = process.rest().await?;
    if figures.writes != 0 {
        let requests = &figures.requests;
        return Err(format!("{way} writes after a restart: {requests:?}").into());
    }
    let memory = process.memory()?;
    table.add(way, "resident memory, MB", megabytes(memory.now));
    table.add(way, "peak of it, MB", megabytes(memory.peak));
    table.add(way, "CPU until settled, ms", milliseconds(process.cpu()?));
    let requests: u64 = figures.requests.values().sum();
    table.add(way, "requests", requests as f64);
    Ok(())
}

fn start(way: &str, host: &Host, hall: &str, racks: usize, boxes: Boxes) -> io::Result<Process> {
    let numbers = [racks, boxes.count, boxes.size].map(|number| number.to_string());
    Process::start(
        Command::new(env::current_exe()?)
            .args([CHILD, way])
            .arg(&host.kubeconfig)
            .arg(hall)
            .args(numbers),
    )
}

/// The main function of the child: runs the operator and prints its figures for each line of input.
pub(crate) fn main(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let [way, kubeconfig, hall, racks, count, size] = arguments else {
        return Err(
            "an operator wants its way, a kubeconfig, a namespace and three numbers".into(),
        );
    };
    let tally = Arc::new(Tally::expecting(racks.parse()?));
    let boxes = Boxes {
        count: count.parse()?,
        size: size.parse()?,
    };
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(async {
        let client = counted(Path::new(kubeconfig), &tally).await?;
        if way == METADATA {
            run(client, hall, Racks::<true> { boxes, tally }).await?;
        } else {
            run(client, hall, Racks::<false> { boxes, tally }).await?;
        }
        Ok(())
    })
}

async fn run<const METADATA: bool>(
    client: Client,
    hall: &str,
    racks: Racks<METADATA>,
) -> Result<(), OperatorError> {
    Operator::new(client, racks)
        .namespaces([hall])
        .run(pending())
        .await
}
