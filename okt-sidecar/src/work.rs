//! The `Work` of the program `okt-sidecar`: an application whose answers are the commands and requests of a file.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use okt_agent::wire::Sighting;
use okt_agent::{Done, Fault, Leftover, Offer, Task, Work};
use parking_lot::Mutex;

use super::application::ApplicationProcess;
use super::children::Children;
use super::config::{Config, OnExit};
use super::group::{GROUP, end_left};
use super::http::Http;
use super::launch::Launcher;
use super::notes::Notes;
use super::probe::meant;
use super::proc::{Identity, Stat};
use super::scratch;

/// An application that a configuration file describes.
pub(crate) struct Program {
    pub(super) config: Config,
    pub(super) launcher: Launcher,
    pub(super) http: Http,
    pub(super) notes: Arc<Notes>,
    pub(super) application: Option<ApplicationProcess>,
    /// Held during an observation: work that waits for a state observes too.
    observing: tokio::sync::Mutex<()>,
}

/// How long the processes of an earlier agent may take to end before that counts as a failure.
const LEFT: Duration = Duration::from_secs(20);

impl Program {
    /// Creates it, and ends the probe that an earlier agent has left.
    ///
    /// # Errors
    ///
    /// The agent's directory cannot be written.
    pub(crate) async fn open(config: Config, children: Children) -> io::Result<Self> {
        let notes = Arc::new(Notes::open(&config.data.join("notes"))?);
        scratch::shared(&config.scratch)?;
        if let Some(left) = notes.read("probe")
            && end_left(&left, Duration::from_secs(1), LEFT).await
        {
            notes.remove("probe");
        }
        let launcher = Launcher::new(children);
        let application = config.application.clone().map(|config| ApplicationProcess {
            config,
            launcher: launcher.clone(),
            notes: Arc::clone(&notes),
            ended: Arc::default(),
            first_seen: Mutex::default(),
        });
        if let Some(application) = &application
            && let Ok(Some(found)) = application.find().await
        {
            tracing::info!(pid = found.pid, "the application runs already");
        }
        Ok(Self {
            http: Http::new(),
            config,
            launcher,
            notes,
            application,
            observing: tokio::sync::Mutex::new(()),
        })
    }

    /// Stops or leaves the application when the agent ends.
    ///
    /// By default, an agent that is process 1 of a container stops the application first, because everything ends with
    /// it.
    /// Elsewhere the application outlives the agent, and the next agent finds it again.
    pub(crate) async fn close(&self) {
        let Some(application) = &self.application else {
            return;
        };
        let first = rustix::process::getpid().is_init();
        let by_itself = if first { OnExit::Stop } else { OnExit::Leave };
        match application.config.on_exit.unwrap_or(by_itself) {
            OnExit::Leave => {}
            OnExit::Stop => {
                if let Err(fault) = application.stop().await {
                    tracing::error!(
                        reason = fault.reason,
                        "the application could not be stopped: {}",
                        fault.message
                    );
                }
            }
        }
    }

    /// Returns environment variables for commands: whether the application's process runs.
    pub(super) async fn application_environment(&self) -> Vec<(String, String)> {
        match &self.application {
            Some(application) => environment(&application.find().await),
            None => Vec::new(),
        }
    }

    /// Observes the application, one observation after another.
    pub(super) async fn see(&self) -> Sighting {
        let _alone = self.observing.lock().await;
        let mut variables = Vec::new();
        if let Some(application) = &self.application {
            let found = application.find().await;
            if let Some(down) = &application.config.down {
                match &found {
                    Ok(None) => return meant(down),
                    Ok(Some(_)) => {}
                    Err(why) => {
                        return Sighting::unreachable(format!(
                            "it is unknown whether it runs: {why}"
                        ));
                    }
                }
            }
            variables = environment(&found);
        }
        self.config
            .probe
            .observe(&self.launcher, &self.http, &self.notes, &variables)
            .await
    }
}

fn environment(found: &Result<Option<Stat>, String>) -> Vec<(String, String)> {
    let (runs, pid) = match found {
        Ok(Some(found)) => ("running", Some(found.pid)),
        Ok(None) => ("stopped", None),
        Err(_) => ("unknown", None),
    };
    let mut all = vec![("OKT_APPLICATION".to_owned(), runs.to_owned())];
    all.extend(pid.map(|pid| ("OKT_APPLICATION_PID".to_owned(), pid.to_string())));
    all
}

impl Work for Program {
    fn offers(&self) -> Vec<Offer> {
        let offers = self.config.states.iter().map(|(state, job)| Offer {
            state: state.clone(),
            repeatable: job.repeatable,
        });
        offers.collect()
    }

    async fn observe(&self) -> Sighting {
        self.see().await
    }

    async fn perform(&self, task: &Task) -> Result<Done, Fault> {
        let Some(job) = self.config.states.get(task.state()) else {
            let why = format!("{} is not in the file any more", task.state());
            return Err(Fault::permanent("NoSuchWork", why));
        };
        self.job(job, task).await
    }

    async fn recover(&self, left: &Leftover) -> Result<(), Fault> {
        if let Some(note) = left.notes.get(GROUP) {
            let leader: Identity = serde_json::from_value(note.clone()).map_err(|error| {
                Fault::retry(
                    "BadNote",
                    format!("what was started cannot be read: {error}"),
                )
            })?;
            let job = self.config.states.get(&left.state);
            let grace = job.map_or(Duration::from_secs(10), |job| job.grace);
            if !end_left(&leader, grace, grace + LEFT).await {
                let why = format!(
                    "processes of group {} do not end, not even by KILL",
                    leader.pid
                );
                return Err(Fault::retry("DoesNotEnd", why));
            }
        }
        scratch::forget(&scratch::place(
            &self.config.scratch,
            left.id.as_str(),
            left.attempt,
        ));
        Ok(())
    }
}
