//! The stored form of an object: spec, status and annotations as types, and their conversion for the core.
//!
//! Uses texts only; everything else uses it.

pub(crate) mod annotations;
pub(crate) mod cause;
pub(crate) mod desired;
pub(crate) mod limits;
pub(crate) mod object;
pub(crate) mod read;
pub(crate) mod revision;
pub(crate) mod status;
