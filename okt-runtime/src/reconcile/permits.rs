//! Permits for actions: they limit how many attempts run at the same time, and order those that wait.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use okt_wire::clock::after;

/// The default number of attempts that run at the same time.
pub(crate) const ACTIONS: usize = 4096;

/// One of this many permits is for deletions alone.
const LEAVING_SHARE: usize = 8;

/// The time in which as many resumed attempts begin as there are permits.
const RAMP: Duration = Duration::from_secs(40);

/// Why an attempt begins, in the order in which attempts get permits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Purpose {
    /// The object is being deleted.
    Leaving,
    /// The work is new, or a retry.
    Working,
    /// The work was in flight when this process began.
    Resuming,
}

/// The permits of the attempts of one operator.
pub(crate) struct Permits(Mutex<PermitState>);

struct PermitState {
    limit: usize,
    running: usize,
    /// The objects that wait, in order.
    waiting: BTreeMap<(Purpose, u64), Waiter>,
    /// The rank of each object that waits.
    ranks: HashMap<String, (Purpose, u64)>,
    /// Permits that were given to objects that waited, until their attempts begin.
    granted: HashMap<String, Permit>,
    arrived: u64,
    /// When the next resumed attempt may begin.
    resumes: Instant,
    /// When each object may resume.
    slots: HashMap<String, Instant>,
}

struct Waiter {
    uid: String,
    wake: Box<dyn FnOnce() + Send>,
}

/// The permit of an attempt; dropping it frees the permit.
pub(crate) struct Permit(Arc<Permits>);

impl Permits {
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self(Mutex::new(PermitState {
            limit: limit.max(1),
            running: 0,
            waiting: BTreeMap::new(),
            ranks: HashMap::new(),
            granted: HashMap::new(),
            arrived: 0,
            resumes: Instant::now(),
            slots: HashMap::new(),
        })))
    }

    /// Returns a permit for an attempt for the object of this uid.
    ///
    /// # Errors
    ///
    /// If the attempt has to wait: for this time, or, without a time, until the object is woken. It keeps its rank for the next call, until [`leave`](Self::leave) is called.
    pub(crate) fn take(
        self: &Arc<Self>,
        uid: &str,
        purpose: Purpose,
        wake: impl FnOnce() + Send + 'static,
    ) -> Result<Permit, Option<Duration>> {
        let mut state = self.0.lock();
        if let Some(permit) = state.granted.remove(uid) {
            state.slots.remove(uid);
            return Ok(permit);
        }
        if purpose == Purpose::Resuming {
            let left = state.slot(uid).saturating_duration_since(Instant::now());
            if !left.is_zero() {
                return Err(Some(left));
            }
        }
        let is_next = |state: &PermitState| {
            let first = state.waiting.keys().next();
            first.is_none_or(|first| match state.ranks.get(uid) {
                Some(own) => own <= first,
                None => purpose < first.0,
            })
        };
        if state.has_room(purpose) && is_next(&state) {
            state.forget(uid);
            state.slots.remove(uid);
            state.running = state.running.saturating_add(1);
            return Ok(Permit(Arc::clone(self)));
        }
        let rank = match state.ranks.get(uid).copied() {
            Some(rank) if rank.0 == purpose => rank,
            _ => {
                state.forget(uid);
                state.arrived = state.arrived.wrapping_add(1);
                (purpose, state.arrived)
            }
        };
        state.ranks.insert(uid.to_owned(), rank);
        let waiter = Waiter {
            uid: uid.to_owned(),
            wake: Box::new(wake),
        };
        state.waiting.insert(rank, waiter);
        Err(None)
    }

    /// Withdraws the object of this uid; a permit that was granted to it is free again.
    pub(crate) fn leave(&self, uid: &str) {
        let permit = {
            let mut state = self.0.lock();
            state.forget(uid);
            state.slots.remove(uid);
            state.granted.remove(uid)
        };
        // Dropping it takes the lock again.
        drop(permit);
    }

    /// Grants free permits to the objects that wait.
    fn grant(self: &Arc<Self>) {
        loop {
            let mut state = self.0.lock();
            let Some((&rank, _)) = state.waiting.first_key_value() else {
                return;
            };
            if !state.has_room(rank.0) {
                return;
            }
            let Some(waiter) = state.waiting.remove(&rank) else {
                return;
            };
            state.ranks.remove(&waiter.uid);
            state.running = state.running.saturating_add(1);
            let permit = Permit(Arc::clone(self));
            state.granted.insert(waiter.uid, permit);
            drop(state);
            (waiter.wake)();
        }
    }
}

impl PermitState {
    fn has_room(&self, purpose: Purpose) -> bool {
        let reserved = match purpose {
            Purpose::Leaving => 0,
            Purpose::Working | Purpose::Resuming => self.limit / LEAVING_SHARE,
        };
        self.running < self.limit.saturating_sub(reserved)
    }

    fn forget(&mut self, uid: &str) {
        if let Some(rank) = self.ranks.remove(uid) {
            self.waiting.remove(&rank);
        }
    }

    /// Returns when an object may resume its work: one after the other, so that a restart causes no burst.
    fn slot(&mut self, uid: &str) -> Instant {
        if let Some(slot) = self.slots.get(uid) {
            return *slot;
        }
        let now = Instant::now();
        let slot = self.resumes.max(now);
        let limit = u32::try_from(self.limit).unwrap_or(u32::MAX);
        let pause = RAMP.checked_div(limit).unwrap_or_default();
        self.resumes = after(slot.saturating_duration_since(now).saturating_add(pause));
        self.slots.insert(uid.to_owned(), slot);
        slot
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let permits = &self.0;
        let mut state = permits.0.lock();
        state.running = state.running.saturating_sub(1);
        drop(state);
        permits.grant();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(woken: &Arc<Mutex<Vec<&'static str>>>) -> Vec<&'static str> {
        std::mem::take(&mut *woken.lock())
    }

    #[tokio::test(start_paused = true)]
    async fn deletions_have_reserved_places_and_come_first_and_others_wait_in_order() {
        let permits = Permits::new(8);
        let woken: Arc<Mutex<Vec<&'static str>>> = Arc::default();
        let take = |uid: &'static str, purpose| {
            let woken = Arc::clone(&woken);
            permits.take(uid, purpose, move || {
                woken.lock().push(uid);
            })
        };
        let mut running: Vec<_> = (0..7)
            .map(|_| take("running", Purpose::Working).expect("a permit"))
            .collect();
        assert_eq!(take("first", Purpose::Working).err(), Some(None));
        assert_eq!(take("second", Purpose::Working).err(), Some(None));
        let leaving = take("leaving", Purpose::Leaving).expect("a permit");
        assert_eq!(take("late", Purpose::Leaving).err(), Some(None));
        drop(leaving);
        assert_eq!(names(&woken), ["late"]);
        permits.leave("late");
        drop(running.pop());
        assert_eq!(names(&woken), ["first"]);
        // An object that asks again keeps its rank, and no object overtakes it.
        assert_eq!(take("second", Purpose::Working).err(), Some(None));
        assert_eq!(take("third", Purpose::Working).err(), Some(None));
        // A granted permit that is not wanted goes to the next object.
        permits.leave("first");
        assert_eq!(names(&woken), ["second"]);
        assert!(take("second", Purpose::Working).is_ok());
        assert_eq!(names(&woken), ["third"], "its permit was dropped at once");
    }

    #[tokio::test(start_paused = true)]
    async fn resumed_attempts_begin_one_after_the_other() {
        let permits = Permits::new(40);
        let begin = Instant::now();
        let mut waits: Vec<Duration> = Vec::new();
        for object in 0..10 {
            let uid = object.to_string();
            match permits.take(&uid, Purpose::Resuming, || {}) {
                Ok(_) => waits.push(Duration::ZERO),
                Err(Some(wait)) => waits.push(wait),
                Err(None) => panic!("there are permits"),
            }
        }
        let seconds: Vec<u64> = waits.iter().map(Duration::as_secs).collect();
        assert_eq!(seconds, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        tokio::time::advance(Duration::from_secs(5)).await;
        assert!(permits.take("5", Purpose::Resuming, || {}).is_ok());
        assert_eq!(begin.elapsed(), Duration::from_secs(5));
    }
}
