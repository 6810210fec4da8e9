//! Operators of kubebuilder, kopf and the Java Operator SDK, each through the life of a website with faults.
//!
//! The three operators do the same: see `tests/clients/README.md`. A test starts one as a process, changes its website
//! as a user does, and injects faults over HTTP, below `/okt/v1`, as a test in any language can. Each fault must
//! strike, each step must come to the desired state, and in the end the recordings are judged.
//!
//! ```sh
//! cargo test -p okt-tests --test clients -- --include-ignored --nocapture --test-threads 1 lives
//! ```

mod api;
mod faults;
mod judge;
mod operator;

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use self::api::{Api, Kind};
use self::faults::{InjectedFault, of_events, of_writes, with};
use self::judge::{Recording, alive};
use self::operator::{Framework, OperatorProcess};

/// How long a step may take before the test fails: a busy machine is slow, and the first step builds the operator.
const PATIENCE: Duration = Duration::from_mins(10);

/// The pause between two looks at the state.
const PAUSE: Duration = Duration::from_millis(100);

/// How long the operator is cut off. It is longer than the lease of the operator of kubebuilder lasts.
const PARTITION: Duration = Duration::from_secs(8);

/// The website that lives.
const SHOP: &str = "shop";

/// A website that lives while the other one is at rest.
const NEIGHBOUR: &str = "neighbour";

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes 2 minutes, and needs Go"]
async fn an_operator_of_kubebuilder_brings_a_website_through_a_life_of_faults() {
    live(Framework {
        name: "kubebuilder",
        script: "kubebuilder/operator",
        clients: &["operator"],
        watches_owned: true,
        survives_cut_bodies: true,
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes 2 minutes, and needs Python"]
async fn an_operator_of_kopf_brings_a_website_through_a_life_of_faults() {
    live(Framework {
        name: "kopf-operator",
        script: "kopf-operator/operator",
        // kopf has a client of its own, and the handlers use the Python client.
        clients: &["kopf", "OpenAPI-Generator"],
        watches_owned: false,
        survives_cut_bodies: true,
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes 2 minutes, and needs Java and Maven"]
async fn an_operator_of_josdk_brings_a_website_through_a_life_of_faults() {
    live(Framework {
        name: "josdk-operator",
        script: "josdk/operator",
        clients: &["fabric8-kubernetes-client"],
        watches_owned: true,
        // fabric8 with HTTP/2 waits forever for the rest of a body whose stream was reset.
        survives_cut_bodies: false,
    })
    .await;
}

/// Brings an operator through all steps, and judges the recordings.
async fn live(framework: Framework) {
    let api = Api::start().await;
    let before = alive(&api).await;
    let operator = OperatorProcess::start(&framework, api.kubeconfig());
    let mut life = Life {
        framework,
        api,
        operator,
        spec: json!({ "image": "nginx:1.0", "replicas": 2, "port": 80 }),
        changes: 0,
        deployments: 1,
        cuts: 0,
        since: Instant::now(),
    };
    life.is_created().await;
    life.changes_while_watches_are_late().await;
    life.loses_its_deployment().await;
    life.misses_a_change().await;
    life.is_killed_in_a_write_that_is_not_committed().await;
    life.is_killed_in_a_write_that_is_committed().await;
    life.is_cut_off().await;
    life.meets_chaos().await;
    life.rests().await;
    life.is_deleted().await;

    let recording = life.recording();
    recording
        .the_clean_up_came_before_the_end_of_the_finalizer()
        .await;
    recording.the_operator_deleted_nothing().await;
    recording.the_deployment_was_created(life.deployments).await;
    recording.the_deployment_never_went_back().await;
    recording.the_status_never_ran_ahead().await;
    let left: Vec<_> = alive(&life.api)
        .await
        .difference(&before)
        .cloned()
        .collect();
    let records = [NEIGHBOUR, SHOP].map(|name| format!("ConfigMap {name}-deleted"));
    assert_eq!(left, records, "the objects that are left");
}

/// The life of a website.
struct Life {
    framework: Framework,
    api: Api,
    operator: OperatorProcess,
    /// The spec that the user wants.
    spec: Value,
    /// The number of the user's changes.
    changes: u64,
    /// How often the Deployment had to be created.
    deployments: usize,
    /// The number of responses that were cut off when it was looked at last.
    cuts: usize,
    /// The start of the step.
    since: Instant,
}

/// The steps.
impl Life {
    async fn is_created(&mut self) {
        // The script builds the operator while the website waits for it.
        let faults = self
            .inject([
                of_writes("conflict", "websites.web.example.com/", 1),
                with(
                    of_writes("tooManyRequests", "deployments.apps/", 2),
                    "seconds",
                    1,
                ),
                with(
                    of_writes("breakConnection", "services/", 1),
                    "afterCommit",
                    true,
                ),
                of_writes("internalError", "websites.web.example.com/status", 2),
            ])
            .await;
        self.api.create_website(SHOP, &self.spec).await;
        self.all_strike(faults).await;
        self.comes_to_the_desired_state(SHOP).await;
        self.ends("created");
    }

    async fn changes_while_watches_are_late(&mut self) {
        let mut rules = vec![
            with(of_events("lag", Kind::Website), "seconds", 1.5),
            of_writes("conflict", "deployments.apps/", 2),
            with(
                of_writes("timeout", "websites.web.example.com/status", 1),
                "afterCommit",
                true,
            ),
        ];
        if self.framework.survives_cut_bodies {
            rules.push(with(of_writes("cutBody", "services/", 1), "bytes", 20));
        }
        if self.framework.watches_owned {
            rules.push(with(of_events("lag", Kind::Deployment), "seconds", 1));
        }
        let faults = self.inject(rules).await;
        self.change(json!({ "replicas": 4 })).await;
        self.change(json!({ "port": 81 })).await;
        self.all_strike(faults).await;
        self.comes_to_the_desired_state(SHOP).await;
        self.ends("changed while watches are late");
    }

    async fn loses_its_deployment(&mut self) {
        let faults = self
            .inject([
                of_writes("internalError", "deployments.apps/", 1),
                of_writes("unavailable", "services/", 1),
            ])
            .await;
        let lost = self.api.delete(Kind::Deployment, SHOP).await;
        self.deployments += 1;
        // Brings the operator to write its Service, too.
        self.change(json!({ "port": 82 })).await;
        self.all_strike(faults).await;
        self.comes_to_the_desired_state(SHOP).await;
        let found = self.api.get(Kind::Deployment, SHOP).await;
        assert_ne!(found.expect("it is back")["metadata"]["uid"], lost);
        self.ends("lost its Deployment");
    }

    /// No client recovers from an event that a server silently loses. It does once it must list again: here since its
    /// watches end, and the versions that it could go on from are forgotten.
    async fn misses_a_change(&mut self) {
        let mut rules = vec![with(
            with(of_events("dropEvent", Kind::Website), "event", "MODIFIED"),
            "times",
            1,
        )];
        if self.framework.watches_owned {
            rules.push(with(
                with(of_events("dropEvent", Kind::Deployment), "event", "DELETED"),
                "times",
                1,
            ));
            self.deployments += 1;
        }
        let faults = self.inject(rules).await;
        self.change(json!({})).await;
        if self.framework.watches_owned {
            self.api.delete(Kind::Deployment, SHOP).await;
        }
        self.all_strike(faults).await;
        self.api.okt("POST", "compact", &Value::Null).await;
        self.api.okt("DELETE", "watches", &Value::Null).await;
        self.comes_to_the_desired_state(SHOP).await;
        self.ends("missed a change");
    }

    /// The operator waits for an answer, without a time limit in most frameworks. The test kills it.
    async fn is_killed_in_a_write_that_is_not_committed(&mut self) {
        let faults = self
            .inject([of_writes("noAnswer", "deployments.apps/", 1)])
            .await;
        self.change(json!({})).await;
        self.all_strike(faults).await;
        self.operator.kill().await;
        self.change(json!({ "replicas": 3 })).await;
        self.operator.run();
        self.comes_to_the_desired_state(SHOP).await;
        self.ends("killed in a write that is not committed");
    }

    async fn is_killed_in_a_write_that_is_committed(&mut self) {
        let faults = self
            .inject([with(
                of_writes("noAnswer", "services/", 1),
                "afterCommit",
                true,
            )])
            .await;
        self.change(json!({ "port": 83 })).await;
        self.all_strike(faults).await;
        self.operator.kill().await;
        self.change(json!({})).await;
        self.operator.run();
        self.comes_to_the_desired_state(SHOP).await;
        self.ends("killed in a write that is committed");
    }

    async fn is_cut_off(&mut self) {
        let faults = self.inject([json!({ "fault": "partition" })]).await;
        self.change(json!({ "replicas": 5 })).await;
        self.api.delete(Kind::Service, SHOP).await;
        let end = Instant::now() + PARTITION;
        while Instant::now() < end {
            self.operator.restart_if_ended();
            tokio::time::sleep(PAUSE).await;
        }
        self.change(json!({})).await;
        self.all_strike(faults).await;
        self.comes_to_the_desired_state(SHOP).await;
        self.ends("cut off");
    }

    async fn meets_chaos(&mut self) {
        let seed = std::env::var("OKT_SEED").map_or(36, |seed| seed.parse().expect("a number"));
        println!("{}: OKT_SEED={seed}", self.framework.name);
        let chaos = self.inject([json!({ "seed": seed })]).await;
        for round in 0_u64.. {
            let mut struck = 0;
            for chaos in &chaos {
                struck += chaos.struck(&self.api).await;
            }
            if round >= 4 && struck >= 10 {
                break;
            }
            self.change(json!({ "replicas": 1 + round % 4, "port": 8000 + round }))
                .await;
            if round % 3 == 1 {
                self.api.delete(Kind::Service, SHOP).await;
            }
            self.comes_to_the_desired_state(SHOP).await;
        }
        self.all_strike(chaos).await;
        self.comes_to_the_desired_state(SHOP).await;
        self.ends("met chaos");
    }

    /// Time does not show that nothing happens. Here the neighbour's life does: the operator works all the while.
    async fn rests(&mut self) {
        self.api.create_website(NEIGHBOUR, &self.spec).await;
        // The last writes of the steps before may come meanwhile.
        self.comes_to_the_desired_state(NEIGHBOUR).await;
        let mark = self.api.mark().await;
        self.api.delete(Kind::Deployment, NEIGHBOUR).await;
        self.comes_to_the_desired_state(NEIGHBOUR).await;
        self.api.delete(Kind::Website, NEIGHBOUR).await;
        self.goes(NEIGHBOUR).await;
        self.recording().nothing_was_written_since(mark).await;
        self.ends("at rest");
    }

    async fn is_deleted(&mut self) {
        let faults = self
            .inject([
                // No conflict: a real one comes with another change, whose event wakes an operator.
                of_writes("internalError", "websites.web.example.com/", 2),
                with(
                    of_writes("breakConnection", Kind::ConfigMap.resource(), 1),
                    "afterCommit",
                    true,
                ),
            ])
            .await;
        self.api.delete(Kind::Website, SHOP).await;
        self.all_strike(faults).await;
        self.goes(SHOP).await;
        self.ends("deleted");
    }
}

/// What the steps are made of.
impl Life {
    fn recording(&self) -> Recording<'_> {
        Recording {
            api: &self.api,
            framework: &self.framework,
            name: SHOP,
        }
    }

    /// Changes these fields of the spec, and the image.
    async fn change(&mut self, fields: Value) {
        self.changes += 1;
        let spec = with(fields, "image", format!("nginx:1.{}", self.changes));
        for (name, value) in spec.as_object().into_iter().flatten() {
            self.spec[name] = value.clone();
        }
        self.api.patch_website(SHOP, &spec).await;
    }

    async fn inject(&self, rules: impl IntoIterator<Item = Value>) -> Vec<InjectedFault> {
        let mut faults = Vec::new();
        for rule in rules {
            faults.push(InjectedFault::inject(&self.api, self.framework.clients, rule).await);
        }
        faults
    }

    /// Waits until each fault has struck, and ends them.
    async fn all_strike(&mut self, faults: Vec<InjectedFault>) {
        for fault in faults {
            self.until("a fault strikes", async |api| {
                match fault.struck(api).await {
                    0 => Err(format!("{fault:?} has not struck")),
                    _ => Ok(()),
                }
            })
            .await;
            fault.end(&self.api, self.framework.name).await;
        }
    }

    /// Waits until the website, its Deployment and its Service are as the user wants them.
    async fn comes_to_the_desired_state(&mut self, name: &str) {
        let spec = self.spec.clone();
        self.until("the desired state", async |api| {
            let website = api.get(Kind::Website, name).await.unwrap_or_default();
            let deployment = api.get(Kind::Deployment, name).await.unwrap_or_default();
            let service = api.get(Kind::Service, name).await.unwrap_or_default();
            let status = &website["status"];
            let container = &deployment["spec"]["template"]["spec"]["containers"][0];
            let port = &service["spec"]["ports"][0];
            let found = json!({
                "observed": status["observedGeneration"] == website["metadata"]["generation"],
                "ready": status["conditions"][0]["status"],
                "message": status["conditions"][0]["message"],
                "readyReplicas": status["readyReplicas"],
                "image": container["image"],
                "replicas": deployment["spec"]["replicas"],
                "port": [container["ports"][0]["containerPort"], port["port"]],
                "owners": [owner(&deployment), owner(&service)],
            });
            let uid = &website["metadata"]["uid"];
            let wanted = json!({
                "observed": true,
                "ready": "True",
                "message": format!("image {}", spec["image"].as_str().unwrap_or_default()),
                "readyReplicas": spec["replicas"],
                "image": spec["image"],
                "replicas": spec["replicas"],
                "port": [spec["port"], spec["port"]],
                "owners": [uid, uid],
            });
            if found == wanted {
                Ok(())
            } else {
                Err(format!("{name} is {found}, not {wanted}"))
            }
        })
        .await;
    }

    /// Waits until a website is gone with all that it owns.
    async fn goes(&mut self, name: &str) {
        self.until("the end", async |api| {
            for kind in [Kind::Website, Kind::Deployment, Kind::Service] {
                if let Some(object) = api.get(kind, name).await {
                    return Err(format!("it is still there: {object}"));
                }
            }
            Ok(())
        })
        .await;
    }

    /// Waits for a state, and starts the operator again where it ends meanwhile.
    async fn until(&mut self, what: &str, state: impl AsyncFn(&Api) -> Result<(), String>) {
        let deadline = Instant::now() + PATIENCE;
        while let Err(why) = state(&self.api).await {
            assert!(
                Instant::now() < deadline,
                "{what} did not come within {PATIENCE:?}: {why}; see {}",
                self.operator.log().display()
            );
            self.operator.restart_if_ended();
            self.restart_if_stuck().await;
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Kills an operator that waits forever for the rest of a body and starts it again, as its liveness probe does.
    async fn restart_if_stuck(&mut self) {
        if self.framework.survives_cut_bodies {
            return;
        }
        let cuts = faults::cut_bodies(&self.api).await;
        if cuts > self.cuts {
            self.operator.kill().await;
            self.operator.run();
        }
        self.cuts = cuts;
    }

    /// Prints the time of a step.
    fn ends(&mut self, step: &str) {
        println!(
            "{}: {step}: {} ms, the operator ended {} times by itself",
            self.framework.name,
            self.since.elapsed().as_millis(),
            self.operator.exits
        );
        self.since = Instant::now();
    }
}

/// Returns the UID of the controlling owner.
fn owner(object: &Value) -> &Value {
    &object["metadata"]["ownerReferences"][0]["uid"]
}
