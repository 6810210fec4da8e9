//! This file counts what a controller does, from within its process: its turns and its requests.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use http::{Method, Request};
use http_body::Body as _;
use kube::client::Body;
use serde::{Deserialize, Serialize};

/// What a controller has done so far.
pub(crate) struct Tally {
    begun: Instant,
    turns: AtomicU64,
    /// The number of turns that is waited for.
    expected: u64,
    figures: Mutex<Figures>,
}

/// The same in numbers; times are since the process began.
#[derive(Clone, Default, Debug, Serialize, Deserialize)]
pub(crate) struct Figures {
    pub(crate) turns: u64,
    /// When the expected number of turns was reached.
    pub(crate) all_had_a_turn: Option<Duration>,
    pub(crate) first_write: Option<Duration>,
    pub(crate) last_write: Option<Duration>,
    pub(crate) writes: u64,
    pub(crate) bytes_written: u64,
    /// By verb, watches and the status apart (e.g. `PATCH status`).
    pub(crate) requests: BTreeMap<String, u64>,
}

impl Tally {
    pub(crate) fn expecting(turns: u64) -> Self {
        Self {
            begun: Instant::now(),
            turns: AtomicU64::new(0),
            expected: turns,
            figures: Mutex::default(),
        }
    }

    /// An object has its turn.
    pub(crate) fn turn(&self) {
        if self.turns.fetch_add(1, Ordering::Relaxed) + 1 == self.expected {
            let mut figures = self.figures.lock().unwrap_or_else(PoisonError::into_inner);
            figures.all_had_a_turn = Some(self.begun.elapsed());
        }
    }

    /// A request is being sent.
    pub(crate) fn request(&self, request: &Request<Body>) {
        let (path, query) = (request.uri().path(), request.uri().query());
        let watches = query.is_some_and(|query| query.contains("watch=true"));
        let verb = match request.method() {
            &Method::GET if watches => "WATCH".to_owned(),
            method if path.ends_with("/status") => format!("{method} status"),
            method => method.to_string(),
        };
        let mut figures = self.figures.lock().unwrap_or_else(PoisonError::into_inner);
        if request.method() != Method::GET {
            let now = self.begun.elapsed();
            figures.first_write.get_or_insert(now);
            figures.last_write = Some(now);
            figures.writes += 1;
            figures.bytes_written += request.body().size_hint().lower();
        }
        *figures.requests.entry(verb).or_default() += 1;
    }

    pub(crate) fn figures(&self) -> Figures {
        let figures = self.figures.lock().unwrap_or_else(PoisonError::into_inner);
        Figures {
            turns: self.turns.load(Ordering::Relaxed),
            ..figures.clone()
        }
    }
}
