//! An agent with its directory and a socket, and the processes that it runs. All of them end with the test.

use std::fmt::Display;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

/// The time limit for steps that should take a moment; it is long because the machine may be busy.
const STEP_LIMIT: Duration = Duration::from_mins(10);

/// The variable that marks the agent and all its processes: one of the few that commands inherit.
const MARK: &str = "LC_SITE";

/// Reports to the person who runs the tests what was not tested, also if the test passes.
pub(crate) fn report(what: &str) {
    // Ignore a closed standard error.
    let _ = writeln!(std::io::stderr(), "{what}");
}

/// What the program printed until it ended, and its exit code.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Run {
    pub(crate) fn of(command: &mut Command) -> Self {
        let output = command.output().expect("it runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self {
            code: output.status.code(),
            out: text(&output.stdout),
            err: text(&output.stderr),
        }
    }
}

pub(crate) struct Site {
    directory: TempDir,
    agent: Option<Child>,
    transition: u64,
}

impl Site {
    /// Creates a directory with a configuration: `rest` follows the listener; `{dir}` in it is replaced by the
    /// directory.
    pub(crate) fn new(rest: &str) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let site = Self {
            directory,
            agent: None,
            transition: 0,
        };
        let head = "listen: unix:{dir}/socket\ndata: {dir}/data\n";
        let text = format!("{head}{rest}").replace("{dir}", &site.text());
        site.write("okt.yaml", &text);
        site
    }

    /// Creates a site with a running agent.
    pub(crate) fn running(rest: &str) -> Self {
        let mut site = Self::new(rest);
        site.start();
        site
    }

    fn text(&self) -> String {
        self.directory.path().display().to_string()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("it can be written");
    }

    /// Reads a file of the directory; an empty text if it does not exist.
    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.around(Command::new(env!("CARGO_BIN_EXE_okt-sidecar")));
        command.args(arguments);
        command
    }

    fn around(&self, mut command: Command) -> Command {
        command.current_dir(self.directory.path());
        command.env(MARK, self.text());
        command
    }

    /// Runs the program to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Run {
        Run::of(&mut self.command(arguments))
    }

    /// Sets the permissions of a file of the directory.
    pub(crate) fn set_mode(&self, name: &str, mode: u32) {
        let permissions = fs::Permissions::from_mode(mode);
        fs::set_permissions(self.path(name), permissions).expect("its own");
    }

    pub(crate) fn start(&mut self) {
        self.start_with(&[]);
    }

    /// Starts the agent with these variables in its own environment.
    pub(crate) fn start_with(&mut self, environment: &[(&str, &str)]) {
        let mut command = self.command(&["run", "okt.yaml"]);
        command.envs(environment.iter().copied());
        self.start_as(command, 200);
    }

    /// Starts the agent as the child of another program, or in its place, until `/readyz` answers this status.
    pub(crate) fn start_below(&mut self, program: &str, arguments: &[&str], ready: u16) {
        let own = self.command(&["run", "okt.yaml"]);
        let mut command = self.around(Command::new(program));
        command
            .args(arguments)
            .arg(own.get_program())
            .args(own.get_args());
        self.start_as(command, ready);
    }

    fn start_as(&mut self, mut command: Command, ready: u16) {
        let log = fs::File::options()
            .create(true)
            .append(true)
            .open(self.path("log"));
        let agent = command
            .stdin(Stdio::null())
            .stderr(log.expect("a file"))
            .spawn();
        self.agent = Some(agent.expect("the agent starts"));
        let begun = Instant::now();
        while self.ask("GET", "/readyz", "").map(|it| it.0).ok() != Some(ready) {
            assert!(
                begun.elapsed() < STEP_LIMIT,
                "the agent does not answer:\n{}",
                self.read("log")
            );
            let agent = self.agent.as_mut().expect("it was started");
            if let Some(status) = agent.try_wait().expect("a child") {
                panic!("the agent ended with {status}:\n{}", self.read("log"));
            }
            sleep(Duration::from_millis(5));
        }
    }

    pub(crate) fn pid(&self) -> i32 {
        self.agent.as_ref().expect("it runs").id().cast_signed()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.pid()).expect("a process");
        kill_process(pid, signal).expect("it is there");
    }

    /// Signals the agent that another program has started.
    pub(crate) fn signal_below(&self, signal: Signal) {
        let path = format!("/proc/{0}/task/{0}/children", self.pid());
        let children = fs::read_to_string(path).expect("it runs");
        let child = children
            .split_whitespace()
            .next()
            .and_then(|pid| pid.parse().ok());
        let agent = child.and_then(Pid::from_raw).expect("it runs below");
        kill_process(agent, signal).expect("it is there");
    }

    /// Kills the agent without a graceful shutdown.
    pub(crate) fn kill(&mut self) {
        self.signal(Signal::KILL);
        self.ended();
    }

    /// Waits until the agent has ended, and returns its exit status.
    pub(crate) fn ended(&mut self) -> ExitStatus {
        let mut agent = self.agent.take().expect("it runs");
        let begun = Instant::now();
        loop {
            if let Some(status) = agent.try_wait().expect("a child") {
                return status;
            }
            if begun.elapsed() > STEP_LIMIT {
                agent.kill().expect("a child");
                agent.wait().expect("a child");
                panic!("the agent does not end:\n{}", self.read("log"));
            }
            sleep(Duration::from_millis(5));
        }
    }

    /// Waits until a condition holds.
    pub(crate) fn until(&self, what: impl Display, mut holds: impl FnMut(&Self) -> bool) {
        let begun = Instant::now();
        while !holds(self) {
            assert!(
                begun.elapsed() < STEP_LIMIT,
                "not within {STEP_LIMIT:?}: {what}\n{}",
                self.read("log")
            );
            sleep(Duration::from_millis(5));
        }
    }

    /// Sends one request, and returns the status and the body.
    pub(crate) fn ask(
        &self,
        method: &str,
        path: &str,
        body: &str,
    ) -> std::io::Result<(u16, String)> {
        let mut stream = UnixStream::connect(self.path("socket"))?;
        stream.set_read_timeout(Some(STEP_LIMIT + STEP_LIMIT))?;
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nhost: agent\r\nconnection: close\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\n\r\n{body}"
        )?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        let answer = String::from_utf8_lossy(&answer);
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        let status = head.split(' ').nth(1).and_then(|it| it.parse().ok());
        Ok((status.unwrap_or(0), body.to_owned()))
    }

    fn json(&self, method: &str, path: &str, body: &str) -> (u16, Value) {
        let (status, body) = self.ask(method, path, body).expect("an answer");
        let value = serde_json::from_str(&body).unwrap_or_else(|_| panic!("no JSON: {body}"));
        (status, value)
    }

    /// Requests the work of a state under a new id, and returns the id.
    pub(crate) fn put(&mut self, state: &str) -> String {
        self.put_with(state, &json!({}))
    }

    pub(crate) fn put_with(&mut self, state: &str, input: &Value) -> String {
        self.transition += 1;
        let id = format!("u1.{}", self.transition);
        let body = json!({
            "state": state, "input": input, "fence": { "transition": self.transition, "recordedAt": "2026-11-20T10:00:01Z" },
            "owner": { "uid": "u1", "createdAt": "2026-11-20T10:00:00Z", "name": "orders", "namespace": "shop" },
        });
        let path = format!("/lifecycle/v1/actions/{id}");
        let (status, answer) = self.json("PUT", &path, &body.to_string());
        assert_eq!(status, 201, "{answer}");
        id
    }

    pub(crate) fn action(&self, id: &str) -> Value {
        let path = format!("/lifecycle/v1/actions/{id}");
        self.json("GET", &path, "").1
    }

    /// Waits for the end of an action.
    pub(crate) fn wait(&self, id: &str) -> Value {
        let mut last = Value::Null;
        let begun = Instant::now();
        while begun.elapsed() < STEP_LIMIT {
            last = self.action(&format!("{id}?wait=5"));
            if last["phase"] != "Pending" && last["phase"] != "Running" {
                return last;
            }
        }
        panic!("{id} does not end: {last}\n{}", self.read("log"));
    }

    /// Requests work and waits for its end.
    pub(crate) fn done(&mut self, state: &str) -> Value {
        let id = self.put(state);
        self.wait(&id)
    }

    pub(crate) fn cancel(&self, id: &str) -> u16 {
        let path = format!("/lifecycle/v1/actions/{id}");
        self.ask("DELETE", &path, "").expect("an answer").0
    }

    pub(crate) fn output(&self, id: &str) -> String {
        let path = format!("/lifecycle/v1/actions/{id}/output");
        self.ask("GET", &path, "").expect("an answer").1
    }

    /// Returns the last observation of the application.
    pub(crate) fn seen(&self) -> Value {
        self.json("GET", "/lifecycle/v1/status", "").1["application"].clone()
    }

    /// Returns the processes that this agent and its predecessors have started, except the agent; only those with
    /// `mark` in their environment if it is given.
    pub(crate) fn below(&self, mark: Option<&str>) -> Vec<i32> {
        let site = format!("{MARK}={}", self.text());
        let agent = self.agent.as_ref().map(|agent| agent.id().cast_signed());
        let entries = fs::read_dir("/proc").expect("Linux").flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        pids.filter(|pid| Some(*pid) != agent)
            .filter(|pid| {
                let all = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
                let has = |line: &str| all.split(|byte| *byte == 0).any(|it| it == line.as_bytes());
                has(&site) && mark.is_none_or(has)
            })
            .collect()
    }

    /// Returns the processes of an attempt, by a variable in their environment.
    pub(crate) fn of(&self, id: &str) -> Vec<i32> {
        self.below(Some(&format!("OKT_ACTION_ID={id}")))
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        if let Some(mut agent) = self.agent.take() {
            let _ = agent.kill();
            let _ = agent.wait();
        }
        while let [first, ..] = self.below(None)[..] {
            if let Some(pid) = Pid::from_raw(first) {
                let _ = kill_process(pid, Signal::KILL);
            }
        }
    }
}

/// Returns the peak memory of a process, in KiB, without the pages of its program: a debug build has many times those
/// of a release build.
pub(crate) fn peak(pid: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let size = |name: &str| -> u64 {
        let line = status.lines().find(|line| line.starts_with(name));
        let size = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
        size.expect("Linux")
    };
    size("VmHWM:").saturating_sub(size("RssFile:"))
}
