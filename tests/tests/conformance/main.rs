//! Runs the conformance suite: the behaviors of the Kubernetes API that operators rely on.
//!
//! Each behavior is one test on each server, e.g. `double::apply::force_takes_the_field_over` on the in-process API and
//! `real::apply::force_takes_the_field_over` on a real kube-apiserver. Behaviors of a feature that is off by default
//! run on servers that have its gate on.
//!
//! # Another server
//! `OKT_CONFORMANCE_KUBECONFIG=<file> cargo test -p okt-tests --test conformance another_server -- --ignored` checks the
//! server of a kubeconfig, e.g. another fake. Its user may do everything. The cluster collects garbage and empties
//! namespaces: a bare kube-apiserver needs the garbage collector and the namespace controller of the controller manager.
//! Nothing else may work on the namespaces of the suite.
//!
//! # Flow
//! [`Suite::start`] creates a CRD in a group that only this suite uses, and waits until it is served. [`Suite::check`]
//! gives each behavior its own namespace, so many run at the same time. [`Suite::finish`] deletes everything that the
//! suite created, without waiting.

mod behaviour;
mod hooks;
mod reply;
mod suite;
mod table;
mod world;

mod versioned;

mod apply;
mod bodies;
mod builtin;
mod conversions;
mod crds;
mod deletion;
mod discovery;
mod kept;
mod leases;
mod limits;
mod lists;
mod managers;
mod merging;
mod mistakes;
mod objects;
mod options;
mod patches;
mod rules;
mod runtime;
mod schema;
mod shards;
mod status;
mod typed;
mod types;
mod upgrades;
mod versions;
mod watch;
mod webhooks;
mod writes;

use std::env;
use std::error::Error;
use std::panic::AssertUnwindSafe;
use std::process::ExitCode;
use std::sync::Arc;

use futures::FutureExt;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use libtest_mimic::{Arguments, Completion, Failed, Trial};
use okt_testing::{ApiServer, FeatureGate, Kubernetes, KubernetesError};
use parking_lot::Mutex;
use tokio::runtime::{Builder, Runtime};

use crate::behaviour::Behaviour;
use crate::suite::Suite;

/// Behaviors wait for the server most of the time, so many run at once.
const THREADS: usize = 8;
/// A feature that is off by default.
const GATE: FeatureGate = FeatureGate::ShardedListAndWatch;
/// The variable with the kubeconfig of another server.
const KUBECONFIG: &str = "OKT_CONFORMANCE_KUBECONFIG";

/// The behaviors of a server with the default feature gates, by theme.
const BEHAVIOURS: [&[Behaviour]; 28] = [
    objects::BEHAVIOURS,
    patches::BEHAVIOURS,
    lists::BEHAVIOURS,
    types::BEHAVIOURS,
    watch::BEHAVIOURS,
    status::BEHAVIOURS,
    apply::BEHAVIOURS,
    merging::BEHAVIOURS,
    managers::BEHAVIOURS,
    bodies::BEHAVIOURS,
    schema::BEHAVIOURS,
    rules::BEHAVIOURS,
    deletion::BEHAVIOURS,
    options::BEHAVIOURS,
    crds::BEHAVIOURS,
    versions::BEHAVIOURS,
    upgrades::BEHAVIOURS,
    builtin::BEHAVIOURS,
    kept::BEHAVIOURS,
    mistakes::BEHAVIOURS,
    typed::BEHAVIOURS,
    leases::BEHAVIOURS,
    limits::BEHAVIOURS,
    discovery::BEHAVIOURS,
    writes::BEHAVIOURS,
    runtime::BEHAVIOURS,
    webhooks::BEHAVIOURS,
    conversions::BEHAVIOURS,
];

fn main() -> ExitCode {
    let mut args = Arguments::from_args();
    args.test_threads.get_or_insert(THREADS);
    let ungated = BEHAVIOURS.concat();
    let mut trials = Vec::new();
    for (behaviours, gate) in [(ungated.as_slice(), None), (shards::BEHAVIOURS, Some(GATE))] {
        trials.extend(behaviours.iter().map(|&behaviour| {
            let name = format!("double::{behaviour}");
            Trial::test(name, move || {
                on_the_double(behaviour, gate);
                Ok(())
            })
        }));
    }
    let real = Arc::new(Server::new(Source::Kubernetes(None)));
    let gated = Arc::new(Server::new(Source::Kubernetes(Some(GATE))));
    // One behavior of the second server comes first, so that both servers start at the same time.
    let (first, others) = shards::BEHAVIOURS.split_at(1);
    trials.extend(gated.trials("real", first));
    trials.extend(real.trials("real", &ungated));
    trials.extend(gated.trials("real", others));
    let mut servers = vec![real, gated];
    if let Ok(kubeconfig) = env::var(KUBECONFIG) {
        let another = Arc::new(Server::new(Source::Kubeconfig(kubeconfig)));
        trials.extend(another.trials("another_server", &ungated));
        servers.push(another);
    } else {
        let missing = || Ok(Completion::ignored_with(format!("{KUBECONFIG} is not set")));
        let trial = Trial::ignorable_test("another_server", missing);
        trials.push(trial.with_ignored_flag(true));
    }

    let conclusion = libtest_mimic::run(&args, trials);
    for server in servers {
        server.finish();
    }
    conclusion.exit_code()
}

/// Runs a behavior on its own server, with paused time.
fn on_the_double(behaviour: Behaviour, gate: Option<FeatureGate>) {
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
        let suite = Suite::start(server.client()).await;
        suite.check(behaviour).await;
        suite.finish().await;
    });
}

/// Where a server of this test comes from.
enum Source {
    /// A real server, which is started with this gate on.
    Kubernetes(Option<FeatureGate>),
    /// A running server, by its kubeconfig.
    Kubeconfig(String),
}

/// A server outside this process, which the first behavior starts.
struct Server {
    source: Source,
    state: Mutex<Option<Arc<State>>>,
}

enum State {
    Ready(Box<Ready>),
    /// There is no such server here, and none is required.
    Missing(&'static str),
    Broken(String),
}

struct Ready {
    runtime: Runtime,
    kubernetes: Option<Kubernetes>,
    suite: Suite,
}

impl Server {
    fn new(source: Source) -> Self {
        Self {
            source,
            state: Mutex::default(),
        }
    }

    /// Returns a test of each behavior. They need a server; `--include-ignored` enables them.
    fn trials(self: &Arc<Self>, prefix: &str, behaviours: &[Behaviour]) -> Vec<Trial> {
        let trial = |&behaviour| {
            let server = Arc::clone(self);
            let name = format!("{prefix}::{behaviour}");
            Trial::ignorable_test(name, move || server.check(behaviour)).with_ignored_flag(true)
        };
        behaviours.iter().map(trial).collect()
    }

    fn check(&self, behaviour: Behaviour) -> Result<Completion, Failed> {
        match &*self.state() {
            State::Ready(ready) => {
                ready.runtime.block_on(ready.suite.check(behaviour));
                Ok(Completion::Completed)
            }
            State::Missing(why) => Ok(Completion::ignored_with(*why)),
            State::Broken(why) => Err(Failed::from(why)),
        }
    }

    fn state(&self) -> Arc<State> {
        let mut state = self.state.lock();
        Arc::clone(state.get_or_insert_with(|| Arc::new(self.start())))
    }

    fn start(&self) -> State {
        match self.try_start() {
            Ok(Some(ready)) => State::Ready(Box::new(ready)),
            Ok(None) => State::Missing("there is no real server here"),
            Err(error) => match error.downcast_ref() {
                Some(KubernetesError::FeatureGate { .. }) => {
                    State::Missing("the server of KUBECONFIG does not have the feature gate")
                }
                _ => State::Broken(error.to_string()),
            },
        }
    }

    fn try_start(&self) -> Result<Option<Ready>, Box<dyn Error>> {
        let runtime = Runtime::new()?;
        let started = runtime.block_on(async {
            let (kubernetes, mut config) = match &self.source {
                Source::Kubernetes(gate) => {
                    let options = (gate.iter()).fold(Kubernetes::options(), |options, &gate| {
                        options.feature_gate(gate, true)
                    });
                    let what = "the conformance suite on a real server";
                    let Some(kubernetes) = options.start_or_skip(what).await? else {
                        return Ok::<_, Box<dyn Error>>(None);
                    };
                    let config = kubernetes.config();
                    (Some(kubernetes), config)
                }
                Source::Kubeconfig(file) => {
                    let file = Kubeconfig::read_from(file)?;
                    let options = KubeConfigOptions::default();
                    let config = Config::from_custom_kubeconfig(file, &options).await?;
                    (None, config)
                }
            };
            // The suite needs each answer without the client's retries.
            config.default_retry = false;
            let starting = AssertUnwindSafe(Suite::start(Client::try_from(config)?));
            let suite = starting.catch_unwind().await;
            let suite = suite.map_err(|_| "the suite cannot start; see the panic above")?;
            Ok(Some((kubernetes, suite)))
        })?;
        Ok(started.map(|(kubernetes, suite)| Ready {
            runtime,
            kubernetes,
            suite,
        }))
    }

    /// Deletes what the suite created, and stops the server if it was started here.
    fn finish(&self) {
        let state = self.state.lock().take().and_then(Arc::into_inner);
        let Some(State::Ready(ready)) = state else {
            return;
        };
        let Ready {
            runtime,
            kubernetes,
            suite,
        } = *ready;
        runtime.block_on(async {
            suite.finish().await;
            if let Some(kubernetes) = kubernetes {
                kubernetes.stop().await;
            }
        });
    }
}
