//! A replica of the operator: a process to start and to signal, and its log.

use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::Mutex;
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::Instant;

use crate::{LEASE_SECONDS, in_time, until};

/// Returns when a line was logged: on a busy machine it is read much later.
fn logged_at(line: &str) -> Instant {
    let now = Instant::now();
    let logged = line.split(' ').next().and_then(|it| it.parse().ok());
    let ago = logged.map(|it: Timestamp| Timestamp::now().duration_since(it).unsigned_abs());
    now.checked_sub(ago.unwrap_or_default()).unwrap_or(now)
}

/// A running replica; killed when it is dropped.
pub(crate) struct Replica {
    pub(crate) name: &'static str,
    process: Child,
    lines: Arc<Mutex<Vec<(Instant, String)>>>,
}

impl Replica {
    /// Starts a replica.
    pub(crate) fn start(name: &'static str, kubeconfig: &Path, press: &str) -> Self {
        Self::start_with(name, kubeconfig, press, "1", LEASE_SECONDS)
    }

    /// Starts a replica with these values of `--shards` and `--lease-duration`.
    pub(crate) fn start_with(
        name: &'static str,
        kubeconfig: &Path,
        press: &str,
        shards: &str,
        lease_seconds: u64,
    ) -> Self {
        let lease = format!("{lease_seconds}s");
        let mut program = Command::new(env!("CARGO_BIN_EXE_leader"));
        program
            .args(["run", "--press", press, "--leader-election"])
            .args(["--lease-duration", &lease, "--shards", shards]);
        Self::start_program(name, kubeconfig, program)
    }

    /// Starts a replica of any operator.
    pub(crate) fn start_program(
        name: &'static str,
        kubeconfig: &Path,
        mut program: Command,
    ) -> Self {
        let mut process = program
            .env("HOSTNAME", name)
            .env("KUBECONFIG", kubeconfig)
            .env("RUST_LOG", "info")
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let lines = Arc::new(Mutex::new(Vec::new()));
        let mut output = BufReader::new(process.stderr.take().unwrap()).lines();
        let writer = Arc::clone(&lines);
        tokio::spawn(async move {
            while let Ok(Some(line)) = output.next_line().await {
                tracing::debug!(replica = name, "{line}");
                writer.lock().push((logged_at(&line), line));
            }
        });
        Self {
            name,
            process,
            lines,
        }
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        let id = self.process.id().expect("it runs");
        let id = Pid::from_raw(id.try_into().unwrap()).unwrap();
        kill_process(id, signal).unwrap();
    }

    /// Waits until it has ended.
    pub(crate) async fn end(&mut self) -> ExitStatus {
        let what = format!("{} has ended", self.name);
        in_time(&what, self.process.wait()).await.unwrap()
    }

    /// Returns when it logged these words, after a time.
    pub(crate) fn lines(&self, words: &str, after: Instant) -> Vec<Instant> {
        let lines = self.lines.lock();
        (lines.iter())
            .filter(|(at, line)| *at >= after && line.contains(words))
            .map(|(at, _)| *at)
            .collect()
    }

    /// Returns the lines with these words, without what stands before them.
    pub(crate) fn texts(&self, words: &str) -> Vec<String> {
        let lines = self.lines.lock();
        let texts = lines
            .iter()
            .filter_map(|(_, line)| line.find(words).map(|at| line[at..].to_owned()));
        texts.collect()
    }

    /// Returns how many ranges it acts on, as it logged last.
    pub(crate) fn ranges(&self) -> usize {
        let lines = self.lines.lock();
        let last = lines.iter().rev().find_map(|(_, line)| {
            if line.contains("acts on nothing") {
                return Some(0);
            }
            let (_, after) = line.split_once("acts on ")?;
            after.split(' ').next()?.parse().ok()
        });
        last.unwrap_or_default()
    }

    /// Waits until it logs that it leads, after a time.
    pub(crate) async fn leads(&self, after: Instant) -> Instant {
        let what = format!("{} leads", self.name);
        until(&what, async || {
            self.lines("acts on 64 of 64 ranges", after)
                .first()
                .copied()
        })
        .await
    }

    /// Waits until it logs that it leads no longer, after a time.
    pub(crate) async fn leads_no_longer(&self, after: Instant) -> Instant {
        let what = format!("{} does not lead any more", self.name);
        until(&what, async || {
            self.lines("acts on nothing", after).first().copied()
        })
        .await
    }
}
