//! The status of an object: the position in the graph, its history, and the conditions.

use std::collections::BTreeMap;
use std::marker::PhantomData;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use okt_core::Lifecycle;
use okt_core::record::{Phase, VisitOutcome};
use okt_core::request::RequestOutcome;
use serde::de::DeserializeOwned;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::desired::StateName;
use crate::limits::{FAILURE_LIMIT, REASON_LIMIT};
use crate::sealed::Sealed;
use crate::texts::cut;

/// The status of a resource with a lifecycle, for `#[kube(status = "Status<MyState>")]`.
///
/// `Extra` has the fields that the application adds to `status`; `Memory` is what its handlers remember of an object.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(
    rename_all = "camelCase",
    bound(
        serialize = "S: Lifecycle, Extra: Serialize",
        deserialize = "S: Lifecycle, Extra: DeserializeOwned + Default"
    )
)]
pub struct Status<S, Extra = (), Memory = ()> {
    /// The generation of the spec that this status describes; -1 in a new object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The position; none before the first reconciliation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifecycle: Option<Position<S>>,
    /// The conditions, including those of other writers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// Owned objects without a usable owner reference, and ones that have finished: the uid of each, if it is known, its
    /// path in the API, and marks, each after a `%`.
    ///
    /// OKT records an object before it creates it, and takes only recorded ones for owned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recorded_resources: Vec<String>,
    /// The fields that the application adds: all that are not OKT's.
    #[serde(
        flatten,
        serialize_with = "by_name",
        deserialize_with = "extra_or_default"
    )]
    pub extra: Extra,
    /// The type of what handlers remember, which is in the position.
    #[doc(hidden)]
    #[serde(skip)]
    pub remembers: PhantomData<fn() -> Memory>,
}

/// Writes the fields that the application adds in the order of their names: the order of a `HashMap` must not make
/// another hash of the same status.
fn by_name<Extra: Serialize, S: Serializer>(
    extra: &Extra,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let fields = serde_json::to_value(extra).map_err(S::Error::custom)?;
    fields.serialize(serializer)
}

/// Reads the fields that the application adds.
///
/// Every reconciliation computes them anew, so an older shape of them must not lose the position.
fn extra_or_default<'de, Extra, D>(fields: D) -> Result<Extra, D::Error>
where
    Extra: DeserializeOwned + Default,
    D: Deserializer<'de>,
{
    let fields = Map::deserialize(fields)?;
    Ok(serde_json::from_value(Value::Object(fields)).unwrap_or_default())
}

impl<S, Extra: Default, Memory> Default for Status<S, Extra, Memory> {
    fn default() -> Self {
        Self {
            observed_generation: None,
            lifecycle: None,
            conditions: Vec::new(),
            recorded_resources: Vec::new(),
            extra: Extra::default(),
            remembers: PhantomData,
        }
    }
}

/// The position of an object: the part of the status that OKT owns, except conditions.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(
    rename_all = "camelCase",
    bound(serialize = "S: Lifecycle", deserialize = "S: Lifecycle")
)]
pub struct Position<S> {
    /// The state.
    pub state: StateName<S>,
    /// When the object entered the state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// When the object came under the deadline that it is under; none in a state without a deadline over several states.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_since: Option<Timestamp>,
    /// The time for which operators have acted on the object in this state; none in a state without a deadline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acting: Option<ActingTime>,
    /// Since when observations have found no application, if an absence has to last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub absent_since: Option<Timestamp>,
    /// The number of transitions so far.
    #[serde(default)]
    pub transition: u64,
    /// The number of jumps among them.
    #[serde(default)]
    pub jumps: u64,
    /// The number of transitions since the desired state changed, the deletion began or the object stayed in a state
    /// for long. The loop guard uses it.
    #[serde(default)]
    pub rounds: u32,
    /// The recorded desired state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desired: Option<RecordedDesired>,
    /// The last recorded visit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visit: Option<RecordedVisit>,
    /// The request that the object serves, or served last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<RecordedRequest>,
    /// A hash of the input of handlers: at the arrival in the state, or of the last run since.
    #[serde(default)]
    pub revision: String,
    /// The revision at the last `on_change` edge for any change, else at the first state or re-entry.
    #[serde(default)]
    pub changed: String,
    /// The generation of the object at which the revision was found last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision_generation: Option<i64>,
    /// A hash of each part of the spec that triggers name, at `revisionGeneration`; empty for a part that has changed since
    /// an edge for its change was taken.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parts: BTreeMap<String, String>,
    /// A hash of the referred objects that are part of the revision; none if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub referred: Option<String>,
    /// What the handlers remember of the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Sealed>,
    /// The work of the state; none in an idle one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<RecordedAction>,
    /// The move that waits before a gate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<RecordedWait>,
    /// The number of places in limits that the object gave back without a move.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub returned: u64,
    /// The failure that led into this state, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<RecordedFailure>,
    /// The path so far, loops folded.
    #[serde(default)]
    pub trail: String,
    /// The last transitions, oldest first.
    #[serde(default)]
    pub history: Vec<Transition>,
    /// The number of the last transition that was delivered as a `CloudEvent` when the last transition was written; none
    /// where the operator sends none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivered: Option<u64>,
    /// A hash of the graph of the operator that wrote the last transition.
    #[serde(default)]
    pub graph: String,
}

/// The time for which operators have acted on an object in a state, which deadlines count: not the time of pauses, nor
/// that in which there was no operator.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ActingTime {
    /// When it was recorded.
    pub at: Timestamp,
    /// The time in the state, in milliseconds.
    #[serde(default)]
    pub in_state: u64,
    /// The time under the deadline over several states that the state has, in milliseconds.
    #[serde(default)]
    pub in_deadline: u64,
}

/// The recorded desired state.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RecordedDesired {
    /// The desired state, from the spec or the default.
    pub state: String,
    /// The request, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// The object's transition number when the desired state was first recorded.
    #[serde(default)]
    pub transition: u64,
    /// Whether the object is in the desired state and the work there succeeded.
    #[serde(default)]
    pub reached: bool,
}

/// A recorded visit.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RecordedVisit {
    /// The state to visit.
    pub state: String,
    /// The request of the visit.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub request: String,
    /// The object's transition number when the visit was first recorded.
    #[serde(default)]
    pub transition: u64,
    /// The outcome of the visit.
    #[serde(default)]
    pub outcome: VisitOutcome,
}

/// A move that waits before a gate.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RecordedWait {
    /// The gate.
    pub gate: String,
    /// The state to which the move leads.
    pub to: String,
    /// The cause of the move (e.g. `DesiredState`).
    pub cause: String,
    /// When the wait began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// The next times at which a window opens, at most [`OPENINGS_LIMIT`](crate::limits::OPENINGS_LIMIT).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub openings: Vec<Timestamp>,
    /// The group of the limit; empty if the gate is none, or has no groups.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// The plan of the move, if the gate waits for an approval and it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
}

/// A recorded request: everything that its work needs, also after the request was deleted.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RecordedRequest {
    /// Its kind (e.g. `Restore`).
    pub kind: String,
    /// Its name; it is in the namespace of the object.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// The state that serves it.
    pub state: String,
    /// The object's transition number before the request began.
    #[serde(default)]
    pub transition: u64,
    /// The arguments.
    pub args: Sealed,
    /// What became of it.
    #[serde(default)]
    pub outcome: RequestOutcome,
    /// The result of its work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Sealed>,
    /// Why its work failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<RecordedFailure>,
}

/// The recorded work of a state.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RecordedAction {
    /// The permanent, unique id of this work: `<uid>/<transition>@<time>`, with `/<k>` after the transition for the
    /// k-th revision.
    pub id: String,
    /// The attempt number, starting at 1; only attempts that a trigger counts are recorded.
    #[serde(default)]
    pub attempt: u32,
    /// The phase of the work.
    #[serde(default)]
    pub phase: Phase,
    /// The generation that the last attempt acted on.
    #[serde(default)]
    pub generation: i64,
    /// Whether the work began while the object was being deleted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub leaving: bool,
    /// When the work was recorded, before it started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// The progress message of the work.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The steps of the work, as a list of [`RecordedStep`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<Sealed>,
    /// Why the last attempt failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<RecordedFailure>,
}

/// A step of a handler: one that is done, or that failed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RecordedStep {
    /// The name, which no other step of the action has.
    pub name: String,
    /// The result.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub result: Value,
    /// How many attempts have failed, as far as they are counted.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub attempts: u32,
    /// Why the last attempt failed; the step is not done then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<RecordedFailure>,
}

impl RecordedStep {
    /// Returns about how long the step is as JSON, in bytes.
    #[expect(clippy::len_without_is_empty, reason = "no step is empty")]
    pub fn len(&self) -> usize {
        let failure = self.failure.as_ref().map_or(0, |it| it.message.len());
        let result = self.result.to_string().len();
        self.name
            .len()
            .saturating_add(result)
            .saturating_add(failure)
    }
}

fn is_zero<T: Default + PartialEq>(number: &T) -> bool {
    *number == T::default()
}

/// Why an attempt failed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RecordedFailure {
    /// The reason, one word.
    pub reason: String,
    /// The details.
    #[serde(default)]
    pub message: String,
}

impl RecordedFailure {
    /// Creates a failure whose texts are cut to fit the status.
    #[doc(hidden)]
    pub fn new(reason: &str, message: &str) -> Self {
        Self {
            reason: cut(reason, REASON_LIMIT),
            message: cut(message, FAILURE_LIMIT),
        }
    }
}

/// One transition of the history.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Transition {
    /// The number of the transition, starting at 1.
    pub transition: u64,
    /// The state that the object left; empty for the first transition.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub from: String,
    /// The state that the object entered.
    pub to: String,
    /// When the transition happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// The cause (e.g. `DesiredState`).
    #[serde(default)]
    pub cause: String,
    /// The parts of the spec whose change raised the edge (e.g. `version, storage.size`); empty for other causes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub changed: String,
    /// The generation of the spec that the operator acted upon; none if an older release wrote the transition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,
}

impl Transition {
    /// Returns the cause, with the parts of the spec if their change was it (e.g. `OnChange of version`).
    pub fn cause_text(&self) -> String {
        match self.changed.as_str() {
            "" => self.cause.clone(),
            changed => format!("{} of {changed}", self.cause),
        }
    }
}
