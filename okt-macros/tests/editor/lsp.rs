//! A language server as a process: requests, and the messages that it sends by itself.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// How long an answer may take: a test should fail, not hang.
const LIMIT: Duration = Duration::from_mins(10);

/// The state changed while the server computed its answer (`ContentModified`).
const OUTDATED: i64 = -32801;

/// A running server. It ends when its input is closed, so it does not outlive this process.
pub(crate) struct Server {
    process: Child,
    input: ChildStdin,
    messages: Receiver<Value>,
    requests: u64,
    /// The notifications that came while an answer was waited for.
    unread: Vec<Value>,
}

impl Server {
    pub(crate) fn start(mut program: Command) -> io::Result<Self> {
        let mut process = program
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let input = process.stdin.take().expect("it is piped");
        let output = process.stdout.take().expect("it is piped");
        let (sender, messages) = channel();
        thread::spawn(move || read(BufReader::new(output), &sender));
        Ok(Self {
            process,
            input,
            messages,
            requests: 0,
            unread: Vec::new(),
        })
    }

    /// Sends a request and returns the result, or the error.
    pub(crate) fn request(&mut self, method: &str, params: &Value) -> Result<Value, String> {
        let until = Instant::now() + LIMIT;
        loop {
            self.requests += 1;
            let id = self.requests;
            self.send(json!({ "id": id, "method": method, "params": params }));
            let is_answer = |message: &Value| message["id"] == id && message["method"].is_null();
            let mut answer = self.receive(method, until, is_answer);
            match answer.get("error") {
                None => return Ok(answer["result"].take()),
                Some(error) if error["code"] == OUTDATED => {}
                Some(error) => return Err(error["message"].to_string()),
            }
        }
    }

    pub(crate) fn notify(&mut self, method: &str, params: &Value) {
        self.send(json!({ "method": method, "params": params }));
    }

    /// Returns the parameters of the last unread notification of this kind, or waits for the next one.
    pub(crate) fn wait_for(&mut self, method: &str) -> Value {
        let mut unread = std::mem::take(&mut self.unread).into_iter().rev();
        if let Some(mut last) = unread.find(|message| message["method"] == method) {
            return last["params"].take();
        }
        let until = Instant::now() + LIMIT;
        self.receive(method, until, |message| message["method"] == method)["params"].take()
    }

    /// Returns the next message that is waited for.
    fn receive(&mut self, what: &str, until: Instant, is_it: impl Fn(&Value) -> bool) -> Value {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let message = self.messages.recv_timeout(left).unwrap_or_else(|error| {
                // It may be busy for ever.
                self.kill();
                panic!("no answer to {what}: {error}")
            });
            if is_it(&message) {
                return message;
            }
            // The server has a request of its own (e.g. to watch files); this client can do nothing.
            if !message["id"].is_null() && !message["method"].is_null() {
                self.send(json!({ "id": message["id"], "result": null }));
            } else if message["id"].is_null() {
                self.unread.push(message);
            }
        }
    }

    fn send(&mut self, mut message: Value) {
        message["jsonrpc"] = "2.0".into();
        let text = message.to_string();
        write!(self.input, "Content-Length: {}\r\n\r\n{text}", text.len())
            .and_then(|()| self.input.flush())
            .expect("the server runs");
    }

    fn kill(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Reads messages until the server ends, or until no one waits for them.
fn read(mut output: impl BufRead, messages: &Sender<Value>) {
    while let Ok(message) = message(&mut output) {
        if messages.send(message).is_err() {
            return;
        }
    }
}

fn message(output: &mut impl BufRead) -> io::Result<Value> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        output.read_line(&mut line)?;
        match line.trim_end().split_once(": ") {
            Some(("Content-Length", value)) => {
                length = value.parse().map_err(io::Error::other)?;
            }
            Some(_) => {}
            None => break,
        }
    }
    Ok(serde_json::from_reader(output.take(length))?)
}
