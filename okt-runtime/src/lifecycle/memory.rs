//! The memory of a controller between two reconciliations of its objects.

use std::collections::HashMap;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use okt_core::Lifecycle;
use okt_core::backoff::Backoff;
use okt_wire::clock::Clock;
use okt_wire::object::LifecycleObject;
use okt_wire::read;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::reconcile::memory::Remembered;

/// How often an application is observed if nothing happens.
const OBSERVE_EVERY: Duration = Duration::from_secs(30);

/// How long an object is remembered that is not reconciled. It is longer than a controller waits between two reconciliations
/// of an object with something to remember.
const KEPT: Duration = Duration::from_hours(1);

/// At this number of objects those that were not reconciled for long are forgotten.
const MANY: usize = 1024;

/// The memory of a controller between two reconciliations of its objects; keep one in the context of your controller.
///
/// It has the times of retries and waits, results that are not written yet, and the version of the last write, so that
/// a [`Reconciliation`](super::Reconciliation) does not act upon an older one.
/// It may be lost at any time, as in a restart: retries then begin at once, and work is repeated under its id.
/// An object that was not reconciled for an hour is forgotten when there are many.
///
/// ```
/// # fn example<K: okt::LifecycleObject>() {
/// use std::time::Duration;
/// use okt::Backoff;
/// use okt::lifecycle::Memory;
///
/// let memory: Memory<K> = Memory::new()
///     .backoff(Backoff::new(Duration::from_secs(1), Duration::from_mins(10)))
///     .observe_every(Duration::from_mins(1));
/// # }
/// ```
pub struct Memory<K: LifecycleObject> {
    pub(super) settings: LifecycleSettings,
    objects: Arc<Mutex<Objects>>,
    of: PhantomData<fn(K)>,
}

/// The settings of all reconciliations.
#[derive(Clone)]
pub(super) struct LifecycleSettings {
    pub(super) backoff: Backoff,
    pub(super) clock: Clock,
    pub(super) observe_every: Duration,
    /// A hash of the graph.
    pub(super) graph: Arc<str>,
}

struct Objects {
    all: HashMap<String, KnownObject>,
    /// At this number of objects those that were not reconciled for long are forgotten.
    full: usize,
}

struct KnownObject {
    used: Instant,
    remembered: Box<Remembered>,
}

impl<K: LifecycleObject> Default for Memory<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: LifecycleObject> Memory<K> {
    /// Creates an empty memory.
    pub fn new() -> Self {
        Self {
            settings: LifecycleSettings {
                backoff: Backoff::default(),
                clock: Clock::wall(),
                observe_every: OBSERVE_EVERY,
                graph: read::graph_hash(K::State::GRAPH).into(),
            },
            objects: Arc::new(Mutex::new(Objects {
                all: HashMap::new(),
                full: MANY,
            })),
            of: PhantomData,
        }
    }

    /// Sets the backoff between failed attempts; from one second to five minutes by default.
    #[must_use]
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.settings.backoff = backoff;
        self
    }

    /// Sets how often an application is observed if nothing happens; every 30 s by default.
    ///
    /// It does not count for an object whose last observation was
    /// [`unobserved`](crate::Observation::unobserved).
    #[must_use]
    pub fn observe_every(mut self, time: Duration) -> Self {
        self.settings.observe_every = time;
        self
    }

    /// Takes the time from tokio's clock, so that tests can pause and advance it.
    #[must_use]
    pub fn virtual_time(mut self) -> Self {
        self.settings.clock = Clock::tokio();
        self
    }

    /// Takes the memory of an object, until the returned value is dropped.
    pub(super) fn take(&self, uid: &str) -> Taken {
        let object = self.objects.lock().all.remove(uid);
        Taken {
            objects: Arc::clone(&self.objects),
            uid: uid.to_owned(),
            remembered: object.map(|it| it.remembered).unwrap_or_default(),
        }
    }
}

/// The memory of one object, during a reconciliation.
pub(super) struct Taken {
    objects: Arc<Mutex<Objects>>,
    uid: String,
    remembered: Box<Remembered>,
}

impl Drop for Taken {
    fn drop(&mut self) {
        let mut remembered = std::mem::take(&mut self.remembered);
        remembered.machine.end();
        let last_write = remembered.at_rest();
        if last_write.is_some_and(|last| last.version.is_none()) {
            return;
        }
        let now = Instant::now();
        let mut objects = self.objects.lock();
        if objects.all.len() >= objects.full {
            objects
                .all
                .retain(|_, object| now.duration_since(object.used) < KEPT);
            objects.full = MANY.max(objects.all.len().saturating_mul(2));
        }
        let object = KnownObject {
            used: now,
            remembered,
        };
        objects.all.insert(std::mem::take(&mut self.uid), object);
    }
}

impl Deref for Taken {
    type Target = Remembered;

    fn deref(&self) -> &Remembered {
        &self.remembered
    }
}

impl DerefMut for Taken {
    fn deref_mut(&mut self) -> &mut Remembered {
        &mut self.remembered
    }
}
