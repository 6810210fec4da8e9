//! Spans for OpenTelemetry: which are exported, and their ids.
//!
//! Only what belongs to the trace of a generation is exported: the transitions of an object, the attempts of its actions,
//! and everything within these, requests and spans of your code included. A reconciliation that changes nothing is none.

use std::cell::Cell;
use std::time::SystemTime;

use okt_wire::object::{LifecycleObject, position_of};
use opentelemetry::trace::{
    Span as _, SpanContext, SpanId, TraceContextExt, TraceFlags, TraceId, TraceState, Tracer,
    TracerProvider,
};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::trace::{
    IdGenerator, RandomIdGenerator, SamplingDecision, SamplingResult, SdkTracerProvider,
    ShouldSample,
};
use tracing::{Span, Subscriber, dispatcher};
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::Layer;

use super::ids::trace_ids;

/// The name of the tracer.
pub(crate) const TRACER: &str = "okt";

thread_local! {
    /// The ids of the span that this thread begins next, if they are given.
    static NEXT: Cell<Option<(TraceId, SpanId)>> = const { Cell::new(None) };
}

/// A layer that does nothing: by it, [`begin`] finds the provider of the subscriber that takes all other spans. That of
/// `opentelemetry::global` may be another, with other ids.
pub(crate) struct Provider(pub(crate) SdkTracerProvider);

impl<S: Subscriber> Layer<S> for Provider {}

/// Random ids, unless the next ones are given.
#[derive(Debug)]
pub(crate) struct Ids;

impl IdGenerator for Ids {
    fn new_trace_id(&self) -> TraceId {
        let given = NEXT.get().map(|(trace, _)| trace);
        given.unwrap_or_else(|| RandomIdGenerator::default().new_trace_id())
    }

    fn new_span_id(&self) -> SpanId {
        let given = NEXT.get().map(|(_, span)| span);
        given.unwrap_or_else(|| RandomIdGenerator::default().new_span_id())
    }
}

/// Samples what belongs to the trace of a generation.
#[derive(Clone, Debug)]
pub(crate) struct OnlyTraces;

impl ShouldSample for OnlyTraces {
    fn should_sample(
        &self,
        parent: Option<&Context>,
        _: TraceId,
        _: &str,
        _: &opentelemetry::trace::SpanKind,
        _: &[KeyValue],
        _: &[opentelemetry::trace::Link],
    ) -> SamplingResult {
        let parent = parent.map(|parent| parent.span().span_context().clone());
        let is_part = parent.is_some_and(|it| it.is_valid() && it.is_sampled());
        let is_first = NEXT.get().is_some();
        SamplingResult {
            decision: if is_part || is_first {
                SamplingDecision::RecordAndSample
            } else {
                SamplingDecision::Drop
            },
            attributes: Vec::new(),
            trace_state: TraceState::default(),
        }
    }
}

/// Returns the ids of the first span of the trace of a generation.
fn first(uid: &str, generation: i64) -> (TraceId, SpanId) {
    let (trace, span) = trace_ids(uid, generation);
    (TraceId::from_bytes(trace.0), SpanId::from_bytes(span.0))
}

/// Makes a new span a part of the trace of a generation.
pub(crate) fn join(span: &Span, uid: &str, generation: i64) {
    let (trace, first) = first(uid, generation);
    let parent = SpanContext::new(
        trace,
        first,
        TraceFlags::SAMPLED,
        true,
        TraceState::default(),
    );
    let parent = Context::new().with_remote_span_context(parent);
    // An error means that nothing exports spans.
    let _ = span.set_parent(parent);
}

/// Returns the trace context of the current span, if it is exported.
pub(crate) fn current_traceparent() -> Option<String> {
    let context = Span::current().context();
    let span = context.span().span_context().clone();
    (span.is_valid() && span.is_sampled())
        .then(|| format!("00-{}-{}-01", span.trace_id(), span.span_id()))
}

/// Exports the first span of the trace of a generation, at the time of its first transition, which is the last one of
/// this object; `before` is the generation of the transition before.
pub fn begin<K: LifecycleObject>(object: &K, before: Option<i64>) {
    let position = position_of(object);
    let Some(transition) = position.and_then(|it| it.history.last()) else {
        return;
    };
    let Some(generation) = transition.generation.filter(|it| before != Some(*it)) else {
        return;
    };
    let provider =
        dispatcher::get_default(|it| it.downcast_ref::<Provider>().map(|it| it.0.clone()));
    let Some(provider) = provider else {
        return;
    };
    let meta = object.meta();
    let uid = meta.uid.as_deref().unwrap_or_default();
    let name = meta.name.as_deref().unwrap_or_default();
    let at = transition.at.map_or_else(SystemTime::now, SystemTime::from);
    let tracer = provider.tracer(TRACER);
    let span = tracer
        .span_builder(format!("{} {name}, generation {generation}", K::kind(&())))
        .with_start_time(at)
        .with_attributes([
            KeyValue::new(
                "k8s.namespace.name",
                meta.namespace.clone().unwrap_or_default(),
            ),
            KeyValue::new("okt.kind", K::kind(&()).into_owned()),
            KeyValue::new("okt.name", name.to_owned()),
            KeyValue::new("okt.uid", uid.to_owned()),
            KeyValue::new("okt.generation", generation),
            KeyValue::new("okt.cause", transition.cause.clone()),
        ]);
    NEXT.set(Some(first(uid, generation)));
    let mut span = tracer.build_with_context(span, &Context::new());
    NEXT.set(None);
    span.end();
}
