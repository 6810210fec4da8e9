//! Runs programs that do not outlive the test process and that a test can kill.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::KubernetesError;

/// The number of lines of output that are kept.
const LINES: usize = 40;
/// How long a program may take to end by itself.
const GRACE: Duration = Duration::from_secs(30);
/// How long to wait for the last output of an ended program.
const READ_ON: Duration = Duration::from_secs(1);
const POLL: Duration = Duration::from_millis(5);

/// The processes of a server; dropped in this order, because each needs the next.
#[derive(Debug)]
pub(super) struct Processes {
    pub(super) controllers: Option<ServerProcess>,
    /// The server, then its database; empty for a server that runs elsewhere.
    servers: Vec<ServerProcess>,
    /// Removes the directory, also if the server was killed.
    guard: ServerProcess,
}

impl Processes {
    /// Creates the processes for servers that keep their files in this directory.
    pub(super) fn new(servers: Vec<ServerProcess>, directory: &Path) -> io::Result<Self> {
        Ok(Self {
            controllers: None,
            servers,
            guard: ServerProcess::guard(directory)?,
        })
    }

    /// Fails if a process has ended.
    pub(super) fn check(&mut self) -> Result<(), KubernetesError> {
        self.all().try_for_each(ServerProcess::check)
    }

    /// Returns the last lines of output of all processes.
    pub(super) fn log(&mut self) -> String {
        let logs: Vec<_> = self.all().map(|one| one.log()).collect();
        logs.join("\n")
    }

    /// Kills the server and its database with SIGKILL.
    pub(super) fn kill(&mut self) -> Result<(), KubernetesError> {
        Ok(self.own()?.iter_mut().try_for_each(ServerProcess::kill)?)
    }

    /// Restarts the killed server and its database.
    pub(super) fn restart(&mut self) -> Result<(), KubernetesError> {
        Ok(self
            .own()?
            .iter_mut()
            .try_for_each(ServerProcess::restart)?)
    }

    /// The server and its database, unless they were not started here.
    fn own(&mut self) -> Result<&mut [ServerProcess], KubernetesError> {
        if self.servers.is_empty() {
            return Err(KubernetesError::NotOurs);
        }
        Ok(&mut self.servers)
    }

    fn all(&mut self) -> impl Iterator<Item = &mut ServerProcess> {
        let servers = self.controllers.iter_mut().chain(&mut self.servers);
        servers.chain([&mut self.guard])
    }
}

/// A program that ends when its standard input is closed. The system closes it when this process
/// dies, so the program does not outlive it.
#[derive(Debug)]
pub(super) struct ServerProcess {
    name: &'static str,
    /// The command, for a restart after a kill.
    command: Command,
    run: ServerRun,
}

/// A running program.
#[derive(Debug)]
struct ServerRun {
    child: Child,
    input: Option<ChildStdin>,
    log: Arc<Mutex<VecDeque<String>>>,
    /// The threads that read the output; they end when the output ends.
    readers: Vec<JoinHandle<()>>,
}

impl ServerProcess {
    /// Starts a program that ends when its standard input is closed.
    pub(super) fn start(name: &'static str, mut command: Command) -> io::Result<Self> {
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let run = ServerRun::of(&mut command)?;
        Ok(Self { name, command, run })
    }

    /// Starts a program that ignores its standard input, under a shell that watches it.
    pub(super) fn start_watched(name: &'static str, program: &Command) -> io::Result<Self> {
        let mut command = Command::new(SHELL);
        command
            .args(["-c", WATCH, "sh"])
            .arg(program.get_program())
            .args(program.get_args());
        Self::start(name, command)
    }

    /// Removes a directory when this process ends, also when it is killed.
    pub(super) fn guard(directory: &Path) -> io::Result<Self> {
        let mut command = Command::new(SHELL);
        command.args(["-c", GUARD]).arg(directory);
        Self::start("the guard of a directory", command)
    }

    /// Kills the program with SIGKILL and waits until it has ended; it may have ended before.
    pub(super) fn kill(&mut self) -> io::Result<()> {
        if self.command.get_program() == SHELL {
            // Closing the input makes the shell kill the program.
            return self.end().map(drop);
        }
        // The input stays open until the program is dead, so that it does not end by itself.
        self.run.child.kill()?;
        self.run.child.wait().map(drop)
    }

    /// Restarts a killed program.
    pub(super) fn restart(&mut self) -> io::Result<()> {
        self.run = ServerRun::of(&mut self.command)?;
        Ok(())
    }

    /// Fails if the program has ended.
    pub(super) fn check(&mut self) -> Result<(), KubernetesError> {
        match self.run.child.try_wait()? {
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

    /// Waits until the output of an ended program is read, with a limit, because its children may
    /// hold the output open.
    fn read_on(&self) {
        let since = Instant::now();
        while since.elapsed() < READ_ON && !self.run.readers.iter().all(JoinHandle::is_finished) {
            thread::sleep(POLL);
        }
    }

    /// Returns the last lines of output.
    pub(super) fn log(&self) -> String {
        let mut lines = self.run.log.lock();
        lines.make_contiguous().join("\n")
    }

    fn end(&mut self) -> io::Result<ExitStatus> {
        drop(self.run.input.take());
        let since = Instant::now();
        while since.elapsed() < GRACE {
            if let Some(status) = self.run.child.try_wait()? {
                return Ok(status);
            }
            thread::sleep(POLL);
        }
        self.run.child.kill()?;
        self.run.child.wait()
    }
}

impl ServerRun {
    fn of(command: &mut Command) -> io::Result<Self> {
        let mut child = command.spawn()?;
        let log = Arc::default();
        let mut readers = Vec::new();
        let mut read = |output: Box<dyn Read + Send>| {
            let log = Arc::clone(&log);
            readers.push(thread::spawn(move || keep(output, &log)));
        };
        if let (Some(output), Some(errors)) = (child.stdout.take(), child.stderr.take()) {
            read(Box::new(output));
            read(Box::new(errors));
        }
        let input = child.stdin.take();
        Ok(Self {
            child,
            input,
            log,
            readers,
        })
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            tracing::warn!(%error, program = self.name, "cannot end a program");
        }
    }
}

const SHELL: &str = "sh";

/// Removes the directory `$0` when the standard input is closed. The programs that write there end
/// at the same time, and may still write during the removal.
const GUARD: &str = r#"
trap '' PIPE
cat >/dev/null
for _ in 1 2 3 4 5 6 7 8 9 10; do
    rm -rf "$0" && test ! -e "$0" && exit
    sleep 1
done
"#;

/// Runs a program, and kills it with SIGKILL when the standard input is closed.
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
# Later another process may have the number.
kill $watcher 2>/dev/null
exit $status
"#;

fn keep(output: impl Read, log: &Mutex<VecDeque<String>>) {
    for line in BufReader::new(output).split(b'\n') {
        let Ok(line) = line else { return };
        let mut log = log.lock();
        if log.len() == LINES {
            log.pop_front();
        }
        log.push_back(String::from_utf8_lossy(&line).into_owned());
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};
    use std::{fs, thread};

    use super::{POLL, ServerProcess};

    const LIMIT: Duration = Duration::from_mins(10);

    /// A program that appends its process id to a file and then sleeps.
    fn sleeper(file: &Path) -> Command {
        let mut command = Command::new("sh");
        command
            .args(["-c", r#"echo $$ >>"$0"; exec sleep 1000"#])
            .arg(file);
        command
    }

    /// Waits for the start of this number and returns its process id.
    fn started(file: &Path, number: usize) -> String {
        let since = Instant::now();
        loop {
            let pids = fs::read_to_string(file).unwrap_or_default();
            if let Some(pid) = pids.lines().nth(number) {
                return pid.to_owned();
            }
            assert!(since.elapsed() < LIMIT, "it was not started");
            thread::sleep(POLL);
        }
    }

    fn runs(pid: &str) -> bool {
        let mut look = Command::new("sh");
        look.args(["-c", r#"kill -0 "$0""#, pid])
            .stderr(Stdio::null());
        look.status().unwrap().success()
    }

    #[test]
    fn a_program_under_a_shell_is_killed_and_restarted() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("pids");
        let mut process = ServerProcess::start_watched("a sleeper", &sleeper(&file)).unwrap();
        for number in 0..2 {
            let pid = started(&file, number);
            assert!(runs(&pid));
            process.kill().unwrap();
            process.kill().unwrap();
            assert!(!runs(&pid), "start {number}");
            process.restart().unwrap();
        }
        let pid = started(&file, 2);
        drop(process);
        assert!(!runs(&pid));
    }
}
