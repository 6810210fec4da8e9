//! Shows the effect of a stale cache on a controller that counts. Run it with
//! `cargo run -p okt-apiserver --example workers`.

mod controller;

use std::time::Duration;

use kube::{Api, CustomResourceExt, api::PostParams};
use okt_apiserver::{ApiServer, EventKind};

use controller::{Bookkeeping, Pool, PoolSpec};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), kube::Error> {
    tokio::time::pause();
    println!("Three workers are wanted.");
    for bookkeeping in [Bookkeeping::Count, Bookkeeping::Names] {
        for lag in [0, 3] {
            let made = made(bookkeeping, Duration::from_secs(lag)).await?;
            println!("{bookkeeping:?}, watches {lag} s late: {made} were made");
        }
    }
    Ok(())
}

/// Returns the number of workers that are created for a pool of three.
async fn made(bookkeeping: Bookkeeping, lag: Duration) -> Result<usize, kube::Error> {
    let server = ApiServer::new();
    let client = server.client();
    let crds = Api::all(client.clone());
    crds.create(&PostParams::default(), &Pool::crd()).await?;
    let pools: Api<Pool> = Api::default_namespaced(client);
    let pool = Pool::new("pool", PoolSpec { workers: 3 });
    pools.create(&PostParams::default(), &pool).await?;

    server.set_watch_lag(lag);
    let controller = tokio::spawn(controller::run(server.client(), bookkeeping));
    tokio::time::sleep(Duration::from_mins(10)).await;
    controller.abort();
    let workers = server.versions().resource("configmaps").into_iter();
    Ok(workers
        .filter(|version| version.kind == EventKind::Added)
        .count())
}
