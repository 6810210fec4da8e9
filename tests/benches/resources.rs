//! What 20 objects each of 500 cost in requests: declared to OKT, and by hand with get, create and update.
//!
//! Both on the double, in one run; requests are counted by the server. Two words choose other numbers.

use std::error::Error;
use std::time::{Duration, Instant};

use futures::{StreamExt, stream};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, CustomResource, ResourceExt};
use okt_runtime::{
    Action, Application, Context, Desired, Failure, LifecycleSpec, Operator, Resources, Status,
    Watches, crd, lifecycle_graph,
};
use okt_testing::{ApiServer, Mark};
use okt_tests::rest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::task::JoinHandle;

/// Whose requests are counted.
const COUNTED: &str = "counted";

/// The life of a rack.
#[lifecycle_graph]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RackState {
    /// It stands.
    #[entry]
    #[rest(idle)]
    #[child(Gone)]
    Standing,

    /// No more.
    #[leaf(idle)]
    Gone,
}

/// What a user asks for.
#[derive(CustomResource, LifecycleSpec, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "demo.okt.dev",
    version = "v1",
    kind = "Rack",
    namespaced,
    status = "Status<RackState>"
)]
pub struct RackSpec {
    /// Where it should be in its life.
    #[serde(default)]
    pub lifecycle: Desired<RackState>,
    /// What the first of its boxes holds.
    pub text: String,
}

/// The boxes of a rack: the first one holds what the spec says.
fn boxes(rack: &Rack, count: usize) -> impl Iterator<Item = ConfigMap> {
    (0..count).map(move |number| {
        let text = if number == 0 { &*rack.spec.text } else { "" };
        serde_json::from_value(json!({
            "metadata": { "name": format!("{}-{number}", rack.name_any()), "namespace": rack.namespace() },
            "data": { "text": text, "number": number.to_string() },
        }))
        .expect("a map")
    })
}

struct Racks(usize);

impl RackStateHandler for Racks {
    type Context = Action<Rack>;
    type Error = Failure;
}

impl Application for Racks {
    type Resource = Rack;

    fn watches(watches: Watches<Rack>) -> Watches<Rack> {
        watches.owns::<ConfigMap>()
    }

    async fn resources(&self, cx: &Context<Rack>, _: RackState) -> Result<Resources, Failure> {
        let boxes = boxes(cx.object(), self.0);
        Ok(boxes.fold(Resources::new(), Resources::apply))
    }
}

/// A server with racks, and nobody who cares for them.
async fn hall(racks: usize) -> Result<ApiServer, Box<dyn Error>> {
    let server = ApiServer::new();
    let crds = Api::all(server.client());
    crds.create(&PostParams::default(), &crd::<Rack>()?).await?;
    let api: Api<Rack> = Api::default_namespaced(server.client());
    for number in 0..racks {
        let spec = RackSpec {
            lifecycle: Desired::default(),
            text: "x".to_owned(),
        };
        let rack = Rack::new(&format!("rack-{number}"), spec);
        api.create(&PostParams::default(), &rack).await?;
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

/// What was asked about maps since, as reads and writes, and how long that took.
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

fn run(server: &ApiServer, count: usize) -> JoinHandle<()> {
    let operator = Operator::new(server.client_named(COUNTED), Racks(count));
    tokio::spawn(async move {
        if let Err(error) = operator.run(std::future::pending()).await {
            eprintln!("the operator ended: {error}");
        }
    })
}

async fn with_okt(racks: usize, count: usize) -> Result<[Asked; 3], Box<dyn Error>> {
    let server = hall(racks).await?;
    let (mark, since) = (server.mark(), Instant::now());
    let operator = run(&server, count);
    let took = rest(&server, since).await;
    let made = Asked::since(&server, mark, took);
    operator.abort();
    // It ends by that.
    let _ = operator.await;
    let (mark, since) = (server.mark(), Instant::now());
    let operator = run(&server, count);
    let took = rest(&server, since).await;
    let again = Asked::since(&server, mark, took);
    let (mark, since) = (server.mark(), Instant::now());
    change(&server).await?;
    let took = rest(&server, since).await;
    let changed = Asked::since(&server, mark, took);
    operator.abort();
    Ok([made, again, changed])
}

/// One reconciliation as it is often written: get each, create it or update it where it differs.
async fn reconcile(client: &Client, rack: &Rack, count: usize) -> Result<(), kube::Error> {
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    for wanted in boxes(rack, count) {
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

async fn by_hand(racks: usize, count: usize) -> Result<[Asked; 3], Box<dyn Error>> {
    let server = hall(racks).await?;
    let client = server.client_named(COUNTED);
    let pass = async || {
        let (mark, since) = (server.mark(), Instant::now());
        let api: Api<Rack> = Api::default_namespaced(client.clone());
        let all = api.list(&ListParams::default()).await?;
        // As many at once as an operator of OKT has turns.
        let passes = stream::iter(&all).map(|rack| reconcile(&client, rack, count));
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

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let numbers: Vec<usize> = std::env::args().filter_map(|it| it.parse().ok()).collect();
    let (racks, count) = match numbers[..] {
        [racks, count, ..] => (racks, count),
        [racks] => (racks, 20),
        [] => (500, 20),
    };
    println!("{racks} objects with {count} ConfigMaps each\n");
    println!("| what | who | reads of maps | writes of maps | time |\n|---|---|---|---|---|");
    let (okt, hand) = (with_okt(racks, count).await?, by_hand(racks, count).await?);
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
    // Goals, checked where they are measured.
    let wanted = [(made, racks * count), (again, 0), (changed, racks)];
    for ((asked, writes), what) in wanted.into_iter().zip(whats) {
        if asked.writes != writes {
            return Err(format!("{what}: {} writes instead of {writes}", asked.writes).into());
        }
    }
    Ok(())
}
