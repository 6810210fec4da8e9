//! The work queue: serves objects in the order in which they became due, with a limited number of places.
//!
//! A reconciliation that waits for the application's code gives its place back meanwhile ([`Place::aside`]), so that no
//! object waits for the application of another one.
//! kube's queue serves pending objects in the order of a hash map, and a reconciliation keeps its place until it ends.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

use okt_telemetry::metrics::controller::Controller;
use okt_telemetry::operators::QueueState;
use okt_wire::clock::after;

/// Why an object is due, in the order of urgency; the last is the most urgent.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Urgency {
    /// It was listed, or the operator may act on it again, with many others; it seems to be at rest.
    Listed,
    /// Its requeue is due, or it was listed with many others and its work is not done.
    Routine,
    /// It was changed or deleted, or a reconcile request named it.
    Event,
    /// Its work has ended, its watch delivers the operator's own write, or the answer has come that its reconciliation
    /// waited for.
    ///
    /// It comes first, because what was begun takes memory until it ends.
    Continuation,
}

impl Urgency {
    /// Returns how long more urgent objects may delay this one.
    fn patience(self) -> Duration {
        match self {
            Self::Listed => Duration::from_mins(10),
            Self::Routine => Duration::from_mins(1),
            Self::Event => Duration::from_secs(30),
            Self::Continuation => Duration::ZERO,
        }
    }
}

/// The rank in the queue: a time, and a number that orders equal times.
type Rank = (Instant, u64);

/// The objects that are due, by name, and the places of the running reconciliations.
pub(crate) struct Queue<N: Clone + Eq + Hash> {
    line: Mutex<QueueInner<N>>,
    moved: Notify,
    metrics: Option<Arc<Controller>>,
}

struct QueueInner<N: Clone + Eq + Hash> {
    places: usize,
    free: usize,
    waiting: BTreeMap<Rank, Waiting<N>>,
    /// The rank of each object that is due.
    due: HashMap<N, Rank>,
    /// How many objects of each urgency are due.
    due_by_urgency: [usize; 4],
    /// The objects that are being reconciled.
    running: HashMap<N, Running>,
    arrived: u64,
    closed: bool,
}

/// An object that is being reconciled.
struct Running {
    began: Instant,
    /// Its urgency, if it became due meanwhile.
    again: Option<Urgency>,
}

enum Waiting<N: Clone + Eq + Hash> {
    /// An object that is due.
    Object(N, Urgency),
    /// A reconciliation that gave its place back and continues.
    Reconciliation(oneshot::Sender<Granted<N>>),
}

impl<N: Clone + Eq + Hash> Queue<N> {
    /// Creates a queue with `places` places.
    pub(crate) fn new(places: u16, metrics: Option<Arc<Controller>>) -> Arc<Self> {
        let line = QueueInner {
            places: places.into(),
            free: places.into(),
            due_by_urgency: [0; 4],
            waiting: BTreeMap::new(),
            due: HashMap::new(),
            running: HashMap::new(),
            arrived: 0,
            closed: false,
        };
        Arc::new(Self {
            line: Mutex::new(line),
            moved: Notify::new(),
            metrics,
        })
    }

    /// Enqueues an object; one that is already due keeps the better of its ranks.
    pub(crate) fn push(&self, object: N, urgency: Urgency) {
        let mut line = self.line.lock();
        if line.closed {
            return;
        }
        if let Some(running) = line.running.get_mut(&object) {
            running.again = running.again.max(Some(urgency));
            return;
        }
        let rank = line.rank(urgency);
        match line.due.get(&object).copied() {
            Some(before) if before <= rank => return,
            Some(before) => drop(line.take(before)),
            None => self.metrics.iter().for_each(|metrics| metrics.added()),
        }
        line.due.insert(object.clone(), rank);
        line.put(rank, Waiting::Object(object, urgency));
        drop(line);
        self.moved.notify_one();
    }

    /// Forgets the objects that are due, and accepts no more. Running reconciliations continue.
    pub(crate) fn close(&self) {
        let mut line = self.line.lock();
        line.closed = true;
        line.due.clear();
        line.due_by_urgency = [0; 4];
        line.waiting
            .retain(|_, waiting| matches!(waiting, Waiting::Reconciliation(_)));
    }

    /// Returns the next object, once there is a place for it; reconciliations before it in the queue get their places
    /// first.
    ///
    /// Only one caller may use it. No reconciliation gets its place back unless it is polled.
    pub(crate) async fn next(self: &Arc<Self>) -> (N, QueuePlace<N>) {
        loop {
            if let Some(next) = self.serve() {
                return next;
            }
            self.moved.notified().await;
        }
    }

    fn serve(self: &Arc<Self>) -> Option<(N, QueuePlace<N>)> {
        loop {
            let mut line = self.line.lock();
            if line.free == 0 {
                return None;
            }
            let rank = *line.waiting.first_key_value()?.0;
            let waiter = line.take(rank)?;
            line.free = line.free.saturating_sub(1);
            match waiter {
                Waiting::Object(object, urgency) => {
                    line.due.remove(&object);
                    let began = Instant::now();
                    let running = Running { began, again: None };
                    line.running.insert(object.clone(), running);
                    drop(line);
                    if let Some(metrics) = &self.metrics {
                        let latest = began.checked_add(urgency.patience()).unwrap_or(began);
                        metrics.taken(latest.saturating_duration_since(rank.0));
                    }
                    let place = QueuePlace {
                        queue: Arc::clone(self),
                        object: object.clone(),
                        held: AtomicBool::new(true),
                    };
                    return Some((object, place));
                }
                Waiting::Reconciliation(waits) => {
                    drop(line);
                    // If the reconciliation was dropped meanwhile, `Granted` frees the place.
                    drop(waits.send(Granted(Some(Arc::clone(self)))));
                }
            }
        }
    }

    /// Enqueues a reconciliation that gave its place back and needs one again.
    fn wait(&self) -> oneshot::Receiver<Granted<N>> {
        let (given, waits) = oneshot::channel();
        let mut line = self.line.lock();
        let rank = line.rank(Urgency::Continuation);
        line.put(rank, Waiting::Reconciliation(given));
        drop(line);
        self.moved.notify_one();
        waits
    }

    fn leave(&self) {
        let mut line = self.line.lock();
        line.free = line.free.saturating_add(1);
        drop(line);
        self.moved.notify_one();
    }
}

impl<N: Clone + Eq + Hash> QueueInner<N> {
    fn put(&mut self, rank: Rank, waiting: Waiting<N>) {
        if let Waiting::Object(_, urgency) = &waiting {
            let due = &mut self.due_by_urgency[*urgency as usize];
            *due = due.saturating_add(1);
        }
        self.waiting.insert(rank, waiting);
    }

    fn take(&mut self, rank: Rank) -> Option<Waiting<N>> {
        let waiting = self.waiting.remove(&rank)?;
        if let Waiting::Object(_, urgency) = &waiting {
            let due = &mut self.due_by_urgency[*urgency as usize];
            *due = due.saturating_sub(1);
        }
        Some(waiting)
    }

    fn rank(&mut self, urgency: Urgency) -> Rank {
        let due = after(urgency.patience());
        self.arrived = self.arrived.wrapping_add(1);
        (due, self.arrived)
    }
}

impl<N: Clone + Eq + Hash> Queue<N> {
    /// Returns its state, for monitoring.
    pub(crate) fn state(&self) -> QueueState {
        let line = self.line.lock();
        let now = Instant::now();
        let times = line.running.values().map(|it| now.duration_since(it.began));
        QueueState {
            due: line.due_by_urgency,
            active: line.places.saturating_sub(line.free),
            unfinished: times.clone().fold(Duration::ZERO, Duration::saturating_add),
            longest: times.max().unwrap_or_default(),
        }
    }
}

/// A place that is granted to a reconciliation; dropping it frees the place.
struct Granted<N: Clone + Eq + Hash>(Option<Arc<Queue<N>>>);

impl<N: Clone + Eq + Hash> Drop for Granted<N> {
    fn drop(&mut self) {
        if let Some(queue) = &self.0 {
            queue.leave();
        }
    }
}

/// The place of one reconciliation; dropping it ends the reconciliation and frees the place.
pub(crate) struct QueuePlace<N: Clone + Eq + Hash> {
    queue: Arc<Queue<N>>,
    object: N,
    held: AtomicBool,
}

impl<N: Clone + Eq + Hash> QueuePlace<N> {
    /// Awaits `waited` without the place, then waits for a place again.
    pub(crate) async fn aside<T>(&self, waited: impl Future<Output = T>) -> T {
        self.held.store(false, Ordering::Release);
        self.queue.leave();
        let result = waited.await;
        if let Ok(mut granted) = self.queue.wait().await {
            // From here on this `Place` frees it.
            drop(mem::take(&mut granted.0));
            self.held.store(true, Ordering::Release);
        }
        result
    }
}

impl<N: Clone + Eq + Hash> Drop for QueuePlace<N> {
    fn drop(&mut self) {
        if self.held.load(Ordering::Acquire) {
            self.queue.leave();
        }
        let running = self.queue.line.lock().running.remove(&self.object);
        if let Some(urgency) = running.and_then(|running| running.again) {
            self.queue.push(self.object.clone(), urgency);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn next(queue: &Arc<Queue<u32>>) -> (u32, QueuePlace<u32>) {
        tokio::time::timeout(Duration::from_secs(1), queue.next())
            .await
            .expect("an object is due and a place is free")
    }

    fn is_idle(queue: &Arc<Queue<u32>>) -> bool {
        queue.serve().is_none()
    }

    #[tokio::test(start_paused = true)]
    async fn objects_are_served_in_the_order_in_which_they_became_due() {
        let queue = Queue::new(1, None);
        for object in [3, 1, 2, 1] {
            queue.push(object, Urgency::Event);
        }
        for object in [3, 1, 2] {
            assert_eq!(next(&queue).await.0, object);
        }
        assert!(
            is_idle(&queue),
            "an object that is due twice is served once"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn events_overtake_routine_requeues_and_do_not_starve_them() {
        let queue = Queue::new(1, None);
        queue.push(1, Urgency::Routine);
        queue.push(2, Urgency::Routine);
        queue.push(3, Urgency::Event);
        queue.push(2, Urgency::Event);
        assert_eq!(next(&queue).await.0, 3);
        assert_eq!(next(&queue).await.0, 2, "it is an event by now");
        tokio::time::advance(Urgency::Routine.patience()).await;
        queue.push(4, Urgency::Event);
        assert_eq!(next(&queue).await.0, 1, "it has waited long enough");
        assert_eq!(next(&queue).await.0, 4);
    }

    #[tokio::test(start_paused = true)]
    async fn continuations_come_first_and_do_not_starve_events() {
        let queue = Queue::new(1, None);
        queue.push(1, Urgency::Event);
        queue.push(2, Urgency::Event);
        queue.push(3, Urgency::Continuation);
        assert_eq!(next(&queue).await.0, 3);
        assert_eq!(next(&queue).await.0, 1);
        tokio::time::advance(Urgency::Event.patience()).await;
        queue.push(3, Urgency::Continuation);
        assert_eq!(next(&queue).await.0, 2);
    }

    #[tokio::test(start_paused = true)]
    async fn an_object_that_becomes_due_while_it_is_reconciled_is_served_once_more_afterwards() {
        let queue = Queue::new(2, None);
        queue.push(1, Urgency::Event);
        let (_, place) = next(&queue).await;
        queue.push(1, Urgency::Event);
        assert!(is_idle(&queue));
        drop(place);
        assert_eq!(next(&queue).await.0, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_reconciliation_that_waits_holds_no_place_and_gets_one_back_first() {
        let queue = Queue::new(1, None);
        queue.push(1, Urgency::Event);
        queue.push(2, Urgency::Event);
        let (_, place) = next(&queue).await;
        assert!(is_idle(&queue));
        let (answer, asked) = oneshot::channel::<()>();
        let aside = tokio::spawn(async move {
            place.aside(asked).await.expect("an answer");
            place
        });
        let (object, other) = next(&queue).await;
        assert_eq!(object, 2, "the place is free meanwhile");
        answer.send(()).expect("it waits");
        tokio::task::yield_now().await;
        assert!(!aside.is_finished(), "the reconciliation waits for a place");
        drop(other);
        assert!(
            is_idle(&queue),
            "the place goes to the waiting reconciliation"
        );
        let place = aside.await.expect("it goes on");
        queue.push(3, Urgency::Event);
        assert!(is_idle(&queue));
        drop(place);
        assert_eq!(next(&queue).await.0, 3);
    }

    #[tokio::test(start_paused = true)]
    async fn a_place_is_free_again_whenever_its_reconciliation_is_dropped() {
        let queue = Queue::new(1, None);
        queue.push(1, Urgency::Event);
        let (_, place) = next(&queue).await;
        // While it waits for an answer.
        let aside = tokio::spawn(async move { place.aside(std::future::pending::<()>()).await });
        tokio::task::yield_now().await;
        aside.abort();
        let _ = aside.await;
        queue.push(2, Urgency::Event);
        let (_, place) = next(&queue).await;
        // While it waits for a place; the granted place is freed.
        let aside = tokio::spawn(async move { place.aside(async {}).await });
        tokio::task::yield_now().await;
        aside.abort();
        let _ = aside.await;
        queue.push(3, Urgency::Event);
        assert_eq!(next(&queue).await.0, 3);
        queue.push(4, Urgency::Event);
        assert_eq!(next(&queue).await.0, 4);
    }

    #[tokio::test(start_paused = true)]
    async fn a_closed_queue_lets_reconciliations_continue_and_accepts_no_objects() {
        let queue = Queue::new(1, None);
        queue.push(1, Urgency::Event);
        queue.push(2, Urgency::Event);
        let (_, place) = next(&queue).await;
        let aside = tokio::spawn(async move { place.aside(async {}).await });
        tokio::task::yield_now().await;
        queue.close();
        queue.push(3, Urgency::Event);
        assert!(is_idle(&queue));
        aside.await.expect("it got its place back");
        assert!(is_idle(&queue));
    }
}
