//! A cached object: its metadata, and all of it as text, which is decoded when it is reconciled.
//!
//! Decoded, a small object takes three times the memory of its text: each name, time and condition is an allocation of
//! its own.

use std::sync::{Arc, Weak};
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use kube::runtime::reflector::ObjectRef;
use okt_core::{Lifecycle, StateId};
use okt_wire::object::{LifecycleObject, decode_object};
use okt_wire::resource_like;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::cache::arrived::{Arrived, Glance};
use crate::cache::packed::Packed;
use crate::cache::queue::{QueuePlace, Urgency};

/// An object that is reconciled again within this time is kept decoded.
const OFTEN: Duration = Duration::from_secs(5);

/// An object that may not decode, so that one bad object does not stop the others; clones share it.
#[derive(Debug)]
pub(crate) struct Cached<K> {
    content: Arc<CachedContent<K>>,
}

#[derive(Debug)]
struct CachedContent<K> {
    /// Only the fields that the queue and a reconciliation need before the object is decoded.
    meta: ObjectMeta,
    glance: Glance,
    wanted: Mutex<Use<K>>,
}

/// The text of an object, and when it is reconciled.
#[derive(Debug)]
struct Use<K> {
    /// The object without managed fields.
    text: Packed,
    /// When its requeue is due.
    due: Option<Instant>,
    /// When it was decoded last.
    last: Option<Instant>,
    /// The decoded object, while it is reconciled often.
    decoded: Option<Arc<K>>,
}

impl<K> CachedContent<K> {
    fn new(meta: ObjectMeta, text: Packed, glance: Glance) -> Self {
        let wanted = Mutex::new(Use {
            text,
            due: None,
            last: None,
            decoded: None,
        });
        Self {
            meta,
            glance,
            wanted,
        }
    }
}

impl<K> Clone for CachedContent<K> {
    fn clone(&self) -> Self {
        let text = self.wanted.lock().text.clone();
        Self::new(self.meta.clone(), text, self.glance.clone())
    }
}

impl<K> Clone for Cached<K> {
    fn clone(&self) -> Self {
        Self {
            content: Arc::clone(&self.content),
        }
    }
}

impl<K: LifecycleObject> From<Arrived> for Cached<K> {
    fn from(arrived: Arrived) -> Self {
        let Arrived {
            meta,
            text,
            glance,
            state,
        } = arrived;
        let id = |state: &str| K::State::from_name(state).map_or(StateId::UNKNOWN, Lifecycle::id);
        let glance = Glance {
            state: state.as_deref().map(id),
            ..glance
        };
        Self {
            content: Arc::new(CachedContent::new(meta, text, glance)),
        }
    }
}

impl<K: LifecycleObject> Cached<K> {
    /// Returns the object, or why it does not decode.
    pub(crate) fn object(&self) -> Result<Arc<K>, String> {
        let now = Instant::now();
        let mut wanted = self.content.wanted.lock();
        let often = wanted
            .last
            .is_some_and(|last| now.duration_since(last) < OFTEN);
        wanted.last = Some(now);
        let decoded = match wanted.decoded.take() {
            Some(decoded) => decoded,
            None => Arc::new(decode_object(&wanted.text.text())?),
        };
        wanted.decoded = often.then(|| Arc::clone(&decoded));
        Ok(decoded)
    }

    /// Returns the object, or why it does not decode, for a reader that is no reconciliation: it is not kept decoded.
    pub(crate) fn read(&self) -> Result<Arc<K>, String> {
        let decoded = self.content.wanted.lock().decoded.clone();
        decoded.map_or_else(|| decode_object(&self.text()).map(Arc::new), Ok)
    }

    /// Returns the text of the object without managed fields.
    pub(crate) fn text(&self) -> String {
        self.content.wanted.lock().text.text().into_owned()
    }

    /// Returns what is known of the object without decoding it.
    pub(crate) fn glance(&self) -> &Glance {
        &self.content.glance
    }

    /// Returns how urgent the object is among many that are listed, or that the operator may act on again.
    pub(crate) fn urgency(&self) -> Urgency {
        let glance = self.glance();
        if glance.is_changed {
            Urgency::Event
        } else if glance.is_pending {
            Urgency::Routine
        } else {
            Urgency::Listed
        }
    }

    /// Sets when its requeue is due; this replaces the time before.
    pub(crate) fn plan(&self, due: Option<Instant>) {
        self.content.wanted.lock().due = due;
    }

    /// Compresses its text: this version of the object stays for long.
    pub(crate) fn pack(&self) {
        self.content.wanted.lock().text.pack();
    }

    /// Returns when its requeue is due.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.content.wanted.lock().due
    }

    /// Returns a reference that does not keep the object alive.
    pub(crate) fn downgrade(&self) -> WeakCached<K> {
        WeakCached {
            content: Arc::downgrade(&self.content),
        }
    }

    /// Returns the name by which it is queued.
    pub(crate) fn reference(&self) -> ObjectRef<Self> {
        named(self.meta())
    }
}

/// A weak reference to a version of an object in the cache.
pub(crate) struct WeakCached<K> {
    content: Weak<CachedContent<K>>,
}

impl<K: LifecycleObject> WeakCached<K> {
    /// Returns whether the cache still has this version of the object, and its requeue is due at this time.
    pub(crate) fn is_planned(&self, at: Instant) -> bool {
        self.content
            .upgrade()
            .is_some_and(|content| content.wanted.lock().due == Some(at))
    }

    /// Takes the requeue that is due at this time; returns the object, if there is one.
    pub(crate) fn object(&self, at: Instant) -> Option<ObjectRef<Cached<K>>> {
        let content = self.content.upgrade()?;
        let due = content.wanted.lock().due.take_if(|due| *due == at);
        due.map(|_| named(&content.meta))
    }
}

resource_like!(
    [K: LifecycleObject] Cached<K>, K, false,
    |it| &it.content.meta, &mut Arc::make_mut(&mut it.content).meta
);

/// The place of an object that is being reconciled.
pub(crate) type PlaceOf<K> = QueuePlace<ObjectRef<Cached<K>>>;

/// Returns the name by which an object is queued.
pub(crate) fn named<K: LifecycleObject>(meta: &ObjectMeta) -> ObjectRef<Cached<K>> {
    let name = meta.name.as_deref().unwrap_or_default();
    reference(name, meta.namespace.as_deref())
}

/// Returns the name of an object, without its uid and its version: a queue holds it twice for each object.
pub(crate) fn reference<K: LifecycleObject>(
    name: &str,
    namespace: Option<&str>,
) -> ObjectRef<Cached<K>> {
    let mut reference = ObjectRef::new(name);
    reference.namespace = namespace.map(str::to_owned);
    reference
}
