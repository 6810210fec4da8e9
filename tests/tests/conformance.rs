//! This file runs the conformance suite on the in-process API and on a real kube-apiserver.
//!
//! Each behavior is one test on each server, e.g. `double::apply::force_takes_the_field_over` and
//! `real::apply::force_takes_the_field_over`; the last lines count them.

use std::{
    error::Error,
    process::ExitCode,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use kube::Client;
use libtest_mimic::{Arguments, Completion, Failed, Trial};
use okt_testing::{
    ApiServer, Kubernetes,
    conformance::{Behaviour, Failure, Report, Suite, behaviours},
};
use tokio::runtime::{Builder, Runtime};

/// Behaviors wait for the server most of the time, so many run at once.
const THREADS: usize = 8;

fn main() -> ExitCode {
    let mut args = Arguments::from_args();
    args.test_threads.get_or_insert(THREADS);
    let double = Arc::new(Mutex::new(Report::default()));
    let real = Arc::new(Real::default());

    let mut trials = Vec::new();
    for behaviour in behaviours() {
        let report = Arc::clone(&double);
        trials.push(Trial::test(format!("double::{behaviour}"), move || {
            note(&report, behaviour, on_the_double(behaviour))
        }));
    }
    for behaviour in behaviours() {
        let real = Arc::clone(&real);
        let name = format!("real::{behaviour}");
        let trial = Trial::ignorable_test(name, move || real.check(behaviour));
        // The test needs a real API server; `--include-ignored` enables it.
        trials.push(trial.with_ignored_flag(true));
    }

    let conclusion = libtest_mimic::run(&args, trials);
    let real_says = real.finish();
    if !args.list {
        println!("double: {}", locked(&double).count());
        println!("real: {real_says}");
    }
    conclusion.exit_code()
}

/// Runs a behavior on its own server, with paused time.
fn on_the_double(behaviour: Behaviour) -> Result<(), Failure> {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .expect("there is memory for a runtime");
    runtime.block_on(async { behaviour.run(ApiServer::new().client()).await })
}

/// Records the outcome for the last lines, and returns it to the harness.
fn note(
    report: &Mutex<Report>,
    behaviour: Behaviour,
    outcome: Result<(), Failure>,
) -> Result<(), Failed> {
    let told = outcome.as_ref().map(|&()| ()).map_err(Failed::from);
    locked(report).add(behaviour, outcome);
    told
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The real server, which the first behavior starts.
#[derive(Default)]
struct Real {
    server: Mutex<Option<Arc<Server>>>,
    report: Mutex<Report>,
}

enum Server {
    Ready(Box<Ready>),
    /// There is no server here, and none is required.
    Missing,
    Broken(String),
}

struct Ready {
    runtime: Runtime,
    kubernetes: Kubernetes,
    suite: Suite,
}

impl Real {
    fn check(&self, behaviour: Behaviour) -> Result<Completion, Failed> {
        match &*self.server() {
            Server::Ready(ready) => {
                let outcome = ready.runtime.block_on(ready.suite.check(&behaviour));
                note(&self.report, behaviour, outcome).map(|()| Completion::Completed)
            }
            Server::Missing => Ok(Completion::ignored_with("there is no real server here")),
            Server::Broken(why) => Err(Failed::from(why)),
        }
    }

    fn server(&self) -> Arc<Server> {
        let mut server = locked(&self.server);
        Arc::clone(server.get_or_insert_with(|| Arc::new(Server::start())))
    }

    /// Stops the server and returns the summary.
    fn finish(&self) -> String {
        let server = locked(&self.server).take().and_then(Arc::into_inner);
        match server {
            None => "not asked for".to_owned(),
            Some(Server::Missing) => "skipped, there is none here".to_owned(),
            Some(Server::Broken(why)) => format!("not checked: {why}"),
            Some(Server::Ready(ready)) => {
                let Ready {
                    runtime,
                    kubernetes,
                    suite,
                } = *ready;
                let mut says = locked(&self.report).count();
                if let Err(failure) = runtime.block_on(suite.finish()) {
                    says = format!("{says}, and the clean-up failed: {failure}");
                }
                runtime.block_on(kubernetes.stop());
                says
            }
        }
    }
}

impl Server {
    fn start() -> Self {
        match Self::try_start() {
            Ok(Some(ready)) => Self::Ready(Box::new(ready)),
            Ok(None) => Self::Missing,
            Err(error) => Self::Broken(error.to_string()),
        }
    }

    fn try_start() -> Result<Option<Ready>, Box<dyn Error>> {
        let runtime = Runtime::new()?;
        let started = runtime.block_on(async {
            let what = "the conformance suite on a real server";
            let Some(kubernetes) = Kubernetes::start_or_skip(what).await? else {
                return Ok::<_, Box<dyn Error>>(None);
            };
            let mut config = kubernetes.config();
            // The suite needs each answer without the client's retries.
            config.default_retry = false;
            let suite = Suite::start(Client::try_from(config)?).await?;
            Ok(Some((kubernetes, suite)))
        })?;
        Ok(started.map(|(kubernetes, suite)| Ready {
            runtime,
            kubernetes,
            suite,
        }))
    }
}
