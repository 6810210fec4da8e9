//! An object of an owned or referenced kind in the cache: its owner, and its content as packed text.

use std::sync::OnceLock;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::PropagationPolicy;
use kube::core::{ApiResource, DynamicObject};
use okt_wire::digest::revision;
use okt_wire::keys::{
    APPLIED_ANNOTATION, CONTENT_ANNOTATION, OWNER_LABEL, OWNER_NAME_ANNOTATION,
    PROPAGATION_ANNOTATION, PRUNE_ANNOTATION, UNOWNED_ANNOTATION, WAVE_ANNOTATION,
};
use okt_wire::pruned::{self, Pruned, pruned_metadata};
use okt_wire::resource_like;
use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::drift::{covers, owned_fields};
use super::kind::ResourceKind;
use super::ready::{End, ended};
use super::stamp::{MANAGER_PREFIX, PRUNE_ALLOWED};
use crate::cache::packed::Packed;

/// An object that an application owns or refers to.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    /// Only the metadata that identifies the object and its version.
    meta: ObjectMeta,
    /// The uid of its owner, from the label.
    pub(crate) owner: Option<String>,
    /// The namespace and name of its owner, from the annotation, which anyone who may write the object can forge.
    pub(crate) owner_name: Option<String>,
    /// The name of its owner, if an owner reference has the owner's uid: then Kubernetes deletes the object with it.
    pub(crate) reference: Option<String>,
    /// Whether an OKT operator applied it.
    pub(crate) is_applied: bool,
    /// The hash of the last applied declaration.
    pub(crate) applied: Option<String>,
    /// The hash of the declaration of an object that is done once.
    pub(crate) content: Option<String>,
    /// Whether it was declared unowned, so that the operator has to delete it.
    pub(crate) is_unowned: bool,
    /// What happens to its dependents when the operator deletes it.
    pub(crate) propagation: PropagationPolicy,
    /// The declared deletion wave, if any.
    pub(crate) wave: Option<u32>,
    /// Whether it may be pruned although its kind holds data.
    is_prunable: bool,
    /// Whether OKT still owns all applied fields, once computed.
    whole: OnceLock<bool>,
    /// How it has ended, once computed.
    end: OnceLock<Option<End>>,
    /// A hash of its content, once computed.
    content_hash: OnceLock<u64>,
    text: Packed,
}

impl Kept {
    /// Returns the whole object; its managed fields hold only OKT's entries.
    ///
    /// # Errors
    ///
    /// If the object is nested deeper than the parser allows.
    pub(crate) fn value(&self) -> Result<Value, String> {
        serde_json::from_str(&self.text.text()).map_err(|error| error.to_string())
    }

    pub(crate) fn text(&self) -> String {
        self.text.text().into_owned()
    }

    /// Returns a copy with the metadata alone.
    pub(crate) fn bare(&self) -> Self {
        let text = self.text.text();
        let metadata = pruned::field(&text, &["metadata"]).unwrap_or("{}");
        Self {
            text: Packed::new(&format!(r#"{{"metadata":{metadata}}}"#)),
            ..self.clone()
        }
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut is_applied = false;
        let pruned = Pruned::read(deserializer, |managers| {
            let ours = ours(managers.get())?;
            is_applied = true;
            Some(ours)
        })?;
        // Parse without the managed fields, which may be nested as deeply as the object.
        let meta = pruned_metadata(pruned.metadata_text())
            .and_then(|text| serde_json::from_str::<ObjectMeta>(&text))
            .map_err(D::Error::custom)?;
        let label = |name: &str| meta.labels.as_ref()?.get(name).cloned();
        let annotation = |name: &str| meta.annotations.as_ref()?.get(name).cloned();
        let owner = label(OWNER_LABEL);
        let mut owners = meta.owner_references.iter().flatten();
        let reference = owners
            .find(|it| Some(&it.uid) == owner.as_ref())
            .map(|it| it.name.clone());
        Ok(Self {
            is_applied,
            reference,
            propagation: match annotation(PROPAGATION_ANNOTATION).as_deref() {
                Some("Orphan") => PropagationPolicy::Orphan,
                Some("Background") => PropagationPolicy::Background,
                Some(_) | None => PropagationPolicy::Foreground,
            },
            wave: annotation(WAVE_ANNOTATION).and_then(|wave| wave.parse().ok()),
            owner,
            owner_name: annotation(OWNER_NAME_ANNOTATION),
            applied: annotation(APPLIED_ANNOTATION),
            content: annotation(CONTENT_ANNOTATION),
            is_unowned: annotation(UNOWNED_ANNOTATION).is_some(),
            is_prunable: annotation(PRUNE_ANNOTATION).as_deref() == Some(PRUNE_ALLOWED),
            whole: OnceLock::new(),
            end: OnceLock::new(),
            content_hash: OnceLock::new(),
            text: Packed::new(&pruned.text),
            meta: ObjectMeta {
                name: meta.name,
                namespace: meta.namespace,
                uid: meta.uid,
                resource_version: meta.resource_version,
                deletion_timestamp: meta.deletion_timestamp,
                ..ObjectMeta::default()
            },
        })
    }

    pub(crate) fn is_deleting(&self) -> bool {
        self.meta.deletion_timestamp.is_some()
    }

    /// Returns whether the object may be pruned.
    pub(crate) fn may_go(&self, kind: &ResourceKind) -> bool {
        self.is_prunable || !kind.holds_data()
    }

    /// Returns whether a manager owns all fields of `body`, the declaration with the hash [`applied`](Self::applied).
    ///
    /// The result is computed once, because a cached version never changes.
    pub(crate) fn is_whole(&self, manager: &str, body: &Value) -> bool {
        *self.whole.get_or_init(|| {
            let object = self.value().unwrap_or_default();
            owned_fields(&object, manager).is_some_and(|owned| covers(owned, body))
        })
    }

    /// Returns a hash of the content of the object: of all but its metadata and its status.
    ///
    /// The result is computed once, because a cached version never changes.
    pub(super) fn content_hash(&self) -> u64 {
        *self.content_hash.get_or_init(|| {
            let mut object = self.value().unwrap_or_default();
            if let Some(fields) = object.as_object_mut() {
                for name in ["apiVersion", "kind", "metadata", "status"] {
                    fields.remove(name);
                }
            }
            revision(&object)
        })
    }

    /// Returns how the object has ended; none if it has not, or is of a kind that does not.
    ///
    /// The result is computed once, because a cached version never changes.
    pub(super) fn end(&self, kind: &ResourceKind) -> Option<End> {
        *self
            .end
            .get_or_init(|| ended(kind, &self.value().ok()?["status"]))
    }

    /// Returns whether this version is older than another one of the same object.
    pub(crate) fn is_older(&self, than: &Self) -> bool {
        let version = |kept: &Self| kept.meta.resource_version.as_ref()?.parse::<u128>().ok();
        self.meta.uid == than.meta.uid
            && matches!((version(self), version(than)), (Some(own), Some(other)) if own < other)
    }
}

/// Returns OKT's entries of the managed fields; none if there are none.
fn ours(managers: &str) -> Option<String> {
    let all: Vec<&RawValue> = serde_json::from_str(managers).ok()?;
    let ours: Vec<&str> = all
        .into_iter()
        .map(RawValue::get)
        .filter(|entry| is_ours(entry))
        .collect();
    (!ours.is_empty()).then(|| format!("[{}]", ours.join(",")))
}

/// Returns whether an entry of the managed fields comes from an apply of OKT.
fn is_ours(entry: &str) -> bool {
    #[derive(Deserialize)]
    struct ManagerEntry {
        #[serde(default)]
        manager: String,
        #[serde(default)]
        operation: String,
        #[serde(default)]
        subresource: String,
    }
    serde_json::from_str::<ManagerEntry>(entry).is_ok_and(|entry| {
        entry.manager.starts_with(MANAGER_PREFIX)
            && entry.operation == "Apply"
            && entry.subresource.is_empty()
    })
}

impl<'de> Deserialize<'de> for Kept {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::read(deserializer)
    }
}

/// An object that is watched by its metadata alone.
#[derive(Clone, Debug, Deserialize)]
#[serde(transparent)]
pub(crate) struct Bare(pub(crate) Kept);

resource_like!([] Bare, DynamicObject, true, |it| it.0.meta(), it.0.meta_mut());
resource_like!([] Kept, DynamicObject, false, |it| &it.meta, &mut it.meta);

/// Deserializes an object; returns none and logs a warning if its type cannot represent it.
pub(crate) fn decoded<T: DeserializeOwned>(api: &ApiResource, text: &str) -> Option<T> {
    let kind = &api.kind;
    pruned::decode_unquoted(text)
        .inspect_err(|error| tracing::warn!(%kind, "cannot be read: {error}"))
        .ok()
}

#[cfg(test)]
mod tests {
    use kube::Resource;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_metadata_only_object_stores_no_content() {
        // Content that packing does not make smaller.
        let noise: Vec<u64> = (1..2000_u64)
            .map(|it| it.wrapping_mul(0x9e37_79b9_7f4a_7c15))
            .collect();
        let map = json!({
            "metadata": { "name": "a", "namespace": "default", "uid": "1", "resourceVersion": "7" },
            "data": noise,
        });
        let whole = serde_json::from_str::<Kept>(&map.to_string()).expect("an object");
        let bare = whole.bare();
        assert!(whole.text().len() > 30_000, "{}", whole.text().len());
        assert!(bare.text().len() < 200, "{}", bare.text().len());
        assert_eq!(bare.meta(), whole.meta());
        assert!(bare.text.len() * 100 < whole.text.len());
    }

    #[test]
    fn every_object_of_others_is_kept_or_refused() {
        let valid = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {
                "name": "a", "namespace": "default", "uid": "1", "resourceVersion": "7",
                "labels": { OWNER_LABEL: "o" },
                "annotations": {
                    OWNER_NAME_ANNOTATION: "default/o", APPLIED_ANNOTATION: "h", WAVE_ANNOTATION: "2",
                    UNOWNED_ANNOTATION: "", PRUNE_ANNOTATION: PRUNE_ALLOWED,
                },
                "ownerReferences": [{ "apiVersion": "v1", "kind": "A", "name": "o", "uid": "o" }],
                "managedFields": [{
                    "manager": "okt/as.demo", "operation": "Apply", "subresource": "",
                    "fieldsV1": { "f:data": { "f:text": {}, "k:{\"a\":1}": {}, "v:1": {}, ".": {} } },
                }],
            },
            "data": { "text": "x" },
        });
        let body = json!({ "data": { "text": "x" } });
        okt_fuzz::check(3000, |dice| {
            let text = String::from_utf8_lossy(&dice.json(&valid)).into_owned();
            let Ok(kept) = serde_json::from_str::<Kept>(&text) else {
                return;
            };
            let _ = (kept.is_whole("okt/as.demo", &body), kept.value());
            let bare = kept.bare();
            assert_eq!(bare.meta(), kept.meta());
            assert!(!bare.is_older(&kept) && bare.value().is_ok());
        });
    }
}
