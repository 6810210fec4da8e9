//! This file runs the conformance suite on the in-process API and on a real kube-apiserver.
//!
//! Each behavior is one test on each server, e.g. `double::apply::force_takes_the_field_over` and
//! `real::apply::force_takes_the_field_over`; the last lines count them. Behaviors of a feature that is off by default
//! run on servers that have its gate on.

use std::{error::Error, process::ExitCode, sync::Arc};

use kube::Client;
use libtest_mimic::{Arguments, Completion, Failed, Trial};
use okt_testing::{
    ApiServer, FeatureGate, Kubernetes, KubernetesError,
    conformance::{Behaviour, Failure, Report, Suite, behaviours, gated_behaviours},
};
use parking_lot::{Mutex, MutexGuard};
use tokio::runtime::{Builder, Runtime};

/// Behaviors wait for the server most of the time, so many run at once.
const THREADS: usize = 8;

/// A feature that is off by default.
const GATE: FeatureGate = FeatureGate::ShardedListAndWatch;

fn main() -> ExitCode {
    let mut args = Arguments::from_args();
    args.test_threads.get_or_insert(THREADS);
    let double = Arc::new(Mutex::new(Report::default()));
    let reals = [None, Some(GATE)].map(|gate| Arc::new(Real::new(gate)));
    let ungated = behaviours().into_iter().map(|behaviour| (behaviour, None));
    let gated = gated_behaviours(GATE);
    let gated = gated.into_iter().map(|behaviour| (behaviour, Some(GATE)));
    let mut all: Vec<_> = ungated.chain(gated).collect();

    let mut trials = Vec::new();
    for &(behaviour, gate) in &all {
        let report = Arc::clone(&double);
        trials.push(Trial::test(format!("double::{behaviour}"), move || {
            note(&report, behaviour, on_the_double(behaviour, gate))
        }));
    }
    // One behavior of the second server comes first, so that both servers start at the same time.
    all.rotate_right(1);
    for &(behaviour, gate) in &all {
        let real = reals.iter().find(|real| real.gate == gate);
        let real = Arc::clone(real.expect("there is a server for each"));
        let name = format!("real::{behaviour}");
        let trial = Trial::ignorable_test(name, move || real.check(behaviour));
        // The test needs a real API server; `--include-ignored` enables it.
        trials.push(trial.with_ignored_flag(true));
    }

    let conclusion = libtest_mimic::run(&args, trials);
    let [real, gated] = reals.map(|real| real.finish());
    if !args.list {
        println!("double: {}", locked(&double).count());
        println!("real: {real}");
        println!("real, with {GATE}: {gated}");
    }
    conclusion.exit_code()
}

/// Runs a behavior on its own server, with paused time.
fn on_the_double(behaviour: Behaviour, gate: Option<FeatureGate>) -> Result<(), Failure> {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .expect("there is memory for a runtime");
    runtime.block_on(async {
        let server = ApiServer::new();
        if let Some(gate) = gate {
            server.set_feature_gate(gate, true);
        }
        behaviour.run(server.client()).await
    })
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
    mutex.lock()
}

/// A real server, which the first behavior starts.
struct Real {
    gate: Option<FeatureGate>,
    server: Mutex<Option<Arc<Server>>>,
    report: Mutex<Report>,
}

enum Server {
    Ready(Box<Ready>),
    /// There is no such server here, and none is required.
    Missing(&'static str),
    Broken(String),
}

struct Ready {
    runtime: Runtime,
    kubernetes: Kubernetes,
    suite: Suite,
}

impl Real {
    fn new(gate: Option<FeatureGate>) -> Self {
        Self {
            gate,
            server: Mutex::default(),
            report: Mutex::default(),
        }
    }

    fn check(&self, behaviour: Behaviour) -> Result<Completion, Failed> {
        match &*self.server() {
            Server::Ready(ready) => {
                let outcome = ready.runtime.block_on(ready.suite.check(&behaviour));
                note(&self.report, behaviour, outcome).map(|()| Completion::Completed)
            }
            Server::Missing(why) => Ok(Completion::ignored_with(*why)),
            Server::Broken(why) => Err(Failed::from(why)),
        }
    }

    fn server(&self) -> Arc<Server> {
        let mut server = locked(&self.server);
        Arc::clone(server.get_or_insert_with(|| Arc::new(Server::start(self.gate))))
    }

    /// Stops the server and returns the summary.
    fn finish(&self) -> String {
        let server = locked(&self.server).take().and_then(Arc::into_inner);
        match server {
            None => "not asked for".to_owned(),
            Some(Server::Missing(why)) => format!("skipped, {why}"),
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
    fn start(gate: Option<FeatureGate>) -> Self {
        match Self::try_start(gate) {
            Ok(Some(ready)) => Self::Ready(Box::new(ready)),
            Ok(None) => Self::Missing("there is no real server here"),
            Err(error) => match error.downcast_ref() {
                Some(KubernetesError::FeatureGate { .. }) => {
                    Self::Missing("the server of KUBECONFIG does not have the feature gate")
                }
                _ => Self::Broken(error.to_string()),
            },
        }
    }

    fn try_start(gate: Option<FeatureGate>) -> Result<Option<Ready>, Box<dyn Error>> {
        let runtime = Runtime::new()?;
        let started = runtime.block_on(async {
            let what = "the conformance suite on a real server";
            let options = Kubernetes::options();
            let options = match gate {
                Some(gate) => options.feature_gate(gate, true),
                None => options,
            };
            let Some(kubernetes) = options.start_or_skip(what).await? else {
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
