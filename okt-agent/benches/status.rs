//! Measures the latency of the status over loopback while an action runs, and the cost of a thousand half-open
//! connections.
//!
//! `cargo bench -p okt-agent --features agent --bench status` prints the results, and fails if a goal is missed. Run as a
//! test, it only checks that the measurement works.
//! The agent runs in its own process, so that its memory does not include that of the clients.

use std::error::Error;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use okt_agent::wire::Sighting;
use okt_agent::{Agent, Done, Fault, Listen, Offer, Task, Work};

/// The goal for the median latency of a status while an action runs.
const MEDIAN: Duration = Duration::from_millis(1);

/// The goal for the agent's memory, in KiB: 50 MB.
const MEMORY: u64 = 50_000_000 / 1024;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// An application whose work prints until it is cancelled.
struct Endless;

impl Work for Endless {
    fn offers(&self) -> Vec<Offer> {
        vec![Offer {
            state: "Servicing".into(),
            repeatable: true,
        }]
    }

    async fn observe(&self) -> Sighting {
        Sighting::in_state("Running")
    }

    async fn perform(&self, task: &Task) -> Result<Done, Fault> {
        loop {
            task.print(&[b'.'; 4096]);
            tokio::select! {
                () = tokio::time::sleep(Duration::from_millis(10)) => {}
                () = task.cancelled() => return Err(Fault::retry("Cancelled", "it was cancelled")),
            }
        }
    }
}

fn main() -> Outcome<()> {
    if std::env::args().any(|argument| argument == "--agent") {
        return agent();
    }
    let measured = std::env::args().any(|argument| argument == "--bench");
    let requests = if measured { 20_000 } else { 100 };
    let mut agent = Beside::start()?;
    let address = agent.address;
    let work = r#"{"state":"Servicing","owner":{"uid":"7c5d","createdAt":"2026-11-20T10:00:00Z","name":"orders"},"fence":{"transition":1,"recordedAt":"2026-11-20T10:00:01Z"}}"#;
    let mut keeper = TcpStream::connect(address)?;
    keeper.set_nodelay(true)?;
    let put = format!(
        "PUT /lifecycle/v1/actions/a HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n{work}",
        work.len()
    );
    assert!(ask(&mut keeper, put.as_bytes())?.starts_with("HTTP/1.1 201"));

    println!("status over loopback while an action runs, {requests} requests each:");
    let anew = || status(&mut TcpStream::connect(address)?);
    let kept = latencies("one connection kept", requests, || status(&mut keeper))?;
    let each = latencies("a connection each", requests / 4, anew)?;
    println!("resident memory of the agent: {} KiB", agent.resident()?);
    let crowd = (0..1000)
        .map(|_| {
            let mut stream = TcpStream::connect(address)?;
            stream.write_all(b"PUT /lifecycle/v1/actions/b HTTP/1.1\r\nHost: a\r\nX: ")?;
            Ok(stream)
        })
        .collect::<Outcome<Vec<_>>>()?;
    let (half_open, resident) = (crowd.len(), agent.resident()?);
    println!("with {half_open} half-open connections: {resident} KiB");
    let crowded = latencies("a connection each", requests / 4, anew)?;
    let memory = agent.resident()?;
    agent.child.kill()?;
    agent.child.wait()?;
    let is_slow = kept.max(each).max(crowded) >= MEDIAN;
    if measured && (is_slow || memory >= MEMORY) {
        let goals = format!("a median below {MEDIAN:?} and {MEMORY} KiB at most");
        return Err(format!("a goal is missed: {goals}").into());
    }
    Ok(())
}

/// Runs the agent's process: prints its address and serves until it is killed.
fn agent() -> Outcome<()> {
    let directory = tempfile::tempdir()?;
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?
        .block_on(async {
            let loopback = Listen::tcp(SocketAddr::from(([127, 0, 0, 1], 0)));
            let bound = Agent::new(Endless, directory.path())
                .bind([loopback])
                .await?;
            for address in bound.addresses() {
                println!("{address}");
            }
            // It ends with the process that has started it, even if that is killed.
            let parent = tokio::task::spawn_blocking(|| std::io::stdin().read(&mut [0]));
            bound.run(async move { drop(parent.await) }).await?;
            Ok(())
        })
}

struct Beside {
    child: Child,
    address: SocketAddr,
}

impl Beside {
    fn start() -> Outcome<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg("--agent")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let out = child.stdout.take().ok_or("no output")?;
        let mut line = String::new();
        BufReader::new(out).read_line(&mut line)?;
        let address = line.trim().parse()?;
        Ok(Self { child, address })
    }

    /// Returns the resident memory, in KiB.
    fn resident(&self) -> Outcome<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let number = line.and_then(|line| line.split_whitespace().next());
        Ok(number.ok_or("no VmRSS")?.parse()?)
    }
}

fn status(stream: &mut TcpStream) -> Outcome<()> {
    let request = b"GET /lifecycle/v1/status HTTP/1.1\r\nHost: a\r\n\r\n";
    let answer = ask(stream, request)?;
    assert!(answer.contains(r#""phase":"Running""#), "{answer}");
    Ok(())
}

/// Sends a request and reads one answer.
fn ask(stream: &mut TcpStream, request: &[u8]) -> Outcome<String> {
    stream.write_all(request)?;
    let mut text = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let read = stream.read(&mut buffer)?;
        if read == 0 {
            return Err("the connection was closed".into());
        }
        text.extend_from_slice(&buffer[..read]);
        let whole = String::from_utf8_lossy(&text);
        if let Some((head, body)) = whole.split_once("\r\n\r\n") {
            let head = head.to_ascii_lowercase();
            let mut lengths = head
                .lines()
                .map(|line| line.strip_prefix("content-length: "));
            let length = lengths.find_map(|length| length).ok_or("no length")?;
            if body.len() >= length.parse()? {
                return Ok(whole.into_owned());
            }
        }
    }
}

/// Prints how long requests took, and returns the median.
fn latencies(
    what: &str,
    requests: usize,
    mut request: impl FnMut() -> Outcome<()>,
) -> Outcome<Duration> {
    let mut took = Vec::with_capacity(requests);
    for _ in 0..requests {
        let begun = Instant::now();
        request()?;
        took.push(begun.elapsed());
    }
    took.sort();
    let at = |percent: usize| took[(took.len() - 1) * percent / 100];
    let (median, most, longest) = (at(50), at(99), at(100));
    println!("  {what:23} median {median:?}, 99 of 100 within {most:?}, longest {longest:?}");
    Ok(median)
}
