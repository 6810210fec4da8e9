//! The operator's memory of its objects, in addition to what is stored. It may be lost at any time.

mod work;
mod writes;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use okt_core::reconcile as facts;
use serde::Serialize;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub(crate) use self::work::{Piece, Stage, Work};
pub(crate) use self::writes::{DraftNews, FailedWrite, LastWrite, Scope, Trouble, Writes};
use crate::author::asked::Sight;
use crate::author::pass::PassMemory;
use crate::resources::OwnedMemory;
use crate::sharding::ranges::{Range, Ranges};
use crate::wire::read;

/// The memory of one operator's objects, by uid; objects of which nothing is known are left out.
#[derive(Default)]
pub(crate) struct Memory(Mutex<HashMap<String, Entry>>);

/// An object in the memory; one at rest takes next to nothing.
enum Entry {
    /// It is at rest.
    Settled(LastWrite),
    /// It is not at rest.
    Known(Arc<Known>),
}

/// Why an object is no longer watched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Disappeared {
    /// It is gone: its work is cancelled.
    Gone,
    /// Another replica or operator may act on it now: its work is dropped, as by a crash.
    Left,
}

impl Entry {
    /// Ends the work of an object that is forgotten.
    fn end(self, disappeared: Disappeared) {
        if let Self::Known(known) = self {
            match disappeared {
                Disappeared::Gone => known.gone.cancel(),
                Disappeared::Left => known.dropped.cancel(),
            }
        }
    }

    fn known(&self) -> Option<&Arc<Known>> {
        match self {
            Self::Settled(_) => None,
            Self::Known(known) => Some(known),
        }
    }

    /// Returns what its work says; yes for an object that is being reconciled.
    fn says(&self, says: impl Fn(&Work) -> bool) -> bool {
        self.known()
            .is_some_and(|known| match known.remembered.try_lock() {
                Ok(remembered) => says(&remembered.work),
                Err(_) => true,
            })
    }
}

impl Memory {
    /// Returns what is known of an object.
    pub(crate) fn of(&self, uid: &str) -> Arc<Known> {
        let mut objects = self.objects();
        let seen = match objects.get_mut(uid) {
            Some(Entry::Known(known)) => return Arc::clone(known),
            Some(Entry::Settled(seen)) => std::mem::take(seen),
            None => LastWrite::default(),
        };
        let known = Arc::new(Known::having(seen));
        objects.insert(uid.to_owned(), Entry::Known(Arc::clone(&known)));
        known
    }

    /// Returns whether a version of an object is the operator's last write, or older. Probably so is one that arrives
    /// during a reconciliation.
    pub(crate) fn is_own(&self, meta: &ObjectMeta) -> bool {
        let version = meta.resource_version.as_deref();
        match self.objects().get(meta.uid.as_deref().unwrap_or_default()) {
            None => false,
            Some(Entry::Settled(seen)) => seen.is_at_least(version),
            Some(Entry::Known(known)) => {
                let remembered = known.remembered.try_lock();
                remembered.map_or(true, |it| it.seen.is_at_least(version))
            }
        }
    }

    /// Ends the reconciliation of an object: forgets what is no longer needed.
    pub(crate) fn end_reconciliation(&self, uid: &str, known: &Arc<Known>) {
        let mut objects = self.objects();
        // Another thread may hold it too, and be about to set a flag.
        let ours = |entry: &Entry| {
            (entry.known())
                .is_some_and(|own| Arc::ptr_eq(own, known) && Arc::strong_count(own) == 2)
        };
        if !objects.get(uid).is_some_and(ours) {
            return;
        }
        let Ok(mut remembered) = known.remembered.try_lock() else {
            return;
        };
        if known.is_called() || !remembered.is_settled() {
            return;
        }
        let seen = std::mem::take(&mut remembered.seen);
        match seen.version {
            Some(_) => objects.insert(uid.to_owned(), Entry::Settled(seen)),
            None => objects.remove(uid),
        };
    }

    fn objects(&self) -> MutexGuard<'_, HashMap<String, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets an object that has disappeared, and ends its work.
    pub(crate) fn forget(&self, uid: &str, disappeared: Disappeared) {
        if let Some(entry) = self.objects().remove(uid) {
            entry.end(disappeared);
        }
    }

    /// Notes that every object in these ranges may be written again.
    pub(crate) fn reopen(&self, ranges: Ranges) {
        let mut objects = self.objects();
        let opened = objects
            .iter_mut()
            .filter(|(uid, _)| ranges.contains(Range::of(uid)));
        for (_, entry) in opened {
            match entry {
                Entry::Settled(seen) => seen.reported = false,
                Entry::Known(known) => known.reopened.store(true, Ordering::Release),
            }
        }
    }

    /// Forgets the remembered versions and writes, because the history of the API server went back.
    pub(crate) fn rewind(&self) {
        for entry in self.objects().values_mut() {
            match entry {
                Entry::Settled(seen) => *seen = LastWrite::default(),
                Entry::Known(known) => known.rewound.store(true, Ordering::Release),
            }
        }
    }

    /// Returns how many objects have work under way: running, cleaning up, or ended and not recorded yet.
    pub(crate) fn under_way(&self) -> usize {
        let objects = self.objects();
        let under_way = objects
            .values()
            .filter(|entry| entry.says(Work::is_under_way));
        under_way.count()
    }

    /// Returns the ranges with objects that are being reconciled, or have work that another replica must wait for.
    pub(crate) fn busy(&self) -> Ranges {
        let objects = self.objects();
        let busy = objects
            .iter()
            .filter(|(_, entry)| entry.says(Work::is_busy));
        busy.map(|(uid, _)| Range::of(uid)).collect()
    }

    /// Forgets the objects in these ranges and drops their work, without cancelling it: another replica resumes it.
    /// Returns their uids.
    pub(crate) fn abandon(&self, ranges: Ranges) -> Vec<String> {
        self.keep_only(|uid| !ranges.contains(Range::of(uid)), Disappeared::Left)
    }

    /// Forgets every object that is not alive, after a list, and ends its work; returns the uids that it forgot.
    pub(crate) fn keep_only(
        &self,
        alive: impl Fn(&str) -> bool,
        disappeared: Disappeared,
    ) -> Vec<String> {
        let mut objects = self.objects();
        let gone = objects.extract_if(|uid, _| !alive(uid));
        gone.map(|(uid, entry)| {
            entry.end(disappeared);
            uid
        })
        .collect()
    }
}

/// The memory of one object.
#[derive(Default)]
pub(crate) struct Known {
    /// Cancelled when the object is gone.
    pub(crate) gone: CancellationToken,
    /// Cancelled when another replica or operator may act on the object: what runs for it here is dropped.
    pub(crate) dropped: CancellationToken,
    /// A reconcile request named the object: waiting work may be called again.
    pub(crate) named: AtomicBool,
    /// The CRD or the leadership has changed: a write that was refused before may succeed now.
    reopened: AtomicBool,
    /// The history of the API server went back.
    rewound: AtomicBool,
    /// Locked while the object is reconciled; reconciliations of one object never overlap anyway.
    pub(crate) remembered: tokio::sync::Mutex<Remembered>,
}

/// The values that are remembered of one object between reconciliations: six, each with one owner.
#[derive(Default)]
pub(crate) struct Remembered {
    /// The last write that succeeded.
    pub(crate) seen: LastWrite,
    /// The work of the state on record.
    pub(crate) work: Work,
    /// The calls of the application's code.
    pub(crate) sight: Sight,
    /// The runs of the pass.
    pub(crate) pass: PassMemory,
    /// The owned resources.
    pub(crate) owned: OwnedMemory,
    /// The other writes.
    pub(crate) writes: Writes,
}

impl Remembered {
    /// Returns whether only the version of the last write is known.
    pub(crate) fn is_settled(&self) -> bool {
        // Destructured, so that a new field has to be considered here.
        let Self {
            seen: _,
            work,
            sight,
            pass,
            owned,
            writes,
        } = self;
        work.is_empty()
            && sight.is_empty()
            && pass.is_empty()
            && owned.is_empty()
            && writes.is_empty()
    }

    /// Returns whether the application did not answer the last call of some kind.
    pub(crate) fn is_silent(&self) -> bool {
        self.sight.is_silent() || self.owned.is_silent()
    }

    /// Notes that the finalizer is dropped, and cancels the object's work.
    pub(crate) fn release(&mut self) {
        self.work.cancel();
        self.writes.released = true;
    }

    /// Returns the memory of writes, for a decision about this object.
    pub(crate) fn facts_of_writes(&self, meta: &ObjectMeta) -> facts::WriteFacts {
        let trouble = &self.writes.trouble;
        facts::WriteFacts {
            behind: (self.seen).is_newer_than(meta.resource_version.as_deref()),
            wait: trouble.wait(meta),
            unshown: trouble.is_unshown(meta),
            refused: trouble.is_refused(),
            written: None,
            draft: None,
            side_wait: self.seen.side_wait(),
        }
    }

    /// Notes that a status was written to this version of an object, and what the answer says of it. `waits`: something
    /// that others left in the status is still to be removed.
    pub(crate) fn status_written(
        &mut self,
        before: &ObjectMeta,
        after: &ObjectMeta,
        said: &impl Serialize,
        waits: bool,
    ) {
        // A write that changes nothing although something differs is not repeated on the same version.
        let version = &before.resource_version;
        let is_vain = !waits && after.resource_version == *version;
        self.writes.vain = is_vain.then(|| Box::new((version.clone(), read::revision(said))));
        self.seen.at = Some(Instant::now());
        self.writes.trouble = Trouble::default();
    }

    /// Returns whether the same status was written to this version of the object before, and changed nothing.
    pub(crate) fn is_in_vain(&self, meta: &ObjectMeta, status: &impl Serialize) -> bool {
        let vain = self.writes.vain.as_ref();
        vain.is_some_and(|vain| vain.0 == meta.resource_version && vain.1 == read::revision(status))
    }

    /// Lets every write be retried, and forgets work that has not begun: another operator may have been the leader
    /// meanwhile.
    fn reopen(&mut self) {
        self.writes.trouble = Trouble::default();
        self.seen.reported = false;
        self.work.doubt();
    }

    /// Forgets everything that belongs to a lost history of the API server; work continues if it is still on record.
    fn rewind(&mut self) {
        self.seen = LastWrite::default();
        self.writes = Writes::default();
    }
}

impl Known {
    fn having(seen: LastWrite) -> Self {
        let remembered = Remembered {
            seen,
            ..Remembered::default()
        };
        Self {
            remembered: tokio::sync::Mutex::new(remembered),
            ..Self::default()
        }
    }

    /// Returns whether a flag is set for the next reconciliation.
    fn is_called(&self) -> bool {
        let flags = [&self.named, &self.reopened, &self.rewound];
        flags.iter().any(|flag| flag.load(Ordering::Acquire))
    }

    /// Applies the events that concerned all objects since the object's last reconciliation.
    pub(crate) fn catch_up(&self, remembered: &mut Remembered) {
        if self.rewound.swap(false, Ordering::AcqRel) {
            remembered.rewind();
        }
        if self.reopened.swap(false, Ordering::AcqRel) {
            remembered.reopen();
        }
    }

    /// Returns whether the CRD or the leadership has changed since the object's reconciliation began.
    pub(crate) fn is_reopened(&self) -> bool {
        self.reopened.load(Ordering::Acquire)
    }

    /// Returns whether a reconcile request named the object since the last call.
    pub(crate) fn take_name(&self) -> bool {
        self.named.swap(false, Ordering::AcqRel)
    }
}

#[cfg(test)]
mod tests {
    use okt_core::Answer;

    use super::*;

    fn reconcile(memory: &Memory, change: impl FnOnce(&mut Remembered)) {
        let known = memory.of("uid");
        let mut remembered = known.remembered.try_lock().expect("no other one");
        known.catch_up(&mut remembered);
        change(&mut remembered);
        drop(remembered);
        memory.end_reconciliation("uid", &known);
    }

    fn is_slim(memory: &Memory) -> bool {
        let objects = memory.objects();
        objects.get("uid").and_then(Entry::known).is_none()
    }

    fn see(version: &str) -> impl FnOnce(&mut Remembered) {
        move |it| it.seen.version = Some(version.to_owned())
    }

    #[test]
    fn only_the_version_of_the_last_write_is_kept_for_an_object_at_rest() {
        let memory = Memory::default();
        reconcile(&memory, |_| {});
        assert!(memory.objects().is_empty());
        reconcile(&memory, see("7"));
        assert!(is_slim(&memory));
        reconcile(&memory, |it| assert!(it.seen.is_newer_than(Some("6"))));
        reconcile(&memory, |it| assert!(!it.seen.is_newer_than(Some("7"))));
        assert!(is_slim(&memory));
    }

    #[test]
    fn a_version_is_the_operators_own_up_to_its_last_write() {
        let memory = Memory::default();
        let is_own = |uid: &str, version: &str| {
            memory.is_own(&ObjectMeta {
                uid: Some(uid.to_owned()),
                resource_version: Some(version.to_owned()),
                ..ObjectMeta::default()
            })
        };
        assert!(!is_own("uid", "7"));
        reconcile(&memory, see("7"));
        let is: Vec<_> = ["6", "7", "8"].map(|it| is_own("uid", it)).into();
        assert_eq!(is, [true, true, false]);
        assert!(!is_own("other", "7"));
        let known = memory.of("uid");
        assert!(!is_own("uid", "8"));
        let _reconciled = known.remembered.try_lock().expect("no other one");
        assert!(is_own("uid", "8"));
    }

    #[test]
    fn whatever_the_next_reconciliation_needs_is_kept() {
        for change in [
            |it: &mut Remembered| {
                let mut piece = Piece::new("uid/1".to_owned(), 1);
                piece.stage = Stage::Ended(Ok(Answer::Next));
                it.work.piece = Some(piece);
            },
            |it: &mut Remembered| it.work.ending = Some(CancellationToken::new()),
            |it: &mut Remembered| it.sight.failed = 1,
            |it: &mut Remembered| it.writes.vain = Some(Box::default()),
            |it: &mut Remembered| it.writes.unreadable = Some(Box::default()),
        ] {
            let memory = Memory::default();
            reconcile(&memory, change);
            assert!(!is_slim(&memory));
        }
    }

    #[test]
    fn nothing_is_kept_of_an_object_that_is_gone() {
        let memory = Memory::default();
        reconcile(&memory, |it| it.sight.failed = 1);
        let known = memory.of("uid");
        memory.forget("uid", Disappeared::Gone);
        assert!(memory.objects().is_empty());
        assert!(known.gone.is_cancelled(), "its work is no longer wanted");
        reconcile(&memory, see("7"));
        assert_eq!(memory.keep_only(|_| false, Disappeared::Gone), ["uid"]);
        assert!(memory.objects().is_empty());
    }

    #[test]
    fn the_pass_of_an_object_at_rest_runs_again_once_every_object_may_be_written() {
        let memory = Memory::default();
        reconcile(&memory, |it| {
            it.seen.version = Some("7".to_owned());
            it.seen.reported = true;
        });
        reconcile(&memory, |it| assert!(it.seen.reported));
        assert!(is_slim(&memory));
        memory.reopen(Ranges::ALL);
        reconcile(&memory, |it| assert!(!it.seen.reported));
    }

    #[test]
    fn a_request_at_the_end_of_a_reconciliation_is_not_lost() {
        let memory = Memory::default();
        let known = memory.of("uid");
        // Another thread has looked it up and is about to name the object.
        let naming = memory.of("uid");
        memory.end_reconciliation("uid", &known);
        naming.named.store(true, Ordering::Release);
        drop(naming);
        memory.end_reconciliation("uid", &known);
        assert!(memory.of("uid").take_name());
    }
}
