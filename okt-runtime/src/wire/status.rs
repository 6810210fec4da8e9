//! What a status says: the position in the graph, what led there, and the conditions.

use std::marker::PhantomData;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use okt_core::Lifecycle;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::texts::cut;
use crate::wire::desired::StateName;
use crate::wire::limits::{FAILURE_LIMIT, REASON_LIMIT};

/// The status of a resource with a lifecycle, for `#[kube(status = "Status<MyState>")]`.
///
/// `Extra` is what the application adds; its fields stand beside the others in `status`.
#[derive(Clone, PartialEq, Debug)]
pub struct Status<S, Extra = ()> {
    /// The generation of the spec that all of this is about; -1 in a fresh object.
    pub observed_generation: Option<i64>,
    /// The position; none before the first turn.
    pub lifecycle: Option<Position<S>>,
    /// Conditions, those of others included.
    pub conditions: Vec<Condition>,
    /// What the object owns in the cluster where no owner reference shows it: a hash of the kind, the namespace and the
    /// name of each. It is recorded before it is created, and only what stands here is believed to be owned.
    pub recorded_resources: Vec<String>,
    /// What the application adds.
    pub extra: Extra,
}

impl<S, Extra: Default> Default for Status<S, Extra> {
    fn default() -> Self {
        Self {
            observed_generation: None,
            lifecycle: None,
            conditions: Vec::new(),
            recorded_resources: Vec::new(),
            extra: Extra::default(),
        }
    }
}

/// The part of a status that OKT owns, conditions aside.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(
    rename_all = "camelCase",
    bound(serialize = "S: Lifecycle", deserialize = "S: Lifecycle")
)]
pub struct Position<S> {
    /// The state.
    pub state: StateName<S>,
    /// When it was entered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// How many transitions the object has made.
    #[serde(default)]
    pub transition: u64,
    /// How many of them were jumps.
    #[serde(default)]
    pub jumps: u64,
    /// Transitions since the wish was new, the deletion began or the object stayed put.
    #[serde(default)]
    pub rounds: u32,
    /// The wish to be kept in a state, as it was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desired: Option<RecordedDesired>,
    /// The last visit, as it was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visit: Option<RecordedVisit>,
    /// A hash of what handlers act upon: at the arrival, or what the last run since took.
    #[serde(default)]
    pub revision: String,
    /// The revision at the last `on_change` edge, else at the first state or re-entry.
    #[serde(default)]
    pub changed: String,
    /// The work of the state; none in an idle one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<RecordedAction>,
    /// The failure that led into this state, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<RecordedFailure>,
    /// The path walked so far, loops folded.
    #[serde(default)]
    pub trail: String,
    /// The last transitions, oldest first.
    #[serde(default)]
    pub history: Vec<Transition>,
    /// A hash of the graph that wrote the last transition.
    #[serde(default)]
    pub graph: String,
    #[serde(skip)]
    pub(crate) of: PhantomData<S>,
}

/// The wish to be kept in a state, as it was recorded.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RecordedDesired {
    /// The wished state, by the spec or by default.
    pub state: String,
    /// The request, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// The object's transition when the wish was first recorded.
    #[serde(default)]
    pub transition: u64,
    /// Whether the object is there, with its work ended well.
    #[serde(default)]
    pub reached: bool,
}

/// A visit, as it was recorded.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RecordedVisit {
    /// The state to go through.
    pub state: String,
    /// The request.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub request: String,
    /// The object's transition when the visit was first recorded.
    #[serde(default)]
    pub transition: u64,
    /// What became of it.
    #[serde(default)]
    pub outcome: Outcome,
}

/// What became of a visit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Outcome {
    /// It is still to be made.
    Pending,
    /// Its state was gone through, and the work there ended well.
    Reached,
    /// There was no way to it from where the object rested, or no such visit.
    Refused,
    /// A newer one took its place, or it was taken out of the spec.
    Overtaken,
    /// It was found in the spec when nothing was recorded: it may have been made before.
    #[default]
    #[serde(other)]
    NotReplayed,
}

/// The work of a state, as it was recorded.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RecordedAction {
    /// Names this piece of work for ever: `<uid>/<transition>@<time>`, with `/<k>` after the transition for the k-th
    /// revision.
    pub id: String,
    /// The attempt, from 1; only attempts that a trigger counts are recorded.
    #[serde(default)]
    pub attempt: u32,
    /// How far it is.
    #[serde(default)]
    pub phase: Phase,
    /// The generation that the last attempt acted upon.
    #[serde(default)]
    pub generation: i64,
    /// It was begun while the object was being deleted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub leaving: bool,
    /// When it was recorded, before it was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// What it says of its progress.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Why the last attempt failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<RecordedFailure>,
}

/// How far an action is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Phase {
    /// Ended well.
    Done,
    /// Failed for good.
    Failed,
    /// To be started, running, or to be tried again; whatever else somebody wrote there is taken for this.
    #[default]
    #[serde(other)]
    Pending,
}

/// Why an attempt failed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RecordedFailure {
    /// One word.
    pub reason: String,
    /// The details.
    #[serde(default)]
    pub message: String,
}

impl RecordedFailure {
    /// A failure in texts that a status can hold.
    pub(crate) fn new(reason: &str, message: &str) -> Self {
        Self {
            reason: cut(reason, REASON_LIMIT),
            message: cut(message, FAILURE_LIMIT),
        }
    }
}

/// One transition of the history.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Transition {
    /// Its number, from 1.
    pub transition: u64,
    /// The state that was left; none for the first.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub from: String,
    /// The state that was entered.
    pub to: String,
    /// When.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// What led there (e.g. `DesiredState`).
    #[serde(default)]
    pub cause: String,
}

/// The fields of a status as they are read: whatever is not OKT's is the application's.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "S: Lifecycle"))]
struct Read<S> {
    #[serde(default)]
    observed_generation: Option<i64>,
    #[serde(default = "Option::default")]
    lifecycle: Option<Position<S>>,
    #[serde(default)]
    conditions: Vec<Condition>,
    #[serde(default)]
    recorded_resources: Vec<String>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

impl<'de, S: Lifecycle, Extra: DeserializeOwned + Default> Deserialize<'de> for Status<S, Extra> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let read = Read::deserialize(deserializer)?;
        Ok(Self {
            observed_generation: read.observed_generation,
            lifecycle: read.lifecycle,
            conditions: read.conditions,
            recorded_resources: read.recorded_resources,
            // It is computed anew in every turn, so an older shape of it must not cost the position.
            extra: serde_json::from_value(Value::Object(read.rest)).unwrap_or_default(),
        })
    }
}

/// The fields of a status as they are written.
#[derive(Serialize)]
#[serde(rename_all = "camelCase", bound(serialize = "S: Lifecycle"))]
struct Written<'a, S> {
    #[serde(skip_serializing_if = "Option::is_none")]
    observed_generation: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lifecycle: Option<&'a Position<S>>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    conditions: &'a [Condition],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    recorded_resources: &'a [String],
    #[serde(flatten)]
    extra: Map<String, Value>,
}

impl<S: Lifecycle, Extra: Serialize> Serialize for Status<S, Extra> {
    fn serialize<T: Serializer>(&self, serializer: T) -> Result<T::Ok, T::Error> {
        use serde::ser::Error;
        let extra = match serde_json::to_value(&self.extra).map_err(T::Error::custom)? {
            Value::Null => Map::new(),
            Value::Object(extra) => extra,
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                return Err(T::Error::custom(
                    "what is added to a status must be a struct",
                ));
            }
        };
        Written {
            observed_generation: self.observed_generation,
            lifecycle: self.lifecycle.as_ref(),
            conditions: &self.conditions,
            recorded_resources: &self.recorded_resources,
            extra,
        }
        .serialize(serializer)
    }
}
