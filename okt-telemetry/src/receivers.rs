//! Systems that receive what happens to objects: `CloudEvents`, and a collector of traces.

#[cfg(feature = "cloudevents")]
pub mod cloud_events;
#[cfg(feature = "otel")]
pub mod collector;
