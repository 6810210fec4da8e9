//! The application of runners: three transitions to a resting state, with or without work there.

use std::sync::Arc;

use kube::CustomResource;
use okt::{Action, Application, Desired, Failure, LifecycleSpec, Status, lifecycle_graph};
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cluster::Served;

/// The life of a runner.
#[lifecycle_graph]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RunnerState {
    /// Getting ready.
    #[entry]
    #[child(Running)]
    Start,

    /// On the way.
    #[child(Resting)]
    #[child(Idle)]
    Running,

    /// There, with something to do.
    #[rest]
    #[child(Gone)]
    #[no_route(Idle, reason = "nobody runs twice")]
    Resting,

    /// There, with nothing to do.
    #[rest(idle)]
    #[child(Gone)]
    #[no_route(Resting, reason = "nobody runs twice")]
    Idle,

    /// It is gone.
    #[leaf(idle)]
    Gone,
}

/// The spec of a runner.
#[derive(CustomResource, LifecycleSpec, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "demo.okt.dev",
    version = "v1",
    kind = "Runner",
    namespaced,
    status = "Status<RunnerState>"
)]
pub struct RunnerSpec {
    /// The desired state of the runner.
    #[serde(default)]
    pub lifecycle: Desired<RunnerState>,
}

/// The operator of runners; clones share the started work.
#[derive(Clone, Default)]
pub struct Runners(Arc<Mutex<Vec<String>>>);

impl Runners {
    /// Returns the ids of all started work, in order.
    pub fn started(&self) -> Vec<String> {
        self.0.lock().clone()
    }

    fn start(&self, cx: &Action<Runner>) {
        let mut started = self.0.lock();
        started.push(cx.id().to_owned());
    }
}

impl RunnerStateHandler for Runners {
    type Context = Action<Runner>;
    type Error = Failure;

    async fn start(&self, cx: &Action<Runner>) -> Result<runner_state::AfterStart, Failure> {
        self.start(cx);
        Ok(runner_state::AfterStart::Next)
    }

    async fn running(&self, cx: &Action<Runner>) -> Result<runner_state::AfterRunning, Failure> {
        self.start(cx);
        Ok(runner_state::AfterRunning::Next)
    }

    async fn resting(&self, cx: &Action<Runner>) -> Result<runner_state::AfterResting, Failure> {
        self.start(cx);
        Ok(runner_state::AfterResting::Stay)
    }
}

impl Application for Runners {
    type Resource = Runner;
}

impl Served for Runners {}
