//! [`Rule`]: what goes wrong, for which requests or events, and how often. The builders of a
//! [`Fault`](crate::Fault) set its fields; a test in another language sends them as JSON.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use serde::de::{Deserialize, Deserializer, Error};
use serde_json::{Map, Value};

use super::occasion::{EventKind, Occasion};
use crate::access::Access;
use crate::record::{RequestRecord, Verb};
use crate::refusal::{Refusal, Subject};

/// The longest time that JSON may name.
const LONGEST: Duration = Duration::from_hours(24);

/// What goes wrong. [`Fault`](crate::Fault) has a constructor for each, which says more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum FaultKind {
    Conflict,
    TooManyRequests,
    InternalError,
    Unavailable,
    Timeout,
    Gone,
    Unauthorized,
    Forbidden,
    Answer,
    NoAnswer,
    BreakConnection,
    CutBody,
    Delay,
    DeliverLate,
    Lag,
    HoldEvents,
    DropEvent,
    RepeatEvent,
    MergeEvents,
    EndStream,
    BreakStream,
    ExpireStream,
    WithholdBookmarks,
    Partition,
}

/// A fault with its limits and its counts.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Rule {
    pub(crate) fault: FaultKind,
    /// The time of a delay or a lag, and the `Retry-After` of a 429.
    #[serde(default, rename = "seconds", deserialize_with = "time")]
    pub(crate) time: Option<Duration>,
    /// The bytes before the end of a body.
    #[serde(default)]
    pub(crate) bytes: usize,
    /// The code, the reason and the message of an answer.
    #[serde(default)]
    pub(super) code: u16,
    #[serde(default)]
    pub(super) reason: String,
    #[serde(default)]
    pub(super) message: String,
    /// The fault strikes after the request was carried out.
    #[serde(default)]
    pub(crate) after_commit: bool,
    /// The number of matches that are not struck at first.
    #[serde(default)]
    pub(super) skip: u64,
    /// One of so many matches is struck.
    #[serde(default = "one")]
    pub(super) every: u64,
    /// The greatest number of strikes.
    pub(super) times: Option<u64>,
    /// The number of the only match that is struck.
    pub(super) nth: Option<u64>,
    #[serde(flatten, deserialize_with = "limits")]
    pub(super) limits: Limits,
}

fn one() -> u64 {
    1
}

impl Rule {
    pub(super) fn new(fault: FaultKind) -> Self {
        Self {
            fault,
            time: None,
            bytes: 0,
            code: 0,
            reason: String::new(),
            message: String::new(),
            after_commit: false,
            skip: 0,
            every: 1,
            times: None,
            nth: None,
            limits: Limits::default(),
        }
    }

    /// Checks that the fields fit together.
    ///
    /// # Errors
    /// What is wrong.
    pub(crate) fn check(&self) -> Result<(), String> {
        use FaultKind as Kind;
        let has_time = matches!(
            self.fault,
            Kind::TooManyRequests | Kind::Delay | Kind::DeliverLate | Kind::Lag | Kind::MergeEvents
        );
        let has_words = self.code != 0 || !self.reason.is_empty() || !self.message.is_empty();
        let limits = &self.limits;
        let is_of_requests = self.after_commit
            || !(limits.verbs.is_empty()
                && limits.subresources.is_empty()
                && limits.managers.is_empty());
        let why = match self.fault {
            _ if has_time && self.time.is_none() => "this fault needs `seconds`",
            _ if !has_time && self.time.is_some() => "this fault has no `seconds`",
            _ if self.fault != Kind::CutBody && self.bytes != 0 => "`bytes` are for `cutBody`",
            _ if self.fault != Kind::Answer && has_words => {
                "`code`, `reason` and `message` are for `answer`"
            }
            Kind::Answer if !(400..600).contains(&self.code) => {
                "an answer needs a `code` between 400 and 599"
            }
            Kind::Partition if limits.clients.is_empty() => {
                "a partition needs the name of its `client`: the first word of its User-Agent"
            }
            _ if self.every == 0 => "`every` counts from 1: every(1) strikes all matches",
            _ if self.nth == Some(0) => "`nth` counts from 1: there is no match of number 0",
            _ if !self.fault.is_of_requests() && is_of_requests => {
                "`afterCommit`, `verbs`, `subresource` and `manager` are for faults of requests"
            }
            Kind::WithholdBookmarks if !limits.events.is_empty() => {
                "a fault of bookmarks has no other `event`"
            }
            _ if !self.fault.is_of_events() && !limits.events.is_empty() => {
                "`event` is for faults of events"
            }
            _ => return Ok(()),
        };
        Err(why.to_owned())
    }

    /// Returns whether the rule is about an occasion.
    pub(super) fn meets(&self, on: Occasion<'_>) -> bool {
        let (is_meant, with_bookmarks) = match (self.fault, on) {
            (FaultKind::WithholdBookmarks, Occasion::Event(event)) => {
                (event.kind == EventKind::Bookmark, true)
            }
            (FaultKind::Partition, _) => (true, true),
            _ => (true, false),
        };
        is_meant && self.fault.is_of(on) && self.limits.meet(on, with_bookmarks)
    }

    /// Returns whether to strike the match of this number, starting at 1, after `struck` strikes.
    pub(super) fn admits(&self, matched: u64, struck: u64) -> bool {
        matched > self.skip
            && (matched - self.skip).is_multiple_of(self.every)
            && self.nth.is_none_or(|nth| matched == nth)
            && self.times.is_none_or(|times| struck < times)
    }

    /// Returns the refusal that answers a request, if the fault is one.
    pub(crate) fn refusal(&self, request: &RequestRecord) -> Option<Refusal> {
        let (code, reason) = self.fault.code().unwrap_or((self.code, &self.reason));
        let subject = Subject {
            group: &request.group,
            plural: &request.resource,
            name: request.name.as_deref().unwrap_or_default(),
            ..Subject::default()
        };
        let message = match self.fault {
            FaultKind::Conflict => return Some(Refusal::stale(subject)),
            FaultKind::Forbidden => return Some(Access::of(request).refusal()),
            FaultKind::TooManyRequests => "Too many requests, please try again later.",
            FaultKind::InternalError => "Internal error occurred: okt-apiserver was told to fail",
            FaultKind::Unavailable => "the server is currently unable to handle the request",
            FaultKind::Timeout => {
                "Timeout: request did not complete within requested timeout - context deadline exceeded"
            }
            FaultKind::Gone => "The resourceVersion for the provided watch is too old.",
            FaultKind::Unauthorized => "Unauthorized",
            FaultKind::Answer => &self.message,
            _ => return None,
        };
        let refusal = Refusal::of_subject(code, reason.to_owned(), message.to_owned(), subject);
        Some(match self.retry_after() {
            Some(seconds) => refusal.retry_after(seconds),
            None => refusal,
        })
    }

    /// Returns the whole seconds after which a client should try again.
    pub(crate) fn retry_after(&self) -> Option<u64> {
        let time = self
            .time
            .filter(|_| self.fault == FaultKind::TooManyRequests)?;
        let begun = u64::from(time.subsec_nanos() > 0);
        Some(time.as_secs().saturating_add(begun))
    }

    /// Returns what goes wrong, in words; `time` is that of this strike.
    pub(super) fn describe(&self, time: Duration) -> String {
        use FaultKind as Kind;
        let what = match self.fault {
            Kind::NoAnswer => "no answer".to_owned(),
            Kind::BreakConnection => "a broken connection".to_owned(),
            Kind::CutBody => return format!("a body cut after {} bytes", self.bytes),
            Kind::Delay => format!("a delay of {time:?}"),
            Kind::DeliverLate => format!("a delivery after {time:?}"),
            Kind::Lag => format!("a lag of {time:?}"),
            Kind::HoldEvents => "an event held back".to_owned(),
            Kind::DropEvent | Kind::WithholdBookmarks => "a dropped event".to_owned(),
            Kind::RepeatEvent => "a doubled event".to_owned(),
            Kind::MergeEvents => "an event merged with the next".to_owned(),
            Kind::EndStream => "the end of the watch".to_owned(),
            Kind::BreakStream => "a broken watch".to_owned(),
            Kind::ExpireStream => "410 within the watch".to_owned(),
            Kind::Partition => "a partition".to_owned(),
            kind => {
                let (code, reason) = kind.code().unwrap_or((self.code, &self.reason));
                format!("{code} {reason}")
            }
        };
        if self.after_commit {
            format!("{what} after the commit")
        } else {
            what
        }
    }
}

impl FaultKind {
    pub(super) fn is_of_events(self) -> bool {
        matches!(
            self,
            Self::Lag
                | Self::HoldEvents
                | Self::DropEvent
                | Self::RepeatEvent
                | Self::MergeEvents
                | Self::EndStream
                | Self::BreakStream
                | Self::ExpireStream
                | Self::WithholdBookmarks
                | Self::Partition
        )
    }

    pub(super) fn is_of_requests(self) -> bool {
        self == Self::Partition || !self.is_of_events()
    }

    /// Whether it may strike such an occasion.
    pub(super) fn is_of(self, on: Occasion<'_>) -> bool {
        match on {
            Occasion::Request(_) => self.is_of_requests(),
            Occasion::Event(_) => self.is_of_events(),
        }
    }

    /// Whether it strikes together with others: it only takes time, or lets nothing through.
    pub(super) fn adds_up(self) -> bool {
        matches!(
            self,
            Self::Delay | Self::DeliverLate | Self::Lag | Self::HoldEvents | Self::Partition
        )
    }

    /// Returns the code and the reason of a failure; `None` for an answer, which has its own.
    fn code(self) -> Option<(u16, &'static str)> {
        Some(match self {
            Self::Conflict => (409, "Conflict"),
            Self::TooManyRequests => (429, "TooManyRequests"),
            Self::InternalError => (500, "InternalError"),
            Self::Unavailable => (503, "ServiceUnavailable"),
            Self::Timeout => (504, "Timeout"),
            Self::Gone => (410, "Expired"),
            Self::Unauthorized => (401, "Unauthorized"),
            Self::Forbidden => (403, "Forbidden"),
            _ => return None,
        })
    }
}

/// The limits of a fault: one entry of each list must match; an empty list is no limit.
#[derive(Clone, Debug, Default, serde::Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(crate) struct Limits {
    #[serde(deserialize_with = "texts")]
    pub(super) verbs: Vec<Verb>,
    #[serde(rename = "resource", deserialize_with = "texts")]
    pub(super) resources: Vec<Resource>,
    #[serde(rename = "subresource", deserialize_with = "texts")]
    pub(super) subresources: Vec<String>,
    #[serde(rename = "namespace", deserialize_with = "texts")]
    pub(super) namespaces: Vec<String>,
    #[serde(rename = "name", deserialize_with = "texts")]
    pub(super) names: Vec<String>,
    #[serde(rename = "manager", deserialize_with = "texts")]
    pub(super) managers: Vec<String>,
    #[serde(rename = "client", deserialize_with = "texts")]
    pub(super) clients: Vec<String>,
    #[serde(rename = "replica", deserialize_with = "texts")]
    pub(super) replicas: Vec<String>,
    #[serde(rename = "event", deserialize_with = "texts")]
    pub(super) events: Vec<EventKind>,
    #[serde(skip)]
    pub(super) test: Option<Test>,
}

/// A test of requests by the user.
#[derive(Clone)]
pub(super) struct Test(pub(super) Arc<dyn Fn(&RequestRecord) -> bool + Send + Sync>);

impl fmt::Debug for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Test")
    }
}

impl Limits {
    /// Returns whether an occasion is within the limits. Bookmarks are so only if they are named, or with `bookmarks`.
    pub(super) fn meet(&self, on: Occasion<'_>, bookmarks: bool) -> bool {
        match on {
            Occasion::Request(it) => {
                let subresource = it.subresource.as_deref();
                (self.verbs.is_empty() || self.verbs.contains(&it.verb))
                    && self.allow_resource(&it.resource, &it.group, subresource)
                    && allow(&self.subresources, subresource)
                    && allow(&self.namespaces, it.namespace.as_deref())
                    && allow(&self.names, it.name.as_deref())
                    && allow(&self.managers, it.field_manager.as_deref())
                    && allow(&self.clients, Some(&it.client))
                    && allow(&self.replicas, Some(&it.replica))
                    && self.test.as_ref().is_none_or(|test| test.0(it))
            }
            Occasion::Event(it) => {
                let is_event_met = match self.events.as_slice() {
                    [] => bookmarks || it.kind != EventKind::Bookmark,
                    events => events.contains(&it.kind),
                };
                is_event_met
                    && self.allow_resource(&it.resource.plural, &it.resource.group, None)
                    && allow(&self.namespaces, Some(it.namespace))
                    && allow(&self.names, Some(it.name))
                    && allow(&self.clients, Some(it.client))
                    && allow(&self.replicas, Some(it.replica))
            }
        }
    }

    fn allow_resource(&self, plural: &str, group: &str, subresource: Option<&str>) -> bool {
        let mut resources = self.resources.iter();
        self.resources.is_empty() || resources.any(|it| it.is(plural, group, subresource))
    }
}

/// Whether a list allows a value; an absent value is an empty one.
fn allow(list: &[String], value: Option<&str>) -> bool {
    let value = value.unwrap_or_default();
    list.is_empty() || list.iter().any(|allowed| allowed == value)
}

/// A resource as RBAC and kubectl write it (e.g. `databases.demo.okt.dev/status`).
#[derive(Clone, Debug)]
pub(crate) struct Resource {
    plural: String,
    group: Option<String>,
    subresource: Option<String>,
}

impl FromStr for Resource {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_odd = |c: char| c.is_uppercase() || c.is_whitespace();
        // All subresources are `databases/*`; all resources need no limit.
        let is_name = !text.is_empty() && !text.starts_with(['.', '/']) && !text.contains(is_odd);
        if !is_name || text.starts_with('*') || text.matches('/').count() > 1 {
            return Err(format!(
                "a resource is named by its plural (e.g. databases, databases.demo.okt.dev/status), not by {text:?}"
            ));
        }
        let parted = |text: &str, by: char| match text.split_once(by) {
            Some((before, after)) => (before.to_owned(), Some(after.to_owned())),
            None => (text.to_owned(), None),
        };
        let (resource, subresource) = parted(text, '/');
        let (plural, group) = parted(&resource, '.');
        Ok(Self {
            plural,
            group,
            subresource,
        })
    }
}

impl Resource {
    fn is(&self, plural: &str, group: &str, subresource: Option<&str>) -> bool {
        let is_own = |own: &Option<String>, other: &str| {
            let own = own.as_deref();
            own.is_none_or(|own| own == other)
        };
        let subresource = subresource.unwrap_or_default();
        self.plural == plural
            && is_own(&self.group, group)
            && (self.subresource.as_deref() == Some("*") || is_own(&self.subresource, subresource))
    }
}

/// Reads the fields that are left as limits, so that an unknown one is an error.
pub(crate) fn limits<'de, D: Deserializer<'de>>(given: D) -> Result<Limits, D::Error> {
    let fields = Map::deserialize(given)?;
    Limits::deserialize(Value::Object(fields)).map_err(D::Error::custom)
}

/// Reads a text, or a list of texts.
fn texts<'de, D: Deserializer<'de>, T>(given: D) -> Result<Vec<T>, D::Error>
where
    T: FromStr<Err: fmt::Display>,
{
    let given = match Value::deserialize(given)? {
        Value::Array(texts) => texts,
        text => vec![text],
    };
    let read = |value: &Value| {
        let text = value
            .as_str()
            .ok_or_else(|| format!("{value} is no text"))?;
        text.parse().map_err(|error: T::Err| error.to_string())
    };
    given
        .iter()
        .map(read)
        .collect::<Result<_, _>>()
        .map_err(D::Error::custom)
}

/// Reads a time in seconds, of a day at most.
pub(crate) fn time<'de, D: Deserializer<'de>>(given: D) -> Result<Option<Duration>, D::Error> {
    let seconds = f64::deserialize(given)?;
    let time = Duration::try_from_secs_f64(seconds).ok();
    let time = time.filter(|time| *time <= LONGEST).ok_or_else(|| {
        let longest = LONGEST.as_secs();
        D::Error::custom(format!(
            "{seconds} is no time in seconds between 0 and {longest}"
        ))
    })?;
    Ok(Some(time))
}

#[cfg(test)]
mod tests {
    use super::{FaultKind, Rule};

    fn struck(rule: &Rule) -> Vec<u64> {
        let mut struck = Vec::new();
        for number in 1..=10 {
            if rule.admits(number, struck.len() as u64) {
                struck.push(number);
            }
        }
        struck
    }

    #[test]
    fn the_counts_of_a_rule_combine() {
        let rule = |skip, every, times, nth| Rule {
            skip,
            every,
            times,
            nth,
            ..Rule::new(FaultKind::Conflict)
        };
        assert_eq!(struck(&rule(0, 1, None, None)).len(), 10);
        assert_eq!(struck(&rule(8, 1, None, None)), [9, 10]);
        assert_eq!(struck(&rule(0, 4, None, None)), [4, 8]);
        assert_eq!(struck(&rule(1, 3, Some(2), None)), [4, 7]);
        assert_eq!(struck(&rule(0, 1, None, Some(3))), [3]);
        assert!(struck(&rule(0, 1, Some(0), None)).is_empty());
    }
}
