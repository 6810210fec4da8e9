//! Traces: one for each generation of an object's spec, whatever process acts on the object.
//!
//! The id of a trace and of its first span are hashes of uid and generation, so that they are the same after a restart
//! and in every replica. Without the feature `otel` nothing exports spans.

use tracing::Span;

#[cfg(feature = "sidecar")]
use super::ids::{digits, trace_ids};
#[cfg(feature = "otel")]
use super::spans;

/// Returns the trace context of the current span as in a `traceparent` header; if nothing exports spans, one of the trace
/// of this generation, with a span of its own for this piece of work.
#[cfg(feature = "sidecar")]
pub(crate) fn traceparent(uid: &str, generation: Option<i64>, piece: &str) -> String {
    #[cfg(feature = "otel")]
    if let Some(current) = spans::current_traceparent() {
        return current;
    }
    let (trace, _) = trace_ids(uid, generation.unwrap_or_default());
    format!("00-{trace}-{}-01", digits(piece, 8))
}

/// Makes a new span a part of the trace of a generation.
pub(crate) fn join(span: &Span, uid: &str, generation: Option<i64>) {
    #[cfg(feature = "otel")]
    spans::join(span, uid, generation.unwrap_or_default());
    #[cfg(not(feature = "otel"))]
    let _ = (span, uid, generation);
}
