//! Replicas of operators on a real API server: they are killed, suspended, shut down, cut off, and the server restarts.
//!
//! Whatever happens: every leaflet reaches its desired state, each of its jobs is done once, each
//! transition follows a declared edge, and every status keeps the rules of conditions.

mod admitted;
mod chaos;
mod link;
mod press;
mod record;
mod replica;
mod roll_out;
mod tents;
mod upgrade;

use std::time::{Duration, SystemTime};

use futures::StreamExt;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::runtime::wait::{await_condition, conditions};
use kube::{Api, CustomResourceExt};
use okt_examples::leaflets::{Leaflet, LeafletState};
use okt_testing::{Kubernetes, KubernetesOptions};
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::link::Link;
use crate::press::Press;
use crate::record::Record;
use crate::replica::Replica;

/// How long a lease is valid, in seconds.
const LEASE_SECONDS: u64 = 10;
/// How many leaflets there are.
const LEAFLETS: usize = 40;
/// The longest wait for something that takes seconds.
const LIMIT: Duration = Duration::from_mins(10);

/// How many steps a replica may be in when it is stopped or cut off; it finishes them.
const STEPS: usize = 2;

/// One scene at a time, so that the measured replicas have the machine to themselves.
static STAGE: Mutex<()> = Mutex::const_new(());

/// Waits until there is a value, and returns it.
async fn until<T>(what: &str, mut something: impl AsyncFnMut() -> Option<T>) -> T {
    in_time(what, async {
        loop {
            if let Some(thing) = something().await {
                return thing;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await
}

/// Waits for something that processes do; what waits in vain fails.
async fn in_time<T>(what: &str, waited: impl Future<Output = T>) -> T {
    let waited = tokio::time::timeout(LIMIT, Box::pin(waited)).await;
    waited.unwrap_or_else(|_| panic!("waited in vain until {what}"))
}

/// Shows the logs of the replicas with `RUST_LOG=leader=debug`.
fn show_logs() {
    let _ = tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::from_default_env())
        .with_test_writer()
        .try_init();
}

/// An API server, a press, and a record of all events.
struct Scene {
    kubernetes: Kubernetes,
    press: Press,
    leaflets: Api<Leaflet>,
    record: Record,
}

impl Scene {
    /// Creates a scene; returns `None` where no API server can run.
    async fn set(what: &str) -> Option<Self> {
        Self::set_on(Kubernetes::options(), what).await
    }

    /// Creates a scene on a server with these options.
    async fn set_on(server: KubernetesOptions, what: &str) -> Option<Self> {
        show_logs();
        let kubernetes = server.start_or_skip(what).await.unwrap()?;
        let client = kubernetes.client();
        let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
        let crd = okt::crd::<Leaflet>().unwrap();
        crds.create(&PostParams::default(), &crd).await.unwrap();
        let established = conditions::is_crd_established();
        let established = await_condition(crds, Leaflet::crd_name(), established);
        in_time("the definition is established", established)
            .await
            .unwrap();
        Some(Self {
            press: Press::open().await,
            leaflets: Api::default_namespaced(client.clone()),
            record: Record::begin(client).await,
            kubernetes,
        })
    }

    fn replica(&self, name: &'static str) -> Replica {
        let press = format!("http://{}", self.press.address);
        Replica::start(name, self.kubernetes.kubeconfig(), &press)
    }

    /// Starts two replicas, of which the first leads.
    async fn two_replicas(&self) -> (Replica, Replica) {
        let leader = self.replica("first");
        let start = Instant::now();
        leader.leads(start).await;
        (leader, self.replica("second"))
    }

    async fn create_leaflets(&self) {
        for number in 0..LEAFLETS {
            let spec = json!({
                "apiVersion": "demo.okt.dev/v1",
                "kind": "Leaflet",
                "metadata": { "name": name(number) },
                "spec": { "text": "The sea is rising." },
            });
            let leaflet = serde_json::from_value(spec).unwrap();
            (self.leaflets.create(&PostParams::default(), &leaflet).await).unwrap();
        }
    }

    /// Changes the lifecycle field of the leaflets with these numbers.
    async fn ask_for(&self, numbers: impl Iterator<Item = usize>, lifecycle: Value) {
        let desired = Patch::Merge(json!({ "spec": { "lifecycle": lifecycle } }));
        // Several at once, so that the jobs of many are at work together.
        let ask = async |number: usize| {
            let params = PatchParams::default();
            (self.leaflets.patch(&name(number), &params, &desired).await).unwrap();
        };
        futures::stream::iter(numbers)
            .for_each_concurrent(8, ask)
            .await;
    }

    /// Requests a reprint of all leaflets.
    async fn reprint(&self, request: &str) {
        let visit = json!({ "visit": { "state": "Reprinting", "request": request } });
        self.ask_for(0..LEAFLETS, visit).await;
    }

    /// Waits until the press has done some jobs and works on others.
    async fn middle_of_work(&self, done: usize) {
        until("the press is in the middle of its work", async || {
            (self.press.done().len() >= done && self.press.at_work() > 0).then_some(())
        })
        .await;
    }

    /// Checks that a replica has begun nothing since a time, in milliseconds since 1970, but the steps that it was in.
    /// Returns their number.
    fn began_nothing(&self, replica: &Replica, since: u128) -> usize {
        let mut asked = self.press.asked_by(replica.name);
        asked.retain(|asked| asked.job.begun >= since);
        assert!(asked.len() <= STEPS, "{asked:?}");
        asked.len()
    }

    /// Waits until a replica sends a job request after a time.
    async fn first_job_of(&self, replica: &Replica, after: Instant) -> Instant {
        until("the other replica has work done", async || {
            let asked = self.press.asked_by(replica.name);
            asked
                .iter()
                .map(|asked| asked.at)
                .find(|asked| *asked >= after)
        })
        .await
    }

    /// Waits until all leaflets are in their desired states.
    async fn all_settled(&self) {
        until("all leaflets are where they should be", async || {
            // A list of all leaflets is expensive.
            tokio::time::sleep(Duration::from_millis(100)).await;
            let all = self.leaflets.list(&ListParams::default()).await.ok()?;
            (all.items.len() == LEAFLETS && all.items.iter().all(is_settled)).then_some(())
        })
        .await;
    }

    /// Checks everything that must hold; `way` returns the expected states of a leaflet.
    async fn judge(&self, what: &str, way: impl Fn(usize) -> Vec<LeafletState>) {
        let expected = |number: usize| -> Vec<String> {
            let states = way(number).into_iter();
            states.map(|state| format!("{state:?}")).collect()
        };
        // The last events may still be under way.
        let (histories, broken) = until("the record is complete", async || {
            let (histories, broken) = self.record.histories();
            let complete = (0..LEAFLETS).all(|number| {
                let history = histories.get(&name(number));
                history.is_some_and(|history| history.states.len() >= expected(number).len())
            });
            complete.then_some((histories, broken))
        })
        .await;
        assert!(broken.is_empty(), "{}", broken.join("\n"));
        let (mut jobs, mut writes) = (Vec::new(), 0);
        for number in 0..LEAFLETS {
            let history = &histories[&name(number)];
            assert_eq!(
                history.states,
                expected(number),
                "the states of {}",
                name(number)
            );
            writes += history.writes;
            for (index, state) in history.states.iter().enumerate() {
                if !matches!(state.as_str(), "Printed" | "Pulped") {
                    jobs.push((format!("{}/{}", history.uid, index + 1), state.clone()));
                }
            }
        }
        // Each transition has one id, each id one job, and each job was done once.
        let done = self.press.done().into_iter();
        let plain = |id: String| id.split('@').next().unwrap_or_default().to_owned();
        let mut done: Vec<_> = (done.map(|done| (plain(done.id), done.job.work))).collect();
        done.sort();
        jobs.sort();
        assert_eq!(done, jobs);
        for asked in self.press.asked() {
            let asked = (plain(asked.id), asked.job.work);
            assert!(
                jobs.contains(&asked),
                "no transition needs this job: {asked:?}"
            );
        }
        assert_eq!(self.press.overlaps(), 0);
        let asked = self.press.asked().len();
        println!(
            "{what}: {} jobs done, each once, asked for {asked} times; {writes} writes of statuses, no rule broken",
            jobs.len(),
        );
    }
}

fn name(number: usize) -> String {
    format!("leaflet-{number:02}")
}

fn is_settled(leaflet: &Leaflet) -> bool {
    let Some(status) = &leaflet.status else {
        return false;
    };
    let wanted = leaflet.spec.lifecycle.visit.as_ref();
    let visited = status.lifecycle.as_ref().is_some_and(|position| {
        let visit = position.visit.as_ref();
        wanted.is_none_or(|wanted| {
            let visit = visit.and_then(|visit| serde_json::to_value(visit).ok());
            let asked = serde_json::to_value(wanted).unwrap();
            visit.is_some_and(|visit| {
                visit["request"] == asked["request"] && visit["outcome"] == "Reached"
            })
        })
    });
    let ready = (status.conditions.iter()).any(|condition| {
        condition.type_ == "Ready"
            && condition.status == "True"
            && condition.observed_generation == leaflet.metadata.generation
    });
    visited && ready
}

fn milliseconds_since_1970() -> u128 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.unwrap().as_millis()
}

/// Returns the states of a leaflet that was reprinted this often.
fn reprinted(times: usize) -> Vec<LeafletState> {
    use LeafletState::{Printed, Printing, Reprinting, Typesetting};
    let mut way = vec![Typesetting, Printing, Printed];
    for _ in 0..times {
        way.extend([Reprinting, Printed]);
    }
    way
}

fn seconds(from: Instant, to: Instant) -> String {
    format!("{:.2} s", to.duration_since(from).as_secs_f64())
}

#[tokio::test]
#[ignore = "needs a real API server; run with --include-ignored"]
async fn a_killed_leader_is_replaced_and_nothing_is_done_twice() {
    let _stage = STAGE.lock().await;
    let Some(scene) = Scene::set("a killed leader").await else {
        return;
    };
    let (mut leader, other) = scene.two_replicas().await;
    scene.create_leaflets().await;
    scene.middle_of_work(LEAFLETS / 2).await;
    leader.signal(Signal::KILL);
    let killed = Instant::now();
    leader.end().await;
    // The desired states change while no replica leads.
    scene
        .ask_for(0..LEAFLETS / 2, json!({ "state": "Pulped" }))
        .await;
    let leads = other.leads(killed).await;
    let works = scene.first_job_of(&other, killed).await;
    scene.all_settled().await;
    println!(
        "killed: the other leads after {}, works after {} (a lease of {LEASE_SECONDS} s)",
        seconds(killed, leads),
        seconds(killed, works),
    );
    let way = |number| {
        let mut way = reprinted(0);
        if number < LEAFLETS / 2 {
            way.extend([LeafletState::Pulping, LeafletState::Pulped]);
        }
        way
    };
    scene.judge("killed", way).await;
    scene.kubernetes.stop().await;
}

#[tokio::test]
#[ignore = "needs a real API server; run with --include-ignored"]
async fn a_leader_that_shuts_down_hands_over_at_once() {
    let _stage = STAGE.lock().await;
    let Some(scene) = Scene::set("a leader that is told to end").await else {
        return;
    };
    let (mut leader, other) = scene.two_replicas().await;
    scene.create_leaflets().await;
    scene.middle_of_work(LEAFLETS / 2).await;
    leader.signal(Signal::TERM);
    let signalled = Instant::now();
    assert!(leader.end().await.success());
    let ended = Instant::now();
    let leads = other.leads(signalled).await;
    let works = scene.first_job_of(&other, signalled).await;
    scene.all_settled().await;
    println!(
        "told to end: ended after {}; from then on the other leads after {}, works after {}",
        seconds(signalled, ended),
        seconds(ended, leads.max(ended)),
        seconds(ended, works.max(ended)),
    );
    scene.judge("told to end", |_| reprinted(0)).await;
    scene.kubernetes.stop().await;
}

#[tokio::test]
#[ignore = "needs a real API server; run with --include-ignored"]
async fn a_suspended_leader_begins_nothing_when_it_continues() {
    let _stage = STAGE.lock().await;
    let Some(scene) = Scene::set("a stopped leader").await else {
        return;
    };
    let (leader, mut other) = scene.two_replicas().await;
    scene.create_leaflets().await;
    scene.middle_of_work(LEAFLETS / 2).await;
    leader.signal(Signal::STOP);
    let stopped = Instant::now();
    let works = scene.first_job_of(&other, stopped).await;
    scene.all_settled().await;
    // It continues while the other replica is at work.
    scene.reprint("while-it-sleeps").await;
    scene.middle_of_work(2 * LEAFLETS + LEAFLETS / 4).await;
    let (waking, woken) = (milliseconds_since_1970(), Instant::now());
    leader.signal(Signal::CONT);
    let knows = leader.leads_no_longer(woken).await;
    scene.all_settled().await;
    let begun = scene.began_nothing(&leader, waking);
    let written = leader.lines("transition", woken);
    println!(
        "stopped: the other works after {}; awake, it knows after {}, asked for {begun} jobs, says {} transitions",
        seconds(stopped, works),
        seconds(woken, knows),
        written.len(),
    );
    // It works as before: it leads when the other replica is gone.
    leads_again(&scene, &leader, &mut other).await;
    scene.judge("stopped", |_| reprinted(2)).await;
    scene.kubernetes.stop().await;
}

/// Kills the other replica; the earlier leader leads again.
async fn leads_again(scene: &Scene, leader: &Replica, other: &mut Replica) {
    other.signal(Signal::KILL);
    let killed = Instant::now();
    other.end().await;
    scene.reprint("it-leads-again").await;
    leader.leads(killed).await;
    scene.all_settled().await;
}

#[tokio::test]
#[ignore = "needs a real API server; run with --include-ignored"]
async fn a_leader_that_is_cut_off_stops_leading_before_another_leads() {
    let _stage = STAGE.lock().await;
    let Some(scene) = Scene::set("a leader that is cut off").await else {
        return;
    };
    let link = Link::to(scene.kubernetes.kubeconfig()).await;
    let press = format!("http://{}", scene.press.address);
    let leader = Replica::start("first", &link.kubeconfig(), &press);
    let start = Instant::now();
    leader.leads(start).await;
    let mut other = scene.replica("second");
    scene.create_leaflets().await;
    scene.middle_of_work(LEAFLETS / 2).await;
    link.cut();
    let cut = Instant::now();
    let stands_back = leader.leads_no_longer(cut).await;
    let stood_back = milliseconds_since_1970();
    let leads = other.leads(cut).await;
    assert!(stands_back < leads, "two led at once");
    let works = scene.first_job_of(&other, cut).await;
    scene.all_settled().await;
    // The held-back data arrives while the other replica is at work.
    scene.reprint("while-it-is-cut-off").await;
    scene.middle_of_work(2 * LEAFLETS + LEAFLETS / 4).await;
    link.mend();
    scene.all_settled().await;
    let begun = scene.began_nothing(&leader, stood_back);
    println!(
        "cut off: it stands back after {}, the other leads after {}, works after {}; it asked for {begun} jobs since",
        seconds(cut, stands_back),
        seconds(cut, leads),
        seconds(cut, works),
    );
    leads_again(&scene, &leader, &mut other).await;
    scene.judge("cut off", |_| reprinted(2)).await;
    scene.kubernetes.stop().await;
}
