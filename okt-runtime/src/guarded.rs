//! An object as the API server answers with it, decodable or not, of any scope.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::{DynamicResourceScope, error_boundary::InvalidObject};
use kube::{Api, Client, Resource};
use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::object::LifecycleObject;

/// An object that may not decode, so that one bad object does not stop the others.
///
/// Its scope is left open: one type serves namespaced and cluster-scoped kinds.
/// Clones share the object, as the cache, the turns and the work of one object do.
#[derive(Clone, Debug)]
pub(crate) struct Guarded<K>(Result<Arc<K>, Box<InvalidObject>>);

impl<K> Guarded<K> {
    /// The object, or why there is none.
    pub(crate) fn get(&self) -> Result<&Arc<K>, &InvalidObject> {
        self.0.as_ref().map_err(|invalid| &**invalid)
    }

    /// The object, if it decodes.
    pub(crate) fn into_inner(self) -> Option<Arc<K>> {
        self.0.ok()
    }
}

impl<'de, K: LifecycleObject> Deserialize<'de> for Guarded<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Pruned(object) = Pruned::deserialize(deserializer)?;
        let metadata = object.get("metadata").cloned();
        match K::deserialize(Value::Object(object)) {
            Ok(object) => Ok(Self(Ok(Arc::new(object)))),
            Err(error) => {
                let metadata = ObjectMeta::deserialize(metadata.unwrap_or_default());
                Ok(Self(Err(Box::new(InvalidObject {
                    error: error.to_string(),
                    metadata: metadata.map_err(D::Error::custom)?,
                }))))
            }
        }
    }
}

/// An object as JSON, without its managed fields: they are most of what a small object takes, and nothing here
/// reads them.
pub(crate) struct Pruned(pub(crate) Map<String, Value>);

impl<'de> Deserialize<'de> for Pruned {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = Fields { in_metadata: false }.deserialize(deserializer)?;
        Ok(Self(fields))
    }
}

/// Reads the fields of an object, or of its metadata.
struct Fields {
    in_metadata: bool,
}

impl<'de> DeserializeSeed<'de> for Fields {
    type Value = Map<String, Value>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Fields {
    type Value = Map<String, Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut fields = Map::new();
        while let Some(name) = map.next_key::<String>()? {
            if self.in_metadata && name == "managedFields" {
                map.next_value::<IgnoredAny>()?;
            } else if !self.in_metadata && name == "metadata" {
                let metadata = map.next_value_seed(Self { in_metadata: true })?;
                fields.insert(name, Value::Object(metadata));
            } else {
                fields.insert(name, map.next_value()?);
            }
        }
        Ok(fields)
    }
}

impl<K: LifecycleObject> Resource for Guarded<K> {
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
        match &self.0 {
            Ok(object) => object.meta(),
            Err(invalid) => &invalid.metadata,
        }
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        match &mut self.0 {
            Ok(object) => Arc::make_mut(object).meta_mut(),
            Err(invalid) => &mut invalid.metadata,
        }
    }
}

/// The API of a kind: in one namespace, or where there is none, cluster-wide.
pub(crate) fn api<T>(client: &Client, namespace: Option<&str>) -> Api<T>
where
    T: Resource<DynamicType = (), Scope = DynamicResourceScope>,
{
    match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &()),
        None => Api::all_with(client.clone(), &()),
    }
}
