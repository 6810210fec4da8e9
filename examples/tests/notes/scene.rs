//! An instance with its own process, a writer, and orders to its agent.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use okt_agent::client::{Carried, Order};
use okt_agent::wire::{ActionReport, ActionRequest, AgentStatus, Fence, Owner};
use okt_examples::notes::{Error, Instance, Observed, Program, Settings};
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use tokio::task::JoinHandle;

/// An instance in a directory of its own, whose process does not outlive the test, however the test ends.
pub(crate) struct Scene {
    pub(crate) instance: Instance,
    pub(crate) root: TempDir,
}

impl Scene {
    /// Creates a prepared instance that is not started; `pause` is the pause between the steps of its backups.
    pub(crate) async fn prepared(pause: u64) -> Self {
        let scene = Self::empty(pause);
        let prepared = scene.instance.prepare().await;
        prepared.expect("a directory with a schema");
        scene
    }

    pub(crate) fn empty(pause: u64) -> Self {
        let root = tempfile::tempdir().expect("a directory");
        let program = Program {
            exe: env!("CARGO_BIN_EXE_notes").into(),
            args: ["serve", "--backup-pause-ms", &pause.to_string()]
                .map(Into::into)
                .into(),
        };
        let instance =
            Instance::new("team", root.path().join("data"), program).expect("an instance");
        Self { instance, root }
    }

    pub(crate) async fn started(pause: u64) -> Self {
        let scene = Self::prepared(pause).await;
        let started = scene.instance.start().await;
        started.expect("a process that is ready");
        scene
    }

    pub(crate) async fn add(&self, documents: u64) {
        for number in 0..documents {
            self.instance
                .add(&format!("title {number}"), &"text ".repeat(400))
                .await
                .expect("a kept document");
        }
    }

    /// Adds documents one after the other until a server refuses one or is gone.
    pub(crate) fn writer(&self) -> Writer {
        let kept = Arc::new(AtomicU64::new(0));
        let stop = Arc::new(AtomicBool::new(false));
        let task = tokio::spawn({
            let (instance, kept, stop) =
                (self.instance.clone(), Arc::clone(&kept), Arc::clone(&stop));
            async move {
                while !stop.load(Ordering::SeqCst) {
                    instance.add("meanwhile", &"more ".repeat(400)).await?;
                    kept.fetch_add(1, Ordering::SeqCst);
                }
                Ok(())
            }
        });
        Writer { task, kept, stop }
    }

    pub(crate) async fn answering(&self) -> AgentStatus {
        match self.instance.status().await.expect("a readable directory") {
            Observed::Answering(status) => *status,
            other => panic!("the agent does not answer: {other:?}"),
        }
    }

    /// Lets the agent do work, as an operator does, and waits for its end.
    pub(crate) async fn done(&self, order: &Order) -> ActionReport {
        let carried = self
            .instance
            .agent()
            .carry(order, std::future::pending(), |_| {})
            .await;
        match carried.expect("an end") {
            Carried::Ended(report) => report,
            Carried::Withdrawn(_) => unreachable!("nobody cancels it"),
        }
    }

    /// Requests work; returns whether that began it.
    pub(crate) async fn ask(&self, order: &Order) -> bool {
        let asked = self
            .instance
            .agent()
            .ask(&order.id, &order.request, None)
            .await;
        asked.expect("an answer").began
    }

    pub(crate) async fn report(&self, order: &Order) -> ActionReport {
        let report = self.instance.agent().report(&order.id, Duration::ZERO);
        report.await.expect("a report")
    }

    /// Waits until the agent reports that it has resumed the work of the agent before it.
    pub(crate) async fn resumed(&self, order: &Order) {
        let taken_up = async {
            loop {
                let report = self.report(order).await;
                if report.resumed {
                    return;
                }
                assert!(!report.phase.is_final(), "it is not taken up: {report:?}");
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        let limit = Duration::from_mins(2);
        let taken_up = tokio::time::timeout(limit, taken_up).await;
        taken_up.expect("it is taken up");
    }

    /// Returns how often a backup of this id was made, by the logs of the processes.
    pub(crate) fn made(&self, order: &Order) -> usize {
        let log = std::fs::read_to_string(self.instance.data().join("notes.log"));
        let made = format!("backup made id={} ", order.id);
        log.expect("a log").matches(&made).count()
    }

    /// Returns the path of the backup of this id.
    pub(crate) fn backup(&self, order: &Order) -> PathBuf {
        let backups = self.instance.data().join("backups");
        backups.join(format!("{}.db", order.id))
    }
}

/// Returns an order for the work of a state, in a transition of an object.
pub(crate) fn order(state: &str, transition: u64, settings: &Settings) -> Order {
    let id = format!("uid.{transition}");
    Order {
        id: id.parse().expect("an id"),
        request: ActionRequest {
            state: state.to_owned(),
            owner: Owner {
                uid: "uid".to_owned(),
                created_at: "2026-11-20T10:00:00Z".parse().expect("a time"),
                name: "team".to_owned(),
                namespace: String::new(),
            },
            fence: Fence {
                epoch: 0,
                transition,
                run: 1,
                recorded_at: "2026-11-20T10:00:01Z".parse().expect("a time"),
            },
            graph: None,
            from: Vec::new(),
            input: Map::from_iter([("spec".to_owned(), json!(settings))]),
        },
        traceparent: None,
        again: false,
    }
}

pub(crate) fn backup(transition: u64) -> Order {
    order("Servicing", transition, &Settings::default())
}

impl Drop for Scene {
    fn drop(&mut self) {
        let instance = self.instance.clone();
        // A separate thread, because this one may be unwinding inside a runtime.
        let kill = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime");
            runtime.block_on(instance.kill())
        });
        let killed = kill.join().expect("no panic");
        if !std::thread::panicking() {
            killed.expect("no process is left behind");
        }
    }
}

pub(crate) struct Writer {
    pub(crate) task: JoinHandle<Result<(), Error>>,
    pub(crate) kept: Arc<AtomicU64>,
    pub(crate) stop: Arc<AtomicBool>,
}

impl Writer {
    pub(crate) fn kept(&self) -> u64 {
        self.kept.load(Ordering::SeqCst)
    }

    pub(crate) async fn reaches(&self, documents: u64) {
        while self.kept() < documents {
            assert!(
                !self.task.is_finished(),
                "the writer ended after {} documents",
                self.kept()
            );
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    pub(crate) async fn stop(self) -> u64 {
        self.stop.store(true, Ordering::SeqCst);
        self.task
            .await
            .expect("no panic")
            .expect("every document was kept");
        self.kept.load(Ordering::SeqCst)
    }
}

pub(crate) fn announced(data: &Path) -> String {
    let content = std::fs::read(data.join("notes.json")).expect("notes.json");
    let announcement: Value = serde_json::from_slice(&content).expect("JSON");
    announcement["address"]
        .as_str()
        .expect("an address")
        .to_owned()
}

pub(crate) fn backups(scene: &Scene) -> Vec<String> {
    let entries = std::fs::read_dir(scene.instance.data().join("backups")).expect("a listing");
    entries
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect()
}
