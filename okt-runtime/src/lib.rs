//! The runtime of OKT operators: reconciles lifecycles on Kubernetes, built on kube.
//!
//! You declare a state enum with [`lifecycle_graph`], implement the generated handler trait and [`Application`], and
//! call
//! [`main`]. If you have a `main` of your own, run an [`Operator`] instead.
//!
//! | folder | content | uses |
//! |---|---|---|
//! | | `failure`, `texts`, `clock`, `api_timeout`, `limit`, `provider`, `test_hooks`: helpers for every folder | |
//! | `wire` | spec, status and annotations as types, and their conversion to ids and counters | |
//! | `telemetry` | what happens to objects: metrics, Kubernetes Events, sinks of your own; health | `wire` |
//! | `sharding` | the replicas of an operator, and which of them acts on which objects | |
//! | `cache` | the cache of objects, and the queue of those that are due | `wire`, `sharding` |
//! | `crd` | the CRD with the graph in it | `wire` |
//! | `resources` | the resources that an object owns in the cluster | `wire`, `cache` |
//! | `reach` | access to the application for handlers: commands, HTTP through a pod | |
//! | `receivers` | systems that receive what happens: CloudEvents, a collector of traces | `telemetry`, `reach` |
//! | `author` | the traits you implement, and the contexts your code receives | `resources` and below |
//! | `sidecar` | applications whose agents do the work | `author` |
//! | `reconcile` | one reconciliation: facts, effects, and the memory between two of them | `author` and below |
//! | `lifecycle` | the lifecycle of an object for a controller of your own | `reconcile` and below |
//! | `view` | the objects of all OKT operators, read without their Rust types: where they are, and why | `crd`, `reconcile` |
//! | `operator` | all objects of a kind: watches, queue, start and stop | `reconcile` and below |
//! | `install` | the roles, and the manifests that install an operator | `operator` and below |
//! | `preview` | what a release would do to the objects of a cluster | `install` and below |
//! | `program` | the command line: `run`, `preview`, `crd`, `rbac`, `manifests`, `graph`, `health` | everything |

// A duration from user code must not cause a panic: `clock::after` adds times, and durations saturate.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]

// With the module `provider`, that reports this.
#[cfg(all(
    feature = "rustls-tls",
    not(any(
        feature = "aws-lc-rs",
        feature = "reach",
        feature = "ring",
        feature = "secure-metrics"
    ))
))]
compile_error!(
    "the feature `rustls-tls` needs a crypto provider of rustls: add the feature `ring` or `aws-lc-rs` of `okt`"
);

mod author;
mod cache;
mod crd;
#[cfg(test)]
mod fuzz;
mod install;
pub mod lifecycle;
mod operator;
#[cfg(feature = "cli")]
mod preview;
#[cfg(feature = "cli")]
mod program;
mod reconcile;
mod resources;
#[cfg(feature = "sidecar")]
pub mod sidecar;
mod test_hooks;

pub use author::application::{Application, DeadlineClock, ExtraOf, PassGraph, StateOf};
pub use author::context::{Action, Context, StateOnRecord};
pub use author::external::{AsResource, External, Found};
pub use author::no_lifecycle::{NoLifecycle, PassStatus};
pub use author::observation::Observation;
pub use author::owned::{Unready, Which};
pub use author::pass::{
    FreeStyle, FreeStyleHandler, Pass, Stepper, StepperHandler, free_style, stepper,
};
pub use cache::store::{OperatorEnded, Store};
pub use crd::definition::{CrdError, crd};
pub use crd::union::crd_union;
pub use install::rbac::{
    Rbac, ServiceAccount, ServiceAccountError, lease_roles, metrics_roles, rbac,
};
pub use okt_core::backoff::Backoff;
pub use okt_core::pass::{Operations, Results};
pub use okt_core::reasons;
pub use okt_core::record::{Phase, VisitOutcome};
pub use okt_core::{Answer, ConditionStatus, Delegated, Dispatch, Lifecycle, PassDispatch, Step};
pub use okt_macros::{LifecycleSpec, lifecycle_graph};
#[cfg(feature = "reach")]
pub use okt_reach::reach;
pub use okt_reach::{Failure, ResultExt};
#[cfg(feature = "serve")]
pub use okt_serve::{ListenAddress, ListenAddressError};
pub use okt_sharding::membership::{Group, Membership, Shards};
pub use okt_telemetry::delivery::{Delivery, TransitionEvent, Undelivered};
pub use okt_telemetry::event::{Attempt, Cause, Edge, Event, LifecycleEvent, Occurrence, Outcome};
pub use okt_telemetry::kube_events::EventPolicy;
pub use okt_telemetry::metrics::requests::CountRequests;
pub use okt_telemetry::monitoring::Monitoring;
#[cfg(feature = "cloudevents")]
pub use okt_telemetry::receivers::cloud_events::{CloudEvents, CloudEventsError};
#[cfg(feature = "otel")]
pub use okt_telemetry::receivers::collector::Traces;
pub use okt_telemetry::sinks::Sink;
pub use okt_wire::api_timeout::limit_answers;
pub use okt_wire::desired::{Desired, REQUEST_LIMIT, StateName, Visit};
pub use okt_wire::keys::{
    ABANDON_ANNOTATION, FINALIZER, GRAPH_ANNOTATION, OWNER_LABEL, PAUSED_ANNOTATION,
};
pub use okt_wire::limit::limit_requests;
pub use okt_wire::object::{Extra, LifecycleObject, LifecycleSpec};
pub use okt_wire::status::{
    Position, RecordedAction, RecordedDesired, RecordedFailure, RecordedVisit, Status, Transition,
};
pub use operator::{Operator, OperatorError};
#[cfg(feature = "cli")]
pub use program::{IntoOperator, NoOptions, Program, main};
pub use reconcile::report::FIELD_MANAGER;
pub use resources::{Declared, Resources, Watches};
#[cfg(feature = "templates")]
pub use resources::{Template, TemplateError};

/// Items for the test kit; not part of the public API.
#[doc(hidden)]
pub mod __testing {
    pub use crate::author::fixture::Fixture;
    pub use crate::test_hooks::{Attempt, AttemptFault, TestHooks};
}

/// Items that generated code names; not part of the public API.
#[doc(hidden)]
pub mod __private {
    pub use okt_core::__private::*;
    pub use okt_macros::LifecycleGraph;
}
