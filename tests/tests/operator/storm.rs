//! Random events and faults, after which the object must come to rest as if they had not happened.

use std::collections::BTreeMap;
use std::time::Duration;

use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use okt::{Answer, Lifecycle, PAUSED_ANNOTATION};
use okt_testing::{Chaos, Fault, Injected};
use okt_tests::{
    Database, DatabaseState, DatabaseState::*, Databases, OPERATOR, Reply, Rig, Served, Sight,
};
use serde_json::{Value, json};
use tokio::sync::watch;

/// `SplitMix64`: the seed repeats a storm.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % sides
    }

    fn one_of<T: Clone>(&mut self, things: &[T]) -> T {
        let index = self.roll(things.len() as u64);
        things[usize::try_from(index).expect("it fits")].clone()
    }
}

const STATES: [DatabaseState; 6] = [Start, Running, Servicing, Stopping, Failed, End];

/// The fault that the operator meets at the moment.
#[derive(Default)]
struct Outage(Option<Injected>);

impl Outage {
    fn to(&mut self, rig: &Rig, fault: Option<Fault>) {
        let next = fault.map(|fault| rig.inject(fault));
        if let Some(last) = std::mem::replace(&mut self.0, next) {
            last.end();
        }
    }
}

async fn gust(
    rig: &Rig,
    is_leader: &watch::Sender<bool>,
    outage: &mut Outage,
    dice: &mut Dice,
    number: u64,
) {
    let merge = async |patch: Value| {
        // The object may be gone, or the patch may be refused.
        let _ = rig
            .raw()
            .patch("db", &PatchParams::default(), &Patch::Merge(patch))
            .await;
    };
    match dice.roll(17) {
        0 => merge(json!({ "spec": { "storage": format!("{number}Gi") } })).await,
        1 => {
            let state = dice.one_of(&["Running", "End"]);
            merge(json!({ "spec": { "lifecycle": { "state": state } } })).await;
        }
        2 => merge(json!({ "spec": { "lifecycle": { "request": number.to_string() } } })).await,
        3 => {
            let visit = json!({ "state": "Servicing", "request": number.to_string() });
            merge(json!({ "spec": { "lifecycle": { "visit": visit } } })).await;
        }
        4 => {
            let paused = dice.one_of(&[json!("true"), Value::Null]);
            merge(json!({ "metadata": { "annotations": { PAUSED_ANNOTATION: paused } } })).await;
        }
        5 => merge(json!({ "metadata": { "labels": { "gust": number.to_string() } } })).await,
        6 => rig.request("db"),
        7 => rig.restart().await,
        8 | 9 => {
            let state = dice.one_of(&STATES);
            let sight = dice.one_of(&[
                Sight::Unobserved,
                Sight::Absent,
                Sight::In(state),
                Sight::Event(Running, state),
                Sight::Unreachable,
                Sight::Named("Vacuuming"),
                Sight::Broken,
                Sight::Panics,
                Sight::Slow(Duration::from_secs(3), state),
            ]);
            rig.app.sees("db", sight);
        }
        10..=12 => {
            let long = Duration::from_secs(dice.roll(100));
            let to = dice.one_of(&STATES).id();
            let reply = dice.one_of(&[
                Reply::Fail("not yet"),
                Reply::FailPermanently("never"),
                Reply::Panic,
                Reply::Hang,
                Reply::UntilCancelled,
                Reply::CleansUpFor(long),
                Reply::After(long, Answer::Next),
                Reply::After(long, Answer::Wait(long)),
                Reply::After(long, Answer::To(to)),
                Reply::Answer(Answer::Wait(long)),
                Reply::Answer(Answer::To(to)),
            ]);
            rig.app.next_time(dice.one_of(&STATES), reply);
        }
        13 => match dice.roll(6) {
            0 => outage.to(rig, Some(Fault::unavailable().on_writes())),
            1 => outage.to(rig, Some(Fault::internal_error().subresource("status"))),
            2 => {
                let refusal = Fault::answer(422, "Invalid", "no").subresource("status");
                outage.to(rig, Some(refusal));
            }
            _ => outage.to(rig, None),
        },
        14 => {
            rig.server.end_watches();
            if dice.roll(2) == 0 {
                rig.server.compact();
            }
        }
        15 => {
            is_leader.send_replace(dice.roll(3) != 0);
        }
        _ if dice.roll(6) == 0 => {
            let _ = rig.raw().delete("db", &DeleteParams::default()).await;
        }
        _ => {
            let object = serde_json::from_value(Databases::object("db", json!({})));
            let object = object.expect("an object");
            let _ = rig.raw().create(&PostParams::default(), &object).await;
        }
    }
}

async fn storm(seed: u64) {
    let mut dice = Dice(seed);
    let (is_leader, leads) = watch::channel(true);
    let mut rig = Rig::without_operator().await;
    rig.options.is_leader = Some(leads);
    rig.server
        .set_watch_lag(Duration::from_millis(dice.roll(3) * 40));
    rig.start();
    rig.create("db", json!({})).await;
    let mut outage = Outage::default();
    // Without its definition an operator does not start, so the chaos affects only the objects.
    let chaos = rig
        .server
        .misbehave(Chaos::seeded(seed).client(OPERATOR).resource("databases"));
    for number in 0..120 {
        gust(&rig, &is_leader, &mut outage, &mut dice, number).await;
        let pause = dice.one_of(&[0, 1, 30, 500, 5_000, 40_000]);
        rig.pass(Duration::from_millis(pause)).await;
    }
    // The storm ends here.
    outage.to(&rig, None);
    chaos.end();
    is_leader.send_replace(true);
    rig.app.forget_replies();
    rig.app.sees("db", Sight::Unobserved);
    let gone = rig.get("db").await;
    if gone.is_some_and(|db| db.metadata.deletion_timestamp.is_some()) {
        rig.until_gone("db").await;
    }
    if rig.get("db").await.is_none() {
        rig.create("db", json!({})).await;
    }
    rig.unpause("db").await;
    // A request recorded where no route leads to the desired state has to be made again.
    for request in 0..4 {
        let request = format!("calm {request}");
        let lifecycle = json!({ "state": "Running", "request": request });
        let calm = json!({ "spec": { "storage": "calm", "lifecycle": lifecycle } });
        rig.patch("db", calm).await;
        let database = rig.until("db", "has come to rest", is_at_rest).await;
        let position = database.status.and_then(|status| status.lifecycle);
        if position.is_some_and(|position| position.state.known() == Some(Running)) {
            break;
        }
    }
    rig.until_ready("db", Running).await;
    rig.pass(Duration::from_mins(20)).await;
    rig.writes_nothing_for(Duration::from_mins(20)).await;
    rig.delete_until_gone("db").await;
    let mut seen = BTreeMap::new();
    for ran in rig.app.ran() {
        let before = *seen.entry(ran.id.clone()).or_insert(ran.state);
        assert_eq!(before, ran.state, "{} names two pieces of work", ran.id);
    }
}

/// Whether nothing more will happen on its own for the current spec.
fn is_at_rest(database: &Database) -> bool {
    let is = |name: &str| {
        (database.status.iter())
            .flat_map(|status| &status.conditions)
            .any(|c| {
                c.type_ == name
                    && c.status == "True"
                    && c.observed_generation == database.metadata.generation
            })
    };
    is("Ready") || is("Stalled")
}

#[tokio::test(start_paused = true)]
async fn after_any_storm_an_object_reaches_its_desired_state_and_can_be_deleted() {
    // `OKT_STORMS=100..500` runs more storms.
    let some = if std::env::var_os("CI").is_some() {
        "0..12"
    } else {
        "0..4"
    };
    let chosen = std::env::var("OKT_STORMS").unwrap_or_else(|_| some.to_owned());
    let ends = chosen.split_once("..");
    let (from, to) = ends.expect("OKT_STORMS is a range");
    let seeds = from.parse().expect("a number")..to.parse().expect("a number");
    for seed in seeds {
        println!("storm {seed}");
        storm(seed).await;
    }
}
