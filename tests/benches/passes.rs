//! What a pass of three states costs: requests and time for many objects, once, and again after a restart.
//!
//! On the double; requests are counted by the server. A word chooses another number of objects.

use std::error::Error;
use std::time::{Duration, Instant};

use kube::Api;
use kube::api::PostParams;
use okt_runtime::{Declared, Operator, crd};
use okt_testing::{ApiServer, Mark};
use okt_tests::{Chart, Charts, rest};
use serde_json::json;
use tokio::task::JoinHandle;

/// Whose requests are counted.
const COUNTED: &str = "counted";

/// A server with charts, and nobody who cares for them.
async fn wall(charts: usize) -> Result<ApiServer, Box<dyn Error>> {
    let server = ApiServer::new();
    let crds = Api::all(server.client());
    crds.create(&PostParams::default(), &crd::<Chart>()?)
        .await?;
    let api: Api<Chart> = Api::default_namespaced(server.client());
    for number in 0..charts {
        let chart = serde_json::from_value(json!({
            "apiVersion": "demo.okt.dev/v1",
            "kind": "Chart",
            "metadata": { "name": format!("chart-{number}") },
            "spec": {},
        }))?;
        api.create(&PostParams::default(), &chart).await?;
    }
    Ok(server)
}

/// What was written since, and how long that took.
#[derive(Debug, PartialEq, Eq)]
struct Written {
    statuses: usize,
    finalizers: usize,
    maps: usize,
}

impl Written {
    fn since(server: &ApiServer, mark: Mark) -> Self {
        let requests = server.requests_since(mark);
        let of = |resource: &str, subresource: Option<&str>| {
            let ours = requests.iter().filter(|request| {
                request.client == COUNTED
                    && request.is_write()
                    && request.resource == resource
                    && request.subresource.as_deref() == subresource
            });
            ours.count()
        };
        Self {
            statuses: of("charts", Some("status")),
            finalizers: of("charts", None),
            maps: of("configmaps", None),
        }
    }
}

fn run(server: &ApiServer, app: Charts) -> JoinHandle<()> {
    let operator = Operator::new(server.client_named(COUNTED), app);
    tokio::spawn(async move {
        if let Err(error) = operator.run(std::future::pending()).await {
            eprintln!("the operator ended: {error}");
        }
    })
}

/// Walks through all objects, then once more after a restart.
async fn walk(charts: usize, app: Charts) -> Result<[(Written, Duration); 2], Box<dyn Error>> {
    let server = wall(charts).await?;
    let mut all = Vec::new();
    for _ in 0..2 {
        let (mark, since) = (server.mark(), Instant::now());
        let operator = run(&server, app.clone());
        let took = rest(&server, since).await;
        all.push((Written::since(&server, mark), took));
        operator.abort();
        // It ends by that.
        let _ = operator.await;
    }
    let all: [_; 2] = all.try_into().map_err(|_| "two walks")?;
    Ok(all)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let number = std::env::args().find_map(|it| it.parse().ok());
    let charts = number.unwrap_or(1000);
    println!("{charts} objects, a pass of three states\n");
    println!(
        "| what | statuses | finalizers | maps | time | objects/s |\n|---|---|---|---|---|---|"
    );
    let with_map = Charts::default();
    with_map.script.put_named("Provision", |name| {
        vec![Declared::dynamic(json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": { "name": name },
            "data": { "text": "x" },
        }))]
    });
    for (what, app, maps) in [
        ("three conditions", Charts::default(), 0),
        ("and a ConfigMap", with_map, charts),
    ] {
        let [(made, took), (again, restarted)] = walk(charts, app).await?;
        for (what, written, took) in [
            (what.to_owned(), &made, took),
            (format!("{what}, after a restart"), &again, restarted),
        ] {
            let Written {
                statuses,
                finalizers,
                maps,
            } = written;
            let seconds = took.as_secs_f64();
            #[expect(
                clippy::cast_precision_loss,
                reason = "a rate, printed in whole numbers"
            )]
            let rate = charts as f64 / seconds;
            println!(
                "| {what} | {statuses} | {finalizers} | {maps} | {seconds:.1} s | {rate:.0} |"
            );
        }
        // Goals, checked where they are measured.
        let wanted = Written {
            statuses: charts,
            finalizers: charts,
            maps,
        };
        if made != wanted {
            return Err(format!("{what}: {made:?} instead of {wanted:?}").into());
        }
        let nothing = Written {
            statuses: 0,
            finalizers: 0,
            maps: 0,
        };
        if again != nothing {
            return Err(format!("{what}, after a restart: {again:?}").into());
        }
    }
    Ok(())
}
