//! Three replicas that share the leaflets, on a server that filters by ranges, and random faults.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::time::Duration;

use kube::api::ListParams;
use okt_examples::dice::Dice;
use okt_testing::{FeatureGate, Kubernetes};
use rustix::process::Signal;
use tokio::time::{Instant, sleep};

use crate::replica::Replica;
use crate::{LEAFLETS, STAGE, Scene, reprinted, until};

/// How long faults happen; `OKT_CHAOS_SECONDS` sets another time.
const SECONDS: u64 = 90;

/// The length of a lease while faults happen: short, so that many leases end.
const SHORT_LEASE: u64 = 3;

/// The length of a lease by default, for the measured hand-overs.
const USUAL_LEASE: u64 = 15;

/// How often each hand-over is measured; `OKT_HAND_OVERS` sets another number. The fastest is judged.
const HAND_OVERS: usize = 2;

pub(crate) const NAMES: [&str; 3] = ["first", "second", "third"];

pub(crate) fn number<T: std::str::FromStr>(variable: &str, usual: T) -> T {
    let value = std::env::var(variable).ok();
    value.and_then(|value| value.parse().ok()).unwrap_or(usual)
}

/// Replicas that share the leaflets.
struct Group<'a> {
    scene: &'a Scene,
    lease: u64,
    shards: &'static str,
    replicas: Vec<Replica>,
}

impl<'a> Group<'a> {
    async fn start(scene: &'a Scene, lease: u64, shards: &'static str) -> Self {
        let mut group = Self {
            scene,
            lease,
            shards,
            replicas: Vec::new(),
        };
        for name in NAMES {
            let replica = group.replica(name);
            group.replicas.push(replica);
        }
        group.covers("at the start").await;
        group
    }

    fn replica(&self, name: &'static str) -> Replica {
        let press = format!("http://{}", self.scene.press.address);
        let kubeconfig = self.scene.kubernetes.kubeconfig();
        Replica::start_with(name, kubeconfig, &press, self.shards, self.lease)
    }

    /// Waits until the replicas act on all ranges together; returns how long that took.
    async fn covers(&self, when: &str) -> Duration {
        let begun = Instant::now();
        until(&format!("all ranges are held {when}"), async || {
            let held: usize = self.replicas.iter().map(Replica::ranges).sum();
            (held == 64).then_some(())
        })
        .await;
        begun.elapsed()
    }

    /// Ends a replica that acts on something by a signal, without starting another one; returns how long its ranges had
    /// no holder, and its name.
    async fn end_one(&mut self, signal: Signal) -> (Duration, &'static str) {
        let acts = self
            .replicas
            .iter()
            .position(|replica| replica.ranges() > 0);
        let mut ended = self.replicas.remove(acts.expect("one acts"));
        ended.signal(signal);
        (self.covers("by the others").await, {
            ended.end().await;
            ended.name
        })
    }
}

#[tokio::test]
#[ignore = "needs a real API server; run with --include-ignored"]
async fn whatever_happens_to_three_replicas_each_job_is_done_once() {
    let _stage = STAGE.lock().await;
    let server = Kubernetes::options().feature_gate(FeatureGate::ShardedListAndWatch, true);
    let Some(mut scene) = Scene::set_on(server, "three replicas").await else {
        return;
    };
    let random = RandomState::new().build_hasher().finish();
    let seed = number("OKT_CHAOS_SEED", random);
    println!("again with OKT_CHAOS_SEED={seed}");
    let mut dice = Dice::new(seed);
    let time = Duration::from_secs(number("OKT_CHAOS_SECONDS", SECONDS));
    scene.create_leaflets().await;
    let mut replicas = Group::start(&scene, SHORT_LEASE, "auto").await.replicas;
    scene.all_settled().await;
    let (begun, mut rounds, mut faults) = (Instant::now(), 0, [0; 3]);
    let mut longest = Duration::ZERO;
    while begun.elapsed() < time {
        rounds += 1;
        scene.reprint(&format!("round-{rounds}")).await;
        for _ in 0..3 {
            sleep(dice.millis(200, 1600)).await;
            let victim = *dice.pick(&[0, 1, 2]).unwrap();
            let fault = dice.between(0, 8);
            if fault <= 3 {
                let mut ended = replicas.remove(victim);
                let is_kill = fault < 2;
                ended.signal(if is_kill { Signal::KILL } else { Signal::TERM });
                ended.end().await;
                let group = Group {
                    scene: &scene,
                    lease: SHORT_LEASE,
                    shards: "auto",
                    replicas: Vec::new(),
                };
                replicas.push(group.replica(ended.name));
                faults[usize::from(!is_kill)] += 1;
            } else {
                // Shorter and longer than a lease is trusted.
                replicas[victim].signal(Signal::STOP);
                sleep(dice.millis(300, 6200)).await;
                replicas[victim].signal(Signal::CONT);
                faults[2] += 1;
            }
        }
        let last = Instant::now();
        scene.all_settled().await;
        longest = longest.max(last.elapsed());
    }
    let [kills, stops, paused] = faults;
    println!("{LEAFLETS} leaflets, {rounds} rounds: {kills} kills, {stops} stops, {paused} pauses");
    println!(
        "at most {longest:.1?} from the last fault of a round until all leaflets were settled"
    );
    scene.judge("three replicas", |_| reprinted(rounds)).await;
    // A restarted server cannot show every version, so from here on only the press tells what was done.
    scene.record.end();
    for _ in 0..2 {
        rounds += 1;
        scene.reprint(&format!("round-{rounds}")).await;
        sleep(dice.millis(0, 900)).await;
        scene.kubernetes.kill().unwrap();
        sleep(dice.millis(0, 2900)).await;
        scene.kubernetes.restart().await.unwrap();
        scene.all_settled().await;
    }
    // Every leaflet went along its edges, with one transition for each.
    let all = scene.leaflets.list(&ListParams::default()).await.unwrap();
    for leaflet in all {
        let position = leaflet.status.unwrap().lifecycle.unwrap();
        let expected = u64::try_from(reprinted(rounds).len()).unwrap();
        assert_eq!((position.transition, position.jumps), (expected, 0));
    }
    let mut done: Vec<String> = scene.press.done().into_iter().map(|done| done.id).collect();
    done.sort();
    done.dedup();
    assert_eq!(
        done.len(),
        scene.press.done().len(),
        "each job is done once"
    );
    assert_eq!(done.len(), LEAFLETS * (2 + rounds));
    assert_eq!(scene.press.overlaps(), 0);
    drop(replicas);
    scene.kubernetes.stop().await;
}

#[tokio::test]
#[ignore = "needs a real API server; run with --include-ignored"]
async fn a_stop_hands_over_before_the_lease_ends_and_a_kill_after_it() {
    let _stage = STAGE.lock().await;
    let Some(scene) = Scene::set("hand-overs").await else {
        return;
    };
    let times = number("OKT_HAND_OVERS", HAND_OVERS);
    println!("| hand-over, leases of {USUAL_LEASE} s | median | worst |\n|---|---|---|");
    for (shards, what) in [("1", "leader"), ("auto", "one of three shards")] {
        let mut group = Group::start(&scene, USUAL_LEASE, shards).await;
        for (signal, how) in [(Signal::TERM, "stops"), (Signal::KILL, "is killed")] {
            let mut took = Vec::new();
            for _ in 0..times {
                // The members must have been the same for a while, so that nothing else moves.
                sleep(Duration::from_secs(12)).await;
                group.covers("before").await;
                let (time, name) = group.end_one(signal).await;
                took.push(time);
                let again = group.replica(name);
                group.replicas.push(again);
            }
            took.sort();
            let (best, median, worst) = (took[0], took[took.len() / 2], took[took.len() - 1]);
            println!("| {what} {how} | {median:.2?} | {worst:.2?} |");
            // A busy machine adds to any of them, and takes from none.
            let is_handed_over = best < Duration::from_secs(USUAL_LEASE) / 2;
            assert_eq!(
                is_handed_over,
                signal == Signal::TERM,
                "{what} {how}: {best:?}"
            );
        }
        for mut replica in group.replicas {
            replica.signal(Signal::TERM);
            replica.end().await;
        }
    }
    scene.kubernetes.stop().await;
}
