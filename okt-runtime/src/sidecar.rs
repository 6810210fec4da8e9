//! The operator's side of the agent protocol (`docs/sidecar.md`): applications whose agents do the work.
//!
//! [`Agents`] finds the agent of an object, has it do the work of a state, and observes the application through it.
//! With [`Delegated`] it is a complete [`Application`](crate::Application), without code for any state:
//!
//! ```no_run
//! use std::convert::Infallible;
//! use std::process::ExitCode;
//!
//! use kube::ResourceExt;
//! use okt::sidecar::{Agents, Delegated, Endpoint, EndpointError};
//! # use kube::CustomResource;
//! # use okt::{Desired, LifecycleSpec, Status, lifecycle_graph};
//! # use schemars::JsonSchema;
//! # use serde::{Deserialize, Serialize};
//! # #[lifecycle_graph]
//! # #[derive(Clone, Copy, Debug, PartialEq, Eq)]
//! # pub enum StoreState { #[entry] #[child(Open)] Start, #[rest] #[child(End)] Open, #[leaf(idle)] End }
//! # #[derive(CustomResource, LifecycleSpec, Clone, Debug, Serialize, Deserialize, JsonSchema)]
//! # #[kube(group = "demo.okt.dev", version = "v1", kind = "Store", namespaced, status = "Status<StoreState>")]
//! # pub struct StoreSpec { #[serde(default)] pub lifecycle: Desired<StoreState> }
//!
//! fn agent_of(store: &Store) -> Result<Endpoint, EndpointError> {
//!     let (namespace, name) = (store.namespace().unwrap_or_default(), store.name_any());
//!     let endpoint = Endpoint::parse(&format!("https://{name}.{namespace}.svc:8470"))?;
//!     Ok(endpoint
//!         .ca_file("/run/agents/ca.crt")
//!         .token_file(format!("/run/agents/tokens/{namespace}/{name}")))
//! }
//!
//! #[tokio::main]
//! async fn main() -> ExitCode {
//!     okt::main(|_| async { Ok::<_, Infallible>(Delegated(Agents::at(agent_of))) }).await
//! }
//! ```
//!
//! Build the endpoint from the namespace and name of the object, not from a field of its spec: whoever writes the
//! object could name any host there, and the operator would connect to it.
//! If the address has to come from the spec, set the name that the agent's certificate must have with
//! [`Endpoint::server_name`].
//! Give each agent a token of its own, or a certificate for the name of its object, so that no agent can speak for
//! another one, and no token works for two agents.
//!
//! [`PodAgent`] adds `okt-sidecar` to the Pods of a kind, with a token and a certificate for each; [`InPods`] is then the
//! complete application.
//!
//! If you have handlers of your own, call [`Agents::perform`] in the states whose work an agent does, and
//! [`Agents::observe`] in `observe`.
//!
//! | content | file |
//! |---|---|
//! | work, from the action to its outcome | `perform` |
//! | the outcome as the operator's result or failure | `outcome` |
//! | observations | `observe` |
//! | an application without code for its states | `delegated` |
//! | an agent in the Pod of its application | `pod` |
//! | applications in Pods, without code for their states | `pods` |
//! | actions that were begun and whose end is not taken | `open` |

mod delegated;
mod observe;
mod open;
mod outcome;
mod perform;
mod pod;
mod pods;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::ResourceExt;
pub use okt_agent::client::{Client, Clients, Endpoint, EndpointError};
use okt_agent::wire::Owner;
use okt_core::Lifecycle;
pub use okt_core::{Delegate, Delegated};
use parking_lot::Mutex;
use serde_json::{Map, Value};
use tokio::sync::watch;

use self::open::OpenRequests;
pub use self::outcome::Performed;
pub use self::perform::id_at_agent;
pub use self::pod::{AgentConfigError, PodAgent};
pub use self::pods::{AgentPods, InPods};
use crate::author::context::Context;

use okt_reach::Failure;
use okt_wire::object::{LifecycleObject, LifecycleSpec};
use okt_wire::read;

type Finder<K> = dyn Fn(&Context<K>) -> Result<Client, Failure> + Send + Sync;
type Input<K> = dyn Fn(&K) -> Map<String, Value> + Send + Sync;
type States<S> = dyn Fn(S) -> Vec<S> + Send + Sync;
type Time<S> = dyn Fn(S) -> Duration + Send + Sync;

/// The agents of the objects of a kind.
///
/// You set once where the agents are, the operator's term, and the input of the work.
/// Clones share the certificates of the agents, and their knowledge of the work under way.
pub struct Agents<K: LifecycleObject> {
    find: Arc<Finder<K>>,
    epoch: Option<watch::Receiver<u64>>,
    input: Arc<Input<K>>,
    from: Arc<States<K::State>>,
    observe_every: Arc<Time<K::State>>,
    attempt_limit: Arc<Time<K::State>>,
    repeats_unknown: bool,
    /// Whether an agent that lacks the work of a state may get it without another spec.
    awaits_work: bool,
    /// The hash of the operator's graph.
    graph: Arc<str>,
    open: Arc<Mutex<OpenRequests>>,
}

impl<K: LifecycleObject> Agents<K> {
    /// Creates agents whose endpoints this function returns; certificates are read again after ten minutes.
    ///
    /// The function is called for each observation and each action, so it should be quick.
    pub fn at(
        endpoint: impl Fn(&K) -> Result<Endpoint, EndpointError> + Send + Sync + 'static,
    ) -> Self {
        let clients = Clients::default();
        Self::with_clients(move |object| {
            endpoint(object)
                .and_then(|endpoint| clients.of(&endpoint))
                .map_err(|error| outcome::of_endpoint(&error))
        })
    }

    /// Creates agents that run in the Pods of the objects; the operator has to declare what `agent` needs, with
    /// [`InPods`] or by itself.
    pub fn in_pods(agent: PodAgent) -> Self {
        let clients = Clients::default();
        let found = Self::found(move |cx| {
            let client = clients.of(&agent.endpoint(cx)?);
            client.map_err(|error| agent.misuse(cx.object(), &error))
        });
        Self {
            // A Pod with the present configuration comes after the operator with it.
            awaits_work: true,
            ..found
        }
    }

    /// Creates agents that are reached through these clients; for agents within the process, as in tests.
    pub fn with_clients(
        client: impl Fn(&K) -> Result<Client, Failure> + Send + Sync + 'static,
    ) -> Self {
        Self::found(move |cx| client(cx.object()))
    }

    fn found(
        client: impl Fn(&Context<K>) -> Result<Client, Failure> + Send + Sync + 'static,
    ) -> Self {
        Self {
            find: Arc::new(client),
            epoch: None,
            input: Arc::new(spec_without_lifecycle),
            from: Arc::new(|_| Vec::new()),
            observe_every: Arc::new(|_| Duration::from_secs(30)),
            attempt_limit: Arc::new(|_| Duration::from_hours(1)),
            repeats_unknown: false,
            awaits_work: false,
            graph: read::graph_hash(K::State::GRAPH).into(),
            open: Arc::default(),
        }
    }

    /// Sets the epoch for a leader election of your own: how often the leader has changed (`leaseTransitions`). Agents
    /// refuse an operator that does not have the newest one.
    ///
    /// By default it is the [`epoch`](crate::Context::epoch) of the replica, and 0 for an operator that runs alone.
    /// Agents remember the highest epoch permanently, so a lease that is deleted and created again must not start from
    /// 0.
    #[must_use]
    pub fn epoch(mut self, epoch: watch::Receiver<u64>) -> Self {
        self.epoch = Some(epoch);
        self
    }

    /// Sets the input of the work; by default `spec` without its lifecycle field.
    ///
    /// The input must contain everything that decides what the work does, and be the same for the same revision of an
    /// object: an agent refuses another input under the same id.
    #[must_use]
    pub fn input(
        mut self,
        input: impl Fn(&K) -> Map<String, Value> + Send + Sync + 'static,
    ) -> Self {
        self.input = Arc::new(input);
        self
    }

    /// Sets the states in which the application must have been observed before the work of a state begins; by default
    /// any.
    #[must_use]
    pub fn from(
        mut self,
        states: impl Fn(K::State) -> Vec<K::State> + Send + Sync + 'static,
    ) -> Self {
        self.from = Arc::new(states);
        self
    }

    /// Retries work with an unknown outcome like work that failed.
    ///
    /// Use it for work that may be done twice although its agent does not declare that.
    #[must_use]
    pub fn repeat_unknown(mut self) -> Self {
        self.repeats_unknown = true;
        self
    }

    /// See [`Application::observe_every`](crate::Application::observe_every); used by [`Delegated`].
    #[must_use]
    pub fn observe_every(
        mut self,
        time: impl Fn(K::State) -> Duration + Send + Sync + 'static,
    ) -> Self {
        self.observe_every = Arc::new(time);
        self
    }

    /// See [`Application::attempt_limit`](crate::Application::attempt_limit); used by [`Delegated`].
    #[must_use]
    pub fn attempt_limit(
        mut self,
        time: impl Fn(K::State) -> Duration + Send + Sync + 'static,
    ) -> Self {
        self.attempt_limit = Arc::new(time);
        self
    }

    /// Returns the epoch for a request about an object now.
    fn epoch_of(&self, cx: &Context<K>) -> u64 {
        let own = self.epoch.as_ref().map(|epoch| *epoch.borrow());
        own.or_else(|| cx.epoch()).unwrap_or_default()
    }
}

impl<K: LifecycleObject> Clone for Agents<K> {
    fn clone(&self) -> Self {
        Self {
            find: Arc::clone(&self.find),
            epoch: self.epoch.clone(),
            input: Arc::clone(&self.input),
            from: Arc::clone(&self.from),
            observe_every: Arc::clone(&self.observe_every),
            attempt_limit: Arc::clone(&self.attempt_limit),
            repeats_unknown: self.repeats_unknown,
            awaits_work: self.awaits_work,
            graph: Arc::clone(&self.graph),
            open: Arc::clone(&self.open),
        }
    }
}

impl<K: LifecycleObject> fmt::Debug for Agents<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agents")
            .field("repeats_unknown", &self.repeats_unknown)
            .field("graph", &self.graph)
            .finish_non_exhaustive()
    }
}

/// Returns the default input of the work.
fn spec_without_lifecycle<K: LifecycleObject>(object: &K) -> Map<String, Value> {
    let mut spec = object.spec_of().clone();
    spec.forget_lifecycle();
    let mut spec = serde_json::to_value(spec).unwrap_or_default();
    if let Some(spec) = spec.as_object_mut() {
        spec.remove("lifecycle");
    }
    Map::from_iter([("spec".to_owned(), spec)])
}

/// Returns an object as its agent identifies it.
fn owner_of<K: LifecycleObject>(object: &K) -> Owner {
    Owner {
        uid: object.uid().unwrap_or_default(),
        created_at: object
            .creation_timestamp()
            .map_or(Timestamp::UNIX_EPOCH, |time| time.0),
        name: object.name_any(),
        namespace: object.namespace().unwrap_or_default(),
    }
}
