//! An object of any operator as the API server sends it, decodable or not: one that is nested too deeply hides no other.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::DynamicObject;
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use okt_wire::pruned::{self, Pruned, pruned_metadata};
use okt_wire::resource_like;

/// The key under which the data of an object name why it cannot be read.
pub(super) const UNREADABLE: &str = "why it cannot be read";

/// An object, or its metadata and its status where the rest cannot be read.
#[derive(Clone, Debug)]
pub(super) struct Stranger(pub(super) DynamicObject);

impl<'de> Deserialize<'de> for Stranger {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let pruned = Pruned::read(deserializer, |managed| Some(managed.get().to_owned()))?;
        let error = match serde_json::from_str(&pruned.text) {
            Ok(object) => return Ok(Self(object)),
            Err(error) => error,
        };
        let status_text = pruned::field(&pruned.text, &["status"]);
        let status = status_text.and_then(|text| serde_json::from_str::<Value>(text).ok());
        // Its managed fields may be nested as deeply.
        let metadata_text = pruned_metadata(pruned.metadata_text());
        let metadata = metadata_text.and_then(|text| serde_json::from_str(&text));
        Ok(Self(DynamicObject {
            types: None,
            metadata: metadata.map_err(D::Error::custom)?,
            data: json!({ "status": status, UNREADABLE: error.to_string() }),
        }))
    }
}

resource_like!([] Stranger, DynamicObject, false, |it| &it.0.metadata, &mut it.0.metadata);
