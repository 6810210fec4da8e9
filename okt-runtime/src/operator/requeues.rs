//! The timers of requeued objects: a queue that takes a few bytes for each object.
//!
//! kube's own queue holds the name of an object twice, in a map and in a wheel of timers.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::sync::Arc;

use futures::{Stream, stream};
use kube::runtime::reflector::ObjectRef;
use okt_core::machine::Requeue;
use okt_wire::clock::after;
use okt_wire::object::LifecycleObject;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::cache::cached::{Cached, WeakCached};

/// The minimum number of entries before obsolete ones are removed.
const FEW: usize = 1024;

/// The requeues that are planned.
pub(crate) struct Requeues<K> {
    entries: Mutex<Entries<K>>,
    sooner: Notify,
}

struct Entries<K> {
    heap: BinaryHeap<Reverse<DueObject<K>>>,
    /// At this number of entries obsolete ones are removed.
    full: usize,
}

struct DueObject<K> {
    due: Instant,
    object: WeakCached<K>,
}

impl<K> Default for Requeues<K> {
    fn default() -> Self {
        Self {
            entries: Mutex::new(Entries {
                heap: BinaryHeap::new(),
                full: FEW,
            }),
            sooner: Notify::new(),
        }
    }
}

impl<K: LifecycleObject> Requeues<K> {
    /// Plans the requeue of an object after its reconciliation; this replaces the requeue before.
    ///
    /// A newer version of the object is reconciled and requeued itself, or [takes this one over](Self::hand_over); so this
    /// requeue is dropped with this version.
    pub(crate) fn plan(&self, object: &Cached<K>, requeue: Requeue) {
        let comes_soon = requeue.wait() == Some(Requeue::SHORTEST);
        if !requeue.is_under_way() && !comes_soon {
            object.pack();
        }
        self.plan_at(object, requeue.wait().map(after));
    }

    /// Moves the requeue of an object to its next version, which is not reconciled.
    pub(crate) fn hand_over(&self, before: &Cached<K>, object: &Cached<K>) {
        self.plan_at(object, before.due());
    }

    fn plan_at(&self, object: &Cached<K>, due: Option<Instant>) {
        object.plan(due);
        let Some(due) = due else {
            return;
        };
        let mut entries = self.entries.lock();
        if entries.heap.len() >= entries.full {
            entries.heap.retain(|Reverse(entry)| entry.is_wanted());
            entries.full = FEW.max(2 * entries.heap.len());
        }
        let object = object.downgrade();
        entries.heap.push(Reverse(DueObject { due, object }));
        let first = entries.heap.peek();
        if first.is_some_and(|Reverse(entry)| entry.due == due) {
            self.sooner.notify_one();
        }
    }

    /// Returns a stream of the objects whose requeue is due.
    pub(crate) fn stream(self: Arc<Self>) -> impl Stream<Item = ObjectRef<Cached<K>>> {
        stream::unfold(self, |requeues| async move {
            let object = requeues.next().await;
            Some((object, requeues))
        })
    }

    async fn next(&self) -> ObjectRef<Cached<K>> {
        loop {
            let first = self
                .entries
                .lock()
                .heap
                .peek()
                .map(|Reverse(entry)| entry.due);
            match first {
                Some(due) if due <= Instant::now() => {
                    if let Some(object) = self.entries.lock().take() {
                        return object;
                    }
                }
                // A requeue that was planned since the peek has left a permit.
                Some(due) => tokio::select! {
                    () = sleep_until(due) => {}
                    () = self.sooner.notified() => {}
                },
                None => self.sooner.notified().await,
            }
        }
    }
}

impl<K: LifecycleObject> Entries<K> {
    /// Removes the first entry; returns its object, if the requeue is still planned.
    fn take(&mut self) -> Option<ObjectRef<Cached<K>>> {
        let Reverse(entry) = self.heap.pop()?;
        entry.object.object(entry.due)
    }
}

impl<K: LifecycleObject> DueObject<K> {
    fn is_wanted(&self) -> bool {
        self.object.is_planned(self.due)
    }
}

impl<K> PartialEq for DueObject<K> {
    fn eq(&self, other: &Self) -> bool {
        self.due == other.due
    }
}

impl<K> Eq for DueObject<K> {}

impl<K> PartialOrd for DueObject<K> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<K> Ord for DueObject<K> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.due.cmp(&other.due)
    }
}
