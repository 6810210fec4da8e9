//! What kstatus makes of each phase of a lifecycle: Flux and helm wait by it.

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

use okt_tests::{DatabaseState::*, Databases, Objects, Reply, Rig, Sight};
use serde_json::{Value, json};

use super::go_program;

/// Phases of an object, each with the status that kstatus should find.
#[derive(Default)]
struct Phases(Vec<(&'static str, Value, &'static str)>);

impl Phases {
    async fn note(&mut self, rig: &Rig, phase: &'static str, wanted: &'static str) {
        let object = rig.raw().read("db").await;
        let object = serde_json::to_value(object).expect("JSON");
        self.0.push((phase, object, wanted));
    }

    /// Asks kstatus, which is built before.
    fn check(&self) {
        let mut asked = Command::new(go_program("kstatus", "."));
        asked.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut asked = asked.spawn().expect("it starts");
        let mut objects = asked.stdin.take().expect("its input");
        for (_, object, _) in &self.0 {
            writeln!(objects, "{object}").expect("it reads");
        }
        drop(objects);
        let output = asked.wait_with_output().expect("it ends");
        let answers = String::from_utf8(output.stdout).expect("UTF-8");
        let mut answers = answers.lines();
        for (phase, _, wanted) in &self.0 {
            let answer = answers.next().expect("an answer for each object");
            assert_eq!(answer.split(' ').next(), Some(*wanted), "{phase}: {answer}");
        }
    }
}

#[tokio::test(start_paused = true)]
#[ignore = "builds kstatus, and needs Go"]
async fn flux_and_helm_take_each_phase_of_an_object_for_what_it_is() {
    let mut phases = Phases::default();
    let rig = Rig::<Databases>::without_operator().await;
    rig.create("db", json!({})).await;
    phases
        .note(&rig, "no operator has seen it", "InProgress")
        .await;
    rig.start();
    let slowly = Reply::After(Duration::from_mins(1), okt::Answer::Next);
    rig.app.next_time(Start, slowly);
    rig.until_in("db", Start).await;
    phases.note(&rig, "it moves", "InProgress").await;
    rig.until_ready("db", Running).await;
    phases
        .note(&rig, "it is in its desired state", "Current")
        .await;
    rig.pause("db").await;
    rig.until_reason("db", "Paused", "Paused").await;
    phases
        .note(&rig, "it is paused where it should be", "Current")
        .await;
    rig.unpause("db").await;
    rig.until_ready("db", Running).await;
    rig.app.sees("db", Sight::Event(Running, Failed));
    rig.request("db");
    rig.until_in("db", Failed).await;
    phases
        .note(&rig, "it holds in a state of trouble", "Failed")
        .await;
    let mut changed = phases.0[2].1.clone();
    changed["metadata"]["generation"] = json!(99);
    let unseen = ("its last change is not seen", changed, "InProgress");
    phases.0.push(unseen);
    let mut deleted = phases.0[2].1.clone();
    deleted["metadata"]["deletionTimestamp"] = json!("2026-11-29T00:00:00Z");
    phases
        .0
        .push(("it is being deleted", deleted, "Terminating"));
    phases.check();
}
