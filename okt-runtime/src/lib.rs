//! Lifecycles kept by Kubernetes: the operator side of OKT, on kube.
//!
//! An author declares a state enum with [`lifecycle_graph`], implements the generated handler trait and
//! [`Application`], and calls [`main`]; or, with a `main` of their own, runs an [`Operator`].
//!
//! | folder | what it is for | uses |
//! |---|---|---|
//! | | `failure`, `texts`, `clock`, `patience`, `backdoor`: what every folder may use | |
//! | `wire` | spec, status and annotations as types, and from those to numbers | |
//! | `cache` | objects as the operator keeps them, and the queue that names them | `wire` |
//! | `crd` | the CRD with the graph in it | `wire` |
//! | `resources` | what an object owns in the cluster | `wire`, `cache` |
//! | `reach` | the way to the application, for handlers | |
//! | `author` | what you implement, and what your code is given | `resources` and below |
//! | `sidecar` | an application whose agents do the work | `author` |
//! | `reconcile` | one reconciliation: facts, effects, and what is remembered between two | `author` and below |
//! | `operator` | many objects: watches, queue, start and stop | `reconcile` and below |
//! | `program` | the command line: `run`, `crd`, `rbac`, `manifests` | everything |

// An author's duration must not be able to panic: times are added by `clock::after`, durations saturate.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]

mod author;
mod backdoor;
mod cache;
mod clock;
mod crd;
mod failure;
#[cfg(test)]
mod fuzz;
mod operator;
mod patience;
mod program;
#[cfg(feature = "reach")]
pub mod reach;
mod reconcile;
mod resources;
#[cfg(feature = "sidecar")]
pub mod sidecar;
mod texts;
mod wire;

pub use author::application::{Application, ExtraOf, PassGraph, StateOf};
pub use author::context::{Action, Cause, Context};
pub use author::external::{AsResource, External, Found};
pub use author::no_lifecycle::{NoLifecycle, PassStatus};
pub use author::observation::Observation;
pub use author::owned::{Unready, Which};
pub use author::pass::{
    FreeStyle, FreeStyleHandler, Pass, Stepper, StepperHandler, free_style, stepper,
};
pub use crd::definition::{CrdError, GRAPH_ANNOTATION, crd};
pub use crd::union::crd_union;
pub use failure::Failure;
pub use okt_core::backoff::Backoff;
pub use okt_core::pass::{Operations, Results};
pub use okt_core::reasons;
pub use okt_core::{Answer, ConditionStatus, Delegated, Dispatch, Lifecycle, PassDispatch, Step};
pub use okt_macros::{LifecycleSpec, lifecycle_graph};
pub use operator::{Operator, OperatorError};
pub use program::rbac::{Rbac, ServiceAccount, ServiceAccountError, rbac};
pub use program::{Program, main};
pub use reconcile::finalizer::FINALIZER;
pub use reconcile::report::FIELD_MANAGER;
pub use resources::{Declared, OWNER_LABEL, Resources, Watches};
#[cfg(feature = "templates")]
pub use resources::{Template, TemplateError};
pub use wire::annotations::{ABANDON_ANNOTATION, PAUSED_ANNOTATION};
pub use wire::desired::{Desired, REQUEST_LIMIT, StateName, Visit};
pub use wire::object::{Extra, LifecycleObject, LifecycleSpec};
pub use wire::status::{
    Outcome, Phase, Position, RecordedAction, RecordedDesired, RecordedFailure, RecordedVisit,
    Status, Transition,
};

/// For the test kit; no part of the public API.
#[doc(hidden)]
pub mod __testing {
    pub use crate::backdoor::{Attempt, Backdoor, Fate};
}

/// What generated code names; no part of the public API.
#[doc(hidden)]
pub mod __private {
    pub use okt_core::__private::*;
    pub use okt_macros::LifecycleGraph;
}
