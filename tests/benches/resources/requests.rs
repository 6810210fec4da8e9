//! The count of requests: for objects declared to OKT, and by hand with get, create and update.
//!
//! Both run on the test double, which counts the requests.

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::{StreamExt, stream};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use okt::{Operator, crd};
use okt_testing::{ApiServer, Mark};
use okt_tests::measured::Tally;
use okt_tests::rest;
use serde_json::json;
use tokio::task::JoinHandle;

use crate::racks::{Boxes, Rack, Racks};

/// The name of the client whose requests are counted.
const COUNTED: &str = "counted";

/// Creates a server with racks and no operator.
async fn hall(racks: usize) -> Result<ApiServer, Box<dyn Error>> {
    let server = ApiServer::new();
    let crds = Api::all(server.client());
    crds.create(&PostParams::default(), &crd::<Rack>()?).await?;
    let api: Api<Rack> = Api::default_namespaced(server.client());
    for number in 0..racks {
        api.create(&PostParams::default(), &Rack::numbered(number))
            .await?;
    }
    Ok(server)
}

/// Changes the spec of every rack.
async fn change(server: &ApiServer) -> Result<(), kube::Error> {
    let api: Api<Rack> = Api::default_namespaced(server.client());
    for rack in api.list(&ListParams::default()).await? {
        let patch = Patch::Merge(json!({ "spec": { "text": "y" } }));
        let params = PatchParams::default();
        api.patch(&rack.name_any(), &params, &patch).await?;
    }
    Ok(())
}

/// The reads and writes of `ConfigMap`s since a mark, and their duration.
struct Asked {
    reads: usize,
    writes: usize,
    took: Duration,
}

impl Asked {
    fn since(server: &ApiServer, mark: Mark, took: Duration) -> Self {
        let requests = server.requests_since(mark);
        let of_maps = requests
            .iter()
            .filter(|request| request.client == COUNTED && request.resource == "configmaps");
        let (writes, reads): (Vec<_>, Vec<_>) = of_maps.partition(|request| request.is_write());
        Self {
            reads: reads.len(),
            writes: writes.len(),
            took,
        }
    }

    fn print(&self, what: &str, who: &str) {
        println!(
            "| {what} | {who} | {} | {} | {:.1} s |",
            self.reads,
            self.writes,
            self.took.as_secs_f64()
        );
    }
}

fn run(server: &ApiServer, boxes: Boxes) -> JoinHandle<()> {
    let racks = Racks::<false> {
        boxes,
        tally: Arc::new(Tally::expecting(0)),
    };
    let operator = Operator::new(server.client_named(COUNTED), racks);
    tokio::spawn(async move {
        if let Err(error) = operator.run(std::future::pending()).await {
            eprintln!("the operator ended: {error}");
        }
    })
}

async fn with_okt(racks: usize, boxes: Boxes) -> Result<[Asked; 3], Box<dyn Error>> {
    let server = hall(racks).await?;
    let (mark, since) = (server.mark(), Instant::now());
    let operator = run(&server, boxes);
    let took = rest(&server, since).await;
    let made = Asked::since(&server, mark, took);
    operator.abort();
    // An aborted task returns an error.
    let _ = operator.await;
    let (mark, since) = (server.mark(), Instant::now());
    let operator = run(&server, boxes);
    let took = rest(&server, since).await;
    let again = Asked::since(&server, mark, took);
    let (mark, since) = (server.mark(), Instant::now());
    change(&server).await?;
    let took = rest(&server, since).await;
    let changed = Asked::since(&server, mark, took);
    operator.abort();
    Ok([made, again, changed])
}

/// Reconciles as many controllers do: gets each object and creates it, or updates it if it differs.
async fn reconcile(client: &Client, rack: &Rack, boxes: Boxes) -> Result<(), kube::Error> {
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    for wanted in boxes.of(rack) {
        match maps.get_opt(&wanted.name_any()).await? {
            None => drop(maps.create(&PostParams::default(), &wanted).await?),
            Some(mut there) if there.data != wanted.data => {
                there.data = wanted.data;
                let name = there.name_any();
                maps.replace(&name, &PostParams::default(), &there).await?;
            }
            Some(_) => {}
        }
    }
    Ok(())
}

async fn by_hand(racks: usize, boxes: Boxes) -> Result<[Asked; 3], Box<dyn Error>> {
    let server = hall(racks).await?;
    let client = server.client_named(COUNTED);
    let pass = async || {
        let (mark, since) = (server.mark(), Instant::now());
        let api: Api<Rack> = Api::default_namespaced(client.clone());
        let all = api.list(&ListParams::default()).await?;
        // The concurrency of an OKT operator.
        let passes = stream::iter(&all).map(|rack| reconcile(&client, rack, boxes));
        let done: Vec<_> = passes.buffer_unordered(16).collect().await;
        done.into_iter().collect::<Result<(), _>>()?;
        Ok::<_, kube::Error>(Asked::since(&server, mark, since.elapsed()))
    };
    let made = pass().await?;
    let again = pass().await?;
    change(&server).await?;
    let changed = pass().await?;
    Ok([made, again, changed])
}

/// Counts and prints the requests; fails if OKT writes more than the changes.
pub(crate) async fn bench(racks: usize, count: usize) -> Result<(), Box<dyn Error>> {
    let boxes = Boxes { count, size: 0 };
    println!("{racks} objects with {count} ConfigMaps each\n");
    println!("| what | who | reads of maps | writes of maps | time |\n|---|---|---|---|---|");
    let (okt, hand) = (with_okt(racks, boxes).await?, by_hand(racks, boxes).await?);
    let whats = [
        "all is made",
        "a restart, nothing changed",
        "one map of each changes",
    ];
    for ((what, okt), hand) in whats.iter().zip(&okt).zip(&hand) {
        okt.print(what, "OKT");
        hand.print(what, "by hand");
    }
    let [made, again, changed] = &okt;
    // The goals of OKT.
    let wanted = [(made, racks * count), (again, 0), (changed, racks)];
    for ((asked, writes), what) in wanted.into_iter().zip(whats) {
        if asked.writes != writes {
            return Err(format!("{what}: {} writes instead of {writes}", asked.writes).into());
        }
    }
    Ok(())
}
