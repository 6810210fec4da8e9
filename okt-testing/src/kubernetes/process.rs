//! This file runs a program that must not outlive the test.

use std::{
    collections::VecDeque,
    io::{self, BufRead, BufReader, Read},
    path::Path,
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
    sync::{Arc, Mutex, PoisonError},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use super::KubernetesError;

/// How many lines of output are kept.
const LINES: usize = 40;
/// How long a program may take to end by itself.
const GRACE: Duration = Duration::from_secs(5);
/// How long the last words of an ended program may take.
const READ_ON: Duration = Duration::from_secs(1);
const POLL: Duration = Duration::from_millis(5);

/// A program that ends when its standard input is closed: the system does that when this process
/// dies, so nothing is left behind.
#[derive(Debug)]
pub(super) struct Process {
    name: &'static str,
    child: Child,
    input: Option<ChildStdin>,
    log: Arc<Mutex<VecDeque<String>>>,
    /// Who reads the output; they end with it.
    readers: Vec<JoinHandle<()>>,
}

impl Process {
    /// Starts a program that ends with its standard input.
    pub(super) fn start(name: &'static str, mut command: Command) -> io::Result<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let log = Arc::default();
        let mut readers = Vec::new();
        for output in [
            child
                .stdout
                .take()
                .map(|out| Box::new(out) as Box<dyn Read + Send>),
            child
                .stderr
                .take()
                .map(|out| Box::new(out) as Box<dyn Read + Send>),
        ]
        .into_iter()
        .flatten()
        {
            let log = Arc::clone(&log);
            readers.push(thread::spawn(move || keep(output, &log)));
        }
        let input = child.stdin.take();
        Ok(Self {
            name,
            child,
            input,
            log,
            readers,
        })
    }

    /// Starts a program that knows nothing of standard input, under a shell that does and which
    /// then removes the directory, if there is one to remove.
    pub(super) fn start_watched(
        name: &'static str,
        program: &Command,
        remove: Option<&Path>,
    ) -> io::Result<Self> {
        let mut command = Command::new("sh");
        command
            .args(["-c", WATCH])
            .arg(remove.unwrap_or(Path::new("")))
            .arg(program.get_program())
            .args(program.get_args());
        Self::start(name, command)
    }

    /// Removes a directory when this process ends, also when it is killed.
    pub(super) fn guard(directory: &Path) -> io::Result<Self> {
        let mut command = Command::new("sh");
        command
            .args(["-c", r#"trap '' PIPE; cat >/dev/null; rm -rf "$0""#])
            .arg(directory);
        Self::start("the guard of a directory", command)
    }

    /// Fails once the program has ended.
    pub(super) fn check(&mut self) -> Result<(), KubernetesError> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => {
                self.read_on();
                Err(KubernetesError::Ended {
                    program: self.name.to_owned(),
                    status: status.to_string(),
                    log: self.log(),
                })
            }
        }
    }

    /// Waits until the output of an ended program is read; not for ever, as children of it may
    /// hold it open.
    fn read_on(&self) {
        let since = Instant::now();
        while since.elapsed() < READ_ON && !self.readers.iter().all(JoinHandle::is_finished) {
            thread::sleep(POLL);
        }
    }

    /// The last lines that it printed.
    pub(super) fn log(&self) -> String {
        let mut lines = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        lines.make_contiguous().join("\n")
    }

    fn end(&mut self) -> io::Result<ExitStatus> {
        drop(self.input.take());
        let since = Instant::now();
        while since.elapsed() < GRACE {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            thread::sleep(POLL);
        }
        self.child.kill()?;
        self.child.wait()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            tracing::warn!(%error, program = self.name, "cannot end a program");
        }
    }
}

/// Runs a program, kills it when the standard input is closed and removes the directory `$0`.
const WATCH: &str = r#"
# A line for a reader that is dead must not end this shell before its work is done.
trap '' PIPE
exec 3<&0
"$@" </dev/null 3<&- &
child=$!
# It holds no output, which is read to its end.
(cat <&3; kill -9 $child) >/dev/null 2>&1 &
watcher=$!
exec 3<&-
wait $child
status=$?
# Later the number may be somebody else's.
kill $watcher 2>/dev/null
test -z "$0" || rm -rf "$0"
exit $status
"#;

fn keep(output: impl Read, log: &Mutex<VecDeque<String>>) {
    for line in BufReader::new(output).split(b'\n') {
        let Ok(line) = line else { return };
        let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
        if log.len() == LINES {
            log.pop_front();
        }
        log.push_back(String::from_utf8_lossy(&line).into_owned());
    }
}
