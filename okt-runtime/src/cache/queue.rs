//! Which object is reconciled next: the order is that in which objects became due, and so many places there are.
//!
//! A reconciliation that waits for the author's code gives its place back meanwhile ([`Place::aside`]), so that no
//! object waits for the application of another one.
//! kube's queue serves what is pending in the order of a hash map, and a reconciliation keeps its place to its end.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

use crate::clock::after;

/// Why an object is due; a later one is more urgent.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Urgency {
    /// A time has come, or it was listed.
    Routine,
    /// Something happened to it: it was changed or deleted.
    Event,
    /// Its work has ended, or the answer has come that its reconciliation waited for.
    ///
    /// What was begun takes memory until it has ended.
    Continuation,
}

impl Urgency {
    /// By how much more urgent objects may overtake: so long this one may be late, and no longer.
    fn patience(self) -> Duration {
        match self {
            Self::Routine => Duration::from_secs(10),
            Self::Event => Duration::from_secs(1),
            Self::Continuation => Duration::ZERO,
        }
    }
}

/// The place in the line: a time, and a number that tells those of one time apart.
type Rank = (Instant, u64);

/// The objects that are due, by name, and the places of those that are reconciled.
pub(crate) struct Queue<N: Clone + Eq + Hash> {
    line: Mutex<Line<N>>,
    moved: Notify,
}

struct Line<N: Clone + Eq + Hash> {
    free: usize,
    waiting: BTreeMap<Rank, Waiter<N>>,
    /// The rank of each object that is due.
    due: HashMap<N, Rank>,
    /// The objects that are reconciled, and which of them became due meanwhile.
    running: HashMap<N, Option<Urgency>>,
    arrived: u64,
    closed: bool,
}

enum Waiter<N: Clone + Eq + Hash> {
    /// An object that is due.
    Object(N),
    /// A reconciliation that gave its place back and goes on.
    Reconciliation(oneshot::Sender<Granted<N>>),
}

impl<N: Clone + Eq + Hash> Queue<N> {
    /// A queue with so many places.
    pub(crate) fn new(places: u16) -> Arc<Self> {
        let line = Line {
            free: places.into(),
            waiting: BTreeMap::new(),
            due: HashMap::new(),
            running: HashMap::new(),
            arrived: 0,
            closed: false,
        };
        Arc::new(Self {
            line: Mutex::new(line),
            moved: Notify::new(),
        })
    }

    /// An object is due; one that is due already keeps the better of its ranks.
    pub(crate) fn push(&self, object: N, urgency: Urgency) {
        let mut line = self.line();
        if line.closed {
            return;
        }
        if let Some(again) = line.running.get_mut(&object) {
            *again = (*again).max(Some(urgency));
            return;
        }
        let rank = line.rank(urgency);
        match line.due.get(&object).copied() {
            Some(before) if before <= rank => return,
            Some(before) => drop(line.waiting.remove(&before)),
            None => {}
        }
        line.due.insert(object.clone(), rank);
        line.waiting.insert(rank, Waiter::Object(object));
        drop(line);
        self.moved.notify_one();
    }

    /// Forgets what is due, and takes nothing more; what is reconciled goes on.
    pub(crate) fn close(&self) {
        let mut line = self.line();
        line.closed = true;
        line.due.clear();
        line.waiting
            .retain(|_, waiter| matches!(waiter, Waiter::Reconciliation(_)));
    }

    /// Returns the next object, once there is a place for it; until then places go to those before it in the line.
    ///
    /// One caller alone: it has to be polled for any reconciliation to get its place back.
    pub(crate) async fn next(self: &Arc<Self>) -> (N, Place<N>) {
        loop {
            if let Some(next) = self.serve() {
                return next;
            }
            self.moved.notified().await;
        }
    }

    fn serve(self: &Arc<Self>) -> Option<(N, Place<N>)> {
        loop {
            let mut line = self.line();
            if line.free == 0 {
                return None;
            }
            let (_, waiter) = line.waiting.pop_first()?;
            line.free = line.free.saturating_sub(1);
            match waiter {
                Waiter::Object(object) => {
                    line.due.remove(&object);
                    line.running.insert(object.clone(), None);
                    let place = Place {
                        queue: Arc::clone(self),
                        object: object.clone(),
                        held: AtomicBool::new(true),
                    };
                    return Some((object, place));
                }
                Waiter::Reconciliation(waits) => {
                    drop(line);
                    // One that was dropped meanwhile gives it back.
                    drop(waits.send(Granted(Some(Arc::clone(self)))));
                }
            }
        }
    }

    /// A reconciliation that gave its place back waits for one.
    fn wait(&self) -> oneshot::Receiver<Granted<N>> {
        let (given, waits) = oneshot::channel();
        let mut line = self.line();
        let rank = line.rank(Urgency::Continuation);
        line.waiting.insert(rank, Waiter::Reconciliation(given));
        drop(line);
        self.moved.notify_one();
        waits
    }

    fn leave(&self) {
        let mut line = self.line();
        line.free = line.free.saturating_add(1);
        drop(line);
        self.moved.notify_one();
    }

    fn line(&self) -> MutexGuard<'_, Line<N>> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<N: Clone + Eq + Hash> Line<N> {
    fn rank(&mut self, urgency: Urgency) -> Rank {
        let due = after(urgency.patience());
        self.arrived = self.arrived.wrapping_add(1);
        (due, self.arrived)
    }
}

/// A place that was given to a reconciliation; dropped, it is free again.
struct Granted<N: Clone + Eq + Hash>(Option<Arc<Queue<N>>>);

impl<N: Clone + Eq + Hash> Drop for Granted<N> {
    fn drop(&mut self) {
        if let Some(queue) = &self.0 {
            queue.leave();
        }
    }
}

/// The place of one reconciliation; dropped, the object is no longer reconciled.
pub(crate) struct Place<N: Clone + Eq + Hash> {
    queue: Arc<Queue<N>>,
    object: N,
    held: AtomicBool,
}

impl<N: Clone + Eq + Hash> Place<N> {
    /// Waits for something without the place, and then for a place again.
    pub(crate) async fn aside<T>(&self, waited: impl Future<Output = T>) -> T {
        self.held.store(false, Ordering::Release);
        self.queue.leave();
        let result = waited.await;
        if let Ok(mut granted) = self.queue.wait().await {
            // From here on it is this one's to give back.
            drop(mem::take(&mut granted.0));
            self.held.store(true, Ordering::Release);
        }
        result
    }
}

impl<N: Clone + Eq + Hash> Drop for Place<N> {
    fn drop(&mut self) {
        if self.held.load(Ordering::Acquire) {
            self.queue.leave();
        }
        let again = self.queue.line().running.remove(&self.object).flatten();
        if let Some(urgency) = again {
            self.queue.push(self.object.clone(), urgency);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn next(queue: &Arc<Queue<u32>>) -> (u32, Place<u32>) {
        tokio::time::timeout(Duration::from_secs(1), queue.next())
            .await
            .expect("an object is due and a place is free")
    }

    fn is_idle(queue: &Arc<Queue<u32>>) -> bool {
        queue.serve().is_none()
    }

    #[tokio::test(start_paused = true)]
    async fn objects_are_served_in_the_order_in_which_they_became_due() {
        let queue = Queue::new(1);
        for object in [3, 1, 2, 1] {
            queue.push(object, Urgency::Event);
        }
        for object in [3, 1, 2] {
            assert_eq!(next(&queue).await.0, object);
        }
        assert!(is_idle(&queue), "what is due twice is served once");
    }

    #[tokio::test(start_paused = true)]
    async fn what_happened_overtakes_routine_looks_and_does_not_starve_them() {
        let queue = Queue::new(1);
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
    async fn what_was_begun_goes_on_first_and_keeps_no_event_waiting_for_longer_than_a_second() {
        let queue = Queue::new(1);
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
    async fn an_object_that_becomes_due_meanwhile_is_served_again_and_never_twice_at_once() {
        let queue = Queue::new(2);
        queue.push(1, Urgency::Event);
        let (_, place) = next(&queue).await;
        queue.push(1, Urgency::Event);
        assert!(is_idle(&queue));
        drop(place);
        assert_eq!(next(&queue).await.0, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_aside_holds_no_place_and_gets_one_back_in_its_turn() {
        let queue = Queue::new(1);
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
        assert!(!aside.is_finished(), "it waits for a place");
        drop(other);
        assert!(is_idle(&queue), "the place goes to who came back");
        let place = aside.await.expect("it goes on");
        queue.push(3, Urgency::Event);
        assert!(is_idle(&queue));
        drop(place);
        assert_eq!(next(&queue).await.0, 3);
    }

    #[tokio::test(start_paused = true)]
    async fn a_place_is_free_again_whenever_its_reconciliation_is_dropped() {
        let queue = Queue::new(1);
        queue.push(1, Urgency::Event);
        let (_, place) = next(&queue).await;
        // While it waits for an answer.
        let aside = tokio::spawn(async move { place.aside(std::future::pending::<()>()).await });
        tokio::task::yield_now().await;
        aside.abort();
        let _ = aside.await;
        queue.push(2, Urgency::Event);
        let (_, place) = next(&queue).await;
        // While it waits for a place; the one that it is given is given back.
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
    async fn a_closed_queue_lets_what_runs_go_on_and_takes_nothing_more() {
        let queue = Queue::new(1);
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
