//! Reads recorded sessions and plays them.
//!
//! A session is a list of shell lines, of which only these are supported:
//! - `$ cat >FILE <<EOF`, its lines, `EOF`: writes a file.
//! - `$ kubectl ..`: runs it; words may be in single quotes. Standard error comes after standard output, then the exit
//!   code if it is not 0.
//! - `$ kubectl .. >FILE`: the same; the output goes into the file.
//! - `$ until kubectl ..`: repeats it until it succeeds, for effects that a real server delays.
//! - `$ kubectl .. &`: starts it and continues as soon as it shows an object.
//! - `$ fg N`: the output of that command, as soon as it has N lines.
//! - `# ..` and empty lines are comments.
//!
//! The working directory holds `widgets.crd.yaml`.

use std::fmt::{self, Write as _};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};
use std::{fs, thread};

use tempfile::TempDir;

use crate::normal::normal;

const LIMIT: Duration = Duration::from_mins(10);

/// The typed commands and their output.
#[derive(Clone, Debug, Default)]
pub(crate) struct Session {
    steps: Vec<Step>,
}

#[derive(Clone, Debug)]
struct Step {
    /// The comments and empty lines before the command.
    preface: String,
    typed: String,
    /// The lines of a file, or the output.
    text: String,
}

impl Session {
    pub(crate) fn parse(text: &str) -> Self {
        let (mut steps, mut preface) = (Vec::<Step>::new(), String::new());
        for line in text.lines() {
            if let Some(typed) = line.strip_prefix("$ ") {
                steps.push(Step {
                    preface: std::mem::take(&mut preface),
                    typed: typed.to_owned(),
                    text: String::new(),
                });
            } else if steps.is_empty() || line.is_empty() || line.starts_with("# ") {
                preface += &format!("{line}\n");
            } else if let Some(step) = steps.last_mut() {
                // An empty line in the middle of an output belongs to it.
                step.text += &std::mem::take(&mut preface);
                step.text += &format!("{line}\n");
            }
        }
        Self { steps }
    }

    /// Panics with all steps whose output differs.
    pub(crate) fn assert_same(&self, other: &Self, who: &str) {
        let mut report = String::new();
        for (expected, found) in self.steps.iter().zip(&other.steps) {
            if expected.text != found.text {
                let _ = write!(
                    report,
                    "$ {}\n--- recorded\n{}+++ {who}\n{}\n",
                    expected.typed, expected.text, found.text
                );
            }
        }
        assert!(report.is_empty(), "{who} has another output:\n{report}");
    }
}

impl fmt::Display for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for step in &self.steps {
            write!(f, "{}$ {}\n{}", step.preface, step.typed, step.text)?;
        }
        Ok(())
    }
}

/// A kubectl, a server and a working directory.
pub(crate) struct Shell {
    program: PathBuf,
    arguments: Vec<String>,
    kubeconfig: PathBuf,
    directory: TempDir,
}

/// A running command.
struct Job {
    child: Child,
    lines: Receiver<String>,
    shown: Vec<String>,
}

impl Shell {
    /// Takes over the program and the arguments that make it kubectl.
    pub(crate) fn new(kubectl: &Command) -> Self {
        let text = |argument: &std::ffi::OsStr| argument.to_string_lossy().into_owned();
        Self {
            program: kubectl.get_program().into(),
            arguments: kubectl.get_args().map(text).collect(),
            kubeconfig: PathBuf::new(),
            directory: tempfile::tempdir().expect("a directory"),
        }
    }

    /// Returns the same kubectl for another server, in a new directory.
    pub(crate) fn on(&self, kubeconfig: &Path) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let crd = include_str!("widgets.crd.yaml");
        fs::write(directory.path().join("widgets.crd.yaml"), crd).expect("a file");
        Self {
            program: self.program.clone(),
            arguments: self.arguments.clone(),
            kubeconfig: kubeconfig.to_owned(),
            directory,
        }
    }

    /// Runs all commands of a session and returns it with their output.
    pub(crate) fn play(&self, session: &Session) -> Session {
        let mut job = None;
        let mut steps = Vec::new();
        for step in &session.steps {
            steps.push(Step {
                text: self.step(step, &mut job),
                ..step.clone()
            });
        }
        Session { steps }
    }

    fn step(&self, step: &Step, job: &mut Option<Job>) -> String {
        let typed = step.typed.as_str();
        if let Some(file) = typed
            .strip_prefix("cat >")
            .and_then(|rest| rest.strip_suffix(" <<EOF"))
        {
            let text = step.text.strip_suffix("EOF\n").expect("the end of a file");
            fs::write(self.directory.path().join(file), text).expect("a file");
            return step.text.clone();
        }
        if let Some(count) = typed.strip_prefix("fg ") {
            let count = count.parse().expect("a number of lines");
            let shown = job.take().expect("a job").finish(count);
            return normal(&shown, self.directory.path());
        }
        if let Some(arguments) = typed.strip_suffix(" &").and_then(kubectl) {
            *job = Some(Job::start(self.command(arguments)));
            return String::new();
        }
        let (typed, file) = match typed.split_once(" >") {
            Some((typed, file)) => (typed, Some(file)),
            None => (typed, None),
        };
        let (patient, rest) = match typed.strip_prefix("until ") {
            Some(rest) => (true, rest),
            None => (false, typed),
        };
        let arguments = kubectl(rest).unwrap_or_else(|| panic!("cannot run {typed:?}"));
        let since = Instant::now();
        loop {
            let output = self.command(arguments).output().expect("kubectl runs");
            if patient && !output.status.success() {
                let said = String::from_utf8_lossy(&output.stderr);
                assert!(since.elapsed() < LIMIT, "{typed}: {said}");
                thread::sleep(Duration::from_millis(200));
                continue;
            }
            let mut shown = String::from_utf8_lossy(&output.stdout).into_owned();
            if let Some(file) = file {
                fs::write(self.directory.path().join(file), shown).expect("a file");
                shown = String::new();
            }
            if !shown.is_empty() && !shown.ends_with('\n') {
                shown.push('\n');
            }
            shown += &String::from_utf8_lossy(&output.stderr);
            if !output.status.success() {
                shown += &format!("[{}]\n", output.status);
            }
            let shown = normal(&shown, self.directory.path());
            // An empty line at the end is a comment.
            return shown.trim_end().to_owned() + if shown.is_empty() { "" } else { "\n" };
        }
    }

    fn command(&self, arguments: &str) -> Command {
        let own = self.directory.path();
        let mut command = Command::new(&self.program);
        command
            .args(&self.arguments)
            .args(words(arguments))
            .current_dir(own)
            .env("KUBECONFIG", &self.kubeconfig)
            .env("KUBECACHEDIR", own.join(".cache"))
            .env("KUBECTL_KUBERC", "false")
            .env("HOME", own)
            .env("TZ", "UTC")
            .env("LC_ALL", "C");
        command
    }
}

impl Job {
    /// Starts a command and waits for the first line after the header.
    fn start(mut command: Command) -> Self {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("kubectl runs");
        let output = BufReader::new(child.stdout.take().expect("its output"));
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let mut job = Self {
            child,
            lines,
            shown: Vec::new(),
        };
        job.wait(2);
        job
    }

    fn wait(&mut self, count: usize) {
        let since = Instant::now();
        while self.shown.len() < count {
            let left = LIMIT.saturating_sub(since.elapsed());
            match self.lines.recv_timeout(left) {
                Ok(line) => self.shown.push(line),
                // It has ended.
                Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => {
                    panic!("waited in vain for {count} lines: {:?}", self.shown)
                }
            }
        }
    }

    fn finish(mut self, count: usize) -> String {
        self.wait(count);
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.shown.iter().map(|line| line.clone() + "\n").collect()
    }
}

/// Returns the arguments of a kubectl command.
fn kubectl(typed: &str) -> Option<&str> {
    typed.strip_prefix("kubectl ")
}

/// Splits a command line into words; words in single quotes may hold spaces.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quoted) = (Vec::new(), None::<String>, false);
    for char in line.chars() {
        match char {
            '\'' => {
                quoted = !quoted;
                word.get_or_insert_default();
            }
            ' ' if !quoted => words.extend(word.take()),
            _ => word.get_or_insert_default().push(char),
        }
    }
    words.extend(word);
    words
}
