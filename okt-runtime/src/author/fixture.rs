//! The arguments of your code, made by hand: `okt-testing` passes them to handlers without an operator.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::{Client, Resource};
use okt_core::{Lifecycle, StateId};
use okt_sharding::gate::Gate;
use okt_telemetry::Telemetry;
use okt_wire::clock::Clock;
use okt_wire::object::LifecycleObject;
use okt_wire::sealed::Sealed;
use serde::Serialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::author::context::{Action, Context};
use crate::author::pass::{Hands, Pass};
use crate::author::progress::Progress;
use crate::author::recording::Recording;
use crate::requests::DecodedArgs;
use crate::resources::{Cluster, Filling, OwnedMemory, Owner, Pace, Watches};

/// An object and its surroundings, from which contexts are made.
pub struct Fixture<K: LifecycleObject> {
    object: K,
    state: Option<&'static str>,
    time_in_state: Option<Duration>,
    memory: Option<K::Memory>,
    client: Client,
    watches: Watches<K>,
    filling: Filling,
    attempt: u32,
    is_resumed: bool,
    is_cancelled: bool,
    args: Option<DecodedArgs>,
}

impl<K: LifecycleObject> Fixture<K> {
    /// Begins with an object without surroundings.
    pub fn new(object: K, client: Client) -> Self {
        Self {
            object,
            state: None,
            time_in_state: None,
            memory: None,
            client,
            watches: Watches::default(),
            filling: Filling::default(),
            attempt: 1,
            is_resumed: false,
            is_cancelled: false,
            args: None,
        }
    }

    /// Puts the object into a state.
    pub fn state(&mut self, state: K::State) {
        self.state = Some(state.name());
    }

    /// Sets how long the object has been in its state.
    pub fn time_in_state(&mut self, time: Duration) {
        self.time_in_state = Some(time);
    }

    /// Sets what is remembered of the object.
    pub fn memory(&mut self, memory: K::Memory) {
        self.memory = Some(memory);
    }

    /// Sets the number of the attempt, by default 1.
    pub fn attempt(&mut self, attempt: u32) {
        self.attempt = attempt;
    }

    /// Lets another process have begun the work before.
    pub fn resumed(&mut self) {
        self.is_resumed = true;
    }

    /// Cancels the work before it begins.
    pub fn cancelled(&mut self) {
        self.is_cancelled = true;
    }

    /// Sets the arguments of the request that the work serves.
    pub fn args<A: Send + Sync + 'static>(&mut self, args: A) {
        self.args = Some(Arc::new(args));
    }

    /// Sets the client.
    pub fn client(&mut self, client: Client) {
        self.client = client;
    }

    /// Declares kinds as `Application::watches` does.
    pub fn watches(&mut self, declare: impl FnOnce(Watches<K>) -> Watches<K>) {
        self.watches = declare(std::mem::take(&mut self.watches));
    }

    /// Adds an owned object, and declares its kind as owned.
    pub fn owned<T: Resource<DynamicType = (), Scope: 'static> + Serialize>(&mut self, object: &T) {
        self.watches(Watches::owns::<T>);
        self.filling.owned.push(value_of(object));
    }

    /// Adds an object that this one refers to, and declares references to its kind.
    pub fn referred<T: Resource<DynamicType = (), Scope: 'static> + Serialize>(
        &mut self,
        object: &T,
    ) {
        self.watches(|watches| watches.refers::<T>(|_| Vec::new()));
        self.filling.referred.push(value_of(object));
    }

    /// Makes a context.
    ///
    /// # Errors
    ///
    /// Why the surroundings cannot exist.
    pub fn context(self) -> Result<Context<K>, String> {
        let is_namespaced = K::crd().spec.scope != "Cluster";
        let clock = Clock::tokio();
        let since = self
            .time_in_state
            .map(|time| clock.now().saturating_sub(time))
            .transpose()
            .map_err(|error| error.to_string())?;
        let memory = self.memory.as_ref().map(Sealed::of).transpose();
        let memory = memory.map_err(|error| error.to_string())?;
        let object = completed(self.object, is_namespaced);
        let object = recorded(object, self.state, since, memory)?;
        let cluster = Cluster::filled(
            self.watches,
            is_namespaced,
            Owner::of(&object),
            self.filling,
        )?;
        let telemetry = Telemetry::none(clock.clone());
        Ok(Context::new(
            Arc::new(object),
            self.client,
            Arc::new(cluster),
            clock,
            Gate::Always,
            telemetry,
        ))
    }

    /// Makes the work of a state.
    ///
    /// # Errors
    ///
    /// Why the surroundings cannot exist.
    pub fn action(mut self) -> Result<Action<K>, String> {
        let (attempt, is_resumed) = (self.attempt, self.is_resumed);
        let args = self.args.take();
        let cancellation = CancellationToken::new();
        if self.is_cancelled {
            cancellation.cancel();
        }
        let context = self.context()?;
        let uid = context.object().meta().uid.as_deref().unwrap_or_default();
        let id = format!("{uid}/1@0");
        let progress = Progress::new(String::new(), || {});
        let mut action = Action::new(
            context,
            id,
            attempt,
            is_resumed,
            cancellation,
            progress,
            Recording::new(Vec::new(), None),
        );
        if let Some(args) = args {
            action.args = Ok(args);
        }
        Ok(action)
    }

    /// Makes the context of the steps of a pass.
    ///
    /// # Errors
    ///
    /// Why the surroundings cannot exist.
    pub fn pass(self) -> Result<Pass<K>, String> {
        let context = self.context()?;
        let is_deleting = context.is_deleting();
        let hands = Hands {
            client: context.client().clone(),
            cluster: Arc::clone(&context.cluster),
            pace: Pace {
                occasion: (context.object().meta().generation, StateId::UNKNOWN),
                backoff: okt_core::backoff::Backoff::default(),
                seed: 0,
            },
            creates: !is_deleting,
            finalizes: true,
            may_act: Box::new(|| true),
            memory: OwnedMemory::default(),
        };
        Ok(Pass::new(context, hands))
    }
}

/// Adds what every stored object has.
fn completed<K: LifecycleObject>(mut object: K, is_namespaced: bool) -> K {
    let meta = object.meta_mut();
    meta.name.get_or_insert_with(|| "test".to_owned());
    meta.uid
        .get_or_insert_with(|| "00000000-0000-4000-8000-000000000001".to_owned());
    meta.resource_version.get_or_insert_with(|| "1".to_owned());
    meta.generation.get_or_insert(1);
    if is_namespaced {
        meta.namespace.get_or_insert_with(|| "default".to_owned());
    }
    object
}

/// Adds what a test has set to the position of an object.
fn recorded<K: LifecycleObject>(
    object: K,
    state: Option<&str>,
    since: Option<Timestamp>,
    memory: Option<Sealed>,
) -> Result<K, String> {
    if state.is_none() && memory.is_none() {
        return Ok(object);
    }
    let mut whole = serde_json::to_value(&object).map_err(|error| error.to_string())?;
    if whole["status"].is_null() {
        whole["status"] = json!({});
    }
    if whole["status"]["lifecycle"].is_null() {
        whole["status"]["lifecycle"] = json!({});
    }
    let position = &mut whole["status"]["lifecycle"];
    if let Some(state) = state {
        position["state"] = state.into();
    }
    if position["state"].is_null() {
        return Err("an object that remembers something is in a state: set it, too".to_owned());
    }
    if let Some(since) = since {
        position["since"] = since.to_string().into();
    }
    if let Some(memory) = memory {
        position["memory"] = json!(memory);
    }
    serde_json::from_value(whole).map_err(|error| error.to_string())
}

/// Converts an object to JSON, with its kind.
fn value_of<T: Resource<DynamicType = ()> + Serialize>(object: &T) -> Value {
    let mut value = serde_json::to_value(object).unwrap_or_default();
    value["apiVersion"] = T::api_version(&()).into();
    value["kind"] = T::kind(&()).into();
    value
}
