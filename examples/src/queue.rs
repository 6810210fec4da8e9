//! The operator of a clustered message queue. Its nodes hold messages, so none may go before it is drained.
//!
//! | the operator | with |
//! |---|---|
//! | knows how many nodes there are, which version they run, and which backups were taken | [`QueueMemory`], which is recorded with the transition or the step that changes it |
//! | makes a user, drains a node, or upgrades one | steps, which no crash repeats once they are recorded |
//! | begins to resize or to upgrade | triggers that name the part of the spec |
//! | takes a backup into a bucket, and restores one | requests, with their arguments and results |
//!
//! [`Servers`] is the API of the queue itself; [`Model`] is one in memory, for tests.

mod model;

use std::fmt::Debug;
use std::future::Future;

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::{CustomResource, ResourceExt};
use okt::{
    Action, Application, Context, Declared, Desired, Failure, LifecycleSpec, Request, Requests,
    Resources, Status, StepPart, Watches, lifecycle_graph,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

pub use self::model::{Model, no_node_went_early};

/// The lifecycle of a queue.
#[lifecycle_graph(spec(QueueSpec))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueState {
    /// Its first nodes start, and its user is made.
    #[entry]
    #[trigger(Failed, on_error(attempts = 5))]
    #[child(Running)]
    Starting,

    /// It takes and delivers messages.
    #[rest(idle)]
    #[condition(Available)]
    #[trigger(Upgrading, on_change(version))]
    #[trigger(Resizing, on_change(nodes))]
    #[child(BackingUp)]
    #[child(Restoring)]
    #[child(Stopping)]
    Running,

    /// One node after the other is drained, and comes back with the version of the spec.
    #[condition(Available)]
    #[trigger(Failed, on_error(attempts = 5))]
    #[child(Resizing)]
    Upgrading,

    /// Nodes join, or are drained and leave.
    #[condition(Available)]
    #[trigger(Failed, on_error(attempts = 5))]
    #[child(Running)]
    Resizing,

    /// A backup is taken.
    #[visit(args = BackupArgs, result = BackedUp)]
    #[condition(Available)]
    #[trigger(Running, on_error(attempts = 3), on_abort)]
    #[child(Running)]
    BackingUp,

    /// Its messages are replaced by those of a backup. It takes none meanwhile.
    #[visit(args = RestoreArgs)]
    #[trigger(Failed, on_error(attempts = 3))]
    #[child(Running)]
    Restoring,

    /// Somebody has to look; then the spec is brought about again.
    #[rest(hold, idle)]
    #[child(Upgrading)]
    #[child(Stopping)]
    Failed,

    /// Every node is drained, so that no message is lost.
    #[child(Gone)]
    Stopping,

    /// Nothing is left.
    #[leaf(idle)]
    Gone,
}

/// Where a backup goes.
#[derive(Request, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[request(kind = "Backup", of = Queue, schedule)]
pub struct BackupArgs {
    /// The bucket.
    #[schemars(length(min = 1, max = 63))]
    pub bucket: String,
}

/// A backup that was taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BackedUp {
    /// Its id.
    pub backup: String,
}

/// Which backup is restored.
#[derive(Request, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[request(kind = "Restore", of = Queue)]
pub struct RestoreArgs {
    /// The id of the backup.
    #[schemars(length(min = 1, max = 253))]
    pub backup: String,
}

/// A message queue.
#[derive(CustomResource, LifecycleSpec, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "demo.okt.dev",
    version = "v1",
    kind = "Queue",
    namespaced,
    status = "Status<QueueState, (), QueueMemory>"
)]
pub struct QueueSpec {
    /// The desired lifecycle state of the queue.
    #[serde(default)]
    pub lifecycle: Desired<QueueState>,
    /// How many nodes it has.
    #[schemars(range(min = 1, max = 200))]
    pub nodes: u32,
    /// The version of the server.
    pub version: String,
}

/// What the operator remembers of a queue: what is true of its nodes, whatever the spec asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct QueueMemory {
    /// How many nodes may hold messages.
    pub nodes: u32,
    /// The version that they run.
    pub version: String,
    /// The user that clients connect as.
    pub user: String,
    /// The ids of the last backups, oldest first.
    pub backups: Vec<String>,
}

/// How many backups are remembered.
const BACKUPS: usize = 10;

/// The API of the servers of queues. Each call has an id: a call that is repeated under its id has no second effect.
pub trait Servers: Clone + Debug + Send + Sync + 'static {
    /// Makes the user of a queue, and returns its name.
    fn create_user(
        &self,
        queue: &str,
        id: &str,
    ) -> impl Future<Output = Result<String, Failure>> + Send;

    /// Moves the messages of a node to the others, and returns how many those were.
    fn drain(
        &self,
        queue: &str,
        node: &str,
        id: &str,
    ) -> impl Future<Output = Result<u64, Failure>> + Send;

    /// Drains a node, restarts it with a version, and lets it take messages again.
    fn upgrade(
        &self,
        queue: &str,
        node: &str,
        version: &str,
        id: &str,
    ) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Takes a backup into a bucket, and returns its id.
    fn back_up(
        &self,
        queue: &str,
        bucket: &str,
        id: &str,
    ) -> impl Future<Output = Result<String, Failure>> + Send;

    /// Replaces the messages by those of a backup.
    fn restore(
        &self,
        queue: &str,
        backup: &str,
        id: &str,
    ) -> impl Future<Output = Result<(), Failure>> + Send;
}

/// The operator of queues.
#[derive(Clone, Debug, Default)]
pub struct Queues<S> {
    /// The API of the servers.
    pub servers: S,
}

impl<S: Servers> Queues<S> {
    /// Makes the user, and remembers the first nodes, unless that is done.
    async fn begin(&self, cx: &Action<Queue>) -> Result<(), Failure> {
        if !cx.memory().user.is_empty() {
            return Ok(());
        }
        let queue = cx.object().name_any();
        let create = |id: String| async move { self.servers.create_user(&queue, &id).await };
        let user: String = cx.step("create-user", create).await?;
        let spec = &cx.object().spec;
        cx.remember(|memory| {
            memory.user.clone_from(&user);
            memory.nodes = spec.nodes;
            memory.version.clone_from(&spec.version);
        })
    }

    /// Drains nodes, the last one first: a `StatefulSet` removes the last one first.
    async fn drain(&self, cx: &Action<Queue>, nodes: std::ops::Range<u32>) -> Result<(), Failure> {
        let queue = cx.object().name_any();
        let drain = |node: StepPart| {
            let queue = &queue;
            async move { self.servers.drain(queue, &node.name, &node.id).await }
        };
        let drained: Vec<u64> = cx.steps("drain", last_first(nodes)).each(drain).await?;
        let messages: u64 = drained.iter().sum();
        cx.progress(format!("{messages} messages were moved"));
        Ok(())
    }
}

/// Returns the names of nodes, the last one first.
fn last_first(nodes: std::ops::Range<u32>) -> impl Iterator<Item = String> {
    nodes.rev().map(|number| format!("node-{number}"))
}

impl<S: Servers> QueueStateHandler for Queues<S> {
    type Context = Action<Queue>;
    type Error = Failure;

    async fn starting(&self, cx: &Action<Queue>) -> Result<queue_state::AfterStarting, Failure> {
        self.begin(cx).await?;
        Ok(queue_state::AfterStarting::Next)
    }

    async fn upgrading(&self, cx: &Action<Queue>) -> Result<queue_state::AfterUpgrading, Failure> {
        // A queue that failed in its first state comes here, too.
        self.begin(cx).await?;
        let queue = cx.object().name_any();
        let (memory, version) = (cx.memory(), &cx.object().spec.version);
        if memory.version != *version {
            let upgrade = |node: StepPart| {
                let queue = &queue;
                async move {
                    let (node, id) = (node.name, node.id);
                    self.servers.upgrade(queue, &node, version, &id).await
                }
            };
            let nodes = last_first(0..memory.nodes);
            cx.steps("upgrade", nodes).each(upgrade).await?;
            cx.remember(|memory| memory.version.clone_from(version))?;
        }
        Ok(queue_state::AfterUpgrading::Next)
    }

    async fn resizing(&self, cx: &Action<Queue>) -> Result<queue_state::AfterResizing, Failure> {
        let (before, nodes) = (cx.memory().nodes, cx.object().spec.nodes);
        self.drain(cx, nodes..before).await?;
        cx.remember(|memory| memory.nodes = nodes)?;
        Ok(queue_state::AfterResizing::Next)
    }

    async fn backing_up(
        &self,
        cx: &Action<Queue>,
        args: &BackupArgs,
    ) -> Result<queue_state::AfterBackingUp<BackedUp>, Failure> {
        let (queue, bucket) = (cx.object().name_any(), &args.bucket);
        let back_up = |id: String| async move { self.servers.back_up(&queue, bucket, &id).await };
        let backup: String = cx.step("back-up", back_up).await?;
        cx.remember(|memory| {
            memory.backups.push(backup.clone());
            let surplus = memory.backups.len().saturating_sub(BACKUPS);
            memory.backups.drain(..surplus);
        })?;
        Ok(queue_state::AfterBackingUp::Next(BackedUp { backup }))
    }

    async fn restoring(
        &self,
        cx: &Action<Queue>,
        args: &RestoreArgs,
    ) -> Result<queue_state::AfterRestoring, Failure> {
        if !cx.memory().backups.contains(&args.backup) {
            let why = format!("there is no backup {} of this queue", args.backup);
            return Err(Failure::permanent("NoBackup", why));
        }
        let queue = cx.object().name_any();
        self.servers.restore(&queue, &args.backup, cx.id()).await?;
        Ok(queue_state::AfterRestoring::Next)
    }

    async fn stopping(&self, cx: &Action<Queue>) -> Result<queue_state::AfterStopping, Failure> {
        // The last node has nowhere to move its messages to: they go with the queue.
        self.drain(cx, 1..cx.memory().nodes.max(1)).await?;
        cx.remember(|memory| memory.nodes = 0)?;
        Ok(queue_state::AfterStopping::Next)
    }
}

impl<S: Servers> Application for Queues<S> {
    type Resource = Queue;

    fn watches(watches: Watches<Queue>) -> Watches<Queue> {
        watches.owns::<StatefulSet>().owns::<PodDisruptionBudget>()
    }

    fn requests(requests: Requests<Queue>) -> Requests<Queue> {
        requests.serves::<Backup>().serves::<Restore>()
    }

    /// Declares as many nodes as are remembered, and not as many as the spec asks for: a node that is not drained stays.
    async fn resources(&self, cx: &Context<Queue>, _: QueueState) -> Result<Resources, Failure> {
        let (name, memory) = (cx.object().name_any(), cx.memory());
        if memory.nodes == 0 {
            return Ok(Resources::new());
        }
        let labels = json!({ "demo.okt.dev/queue": name });
        let image = format!("registry.example.com/queue:{}", memory.version);
        let nodes = json!({
            "apiVersion": "apps/v1", "kind": "StatefulSet",
            "metadata": { "name": name },
            "spec": {
                "replicas": memory.nodes,
                "serviceName": name,
                "selector": { "matchLabels": labels },
                "template": {
                    "metadata": { "labels": labels },
                    "spec": { "containers": [{ "name": "queue", "image": image }] },
                },
            },
        });
        let budget = json!({
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": { "name": name },
            "spec": { "maxUnavailable": 1, "selector": { "matchLabels": labels } },
        });
        Ok(Resources::new()
            .with(Declared::dynamic(nodes))
            .with(Declared::dynamic(budget)))
    }
}
