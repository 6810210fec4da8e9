//! This file runs a program that must not outlive the test.

use std::{
    collections::VecDeque,
    io::{self, BufRead, BufReader, Read},
    path::Path,
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use super::KubernetesError;

/// How many lines of output are kept.
const LINES: usize = 40;
/// How long a program may take to end by itself.
const GRACE: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(5);

/// A program that ends when its standard input is closed: the system does that when this process
/// dies, so nothing is left behind.
#[derive(Debug)]
pub(super) struct Process {
    name: &'static str,
    child: Child,
    input: Option<ChildStdin>,
    log: Arc<Mutex<VecDeque<String>>>,
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
        for output in [
            child
                .stdout
                .take()
                .map(|out| Box::new(out) as Box<dyn Read + Send>),
            child
                .stderr
                .take()
                .map(|out| Box::new(out) as Box<dyn Read + Send>),
        ] {
            let log = Arc::clone(&log);
            // Ends with the output.
            thread::spawn(move || output.map(|output| keep(output, &log)));
        }
        let input = child.stdin.take();
        Ok(Self {
            name,
            child,
            input,
            log,
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

    /// Fails once the program has ended.
    pub(super) fn check(&mut self) -> Result<(), KubernetesError> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => Err(KubernetesError::Ended {
                program: self.name.to_owned(),
                status: status.to_string(),
                log: self.log(),
            }),
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
(cat <&3 >/dev/null; kill -9 $child) 2>/dev/null &
exec 3<&-
wait $child
status=$?
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
