//! Several replicas of an operator: one leads, or they share the objects.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU16;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, ListParams};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{CustomResourceExt, ResourceExt};
use okt::{Answer, Group, Membership, Operator, Shards};
use okt_testing::rehearsal::Rules;
use okt_testing::{Fault, FeatureGate, Injected, RequestRecord, Verb};
use okt_tests::{
    Barge, BargeState, Barges, DatabaseState::*, Databases, Kiosks, Log, Objects, Reply, Rig,
    Served, assert_within, numbered,
};
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

/// A cluster with replicas of an operator.
struct Fleet<A: Served = Databases> {
    rig: Rig<A>,
    replicas: BTreeMap<String, Replica>,
    /// How many attempts run at the same time in each replica.
    actions: usize,
    born: usize,
    known: BTreeSet<String>,
}

struct Replica {
    task: JoinHandle<()>,
    stop: oneshot::Sender<()>,
}

/// What a fleet does within this time, it does not do at all.
const LONG: Duration = Duration::from_mins(5);

impl<A: Served> Deref for Fleet<A> {
    type Target = Rig<A>;

    fn deref(&self) -> &Rig<A> {
        &self.rig
    }
}

impl<A: Served> Fleet<A> {
    /// Starts replicas, and waits until they are settled.
    async fn of_any(size: usize, shards: Shards) -> Self {
        let mut fleet = Self {
            rig: Rig::without_operator_of().await,
            replicas: BTreeMap::new(),
            actions: 4096,
            born: 0,
            known: BTreeSet::new(),
        };
        for _ in 0..size {
            fleet.start(shards);
        }
        sleep(Duration::from_mins(1)).await;
        fleet
    }

    /// Starts a replica; returns its name.
    fn start(&mut self, shards: Shards) -> String {
        self.born += 1;
        let name = format!("replica-{}", self.born);
        let client = self.rig.server.client_named(&name);
        let group = Group::new("databases", "default")
            .replica(&name)
            .shards(shards)
            .virtual_time();
        let (stop, stopped) = oneshot::channel::<()>();
        let (application, actions) = (self.rig.app.clone(), self.actions);
        let task = tokio::spawn(async move {
            let membership = Membership::join(client.clone(), group);
            let stopped = async {
                stopped.await.unwrap_or_default();
                membership.stop();
            };
            let operator = Operator::new(client, application)
                .virtual_time()
                .actions(actions);
            let ended = operator.replicas(&membership).run(stopped).await;
            membership.leave().await;
            ended.expect("the operator runs");
        });
        self.replicas.insert(name.clone(), Replica { task, stop });
        self.known.insert(name.clone());
        name
    }

    /// Kills a replica, as SIGKILL does.
    async fn kill(&mut self, name: &str) {
        let replica = self.replicas.remove(name).expect("it runs");
        replica.task.abort();
        let _ = replica.task.await;
    }

    /// Stops a replica, as SIGTERM does, and waits until it has ended.
    async fn stop(&mut self, name: &str) {
        let replica = self.replicas.remove(name).expect("it runs");
        replica.stop.send(()).expect("it runs");
        replica.task.await.expect("it ends well");
    }

    /// Lets no replica reach the API server.
    fn cut_off(&self) -> Vec<Injected> {
        let away = Fault::answer(503, "ServiceUnavailable", "away");
        let cut = |name: &String| self.rig.server.inject(away.clone().client(name));
        self.known.iter().map(cut).collect()
    }

    fn any_replica(&self) -> String {
        let name = self.replicas.keys().next();
        name.expect("a replica").clone()
    }

    fn leases(&self) -> Api<Lease> {
        self.of()
    }

    /// Returns the holder that the table names.
    async fn holder(&self) -> String {
        let table = self.leases().read("databases-ranges").await;
        let spec = table.spec.expect("a spec");
        spec.holder_identity.expect("a holder")
    }

    /// Returns the first place of a limit.
    async fn place(&self, limit: &str) -> serde_json::Value {
        let leases = self.leases().all().await.into_iter();
        let mut tables = leases.filter(|it| it.name_any().contains(&format!("-{limit}-")));
        let table = tables.next().expect("a table");
        let table = &table.annotations()["okt.dev/places"];
        let table: serde_json::Value = serde_json::from_str(table).expect("JSON");
        table["places"][0].clone()
    }

    /// Returns the holders of the ranges in each version of the table since a mark.
    fn tables(&self, since: okt_testing::Mark) -> Vec<Vec<Option<String>>> {
        let versions = self.rig.server.versions();
        let table = versions.resource("leases").name("databases-ranges");
        let texts = table
            .since(since)
            .course("/metadata/annotations/okt.dev~1rows");
        let holders = |text: &serde_json::Value| {
            let text = text.as_str().expect("a table");
            let table: serde_json::Value = serde_json::from_str(text).expect("a table");
            let rows = table["rows"].as_array().expect("rows").iter();
            let name = |row: &serde_json::Value| {
                let member = usize::try_from(row[0].as_u64()?).expect("a position");
                table["members"][member].as_str().map(str::to_owned)
            };
            rows.map(name).collect()
        };
        texts.iter().map(holders).collect()
    }

    /// Returns how many ranges a replica holds.
    async fn ranges(&self, since: okt_testing::Mark, name: &str) -> usize {
        let leases = self.leases().list(&ListParams::default()).await;
        let mut leases = leases.expect("a list").into_iter();
        let is_its = |lease: &Lease| {
            let spec = lease.spec.as_ref();
            spec.and_then(|spec| spec.holder_identity.as_deref()) == Some(name)
        };
        let member = leases.find(is_its).expect("a lease").name_any();
        let tables = self.tables(since);
        let holders = tables.last().expect("a table").iter().flatten();
        holders.filter(|holder| **holder == member).count()
    }

    /// Returns how often a range went from one replica to another.
    fn moves(&self, since: okt_testing::Mark) -> usize {
        let mut before: Option<Vec<Option<String>>> = None;
        let mut moves = 0;
        for table in self.tables(since) {
            let last = before.get_or_insert_with(|| table.clone());
            for (last, holder) in last.iter_mut().zip(table) {
                if holder.is_some() && *last != holder {
                    moves += usize::from(last.is_some());
                    *last = holder;
                }
            }
        }
        moves
    }

    /// Returns the requests of each replica since a mark that wrote anything but leases and events.
    fn writers(&self, since: okt_testing::Mark) -> BTreeMap<String, Vec<RequestRecord>> {
        let mut writers: BTreeMap<String, Vec<RequestRecord>> = BTreeMap::new();
        for request in self.rig.server.requests_since(since) {
            let is_own = !["leases", "events"].contains(&&*request.resource);
            if is_own && request.is_write() && self.known.contains(&request.client) {
                writers
                    .entry(request.client.clone())
                    .or_default()
                    .push(request);
            }
        }
        writers
    }
}

impl Fleet {
    async fn of(size: usize, shards: Shards) -> Self {
        Self::of_any(size, shards).await
    }
}

impl<A: Served> Drop for Fleet<A> {
    /// Checks that no status broke a rule, in every test.
    fn drop(&mut self) {
        let rules = Rules::of_application::<A>();
        let server = &self.rig.server;
        let broken = self.known.iter().flat_map(|name| {
            let broken = rules.broken_by(server, name, A::Resource::crd_name());
            broken.into_iter().flat_map(|(_, broken)| broken)
        });
        let broken: Vec<String> = broken.collect();
        if !std::thread::panicking() {
            assert!(broken.is_empty(), "broken rules: {}", broken.join("\n"));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn of_three_replicas_one_leads_and_the_others_write_nothing() {
    let fleet = Fleet::of(3, Shards::One).await;
    let mark = fleet.rig.server.mark();
    let leader = fleet.holder().await;
    fleet
        .create_all_ready(&numbered("db", 0..10), Running)
        .await;
    let writers = fleet.writers(mark);
    assert_eq!(writers.keys().collect::<Vec<_>>(), [&leader]);
    // As without leader election: the finalizer, two transitions, and the work that ends at rest.
    sleep(LONG).await;
    assert_eq!(fleet.writers(mark)[&leader].len(), 10 * 4);
    // A group that is settled only renews its leases: every four seconds, each.
    let mark = fleet.rig.server.mark();
    sleep(LONG).await;
    let requests = fleet.rig.server.requests_since(mark);
    let renewals = requests.iter().filter(|request| request.is_write());
    let renewals = renewals.count();
    assert!((3 * 70..=3 * 75).contains(&renewals), "{renewals}");
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_stops_hands_over_in_under_a_second() {
    let mut fleet = Fleet::of(2, Shards::One).await;
    fleet.create_ready("db", Running).await;
    let leader = fleet.holder().await;
    let begun = Instant::now();
    fleet.stop(&leader).await;
    fleet.ask_for("db", json!({ "state": "End" })).await;
    fleet.until_ready("db", End).await;
    assert_within(begun, Duration::from_secs(1));
    assert_ne!(fleet.holder().await, leader);
    let leases = fleet.leases().all().await;
    assert_eq!(leases.len(), 2, "the lease of the old leader is deleted");
}

#[tokio::test(start_paused = true)]
async fn the_work_of_a_killed_leader_is_resumed_under_the_same_id_within_18_seconds_and_a_half() {
    let mut fleet = Fleet::of(2, Shards::One).await;
    fleet
        .rig
        .app
        .next_time(Start, Reply::After(Duration::from_mins(10), Answer::Next));
    fleet.create_in("db", Start).await;
    sleep(Duration::from_secs(1)).await;
    let leader = fleet.holder().await;
    let begun = Instant::now();
    fleet.kill(&leader).await;
    fleet.until_ready("db", Running).await;
    let took = begun.elapsed();
    assert!(
        took >= Duration::from_secs(11) && took <= Duration::from_millis(18_500),
        "{took:?}"
    );
    let ran = fleet.rig.app.ran();
    assert_eq!(ran[0].id, ran[1].id);
    assert!(!ran[0].resumed && ran[1].resumed);
    assert!(ran[0].epoch.is_some() && ran[0].epoch < ran[1].epoch);
}

#[tokio::test(start_paused = true)]
async fn shared_objects_are_each_reconciled_by_one_replica_and_all_do_something() {
    share(false).await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_filters_by_ranges_sends_each_replica_only_its_objects() {
    share(true).await;
}

/// Three replicas share objects; the API server filters by ranges or not, and they say so if not.
async fn share(filters: bool) {
    let (log, _taking) = Log::taken();
    let mut fleet = Fleet::of(0, Shards::Auto).await;
    let gate = FeatureGate::ShardedListAndWatch;
    fleet.rig.server.set_feature_gate(gate, filters);
    for _ in 0..3 {
        fleet.start(Shards::Auto);
    }
    sleep(Duration::from_mins(1)).await;
    assert_eq!(fleet.holder().await, "3 replicas");
    let mark = fleet.rig.server.mark();
    fleet
        .create_all_ready(&numbered("db", 0..60), Running)
        .await;
    let writers = fleet.writers(mark);
    assert_eq!(writers.len(), 3);
    let objects: Vec<BTreeSet<&str>> = (writers.values())
        .map(|requests| {
            requests
                .iter()
                .filter_map(|it| it.name.as_deref())
                .collect()
        })
        .collect();
    let all: usize = objects.iter().map(BTreeSet::len).sum();
    assert_eq!(all, 60, "no object is written by two replicas");
    assert_eq!(fleet.rig.app.overlaps(), 0);
    let text = log.text();
    let lines = text
        .matches("it does not filter by `shardSelector`")
        .count();
    assert_eq!(lines, if filters { 0 } else { 3 }, "once by each replica");
    // As with one replica: one for the finalizer, one for each of two transitions, one for the work that ends at rest.
    sleep(LONG).await;
    let writes: usize = fleet.writers(mark).values().map(Vec::len).sum();
    assert_eq!(writes, 60 * 4);
    for request in fleet.rig.server.requests() {
        let is_watch = request.resource == "databases" && request.verb == Verb::Watch;
        if is_watch && fleet.known.contains(&request.client) {
            let selector = request.shard_selector.as_deref().unwrap_or_default();
            assert!(
                selector.starts_with("shardRange(object.metadata.uid, "),
                "{request}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_selector_that_the_server_refuses_is_left_out() {
    let mut fleet = Fleet::of(0, Shards::Auto).await;
    let refused = |request: &RequestRecord| request.shard_selector.is_some();
    let message = "invalid shard selector: no such function";
    let refusal = Fault::answer(500, "", message).matching(refused);
    let refusal = fleet.rig.server.inject(refusal);
    fleet.start(Shards::Auto);
    fleet.start(Shards::Auto);
    sleep(Duration::from_mins(2)).await;
    fleet
        .create_all_ready(&numbered("db", 0..20), Running)
        .await;
    assert_eq!(refusal.struck(), 2, "each replica asks once");
}

#[tokio::test(start_paused = true)]
async fn a_policy_that_refuses_the_lease_of_a_replica_is_told() {
    let (log, _taking) = Log::taken();
    let mut fleet = Fleet::of(0, Shards::One).await;
    let policy = Fault::answer(422, "Invalid", "a lease needs the label team")
        .resource("leases")
        .on(Verb::Create);
    let policy = fleet.rig.server.inject(policy);
    fleet.start(Shards::One);
    sleep(Duration::from_mins(5)).await;
    policy.end();
    let text = log.text();
    let lines =
        text.matches("cannot write the leases of the replicas: 422 a lease needs the label team");
    assert_eq!(lines.count(), 1, "{text}");
    fleet.create_ready("db", Running).await;
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_cannot_read_its_crd_gets_no_ranges_as_long_as_another_one_can() {
    let mut fleet = Fleet::of(0, Shards::Auto).await;
    let begun = fleet.rig.server.mark();
    let able = fleet.start(Shards::Auto);
    sleep(Duration::from_mins(1)).await;
    let unable = format!("replica-{}", fleet.born + 1);
    let refusal = Fault::forbidden().resource("customresourcedefinitions");
    let refusal = fleet.rig.server.inject(refusal.client(&unable));
    assert_eq!(fleet.start(Shards::Auto), unable);
    sleep(Duration::from_mins(2)).await;
    assert!(refusal.struck() > 0);
    assert_eq!(fleet.ranges(begun, &able).await, 64);
    refusal.end();
    sleep(Duration::from_mins(2)).await;
    assert_eq!(fleet.ranges(begun, &unable).await, 32);
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_is_alone_gets_the_ranges_also_where_it_cannot_read_its_crd() {
    let mut fleet = Fleet::of(0, Shards::One).await;
    let refusal = Fault::forbidden().resource("customresourcedefinitions");
    fleet.rig.server.inject(refusal.client("replica-1"));
    let begun = fleet.rig.server.mark();
    let name = fleet.start(Shards::One);
    sleep(Duration::from_mins(1)).await;
    assert_eq!(fleet.ranges(begun, &name).await, 64);
}

#[tokio::test(start_paused = true)]
async fn each_replica_watches_what_its_objects_own_also_after_another_one_is_gone() {
    let mut fleet = Fleet::<Kiosks>::of_any(2, Shards::Auto).await;
    for number in 0..16 {
        let maps = json!({ "maps": { format!("map-{number}"): "text" } });
        fleet.create_with(&format!("kiosk-{number}"), maps).await;
    }
    sleep(LONG).await;
    let maps = fleet.of::<ConfigMap>();
    let all = || async {
        maps.all()
            .await
            .iter()
            .filter(|map| map.data.is_some())
            .count()
    };
    assert_eq!(all().await, 16);
    let name = fleet.any_replica();
    fleet.kill(&name).await;
    sleep(Duration::from_mins(1)).await;
    // What is deleted, or loses its labels, comes again.
    for number in 0..16 {
        let name = format!("map-{number}");
        if number % 2 == 0 {
            maps.remove(&name).await;
        } else {
            let patch = json!({ "metadata": { "labels": null } });
            maps.edit(&name, patch).await;
        }
    }
    sleep(LONG).await;
    assert_eq!(all().await, 16);
    for map in maps.all().await {
        assert_eq!(map.labels()["okt.dev/owner-hash"].len(), 2);
    }
    let mark = fleet.rig.server.mark();
    sleep(LONG).await;
    assert!(fleet.writers(mark).is_empty(), "all is at rest");
}

#[tokio::test(start_paused = true)]
async fn from_one_to_three_to_two_replicas_every_object_is_reconciled_and_settled_ones_are_not_written()
 {
    let mut fleet = Fleet::of(1, Shards::Auto).await;
    fleet
        .create_all_ready(&numbered("settled", 0..30), Running)
        .await;
    let mark = fleet.rig.server.mark();
    let (mut number, mut stopped) = (0, 0);
    let mut names = Vec::new();
    for step in 0..3 {
        match step {
            0 => drop((fleet.start(Shards::Auto), fleet.start(Shards::Auto))),
            1 => {
                let name = fleet.any_replica();
                stopped = fleet.ranges(mark, &name).await;
                fleet.stop(&name).await;
            }
            _ => {}
        }
        for _ in 0..20 {
            number += 1;
            let name = format!("new-{number}");
            fleet.create(&name, json!({})).await;
            names.push(name);
            sleep(Duration::from_secs(1)).await;
        }
    }
    for name in &names {
        fleet.until_ready(name, Running).await;
    }
    // Two newcomers get a third of the 64 ranges each; those of the one that stopped go to the others.
    assert_eq!(fleet.moves(mark), 42 + stopped);
    for request in fleet.writers(mark).values().flatten() {
        let name = request.name.as_deref().unwrap_or_default();
        assert!(name.starts_with("new-"), "{request:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn work_that_does_not_end_is_dropped_after_ten_seconds_and_resumed_by_the_next_replica() {
    let mut fleet = Fleet::of(1, Shards::Auto).await;
    for number in 0..64 {
        fleet
            .rig
            .app
            .next_time(Start, Reply::After(Duration::from_mins(30), Answer::Next));
        fleet.create(&format!("db-{number}"), json!({})).await;
    }
    for number in 0..64 {
        fleet.until_in(&format!("db-{number}"), Start).await;
    }
    sleep(Duration::from_secs(1)).await;
    fleet.start(Shards::Auto);
    sleep(Duration::from_mins(1)).await;
    let ran = fleet.rig.app.ran();
    let resumed: Vec<_> = ran.iter().filter(|ran| ran.resumed).collect();
    assert!((20..=44).contains(&resumed.len()), "{}", resumed.len());
    assert_eq!(
        fleet.rig.app.cancelled(),
        0,
        "it is dropped, and not cancelled"
    );
    for again in resumed {
        assert!(ran.iter().any(|ran| !ran.resumed && ran.id == again.id));
    }
}

#[tokio::test(start_paused = true)]
async fn work_that_waits_for_a_permit_when_its_range_moves_keeps_no_permit() {
    let mut fleet = Fleet::of(0, Shards::Auto).await;
    fleet.actions = 1;
    fleet.start(Shards::Auto);
    sleep(Duration::from_mins(1)).await;
    for number in 0..32 {
        fleet
            .rig
            .app
            .next_time(Start, Reply::After(Duration::from_secs(5), Answer::Next));
        fleet.create(&format!("db-{number}"), json!({})).await;
    }
    sleep(Duration::from_secs(1)).await;
    fleet.start(Shards::Auto);
    // Attempts that may have begun elsewhere are resumed one by one, 40 seconds apart.
    sleep(3 * LONG).await;
    for number in 0..32 {
        let name = format!("db-{number}");
        assert_eq!(fleet.position(&name).await.state.known(), Some(Running));
    }
}

#[tokio::test(start_paused = true)]
async fn an_outage_of_the_api_server_moves_nothing_and_nothing_is_done_meanwhile() {
    let fleet = Fleet::of(3, Shards::Auto).await;
    fleet
        .create_all_ready(&numbered("db", 0..12), Running)
        .await;
    let table = fleet.leases().read("databases-ranges").await;
    let away = fleet.cut_off();
    sleep(Duration::from_secs(40)).await;
    let observed = fleet.rig.app.observations();
    sleep(Duration::from_secs(40)).await;
    assert_eq!(
        fleet.rig.app.observations(),
        observed,
        "nobody trusts its lease"
    );
    for fault in away {
        fault.end();
    }
    fleet.ask_for("db-0", json!({ "state": "End" })).await;
    fleet.until_ready("db-0", End).await;
    sleep(LONG).await;
    let after = fleet.leases().read("databases-ranges").await;
    assert_eq!(after.resource_version(), table.resource_version());
}

#[tokio::test(start_paused = true)]
async fn leases_that_somebody_deletes_stop_the_replicas_and_all_is_well_after_a_while() {
    let fleet = Fleet::of(2, Shards::Auto).await;
    fleet.create_ready("db", Running).await;
    let all = ListParams::default();
    let params = DeleteParams::default();
    (fleet.leases().delete_collection(&params, &all).await).expect("they are deleted");
    fleet.ask_for("db", json!({ "state": "End" })).await;
    sleep(Duration::from_secs(10)).await;
    assert_eq!(fleet.position("db").await.state.known(), Some(Running));
    fleet.until_ready("db", End).await;
    assert_eq!(fleet.holder().await, "2 replicas");
}

#[tokio::test(start_paused = true)]
async fn after_a_backup_was_restored_each_object_is_reconciled_by_one_replica() {
    let mut fleet = Fleet::of(2, Shards::Auto).await;
    let backup = fleet.rig.server.backup();
    // The other one gets all ranges, and more versions of the table follow.
    fleet.stop("replica-1").await;
    for _ in 0..3 {
        let name = fleet.start(Shards::Auto);
        sleep(Duration::from_secs(30)).await;
        fleet.stop(&name).await;
    }
    fleet.start(Shards::Auto);

    let away = fleet.cut_off();
    sleep(Duration::from_secs(15)).await;
    fleet.rig.server.restore(&backup);
    for fault in away {
        fault.end();
    }
    sleep(Duration::from_mins(1)).await;
    assert_eq!(fleet.holder().await, "2 replicas");
    let mark = fleet.rig.server.mark();
    fleet
        .create_all_ready(&numbered("db", 0..20), Running)
        .await;
    let writers = fleet.writers(mark);
    let names = |requests: &Vec<RequestRecord>| {
        let names: BTreeSet<_> = requests.iter().filter_map(|it| it.name.clone()).collect();
        names.len()
    };
    let written: usize = writers.values().map(names).sum();
    assert_eq!(written, 20, "no object is written by two replicas");
}

#[tokio::test(start_paused = true)]
async fn the_smallest_setting_of_all_replicas_counts_and_a_rolling_update_switches_without_a_gap() {
    let mut fleet = Fleet::of(2, Shards::One).await;
    fleet.create_ready("db", Running).await;
    let old: Vec<String> = fleet.replicas.keys().cloned().collect();
    let two = Shards::AtMost(NonZeroU16::new(2).expect("two"));
    for name in old {
        fleet.start(two);
        sleep(Duration::from_secs(20)).await;
        assert!(fleet.holder().await.starts_with("replica-"), "one leads");
        fleet.stop(&name).await;
        let begun = Instant::now();
        fleet.visit("db", "Servicing", &*name).await;
        fleet.until_ready("db", Running).await;
        assert_within(begun, Duration::from_secs(2));
    }
    sleep(Duration::from_secs(30)).await;
    assert_eq!(fleet.holder().await, "2 replicas");
}

#[tokio::test(start_paused = true)]
async fn processes_that_end_in_their_first_seconds_leave_few_leases() {
    for is_one_pod in [true, false] {
        let mut fleet = Fleet::of(0, Shards::One).await;
        for _ in 0..100 {
            let name = fleet.start(Shards::One);
            sleep(Duration::from_secs(3)).await;
            fleet.kill(&name).await;
            if is_one_pod {
                fleet.born = 0;
            }
        }
        let left = fleet.leases().all().await;
        let limit = if is_one_pod { 3 } else { 15 };
        assert!(left.len() <= limit, "{} leases", left.len());
        // The last one acts as soon as it would otherwise.
        fleet.start(Shards::One);
        sleep(Duration::from_secs(30)).await;
        fleet.create_ready("db", Running).await;
        let left = fleet.leases().all().await;
        assert_eq!(left.len(), 2, "its own, and the table");
    }
}

/// Watches barges from outside; returns the largest number that were in their limit at a time.
fn most_inside(fleet: &Fleet<Barges>) -> Arc<Mutex<usize>> {
    let most = Arc::new(Mutex::new(0));
    let seen = Arc::clone(&most);
    let barges: Api<Barge> = fleet.of();
    tokio::spawn(async move {
        let mut inside = BTreeSet::new();
        let mut events = watcher(barges, watcher::Config::default())
            .touched_objects()
            .boxed();
        while let Some(Ok(barge)) = events.next().await {
            if barge.is_inside() {
                inside.insert(barge.name_any());
            } else {
                inside.remove(&barge.name_any());
            }
            let mut most = seen.lock();
            *most = inside.len().max(*most);
        }
    });
    most
}

#[tokio::test(start_paused = true)]
async fn a_limit_holds_across_replicas_that_die_and_come_and_all_objects_get_through() {
    const BARGES: usize = 12;
    let mut fleet = Fleet::<Barges>::of_any(3, Shards::Auto).await;
    *fleet.app.places.lock() = 2;
    let names: Vec<String> = (0..BARGES).map(|number| format!("b{number:02}")).collect();
    for name in &names {
        fleet.create_with(name, json!({ "version": "1" })).await;
    }
    for name in &names {
        fleet.until_ready(name, BargeState::Running).await;
    }
    let most = most_inside(&fleet);
    for name in &names {
        fleet
            .patch(name, json!({ "spec": { "version": "2" } }))
            .await;
        sleep(Duration::from_secs(1)).await;
    }
    sleep(Duration::from_mins(3)).await;
    for round in 0..4 {
        let victim = fleet.any_replica();
        fleet.kill(&victim).await;
        sleep(Duration::from_secs(20 * (round + 1))).await;
        fleet.start(Shards::Auto);
        sleep(Duration::from_mins(4)).await;
        assert!(*most.lock() <= 2, "round {round}: {} inside", most.lock());
    }
    let upgraded = async || {
        fleet
            .app
            .upgraded
            .lock()
            .iter()
            .collect::<BTreeSet<_>>()
            .len()
    };
    for _ in 0..20 {
        sleep(Duration::from_mins(10)).await;
        if upgraded().await == BARGES {
            break;
        }
    }
    sleep(Duration::from_mins(15)).await;
    assert_eq!(upgraded().await, BARGES);
    for name in &names {
        fleet.until_ready(name, BargeState::Running).await;
    }
    assert_eq!(*most.lock(), 2);
    // Two at a time, ten minutes each.
    let waited = fleet.app.upgraded.lock().len();
    assert!(
        waited <= BARGES + 8,
        "{waited} attempts: work is repeated only where a replica died"
    );
}

/// The acceptance case A1.
#[tokio::test(start_paused = true)]
async fn a_place_outlives_the_replica_that_took_it_and_its_late_move_changes_nothing() {
    let mut fleet = Fleet::<Barges>::of_any(2, Shards::One).await;
    for name in ["a", "b"] {
        fleet.create_with(name, json!({ "version": "1" })).await;
        fleet.until_ready(name, BargeState::Running).await;
    }
    let most = most_inside(&fleet);
    let leader = fleet.holder().await;
    let late = Fault::deliver_late(Duration::from_mins(1)).subresource("status");
    let late = late.client(&leader).resource("barges").name("a");
    let late = fleet.rig.server.inject(late.times(1));
    for name in ["a", "b"] {
        let changed = json!({ "spec": { "version": "2" } });
        fleet.patch(name, changed).await;
        sleep(Duration::from_secs(1)).await;
    }
    let place = fleet.place("rollout").await;
    assert_eq!(place["object"], "default/a");
    fleet.kill(&leader).await;
    fleet.until_in("a", BargeState::Upgrading).await;
    assert_eq!(
        fleet.place("rollout").await["since"],
        place["since"],
        "the same place"
    );
    // The old process has sent it long ago.
    late.struck_at_least(1).await;
    sleep(Duration::from_mins(3)).await;
    assert_eq!(*most.lock(), 1);
    sleep(Duration::from_mins(25)).await;
    for name in ["a", "b"] {
        fleet.until_ready(name, BargeState::Running).await;
    }
    assert_eq!(*most.lock(), 1);
}

/// The acceptance case A3.
#[tokio::test(start_paused = true)]
async fn a_new_release_takes_two_objects_at_a_time_across_replicas() {
    const BARGES: usize = 20;
    let mut fleet = Fleet::<Barges>::of_any(3, Shards::Auto).await;
    *fleet.app.places.lock() = 2;
    *fleet.app.release.lock() = Some("one".to_owned());
    let names = numbered("b", 0..BARGES);
    for name in &names {
        fleet.create_with(name, json!({ "version": "1" })).await;
    }
    for name in &names {
        fleet.until_ready(name, BargeState::Running).await;
        assert_eq!(fleet.text(name).await.as_deref(), Some("one"));
    }
    let most = most_inside(&fleet);
    let mark = fleet.rig.server.mark();
    let old: Vec<String> = fleet.replicas.keys().cloned().collect();
    for name in old {
        fleet.stop(&name).await;
    }
    *fleet.app.release.lock() = Some("two".to_owned());
    for _ in 0..3 {
        fleet.start(Shards::Auto);
    }
    sleep(Duration::from_mins(5)).await;
    let mut since = BTreeMap::new();
    for name in &names {
        let position = fleet.position(name).await;
        let is_new = fleet.text(name).await.as_deref() == Some("two");
        let is_inside = position.state.known() == Some(BargeState::Upgrading);
        assert_eq!(is_new, is_inside, "{name}");
        if let Some(waiting) = position.waiting {
            since.insert(name.clone(), waiting.since);
        }
    }
    assert_eq!(since.len(), BARGES - 2);
    sleep(Duration::from_mins(110)).await;
    for name in &names {
        fleet.until_ready(name, BargeState::Running).await;
        assert_eq!(fleet.text(name).await.as_deref(), Some("two"));
    }
    assert_eq!(*most.lock(), 2);
    let upgraded = fleet.app.upgraded.lock().clone();
    assert_eq!(upgraded.len(), BARGES, "each once");
    let waited: Vec<_> = upgraded[2..].iter().map(|name| since[name]).collect();
    assert!(
        waited.is_sorted(),
        "who waits longest goes first: {upgraded:?} {since:?}"
    );
    let requests = fleet.rig.server.requests_since(mark).into_iter();
    let is_table = |it: &RequestRecord| {
        it.committed.is_some() && it.resource == "leases" && it.path.contains("-rollout-")
    };
    let writes = requests.filter(is_table).count();
    println!("{writes} writes of the table for {BARGES} stays");
    assert!(writes <= 2 * BARGES + 3, "{writes} writes of the table");
}
