//! An object as the cache keeps it: its metadata, and all of it as text, which is decoded when it has its turn.
//!
//! Typed, a small object takes three times its text: each name, time and condition is an allocation of its own.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use kube::core::DynamicResourceScope;
use kube::runtime::reflector::ObjectRef;
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use tokio::time::Instant;

use crate::cache::packed::Packed;
use crate::cache::pruned;
use crate::cache::queue::Place;
use crate::wire::object::LifecycleObject;

/// An object that has its turn again within this time is kept decoded: it is named often.
const OFTEN: Duration = Duration::from_secs(5);

/// An object that may not decode, so that one bad object does not stop the others; clones share it.
#[derive(Debug)]
pub(crate) struct Cached<K> {
    content: Arc<Content<K>>,
}

#[derive(Debug)]
struct Content<K> {
    /// Only what the queue and a turn need to know of an object before it is decoded.
    meta: ObjectMeta,
    /// All of it but managed fields.
    text: Packed,
    wanted: Mutex<Use<K>>,
}

/// When an object is wanted.
#[derive(Debug)]
struct Use<K> {
    /// When it is to be looked at next.
    due: Option<Instant>,
    /// When it was decoded last.
    last: Option<Instant>,
    /// What it decodes to, while that is wanted often.
    decoded: Option<Arc<K>>,
}

impl<K> Content<K> {
    fn new(meta: ObjectMeta, text: Packed) -> Self {
        let wanted = Mutex::new(Use {
            due: None,
            last: None,
            decoded: None,
        });
        Self { meta, text, wanted }
    }

    fn wanted(&self) -> MutexGuard<'_, Use<K>> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K> Clone for Content<K> {
    fn clone(&self) -> Self {
        Self::new(self.meta.clone(), self.text.clone())
    }
}

impl<K> Clone for Cached<K> {
    fn clone(&self) -> Self {
        Self {
            content: Arc::clone(&self.content),
        }
    }
}

impl<K: LifecycleObject> Cached<K> {
    /// The object, or why it does not decode.
    pub(crate) fn object(&self) -> Result<Arc<K>, String> {
        let now = Instant::now();
        let mut wanted = self.content.wanted();
        let often = wanted
            .last
            .is_some_and(|last| now.duration_since(last) < OFTEN);
        wanted.last = Some(now);
        let decoded = match wanted.decoded.take() {
            Some(decoded) => decoded,
            None => Arc::new(pruned::decode(&self.content.text.text())?),
        };
        wanted.decoded = often.then(|| Arc::clone(&decoded));
        Ok(decoded)
    }

    /// All of it but managed fields, as the text that came.
    pub(crate) fn text(&self) -> String {
        self.content.text.text()
    }

    /// Says when it is to be looked at next; what was said before does not count any more.
    pub(crate) fn plan(&self, due: Option<Instant>) {
        self.content.wanted().due = due;
    }

    /// A look at it, which does not keep it alive.
    pub(crate) fn downgrade(&self) -> WeakCached<K> {
        WeakCached {
            content: Arc::downgrade(&self.content),
        }
    }

    /// The name by which it is queued.
    pub(crate) fn reference(&self) -> ObjectRef<Self> {
        named(self.meta())
    }
}

/// A look at an object as the cache had it.
pub(crate) struct WeakCached<K> {
    content: Weak<Content<K>>,
}

impl<K: LifecycleObject> WeakCached<K> {
    /// Whether the cache still has this version of the object, and this is when it is to be looked at.
    pub(crate) fn is_planned(&self, at: Instant) -> bool {
        (self.content.upgrade()).is_some_and(|content| content.wanted().due == Some(at))
    }

    /// The object to look at, if this is when.
    pub(crate) fn object(&self, at: Instant) -> Option<ObjectRef<Cached<K>>> {
        let content = self.content.upgrade()?;
        let due = content.wanted().due.take_if(|due| *due == at);
        due.map(|_| named(&content.meta))
    }
}

impl<'de, K> Deserialize<'de> for Cached<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = pruned::text(deserializer)?;
        let meta = pruned::metadata(&text).map_err(D::Error::custom)?;
        Ok(Self {
            content: Arc::new(Content::new(essence(meta), Packed::new(&text))),
        })
    }
}

impl<K: LifecycleObject> Resource for Cached<K> {
    type DynamicType = ();
    type Scope = DynamicResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        K::kind(&())
    }

    fn group((): &()) -> Cow<'_, str> {
        K::group(&())
    }

    fn version((): &()) -> Cow<'_, str> {
        K::version(&())
    }

    fn plural((): &()) -> Cow<'_, str> {
        K::plural(&())
    }

    fn meta(&self) -> &ObjectMeta {
        &self.content.meta
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut Arc::make_mut(&mut self.content).meta
    }
}

/// What is needed of metadata before the object is decoded; the text has all of it.
fn essence(meta: ObjectMeta) -> ObjectMeta {
    ObjectMeta {
        name: meta.name,
        namespace: meta.namespace,
        uid: meta.uid,
        resource_version: meta.resource_version,
        generation: meta.generation,
        deletion_timestamp: meta.deletion_timestamp,
        finalizers: meta.finalizers,
        ..ObjectMeta::default()
    }
}

/// The place of an object that is reconciled.
pub(crate) type PlaceOf<K> = Place<ObjectRef<Cached<K>>>;

/// The name by which an object is queued.
pub(crate) fn named<K: LifecycleObject>(meta: &ObjectMeta) -> ObjectRef<Cached<K>> {
    let name = meta.name.as_deref().unwrap_or_default();
    reference(name, meta.namespace.as_deref())
}

/// The name of an object, without its uid and its version: a queue holds two of it for each object.
pub(crate) fn reference<K: LifecycleObject>(
    name: &str,
    namespace: Option<&str>,
) -> ObjectRef<Cached<K>> {
    let mut reference = ObjectRef::new(name);
    reference.namespace = namespace.map(str::to_owned);
    reference
}
