//! Arguments for handlers, made by hand: a handler is called like any function, without an operator.
//!
//! ```
//! use k8s_openapi::api::core::v1::Pod;
//! use okt::{Action, Desired, Failure, LifecycleSpec, Status, lifecycle_graph};
//! # use kube::CustomResource;
//! # use schemars::JsonSchema;
//! # use serde::{Deserialize, Serialize};
//!
//! # #[lifecycle_graph]
//! # #[derive(Clone, Copy, Debug, PartialEq, Eq)]
//! # pub enum ServerState {
//! #     #[entry]
//! #     #[child(Gone)]
//! #     Starting,
//! #     #[leaf]
//! #     Gone,
//! # }
//! # #[derive(CustomResource, LifecycleSpec, Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
//! # #[kube(group = "example.com", version = "v1", kind = "Server", namespaced, status = "Status<ServerState>")]
//! # pub struct ServerSpec {
//! #     #[serde(default)]
//! #     lifecycle: Desired<ServerState>,
//! # }
//! // In your operator this is a method of the handler trait.
//! async fn starting(cx: &Action<Server>) -> Result<server_state::AfterStarting, Failure> {
//!     if cx.owned::<Pod>()?.is_empty() {
//!         return Err(Failure::retry("NoPod", "the pod does not exist"));
//!     }
//!     Ok(server_state::AfterStarting::Gone)
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let server = Server::new("a", ServerSpec::default());
//! let pod: Pod = serde_json::from_value(serde_json::json!({ "metadata": { "name": "a" } })).unwrap();
//! let cx = okt_testing::action(server).attempt(2).owned(&pod).build();
//! let next = starting(&cx).await;
//! assert!(matches!(next, Ok(server_state::AfterStarting::Gone)), "{next:?}");
//! # }
//! ```

use std::marker::PhantomData;
use std::time::Duration;

use kube::{Client, Resource};
use okt_runtime::__testing::Fixture;
use okt_runtime::{Action, Context, LifecycleObject, Pass, Watches};
use serde::Serialize;

use crate::ApiServer;

/// Begins an [`Action`], the argument of a handler, for this object.
pub fn action<K: LifecycleObject>(object: K) -> Given<K, Action<K>> {
    Given::new(object)
}

/// Begins a [`Context`], the argument of `observe` and `resources`, for this object.
pub fn context<K: LifecycleObject>(object: K) -> Given<K, Context<K>> {
    Given::new(object)
}

/// Begins a [`Pass`], the argument of the steps of a pass, for this object.
///
/// [`Pass::objects`] returns the objects that a step has put.
pub fn pass<K: LifecycleObject>(object: K) -> Given<K, Pass<K>> {
    Given::new(object)
}

/// An object and its surroundings, from which [`build`](Given::build) makes the argument of a handler.
///
/// An object without a uid, a name or a namespace gets one. Its client talks to an [`ApiServer`] without objects, unless
/// you give another [`client`](Self::client).
#[must_use = "`build` makes the argument"]
pub struct Given<K: LifecycleObject, T> {
    fixture: Fixture<K>,
    makes: PhantomData<fn() -> T>,
}

impl<K: LifecycleObject, T> Given<K, T> {
    fn new(object: K) -> Self {
        Self {
            fixture: Fixture::new(object, ApiServer::new().client()),
            makes: PhantomData,
        }
    }

    /// Puts the object into this state.
    pub fn state(mut self, state: K::State) -> Self {
        self.fixture.state(state);
        self
    }

    /// Sets how long the object has been in that state.
    pub fn time_in_state(mut self, time: Duration) -> Self {
        self.fixture.time_in_state(time);
        self
    }

    /// Sets what the handlers remember of the object; it needs a [`state`](Self::state).
    pub fn memory(mut self, memory: K::Memory) -> Self {
        self.fixture.memory(memory);
        self
    }

    /// Adds a resource that the object owns, with its status; declares its kind as owned.
    pub fn owned<R>(mut self, resource: &R) -> Self
    where
        R: Resource<DynamicType = (), Scope: 'static> + Serialize,
    {
        self.fixture.owned(resource);
        self
    }

    /// Adds a resource that the object refers to; declares references to its kind.
    pub fn referred<R>(mut self, resource: &R) -> Self
    where
        R: Resource<DynamicType = (), Scope: 'static> + Serialize,
    {
        self.fixture.referred(resource);
        self
    }

    /// Declares kinds as your application does: `.watches(Keeper::watches)`.
    ///
    /// Without it, only the kinds of [`owned`](Self::owned) and [`referred`](Self::referred) resources are declared, and
    /// asking for another one is an error.
    pub fn watches(mut self, declare: impl FnOnce(Watches<K>) -> Watches<K>) -> Self {
        self.fixture.watches(declare);
        self
    }

    /// Sets the client that the handler gets.
    pub fn client(mut self, client: Client) -> Self {
        self.fixture.client(client);
        self
    }
}

impl<K: LifecycleObject> Given<K, Action<K>> {
    /// Sets the number of the attempt, by default 1.
    pub fn attempt(mut self, attempt: u32) -> Self {
        self.fixture.attempt(attempt);
        self
    }

    /// Lets another operator process have begun the work before.
    pub fn resumed(mut self) -> Self {
        self.fixture.resumed();
        self
    }

    /// Sets the arguments of the request that the work serves: those that the handler takes.
    pub fn args<A: Send + Sync + 'static>(mut self, args: A) -> Self {
        self.fixture.args(args);
        self
    }

    /// Cancels the work before it begins.
    pub fn cancelled(mut self) -> Self {
        self.fixture.cancelled();
        self
    }

    /// Makes the argument.
    ///
    /// # Panics
    ///
    /// If the object cannot own one of the resources; the message says why.
    #[track_caller]
    pub fn build(self) -> Action<K> {
        self.fixture.action().unwrap_or_else(|why| panic!("{why}"))
    }
}

impl<K: LifecycleObject> Given<K, Context<K>> {
    /// Makes the argument.
    ///
    /// # Panics
    ///
    /// If the object cannot own one of the resources; the message says why.
    #[track_caller]
    pub fn build(self) -> Context<K> {
        self.fixture.context().unwrap_or_else(|why| panic!("{why}"))
    }
}

impl<K: LifecycleObject> Given<K, Pass<K>> {
    /// Makes the argument.
    ///
    /// # Panics
    ///
    /// If the object cannot own one of the resources; the message says why.
    #[track_caller]
    pub fn build(self) -> Pass<K> {
        self.fixture.pass().unwrap_or_else(|why| panic!("{why}"))
    }
}
