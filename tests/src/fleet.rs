//! Brokers in various states, with helpers for tests of upgrades.

use std::ops::Deref;
use std::time::Duration;

use okt::{crd, crd_union};
use serde_json::{Value, json};

use crate::cluster::{Cluster, Served};
use crate::releases::{World, first};
use crate::rollout::{Place, Working};

/// A time in which a faulty operator would act.
pub(crate) const A_WHILE: Duration = Duration::from_millis(1500);

/// Brokers at rest, in transition, on a visit and in deletion, of the first release or the wider one.
pub(crate) struct Fleet {
    place: Place,
    pub(crate) world: World,
    pub(crate) cluster: Cluster<first::Brokers>,
}

impl Deref for Fleet {
    type Target = Cluster<first::Brokers>;

    fn deref(&self) -> &Cluster<first::Brokers> {
        &self.cluster
    }
}

impl Fleet {
    pub(crate) fn new(place: &Place) -> Self {
        Self {
            place: place.clone(),
            world: World::default(),
            cluster: place.cluster(),
        }
    }

    /// Applies the CRD of a release.
    pub(crate) async fn define<A: Served>(&self) {
        let cluster: Cluster<A> = self.place.cluster();
        cluster.define(crd::<A::Resource>().expect("a CRD")).await;
    }

    /// Applies the CRD for two releases.
    pub(crate) async fn define_both<New: Served, Old: Served>(&self) {
        let old = crd::<Old::Resource>().expect("a CRD");
        let both = crd_union::<New::Resource>(&old).expect("they fit");
        self.place.cluster::<New>().define(both).await;
    }

    /// Creates one broker at rest, and one each whose work does not end: in transition, on a visit, in deletion.
    pub(crate) async fn embark(&self) {
        for (name, handler) in [
            ("starting", "start"),
            ("visiting", "compacting"),
            ("leaving", "stopping"),
        ] {
            self.world.hold(name, handler);
        }
        for name in ["resting", "starting", "visiting", "leaving"] {
            self.create(name, json!({})).await;
        }
        for name in ["resting", "visiting", "leaving"] {
            self.until_ready(name, "Running").await;
        }
        self.visit("visiting", "Compacting", "1").await;
        self.delete("leaving").await;
        self.until_working("starting", "start").await;
        self.until_working("visiting", "compacting").await;
        self.until_working("leaving", "stopping").await;
    }

    /// Lets all work end, and waits until all brokers have reached their desired state, which is at rest.
    pub(crate) async fn arrive(&self, rest: &str) {
        self.world.let_go();
        for name in ["resting", "starting", "visiting"] {
            self.until_ready(name, rest).await;
        }
        self.until_gone("leaving").await;
        let visit = self.json("visiting").await["status"]["lifecycle"]["visit"].clone();
        assert_eq!(visit["outcome"], "Reached");
        self.is_at("resting", 2, 0).await;
        self.is_at("starting", 2, 0).await;
        self.is_at("visiting", 4, 0).await;
    }

    pub(crate) async fn create(&self, name: &str, lifecycle: Value) {
        self.create_raw(first::Brokers::object(name, lifecycle))
            .await;
    }

    /// Waits until an object meets a condition.
    pub(crate) async fn until(&self, name: &str, what: &str, so: impl Fn(&Value) -> bool) -> Value {
        let deadline = tokio::time::Instant::now() + self.place.patience;
        loop {
            let object = self.json(name).await;
            if so(&object) {
                return object;
            }
            let late = tokio::time::Instant::now() > deadline;
            assert!(
                !late,
                "waited in vain until {name} {what}: {:#}",
                object["status"]
            );
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
    }

    /// Waits until a broker is in this state, by its current or former name, and ready for its current spec.
    pub(crate) async fn until_ready(&self, name: &str, state: &str) {
        let former = match state {
            "Serving" => "Running",
            state => state,
        };
        self.until(name, &format!("is ready in {state}"), |object| {
            let at = &object["status"]["lifecycle"]["state"];
            let ready = condition(object, "Ready");
            (at == state || at == former)
                && ready["status"] == "True"
                && ready["observedGeneration"] == object["metadata"]["generation"]
        })
        .await;
    }

    pub(crate) async fn until_in(&self, name: &str, state: &str) {
        self.until(name, &format!("is in {state}"), |object| {
            object["status"]["lifecycle"]["state"] == state
        })
        .await;
    }

    pub(crate) async fn until_reason(&self, name: &str, type_: &str, reason: &str) -> String {
        let what = format!("says {type_} {reason}");
        let object = self
            .until(name, &what, |object| {
                condition(object, type_)["reason"] == reason
            })
            .await;
        condition(&object, type_)["message"].to_string()
    }

    /// Waits until this handler runs for a broker.
    pub(crate) async fn until_working(&self, name: &str, handler: &str) {
        let deadline = tokio::time::Instant::now() + self.place.patience;
        let runs = || {
            let ran = self.world.ran();
            ran.iter()
                .any(|ran| ran.object == name && ran.handler == handler)
        };
        while !runs() {
            assert!(
                tokio::time::Instant::now() < deadline,
                "{name} never does {handler}"
            );
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
    }

    pub(crate) async fn is_at(&self, name: &str, transition: u64, jumps: u64) {
        let lifecycle = self.json(name).await["status"]["lifecycle"].clone();
        let at = (&lifecycle["transition"], &lifecycle["jumps"]);
        assert_eq!(
            at,
            (&json!(transition), &json!(jumps)),
            "{name}: {lifecycle:#}"
        );
    }

    /// Checks that an operator does nothing for a while, even after a change.
    pub(crate) async fn is_idle(&self, operator: &Working) {
        operator.tap.clear();
        let ran = self.world.ran().len();
        self.patch(
            "resting",
            json!({ "metadata": { "labels": { "look": "here" } } }),
        )
        .await;
        tokio::time::sleep(A_WHILE).await;
        assert_eq!(operator.tap.writes(), []);
        assert_eq!(self.world.ran().len(), ran);
    }

    /// Checks that an operator does not write to this broker for a while.
    pub(crate) async fn is_idle_about(&self, operator: &Working, name: &str) {
        self.patch(
            name,
            json!({ "metadata": { "labels": { "look": "here" } } }),
        )
        .await;
        tokio::time::sleep(A_WHILE).await;
        assert_eq!(operator.writes_to(name), [""; 0]);
    }

    pub(crate) async fn state_of(&self, name: &str) -> String {
        let object = self.json(name).await;
        object["status"]["lifecycle"]["state"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }
}

pub(crate) fn condition<'a>(object: &'a Value, type_: &str) -> &'a Value {
    let conditions = object["status"]["conditions"].as_array();
    let found = conditions.and_then(|all| all.iter().find(|c| c["type"] == type_));
    found.unwrap_or(&Value::Null)
}
