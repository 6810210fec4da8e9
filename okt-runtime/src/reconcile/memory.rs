//! The operator's memory of its objects, in addition to what is stored. It may be lost at any time.

use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use okt_core::conditions::Condition;
use okt_core::machine::{LastWrite, Machine};
use okt_core::record::Recorded;
use okt_core::{Answer, Lifecycle, StateId};
use okt_reach::Failure;
use okt_sharding::ranges::{Range, Ranges};
use okt_telemetry::event::{Attempt, Occurrence};
use okt_wire::clock::moment;
use okt_wire::parts::OtherHashes;
use okt_wire::read;
use okt_wire::status::Position;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::reconcile::acting::DeadlineLimits;
use crate::reconcile::work::{ActionRun, ObjectWork};
use crate::resources::OwnedMemory;

/// The memory of one operator's objects, by uid; objects of which nothing is known are left out.
#[derive(Default)]
pub(crate) struct ObjectMemory(Mutex<HashMap<String, MemoryEntry>>);

/// An object in the memory; one at rest takes next to nothing.
enum MemoryEntry {
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

impl MemoryEntry {
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

    /// Returns whether something is true of its memory; yes for an object that is being reconciled.
    fn is(&self, is: impl Fn(&Remembered) -> bool) -> bool {
        self.known()
            .is_some_and(|known| match known.remembered.try_lock() {
                Ok(remembered) => is(&remembered),
                Err(_) => true,
            })
    }
}

impl ObjectMemory {
    /// Returns what is known of an object.
    pub(crate) fn of(&self, uid: &str) -> Arc<Known> {
        let mut objects = self.0.lock();
        let seen = match objects.get_mut(uid) {
            Some(MemoryEntry::Known(known)) => return Arc::clone(known),
            Some(MemoryEntry::Settled(seen)) => std::mem::take(seen),
            None => LastWrite::default(),
        };
        let known = Arc::new(Known::having(seen));
        objects.insert(uid.to_owned(), MemoryEntry::Known(Arc::clone(&known)));
        known
    }

    /// Returns whether a version of an object is the operator's last write, or older. Probably so is one that arrives
    /// during a reconciliation.
    pub(crate) fn is_own(&self, meta: &ObjectMeta) -> bool {
        let version = read::version(meta);
        match self.0.lock().get(meta.uid.as_deref().unwrap_or_default()) {
            None => false,
            Some(MemoryEntry::Settled(seen)) => seen.is_at_least(version),
            Some(MemoryEntry::Known(known)) => {
                let remembered = known.remembered.try_lock();
                remembered.map_or(true, |it| it.machine.last_write().is_at_least(version))
            }
        }
    }

    /// Ends the reconciliation of an object: forgets what is no longer needed.
    pub(crate) fn end_reconciliation(&self, uid: &str, known: &Arc<Known>) {
        let mut objects = self.0.lock();
        // Another thread may hold it too, and be about to set a flag.
        let ours = |entry: &MemoryEntry| {
            entry
                .known()
                .is_some_and(|own| Arc::ptr_eq(own, known) && Arc::strong_count(own) == 2)
        };
        if !objects.get(uid).is_some_and(ours) {
            return;
        }
        let Ok(remembered) = known.remembered.try_lock() else {
            return;
        };
        let Some(seen) = remembered.at_rest().filter(|_| !known.is_called()) else {
            return;
        };
        match seen.version {
            Some(_) => objects.insert(uid.to_owned(), MemoryEntry::Settled(seen)),
            None => objects.remove(uid),
        };
    }

    /// Forgets an object that has disappeared, and ends its work.
    pub(crate) fn forget(&self, uid: &str, disappeared: Disappeared) {
        if let Some(entry) = self.0.lock().remove(uid) {
            entry.end(disappeared);
        }
    }

    /// Notes that every object in these ranges may be written again.
    pub(crate) fn reopen(&self, ranges: Ranges) {
        let mut objects = self.0.lock();
        let opened = objects
            .iter_mut()
            .filter(|(uid, _)| ranges.contains(Range::of(uid)));
        for (_, entry) in opened {
            match entry {
                MemoryEntry::Settled(seen) => seen.reported = false,
                MemoryEntry::Known(known) => known.reopened.store(true, Ordering::Release),
            }
        }
    }

    /// Forgets the remembered versions and writes, because the history of the API server went back.
    pub(crate) fn rewind(&self) {
        for entry in self.0.lock().values_mut() {
            match entry {
                MemoryEntry::Settled(seen) => *seen = LastWrite::default(),
                MemoryEntry::Known(known) => known.rewound.store(true, Ordering::Release),
            }
        }
    }

    /// Returns how many objects have work under way: running, cleaning up, or ended and not recorded yet.
    pub(crate) fn under_way(&self) -> usize {
        let objects = self.0.lock();
        let under_way = objects
            .values()
            .filter(|entry| entry.is(Remembered::is_under_way));
        under_way.count()
    }

    /// Returns the ranges with objects that are being reconciled, or have work that another replica must wait for.
    pub(crate) fn busy(&self) -> Ranges {
        let objects = self.0.lock();
        let busy = objects
            .iter()
            .filter(|(_, entry)| entry.is(Remembered::is_busy));
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
        let mut objects = self.0.lock();
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

/// The memory of one object between reconciliations: its machine, and the texts and handles that belong to it.
#[derive(Default)]
pub(crate) struct Remembered {
    /// Everything that decisions depend on.
    pub(crate) machine: Machine,
    /// The task and the texts of the work of the state on record.
    pub(crate) work: ObjectWork,
    /// The attempts on the owned resources.
    pub(crate) owned: OwnedMemory,
    /// Why the last pass run keeps work from beginning, and the conditions of its states.
    pub(crate) held: Option<(Failure, Vec<Condition>)>,
    /// The hash of the spec by this release, and the recorded one of an earlier release for the same spec.
    pub(crate) revision: Option<(u64, u64)>,
    /// The same for the parts of the spec that triggers name.
    pub(crate) parts: OtherHashes,
    /// When this process began to act on an object whose state has a deadline.
    acting: Option<Timestamp>,
    /// The reason and message of the writes that fail.
    pub(crate) failure: Option<Box<(&'static str, String)>>,
    /// Why the last outcome could not be written into a request.
    pub(crate) undelivered: String,
    /// The states that the observation named as events although no edge leads there, as last logged.
    pub(crate) refused_events: Vec<StateId>,
    /// The record of a write whose answer was lost, and what to publish if it was carried out.
    pub(crate) unanswered: Option<Box<(Recorded, DraftNews)>>,
    /// The object in the answer to the last write: the watch delivers the same object.
    pub(crate) answer: Option<Arc<dyn Any + Send + Sync>>,
}

/// What to publish when a write has succeeded.
pub(crate) struct DraftNews {
    pub(crate) happened: Vec<Occurrence>,
    /// Whether it is a transition.
    #[cfg(feature = "otel")]
    pub(crate) is_move: bool,
    /// The generation of the last transition before.
    #[cfg(feature = "otel")]
    pub(crate) before: Option<i64>,
}

impl Remembered {
    /// Returns the last write, if nothing else is worth remembering.
    pub(crate) fn at_rest(&self) -> Option<LastWrite> {
        // Destructured, so that a new field has to be considered here.
        let Self {
            machine,
            work,
            owned,
            revision,
            parts,
            acting,
            // These mean nothing without what the machine remembers of them.
            held: _,
            failure: _,
            undelivered: _,
            refused_events,
            unanswered,
            // It can be decoded again.
            answer: _,
        } = self;
        let is_empty = work.is_empty()
            && owned.is_empty()
            && refused_events.is_empty()
            && unanswered.is_none()
            && revision.is_none()
            && parts.is_empty()
            && acting.is_none();
        machine.at_rest(moment()).filter(|_| is_empty)
    }

    /// Returns when this process began to act on an object in a state with a deadline; none in other states.
    pub(crate) fn acts_since<S: Lifecycle>(
        &mut self,
        position: Option<&Position<S>>,
        now: Timestamp,
    ) -> Option<Timestamp> {
        let limits = position.and_then(DeadlineLimits::at);
        self.acting = limits.map(|_| self.acting.unwrap_or(now));
        self.acting
    }

    /// Returns the texts of the work that the machine knows; none before its first attempt.
    pub(crate) fn run(&self) -> Option<&ActionRun> {
        let (work, _) = self.machine.work()?;
        self.work.run.as_ref().filter(|run| run.work == work)
    }

    /// Returns the attempt that has begun, or the next one after it; none before the first.
    pub(crate) fn attempt(&self) -> Option<Attempt> {
        let (_, number) = self.machine.work()?;
        Some(self.run()?.attempt(number))
    }

    /// Returns the result that the task has ended with and that no reconciliation has recorded yet.
    pub(crate) fn result(&self) -> Option<&Result<Answer, Failure>> {
        let result = self.run()?.result.as_ref();
        result.filter(|_| self.machine.has_result())
    }

    /// Returns whether the application did not answer the last call of some kind.
    pub(crate) fn is_silent(&self) -> bool {
        self.machine.is_silent() || self.owned.is_silent()
    }

    /// Returns whether work runs or cleans up, or has ended with a result that can be recorded.
    pub(crate) fn is_under_way(&self) -> bool {
        self.machine.is_under_way() || self.work.is_running()
    }

    /// Returns whether another replica must wait before it acts on the object.
    ///
    /// It need not wait for work that only another process does.
    pub(crate) fn is_busy(&self) -> bool {
        self.work.is_here().unwrap_or_else(|| self.is_under_way())
    }

    /// Takes the object at this version, if the operator's last write created it.
    pub(crate) fn take_answer<K: Resource + Send + Sync + 'static>(
        &mut self,
        meta: &ObjectMeta,
    ) -> Option<Arc<K>> {
        let object = self.answer.take()?.downcast::<K>().ok()?;
        let version = &meta.resource_version;
        (version.is_some() && object.meta().resource_version == *version).then_some(object)
    }
}

impl Known {
    fn having(seen: LastWrite) -> Self {
        let remembered = Remembered {
            machine: Machine::of(seen),
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

    /// Passes to the machine what has happened since the last decision: to all objects, and to the tasks of this one.
    pub(crate) fn catch_up(&self, remembered: &mut Remembered) {
        if self.rewound.swap(false, Ordering::AcqRel) {
            remembered.machine.rewind();
            (remembered.unanswered, remembered.answer) = (None, None);
        }
        if self.reopened.swap(false, Ordering::AcqRel) {
            remembered.machine.reopen();
            // Until now, it may not have acted.
            remembered.acting = None;
        }
        remembered.work.catch_up(&mut remembered.machine);
    }

    /// Returns whether a reconcile request named the object since the last call.
    pub(crate) fn take_name(&self) -> bool {
        self.named.swap(false, Ordering::AcqRel)
    }
}

#[cfg(test)]
mod tests {
    use okt_core::machine::Version;

    use super::*;

    fn reconcile(memory: &ObjectMemory, change: impl FnOnce(&mut Remembered)) {
        let known = memory.of("uid");
        let mut remembered = known.remembered.try_lock().expect("no other one");
        known.catch_up(&mut remembered);
        change(&mut remembered);
        drop(remembered);
        memory.end_reconciliation("uid", &known);
    }

    fn is_slim(memory: &ObjectMemory) -> bool {
        let objects = memory.0.lock();
        objects.get("uid").and_then(MemoryEntry::known).is_none()
    }

    fn wrote(number: u64) -> impl FnOnce(&mut Remembered) {
        move |it| {
            it.machine = Machine::of(LastWrite {
                version: Some(Version::Number(number)),
                at: None,
                reported: true,
            });
        }
    }

    fn is_newer(than: u64, is: bool) -> impl FnOnce(&mut Remembered) {
        let than = Some(Version::Number(than));
        move |it| assert_eq!(it.machine.last_write().is_newer_than(than), is)
    }

    #[test]
    fn only_the_last_write_is_kept_for_an_object_at_rest() {
        let memory = ObjectMemory::default();
        reconcile(&memory, |_| {});
        assert!(memory.0.lock().is_empty());
        reconcile(&memory, wrote(7));
        assert!(is_slim(&memory));
        reconcile(&memory, is_newer(6, true));
        reconcile(&memory, is_newer(7, false));
        assert!(is_slim(&memory));
    }

    #[test]
    fn a_version_is_the_operators_own_up_to_its_last_write() {
        let memory = ObjectMemory::default();
        let is_own = |uid: &str, version: &str| {
            memory.is_own(&ObjectMeta {
                uid: Some(uid.to_owned()),
                resource_version: Some(version.to_owned()),
                ..ObjectMeta::default()
            })
        };
        assert!(!is_own("uid", "7"));
        reconcile(&memory, wrote(7));
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
            |it: &mut Remembered| it.machine.name(),
            |it: &mut Remembered| it.work.ending = Some(CancellationToken::new()),
            |it: &mut Remembered| it.refused_events.push(StateId(1)),
        ] {
            let memory = ObjectMemory::default();
            reconcile(&memory, change);
            assert!(!is_slim(&memory));
        }
    }

    #[test]
    fn nothing_is_kept_of_an_object_that_is_gone() {
        let memory = ObjectMemory::default();
        reconcile(&memory, |it| it.machine.name());
        let known = memory.of("uid");
        memory.forget("uid", Disappeared::Gone);
        assert!(memory.0.lock().is_empty());
        assert!(known.gone.is_cancelled(), "its work is no longer wanted");
        reconcile(&memory, wrote(7));
        assert_eq!(memory.keep_only(|_| false, Disappeared::Gone), ["uid"]);
        assert!(memory.0.lock().is_empty());
    }

    #[test]
    fn the_pass_of_an_object_at_rest_runs_again_once_every_object_may_be_written() {
        let memory = ObjectMemory::default();
        reconcile(&memory, wrote(7));
        reconcile(&memory, |it| assert!(it.machine.last_write().reported));
        assert!(is_slim(&memory));
        memory.reopen(Ranges::ALL);
        reconcile(&memory, |it| assert!(!it.machine.last_write().reported));
    }

    #[test]
    fn a_request_at_the_end_of_a_reconciliation_is_not_lost() {
        let memory = ObjectMemory::default();
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
