//! A measured program in its own process, so that its memory and its CPU time are measured alone.

use std::error::Error;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use http::{Request, Response};
use kube::client::{Body, ClientBuilder};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tower::util::{MapRequestLayer, MapResponseLayer};

use super::received::Received;
use super::tally::{Figures, Tally};

/// The time without writes after which a program counts as at rest.
const QUIET: Duration = Duration::from_secs(2);
/// The maximum time until a program is at rest.
const LIMIT: Duration = Duration::from_mins(10);

/// Runs a part of a benchmark with these arguments.
type Part = fn(&[String]) -> Result<(), Box<dyn Error>>;

/// The main function of a benchmark that starts itself: with the first argument `child` it runs the measured part, else
/// the measuring one.
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

/// A running program; it is killed when this value is dropped.
pub struct Process {
    child: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
}

/// The memory of a process, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// The current resident memory.
    pub now: u64,
    /// The part of it that is no file: without the code, of which a process maps what it has run.
    pub data: u64,
    /// The peak of the resident memory.
    pub peak: u64,
}

impl Process {
    /// Starts a program that prints its [`Figures`] as JSON for each line of input, and ends with its input.
    ///
    /// # Errors
    /// The program does not start.
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

    /// Returns the figures so far.
    ///
    /// # Errors
    /// The program has ended.
    pub fn figures(&mut self) -> io::Result<Figures> {
        writeln!(self.questions)?;
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        Ok(serde_json::from_str(&line)?)
    }

    /// Waits until all expected reconciliations are done and nothing was written for a while.
    ///
    /// # Errors
    /// The program has ended, or it takes longer than ten minutes.
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

    /// Returns the memory that Linux reports.
    ///
    /// # Errors
    /// The program has ended, or the system is not Linux.
    pub fn memory(&self) -> io::Result<Memory> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let bytes = |name: &str| {
            let line = status.lines().find(|line| line.starts_with(name));
            let kibibytes = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
            kibibytes.map_or(0, |kibibytes: u64| kibibytes * 1024)
        };
        Ok(Memory {
            now: bytes("VmRSS:"),
            data: bytes("RssAnon:"),
            peak: bytes("VmHWM:"),
        })
    }

    /// Returns the CPU time, to a hundredth of a second.
    ///
    /// # Errors
    /// The program has ended, or the system is not Linux.
    pub fn cpu(&self) -> io::Result<Duration> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        // After the name, which may hold any character: the state is the third field, the times are the 14th and 15th.
        let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
        let times = fields.split_whitespace().skip(11).take(2);
        let ticks: u64 = times.filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
        Ok(Duration::from_millis(ticks * 10))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sets up the child side of a [`Process`]: a client that counts, and a thread that prints the figures.
///
/// # Errors
/// The kubeconfig is invalid.
pub async fn counted(kubeconfig: &Path, tally: &Arc<Tally>) -> Result<Client, Box<dyn Error>> {
    let asked = Arc::clone(tally);
    thread::spawn(move || answer(&asked));
    let kubeconfig = Kubeconfig::read_from(kubeconfig)?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    let (sent, received) = (Arc::clone(tally), Arc::clone(tally));
    let requests = MapRequestLayer::new(move |request: Request<Body>| {
        sent.request(&request);
        request
    });
    let responses = MapResponseLayer::new(move |response: Response<_>| {
        let tally = Arc::clone(&received);
        response.map(|body| Received {
            body: Box::pin(body),
            tally,
        })
    });
    Ok(ClientBuilder::try_from(config)?
        .with_layer(&requests)
        .with_layer(&responses)
        .build())
}

/// Prints the figures for each line of input; exits with the parent process.
fn answer(tally: &Tally) {
    for _ in io::stdin().lines().map_while(Result::ok) {
        let figures = serde_json::to_string(&tally.figures()).unwrap_or_default();
        println!("{figures}");
    }
    std::process::exit(0);
}

/// Returns a time in milliseconds.
pub fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Returns bytes as megabytes.
#[expect(clippy::cast_precision_loss, reason = "no process has 2^52 bytes")]
pub fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}
