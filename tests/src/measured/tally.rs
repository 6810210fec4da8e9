//! The counts of reconciliations and requests of a controller, within its process.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use http::{Method, Request};
use http_body::Body as _;
use kube::client::Body;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

/// Counts the work of a controller.
pub struct Tally {
    begun: Instant,
    /// The expected number of reconciliations.
    expected: u64,
    figures: Mutex<Figures>,
}

/// The counters; times are since the start of the process.
#[derive(Clone, Default, Debug, Serialize, Deserialize)]
pub struct Figures {
    /// The number of reconciliations.
    pub reconciliations: u64,
    /// The time at which the expected number of reconciliations was reached.
    pub all_reconciled: Option<Duration>,
    /// The start of the last reconciliation so far.
    pub last_reconciliation: Option<Duration>,
    /// The time of the first write.
    pub first_write: Option<Duration>,
    /// The time of the last write.
    pub last_write: Option<Duration>,
    /// The number of writes.
    pub writes: u64,
    /// The total size of the bodies of all writes, in bytes.
    pub bytes_written: u64,
    /// The total size of the bodies of all responses, in bytes.
    pub bytes_received: u64,
    /// The number of requests by verb and resource, with watches as a verb (e.g. `PATCH parcels/status`).
    pub requests: BTreeMap<String, u64>,
}

impl Figures {
    /// Returns the number of requests with this verb and resource.
    pub fn of(&self, request: &str) -> u64 {
        self.requests.get(request).copied().unwrap_or_default()
    }
}

impl Tally {
    /// Creates an empty tally that expects this number of reconciliations.
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

    /// Counts a reconciliation.
    pub fn reconciled(&self) {
        let mut figures = self.figures.lock();
        let now = self.begun.elapsed();
        figures.reconciliations += 1;
        figures.last_reconciliation = Some(now);
        if figures.reconciliations == self.expected {
            figures.all_reconciled = Some(now);
        }
    }

    /// Counts a request.
    pub fn request(&self, request: &Request<Body>) {
        let (path, query) = (request.uri().path(), request.uri().query());
        let watches = query.is_some_and(|query| query.contains("watch=true"));
        let verb = match request.method() {
            &Method::GET if watches => "WATCH",
            method => method.as_str(),
        };
        let what = format!("{verb} {}", resource(path));
        let mut figures = self.figures.lock();
        if request.method() != Method::GET {
            let now = self.begun.elapsed();
            figures.first_write.get_or_insert(now);
            figures.last_write = Some(now);
            figures.writes += 1;
            figures.bytes_written += request.body().size_hint().lower();
        }
        *figures.requests.entry(what).or_default() += 1;
    }

    /// Counts bytes of a response.
    pub fn received(&self, bytes: usize) {
        let mut figures = self.figures.lock();
        figures.bytes_received += bytes as u64;
    }

    /// Returns the counters.
    pub fn figures(&self) -> Figures {
        let figures = self.figures.lock();
        figures.clone()
    }
}

/// Returns the resource of a path with its subresource (e.g. `parcels/status`); the path itself if it has none.
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
