//! One operator of brokers in several releases, and the record of its calls.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use okt::{Action, LifecycleObject};
use parking_lot::{Mutex, MutexGuard};

/// One call of a handler.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ran {
    /// The release.
    pub release: &'static str,
    /// The name of the object.
    pub object: String,
    /// The handler.
    pub handler: &'static str,
    /// The id of the action.
    pub id: String,
    /// Whether it was resumed.
    pub resumed: bool,
}

/// The state of the brokers, which outlives every operator; clones share it.
#[derive(Clone, Default)]
pub struct World(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    held: BTreeSet<(String, &'static str)>,
    seen: BTreeMap<String, &'static str>,
    ran: Vec<Ran>,
}

impl World {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }

    /// Keeps this handler from ending for this object.
    pub fn hold(&self, object: &str, handler: &'static str) {
        self.state().held.insert((object.to_owned(), handler));
    }

    /// Lets all handlers end.
    pub fn let_go(&self) {
        self.state().held.clear();
    }

    /// Sets the state in which the broker with this name is observed; by default it is unobserved.
    pub fn sees(&self, object: &str, state: &'static str) {
        self.state().seen.insert(object.to_owned(), state);
    }

    /// Returns every call of a handler so far.
    pub fn ran(&self) -> Vec<Ran> {
        self.state().ran.clone()
    }

    fn seen(&self, object: &str) -> Option<&'static str> {
        self.state().seen.get(object).copied()
    }

    async fn work<K: LifecycleObject>(
        &self,
        release: &'static str,
        handler: &'static str,
        cx: &Action<K>,
    ) {
        let object = cx.object().meta().name.clone().unwrap_or_default();
        let (id, resumed) = (cx.id().to_owned(), cx.resumed());
        let key = (object.clone(), handler);
        self.state().ran.push(Ran {
            release,
            object,
            handler,
            id,
            resumed,
        });
        while self.state().held.contains(&key) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// Defines a release: a graph, and an operator that the world controls.
macro_rules! release {
    ($(#[$doc:meta])* $release:ident { $graph:item } $($handler:ident: $after:ident::$next:ident,)*) => {
        $(#[$doc])*
        pub mod $release {
            use kube::CustomResource;
            use okt::{
                Action, Application, Context, Desired, Failure, LifecycleSpec, Observation, Status,
                lifecycle_graph,
            };
            use schemars::JsonSchema;
            use serde::{Deserialize, Serialize};

            use crate::cluster::Served;
            use super::World;

            #[lifecycle_graph]
            #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
            $graph

            /// The spec of a broker.
            #[derive(CustomResource, LifecycleSpec, Clone, Debug, Serialize, Deserialize, JsonSchema)]
            #[kube(
                group = "demo.okt.dev",
                version = "v1",
                kind = "Broker",
                namespaced,
                status = "Status<BrokerState>"
            )]
            pub struct BrokerSpec {
                /// The desired state of the broker.
                #[serde(default)]
                pub lifecycle: Desired<BrokerState>,
            }

            /// The operator of this release.
            #[derive(Clone, Default)]
            pub struct Brokers(pub World);

            impl BrokerStateHandler for Brokers {
                type Context = Action<Broker>;
                type Error = Failure;

                $(
                    async fn $handler(&self, cx: &Action<Broker>) -> Result<broker_state::$after, Failure> {
                        self.0.work(stringify!($release), stringify!($handler), cx).await;
                        Ok(broker_state::$after::$next)
                    }
                )*
            }

            impl Application for Brokers {
                type Resource = Broker;

                async fn observe(&self, cx: &Context<Broker>) -> Result<Observation<BrokerState>, Failure> {
                    let name = cx.object().metadata.name.as_deref().unwrap_or_default();
                    Ok(self.0.seen(name).map_or_else(Observation::unobserved, Observation::named))
                }

                fn observe_every(&self, _: BrokerState) -> std::time::Duration {
                    std::time::Duration::from_millis(500)
                }
            }

            impl Served for Brokers {}
        }
    };
}

release! {
    /// The first release.
    first {
        /// The life of a broker.
        pub enum BrokerState {
            /// Topics are made.
            #[entry]
            #[child(Running)]
            Start,
            /// Messages are taken.
            #[rest]
            #[condition(Available)]
            #[child(Compacting)]
            #[child(Stopping)]
            Running,
            /// Old messages are thrown away.
            #[visit]
            #[child(Running)]
            Compacting,
            /// Messages are written down.
            #[child(End)]
            Stopping,
            /// No more.
            #[leaf(idle)]
            End,
        }
    }
    start: AfterStart::Next,
    running: AfterRunning::Stay,
    compacting: AfterCompacting::Next,
    stopping: AfterStopping::Next,
}

release! {
    /// A release with two additional states: one to rest in, one to visit.
    wider {
        /// The life of a broker.
        pub enum BrokerState {
            /// Topics are made.
            #[entry]
            #[child(Running)]
            Start,
            /// Messages are taken.
            #[rest]
            #[condition(Available)]
            #[child(Compacting)]
            #[child(Moving)]
            #[child(Standby)]
            #[child(Stopping)]
            Running,
            /// Old messages are thrown away.
            #[visit]
            #[child(Running)]
            Compacting,
            /// Messages go elsewhere.
            #[visit]
            #[child(Running)]
            Moving,
            /// Messages are kept, none are taken.
            #[rest]
            #[child(Running)]
            #[child(Stopping)]
            Standby,
            /// Messages are written down.
            #[child(End)]
            Stopping,
            /// No more.
            #[leaf(idle)]
            End,
        }
    }
    start: AfterStart::Next,
    running: AfterRunning::Stay,
    compacting: AfterCompacting::Next,
    moving: AfterMoving::Next,
    standby: AfterStandby::Stay,
    stopping: AfterStopping::Next,
}

release! {
    /// A release that renames most states.
    renamed {
        /// The life of a broker.
        pub enum BrokerState {
            /// Topics are made.
            #[entry]
            #[was("Start")]
            #[child(Serving)]
            Building,
            /// Messages are taken.
            #[rest]
            #[was("Running")]
            #[condition(Available)]
            #[child(Tidying)]
            #[child(Stopping)]
            Serving,
            /// Old messages are thrown away.
            #[visit]
            #[was("Compacting")]
            #[child(Serving)]
            Tidying,
            /// Messages are written down.
            #[child(Gone)]
            Stopping,
            /// No more.
            #[leaf(idle)]
            #[was("End")]
            Gone,
        }
    }
    building: AfterBuilding::Next,
    serving: AfterServing::Stay,
    tidying: AfterTidying::Next,
    stopping: AfterStopping::Next,
}

release! {
    /// A release after [`wider`] in which `Standby` is a part of `Running`.
    leaner {
        /// The life of a broker.
        pub enum BrokerState {
            /// Topics are made.
            #[entry]
            #[child(Running)]
            Start,
            /// Messages are taken.
            #[rest]
            #[was("Standby")]
            #[condition(Available)]
            #[child(Compacting)]
            #[child(Stopping)]
            Running,
            /// Old messages are thrown away.
            #[visit]
            #[child(Running)]
            Compacting,
            /// Messages are written down.
            #[child(End)]
            Stopping,
            /// No more.
            #[leaf(idle)]
            End,
        }
    }
    start: AfterStart::Next,
    running: AfterRunning::Stay,
    compacting: AfterCompacting::Next,
    stopping: AfterStopping::Next,
}

release! {
    /// A release with one state renamed, one removed and one added.
    mixed {
        /// The life of a broker.
        pub enum BrokerState {
            /// Topics are made.
            #[entry]
            #[child(Serving)]
            Start,
            /// Messages are taken.
            #[rest]
            #[was("Running")]
            #[condition(Available)]
            #[child(Moving)]
            #[child(Stopping)]
            Serving,
            /// Messages go elsewhere.
            #[visit]
            #[child(Serving)]
            Moving,
            /// Messages are written down.
            #[child(End)]
            Stopping,
            /// No more.
            #[leaf(idle)]
            End,
        }
    }
    start: AfterStart::Next,
    serving: AfterServing::Stay,
    moving: AfterMoving::Next,
    stopping: AfterStopping::Next,
}
