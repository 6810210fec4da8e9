//! Requests: objects that ask another one for a visit with arguments.

use std::borrow::Cow;
use std::fmt::Debug;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta};
use kube::Resource;
use okt_core::Serves;
use okt_core::request::RequestOutcome;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize, Serializer};

use crate::object::LifecycleObject;

/// The arguments of the visits that a kind of request asks for; derive it with `#[derive(Request)]`.
///
/// Each kind has rights of its own (`create restores`), and each request its place in the queue, its outcome and its
/// result. See [`RequestObject`].
pub trait Request:
    Clone + Debug + Serialize + DeserializeOwned + JsonSchema + Send + Sync + 'static
{
    /// The kind whose objects serve the requests.
    type Target: LifecycleObject<State: Serves<Self, Result: RequestResult>>;
    /// The name of the kind (e.g. `Restore`).
    const KIND: &'static str;
    /// How long a request is kept after it has finished, unless its spec says something else; seven days by default.
    const TTL: Duration = Duration::from_hours(7 * 24);
    /// Whether there is a kind that makes requests at times of a calendar (e.g. `RestoreSchedule`).
    const SCHEDULED: bool = false;
}

/// What the work of a visit finds out for a request.
pub trait RequestResult:
    Clone + Debug + PartialEq + Serialize + DeserializeOwned + JsonSchema + Send + Sync + 'static
{
}

impl<R> RequestResult for R where
    R: Clone
        + Debug
        + PartialEq
        + Serialize
        + DeserializeOwned
        + JsonSchema
        + Send
        + Sync
        + 'static
{
}

/// What the work finds out for a request with these arguments.
pub type ResultOf<A> = <<<A as Request>::Target as LifecycleObject>::State as Serves<A>>::Result;

/// A request: an object that asks another one, in its namespace, for a visit with arguments.
///
/// ```yaml
/// kind: Restore
/// metadata: { generateName: restore-, namespace: shop }
/// spec:
///   target: { name: orders }
///   args: { backup: nightly-12 }
/// ```
///
/// Its spec cannot be changed. It is served at most once, in the order of creation.
#[derive(Clone, Debug, Deserialize)]
#[serde(bound(deserialize = ""))]
pub struct RequestObject<A: Request> {
    /// The metadata.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// What is asked for.
    pub spec: RequestSpec<A>,
    /// What became of it.
    #[serde(default)]
    pub status: Option<RequestStatus<ResultOf<A>>>,
}

/// What a request asks for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestSpec<A> {
    /// The object that is to serve it.
    pub target: Target,
    /// The arguments.
    pub args: A,
    /// A request that has not begun by then is not served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_before: Option<Timestamp>,
    /// How long the request is kept after it has finished, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_seconds_after_finished: Option<u32>,
}

/// The object that is to serve a request: its name, in the namespace of the request.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Target {
    /// The name.
    pub name: String,
}

/// What became of a request.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(
    rename_all = "camelCase",
    bound(serialize = "R: Serialize", deserialize = "R: DeserializeOwned")
)]
pub struct RequestStatus<R> {
    /// The outcome so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<RequestOutcome>,
    /// The transition number of the object when the request was seen first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transition: Option<u64>,
    /// The id of the work that serves it, as the logs of the operator and of the application have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// What the work has found out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<R>,
    /// `Complete` and `Failed`, with reason and message.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

impl<A: Request> Resource for RequestObject<A> {
    type DynamicType = ();
    type Scope = <A::Target as Resource>::Scope;

    fn kind((): &()) -> Cow<'_, str> {
        A::KIND.into()
    }

    fn group((): &()) -> Cow<'_, str> {
        A::Target::group(&())
    }

    fn version((): &()) -> Cow<'_, str> {
        A::Target::version(&())
    }

    fn plural((): &()) -> Cow<'_, str> {
        plural(A::KIND).into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

impl<A: Request> RequestObject<A> {
    /// Creates a request; set its namespace, or create it by the API of a namespace.
    pub fn new(name: &str, target: &str, args: A) -> Self {
        Self {
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                ..ObjectMeta::default()
            },
            spec: RequestSpec {
                target: Target {
                    name: target.to_owned(),
                },
                args,
                start_before: None,
                ttl_seconds_after_finished: None,
            },
            status: None,
        }
    }
}

impl<A: Request> Serialize for RequestObject<A> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (spec, status) = (&self.spec, self.status.as_ref());
        Typed::of::<Self>(&self.metadata, spec, status).serialize(serializer)
    }
}

impl<A: Request> Serialize for ScheduleObject<A> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (spec, status) = (&self.spec, self.status.as_ref());
        Typed::of::<Self>(&self.metadata, spec, status).serialize(serializer)
    }
}

/// An object with its type, as the API server takes it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Typed<'a, P, T> {
    api_version: String,
    kind: String,
    metadata: &'a ObjectMeta,
    spec: &'a P,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'a T>,
}

impl<'a, P, T> Typed<'a, P, T> {
    fn of<K: Resource<DynamicType = ()>>(
        metadata: &'a ObjectMeta,
        spec: &'a P,
        status: Option<&'a T>,
    ) -> Self {
        Self {
            api_version: K::api_version(&()).into_owned(),
            kind: K::kind(&()).into_owned(),
            metadata,
            spec,
            status,
        }
    }
}

/// Returns the plural of a kind of requests, as paths of the API have it.
pub fn plural(kind: &str) -> String {
    format!("{}s", kind.to_lowercase())
}

/// A schedule: an object that makes requests at times of a calendar.
///
/// ```yaml
/// kind: BackupSchedule
/// metadata: { name: nightly, namespace: shop }
/// spec:
///   schedule: "0 2 * * *"
///   timeZone: Europe/Berlin
///   template: { target: { name: orders }, args: { bucket: nightly } }
/// ```
#[derive(Clone, Debug, Deserialize)]
#[serde(bound(deserialize = ""))]
pub struct ScheduleObject<A: Request> {
    /// The metadata.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// When which requests are made.
    pub spec: ScheduleSpec<A>,
    /// What was made.
    #[serde(default)]
    pub status: Option<ScheduleStatus>,
}

/// When a schedule makes which requests.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScheduleSpec<A> {
    /// Five fields: minute, hour, day of the month, month, day of the week.
    pub schedule: String,
    /// The time zone of these fields; `Etc/UTC` by default.
    #[serde(default = "utc")]
    pub time_zone: String,
    /// Nothing is made, and nothing is made up for later.
    #[serde(default)]
    pub suspend: bool,
    /// What happens about times at which no operator ran.
    #[serde(default)]
    pub catch_up: CatchUp,
    /// The age up to which a missed time is made up for (e.g. `1h`, which is the default).
    #[serde(default = "an_hour")]
    pub start_within: String,
    /// What the requests ask for.
    pub template: RequestSpec<A>,
    /// How many finished requests of the schedule are kept.
    #[serde(default)]
    pub keep: Keep,
}

fn utc() -> String {
    "Etc/UTC".to_owned()
}

fn an_hour() -> String {
    "1h".to_owned()
}

/// What a schedule does about times at which no operator ran.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum CatchUp {
    /// One request is made for the last of them.
    #[default]
    Latest,
    /// None is made.
    None,
}

/// How many finished requests of a schedule are kept; others are deleted before their time is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct Keep {
    /// Those whose work succeeded; three by default.
    pub reached: u32,
    /// All others; one by default.
    pub failed: u32,
}

impl Default for Keep {
    fn default() -> Self {
        Self {
            reached: 3,
            failed: 1,
        }
    }
}

/// What a schedule has made.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ScheduleStatus {
    /// The last time for which a request was made, or that was skipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<Timestamp>,
    /// The next time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<Timestamp>,
    /// Since when the schedule is followed; earlier times are not made up for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<Timestamp>,
    /// How many times were skipped because the request before had no outcome.
    pub skipped: u32,
    /// Whether the schedule was suspended.
    pub suspended: bool,
    /// The schedule that is followed, with its time zone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calendar: Option<String>,
    /// Why nothing is made; empty if something is.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub problem: String,
}

impl<A: Request> Resource for ScheduleObject<A> {
    type DynamicType = ();
    type Scope = <A::Target as Resource>::Scope;

    fn kind((): &()) -> Cow<'_, str> {
        format!("{}Schedule", A::KIND).into()
    }

    fn group((): &()) -> Cow<'_, str> {
        A::Target::group(&())
    }

    fn version((): &()) -> Cow<'_, str> {
        A::Target::version(&())
    }

    fn plural((): &()) -> Cow<'_, str> {
        plural(&Self::kind(&())).into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}
