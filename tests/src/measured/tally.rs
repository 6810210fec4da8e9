//! This file counts what a controller does, from within its process: its turns and its requests.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use http::{Method, Request};
use http_body::Body as _;
use kube::client::Body;
use serde::{Deserialize, Serialize};

/// What a controller has done so far.
pub struct Tally {
    begun: Instant,
    /// The number of turns that is waited for.
    expected: u64,
    figures: Mutex<Figures>,
}

/// The same in numbers; times are since the process began.
#[derive(Clone, Default, Debug, Serialize, Deserialize)]
pub struct Figures {
    /// How many turns objects had.
    pub reconciliations: u64,
    /// When the expected number of turns was reached.
    pub all_reconciled: Option<Duration>,
    /// When the last turn so far began.
    pub last_turn: Option<Duration>,
    /// When the first write was sent.
    pub first_write: Option<Duration>,
    /// When the last write was sent.
    pub last_write: Option<Duration>,
    /// How many writes were sent.
    pub writes: u64,
    /// How long their bodies were together.
    pub bytes_written: u64,
    /// By verb and resource, watches apart (e.g. `PATCH parcels/status`).
    pub requests: BTreeMap<String, u64>,
}

impl Figures {
    /// How many requests were sent of this verb and resource.
    pub fn of(&self, request: &str) -> u64 {
        self.requests.get(request).copied().unwrap_or_default()
    }
}

impl Tally {
    /// Nothing yet; it notes when there were so many turns.
    pub fn expecting(reconciliations: u64) -> Self {
        Self {
            begun: Instant::now(),
            expected: reconciliations,
            figures: Mutex::new(Figures {
                all_reconciled: (reconciliations == 0).then_some(Duration::ZERO),
                ..Figures::default()
            }),
        }
    }

    /// An object has its turn.
    pub fn reconciled(&self) {
        let mut figures = self.figures.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.begun.elapsed();
        figures.reconciliations += 1;
        figures.last_turn = Some(now);
        if figures.reconciliations == self.expected {
            figures.all_reconciled = Some(now);
        }
    }

    /// A request is being sent.
    pub fn request(&self, request: &Request<Body>) {
        let (path, query) = (request.uri().path(), request.uri().query());
        let watches = query.is_some_and(|query| query.contains("watch=true"));
        let verb = match request.method() {
            &Method::GET if watches => "WATCH",
            method => method.as_str(),
        };
        let what = format!("{verb} {}", resource(path));
        let mut figures = self.figures.lock().unwrap_or_else(PoisonError::into_inner);
        if request.method() != Method::GET {
            let now = self.begun.elapsed();
            figures.first_write.get_or_insert(now);
            figures.last_write = Some(now);
            figures.writes += 1;
            figures.bytes_written += request.body().size_hint().lower();
        }
        *figures.requests.entry(what).or_default() += 1;
    }

    /// What was counted.
    pub fn figures(&self) -> Figures {
        let figures = self.figures.lock().unwrap_or_else(PoisonError::into_inner);
        figures.clone()
    }
}

/// The resource of a path with its subresource (e.g. `parcels/status`); the path itself where it has none.
fn resource(path: &str) -> String {
    let segments: Vec<&str> = path.trim_matches('/').split('/').collect();
    let below = match segments.as_slice() {
        ["api", _, below @ ..] | ["apis", _, _, below @ ..] => below,
        _ => &[],
    };
    let below = match below {
        ["namespaces", _, below @ ..] if !below.is_empty() => below,
        below => below,
    };
    match below {
        [] => path.to_owned(),
        [resource, _, subresource, ..] => format!("{resource}/{subresource}"),
        [resource, ..] => (*resource).to_owned(),
    }
}
