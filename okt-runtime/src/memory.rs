//! What the operator knows of its objects beside what is stored: running work, waits, its own last write.
//!
//! All of it may be lost at any time; a restart is no more than that.

use std::any::Any;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use okt_core::backoff::Backoff;
use okt_core::facts::{Said, Task};
use okt_core::{Answer, StateId};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::annotations;
use crate::asked::{Sight, Silence};
use crate::clock::after;
use crate::failure::Failure;
use crate::pass::Walks;
use crate::resources::Tended;
use crate::tasks::Running;

/// The objects of one operator, by uid; those of which nothing is known are left out.
#[derive(Default)]
pub(crate) struct Memory(Mutex<HashMap<String, Entry>>);

/// An object in the memory: a settled one takes next to nothing.
enum Entry {
    /// It is at rest.
    Settled(LastWrite),
    /// Everything else.
    Known(Arc<Known>),
}

/// What is kept of an object's last own write.
#[derive(Default)]
struct LastWrite {
    /// The version that it made.
    seen: Option<String>,
    /// When.
    at: Option<Instant>,
    /// It came after a walk.
    echo: bool,
}

impl Entry {
    fn known(&self) -> Option<&Arc<Known>> {
        match self {
            Self::Settled(_) => None,
            Self::Known(known) => Some(known),
        }
    }
}

impl Memory {
    /// What is known of an object.
    pub(crate) fn of(&self, uid: &str) -> Arc<Known> {
        let mut objects = self.objects();
        let last = match objects.get_mut(uid) {
            Some(Entry::Known(known)) => return Arc::clone(known),
            Some(Entry::Settled(last)) => std::mem::take(last),
            None => LastWrite::default(),
        };
        let known = Arc::new(Known::having(last));
        objects.insert(uid.to_owned(), Entry::Known(Arc::clone(&known)));
        known
    }

    /// The turn of an object has ended: what need not be known of it is forgotten.
    pub(crate) fn end_turn(&self, uid: &str, known: &Arc<Known>) {
        let mut objects = self.objects();
        // Beside the memory and this turn somebody else may hold it, and be about to say something.
        let ours = |entry: &Entry| {
            (entry.known())
                .is_some_and(|own| Arc::ptr_eq(own, known) && Arc::strong_count(own) == 2)
        };
        if !objects.get(uid).is_some_and(ours) {
            return;
        }
        let Ok(mut inner) = known.inner.try_lock() else {
            return;
        };
        if known.is_called() || !inner.is_settled() {
            return;
        }
        let last = LastWrite {
            seen: inner.seen.take(),
            at: inner.side_written.take(),
            echo: inner.walks.echo,
        };
        match last.seen {
            Some(_) => objects.insert(uid.to_owned(), Entry::Settled(last)),
            None => objects.remove(uid),
        };
    }

    fn objects(&self) -> MutexGuard<'_, HashMap<String, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The object is gone: its work is no longer wanted.
    pub(crate) fn forget(&self, uid: &str) {
        if let Some(Entry::Known(known)) = self.objects().remove(uid) {
            known.gone.cancel();
        }
    }

    /// Every object may be written again.
    pub(crate) fn reopen(&self) {
        for entry in self.objects().values_mut() {
            match entry {
                Entry::Settled(last) => last.echo = false,
                Entry::Known(known) => known.reopened.store(true, Ordering::Release),
            }
        }
    }

    /// The history of the API server went back: versions and writes that are remembered are of another one.
    pub(crate) fn rewind(&self) {
        for entry in self.objects().values_mut() {
            match entry {
                Entry::Settled(last) => *last = LastWrite::default(),
                Entry::Known(known) => known.rewound.store(true, Ordering::Release),
            }
        }
    }

    /// How many objects have work that runs, or that said something which no turn has taken yet.
    pub(crate) fn at_work(&self) -> usize {
        let at_work = |known: &&Arc<Known>| match known.inner.try_lock() {
            Ok(inner) => inner.is_at_work(),
            // It has its turn.
            Err(_) => true,
        };
        let objects = self.objects();
        objects
            .values()
            .filter_map(Entry::known)
            .filter(at_work)
            .count()
    }

    /// Forgets every object but these, after a list; returns those that it forgot.
    pub(crate) fn keep_only(&self, alive: impl Fn(&str) -> bool) -> Vec<String> {
        let mut objects = self.objects();
        let gone = objects.extract_if(|uid, _| !alive(uid));
        gone.map(|(uid, entry)| {
            if let Entry::Known(known) = entry {
                known.gone.cancel();
            }
            uid
        })
        .collect()
    }
}

/// What is known of one object.
#[derive(Default)]
pub(crate) struct Known {
    /// Cancelled when the object is gone.
    pub(crate) gone: CancellationToken,
    /// Somebody outside named the object, so what waits may be asked again.
    pub(crate) poked: AtomicBool,
    /// The CRD or the leadership has changed: what was refused before may be taken now.
    pub(crate) reopened: AtomicBool,
    /// The history of the API server went back: what is known of versions and writes is of another one.
    pub(crate) rewound: AtomicBool,
    /// Locked for the length of a turn; turns of one object never overlap anyway.
    pub(crate) inner: tokio::sync::Mutex<Inner>,
}

/// The part of [`Known`] that turns change.
#[derive(Default)]
pub(crate) struct Inner {
    /// The version of the object that the last own write made.
    pub(crate) seen: Option<String>,
    /// Since when the cache has only had versions that are older.
    pub(crate) behind: Option<Instant>,
    /// The object as that write's answer had it: the watch says the same again.
    pub(crate) written: Option<Arc<dyn Any + Send + Sync>>,
    /// The work of the present state.
    pub(crate) stage: Stage,
    /// The id of the action that `stage` is about.
    pub(crate) work: String,
    /// Somebody outside named the object since the attempt began.
    pub(crate) poked: bool,
    /// The attempt that runs or ran last, from 1; 0 where none did.
    pub(crate) attempt: u32,
    /// Failures in a row of the present work.
    pub(crate) failures: u32,
    /// Why the present work failed before, each reason once; what is told already is no news.
    pub(crate) told: Vec<String>,
    /// The generation under which that attempt was started.
    pub(crate) started_under: i64,
    /// The task, which may still be ending after its work was cancelled.
    pub(crate) running: Option<Running>,
    /// Looks at the application.
    pub(crate) sight: Sight,
    /// How long it is not asked for the extra status, because it did not answer.
    pub(crate) extra_silence: Silence,
    /// When the extra status or a progress text was last written by itself.
    pub(crate) side_written: Option<Instant>,
    /// Writes that failed in a row.
    pub(crate) trouble: Trouble,
    /// What was last said about an object that does not decode, and of which generation.
    pub(crate) undecodable: Option<Box<(String, Option<i64>)>>,
    /// States that the observation named although no edge leads there, as last reported.
    pub(crate) refused_events: Vec<StateId>,
    /// When what others left in the status was last taken away.
    pub(crate) tidied: Option<Instant>,
    /// A pause or the brake holds back what the work said.
    pub(crate) held: bool,
    /// The version of the object at which a write has changed nothing, and a hash of what it said.
    pub(crate) vain: Option<Box<(Option<String>, u64)>>,
    /// How what the object owns in the cluster stands.
    pub(crate) tended: Tended,
    /// What is known of walks through the pass.
    pub(crate) walks: Walks,
    /// The finalizer was dropped: events of the object that are still under way mean nothing.
    pub(crate) released: bool,
}

/// How far the work of the present state is, as far as this process knows.
#[derive(Default)]
pub(crate) enum Stage {
    /// Nothing was started here.
    #[default]
    Absent,
    /// The task runs.
    Running,
    /// The next call comes at this time, or when something changes if it asked for that.
    Waiting {
        /// When.
        due: Instant,
        /// It said `Wait`: a poke brings it forward.
        asked: bool,
    },
    /// It may begin as soon as what the object owns in the cluster is as the state asks for, and a place is free.
    Held {
        /// It was in flight when this process began.
        resumed: bool,
        /// It had said `Wait`: it is the same attempt.
        asked: bool,
        /// What it waits for.
        why: Hold,
    },
    /// It ended and said this, which no turn has taken yet.
    Ended(Result<Answer, Failure>),
}

/// What work waits for that may begin otherwise.
#[derive(Clone, Copy)]
pub(crate) enum Hold {
    /// What the object owns in the cluster is not as the state asks for.
    Resources,
    /// All places for actions are taken.
    Place,
    /// Its turn to be resumed comes at this time.
    Slot(Instant),
}

/// Writes of one object that failed in a row, and how long the next one waits.
#[derive(Debug, Default)]
pub(crate) struct Trouble {
    times: u32,
    since: Option<Instant>,
    wait: Option<(Instant, Scope)>,
    refused: bool,
}

/// What has to change for a write to be tried before its wait is over: nothing else brings it forward.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Scope {
    /// The object: the write named a version that was no longer the newest.
    Version(Option<String>),
    /// What the user asks for.
    Request {
        /// The generation of the spec.
        generation: Option<i64>,
        /// Whether the object is paused.
        paused: bool,
        /// Whether it is given up.
        abandoned: bool,
    },
}

impl Scope {
    /// The version of an object.
    pub(crate) fn version(meta: &ObjectMeta) -> Self {
        Self::Version(meta.resource_version.clone())
    }

    /// What the user asks for by an object.
    pub(crate) fn request(meta: &ObjectMeta) -> Self {
        Self::Request {
            generation: meta.generation,
            paused: annotations::is_paused(meta),
            abandoned: annotations::is_abandoned(meta),
        }
    }

    fn is_of(&self, meta: &ObjectMeta) -> bool {
        *self
            == match self {
                Self::Version(_) => Self::version(meta),
                Self::Request { .. } => Self::request(meta),
            }
    }
}

impl Trouble {
    /// How many failures of how long in a row are taken to last.
    const LASTING: (u32, Duration) = (5, Duration::from_mins(1));

    /// Returns how long the next write waits; none where it may be tried.
    pub(crate) fn wait(&self, meta: &ObjectMeta) -> Option<Duration> {
        let (until, scope) = self.wait.as_ref()?;
        let left = until.saturating_duration_since(Instant::now());
        (scope.is_of(meta) && !left.is_zero()).then_some(left)
    }

    /// Notes a write that failed; returns how long the next one waits.
    pub(crate) fn failed(
        &mut self,
        scope: Scope,
        refused: bool,
        backoff: Backoff,
        seed: u64,
    ) -> Duration {
        self.times = self.times.saturating_add(1);
        self.since.get_or_insert_with(Instant::now);
        let wait = backoff.wait(self.times, seed);
        self.wait = Some((after(wait), scope));
        self.refused = refused;
        wait
    }

    /// Whether writes have failed so often and for so long that people should know.
    pub(crate) fn lasts(&self) -> bool {
        let (times, time) = Self::LASTING;
        self.times >= times && self.since.is_some_and(|since| since.elapsed() >= time)
    }
}

impl Inner {
    /// Whether a version is older than the operator's own last write.
    ///
    /// Versions compare as numbers (official since Kubernetes 1.35); others only for being the same.
    pub(crate) fn is_behind(&self, version: Option<&str>) -> bool {
        let (Some(seen), Some(version)) = (self.seen.as_deref(), version) else {
            return false;
        };
        match (seen.parse::<u128>(), version.parse::<u128>()) {
            (Ok(seen), Ok(version)) => version < seen,
            (Err(_), _) | (_, Err(_)) => false,
        }
    }

    /// The object at this version, if the last own write made it; told once, so that it is not kept.
    pub(crate) fn take_written<K: Resource + Send + Sync + 'static>(
        &mut self,
        version: Option<&str>,
    ) -> Option<Arc<K>> {
        let object = self.written.take()?.downcast::<K>().ok()?;
        (version.is_some() && object.meta().resource_version.as_deref() == version)
            .then_some(object)
    }

    /// Forgets all that belongs to a history of the API server that is lost; work goes on if it still is on record.
    pub(crate) fn rewind(&mut self) {
        self.seen = None;
        self.behind = None;
        self.written = None;
        self.vain = None;
        self.undecodable = None;
        self.released = false;
        self.trouble = Trouble::default();
        self.walks.echo = false;
    }

    /// Whether all that is known is which version the last own write made.
    fn is_settled(&self) -> bool {
        // Whole, so that a field that is added has to be judged here.
        let Self {
            // These are what a settled object is remembered by.
            seen: _,
            side_written: _,
            // These mean nothing without work, or can be had again.
            written: _,
            work: _,
            poked: _,
            started_under: _,
            held: _,
            behind,
            stage,
            attempt,
            failures,
            told,
            running,
            sight,
            extra_silence,
            trouble,
            undecodable,
            refused_events,
            tidied: _,
            vain,
            tended,
            walks,
            released,
        } = self;
        let over = |running: &Running| running.is_over();
        matches!(stage, Stage::Absent)
            && running.as_ref().is_none_or(over)
            && !released
            && *attempt == 0
            && *failures == 0
            && told.is_empty()
            && sight.is_empty()
            && extra_silence.is_none()
            && refused_events.is_empty()
            && undecodable.is_none()
            && tended.is_empty()
            && walks.is_empty()
            && vain.is_none()
            && behind.is_none()
            && trouble.times == 0
            && self.may_tidy()
    }

    /// Moves on what time and tasks have done since the last turn.
    pub(crate) fn catch_up(&mut self) {
        let (Stage::Running, Some(running)) = (&self.stage, &self.running) else {
            return;
        };
        // Asked first: what a task says is there before it is over.
        let over = running.is_over();
        if let Some(ended) = running.take_end() {
            self.stage = Stage::Ended(ended);
        } else if over {
            // It was not begun, so it is no attempt.
            self.stage = Stage::Absent;
            self.attempt = self.attempt.saturating_sub(1);
        }
    }

    /// Whether what is written at most every ten seconds may be written.
    pub(crate) fn may_write_side(&self) -> bool {
        is_side_due(self.side_written)
    }

    /// How long that has to wait.
    pub(crate) fn side_wait(&self) -> Duration {
        let since = self.side_written.map_or(SIDE_WRITES, |at| at.elapsed());
        SIDE_WRITES.saturating_sub(since)
    }

    /// Whether what others left in the status may be taken away now: they may put it there again.
    pub(crate) fn may_tidy(&self) -> bool {
        is_side_due(self.tidied)
    }

    /// Whether work runs, cleans up, or has ended and is yet to be taken.
    pub(crate) fn is_at_work(&self) -> bool {
        let held = self.held || self.trouble.refused;
        match self.stage {
            Stage::Running => true,
            Stage::Ended(_) => !held,
            Stage::Absent | Stage::Waiting { .. } | Stage::Held { .. } => {
                self.running.as_ref().is_some_and(|task| !task.is_over())
            }
        }
    }

    /// Whether the work waits for a place, or for its turn to be resumed.
    pub(crate) fn waits_for_place(&self) -> bool {
        matches!(
            self.stage,
            Stage::Held {
                why: Hold::Place | Hold::Slot(_),
                ..
            }
        )
    }

    /// Whether the application did not answer the last question of some kind.
    pub(crate) fn is_silent(&self) -> bool {
        !self.sight.silence.is_none() || !self.extra_silence.is_none() || self.tended.is_silent()
    }

    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.stage, Stage::Ended(_))
    }

    /// Forgets work that is not what the record says is in flight.
    ///
    /// While this operator did not lead, or when somebody wrote the status by hand, the object went on without it.
    pub(crate) fn heed_record(&mut self, in_flight: Option<&str>) {
        if !matches!(self.stage, Stage::Absent) && in_flight != Some(&self.work) {
            self.leave();
        }
    }

    /// The work as a decision takes it.
    pub(crate) fn task(&self) -> Task {
        match &self.stage {
            // What is held back may have been begun before, and is not passed by then.
            Stage::Absent | Stage::Held { resumed: true, .. } => Task::Absent,
            Stage::Running => Task::Running,
            Stage::Held { resumed: false, .. } => Task::Waiting,
            Stage::Waiting { due, asked } => {
                if Instant::now() >= *due || (*asked && self.poked) {
                    Task::Due
                } else {
                    Task::Waiting
                }
            }
            Stage::Ended(ended) => Task::Ended(said(ended)),
        }
    }

    /// Forgets the work of the state that was left; its task may still be ending.
    pub(crate) fn leave(&mut self) {
        if let Some(running) = &self.running {
            running.cancel();
        }
        self.stage = Stage::Absent;
        self.poked = false;
        self.begin_anew();
    }

    /// What is tried next is another piece of work, or the same with everything forgiven.
    pub(crate) fn begin_anew(&mut self) {
        self.attempt = 0;
        self.failures = 0;
        self.told.clear();
    }

    /// Whether a failure for this reason was told before; beyond some reasons they are made up anew each time.
    pub(crate) fn has_told(&self, reason: &str) -> bool {
        self.told.len() >= TOLD_LIMIT || self.told.iter().any(|told| told == reason)
    }
}

/// How many reasons of one piece of work are told.
const TOLD_LIMIT: usize = 16;

/// What an ended task means for a decision.
pub(crate) fn said(ended: &Result<Answer, Failure>) -> Said {
    match ended {
        Ok(Answer::Stay) => Said::Stay,
        Ok(Answer::Next) => Said::Next,
        Ok(Answer::Wait(_)) => Said::Wait,
        Ok(Answer::To(to)) => Said::To(*to),
        Err(failure) => Said::Failed {
            permanent: failure.is_permanent(),
        },
    }
}

impl Known {
    fn having(last: LastWrite) -> Self {
        let inner = Inner {
            seen: last.seen,
            side_written: last.at,
            walks: Walks::having(last.echo),
            ..Inner::default()
        };
        Self {
            inner: tokio::sync::Mutex::new(inner),
            ..Self::default()
        }
    }

    /// Whether somebody wants something of the next turn.
    fn is_called(&self) -> bool {
        let flags = [&self.poked, &self.reopened, &self.rewound];
        flags.iter().any(|flag| flag.load(Ordering::Acquire))
    }

    /// Whether somebody outside named the object since this was last asked.
    pub(crate) fn take_poke(&self) -> bool {
        self.poked.swap(false, Ordering::AcqRel)
    }

    /// Whether the history of the API server went back since this was last asked.
    pub(crate) fn take_rewinding(&self) -> bool {
        self.rewound.swap(false, Ordering::AcqRel)
    }

    /// Whether the CRD or the leadership has changed since this was last asked.
    pub(crate) fn take_reopening(&self) -> bool {
        self.reopened.swap(false, Ordering::AcqRel)
    }
}

/// How often what is written beside transitions may be written by itself.
const SIDE_WRITES: Duration = Duration::from_secs(10);

/// Whether it is so long since that it may be done again.
fn is_side_due(since: Option<Instant>) -> bool {
    since.is_none_or(|since| since.elapsed() >= SIDE_WRITES)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(memory: &Memory, change: impl FnOnce(&mut Inner)) {
        let known = memory.of("uid");
        change(&mut known.inner.try_lock().expect("no other turn"));
        memory.end_turn("uid", &known);
    }

    fn is_slim(memory: &Memory) -> bool {
        let objects = memory.objects();
        objects.get("uid").and_then(Entry::known).is_none()
    }

    #[test]
    fn of_a_settled_object_only_the_version_of_the_last_write_is_kept() {
        let memory = Memory::default();
        turn(&memory, |_| {});
        assert!(memory.objects().is_empty());
        turn(&memory, |inner| inner.seen = Some("7".to_owned()));
        assert!(is_slim(&memory));
        turn(&memory, |inner| assert!(inner.is_behind(Some("6"))));
        turn(&memory, |inner| assert!(!inner.is_behind(Some("7"))));
        assert!(is_slim(&memory));
    }

    #[test]
    fn whatever_the_next_turn_needs_is_kept() {
        for change in [
            |inner: &mut Inner| inner.stage = Stage::Ended(Ok(Answer::Next)),
            |inner: &mut Inner| inner.attempt = 1,
            |inner: &mut Inner| inner.sight.failed = 1,
            |inner: &mut Inner| inner.trouble.times = 1,
            |inner: &mut Inner| inner.released = true,
            |inner: &mut Inner| inner.vain = Some(Box::default()),
        ] {
            let memory = Memory::default();
            turn(&memory, change);
            assert!(!is_slim(&memory));
        }
    }

    #[test]
    fn of_an_object_that_is_gone_nothing_is_kept() {
        let memory = Memory::default();
        turn(&memory, |inner| inner.attempt = 1);
        let known = memory.of("uid");
        memory.forget("uid");
        assert!(memory.objects().is_empty());
        assert!(known.gone.is_cancelled(), "its work is no longer wanted");
        turn(&memory, |inner| inner.seen = Some("7".to_owned()));
        assert_eq!(memory.keep_only(|_| false), ["uid"]);
        assert!(memory.objects().is_empty());
    }

    #[test]
    fn a_settled_object_is_walked_again_once_everything_may_be_written_again() {
        let memory = Memory::default();
        turn(&memory, |inner| {
            inner.seen = Some("7".to_owned());
            inner.walks.echo = true;
        });
        turn(&memory, |inner| assert!(inner.walks.echo));
        assert!(is_slim(&memory));
        memory.reopen();
        turn(&memory, |inner| assert!(!inner.walks.echo));
    }

    #[test]
    fn who_pokes_an_object_at_the_end_of_its_turn_is_heard() {
        let memory = Memory::default();
        let known = memory.of("uid");
        // Somebody has looked it up and is about to poke it.
        let poking = memory.of("uid");
        memory.end_turn("uid", &known);
        poking.poked.store(true, Ordering::Release);
        drop(poking);
        memory.end_turn("uid", &known);
        assert!(memory.of("uid").take_poke());
    }
}
