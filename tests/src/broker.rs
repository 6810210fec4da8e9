//! Brokers, whose handlers remember their nodes and take steps.
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{CustomResource, ResourceExt};
use okt::{
    Action, Application, Context, Declared, Desired, Failure, LifecycleSpec, Resources, Status,
    StepPart, Watches, lifecycle_graph,
};
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::cluster::Served;

/// The life of a broker.
#[lifecycle_graph]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BrokerState {
    /// It is made.
    #[entry]
    #[child(Running)]
    Starting,
    /// It has as many nodes as it remembers.
    #[rest(idle)]
    #[trigger(Resizing, on_change)]
    #[child(Gone)]
    Running,
    /// It gets another number of nodes.
    #[trigger(Broken, on_error)]
    #[child(Running)]
    Resizing,
    /// It could not be resized.
    #[rest(hold, idle)]
    #[child(Running)]
    #[child(Gone)]
    Broken,
    /// It is no more.
    #[leaf(idle)]
    Gone,
}

/// What the handlers remember of a broker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct BrokerMemory {
    /// The number of nodes that may hold messages.
    pub nodes: u32,
    /// What a failed attempt noted.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// A broker.
#[derive(CustomResource, LifecycleSpec, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "demo.okt.dev",
    version = "v1",
    kind = "Broker",
    namespaced,
    status = "Status<BrokerState, (), BrokerMemory>"
)]
pub struct BrokerSpec {
    /// The desired state.
    #[serde(default)]
    pub lifecycle: Desired<BrokerState>,
    /// The number of nodes.
    #[serde(default)]
    pub nodes: u32,
}

/// What an attempt to resize does after it has remembered the new size.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Resize {
    /// It succeeds.
    Done,
    /// It fails.
    Fails,
    /// It does not end.
    Hangs,
    /// It remembers a note of so many bytes instead.
    Notes(usize),
    /// It records the new size at once, and hangs.
    Now,
    /// It takes so many steps of all, and then hangs, if any are left.
    Steps(usize),
    /// It takes a step for each of so many nodes, this many at once.
    Nodes(usize, usize),
    /// It takes a step twice.
    Twice,
    /// It takes a step within a step.
    Within,
    /// It takes a step whose result is too large.
    Large,
}

/// All steps of a resize.
pub const STEPS: [&str; 3] = ["drain", "move", "start"];

/// The operator of brokers; clones share what they do.
#[derive(Clone, Default)]
pub struct Brokers {
    /// What the next attempts to resize do; later ones succeed.
    pub resizes: Arc<Mutex<VecDeque<Resize>>>,
    /// What each attempt to resize found recorded.
    pub found: Arc<Mutex<Vec<BrokerMemory>>>,
    /// The steps that were taken, by their ids.
    pub taken: Arc<Mutex<Vec<String>>>,
    /// The nodes that cannot be drained yet, each with how often that is tried in vain.
    pub busy: Arc<Mutex<BTreeMap<String, u32>>>,
}

impl Brokers {
    /// Drains so many nodes, some of which are busy.
    async fn nodes(
        &self,
        cx: &Action<Broker>,
        nodes: usize,
        at_once: usize,
    ) -> Result<(), Failure> {
        let names = (0..nodes).map(|number| format!("node-{number}"));
        let drain = |part: StepPart| async move {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let mut busy = self.busy.lock();
            if let Some(left) = busy.get_mut(&part.name).filter(|left| **left > 0) {
                *left -= 1;
                return Err(Failure::retry("Busy", "it has messages"));
            }
            self.taken.lock().push(part.id);
            Ok(part.attempt)
        };
        let attempts: Vec<u32> = cx
            .steps("drain", names)
            .attempts(3)
            .at_once(at_once)
            .each(drain)
            .await?;
        assert_eq!(attempts.len(), nodes);
        Ok(())
    }

    /// Takes so many steps of all.
    async fn steps(&self, cx: &Action<Broker>, most: usize) -> Result<(), Failure> {
        for (number, name) in STEPS.into_iter().enumerate() {
            if number == most {
                std::future::pending::<()>().await;
            }
            let taken = cx.step(name, |id| async {
                self.taken.lock().push(id);
                Ok::<_, Failure>(number)
            });
            assert_eq!(taken.await?, number, "the result of {name}");
        }
        Ok(())
    }
}

impl BrokerStateHandler for Brokers {
    type Context = Action<Broker>;
    type Error = Failure;

    async fn starting(&self, cx: &Action<Broker>) -> Result<broker_state::AfterStarting, Failure> {
        cx.remember(|memory| memory.nodes = cx.object().spec.nodes)?;
        Ok(broker_state::AfterStarting::Running)
    }

    async fn resizing(&self, cx: &Action<Broker>) -> Result<broker_state::AfterResizing, Failure> {
        self.found.lock().push(cx.memory());
        let resize = self.resizes.lock().pop_front().unwrap_or(Resize::Done);
        let done = |()| async { Ok::<_, Failure>(()) };
        match resize {
            Resize::Notes(bytes) => {
                cx.remember(|memory| memory.note = "x".repeat(bytes))?;
                return Ok(broker_state::AfterResizing::Running);
            }
            Resize::Now => {
                cx.remember_now(|memory| memory.nodes = cx.object().spec.nodes)
                    .await?;
                std::future::pending::<()>().await;
            }
            Resize::Steps(most) => self.steps(cx, most).await?,
            Resize::Nodes(nodes, at_once) => self.nodes(cx, nodes, at_once).await?,
            Resize::Twice => {
                cx.step("a", |_| done(())).await?;
                cx.step("a", |_| done(())).await?;
            }
            Resize::Within => {
                cx.step("a", |_| cx.step("b", |_| done(()))).await?;
            }
            Resize::Large => {
                cx.step("a", |_| async { Ok::<_, Failure>("x".repeat(5000)) })
                    .await?;
            }
            Resize::Done | Resize::Fails | Resize::Hangs => {}
        }
        cx.remember(|memory| memory.note = format!("attempt {}", cx.attempt()))?;
        cx.remember(|memory| memory.nodes = cx.object().spec.nodes)?;
        match resize {
            Resize::Fails => Err(Failure::retry("Busy", "a node is busy")),
            Resize::Hangs => std::future::pending().await,
            _ => Ok(broker_state::AfterResizing::Running),
        }
    }
}

impl Application for Brokers {
    type Resource = Broker;

    fn watches(watches: Watches<Broker>) -> Watches<Broker> {
        watches.owns::<ConfigMap>()
    }

    async fn resources(&self, cx: &Context<Broker>, _: BrokerState) -> Result<Resources, Failure> {
        let size = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": { "name": cx.object().name_any() },
            "data": { "text": cx.memory().nodes.to_string() },
        });
        Ok(Resources::new().with(Declared::dynamic(size)))
    }
}

impl Served for Brokers {}
