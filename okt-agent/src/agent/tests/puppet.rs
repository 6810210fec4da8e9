//! An application that follows its input, in a world that outlives the agent, and requests to the agent.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::{Instant, sleep};
use tower::ServiceExt as _;

use super::super::journal::JournalStep;
use super::super::{Agent, Started};
use crate::wire::Sighting;
use crate::work::{Done, Fault, Leftover, Offer, Task, Work};

/// The part of the application that outlives the agent.
#[derive(Debug, Default)]
pub(super) struct World {
    /// What was begun, remembered, done and cleaned up, in this order.
    pub(super) log: Mutex<Vec<String>>,
    /// How often the application was observed.
    pub(super) observations: AtomicUsize,
    /// The result of an observation: `None` hangs, an empty text panics, and one that begins with `slow ` is delayed.
    pub(super) place: Mutex<Option<String>>,
    /// Whether work that blocks its thread goes on.
    pub(super) held: AtomicBool,
    /// How often the cleanup fails.
    pub(super) stuck: AtomicUsize,
}

impl World {
    pub(super) fn new() -> Arc<Self> {
        let world = Self::default();
        *world.place.lock() = Some("Running".to_owned());
        Arc::new(world)
    }

    pub(super) fn note(&self, text: impl Into<String>) {
        self.log.lock().push(text.into());
    }

    /// Counts the lines of the log with this prefix.
    pub(super) fn count(&self, prefix: &str) -> usize {
        let log = self.log.lock();
        log.iter().filter(|line| line.starts_with(prefix)).count()
    }

    pub(super) fn put_at(&self, place: Option<&str>) {
        *self.place.lock() = place.map(ToOwned::to_owned);
    }
}

/// An application that follows its input.
pub(super) struct Puppet(pub(super) Arc<World>);

impl Work for Puppet {
    fn offers(&self) -> Vec<Offer> {
        let offer = |state: &str, repeatable| Offer {
            state: state.to_owned(),
            repeatable,
        };
        vec![offer("Twice", true), offer("Once", false)]
    }

    async fn observe(&self) -> Sighting {
        self.0.observations.fetch_add(1, Ordering::Relaxed);
        let place = self.0.place.lock().clone();
        match place {
            None => std::future::pending().await,
            Some(place) if place.is_empty() => panic!("no place"),
            Some(place) => {
                if let Some(place) = place.strip_prefix("slow ") {
                    sleep(Duration::from_secs(2)).await;
                    return Sighting::in_state(place);
                }
                Sighting::in_state(place)
            }
        }
    }

    async fn perform(&self, task: &Task) -> Result<Done, Fault> {
        let id = task.id();
        let resumed = if task.resumed() { " resumed" } else { "" };
        self.0
            .note(format!("begin {id} {}{resumed}", task.attempt()));
        let input = task.input();
        let text = |key: &str| input.get(key).and_then(Value::as_str).unwrap_or_default();
        let number = |key: &str| input.get(key).and_then(Value::as_u64).unwrap_or_default();
        if let Some(note) = input.get("remember") {
            let remembered = task.remember("note", note.clone()).await;
            self.0.note(format!("remember {id} {}", remembered.is_ok()));
            if let Err(error) = remembered {
                return Err(Fault::retry("NotRemembered", error.to_string()));
            }
        }
        task.print(text("print").as_bytes());
        task.progress(Some(50), "half");
        match text("how") {
            "fail" => return Err(Fault::permanent("Wrong", "it is wrong")),
            "panic" => panic!("what a pity"),
            "stubborn" => sleep(Duration::from_secs(1 << 30)).await,
            "block" => {
                // A test that fails does not let it go, and its runtime waits for the thread.
                let longest = std::time::Instant::now() + Duration::from_mins(10);
                while self.0.held.load(Ordering::SeqCst) && std::time::Instant::now() < longest {
                    std::thread::sleep(Duration::from_millis(5));
                }
            }
            _ => {
                let work = sleep(Duration::from_secs(number("seconds")));
                tokio::select! {
                    () = work => {}
                    () = task.cancelled() => {
                        self.0.note(format!("cancelled {id}"));
                        return Err(Fault::retry("Ended", "it was cancelled"));
                    }
                }
            }
        }
        self.0.note(format!("done {id}"));
        Ok(Done {
            event: Some("Next".to_owned()),
            message: "well".to_owned(),
        })
    }

    async fn recover(&self, left: &Leftover) -> Result<(), Fault> {
        let note = left.notes.get("note");
        self.0.note(format!("recover {} {note:?}", left.id));
        let stuck = self.0.stuck.load(Ordering::Relaxed);
        if stuck == 0 {
            return Ok(());
        }
        self.0.stuck.store(stuck - 1, Ordering::Relaxed);
        Err(Fault::retry("Stuck", "a process does not end"))
    }
}

/// An agent with a puppet.
pub(super) struct Life {
    pub(super) world: Arc<World>,
    pub(super) directory: Arc<TempDir>,
    pub(super) started: Started,
}

/// An answer.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) text: String,
    pub(super) json: Value,
}

impl Answer {
    pub(super) fn code(&self) -> (u16, &str) {
        (self.status, self.json["code"].as_str().unwrap_or_default())
    }

    pub(super) fn phase(&self) -> &str {
        self.json["phase"].as_str().unwrap_or_default()
    }
}

impl Life {
    /// Starts a first agent in a new world.
    pub(super) async fn new() -> Self {
        Self::with(|agent| agent).await
    }

    pub(super) async fn with(set: impl FnOnce(Agent<Puppet>) -> Agent<Puppet>) -> Self {
        let directory = Arc::new(tempfile::tempdir().unwrap());
        Self::start(World::new(), directory, set).await
    }

    /// Starts an agent with this journal, as soon as the previous agent has released it.
    pub(super) async fn start(
        world: Arc<World>,
        directory: Arc<TempDir>,
        set: impl FnOnce(Agent<Puppet>) -> Agent<Puppet>,
    ) -> Self {
        let lock = std::fs::File::create(directory.path().join("lock")).unwrap();
        while lock.try_lock().is_err() {
            tokio::task::yield_now().await;
            std::thread::sleep(Duration::from_millis(1));
        }
        drop(lock);
        let agent = Agent::new(Puppet(Arc::clone(&world)), directory.path()).graph("sha256:own");
        let started = set(agent).start().await.expect("the journal can be opened");
        Self {
            world,
            directory,
            started,
        }
    }

    /// Ends the agent as `kill -9` does, and starts another one.
    pub(super) async fn crash(self) -> Self {
        self.crash_into(|agent| agent).await
    }

    /// Ends the agent as `kill -9` does, and starts one with these settings.
    pub(super) async fn crash_into(self, set: impl FnOnce(Agent<Puppet>) -> Agent<Puppet>) -> Self {
        drop(self.started);
        Self::start(self.world, self.directory, set).await
    }

    pub(super) fn journal(&self) -> std::path::PathBuf {
        Path::new(self.directory.path()).join("journal")
    }

    pub(super) async fn call(&self, method: &str, path: &str, body: Value) -> Answer {
        call(self.started.router(), method, path, body).await
    }

    pub(super) async fn put(&self, id: &str, request: Value) -> Answer {
        let path = format!("/lifecycle/v1/actions/{id}");
        self.call("PUT", &path, request).await
    }

    /// Reads an action, or all actions with an empty id.
    pub(super) async fn get(&self, id: &str) -> Answer {
        let path = format!("/lifecycle/v1/actions/{id}");
        self.call("GET", path.trim_end_matches('/'), Value::Null)
            .await
    }

    /// Waits for the end of an action, with almost no time limit.
    pub(super) async fn end(&self, id: &str) -> Answer {
        let deadline = Instant::now() + Duration::from_secs(100_000);
        loop {
            let path = format!("/lifecycle/v1/actions/{id}?wait=30");
            let answer = self.call("GET", &path, Value::Null).await;
            if !matches!(answer.phase(), "Pending" | "Running") {
                return answer;
            }
            assert!(Instant::now() < deadline, "{id} does not end: {answer:?}");
        }
    }

    pub(super) async fn acknowledge(&self, id: &str, attempt: u32, epoch: u64) -> Answer {
        let path = format!("/lifecycle/v1/actions/{id}/acknowledgement");
        let body = json!({ "attempt": attempt, "epoch": epoch });
        self.call("PUT", &path, body).await
    }

    pub(super) async fn cancel(&self, id: &str, epoch: u64) -> Answer {
        let path = format!("/lifecycle/v1/actions/{id}?epoch={epoch}");
        self.call("DELETE", &path, Value::Null).await
    }

    pub(super) async fn status(&self) -> Value {
        self.call("GET", "/lifecycle/v1/status", Value::Null)
            .await
            .json
    }

    pub(super) async fn ready(&self) -> bool {
        self.call("GET", "/readyz", Value::Null).await.status == 200
    }
}

pub(super) async fn call(router: Router, method: &str, path: &str, body: Value) -> Answer {
    let body = match body {
        Value::Null => Body::empty(),
        body => Body::from(body.to_string()),
    };
    let request = Request::builder().method(method).uri(path);
    answer(router, request.body(body).unwrap()).await
}

pub(super) async fn answer(router: Router, request: Request<Body>) -> Answer {
    let answer = router.oneshot(request).await.unwrap();
    let (parts, body) = answer.into_parts();
    let bytes = to_bytes(body, usize::MAX).await.unwrap();
    Answer {
        status: parts.status.as_u16(),
        headers: parts.headers,
        text: String::from_utf8_lossy(&bytes).into_owned(),
        json: serde_json::from_slice(&bytes).unwrap_or_default(),
    }
}

/// Returns a request for work with this input, by the operator of this epoch.
pub(super) fn work(state: &str, epoch: u64, transition: u64, input: &Value) -> Value {
    json!({
        "state": state,
        "owner": { "uid": "7c5d", "createdAt": "2026-11-20T10:00:00Z", "name": "orders", "namespace": "shop" },
        "fence": { "epoch": epoch, "transition": transition, "recordedAt": "2026-11-20T10:00:01Z" },
        "input": input,
    })
}

/// Returns a request for work that is not repeatable, by the operator of epoch 1.
pub(super) fn once(transition: u64, input: &Value) -> Value {
    work("Once", 1, transition, input)
}

/// Makes those steps of writes fail for which `fails` returns `true`.
pub(super) fn failing(
    fails: impl Fn(usize, JournalStep) -> bool + Send + 'static,
) -> impl FnOnce(Agent<Puppet>) -> Agent<Puppet> {
    let mut number = 0;
    let gate = move |step| {
        number += 1;
        if fails(number, step) {
            return Err(io::Error::other("no space left on the device"));
        }
        Ok(())
    };
    |agent| agent.gate(Box::new(gate))
}
