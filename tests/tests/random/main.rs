//! Random objects: whatever an object holds, the operator neither panics nor hangs nor loops.
//!
//! `OKT_SEED` repeats a run; `OKT_OBJECTS` sets the number of objects: by default 20,000 in CI, which take a minute,
//! otherwise 2,000. A run with another seed finds more than a longer one with the same.

mod object;

use std::collections::BTreeMap;
use std::num::NonZero;
use std::process::ExitCode;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use std::{env, panic, thread};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{ApiResource, DeleteParams, DynamicObject, PostParams};
use libtest_mimic::{Arguments, Failed, Trial};
use okt::{Monitoring, Operator};
use okt_testing::ApiServer;
use okt_tests::{Database, Databases, OPERATOR, Objects, Served, definition};
use proptest::collection::vec;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::{Value, json};

use crate::object::{Stranger, stranger};

/// The number of objects for one operator.
const BATCH: usize = 500;

/// The time for which an operator runs, in tokio time: forty observations of each object.
const WATCHED: Duration = Duration::from_mins(20);

/// The maximum number of requests about one object within that time.
///
/// The loop guard stops an object that loops, because its transition was set to the largest number, after two dozen
/// requests; one request with each observation would be forty.
const TOO_MANY: usize = 36;

/// The maximum number of series of metrics: the graph and the reasons bound them, whatever the objects hold.
const SERIES: usize = 2_000;

/// The metrics of all operators together.
static MONITORING: LazyLock<Monitoring> = LazyLock::new(Monitoring::new);

/// The number of panics in this process. OKT contains the panics of a reconciliation, so that nothing else would count
/// them.
static PANICS: AtomicUsize = AtomicUsize::new(0);

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let name = "random_objects_cause_no_panic_no_hang_and_no_loop";
    let test = Trial::test(name, || random_objects().map_err(Failed::from));
    libtest_mimic::run(&arguments, vec![test]).exit_code()
}

fn random_objects() -> Result<(), String> {
    let number = |name: &str, or: usize| match env::var(name) {
        Ok(text) => text
            .parse()
            .map_err(|error| format!("{name}={text}: {error}")),
        Err(_) => Ok(or),
    };
    let in_ci = env::var_os("CI").is_some();
    let objects = number("OKT_OBJECTS", if in_ci { 20_000 } else { 2_000 })?;
    let seed = number("OKT_SEED", 5)?;
    println!("{objects} random objects; OKT_SEED={seed} repeats them");
    let default = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        PANICS.fetch_add(1, Ordering::Relaxed);
        default(panic);
    }));
    // The content of a batch does not depend on the thread that takes it.
    let (next, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let work = || loop {
        let batch = next.fetch_add(1, Ordering::Relaxed);
        if batch >= objects.div_ceil(BATCH) {
            return Ok(());
        }
        let strangers = strangers(seed, batch);
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().start_paused(true).build();
        let requests = runtime.expect("a runtime").block_on(serve(&strangers));
        let requests = requests.map_err(|error| format!("batch {batch}: {error}"))?;
        most.fetch_max(requests, Ordering::Relaxed);
    };
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| {
            (worker.join()).unwrap_or_else(|_| Err("a batch panicked".to_owned()))
        })
    })?;
    println!("at most {} requests about one of them", most.into_inner());
    let text = MONITORING.metrics();
    let series = text.lines().filter(|line| !line.starts_with('#')).count();
    println!("{series} series of metrics");
    if series > SERIES {
        return Err(format!("{series} series of metrics\n{text}"));
    }
    Ok(())
}

/// Generates the strangers of one batch, the same for the same seed.
fn strangers(seed: usize, batch: usize) -> Vec<Stranger> {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    bytes[8..16].copy_from_slice(&batch.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let strangers = vec(stranger(), BATCH).new_tree(&mut runner);
    strangers.expect("nothing is filtered").current()
}

/// Runs one operator on many strangers and one valid object; returns the requests about the busiest stranger.
async fn serve(strangers: &[Stranger]) -> Result<usize, String> {
    let before = PANICS.load(Ordering::Relaxed);
    // A `Rig` would check the statuses of the strangers against the rules for an operator.
    let server = ApiServer::new();
    let definition = definition::with_schema::<Database>(definition::anything);
    let crds: Api<CustomResourceDefinition> = Api::all(server.client());
    crds.make(json!(&definition)).await;
    let api = Api::default_namespaced_with(server.client(), &ApiResource::erase::<Database>(&()));
    for (number, stranger) in strangers.iter().enumerate() {
        store(&api, &format!("stranger-{number}"), stranger).await;
    }
    let operator = Operator::new(server.client_named(OPERATOR), Databases::default());
    let operator = operator.monitoring(&MONITORING);
    let operator = tokio::spawn(operator.virtual_time().run(std::future::pending()));
    api.make(Databases::object("good", json!({}))).await;
    tokio::time::sleep(WATCHED).await;
    operator.abort();
    let panics = PANICS.load(Ordering::Relaxed) - before;
    if panics > 0 {
        return Err(format!("{panics} panics"));
    }
    let served = api.read("good").await;
    let state = served.data.pointer("/status/lifecycle/state");
    if state != Some(&json!("Running")) {
        return Err("the well-formed object is not served".to_owned());
    }
    let mut requests: BTreeMap<String, usize> = BTreeMap::new();
    for request in server.requests() {
        if let Some(name) = request.name.filter(|_| request.client == OPERATOR) {
            *requests.entry(name).or_default() += 1;
        }
    }
    let busiest = requests.into_iter().max_by_key(|(_, requests)| *requests);
    let (name, requests) = busiest.unwrap_or_default();
    if requests > TOO_MANY {
        let object = serde_json::to_value(api.get_opt(&name).await.ok()).unwrap_or_default();
        return Err(format!(
            "{requests} requests about {name}, which is now {object:#}"
        ));
    }
    Ok(requests)
}

/// Writes a stranger in a way that no check refuses.
async fn store(api: &Api<DynamicObject>, name: &str, stranger: &Stranger) {
    let mut object = json!({
        "apiVersion": "demo.okt.dev/v1",
        "kind": "Database",
        "metadata": {
            "name": name,
            "annotations": stranger.annotations,
            "finalizers": stranger.finalizers,
        },
    });
    if let Some(spec) = &stranger.spec {
        object["spec"] = spec.clone();
    }
    let object = serde_json::from_value(object).expect("an object");
    let created = api.create(&PostParams::default(), &object).await;
    let mut stored = created.expect("it is accepted");
    if let (Some(status), Value::Object(data)) = (&stranger.status, &mut stored.data) {
        data.insert("status".to_owned(), status.clone());
        (api.replace_status(name, &PostParams::default(), &stored)
            .await)
            .expect("the status is accepted");
    }
    if stranger.deleted {
        (api.delete(name, &DeleteParams::default()).await).expect("the deletion is accepted");
    }
}
