//! Many large and slow bodies at once: the agent still answers, and its memory stays small.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::site::{Site, peak};

/// The limit for the memory besides the program itself, in KiB: 50 MB minus 10 MB, the maximum of a released program.
const MEMORY: u64 = 40_000_000 / 1024;

/// The longest body that an agent reads, in bytes.
const BODY: usize = 256 * 1024;

/// The number of concurrent bodies, which is more than the agent's limit of connections.
const CROWD: usize = 400;

const WORK: &str = "
probe: { command: [echo, Running] }
states: { Servicing: { command: [sleep, \"600\"] } }
";

/// Returns the body that needs most memory: as many values as allowed, each in its own object.
fn dense(state: &str, transition: u64) -> String {
    let nested: Vec<_> = (0..2450).map(|_| r#"{"":1}"#).collect();
    format!(
        r#"{{"state":"{state}","fence":{{"transition":{transition},"recordedAt":"2026-11-20T10:00:01Z"}},
            "owner":{{"uid":"u1","createdAt":"2026-11-20T10:00:00Z","name":"orders","namespace":"shop"}},"input":{{"all":[{}]}}}}"#,
        nested.join(",")
    )
}

/// A client that sends a large body except its end, first as fast as possible and then byte by byte.
struct Slow {
    stream: UnixStream,
    sent: usize,
}

impl Slow {
    fn new(site: &Site, text: &[u8]) -> Option<Self> {
        let stream = UnixStream::connect(site.path("socket")).ok()?;
        stream.set_nonblocking(true).ok()?;
        let mut slow = Self { stream, sent: 0 };
        slow.send(text).then_some(slow)
    }

    /// Sends more. Returns whether the agent keeps the connection open.
    fn send(&mut self, text: &[u8]) -> bool {
        // Send the last kilobyte one byte at a time, and never the last byte.
        let most = if self.sent < text.len() - 1024 {
            text.len() - 1024
        } else {
            (self.sent + 1).min(text.len() - 1)
        };
        match self.stream.write(&text[self.sent..most]) {
            Ok(sent) => self.sent += sent,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => return false,
        }
        // Any answer is a refusal that ends the connection.
        let answer = self.stream.read_exact(&mut [0]);
        answer.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
    }
}

fn request(id: usize, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("PUT /lifecycle/v1/actions/f.{id} HTTP/1.1\r\nhost: a\r\ncontent-length: {length}\r\n\r\n{body}")
        .into_bytes()
}

#[test]
fn hundreds_of_large_bodies_that_come_slowly_neither_stop_the_status_nor_take_memory() {
    let mut site = Site::running(WORK);
    let padded = dense("Servicing", 9) + &" ".repeat(BODY);
    let large = request(0, &padded[..BODY]);
    let mut crowd: Vec<Slow> = Vec::new();
    let begun = Instant::now();
    let mut asked = 0;
    let mut id = None;
    while begun.elapsed() < Duration::from_secs(4) || asked < 50 {
        assert!(begun.elapsed() < Duration::from_mins(5), "{asked} answers");
        crowd.retain_mut(|slow| slow.send(&large));
        while crowd.len() < CROWD {
            match Slow::new(&site, &large) {
                Some(slow) => crowd.push(slow),
                // The agent has no free connection at this moment.
                None => break,
            }
        }
        let since = Instant::now();
        let answer = site.ask("GET", "/lifecycle/v1/status", "");
        assert_eq!(answer.expect("an answer").0, 200);
        let took = since.elapsed();
        assert!(took < Duration::from_secs(30), "{took:?}");
        asked += 1;
        // Small requests get past the large ones too.
        if asked == 25 {
            id = Some(site.put("Servicing"));
        }
    }
    let most = peak(site.pid());
    println!("{most} KiB at most, {asked} times asked");
    assert!(most < MEMORY, "{most} KiB at most, {MEMORY} are allowed");
    drop(crowd);
    let id = id.expect("the work was requested");
    assert_eq!(site.cancel(&id), 202);
    assert_eq!(site.wait(&id)["phase"], json!("Cancelled"));
}

#[test]
fn hundreds_of_dense_bodies_at_once_take_no_memory_either() {
    let mut site = Site::running(WORK);
    let id = site.put("Servicing");
    // The agent decodes each of these, and refuses it.
    let kept = String::from_utf8(request(1, &dense("Servicing", 9))).expect("it is text");
    let text = kept.replace("host: a", "host: a\r\nconnection: close");
    let mut answered = 0;
    for _ in 0..2 {
        let mut crowd = Vec::new();
        for _ in 0..200 {
            let stream = UnixStream::connect(site.path("socket")).expect("it listens");
            let limit = Some(Duration::from_mins(10));
            stream.set_read_timeout(limit).expect("a socket");
            let mut writing = stream.try_clone().expect("a socket");
            let text = text.clone();
            let sending = std::thread::spawn(move || writing.write_all(text.as_bytes()));
            crowd.push((stream, sending));
        }
        for (mut stream, sending) in crowd {
            let mut answer = String::new();
            stream.read_to_string(&mut answer).expect("an answer");
            let _ = sending.join();
            let mut codes = ["Busy", "Overloaded", "TooSlow"].iter();
            let is_refused = codes.any(|code| answer.contains(&format!(r#""code":"{code}""#)));
            assert!(is_refused, "{answer}");
            answered += 1;
        }
    }
    assert_eq!(answered, 400);
    let most = peak(site.pid());
    println!("{most} KiB at most");
    assert!(most < MEMORY, "{most} KiB at most, {MEMORY} are allowed");
    assert_eq!(site.cancel(&id), 202);
}
