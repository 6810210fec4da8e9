//! An object of any operator as the API server sends it, decodable or not: one that is nested too deeply hides no other.

use std::borrow::Cow;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use kube::api::DynamicObject;
use kube::core::{ApiResource, DynamicResourceScope};
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use okt_wire::pruned::{self, Pruned, pruned_metadata};

/// The key under which the data of an object say why it cannot be read.
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
        let status = pruned::field(&pruned.text, &["status"]);
        let status = status.and_then(|status| serde_json::from_str::<Value>(status).ok());
        // Its managed fields may be nested as deeply.
        let metadata = pruned_metadata(pruned.metadata_text());
        let metadata = metadata.and_then(|text| serde_json::from_str(&text));
        Ok(Self(DynamicObject {
            types: None,
            metadata: metadata.map_err(D::Error::custom)?,
            data: json!({ "status": status, UNREADABLE: error.to_string() }),
        }))
    }
}

impl Resource for Stranger {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn kind(api: &ApiResource) -> Cow<'_, str> {
        DynamicObject::kind(api)
    }

    fn group(api: &ApiResource) -> Cow<'_, str> {
        DynamicObject::group(api)
    }

    fn version(api: &ApiResource) -> Cow<'_, str> {
        DynamicObject::version(api)
    }

    fn plural(api: &ApiResource) -> Cow<'_, str> {
        DynamicObject::plural(api)
    }

    fn meta(&self) -> &ObjectMeta {
        &self.0.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.0.metadata
    }
}
