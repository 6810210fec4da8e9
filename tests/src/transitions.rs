//! The count of writes of 900 transitions, on any cluster.
#![expect(
    clippy::missing_panics_doc,
    reason = "what a test expects and does not find is a panic, everywhere here"
)]

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use futures::StreamExt;
use futures::channel::mpsc;
use kube::api::ListParams;
use kube::runtime::reflector::ObjectRef;
use okt::{Operator, crd};
use serde_json::json;

use crate::cluster::Cluster;
use crate::rollout::Place;
use crate::runner::{RunnerState, Runners};
use crate::tap::Tap;

const OBJECTS: usize = 300;

/// The interval of reconcile requests for every object.
const REQUESTS_EVERY: Duration = Duration::from_millis(25);

/// The maximum delay of the operator's watches.
const LAG: Duration = Duration::from_millis(50);

/// Checks the number of status writes for three transitions of each of 300 objects, and one write of each finalizer.
pub async fn three_hundred_runners_cost(place: &Place, rest: RunnerState, writes: usize) {
    let seed = seed();
    println!("the lag of watches is drawn from OKT_TEST_LAG_SEED={seed}");
    let cluster: Cluster<Runners> = place.cluster();
    cluster.define(crd::<crate::Runner>().expect("a CRD")).await;
    let (tap, runners) = (Tap::default(), Runners::default());
    tap.lag(LAG, seed);
    let (request, requests) = mpsc::unbounded();
    let mut operator = Operator::new(tap.on(&place.client), runners.clone()).reconcile_on(requests);
    if place.virtual_time {
        operator = operator.virtual_time();
    }
    let names: Vec<String> = (0..OBJECTS).map(|number| format!("r-{number}")).collect();
    let state = format!("{rest:?}");
    let lives = async {
        let create = |name: &String| {
            let (cluster, lifecycle) = (&cluster, json!({ "state": state }));
            let name = name.clone();
            async move { drop(cluster.create(&name, lifecycle).await) }
        };
        futures::stream::iter(&names)
            .for_each_concurrent(8, create)
            .await;
        let deadline = tokio::time::Instant::now() + place.patience;
        loop {
            let list = cluster.raw().list(&ListParams::default()).await;
            let all = list.expect("a list").items;
            let arrivals = all.iter().filter(|object| {
                let array = object.data["status"]["conditions"].as_array();
                let mut conditions = array.into_iter().flatten();
                conditions.any(|c| c["type"] == "Ready" && c["status"] == "True")
            });
            let ready = arrivals.count();
            if ready == OBJECTS {
                return;
            }
            let late = tokio::time::Instant::now() > deadline;
            assert!(!late, "{ready} of {OBJECTS} runners arrived");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    let poking = async {
        loop {
            tokio::time::sleep(REQUESTS_EVERY).await;
            for name in &names {
                let object = ObjectRef::new(name).within("default");
                request.unbounded_send(object).expect("the operator runs");
            }
        }
    };
    let watched = async {
        tokio::select! {
            () = lives => {}
            () = poking => {}
        }
        // Writes that should not happen would happen in this time.
        tokio::time::sleep(Duration::from_secs(2)).await;
    };
    tokio::select! {
        () = watched => {}
        ended = operator.run(std::future::pending()) => panic!("the operator ended: {ended:?}"),
    }
    let all = tap.writes();
    let statuses = all
        .iter()
        .filter(|write| write.method == "PATCH" && write.path.ends_with("/status"))
        .count();
    let finalizers = all
        .iter()
        .filter(|write| write.method == "PATCH" && !write.path.ends_with("/status"))
        .count();
    let refused = all.iter().filter(|write| write.status >= 300).count();
    let started = runners.started();
    let twice = started.len() - started.iter().collect::<BTreeSet<_>>().len();
    println!(
        "{OBJECTS} objects, {} transitions, {REQUESTS_EVERY:?} between requests, watches behind by up to {LAG:?}: \
         {statuses} PATCHes of status, {finalizers} for the finalizer, {} other writes, \
         {refused} refused (conflicts among them), {} actions, {twice} started twice",
        3 * OBJECTS,
        all.len() - statuses - finalizers,
        started.len(),
    );
    assert_eq!(
        (statuses, finalizers, all.len()),
        (writes, OBJECTS, writes + OBJECTS)
    );
    assert_eq!((refused, twice), (0, 0));
    let list = cluster.raw().list(&ListParams::default()).await;
    for object in list.expect("a list").items {
        let lifecycle = &object.data["status"]["lifecycle"];
        let at = (&lifecycle["state"], &lifecycle["transition"]);
        assert_eq!(at, (&json!(state), &json!(3)));
    }
}

/// Returns the seed from `OKT_TEST_LAG_SEED`, or a new one; never zero.
fn seed() -> u64 {
    let given = std::env::var("OKT_TEST_LAG_SEED").ok();
    let seed = given.map_or_else(
        || {
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
            now.map_or(1, |now| u64::from(now.subsec_nanos()))
        },
        |given| given.parse().expect("OKT_TEST_LAG_SEED is a number"),
    );
    seed.max(1)
}
