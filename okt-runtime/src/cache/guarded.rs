//! An object in an answer of the API server, decodable or not, of any scope.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::error_boundary::InvalidObject;
use serde::de::Error;
use serde::{Deserialize, Deserializer};

use okt_wire::object::{LifecycleObject, decode_object};
use okt_wire::pruned::Pruned;
use okt_wire::resource_like;

/// An object that may not decode, so that one bad object does not stop the others.
///
/// Its scope is dynamic: one type serves namespaced and cluster-scoped kinds.
/// Clones share the object.
#[derive(Clone, Debug)]
pub(crate) struct Guarded<K>(Result<Arc<K>, Box<InvalidObject>>);

impl<K> Guarded<K> {
    /// Returns the object, or why it does not decode.
    pub(crate) fn get(&self) -> Result<&Arc<K>, &InvalidObject> {
        self.0.as_ref().map_err(|invalid| &**invalid)
    }

    /// Returns the object, if it decodes.
    pub(crate) fn into_inner(self) -> Option<Arc<K>> {
        self.0.ok()
    }
}

impl<'de, K: LifecycleObject> Deserialize<'de> for Guarded<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let pruned = Pruned::read(deserializer, |_| None)?;
        Ok(Self(match decode_object(&pruned.text) {
            Ok(object) => Ok(Arc::new(object)),
            Err(error) => {
                let metadata = pruned.metadata().map_err(D::Error::custom)?;
                Err(Box::new(InvalidObject { error, metadata }))
            }
        }))
    }
}

resource_like!(
    [K: LifecycleObject] Guarded<K>, K, false,
    |it| match &it.0 {
        Ok(object) => object.meta(),
        Err(invalid) => &invalid.metadata,
    },
    match &mut it.0 {
        Ok(object) => Arc::make_mut(object).meta_mut(),
        Err(invalid) => &mut invalid.metadata,
    }
);
