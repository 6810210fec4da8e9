//! This file is a program that is measured, as a process of its own: its memory and its time are nobody else's.

use std::error::Error;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use http::Request;
use kube::client::{Body, ClientBuilder};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tower::util::MapRequestLayer;

use super::tally::{Figures, Tally};

/// How long nothing must be written until all is at rest.
const QUIET: Duration = Duration::from_secs(2);
/// How long that may take.
const LIMIT: Duration = Duration::from_mins(10);

/// What a part of a benchmark does with the words that it was given.
type Part = fn(&[String]) -> Result<(), Box<dyn Error>>;

/// The whole of a benchmark that runs itself: after the word `child` what is measured, else what measures it.
pub fn program(child: &str, measured: Part, measures: Part) -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    let done = match words.split_first() {
        Some((first, rest)) if first == child => measured(rest),
        Some(_) | None => measures(&words),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// A program that runs, seen from outside; it ends with this value.
pub struct Process {
    child: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
}

/// What a process holds, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// Resident now.
    pub now: u64,
    /// The most that ever was.
    pub peak: u64,
}

impl Process {
    /// Starts a program that prints its [`Figures`] as JSON for each line that comes in, and ends with its input.
    ///
    /// # Errors
    /// It does not start.
    pub fn start(command: &mut Command) -> io::Result<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (Some(questions), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("a child without pipes"));
        };
        Ok(Self {
            child,
            questions,
            answers: BufReader::new(answers),
        })
    }

    /// What it has done so far.
    ///
    /// # Errors
    /// It has ended.
    pub fn figures(&mut self) -> io::Result<Figures> {
        writeln!(self.questions)?;
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        Ok(serde_json::from_str(&line)?)
    }

    /// Waits until every turn was had that it was to expect, and nothing was written for a while.
    ///
    /// # Errors
    /// It has ended, or it takes longer than ten minutes.
    pub async fn rest(&mut self) -> io::Result<Figures> {
        let (begun, mut before, mut since) = (Instant::now(), self.figures()?, Instant::now());
        loop {
            tokio::time::sleep(Duration::from_millis(50)).await;
            let figures = self.figures()?;
            if figures.writes != before.writes || figures.reconciliations != before.reconciliations
            {
                since = Instant::now();
            } else if figures.all_reconciled.is_some() && since.elapsed() > QUIET {
                return Ok(figures);
            } else if begun.elapsed() > LIMIT {
                return Err(io::Error::other(format!(
                    "it does not come to rest: {figures:?}"
                )));
            }
            before = figures;
        }
    }

    /// Its memory, as Linux knows it.
    ///
    /// # Errors
    /// It has ended, or this is no Linux.
    pub fn memory(&self) -> io::Result<Memory> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let bytes = |name: &str| {
            let line = status.lines().find(|line| line.starts_with(name));
            let kibibytes = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
            kibibytes.map_or(0, |kibibytes: u64| kibibytes * 1024)
        };
        Ok(Memory {
            now: bytes("VmRSS:"),
            peak: bytes("VmHWM:"),
        })
    }

    /// The processor time that it has used, to a hundredth of a second.
    ///
    /// # Errors
    /// It has ended, or this is no Linux.
    pub fn cpu(&self) -> io::Result<Duration> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        // After the name, which may hold anything: the state is the third field, the times are the 14th and 15th.
        let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
        let ticks = fields.split_whitespace().skip(11).take(2);
        let ticks: u64 = ticks.filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
        Ok(Duration::from_millis(ticks * 10))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may be gone already, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The other end of a [`Process`]: a client that counts, and a thread that answers.
///
/// # Errors
/// The kubeconfig leads nowhere.
pub async fn counted(kubeconfig: &Path, tally: &Arc<Tally>) -> Result<Client, Box<dyn Error>> {
    let asked = Arc::clone(tally);
    thread::spawn(move || answer(&asked));
    let kubeconfig = Kubeconfig::read_from(kubeconfig)?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    let tally = Arc::clone(tally);
    let counted = MapRequestLayer::new(move |request: Request<Body>| {
        tally.request(&request);
        request
    });
    Ok(ClientBuilder::try_from(config)?
        .with_layer(&counted)
        .build())
}

/// Ends with the process that asks.
fn answer(tally: &Tally) {
    for _ in io::stdin().lines().map_while(Result::ok) {
        let figures = serde_json::to_string(&tally.figures()).unwrap_or_default();
        println!("{figures}");
    }
    std::process::exit(0);
}

/// A time in milliseconds.
pub fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Bytes in megabytes.
#[expect(clippy::cast_precision_loss, reason = "no process has 2^52 bytes")]
pub fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}
