//! The runtime of OKT operators: reconciles lifecycles on Kubernetes, built on kube.
//!
//! You declare a state enum with [`lifecycle_graph`], implement the generated handler trait and [`Application`], and run
//! an [`Operator`].
//!
//! | module | content |
//! |---|---|
//! | `test_hooks` | hooks for the test kit |
//! | `cache` | the cache of objects, its handle for other code, and the queue of reconcile requests |
//! | `crd` | the CRD with the graph in it; the union of two releases; the check of the CRD in the cluster |
//! | `resources` | owned resources: declared, compared, applied, deleted in order |
//! | `calendar` | the times of five fields of cron in a time zone |
//! | `requests` | requests for visits with arguments: their kinds, the open ones, their outcomes |
//! | `author` | the traits that you implement, and the arguments of your code |
//! | `limits` | who has the places of limits, in tables on the API server |
//! | `sidecar` | applications whose agents do the work |
//! | `reconcile` | one reconciliation: the loop, the effects, the only write of a status |
//! | `lifecycle` | the lifecycle of an object for a controller of your own: the same machine and status, without requests |
//! | `operator` | all objects of a kind: watches, start and stop |
//!
//! Operators depend on [`okt`](https://docs.rs/okt), which has this API.
#![cfg_attr(docsrs, feature(doc_cfg))]
// A duration from user code must not cause a panic: `clock::after` adds times, and durations saturate.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]

#[cfg(all(
    feature = "rustls-tls",
    not(any(feature = "aws-lc-rs", feature = "ring"))
))]
compile_error!(
    "the feature `rustls-tls` needs a crypto provider of rustls: add the feature `ring` or `aws-lc-rs` of `okt`"
);

mod author;
mod cache;
mod calendar;
mod crd;
#[cfg(test)]
mod fuzz;
pub mod lifecycle;
mod limits;
mod operator;
mod reconcile;
mod requests;
mod resources;
#[cfg(feature = "sidecar")]
pub mod sidecar;
mod test_hooks;

pub use author::admission::{Admission, Validation};
pub use author::application::{Application, DeadlineClock, ExtraOf, GateOf, PassGraph, StateOf};
pub use author::context::{Action, Context, StateOnRecord};
pub use author::external::{AsResource, External, Found};
pub use author::limit::Limit;
pub use author::no_lifecycle::{NoLifecycle, PassStatus};
pub use author::observation::Observation;
pub use author::owned::{Unready, Which};
pub use author::pass::{
    FreeStyle, FreeStyleHandler, Pass, Stepper, StepperHandler, free_style, stepper,
};
pub use author::steps::{PartSteps, StepPart};
pub use author::windows::{Opening, Windows};
pub use cache::store::{OperatorEnded, Store};
pub use crd::definition::{CrdError, crd};
pub use crd::union::crd_union;
pub use okt_core::backoff::Backoff;
pub use okt_core::pass::{Operations, Results};
pub use okt_core::reasons;
pub use okt_core::record::{Phase, VisitOutcome};
pub use okt_core::request::RequestOutcome;
pub use okt_core::{
    Answer, ConditionStatus, Delegated, Dispatch, Lifecycle, Mark, PassDispatch, Serves, Step,
    Visited,
};
pub use okt_macros::{LifecycleSpec, Request, lifecycle_graph};
pub use okt_reach::{Failure, ResultExt};
pub use okt_sharding::membership::{Group, Membership, Shards};
pub use okt_telemetry::delivery::{Delivery, TransitionEvent, Undelivered};
pub use okt_telemetry::event::{Attempt, Cause, Edge, Event, LifecycleEvent, Occurrence, Outcome};
pub use okt_telemetry::kube_events::EventPolicy;
pub use okt_telemetry::monitoring::Monitoring;
pub use okt_telemetry::sinks::Sink;
pub use okt_wire::desired::{Desired, REQUEST_LIMIT, StateName, Visit};
pub use okt_wire::keys::{
    ABANDON_ANNOTATION, FINALIZER, GRAPH_ANNOTATION, OWNER_LABEL, PAUSED_ANNOTATION,
};
pub use okt_wire::object::{LifecycleObject, LifecycleSpec, StatusPart};
pub use okt_wire::request::{
    CatchUp, Keep, Request, RequestObject, RequestResult, RequestSpec, RequestStatus,
    ScheduleObject, ScheduleSpec, ScheduleStatus, Target,
};
pub use okt_wire::status::{
    Position, RecordedAction, RecordedDesired, RecordedFailure, RecordedRequest, RecordedVisit,
    Status, Transition,
};
pub use okt_wire::window::Window;
pub use operator::{IntoOperator, Operator, OperatorError};
pub use reconcile::report::FIELD_MANAGER;
pub use requests::{RequestKind, Requests};
pub use resources::{Declared, Resources, Watches};
#[cfg(feature = "templates")]
pub use resources::{Template, TemplateError};

/// Items for the test kit; not part of the public API.
#[doc(hidden)]
pub mod __testing {
    pub use crate::author::fixture::Fixture;
    pub use crate::test_hooks::{Attempt, AttemptFault, TestHooks};
}

/// Items for the program above this crate; not part of the public API.
#[doc(hidden)]
pub mod __program {
    pub use crate::author::application::revision_of;
    pub use crate::crd::definition::lifecycle_field;
    pub use crate::operator::{SHUTDOWN_LIMIT, watched};
    pub use crate::requests::ServedKind;
    pub use crate::resources::{
        AllowedWrites, Cluster, Inventory, OwnedMemory, Owner, Pace, ResourceKind, Site,
        WatchedKinds, is_label,
    };
}

/// Items that generated code names; not part of the public API.
#[doc(hidden)]
pub mod __private {
    pub use okt_core::__private::*;
    pub use okt_macros::LifecycleGraph;
    pub use okt_wire::version::PreviousVersion;
    pub use okt_wire::versions::previous;
}
