//! The application as a process: started by the agent or found; stopped gracefully, then killed.
//!
//! Only the work of a state starts it. If it ends, the agent reports that it is down.

use std::future::pending;
use std::io;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use okt_agent::Fault;
use parking_lot::Mutex;
use rustix::process::{Pid, Signal};
use tokio::time::{Instant, sleep, timeout};

use super::command::{Command, OutputStream};
use super::config::{self, Recognise};
use super::group::end_left;
use super::launch::{Held, Launch, Launcher};
use super::notes::Notes;
use super::proc::{self, Identity, Stat};
use super::recognise::{self, FirstSeen};

/// The process of the application, if there is one.
pub(crate) struct ApplicationProcess {
    pub(crate) config: config::ApplicationConfig,
    pub(crate) launcher: Launcher,
    pub(crate) notes: Arc<Notes>,
    /// How the process that this agent started has ended.
    pub(crate) ended: Arc<Mutex<Option<String>>>,
    /// The pid file, as it was first seen.
    pub(crate) first_seen: Mutex<Option<FirstSeen>>,
}

/// The name of the application's note.
const NOTE: &str = "application";

/// The grace period for what is left of a group whose first process has ended.
const GRACE: Duration = Duration::from_secs(5);

/// The time limit for processes to end after KILL.
const LIMIT: Duration = Duration::from_secs(30);

impl ApplicationProcess {
    /// Finds the process, if there is one.
    ///
    /// # Errors
    ///
    /// It is unknown whether there is one.
    pub(crate) async fn find(&self) -> Result<Option<Stat>, String> {
        let noted = self.notes.read(NOTE);
        if let Some(found) = noted.as_ref().and_then(Identity::find) {
            return Ok(Some(found));
        }
        match &self.config.recognise {
            None => Ok(None),
            Some(Recognise::PidFile(file)) => {
                let owner = self.owner()?;
                let mut first_seen = self.first_seen.lock();
                let found = file.find(owner, &self.notes, &mut first_seen);
                found.map_err(|why| format!("{}: {why}", file.path.display()))
            }
            Some(Recognise::Command(command)) => self.by_command(command).await,
        }
    }

    async fn by_command(&self, command: &[String]) -> Result<Option<Stat>, String> {
        let command = Command {
            words: command,
            around: &self.config.around,
            environment: &[],
            grace: Duration::from_secs(1),
            deadline: Instant::now() + Duration::from_secs(10),
        };
        let mut output = Vec::new();
        let keep = |stream, piece: &[u8]| {
            if stream == OutputStream::Out && output.len() < 1024 {
                output.extend_from_slice(&piece[..piece.len().min(1024)]);
            }
        };
        let running = command.run(&self.launcher, async |_| Ok(()), pending(), keep);
        let ended = running.await.map_err(|error| error.to_string())?;
        if ended.cut.is_some() {
            return Err("the command of `recognise` took longer than 10s".to_owned());
        }
        let output = String::from_utf8_lossy(&output);
        let Some(word) = output.split_whitespace().next() else {
            return Ok(None);
        };
        let pid: i32 = word.parse().ok().filter(|pid| *pid > 1).ok_or_else(|| {
            tracing::debug!(word, "the command of `recognise` printed no process");
            "the command of `recognise` printed no process id".to_owned()
        })?;
        let Some(found) = proc::stat(pid).filter(Stat::lives) else {
            return Ok(None);
        };
        recognise::is_of(&found, self.owner()?)
            .map(|is_there| is_there.then_some(found))
            .map_err(|why| format!("the command of `recognise` says {pid}: {why}"))
    }

    /// Returns the user that the application's process must have.
    fn owner(&self) -> Result<u32, String> {
        let person = self.config.around.person()?;
        Ok(person.map_or_else(|| rustix::process::geteuid().as_raw(), |person| person.uid))
    }

    /// Starts the application unless it runs. `note` must record its identity before it begins.
    pub(crate) async fn start<N>(&self, note: impl FnOnce(Identity) -> N) -> Result<(), Fault>
    where
        N: Future<Output = Result<(), String>>,
    {
        if self.find().await.map_err(not_known)?.is_some() {
            return Ok(());
        }
        let Some(command) = &self.config.command else {
            let why = "it does not run, and `application.command` says of no way to start it";
            return Err(Fault::permanent("NoCommand", why));
        };
        self.end_rest().await?;
        let fault = |why: String| Fault::retry("CannotStart", why);
        let held = self.launcher.hold(Launch {
            command,
            around: &self.config.around,
            environment: &[],
            out: Stdio::inherit(),
            err: Stdio::inherit(),
        });
        let Held { group, gate } = held.map_err(fault)?;
        let cannot_note = |why| fault(format!("cannot note down who it is: {why}"));
        let written = self.notes.write(NOTE, group.identity());
        written.map_err(|error| cannot_note(error.to_string()))?;
        *self.ended.lock() = None;
        let begun = match note(group.identity().clone()).await {
            Ok(()) => gate.open().await.map_err(fault),
            Err(why) => Err(cannot_note(why)),
        };
        if let Err(fault) = begun {
            self.notes.remove(NOTE);
            return Err(fault);
        }
        let pid = group.identity().pid;
        tracing::info!(pid, "the application was started");
        let ended = Arc::clone(&self.ended);
        tokio::spawn(async move {
            let how = match group.follow().await {
                Ok(status) => super::exit::how(status),
                Err(error) => format!("has ended in an unknown way: {error}"),
            };
            tracing::warn!(pid, "the application {how}");
            *ended.lock() = Some(how);
        });
        Ok(())
    }

    /// Returns whether this is the process of the application.
    pub(crate) fn is(&self, process: &Identity) -> bool {
        self.notes.read(NOTE).as_ref() == Some(process) && process.find().is_some()
    }

    /// Returns how the application that this agent started last has ended, if it has.
    pub(crate) fn ended(&self) -> Option<String> {
        self.ended.lock().clone()
    }

    /// Stops the application: one signal after another, then KILL for its whole group. Returns when nothing of it runs.
    pub(crate) async fn stop(&self) -> Result<(), Fault> {
        let Some(main) = self.find().await.map_err(not_known)? else {
            return self.end_rest().await;
        };
        let cannot = |error: io::Error| Fault::retry("CannotSignal", error.to_string());
        tracing::info!(pid = main.pid, "the application is stopped");
        let mut group = members(&main);
        for step in &self.config.stop {
            proc::signal(&main, step.signal).map_err(cannot)?;
            if timeout(step.wait, gone(&main)).await.is_ok() {
                break;
            }
            tracing::warn!(pid = main.pid, signal = ?step.signal, "the application did not stop in {:?}", step.wait);
            group = members(&main);
        }
        if main.still_lives() {
            group = members(&main);
            for process in &group {
                proc::signal(process, Signal::KILL).map_err(cannot)?;
            }
            if timeout(LIMIT, gone(&main)).await.is_err() {
                let why = format!("process {} does not end, not even by KILL", main.pid);
                return Err(Fault::retry("DoesNotEnd", why));
            }
        }
        end_these(&group).await.map_err(cannot)?;
        self.end_rest().await
    }

    /// Ends what is left of a group whose first process has ended.
    async fn end_rest(&self) -> Result<(), Fault> {
        if let Some(noted) = self.notes.read(NOTE) {
            if !end_left(&noted, GRACE, GRACE + LIMIT).await {
                let why = "processes of the application do not end, not even by KILL";
                return Err(Fault::retry("DoesNotEnd", why));
            }
            self.notes.remove(NOTE);
        }
        Ok(())
    }
}

/// Returns the fault if it is unknown whether the application runs.
fn not_known(why: String) -> Fault {
    Fault::retry("NotKnown", why)
}

/// Returns the whole group of a process that leads one, including itself; otherwise only the process.
fn members(main: &Stat) -> Vec<Stat> {
    if main.group != main.pid || !main.still_lives() {
        return vec![main.clone()];
    }
    let mut all = proc::all().unwrap_or_default();
    all.retain(|it| it.group == main.pid && it.lives());
    all
}

/// Returns when this process has ended.
async fn gone(process: &Stat) {
    let watched = Pid::from_raw(process.pid).and_then(|pid| proc::watch(pid).ok());
    if process.still_lives() {
        match watched {
            Some(descriptor) => drop(descriptor.readable().await),
            None => {
                while process.still_lives() {
                    sleep(Duration::from_millis(20)).await;
                }
            }
        }
    }
}

/// Ends processes whose leader is gone, after a grace period.
async fn end_these(group: &[Stat]) -> io::Result<()> {
    let begun = Instant::now();
    while group.iter().any(Stat::still_lives) {
        if begun.elapsed() > GRACE {
            for process in group {
                proc::signal(process, Signal::KILL)?;
            }
        }
        if begun.elapsed() > GRACE + LIMIT {
            return Err(io::Error::other("processes do not end, not even by KILL"));
        }
        sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}
