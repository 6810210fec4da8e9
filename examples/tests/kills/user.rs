//! The user, who creates notebooks, writes documents and changes desired states.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use okt::PAUSED_ANNOTATION;
use okt_examples::notes_operator::Notes;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::history::{History, text};
use crate::stage::Stage;
use okt_examples::dice::Dice;

/// The names of the notebooks, of which some exist at a time.
const NAMES: [&str; 6] = ["ant", "bee", "cat", "dog", "eel", "fox"];

/// The longest wait for an answer of the API server.
const PATIENCE: Duration = Duration::from_secs(5);

/// What the user did, and the answers.
#[derive(Debug, Default)]
pub(crate) struct Diary {
    /// The documents that a server has acknowledged.
    pub(crate) kept: Vec<Kept>,
    /// The titles of the documents without an answer.
    pub(crate) unheard: BTreeSet<String>,
    pub(crate) created: u64,
    pub(crate) deleted: u64,
    pub(crate) changed: u64,
    /// Requests that the API server did not answer.
    pub(crate) unanswered: u64,
}

/// A document, with its notebook.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) body: String,
}

pub(crate) struct User<'a> {
    pub(crate) stage: &'a Stage,
    pub(crate) history: &'a History,
    pub(crate) api: Api<Notes>,
    pub(crate) dice: Dice,
    pub(crate) diary: Diary,
    /// The notebooks, by uid, whose desired state was `ReadOnly`, from which no route leads back.
    closed: BTreeSet<String>,
    count: u64,
}

#[derive(Clone, Copy)]
enum Step {
    Create,
    Write,
    Visit,
    DesiredState,
    Change,
    Pause,
    Delete,
}

impl<'a> User<'a> {
    pub(crate) fn new(stage: &'a Stage, history: &'a History, api: Api<Notes>, dice: Dice) -> Self {
        Self {
            stage,
            history,
            api,
            dice,
            diary: Diary::default(),
            closed: BTreeSet::new(),
            count: 0,
        }
    }

    /// Takes random steps until the end.
    pub(crate) async fn live(&mut self, end: Instant) {
        while Instant::now() < end {
            sleep(self.dice.millis(20, 300)).await;
            let step = self.dice.weighted(&[
                (10, Step::Create),
                (50, Step::Write),
                (10, Step::Visit),
                (8, Step::DesiredState),
                (6, Step::Change),
                (4, Step::Pause),
                (5, Step::Delete),
            ]);
            self.take(step).await;
        }
    }

    async fn take(&mut self, step: Step) {
        self.count += 1;
        let notebooks: Vec<Value> = self.history.seen().alive.values().cloned().collect();
        if let Step::Create = step {
            let free: Vec<_> = (NAMES.iter())
                .filter(|name| !notebooks.iter().any(|one| text(one, NAME) == **name))
                .collect();
            if let Some(name) = self.dice.pick(&free).copied() {
                self.create(name).await;
            }
            return;
        }
        let Some(notebook) = self.dice.pick(&notebooks).cloned() else {
            return;
        };
        let name = text(&notebook, NAME).to_owned();
        match step {
            Step::Create => {}
            Step::Write => self.write(&name, text(&notebook, STATE)).await,
            Step::Visit => {
                let visit = json!({ "state": "Servicing", "request": format!("v{}", self.count) });
                self.ask_for(&name, json!({ "visit": visit })).await;
            }
            Step::DesiredState if text(&notebook, STATE) == "Failed" => self.ask_again(&name).await,
            Step::DesiredState => {
                let state = self.next_desired(&notebook);
                self.ask_for(&name, json!({ "state": state })).await;
            }
            Step::Change => {
                let bytes = self.dice.between(2_000, 8_000);
                self.change(&name, json!({ "spec": { "maximumBodyBytes": bytes } }))
                    .await;
            }
            Step::Pause => {
                let paused = text(&notebook, PAUSED) == "true";
                self.pause(&name, !paused).await;
            }
            Step::Delete => {
                self.diary.deleted += 1;
                let params = DeleteParams::default();
                let deleted = timeout(PATIENCE, self.api.delete(&name, &params)).await;
                self.heard(matches!(deleted, Ok(Ok(_) | Err(kube::Error::Api(_)))));
            }
        }
    }

    async fn create(&mut self, name: &str) {
        let spec = json!({ "backupPauseMs": self.dice.between(0, 60) });
        let notebook = json!({
            "apiVersion": "demo.okt.dev/v1",
            "kind": "Notes",
            "metadata": { "name": name },
            "spec": spec,
        });
        let notebook: Notes = serde_json::from_value(notebook).expect("a notebook");
        let params = PostParams::default();
        let created = timeout(PATIENCE, self.api.create(&params, &notebook)).await;
        self.diary.created += u64::from(matches!(created, Ok(Ok(_))));
        self.heard(matches!(created, Ok(Ok(_) | Err(kube::Error::Api(_)))));
    }

    /// Adds a few documents if the notebook may accept some.
    async fn write(&mut self, name: &str, state: &str) {
        if !matches!(state, "Running" | "Servicing") {
            return;
        }
        let server = self.stage.instance(name);
        for number in 0..self.dice.between(1, 5) {
            let title = format!("{name} {} {number}", self.count);
            let length = usize::try_from(self.dice.between(1, 1_500)).expect("it is small");
            let body = "x".repeat(length);
            if server.add(&title, &body).await.is_err() {
                self.diary.unheard.insert(title);
                return;
            }
            self.diary.kept.push(Kept {
                name: name.to_owned(),
                title,
                body,
            });
        }
    }

    /// Chooses the next desired state, never one without a route.
    fn next_desired(&mut self, notebook: &Value) -> &'static str {
        let uid = text(notebook, "/metadata/uid").to_owned();
        let ended = text(notebook, STATE) == "End" && text(notebook, DESIRED) == "End";
        let was_closed = self.closed.contains(&uid);
        let desired = if was_closed && !ended {
            self.dice.weighted(&[(1, "ReadOnly"), (1, "End")])
        } else {
            self.dice
                .weighted(&[(6, "Running"), (2, "ReadOnly"), (2, "End")])
        };
        match desired {
            "ReadOnly" => self.closed.insert(uid),
            "Running" => self.closed.remove(&uid),
            _ => false,
        };
        desired
    }

    async fn ask_for(&mut self, name: &str, lifecycle: Value) {
        self.change(name, json!({ "spec": { "lifecycle": lifecycle } }))
            .await;
    }

    async fn pause(&mut self, name: &str, pause: bool) {
        let value = if pause { json!("true") } else { Value::Null };
        let patch = json!({ "metadata": { "annotations": { PAUSED_ANNOTATION: value } } });
        self.change(name, patch).await;
    }

    async fn change(&mut self, name: &str, patch: Value) {
        let patch = Patch::Merge(patch);
        let params = PatchParams::default();
        let changed = timeout(PATIENCE, self.api.patch(name, &params, &patch)).await;
        self.diary.changed += u64::from(matches!(changed, Ok(Ok(_))));
        self.heard(matches!(changed, Ok(Ok(_) | Err(kube::Error::Api(_)))));
    }

    fn heard(&mut self, answer: bool) {
        self.diary.unanswered += u64::from(!answer);
    }

    /// Continues everything that waits for the user; returns how many notebooks needed another request.
    pub(crate) async fn let_go_on(&mut self) -> u64 {
        let notebooks: Vec<Value> = self.history.seen().alive.values().cloned().collect();
        let mut asked = 0;
        for notebook in notebooks {
            let name = text(&notebook, NAME);
            if text(&notebook, PAUSED) == "true" {
                self.pause(name, false).await;
            }
            match (text(&notebook, STATE), text(&notebook, DESIRED)) {
                // Failed, or ended before the last desired state: OKT does nothing without a new request.
                ("Failed", _) | ("End", "" | "Running" | "ReadOnly") => {
                    self.ask_again(name).await;
                    asked += 1;
                }
                ("ReadOnly", "" | "Running") => {
                    self.ask_for(name, json!({ "state": "ReadOnly" })).await;
                    asked += 1;
                }
                _ => {}
            }
        }
        asked
    }

    async fn ask_again(&mut self, name: &str) {
        self.count += 1;
        let request = format!("again{}", self.count);
        self.ask_for(name, json!({ "request": request })).await;
    }

    /// Deletes all notebooks.
    pub(crate) async fn delete_all(&mut self) {
        let names: Vec<String> = (self.history.seen().alive.values())
            .map(|notebook| text(notebook, NAME).to_owned())
            .collect();
        for name in names {
            let deleted = self.api.delete(&name, &DeleteParams::default()).await;
            deleted.expect("the API server is well");
        }
    }
}

pub(crate) const NAME: &str = "/metadata/name";
pub(crate) const STATE: &str = "/status/lifecycle/state";
pub(crate) const DESIRED: &str = "/spec/lifecycle/state";
const PAUSED: &str = "/metadata/annotations/okt.dev~1paused";
