//! Agents in the test process, for operators whose work agents do.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use kube::ResourceExt;
use okt_agent::wire::{Seen, Sighting};
use okt_agent::{Agent, Done, Fault, Offer, Started, Task, Work};
use okt_core::{Lifecycle, Mark};
use okt_runtime::LifecycleObject;
use okt_runtime::sidecar::{Agents, Client};
use parking_lot::Mutex;
use tempfile::TempDir;
use tokio::sync::OnceCell;
use tower::ServiceExt;

/// An agent in the test process for each object: it does the work of every state at once, and observes nothing.
///
/// Clones share their agents. An operator that is started again finds them as they are, as after a crash.
///
/// ```
/// # use okt::{Desired, LifecycleSpec, Status, lifecycle_graph};
/// # use okt::kube::CustomResource;
/// # use okt::schemars::JsonSchema;
/// # use okt::serde::{Deserialize, Serialize};
/// # #[lifecycle_graph]
/// # #[derive(Clone, Copy, Debug, PartialEq, Eq)]
/// # pub enum StoreState { #[entry] #[child(Open)] Start, #[rest] #[child(End)] Open, #[leaf(idle)] End }
/// # #[okt::crates]
/// # #[derive(CustomResource, LifecycleSpec, Clone, Debug, Serialize, Deserialize, JsonSchema)]
/// # #[kube(group = "demo.okt.dev", version = "v1", kind = "Store", namespaced, status = "Status<StoreState>")]
/// # pub struct StoreSpec { #[serde(default)] pub lifecycle: Desired<StoreState> }
/// use okt::Delegated;
/// use okt_testing::TestAgents;
///
/// let agents = TestAgents::default();
/// let application = Delegated(agents.of::<Store>());
/// # drop(application);
/// ```
#[derive(Clone, Debug, Default)]
pub struct TestAgents(Arc<Mutex<BTreeMap<String, Arc<Machine>>>>);

/// One agent, which starts with the first request.
#[derive(Debug, Default)]
struct Machine {
    started: OnceCell<(Started, TempDir)>,
    done: Arc<Mutex<Vec<String>>>,
}

impl TestAgents {
    /// Returns the agents of a kind.
    pub fn of<K: LifecycleObject>(&self) -> Agents<K> {
        let own = self.clone();
        Agents::with_clients(move |object: &K| {
            let machine = own.machine(object);
            Ok(Client::over(tower::service_fn(move |request| {
                let machine = Arc::clone(&machine);
                async move {
                    let router = machine.agent::<K::State>().await?.router();
                    router.oneshot(request).await.map_err(io::Error::other)
                }
            })))
        })
    }

    /// Returns the names of the states whose work was done for an object, in this order.
    pub fn done<K: LifecycleObject>(&self, object: &K) -> Vec<String> {
        self.machine(object).done.lock().clone()
    }

    fn machine<K: LifecycleObject>(&self, object: &K) -> Arc<Machine> {
        let namespace = object.namespace().unwrap_or_default();
        let key = format!("{}/{namespace}/{}", K::kind(&()), object.name_any());
        Arc::clone(self.0.lock().entry(key).or_default())
    }
}

impl Machine {
    async fn agent<S: Lifecycle>(&self) -> io::Result<&Started> {
        let start = async || {
            let disk = TempDir::new()?;
            let states = S::GRAPH.iter().map(|(_, state)| state);
            let work = AllWork {
                states: states
                    .filter(|state| !state.is(Mark::Idle))
                    .map(|state| state.name.to_owned())
                    .collect(),
                done: Arc::clone(&self.done),
            };
            let started = Agent::new(work, disk.path()).start().await;
            Ok::<_, io::Error>((started.map_err(io::Error::other)?, disk))
        };
        let (started, _) = self.started.get_or_try_init(start).await?;
        Ok(started)
    }
}

/// The work of states, which succeeds.
struct AllWork {
    states: Vec<String>,
    done: Arc<Mutex<Vec<String>>>,
}

impl Work for AllWork {
    fn offers(&self) -> Vec<Offer> {
        let offer = |state: &String| Offer {
            state: state.clone(),
            repeatable: true,
        };
        self.states.iter().map(offer).collect()
    }

    async fn observe(&self) -> Sighting {
        Sighting::of(Seen::Unobserved)
    }

    async fn perform(&self, task: &Task) -> Result<Done, Fault> {
        self.done.lock().push(task.state().to_owned());
        Ok(Done::default())
    }
}
