//! This file is one controller in a process of its own, so that its memory and its time are nobody else's.

use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use std::{env, fs, io, thread};

use http::Request;
use kube::client::{Body, ClientBuilder};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tower::util::MapRequestLayer;

use crate::tally::{Figures, Tally};
use crate::{by_hand, with_okt};

/// The word before the arguments of a child.
pub(crate) const CHILD: &str = "controller";

/// How a controller was written.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Way {
    ByHand,
    WithOkt,
}

impl Way {
    /// In the order in which they take turns.
    pub(crate) const BOTH: [Self; 2] = [Self::ByHand, Self::WithOkt];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ByHand => "by-hand",
            Self::WithOkt => "with-okt",
        }
    }
}

/// What the child does: runs a controller, and says what it has done whenever a line comes in.
pub(crate) fn main(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let [way, kubeconfig, namespace, expected] = arguments else {
        return Err("a controller wants its way, a kubeconfig, a namespace and a number".into());
    };
    let tally = Arc::new(Tally::expecting(expected.parse()?));
    let asked = Arc::clone(&tally);
    thread::spawn(move || answer(&asked));
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(async {
        let client = client(Path::new(kubeconfig), Arc::clone(&tally)).await?;
        if way == Way::ByHand.name() {
            by_hand::run(client, namespace, tally).await;
        } else {
            with_okt::run(client, namespace, tally).await?;
        }
        Ok(())
    })
}

async fn client(kubeconfig: &Path, tally: Arc<Tally>) -> Result<Client, Box<dyn Error>> {
    let kubeconfig = Kubeconfig::read_from(kubeconfig)?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
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

/// A controller that runs, seen from outside; it ends with this value.
pub(crate) struct Controller {
    child: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
}

/// What a process holds, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    pub(crate) now: u64,
    pub(crate) peak: u64,
}

impl Controller {
    /// Starts a controller that is to say when it had so many turns.
    pub(crate) fn start(
        way: Way,
        kubeconfig: &Path,
        namespace: &str,
        expected: usize,
    ) -> io::Result<Self> {
        let mut child = Command::new(env::current_exe()?)
            .args([CHILD, way.name()])
            .arg(kubeconfig)
            .args([namespace, &expected.to_string()])
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
    pub(crate) fn figures(&mut self) -> io::Result<Figures> {
        writeln!(self.questions)?;
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        Ok(serde_json::from_str(&line)?)
    }

    /// Its memory, as Linux knows it.
    pub(crate) fn memory(&self) -> io::Result<Memory> {
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
    pub(crate) fn cpu(&self) -> io::Result<Duration> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        // After the name, which may hold anything: the state is the third field, the times are the 14th and 15th.
        let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
        let ticks = fields.split_whitespace().skip(11).take(2);
        let ticks: u64 = ticks.filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
        Ok(Duration::from_millis(ticks * 10))
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        // It may be gone already, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
