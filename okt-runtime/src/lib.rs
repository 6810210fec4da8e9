//! Lifecycles kept by Kubernetes: the operator side of OKT, on kube.
//!
//! An author declares a state enum with [`lifecycle_graph`], implements the generated handler trait and
//! [`Application`], and calls [`main`]; or, with a `main` of their own, runs an [`Operator`].
//!
//! | floor | what | files |
//! |---|---|---|
//! | 1 | failures, texts for people, how much a status holds | `failure`, `from_error`, `texts`, `limits` |
//! | 2 | types on the wire | `desired`, `status`, `schema`, `crd`, `object`, `cause`, `guarded`, `cached`, `packed`, `pruned`, `annotations` |
//! | 3 | what an object owns in the cluster | `resources`, `owned` |
//! | 3 | an application that is one resource | `external` |
//! | 3 | what a pass is, and a resource without a lifecycle | `pass`, `no_lifecycle` |
//! | 3 | what one turn does | `turn`: observe, decide, report, act; `look`, `asked`, `read`, `report`, `change`, `leftover`, `tend`, `act`, `work`, `tasks`, `again`, `finalizer`, `refusal`, `patience`, `memory`, `backdoor` |
//! | 3 | the way to the application, for handlers | `reach` |
//! | 4 | the operator | `drive`, `looks`, `shared`, `operator`, `readiness`, `rbac`, `manifests`, `program` |

// An author's duration must not be able to panic: times are added by `clock::after`, durations saturate.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]

mod annotations;
mod application;
mod asked;
mod backdoor;
mod cached;
mod cause;
mod change;
mod clock;
mod context;
mod crd;
mod desired;
mod drive;
mod external;
mod failure;
mod finalizer;
mod from_error;
#[cfg(test)]
mod fuzz;
mod guarded;
mod history;
mod in_use;
mod leftover;
mod limits;
mod looks;
mod manifests;
mod memory;
mod no_lifecycle;
mod object;
mod observation;
mod operator;
mod owned;
mod packed;
mod pass;
mod patience;
mod places;
mod program;
mod progress;
mod pruned;
mod queue;
mod rbac;
#[cfg(feature = "reach")]
pub mod reach;
mod read;
mod readiness;
mod reconcile;
mod report;
mod resources;
mod schema;
mod shared;
#[cfg(feature = "sidecar")]
pub mod sidecar;
mod status;
mod stored;
mod tasks;
mod texts;
mod union;
mod wakes;
mod widen;
mod work;

pub use annotations::{ABANDON_ANNOTATION, PAUSED_ANNOTATION};
pub use application::{Application, ExtraOf, PassGraph, StateOf};
pub use context::{Action, Cause, Context};
pub use crd::{CrdError, GRAPH_ANNOTATION, crd};
pub use desired::{Desired, REQUEST_LIMIT, StateName, Visit};
pub use external::{AsResource, External, Found};
pub use failure::Failure;
pub use finalizer::FINALIZER;
pub use no_lifecycle::{NoLifecycle, PassStatus};
pub use object::{Extra, LifecycleObject, LifecycleSpec};
pub use observation::Observation;
pub use okt_core::backoff::Backoff;
pub use okt_core::pass::{Operations, Results};
pub use okt_core::reasons;
pub use okt_core::{Answer, ConditionStatus, Delegated, Dispatch, Lifecycle, PassDispatch, Step};
pub use okt_macros::{LifecycleSpec, lifecycle_graph};
pub use operator::{Operator, OperatorError};
pub use owned::{Unready, Which};
pub use pass::{FreeStyle, FreeStyleHandler, Pass, Stepper, StepperHandler, free_style, stepper};
pub use program::{Program, main};
pub use rbac::{Rbac, ServiceAccount, ServiceAccountError, rbac};
pub use report::FIELD_MANAGER;
pub use resources::{Declared, OWNER_LABEL, Resources, Watches};
#[cfg(feature = "templates")]
pub use resources::{Template, TemplateError};
pub use status::{
    Outcome, Phase, Position, RecordedAction, RecordedFailure, RecordedVisit, RecordedWish, Status,
    Transition,
};
pub use union::crd_union;

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
