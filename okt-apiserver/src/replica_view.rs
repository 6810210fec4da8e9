//! How far a replica of the API is behind the store, and waiting until it sees a change.
//!
//! All replicas share one store; they differ in which of its changes each has seen.

use std::time::Duration;

use parking_lot::MutexGuard;
use tokio::sync::watch;
use tokio::time::{self, Instant};

use crate::refusal::Refusal;
use crate::store::{Store, StoreChange};

/// How long a read waits for a replica to reach the requested version.
const PATIENCE: Duration = Duration::from_secs(3);

/// How often the read checks meanwhile.
const LOOK: Duration = Duration::from_millis(10);

/// The view of one replica.
#[derive(Debug)]
pub(crate) struct ReplicaView {
    name: String,
    view: watch::Sender<ViewState>,
}

#[derive(Clone, Copy, Debug, Default)]
struct ViewState {
    /// The delay between the commit of a change and the replica seeing it.
    lag: Duration,
    /// The replica sees nothing after this version.
    frozen: Option<u64>,
    /// The replica sees all changes up to this version, because it saw them before.
    floor: u64,
    /// The number of times that all watches of this replica were ended.
    endings: u64,
}

/// When the replica sees a change, according to its current view.
enum Due {
    Now,
    At(Instant),
    Unknown,
}

impl ViewState {
    fn due(&self, change: &StoreChange) -> Due {
        match self.frozen {
            Some(version) if change.version <= version => Due::Now,
            Some(_) => Due::Unknown,
            None if change.version <= self.floor || self.lag.is_zero() => Due::Now,
            None => Due::At(change.made + self.lag),
        }
    }

    fn version(&self, store: &Store) -> u64 {
        if let Some(version) = self.frozen {
            return version;
        }
        if self.lag.is_zero() {
            return store.version();
        }
        let seen = match Instant::now().checked_sub(self.lag) {
            Some(moment) => store.version_at(moment),
            None => 0,
        };
        seen.max(self.floor)
    }
}

impl ReplicaView {
    pub(crate) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            view: watch::Sender::new(ViewState::default()),
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the newest version that the replica sees.
    pub(crate) fn version(&self, store: &Store) -> u64 {
        self.view.borrow().version(store)
    }

    pub(crate) fn set_lag(&self, store: &Store, lag: Duration) {
        self.view.send_modify(|view| {
            view.floor = view.version(store);
            view.lag = lag;
        });
    }

    /// Stops seeing anything after a version; `None` stands for the version that is seen now.
    pub(crate) fn freeze(&self, store: &Store, version: Option<u64>) {
        self.view.send_modify(|view| {
            view.frozen = Some(version.unwrap_or_else(|| view.version(store)));
        });
    }

    /// Sees new changes again.
    pub(crate) fn release(&self) {
        self.view.send_modify(|view| {
            if let Some(version) = view.frozen.take() {
                view.floor = version;
            }
        });
    }

    pub(crate) fn end_watches(&self) {
        self.view.send_modify(|view| view.endings += 1);
    }

    pub(crate) fn endings(&self) -> u64 {
        self.view.borrow().endings
    }

    /// Waits until watches that began at this number of endings have to end.
    pub(crate) async fn ended(&self, endings: u64) {
        let mut view = self.view.subscribe();
        // The sender lives as long as this.
        let _ = view.wait_for(|view| view.endings > endings).await;
    }

    /// Waits until the replica sees a change.
    pub(crate) async fn see(&self, change: &StoreChange) {
        let mut view = self.view.subscribe();
        loop {
            let due = view.borrow_and_update().due(change);
            match due {
                Due::Now => return,
                Due::At(moment) if moment <= Instant::now() => return,
                Due::At(moment) => tokio::select! {
                    biased;
                    () = time::sleep_until(moment) => return,
                    _ = view.changed() => {}
                },
                Due::Unknown => {
                    // The sender lives as long as this.
                    let _ = view.changed().await;
                }
            }
        }
    }

    /// Waits until the replica sees a version, as long as a real server waits. `lock` locks the store for a moment.
    ///
    /// # Errors
    /// The replica does not see the version in time.
    pub(crate) async fn wait_for<'s>(
        &self,
        lock: impl Fn() -> MutexGuard<'s, Store>,
        wanted: u64,
    ) -> Result<(), Refusal> {
        let until = Instant::now() + PATIENCE;
        loop {
            let seen = self.version(&lock());
            if seen >= wanted {
                return Ok(());
            }
            if Instant::now() >= until {
                return Err(Refusal::too_large_version(wanted, seen));
            }
            time::sleep(LOOK).await;
        }
    }
}
