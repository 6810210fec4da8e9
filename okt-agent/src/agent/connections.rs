//! The open connections: their number is limited, and silent ones do not keep others out.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::metrics::Metrics;

/// The open connections.
#[derive(Debug)]
pub(super) struct Connections {
    most: usize,
    metrics: Arc<Metrics>,
    open: Mutex<OpenConnections>,
}

#[derive(Debug, Default)]
struct OpenConnections {
    next: u64,
    all: BTreeMap<u64, AgentConnection>,
}

#[derive(Debug)]
struct AgentConnection {
    stage: ConnectionStage,
    /// Whether a request has ever arrived on it.
    known: bool,
    /// A counter that grows with time.
    since: u64,
    closed: CancellationToken,
}

/// The stage of a connection; connections in earlier stages are closed first to make room.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum ConnectionStage {
    /// No request arrives or is being answered.
    Silent,
    /// A request has begun to arrive, and its body has not ended.
    Arriving,
    /// A request is being answered.
    Answering,
}

/// An open connection. Dropping it removes the connection from the count.
#[derive(Debug)]
pub(super) struct ConnectionGuard {
    key: u64,
    connections: Arc<Connections>,
    /// Cancelled when the connection has to make room for another one.
    pub(super) closed: CancellationToken,
}

/// A request that arrives or is being answered.
#[derive(Debug)]
pub(super) struct Busy(Arc<ConnectionGuard>);

impl Connections {
    /// Creates an empty set with this limit.
    pub(super) fn new(most: usize, metrics: Arc<Metrics>) -> Arc<Self> {
        Arc::new(Self {
            most: most.max(1),
            metrics,
            open: Mutex::default(),
        })
    }

    /// Returns a place for another connection.
    ///
    /// If none is free, it closes the connection that has been silent longest, preferring one that never sent a
    /// request.
    /// If none is silent, it closes the one whose request has been arriving longest.
    /// If all are being answered, it returns `None`.
    pub(super) fn admit(self: &Arc<Self>) -> Option<Arc<ConnectionGuard>> {
        let mut open = self.open.lock();
        if open.all.len() >= self.most {
            let all = open.all.iter();
            let unanswered = all.filter(|(_, it)| it.stage != ConnectionStage::Answering);
            let first = unanswered.min_by_key(|(_, it)| (it.stage, it.known, it.since));
            let key = first.map(|(key, _)| *key);
            let Some(silent) = key.and_then(|key| open.all.remove(&key)) else {
                self.metrics.closed("refused");
                return None;
            };
            silent.closed.cancel();
            self.metrics.closed("crowded");
        }
        open.next += 1;
        let key = open.next;
        let closed = CancellationToken::new();
        let connection = AgentConnection {
            stage: ConnectionStage::Silent,
            known: false,
            since: key,
            closed: closed.clone(),
        };
        open.all.insert(key, connection);
        self.metrics.connected(open.all.len());
        Some(Arc::new(ConnectionGuard {
            key,
            connections: Arc::clone(self),
            closed,
        }))
    }
}

impl ConnectionGuard {
    /// Notes that the head of a request has arrived.
    pub(super) fn busy(self: &Arc<Self>) -> Busy {
        self.goes_on(ConnectionStage::Arriving);
        Busy(Arc::clone(self))
    }

    fn goes_on(&self, stage: ConnectionStage) {
        let mut open = self.connections.open.lock();
        open.next += 1;
        let now = open.next;
        if let Some(connection) = open.all.get_mut(&self.key) {
            connection.stage = stage;
            connection.known = true;
            connection.since = now;
        }
    }
}

impl Busy {
    /// Notes that the whole request has arrived. The connection is not closed to make room until it is answered.
    pub(super) fn arrived(&self) {
        self.0.goes_on(ConnectionStage::Answering);
    }
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        let mut open = self.connections.open.lock();
        open.all.remove(&self.key);
        self.connections.metrics.connected(open.all.len());
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.goes_on(ConnectionStage::Silent);
    }
}

#[cfg(test)]
mod tests {
    //! Which connection is closed to make room.

    use std::sync::Arc;

    use super::{Busy, ConnectionGuard, Connections, Metrics};

    fn answered(place: &Arc<ConnectionGuard>) -> Busy {
        let busy = place.busy();
        busy.arrived();
        busy
    }

    #[test]
    fn the_connection_that_is_silent_longest_makes_room() {
        let connections = Connections::new(3, Arc::new(Metrics::new()));
        let [used, silent, later] = std::array::from_fn(|_| connections.admit().unwrap());
        drop(used.busy());
        let fourth = connections.admit().unwrap();
        assert!(silent.closed.is_cancelled() && !used.closed.is_cancelled());
        let _fourth_busy = answered(&fourth);
        let fifth = connections.admit().unwrap();
        assert!(later.closed.is_cancelled());
        let _fifth_busy = answered(&fifth);
        let sixth = connections.admit().unwrap();
        assert!(used.closed.is_cancelled());
        let sixth_busy = answered(&sixth);
        assert!(connections.admit().is_none());
        drop(sixth_busy);
        assert!(connections.admit().is_some());
    }

    #[test]
    fn an_arriving_request_makes_room_if_no_connection_is_silent() {
        let connections = Connections::new(3, Arc::new(Metrics::new()));
        let [slow, slower, silent] = std::array::from_fn(|_| connections.admit().unwrap());
        let (_slow, slower_busy) = (slow.busy(), slower.busy());
        let _fourth = answered(&connections.admit().unwrap());
        assert!(silent.closed.is_cancelled() && !slow.closed.is_cancelled());
        let _fifth = answered(&connections.admit().unwrap());
        assert!(slow.closed.is_cancelled() && !slower.closed.is_cancelled());
        slower_busy.arrived();
        assert!(connections.admit().is_none());
    }
}
