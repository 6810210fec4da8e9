//! [`Shared`]: the state that all clients share.
//!
//! In-process clients and HTTP connections use the same store behind one lock.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use http::HeaderValue;
use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;
use tokio::time::Instant;

use crate::{
    calls::{Services, WebhookCalls},
    faults::Book,
    feature_gate::FeatureGate,
    record::Requests,
    replica_view::ReplicaView,
    store::Store,
    versions::EventRecord,
};

/// How long a request takes at most that needs webhooks, as on a server, and how often it begins anew.
const PATIENCE: Duration = Duration::from_secs(34);
const ATTEMPTS: usize = 100;

/// The state that all clients share.
pub(crate) struct Shared {
    store: Mutex<Store>,
    book: Mutex<Book>,
    requests: Mutex<Requests>,
    events: Mutex<Vec<EventRecord>>,
    records: AtomicBool,
    gates: Mutex<BTreeSet<FeatureGate>>,
    /// The view of the server itself.
    pub(crate) replica_view: Arc<ReplicaView>,
    replicas: Mutex<BTreeMap<String, Arc<ReplicaView>>>,
    /// The Services that the test answers for.
    pub(crate) services: Services,
    /// Answers the reviews of tokens and accesses.
    reviewer: Mutex<Option<Reviewer>>,
    /// Whether the controllers of Kubernetes itself are about to act.
    pub(crate) cleans: AtomicBool,
    /// The number of answers.
    answers: AtomicU64,
}

/// Returns whether an access or a token that a review asks about is allowed.
pub(crate) type Reviewer = Arc<dyn Fn(&Value) -> bool + Send + Sync>;

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

impl Shared {
    pub(crate) fn new() -> Self {
        Self {
            store: Mutex::new(Store::new()),
            book: Mutex::default(),
            requests: Mutex::default(),
            events: Mutex::default(),
            records: AtomicBool::new(true),
            gates: Mutex::default(),
            replica_view: Arc::new(ReplicaView::new("")),
            replicas: Mutex::default(),
            services: Services::default(),
            reviewer: Mutex::default(),
            cleans: AtomicBool::new(false),
            answers: AtomicU64::new(0),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Store> {
        self.store.lock()
    }

    /// Does work that may need webhooks, and does it anew as long as there are calls to be made: a webhook that changes what
    /// it is asked about would otherwise be asked for ever.
    pub(crate) async fn with_webhooks<T>(
        &self,
        mut work: impl FnMut(&Arc<WebhookCalls>) -> T,
    ) -> T {
        let calls: Arc<WebhookCalls> = Arc::default();
        let begun = Instant::now();
        for _ in 0..ATTEMPTS {
            let result = work(&calls);
            if calls.check_made().is_ok() || begun.elapsed() >= PATIENCE {
                return result;
            }
            calls.make(&self.services, &self.store).await;
        }
        work(&calls)
    }

    pub(crate) fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock()
    }

    pub(crate) fn requests(&self) -> MutexGuard<'_, Requests> {
        self.requests.lock()
    }

    pub(crate) fn events(&self) -> MutexGuard<'_, Vec<EventRecord>> {
        self.events.lock()
    }

    /// Returns the view of a replica; the first call with a name creates it.
    pub(crate) fn replica(&self, name: &str) -> Arc<ReplicaView> {
        if name.is_empty() {
            return Arc::clone(&self.replica_view);
        }
        let mut replicas = self.replicas.lock();
        let replica = replicas
            .entry(name.to_owned())
            .or_insert_with(|| Arc::new(ReplicaView::new(name)));
        Arc::clone(replica)
    }

    /// Returns the views of the server and of all replicas.
    pub(crate) fn replica_views(&self) -> Vec<Arc<ReplicaView>> {
        let replicas = self.replicas.lock();
        let all = std::iter::once(&self.replica_view).chain(replicas.values());
        all.cloned().collect()
    }

    pub(crate) fn enables(&self, gate: FeatureGate) -> bool {
        self.gates.lock().contains(&gate)
    }

    pub(crate) fn set_feature_gate(&self, gate: FeatureGate, on: bool) {
        let mut gates = self.gates.lock();
        if on {
            gates.insert(gate);
        } else {
            gates.remove(&gate);
        }
    }

    pub(crate) fn set_reviewer(&self, reviewer: Reviewer) {
        *self.reviewer.lock() = Some(reviewer);
    }

    /// Returns what decides what clients may do; without it they may do everything.
    pub(crate) fn reviewer(&self) -> Option<Reviewer> {
        self.reviewer.lock().clone()
    }

    /// Returns the id of an answer, the same in each run of a test.
    pub(crate) fn new_audit_id(&self) -> HeaderValue {
        let number = self.answers.fetch_add(1, Ordering::Relaxed);
        let id = format!("00000000-0000-4000-8000-{number:012x}");
        HeaderValue::from_str(&id).expect("it is ASCII")
    }

    pub(crate) fn records(&self) -> bool {
        self.records.load(Ordering::Relaxed)
    }

    pub(crate) fn set_recording(&self, on: bool) {
        self.records.store(on, Ordering::Relaxed);
        self.lock().keep_all(on);
    }
}
