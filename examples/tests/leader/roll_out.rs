//! Roll-outs with a limit of three by three replicas that are killed, stopped and suspended.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::runtime::wait::{await_condition, conditions};
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, CustomResourceExt, ResourceExt};
use okt_examples::dice::Dice;
use okt_examples::fleet::{Shop, ShopState};
use okt_testing::Kubernetes;
use okt_testing::controllers::deployment_controller;
use parking_lot::Mutex;
use rustix::process::Signal;
use serde_json::json;
use tokio::process::Command;
use tokio::time::{Instant, sleep};

use crate::chaos::{NAMES, number};
use crate::replica::Replica;
use crate::{STAGE, in_time, until};

/// How many shops may be upgraded at a time.
const PLACES: usize = 3;

/// How many shops there are; `OKT_SHOPS` sets another number.
const SHOPS: usize = 12;

/// How long faults happen; `OKT_CHAOS_SECONDS` sets another time.
const SECONDS: u64 = 30;

/// What is seen from outside, at every version of every shop.
#[derive(Default)]
struct Seen {
    inside: BTreeSet<String>,
    waiting: BTreeSet<String>,
    most: usize,
    stays: usize,
    /// Since when a place is free for which a shop waits.
    free_since: Option<Instant>,
    longest_free: Duration,
    lists: usize,
    table_versions: BTreeSet<String>,
}

impl Seen {
    fn shop(&mut self, shop: &Shop) {
        let name = shop.name_any();
        let position = shop.status.as_ref().and_then(|it| it.lifecycle.as_ref());
        let state = position.and_then(|it| it.state.known());
        let is_inside = matches!(state, Some(ShopState::Upgrading | ShopState::Failed));
        let waits = position.is_some_and(|it| it.waiting.is_some());
        let (now, entered) = (Instant::now(), is_inside && !self.inside.contains(&name));
        set(&mut self.inside, &name, is_inside);
        set(&mut self.waiting, &name, waits);
        self.most = self.most.max(self.inside.len());
        self.stays += usize::from(entered);
        if entered && let Some(since) = self.free_since.take() {
            self.longest_free = self.longest_free.max(now.duration_since(since));
        }
        let is_free = self.inside.len() < PLACES && !self.waiting.is_empty();
        self.free_since = is_free.then(|| self.free_since.unwrap_or(now));
    }
}

impl Seen {
    /// Returns how long a place was free at most, the stays and the writes of the table so far; the first is counted anew.
    fn after_the_faults(&mut self) -> (Duration, usize, usize) {
        self.free_since = None;
        let longest = std::mem::take(&mut self.longest_free);
        (longest, self.stays, self.table_versions.len())
    }
}

fn set(all: &mut BTreeSet<String>, name: &str, has: bool) {
    if has {
        all.insert(name.to_owned());
    } else {
        all.remove(name);
    }
}

/// Watches the shops and the table of the limit.
fn watch(client: &Client) -> Arc<Mutex<Seen>> {
    let seen = Arc::new(Mutex::new(Seen::default()));
    let shops: Api<Shop> = Api::default_namespaced(client.clone());
    let noted = Arc::clone(&seen);
    tokio::spawn(async move {
        let mut events = watcher(shops, watcher::Config::default()).boxed();
        while let Some(event) = events.next().await {
            let mut seen = noted.lock();
            match event {
                Ok(Event::Init) => seen.lists += 1,
                Ok(Event::InitApply(shop) | Event::Apply(shop)) => seen.shop(&shop),
                Ok(Event::Delete(_) | Event::InitDone) | Err(_) => {}
            }
        }
    });
    let tables: Api<Lease> = Api::default_namespaced(client.clone());
    let noted = Arc::clone(&seen);
    tokio::spawn(async move {
        let config = watcher::Config::default().labels("okt.dev/places-of-group");
        let mut events = watcher(tables, config).boxed();
        while let Some(event) = events.next().await {
            if let Ok(Event::InitApply(table) | Event::Apply(table)) = event {
                let version = table.resource_version().unwrap_or_default();
                noted.lock().table_versions.insert(version);
            }
        }
    });
    seen
}

/// The shops, and three replicas of their operator.
struct Fleet {
    kubernetes: Kubernetes,
    shops: Api<Shop>,
    count: usize,
    replicas: Vec<Replica>,
}

impl Fleet {
    fn start(&mut self, name: &'static str) {
        let mut program = Command::new(env!("CARGO_BIN_EXE_fleet"));
        program
            .args(["run", "--places", &PLACES.to_string(), "--leader-election"])
            .args(["--lease-duration", "3s", "--shards", "auto"]);
        let kubeconfig = self.kubernetes.kubeconfig();
        self.replicas
            .push(Replica::start_program(name, kubeconfig, program));
    }

    /// Gives all shops another memory.
    async fn roll_out(&self, memory: &str) {
        for number in 0..self.count {
            let changed = Patch::Merge(json!({ "spec": { "memory": memory } }));
            let name = format!("shop-{number:02}");
            let parameters = PatchParams::default();
            let changed = self.shops.patch(&name, &parameters, &changed).await;
            changed.expect("it is accepted");
        }
    }

    /// Waits until all shops run as their specs say.
    async fn all_run(&self) {
        until("all shops run", async || {
            sleep(Duration::from_millis(200)).await;
            let all = self.shops.list(&ListParams::default()).await.ok()?.items;
            let runs = |shop: &Shop| {
                let status = shop.status.as_ref();
                let position = status.and_then(|it| it.lifecycle.as_ref());
                let state = position.and_then(|it| it.state.known());
                let ready = status.into_iter().flat_map(|it| &it.conditions).any(|it| {
                    it.type_ == "Ready"
                        && it.status == "True"
                        && it.observed_generation == shop.metadata.generation
                });
                ready && state == Some(ShopState::Running)
            };
            (all.len() == self.count && all.iter().all(runs)).then_some(())
        })
        .await;
    }

    /// Kills, stops or suspends a replica. Returns which of these.
    async fn fault(&mut self, dice: &mut Dice) -> usize {
        let victim = *dice.pick(&[0, 1, 2]).expect("one");
        let fault = dice.between(0, 8);
        if fault > 3 {
            // Shorter and longer than a lease is trusted.
            self.replicas[victim].signal(Signal::STOP);
            sleep(dice.millis(300, 9000)).await;
            self.replicas[victim].signal(Signal::CONT);
            return 2;
        }
        let mut ended = self.replicas.remove(victim);
        let is_kill = fault < 2;
        ended.signal(if is_kill { Signal::KILL } else { Signal::TERM });
        ended.end().await;
        self.start(ended.name);
        usize::from(!is_kill)
    }
}

async fn fleet() -> Option<Fleet> {
    let kubernetes = Kubernetes::start_or_skip("roll-outs")
        .await
        .expect("a server")?;
    let client = kubernetes.client();
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    let crd = okt::crd::<Shop>().expect("a CRD");
    let made = crds.create(&PostParams::default(), &crd).await;
    made.expect("it is accepted");
    let established = await_condition(crds, Shop::crd_name(), conditions::is_crd_established());
    let established = in_time("the definition is established", established).await;
    established.expect("it is watched");
    let controller = deployment_controller().takes(Duration::from_secs(3));
    tokio::spawn(controller.run(client.clone()));
    let count = number("OKT_SHOPS", SHOPS);
    let mut fleet = Fleet {
        shops: Api::default_namespaced(client),
        kubernetes,
        count,
        replicas: Vec::new(),
    };
    for number in 0..count {
        let shop = json!({
            "apiVersion": "demo.okt.dev/v1", "kind": "Shop",
            "metadata": { "name": format!("shop-{number:02}") }, "spec": { "memory": "1Mi" },
        });
        let shop = serde_json::from_value(shop).expect("a shop");
        let made = fleet.shops.create(&PostParams::default(), &shop).await;
        made.expect("it is accepted");
    }
    for name in NAMES {
        fleet.start(name);
    }
    fleet.all_run().await;
    Some(fleet)
}

#[tokio::test]
#[ignore = "needs a real API server; run with --include-ignored"]
async fn whatever_happens_to_three_replicas_no_more_than_three_shops_are_upgraded_at_a_time() {
    let _stage = STAGE.lock().await;
    let Some(mut fleet) = fleet().await else {
        return;
    };
    let seed = number("OKT_CHAOS_SEED", RandomState::new().build_hasher().finish());
    println!("again with OKT_CHAOS_SEED={seed}");
    let mut dice = Dice::new(seed);
    let time = Duration::from_secs(number("OKT_CHAOS_SECONDS", SECONDS));
    let seen = watch(&fleet.kubernetes.client());
    let (begun, mut rounds, mut faults) = (Instant::now(), 1, BTreeMap::new());
    while begun.elapsed() < time {
        rounds += 1;
        fleet.roll_out(&format!("{rounds}Mi")).await;
        for _ in 0..12 {
            sleep(dice.millis(200, 4000)).await;
            *faults.entry(fleet.fault(&mut dice).await).or_insert(0) += 1;
        }
        fleet.all_run().await;
    }
    // Nothing happens any more: a place that was lost would keep shops out.
    let (longest_with_faults, stays, writes) = seen.lock().after_the_faults();
    rounds += 1;
    fleet.roll_out(&format!("{rounds}Mi")).await;
    fleet.all_run().await;
    let seen = seen.lock();
    println!(
        "{} shops, {} roll-outs: {} kills, {} stops, {} pauses; at most {} inside",
        fleet.count,
        rounds - 1,
        faults.get(&0).unwrap_or(&0),
        faults.get(&1).unwrap_or(&0),
        faults.get(&2).unwrap_or(&0),
        seen.most,
    );
    println!(
        "{stays} stays, {writes} writes of the table; of the last roll-out, without faults, {} and {}",
        seen.stays - stays,
        seen.table_versions.len() - writes,
    );
    println!(
        "a place for which a shop waited was free for at most {longest_with_faults:.1?}, without faults {:.1?}",
        seen.longest_free
    );
    assert_eq!(seen.lists, 1, "the watch has missed nothing");
    assert!(seen.most <= PLACES, "{} inside", seen.most);
    assert!(seen.stays >= fleet.count * (rounds - 1));
}
