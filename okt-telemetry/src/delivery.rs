//! The delivery of transitions to another system, at least once, and what is delivered.

use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use okt_wire::object::LifecycleObject;
use okt_wire::status::Transition;

use super::ids::{reference, trace_ids};

/// A transition of an object, for a [`Delivery`].
///
/// Everything in it is in the history of the object's status, so it is the same whenever and by whichever replica it is
/// delivered.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct TransitionEvent {
    /// The object: its API version, kind, namespace, name and uid.
    pub object: ObjectReference,
    /// The name of the object's resource, e.g. `databases`.
    pub plural: String,
    /// The transition.
    pub transition: Transition,
}

impl TransitionEvent {
    pub(crate) fn new<K: LifecycleObject>(meta: &ObjectMeta, transition: Transition) -> Self {
        Self {
            object: reference::<K>(meta),
            plural: K::plural(&()).into_owned(),
            transition,
        }
    }

    /// Returns the uid of the object.
    pub fn uid(&self) -> &str {
        self.object.uid.as_deref().unwrap_or_default()
    }

    /// Returns the number of the transition, starting at 1.
    pub fn number(&self) -> u64 {
        self.transition.transition
    }

    /// Returns the id of the event: `<uid>/<number of the transition>`. Only a restored backup of the cluster uses one
    /// twice; the [`time`](Self::time) tells the two apart.
    pub fn id(&self) -> String {
        format!("{}/{}", self.uid(), self.number())
    }

    /// Returns the id of the object's transition before this one, if there was one.
    pub fn cause_id(&self) -> Option<String> {
        let before = self.number().checked_sub(1).filter(|number| *number > 0)?;
        Some(format!("{}/{before}", self.uid()))
    }

    /// Returns when the object entered the state.
    pub fn time(&self) -> Option<Timestamp> {
        self.transition.at
    }

    /// Returns the trace context of the event as in a `traceparent` header (W3C Trace Context).
    ///
    /// All transitions that follow from one generation of the object's spec are one trace. None if a release of the
    /// operator that recorded no generation wrote the transition.
    pub fn traceparent(&self) -> Option<String> {
        let generation = self.transition.generation?;
        let (trace, span) = trace_ids(self.uid(), generation);
        Some(format!("00-{trace}-{span}-01"))
    }
}

/// Takes transitions to another system, at least once: a message queue, an audit log. With the feature `cloudevents`,
/// `CloudEvents` is one.
///
/// Add it with [`Operator::deliver`](https://docs.rs/okt/latest/okt/struct.Operator.html#method.deliver).
///
/// ```
/// use okt::{Delivery, TransitionEvent, Undelivered};
///
/// /// Appends a line to a file.
/// struct Journal(std::path::PathBuf);
///
/// impl Delivery for Journal {
///     async fn deliver(&self, event: &TransitionEvent) -> Result<(), Undelivered> {
///         use std::io::Write;
///         let line = format!("{} {} -> {}\n", event.id(), event.transition.from, event.transition.to);
///         let file = std::fs::File::options().append(true).create(true).open(&self.0);
///         let written = file.and_then(|mut file| file.write_all(line.as_bytes()));
///         written.map_err(|error| Undelivered::retry(error.to_string()))
///     }
/// }
/// ```
///
/// # Guarantees
///
/// - Each transition is delivered, in the order of the object's transitions, whatever happens to the operator. The
///   history in the status keeps the transitions until then, and the next transition records up to where they are
///   delivered; there is no write for that.
/// - After a crash, a restart or a hand-over some transitions are delivered again, with the same id and the same
///   content; the receiver recognizes them by their id.
/// - The history has the last ten transitions. If an object makes more while the receiver does not answer, the oldest
///   are dropped: the operator logs and counts them (`okt_deliveries_total{result="dropped"}`).
/// - An object that is deleted is released when its transitions are delivered, or after a minute; from then on only this
///   process knows them.
pub trait Delivery: Send + Sync + 'static {
    /// Delivers one transition; called again with the same one after an error that a retry may mend.
    fn deliver(
        &self,
        event: &TransitionEvent,
    ) -> impl Future<Output = Result<(), Undelivered>> + Send;
}

/// Why a transition was not delivered.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{why}")]
pub struct Undelivered {
    why: String,
    pub(crate) is_refused: bool,
}

impl Undelivered {
    /// The receiver did not take the transition now. The operator retries with a backoff from one second to five
    /// minutes.
    pub fn retry(why: impl Into<String>) -> Self {
        Self {
            why: why.into(),
            is_refused: false,
        }
    }

    /// The receiver will never take this transition. The operator logs that, and goes on with the next one.
    pub fn refused(why: impl Into<String>) -> Self {
        Self {
            why: why.into(),
            is_refused: true,
        }
    }
}

/// A delivery of any type.
pub trait AnyDelivery: Send + Sync {
    /// Delivers a transition, as [`Delivery::deliver`] does.
    fn take<'a>(&'a self, event: &'a TransitionEvent) -> BoxFuture<'a, Result<(), Undelivered>>;
}

impl<D: Delivery> AnyDelivery for D {
    fn take<'a>(&'a self, event: &'a TransitionEvent) -> BoxFuture<'a, Result<(), Undelivered>> {
        self.deliver(event).boxed()
    }
}
