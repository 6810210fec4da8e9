//! An object as the cache keeps it: its metadata, and all of it as text, which is decoded when it has its turn.
//!
//! Typed, a small object takes three times its text: each name, time and condition is an allocation of its own.

use std::borrow::Cow;
use std::marker::PhantomData;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use kube::core::DynamicResourceScope;
use kube::runtime::reflector::ObjectRef;
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::guarded::Pruned;
use crate::object::LifecycleObject;

/// An object that may not decode, so that one bad object does not stop the others; clones share it.
#[derive(Debug)]
pub(crate) struct Cached<K> {
    content: Arc<Content>,
    kind: PhantomData<fn() -> K>,
}

#[derive(Clone, Debug)]
struct Content {
    meta: ObjectMeta,
    /// JSON, without managed fields.
    text: Box<str>,
}

impl<K> Clone for Cached<K> {
    fn clone(&self) -> Self {
        Self {
            content: Arc::clone(&self.content),
            kind: PhantomData,
        }
    }
}

impl<K: LifecycleObject> Cached<K> {
    /// The object, or why it does not decode.
    pub(crate) fn object(&self) -> Result<Arc<K>, String> {
        let text = &*self.content.text;
        match serde_json::from_str(text) {
            Ok(object) => Ok(Arc::new(object)),
            // Where in the text it was is nothing that anybody could look up.
            Err(error) => match serde_json::from_str::<Value>(text).map(K::deserialize) {
                Ok(Ok(object)) => Ok(Arc::new(object)),
                Ok(Err(error)) => Err(error.to_string()),
                Err(_) => Err(error.to_string()),
            },
        }
    }

    /// The name by which it is queued.
    pub(crate) fn reference(&self) -> ObjectRef<Self> {
        let meta = self.meta();
        let name = meta.name.as_deref().unwrap_or_default();
        reference(name, meta.namespace.as_deref())
    }
}

impl<'de, K> Deserialize<'de> for Cached<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Pruned(object) = Pruned::deserialize(deserializer)?;
        let metadata = object.get("metadata").unwrap_or(&Value::Null);
        let meta = ObjectMeta::deserialize(metadata).map_err(D::Error::custom)?;
        let text = serde_json::to_string(&object).map_err(D::Error::custom)?;
        Ok(Self {
            content: Arc::new(Content {
                meta,
                text: text.into(),
            }),
            kind: PhantomData,
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

/// The name of an object, without its uid and its version: a queue holds two of it for each object.
pub(crate) fn reference<K: LifecycleObject>(
    name: &str,
    namespace: Option<&str>,
) -> ObjectRef<Cached<K>> {
    let mut reference = ObjectRef::new(name);
    reference.namespace = namespace.map(str::to_owned);
    reference
}
