//! The writes of an operator, each named by what it is.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use tokio::time::Instant;

use crate::{ApiServer, Mark, RequestRecord};

/// A write request of an operator.
#[derive(Clone, Debug)]
pub(super) struct ObservedWrite {
    /// The time after the beginning of the run.
    pub(super) at: Duration,
    /// What it is (e.g. `status: Start → Running`).
    pub(super) name: String,
    /// The HTTP status of the answer; 0 if there was none.
    pub(super) status: u16,
}

impl fmt::Display for ObservedWrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:9.3} s  {}", self.at.as_secs_f64(), self.name)?;
        match self.status {
            200 | 201 => Ok(()),
            0 => f.write_str(", no answer"),
            status => write!(f, ", {status}"),
        }
    }
}

/// Returns the writes of a client since a mark, in order; `plural` is the resource of the rehearsed object.
pub(super) fn of(
    server: &ApiServer,
    client: &str,
    plural: &str,
    since: Mark,
    began: Instant,
) -> Vec<ObservedWrite> {
    let states = States::of(server, plural);
    let requests = server.requests_since(since).into_iter();
    let writes = requests.filter(|request| request.client == client && request.is_write());
    writes
        .map(|request| ObservedWrite {
            at: request.at.duration_since(began),
            name: name(&request, plural, &states),
            status: request.status,
        })
        .collect()
}

fn name(request: &RequestRecord, plural: &str, states: &States) -> String {
    let object = request.name.as_deref().unwrap_or_default();
    if request.resource != plural {
        return format!("{} {} {object}", request.verb, request.resource);
    }
    match request.subresource.as_deref() {
        Some("status") => match request.committed.and_then(|version| states.around(version)) {
            Some((None, to)) => format!("status: → {to}"),
            Some((Some(from), to)) if from != to => format!("status: {from} → {to}"),
            Some((_, at)) => format!("status in {at}"),
            None => "status".to_owned(),
        },
        Some(other) => format!("{} {other}", request.verb),
        None => "finalizers".to_owned(),
    }
}

/// The state on record in each version of the object.
struct States(BTreeMap<u64, Option<String>>);

impl States {
    fn of(server: &ApiServer, plural: &str) -> Self {
        let versions = server.versions().resource(plural);
        let states = versions.iter().map(|version| {
            let object = version.object();
            let state = object["status"]["lifecycle"]["state"].as_str();
            (version.version, state.map(str::to_owned))
        });
        Self(states.collect())
    }

    /// Returns the state before a version, if there was one, and the state in it.
    fn around(&self, version: u64) -> Option<(Option<&str>, &str)> {
        let to = self.0.get(&version)?.as_deref()?;
        let before = self.0.range(..version).next_back();
        Some((before.and_then(|(_, state)| state.as_deref()), to))
    }
}
