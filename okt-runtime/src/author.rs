//! The traits you implement and the contexts your code receives: application, context, pass.
//!
//! Uses `resources` and the folders below it. `reconcile` calls it.

pub(crate) mod admission;
pub(crate) mod application;
pub(crate) mod asked;
pub(crate) mod context;
pub(crate) mod external;
pub(crate) mod fixture;
pub(crate) mod limit;
pub(crate) mod no_lifecycle;
pub(crate) mod observation;
pub(crate) mod owned;
pub(crate) mod pass;
pub(crate) mod progress;
pub(crate) mod recording;
pub(crate) mod steps;
pub(crate) mod windows;
