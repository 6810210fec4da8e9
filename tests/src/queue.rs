//! The application of message queues: a cluster-scoped kind with a lifecycle and a scripted pass.

use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::{CustomResource, ResourceExt};
use okt::{
    Action, Application, Context, Declared, Desired, Failure, LifecycleSpec, Pass, PassGraph,
    Resources, Status, Watches, lifecycle_graph,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cluster::Served;
use crate::script::{Script, steps};

/// The pass of a queue.
#[lifecycle_graph(pass)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueuePass {
    /// Checks the queue.
    #[entry]
    #[trigger(Finalize, on_delete)]
    #[child(Apply)]
    Check,

    /// Applies the desired objects.
    #[condition(Founded)]
    #[child(End)]
    Apply,

    /// Deletes all objects.
    #[child(End)]
    Finalize,

    /// Done.
    #[leaf(idle)]
    End,
}

/// The life of a queue.
#[lifecycle_graph]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueState {
    /// It joins the other queues.
    #[entry]
    #[child(Serving)]
    Joining,

    /// It serves.
    #[rest(idle)]
    #[condition(Available)]
    #[child(Draining)]
    Serving,

    /// It is emptied.
    #[child(Gone)]
    Draining,

    /// It is gone.
    #[leaf]
    Gone,
}

/// The spec of a queue.
#[derive(CustomResource, LifecycleSpec, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "demo.okt.dev",
    version = "v1",
    kind = "Queue",
    status = "Status<QueueState>"
)]
pub struct QueueSpec {
    /// The desired state of the queue.
    #[serde(default)]
    pub lifecycle: Desired<QueueState>,
}

/// The operator of queues; clones share their script.
#[derive(Clone, Default)]
pub struct Queues {
    /// The results of the steps of its pass, and the states that have run their work.
    pub script: Script,
}

impl QueuePassHandler for Queues {
    type Context = Pass<Queue>;
    type Error = Failure;

    steps! { Queue:
        check "Check" queue_pass::AfterCheck,
        apply "Apply" queue_pass::AfterApply,
        finalize "Finalize" queue_pass::AfterFinalize,
    }
}

impl QueueStateHandler for Queues {
    type Context = Action<Queue>;
    type Error = Failure;

    async fn joining(&self, _: &Action<Queue>) -> Result<queue_state::AfterJoining, Failure> {
        self.script.work("Joining").await;
        Ok(queue_state::AfterJoining::Next)
    }

    async fn draining(&self, _: &Action<Queue>) -> Result<queue_state::AfterDraining, Failure> {
        self.script.work("Draining").await;
        Ok(queue_state::AfterDraining::Next)
    }

    async fn gone(&self, _: &Action<Queue>) -> Result<(), Failure> {
        self.script.work("Gone").await;
        Ok(())
    }
}

impl Application for Queues {
    type Resource = Queue;

    fn watches(watches: Watches<Queue>) -> Watches<Queue> {
        watches.owns::<ClusterRole>()
    }

    fn pass() -> Option<PassGraph<Self>> {
        Some(PassGraph::of::<QueuePass>())
    }

    async fn resources(
        &self,
        cx: &Context<Queue>,
        state: QueueState,
    ) -> Result<Resources, Failure> {
        let all = match state {
            QueueState::Serving => self.script.puts("Serving", &cx.object().name_any()),
            QueueState::Joining | QueueState::Draining | QueueState::Gone => Vec::<Declared>::new(),
        };
        Ok(all.into_iter().fold(Resources::new(), Resources::with))
    }
}

impl Served for Queues {}
