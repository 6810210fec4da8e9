//! Traces: one for each generation of an object's spec, whatever process acts on the object.
//!
//! The id of a trace and of its first span are hashes of uid and generation, so that they are the same after a restart
//! and in every replica. Without the feature `otel` nothing exports spans.

use okt_wire::object::{LifecycleObject, position_of};
use tracing::Span;

use super::ids::{span_id, trace_ids};
#[cfg(feature = "otel")]
use super::spans;

/// Returns the trace context of the current span as in a `traceparent` header; if nothing exports spans, one of the trace
/// of this generation, with a span of its own for this piece of work.
pub fn traceparent(uid: &str, generation: Option<i64>, piece: &str) -> String {
    #[cfg(feature = "otel")]
    if let Some(current) = spans::current_traceparent() {
        return current;
    }
    let (trace, _) = trace_ids(uid, generation.unwrap_or_default());
    format!("00-{trace}-{}-01", span_id(piece))
}

/// Returns the generation whose trace the work of an object belongs to: that of its last transition, by whose write the
/// trace begins. The spec may have changed since, without a transition.
pub fn generation<K: LifecycleObject>(object: &K) -> Option<i64> {
    let position = position_of(object);
    let recorded = position.and_then(|it| it.history.last()?.generation);
    recorded.or(object.meta().generation)
}

/// Makes a new span a part of the trace of a generation.
pub fn join(span: &Span, uid: &str, generation: Option<i64>) {
    #[cfg(feature = "otel")]
    spans::join(span, uid, generation.unwrap_or_default());
    #[cfg(not(feature = "otel"))]
    let _ = (span, uid, generation);
}
