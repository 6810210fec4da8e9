//! Runs the same random operations on a real kube-apiserver and on the test double, and compares their
//! answers and watch events.
//!
//! All operations follow from a seed, which is printed. `OKT_SEED` repeats a run. `OKT_OPERATIONS` sets the number of
//! operations, and `OKT_LANES` the number of namespaces in parallel. `OKT_KINDS` (e.g. `things,leases`) selects kinds,
//! and `OKT_SHOW` sets the number of kinds of divergences that are explained. For the first divergence of each kind,
//! the test prints the shortest history that leads to it.

mod bodies;
mod changes;
mod dice;
mod difference;
mod generator;
mod kinds;
mod lane;
mod model;
mod normal;
mod operation;
mod side;
mod values;
mod watches;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use kube::api::{DynamicObject, Patch, PatchParams};
use kube::core::discovery::ApiResource;
use kube::{Api, Client};
use okt_testing::{ApiServer, Kubernetes};

use crate::lane::{Lane, Outcome};

/// The maximum number of divergences in a thousand operations.
const BOUND: usize = 1;
/// The number of operations from which the bound is exact.
const LARGE: usize = 20_000;
/// The first seed of every run.
const FIXED: u64 = 20_260_101;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a real API server; run with --include-ignored"]
async fn the_double_answers_what_a_server_answers() {
    let started = Kubernetes::start_or_skip("the differential test").await;
    let Some(kubernetes) = started.expect("the real server starts") else {
        return;
    };
    let real = kubernetes.client();
    install(&real).await;
    let fresh = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(1, |time| time.as_nanos());
    let fresh = u64::try_from(fresh % 1_000_000_007).expect("it is small");
    let seeds = match number("OKT_SEED") {
        Some(seed) => vec![seed],
        None => vec![FIXED, fresh],
    };
    let operations = number("OKT_OPERATIONS").unwrap_or(3000);
    let operations = usize::try_from(operations).expect("it is a number of operations");
    let mut bad = Vec::new();
    for seed in seeds {
        if !compare(&real, seed, operations).await {
            bad.push(seed);
        }
    }
    kubernetes.stop().await;
    assert!(
        bad.is_empty(),
        "more than {BOUND} in 1,000 operations differ with the seeds {bad:?}"
    );
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// Prints even if tests are silent, because the result is useful for a passing test, too.
fn print(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Creates the CRDs and waits until they are served.
async fn install(client: &Client) {
    let resource = ApiResource::erase::<k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition>(&());
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    for crd in kinds::crds() {
        let crd: DynamicObject = serde_json::from_value(crd).expect("it is an object");
        // On a shared server, the CRDs may exist from the last run.
        let name = crd.metadata.name.clone().expect("it has a name");
        let params = PatchParams::apply("differential").force();
        let applied = api.patch(&name, &params, &Patch::Apply(&crd)).await;
        applied.expect("the CRD is right");
    }
    for kind in kinds::all() {
        let path = kind.path("default");
        let mut served = false;
        for _ in 0..12_000 {
            let request = http::Request::get(path.as_str())
                .body(Vec::new())
                .expect("it is well formed");
            if client.request::<serde_json::Value>(request).await.is_ok() {
                served = true;
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert!(served, "{path} is served");
    }
}

/// Runs with a seed; returns whether the servers agree well enough.
async fn compare(real: &Client, seed: u64, operations: usize) -> bool {
    let lanes = usize::try_from(number("OKT_LANES").unwrap_or(4))
        .unwrap_or(4)
        .max(1);
    let begun = Instant::now();
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |time| time.as_millis());
    let mut tasks = Vec::new();
    for number in 0..lanes {
        let double = ApiServer::new().client();
        let namespace = format!("differential{}lane{number}", now % 100_000_000);
        let mut lane = Lane::new(number, seed, namespace, real.clone(), double.clone());
        let share = operations / lanes + usize::from(number < operations % lanes);
        tasks.push(tokio::spawn(async move {
            install(&double).await;
            lane.prepare().await;
            lane.run(share).await;
            lane
        }));
    }
    let mut all = Outcome::default();
    let mut finished = Vec::new();
    for task in tasks {
        let mut lane = task.await.expect("the lane comes to its end");
        let outcome = std::mem::take(&mut lane.outcome);
        all.operations += outcome.operations;
        all.divergences.extend(outcome.divergences);
        for (reason, count) in outcome.known {
            *all.known.entry(reason).or_default() += count;
        }
        for (verb, count) in outcome.verbs {
            *all.verbs.entry(verb).or_default() += count;
        }
        finished.push(lane);
    }
    report(seed, &all, begun.elapsed(), &mut finished).await
}

async fn report(seed: u64, all: &Outcome, took: Duration, lanes: &mut [Lane]) -> bool {
    let mut by_kind = BTreeMap::<&str, usize>::new();
    for divergence in &all.divergences {
        *by_kind.entry(&divergence.kind).or_default() += 1;
    }
    let show = number("OKT_SHOW").map_or(12, |show| usize::try_from(show).unwrap_or(12));
    let mut shown = BTreeSet::new();
    for divergence in &all.divergences {
        if shown.len() >= show || !shown.insert(&divergence.kind) {
            continue;
        }
        print(&format!(
            "\nseed {seed}, lane {}, operation {}: {}\n  {}",
            divergence.lane, divergence.number, divergence.kind, divergence.operation
        ));
        for (path, left, right) in divergence.spots.iter().take(12) {
            print(&format!(
                "  {path}\n    server: {left}\n    double: {right}"
            ));
        }
        let shortest = lanes[divergence.lane].shrink(&divergence.history).await;
        print("  after:");
        for operation in &shortest {
            print(&format!("    {operation}"));
        }
    }
    for (verb, count) in &all.verbs {
        print(&format!("  {count:6} {verb}"));
    }
    for (reason, count) in &all.known {
        print(&format!("  {count:6} known: {reason}"));
    }
    let count = all.divergences.len();
    let kinds: Vec<_> = by_kind
        .iter()
        .map(|(kind, count)| format!("{count} {kind}"))
        .collect();
    let kinds = if kinds.is_empty() {
        "none".to_owned()
    } else {
        kinds.join("; ")
    };
    let thousandths = count * 100_000 / all.operations.max(1);
    print(&format!(
        "seed {seed}: {} operations in {:.1} s, {count} divergences ({}.{:02} in 1,000), by kind: {kinds}",
        all.operations,
        took.as_secs_f64(),
        thousandths / 100,
        thousandths % 100,
    ));
    count <= allowed(all.operations)
}

/// Returns the maximum number of divergences. A small sample may exceed the rate of the bound by chance: by three
/// standard deviations.
fn allowed(operations: usize) -> usize {
    let expected = operations * BOUND / 1000;
    if operations < LARGE {
        expected + 3 * expected.isqrt()
    } else {
        expected
    }
}
