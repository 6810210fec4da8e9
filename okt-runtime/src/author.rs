//! What you implement, and what your code is given: the application, its context, its pass.
//!
//! Uses `resources` and what is below; the reconciliation asks it.

pub(crate) mod application;
pub(crate) mod asked;
pub(crate) mod context;
pub(crate) mod external;
pub(crate) mod from_error;
pub(crate) mod no_lifecycle;
pub(crate) mod observation;
pub(crate) mod owned;
pub(crate) mod pass;
pub(crate) mod progress;
