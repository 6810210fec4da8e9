//! All open connections: never more than a bounded number, and never so that those who say nothing keep others out.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

use super::metrics::Metrics;

/// All open connections.
#[derive(Debug)]
pub(super) struct Connections {
    most: usize,
    metrics: Arc<Metrics>,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    next: u64,
    connections: BTreeMap<u64, Connection>,
}

#[derive(Debug)]
struct Connection {
    /// Requests that are being answered.
    busy: usize,
    /// Whether one ever was.
    known: bool,
    /// Grows with time.
    since: u64,
    closed: CancellationToken,
}

/// A connection that is open; it is no longer when this is dropped.
#[derive(Debug)]
pub(super) struct Place {
    key: u64,
    connections: Arc<Connections>,
    /// Ends when the connection has to make room for another one.
    pub(super) closed: CancellationToken,
}

/// A request that is being answered.
#[derive(Debug)]
pub(super) struct Busy(Arc<Place>);

impl Connections {
    /// None yet, and never more than this many.
    pub(super) fn new(most: usize, metrics: Arc<Metrics>) -> Arc<Self> {
        Arc::new(Self {
            most: most.max(1),
            metrics,
            open: Mutex::default(),
        })
    }

    /// A place for another one.
    ///
    /// Where there is none left, the one that has been silent for longest makes room, first of all one that never
    /// asked for anything; nothing where all are being answered.
    pub(super) fn admit(self: &Arc<Self>) -> Option<Arc<Place>> {
        let mut open = self.open();
        if open.connections.len() >= self.most {
            let silent = (open.connections.iter())
                .filter(|(_, connection)| connection.busy == 0)
                .min_by_key(|(_, connection)| (connection.known, connection.since))
                .map(|(key, _)| *key);
            let Some(silent) = silent.and_then(|key| open.connections.remove(&key)) else {
                self.metrics.closed("refused");
                return None;
            };
            silent.closed.cancel();
            self.metrics.closed("crowded");
        }
        open.next += 1;
        let key = open.next;
        let closed = CancellationToken::new();
        open.connections.insert(
            key,
            Connection {
                busy: 0,
                known: false,
                since: key,
                closed: closed.clone(),
            },
        );
        self.metrics.connected(open.connections.len());
        Some(Arc::new(Place {
            key,
            connections: Arc::clone(self),
            closed,
        }))
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// A request has arrived; the connection makes no room until it is answered.
    pub(super) fn busy(self: &Arc<Self>) -> Busy {
        let mut open = self.connections.open();
        if let Some(connection) = open.connections.get_mut(&self.key) {
            connection.busy += 1;
            connection.known = true;
        }
        Busy(Arc::clone(self))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.connections.open();
        open.connections.remove(&self.key);
        self.connections.metrics.connected(open.connections.len());
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let mut open = self.0.connections.open();
        open.next += 1;
        let now = open.next;
        if let Some(connection) = open.connections.get_mut(&self.0.key) {
            connection.busy -= 1;
            connection.since = now;
        }
    }
}

#[cfg(test)]
mod tests {
    //! Who makes room for whom.

    use std::sync::Arc;

    use super::{Connections, Metrics};

    #[test]
    fn the_one_that_is_silent_for_longest_makes_room() {
        let connections = Connections::new(3, Arc::new(Metrics::new()));
        let [used, silent, later] = std::array::from_fn(|_| connections.admit().unwrap());
        drop(used.busy());
        let fourth = connections.admit().unwrap();
        assert!(silent.closed.is_cancelled() && !used.closed.is_cancelled());
        let _fourth_busy = fourth.busy();
        let fifth = connections.admit().unwrap();
        assert!(later.closed.is_cancelled());
        let _fifth_busy = fifth.busy();
        let sixth = connections.admit().unwrap();
        assert!(used.closed.is_cancelled());
        let sixth_busy = sixth.busy();
        assert!(connections.admit().is_none());
        drop(sixth_busy);
        assert!(connections.admit().is_some());
    }
}
