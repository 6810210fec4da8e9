//! Databases and sites on machines, each with a real agent in this process, and operators that call these agents.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use kube::ResourceExt;
use okt::sidecar::{Agents, Client, Delegated};
use okt::{Action, Dispatch, Failure, LifecycleObject, Operator, crd};
use okt_agent::wire::{ActionReport, Seen, Sighting};
use okt_agent::{Agent, Done, Fault, JournalError, Offer, Started, Task, Work};
use okt_testing::ApiServer;
use okt_tests::{Cluster, Served};
use parking_lot::Mutex;
use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tower::ServiceExt;

/// How often an agent observes its application.
const OBSERVE_EVERY: Duration = Duration::from_secs(2);

/// A cluster whose applications have agents.
pub(super) struct Stage<A: Served> {
    pub(super) server: ApiServer,
    pub(super) cluster: Cluster<A>,
    pub(super) machines: Machines,
}

/// The machines, by the name of the object whose application runs there.
#[derive(Clone, Default)]
pub(super) struct Machines(Arc<Mutex<BTreeMap<String, Arc<Machine>>>>);

/// A machine with an application, and with an agent while the agent runs.
pub(super) struct Machine {
    application: Application,
    disk: TempDir,
    agent: Mutex<Option<Started>>,
}

/// An application that follows a script; clones share it.
#[derive(Clone, Default)]
struct Application(Arc<Mutex<Script>>);

#[derive(Default)]
struct Script {
    /// The replies by state.
    works: BTreeMap<String, Reply>,
    seen: Option<Seen>,
    begun: Vec<String>,
    ended: Vec<String>,
}

/// How the work of a state behaves.
#[derive(Clone)]
pub(super) enum Reply {
    /// Succeeds after this time.
    Takes(Duration),
    /// Fails permanently, with this reason.
    Fails(&'static str),
    /// Runs until it is cancelled, then cleans up for this time.
    Forever(Duration),
    /// Names the next state.
    Names(&'static str),
}

impl<A: Served> Deref for Stage<A> {
    type Target = Cluster<A>;

    fn deref(&self) -> &Cluster<A> {
        &self.cluster
    }
}

impl<A: Served> Stage<A> {
    pub(super) async fn new() -> Self {
        let server = ApiServer::new();
        let cluster = Cluster::new(server.client(), Duration::from_hours(3));
        cluster.define(crd::<A::Resource>().expect("a CRD")).await;
        Self {
            server,
            cluster,
            machines: Machines::default(),
        }
    }

    /// The agents of this cluster's objects.
    pub(super) fn agents(&self) -> Agents<A::Resource> {
        let machines = self.machines.clone();
        Agents::with_clients(move |object: &A::Resource| Ok(machines.client(&object.name_any())))
            .observe_every(|_| Duration::from_secs(5))
    }

    /// Starts an operator.
    pub(super) fn operator(&self, agents: Agents<A::Resource>) -> Operating
    where
        A::Resource: LifecycleObject<
            State: Dispatch<
                Delegated<Agents<A::Resource>>,
                Context = Action<A::Resource>,
                Error = Failure,
            >,
        >,
    {
        let operator = Operator::new(self.server.client(), Delegated(agents)).virtual_time();
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(async move {
            let stopped = async { stopped.await.unwrap_or_default() };
            operator.run(stopped).await.expect("the operator runs");
        });
        Operating { stop, task }
    }

    /// Returns the resource version of an object, which changes with each write.
    pub(super) async fn version(&self, name: &str) -> Option<String> {
        let object = self.cluster.object(name).await;
        object.resource_version()
    }
}

/// An operator that runs.
pub(super) struct Operating {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Operating {
    /// Ends the operator as SIGKILL would.
    pub(super) async fn kill(self) {
        self.task.abort();
        let _ = self.task.await;
    }

    /// Ends the operator as SIGTERM would.
    pub(super) async fn stop(self) {
        let _ = self.stop.send(());
        self.task.await.expect("the operator ends well");
    }
}

impl Machines {
    /// Adds a machine for this object, with an agent that does the work of these states.
    pub(super) async fn add(&self, name: &str, states: &[&'static str]) -> Arc<Machine> {
        let application = Application::default();
        for state in states {
            application.script(state, Reply::Takes(Duration::from_secs(1)));
        }
        let machine = Arc::new(Machine {
            application,
            disk: tempfile::tempdir().expect("a directory"),
            agent: Mutex::default(),
        });
        machine.start().await;
        self.0.lock().insert(name.to_owned(), Arc::clone(&machine));
        machine
    }

    /// Returns a client for the agent of this machine; without an agent the connection is refused.
    pub(super) fn client(&self, name: &str) -> Client {
        let machine = self.0.lock().get(name).cloned();
        Client::over(tower::service_fn(move |request| {
            let router = machine
                .as_ref()
                .and_then(|machine| Some(machine.agent.lock().as_ref()?.router()));
            async move {
                match router {
                    Some(router) => Ok(router.oneshot(request).await.expect("it cannot fail")),
                    None => Err(std::io::Error::from(std::io::ErrorKind::ConnectionRefused)),
                }
            }
        }))
    }
}

impl Machine {
    /// Starts the agent.
    pub(super) async fn start(&self) {
        // A killed agent keeps the disk locked until its threads have ended.
        let agent = loop {
            let agent = Agent::new(self.application.clone(), self.disk.path());
            match agent.observe_every(OBSERVE_EVERY).start().await {
                Ok(agent) => break agent,
                Err(JournalError::Locked(_)) => tokio::time::sleep(Duration::from_millis(5)).await,
                Err(error) => panic!("the agent does not start: {error}"),
            }
        };
        *self.agent.lock() = Some(agent);
    }

    /// Ends the agent as SIGKILL would.
    pub(super) fn kill(&self) {
        drop(self.agent.lock().take());
    }

    /// Sets how the work of a state behaves from now on.
    /// Kills the agent and starts it again.
    pub(super) async fn restart(&self) {
        self.kill();
        self.start().await;
    }

    pub(super) fn script(&self, state: &str, reply: Reply) {
        self.application.script(state, reply);
    }

    /// Sets what the application reports from now on; `None` means `Seen::Unobserved`.
    pub(super) fn see(&self, seen: Option<Seen>) {
        self.application.0.lock().seen = seen;
    }

    /// The states whose work was begun, one for each attempt.
    pub(super) fn begun(&self) -> Vec<String> {
        self.application.0.lock().begun.clone()
    }

    /// The states whose work has ended, with any outcome, in the order of the ends.
    pub(super) fn ended(&self) -> Vec<String> {
        self.application.0.lock().ended.clone()
    }
}

/// The actions that an agent remembers, the newest first.
pub(super) async fn actions(client: &Client) -> Vec<ActionReport> {
    client.actions().await.expect("the agent answers")
}

impl Application {
    fn script(&self, state: &str, reply: Reply) {
        self.0.lock().works.insert(state.to_owned(), reply);
    }
}

impl Work for Application {
    fn offers(&self) -> Vec<Offer> {
        let offer = |state: &String| Offer {
            state: state.clone(),
            repeatable: false,
        };
        self.0.lock().works.keys().map(offer).collect()
    }

    async fn observe(&self) -> Sighting {
        Sighting::of(self.0.lock().seen.clone().unwrap_or(Seen::Unobserved))
    }

    async fn perform(&self, task: &Task) -> Result<Done, Fault> {
        let state = task.state().to_owned();
        let work = {
            let mut script = self.0.lock();
            script.begun.push(state.clone());
            script.works.get(&state).cloned()
        };
        let answer = match work {
            Some(Reply::Takes(time)) => {
                task.progress(Some(50), "half of it");
                tokio::time::sleep(time).await;
                Ok(Done::default())
            }
            Some(Reply::Fails(reason)) => Err(Fault::permanent(reason, "as the script says")),
            Some(Reply::Forever(time)) => {
                task.cancelled().await;
                tokio::time::sleep(time).await;
                Err(Fault::retry("Cancelled", "as it was told to"))
            }
            Some(Reply::Names(event)) => Ok(Done {
                event: Some(event.to_owned()),
                ..Done::default()
            }),
            None => Ok(Done::default()),
        };
        self.0.lock().ended.push(state);
        answer
    }
}
