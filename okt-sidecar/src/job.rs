//! The work of a state: its steps one after another, and their result.

use std::time::Duration;

use okt_agent::wire::Seen;
use okt_agent::{Done, Fault, Task};
use parking_lot::Mutex;
use tokio::time::{Instant, sleep, sleep_until};

use super::application::ApplicationProcess;
use super::command::{Command, Cut, NotRun};
use super::config::{Job, JobStep, Verb};
use super::exit::how;
use super::group::GROUP;
use super::proc::Identity;
use super::scratch::{CommandResult, Scratch};
use super::work::Program;

/// The key of the note about the application that a task has started.
const APPLICATION: &str = "application";

/// The pause before another attempt to stop an application that did not stop.
const STOP_AGAIN: Duration = Duration::from_secs(1);

impl Program {
    /// Does the work of a state.
    pub(super) async fn job(&self, job: &Job, task: &Task) -> Result<Done, Fault> {
        let person = job
            .around
            .person()
            .map_err(|why| Fault::retry("NoUser", why))?;
        let made = Scratch::make(&self.config.scratch, task, person.as_ref());
        let scratch = made.map_err(|error| {
            Fault::retry("NoScratch", format!("cannot make files for it: {error}"))
        })?;
        let attempt = JobAttempt {
            program: self,
            job,
            task,
            scratch: &scratch,
            started: Mutex::new(None),
            deadline: Instant::now() + job.timeout,
        };
        tokio::select! {
            biased;
            done = attempt.live() => done,
            never = scratch.follow(task) => match never {},
        }
    }
}

/// One attempt at the work of a state.
pub(super) struct JobAttempt<'a> {
    pub(super) program: &'a Program,
    job: &'a Job,
    pub(super) task: &'a Task,
    scratch: &'a Scratch,
    /// The process of the application that this attempt has started, possibly before it was resumed.
    started: Mutex<Option<Identity>>,
    pub(super) deadline: Instant,
}

impl JobAttempt<'_> {
    /// Runs the attempt. If it is cancelled, it stops the application that it has started.
    /// After a timeout it leaves the application running: it may be recovering, and a stop would make it begin again.
    async fn live(&self) -> Result<Done, Fault> {
        if let Some(note) = self.task.notes().get(APPLICATION)
            && let Ok(identity) = serde_json::from_value(note.clone())
        {
            *self.started.lock() = Some(identity);
        }
        let done = self.steps().await;
        let started = self.started.lock().clone();
        if done.is_err()
            && self.task.is_cancelled()
            && let (Some(application), Some(started)) = (&self.program.application, started)
            && application.is(&started)
        {
            // A cancelled attempt must leave nothing running, so this is retried as long as the agent allows.
            while let Err(fault) = application.stop().await {
                let (reason, why) = (fault.reason, fault.message);
                tracing::warn!(
                    reason,
                    why,
                    "the application that a cancelled attempt started does not stop"
                );
                sleep(STOP_AGAIN).await;
            }
        }
        done
    }

    async fn steps(&self) -> Result<Done, Fault> {
        let mut answered = None;
        for step in &self.job.steps {
            match step {
                JobStep::Command(command) => self.command(command).await?,
                JobStep::Http(call) => answered = Some(self.call(call).await?),
                JobStep::Application(verb) => self.application(*verb).await?,
            }
        }
        if let Some(state) = &self.job.until {
            self.until(state).await?;
        }
        // The result of the commands takes precedence over the answer of the last request.
        let read = self.scratch.result();
        let result = read.map_err(|why| Fault::retry("BadResult", why))?;
        Ok(match answered {
            Some(answered) if result == CommandResult::default() => answered.done(),
            _ => result.done(),
        })
    }

    async fn command(&self, command: &[String]) -> Result<(), Fault> {
        let name = command.first().map_or("", String::as_str);
        let environment = self.environment().await;
        let run = Command {
            words: command,
            around: &self.job.around,
            environment: &environment,
            grace: self.job.grace,
            deadline: self.deadline,
        };
        let running = run.run(
            &self.program.launcher,
            async |identity: Identity| self.note(GROUP, &identity).await,
            self.task.cancelled(),
            |_, piece| self.task.print(piece),
        );
        let ended = running.await.map_err(|error| match error {
            NotRun::Note(why) => Fault::retry("CannotRecord", why),
            NotRun::Start(_) | NotRun::Follow(_) => Fault::retry("CannotRun", error.to_string()),
        })?;
        match ended.cut {
            Some(cut) => Err(self.cut(cut, name)),
            None if ended.status.success() => Ok(()),
            None => {
                let message = format!("{name} {}", how(ended.status));
                let result = self.scratch.result().unwrap_or_default();
                let mut fault = result.fault("CommandFailed", message);
                let code = ended.status.code();
                fault.permanent |= code.is_some_and(|code| self.job.permanent.contains(&code));
                Err(fault)
            }
        }
    }

    /// Records the identity of a process that this attempt starts.
    async fn note(&self, key: &str, identity: &Identity) -> Result<(), String> {
        let note = serde_json::to_value(identity).map_err(|error| error.to_string())?;
        let remembered = self.task.remember(key, note).await;
        remembered.map_err(|error| error.to_string())
    }

    pub(super) fn cut(&self, cut: Cut, what: &str) -> Fault {
        let (reason, message) = match cut {
            Cut::Cancelled => (
                "Cancelled",
                "was stopped: it is not needed any more".to_owned(),
            ),
            Cut::TimedOut => (
                "TimedOut",
                format!("took longer than {:?}", self.job.timeout),
            ),
        };
        Fault::retry(reason, format!("{what} {message}"))
    }

    async fn environment(&self) -> Vec<(String, String)> {
        let task = self.task;
        let owner = task.owner();
        let mut all: Vec<(String, String)> = [
            ("OKT_ACTION_ID", task.id().to_string()),
            ("OKT_STATE", task.state().to_owned()),
            ("OKT_ATTEMPT", task.attempt().to_string()),
            ("OKT_RESUMED", task.resumed().to_string()),
            ("OKT_OWNER_UID", owner.uid.clone()),
            ("OKT_OWNER_NAME", owner.name.clone()),
            ("OKT_OWNER_NAMESPACE", owner.namespace.clone()),
            ("OKT_OWNER_CREATED_AT", owner.created_at.to_string()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into();
        // As OpenTelemetry has it for processes.
        let traceparent = task.traceparent().map(str::to_owned);
        all.extend(traceparent.map(|it| ("TRACEPARENT".to_owned(), it)));
        all.extend(self.scratch.environment());
        all.extend(self.program.application_environment().await);
        all
    }

    async fn application(&self, verb: Verb) -> Result<(), Fault> {
        let Some(application) = &self.program.application else {
            let why = "there is no `application` in the file";
            return Err(Fault::permanent("NoApplication", why));
        };
        let note = async |identity: Identity| {
            self.note(APPLICATION, &identity).await?;
            *self.started.lock() = Some(identity);
            Ok(())
        };
        let work = async {
            match verb {
                Verb::Start => application.start(note).await,
                Verb::Stop => application.stop().await,
                Verb::Restart => {
                    application.stop().await?;
                    application.start(note).await
                }
            }
        };
        self.in_time(work, &format!("the application's {verb:?}").to_lowercase())
            .await
    }

    async fn in_time<T>(
        &self,
        work: impl Future<Output = Result<T, Fault>>,
        what: &str,
    ) -> Result<T, Fault> {
        tokio::select! {
            biased;
            done = work => done,
            () = self.task.cancelled() => Err(self.cut(Cut::Cancelled, what)),
            () = sleep_until(self.deadline) => Err(self.cut(Cut::TimedOut, what)),
        }
    }

    /// Waits until the probe observes this state.
    async fn until(&self, state: &str) -> Result<(), Fault> {
        let started = self.started.lock().is_some();
        let application = self.program.application.as_ref().filter(|_| started);
        let every = self.program.config.probe.every.min(Duration::from_secs(1));
        let wait = async {
            loop {
                let seen = self.program.see().await.seen;
                if matches!(&seen, Seen::In { state: now } if now == state) {
                    return Ok(());
                }
                if let Some(how) = application.and_then(ApplicationProcess::ended) {
                    let why = format!("the application {how} before it was {state}");
                    return Err(Fault::retry("ApplicationEnded", why));
                }
                let message = format!("waiting for {state}, it is {}", name(&seen));
                self.task.progress(None, message);
                sleep(every).await;
            }
        };
        self.in_time(wait, &format!("becoming {state}")).await
    }
}

fn name(seen: &Seen) -> String {
    match seen {
        Seen::Unobserved => "not seen".to_owned(),
        Seen::In { state } => state.clone(),
        Seen::Absent => "absent".to_owned(),
        Seen::Unreachable { why } => format!("unreachable: {why}"),
    }
}
