//! An object of another kind as the cache keeps it: whose it is, and all of it as text.

use std::borrow::Cow;
use std::sync::OnceLock;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use kube::core::{ApiResource, DynamicResourceScope};
use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::drift::{covers, owned_fields};
use super::kind::Kind;
use super::stamp::{
    APPLIED_ANNOTATION, MANAGER_PREFIX, OWNER_LABEL, OWNER_NAME_ANNOTATION, PRUNE_ALLOWED,
    PRUNE_ANNOTATION, UNOWNED_ANNOTATION, WAVE_ANNOTATION,
};
use crate::cache::packed::Packed;
use crate::cache::pruned;

/// An object that an application owns or refers to.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    /// Only what says which object it is.
    meta: ObjectMeta,
    /// The uid of the object that it was made for.
    pub(crate) owner: Option<String>,
    /// Namespace and name of that object, as an annotation has it: anybody may have put it there.
    pub(crate) owner_name: Option<String>,
    /// The name of that object, where an owner reference has its uid: Kubernetes deletes this one with it.
    pub(crate) reference: Option<String>,
    /// Whether an operator of OKT has applied it.
    pub(crate) is_applied: bool,
    /// A hash of what was applied last.
    pub(crate) applied: Option<String>,
    /// Whether the operator has to delete it, as it was declared.
    pub(crate) is_unowned: bool,
    /// In which wave it is deleted, where that was declared.
    pub(crate) wave: Option<u32>,
    /// Whether it may be deleted although its kind holds data.
    is_prunable: bool,
    /// Whether all that was applied is owned still, once that was asked.
    whole: OnceLock<bool>,
    text: Packed,
}

impl Kept {
    /// Returns the whole object; of its managed fields only what OKT applied.
    ///
    /// # Errors
    ///
    /// Where somebody nested it deeper than a parser goes.
    pub(crate) fn value(&self) -> Result<Value, String> {
        serde_json::from_str(&self.text.text()).map_err(|error| error.to_string())
    }

    pub(crate) fn text(&self) -> String {
        self.text.text()
    }

    /// The same without what is beside its metadata.
    pub(crate) fn bare(&self) -> Self {
        let text = self.text.text();
        let metadata = pruned::field(&text, &["metadata"]).unwrap_or("{}");
        Self {
            text: Packed::new(&format!(r#"{{"metadata":{metadata}}}"#)),
            ..self.clone()
        }
    }

    /// Reads an object from its text.
    fn read(text: &str) -> serde_json::Result<Self> {
        let mut is_applied = false;
        let text = pruned::pruned(text, |managers| {
            let ours = ours(managers.get())?;
            is_applied = true;
            Some(ours)
        })?;
        // Read without the managed fields, which may be nested as deeply as the object.
        let meta = pruned::field(&text, &["metadata"]).unwrap_or("null");
        let meta: ObjectMeta = serde_json::from_str(&pruned::pruned_metadata(meta, |_| None)?)?;
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
            wave: annotation(WAVE_ANNOTATION).and_then(|wave| wave.parse().ok()),
            owner,
            owner_name: annotation(OWNER_NAME_ANNOTATION),
            applied: annotation(APPLIED_ANNOTATION),
            is_unowned: annotation(UNOWNED_ANNOTATION).is_some(),
            is_prunable: annotation(PRUNE_ANNOTATION).as_deref() == Some(PRUNE_ALLOWED),
            whole: OnceLock::new(),
            text: Packed::new(&text),
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

    /// Whether it may be deleted because it is no longer declared.
    pub(crate) fn may_go(&self, kind: &Kind) -> bool {
        self.is_prunable || !kind.holds_data()
    }

    /// Whether a manager owns all of what has the hash that is [`applied`](Self::applied).
    ///
    /// Asked in every turn, it is found out once: what is kept does not change.
    pub(crate) fn is_whole(&self, manager: &str, body: &Value) -> bool {
        *self.whole.get_or_init(|| {
            let object = self.value().unwrap_or_default();
            owned_fields(&object, manager).is_some_and(|owned| covers(owned, body))
        })
    }

    /// Whether this version is older than another one of the same object.
    pub(crate) fn is_older(&self, than: &Self) -> bool {
        let version = |kept: &Self| kept.meta.resource_version.as_ref()?.parse::<u128>().ok();
        self.meta.uid == than.meta.uid
            && matches!((version(self), version(than)), (Some(own), Some(other)) if own < other)
    }
}

/// Of managed fields the entries of what OKT applied; none where there are none.
fn ours(managers: &str) -> Option<String> {
    let all: Vec<&RawValue> = serde_json::from_str(managers).ok()?;
    let ours: Vec<&str> = (all.into_iter().map(RawValue::get))
        .filter(|entry| is_ours(entry))
        .collect();
    (!ours.is_empty()).then(|| format!("[{}]", ours.join(",")))
}

/// Whether an entry of managed fields is one of what OKT applied.
fn is_ours(entry: &str) -> bool {
    #[derive(Deserialize)]
    struct Entry {
        #[serde(default)]
        manager: String,
        #[serde(default)]
        operation: String,
        #[serde(default)]
        subresource: String,
    }
    serde_json::from_str::<Entry>(entry).is_ok_and(|entry| {
        entry.manager.starts_with(MANAGER_PREFIX)
            && entry.operation == "Apply"
            && entry.subresource.is_empty()
    })
}

impl<'de> Deserialize<'de> for Kept {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Self::read(raw.get()).map_err(D::Error::custom)
    }
}

/// An object of which a server sends the metadata only.
#[derive(Clone, Debug, Deserialize)]
#[serde(transparent)]
pub(crate) struct Bare(pub(crate) Kept);

impl Resource for Bare {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn metadata_api() -> bool {
        true
    }

    fn kind(api: &ApiResource) -> Cow<'_, str> {
        Kept::kind(api)
    }

    fn group(api: &ApiResource) -> Cow<'_, str> {
        Kept::group(api)
    }

    fn version(api: &ApiResource) -> Cow<'_, str> {
        Kept::version(api)
    }

    fn plural(api: &ApiResource) -> Cow<'_, str> {
        Kept::plural(api)
    }

    fn meta(&self) -> &ObjectMeta {
        self.0.meta()
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        self.0.meta_mut()
    }
}

impl Resource for Kept {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn kind(api: &ApiResource) -> Cow<'_, str> {
        (&*api.kind).into()
    }

    fn group(api: &ApiResource) -> Cow<'_, str> {
        (&*api.group).into()
    }

    fn version(api: &ApiResource) -> Cow<'_, str> {
        (&*api.version).into()
    }

    fn plural(api: &ApiResource) -> Cow<'_, str> {
        (&*api.plural).into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.meta
    }
}

/// An object of another kind; one that its type cannot read is as good as none.
pub(crate) fn decoded<T: DeserializeOwned>(api: &ApiResource, text: &str) -> Option<T> {
    let kind = &api.kind;
    pruned::decode_unquoted(text)
        .inspect_err(|error| tracing::warn!(%kind, "cannot be read: {error}"))
        .ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn content_that_nobody_reads_takes_no_room() {
        // What does not become smaller by packing it.
        let noise: Vec<u64> = (1..2000_u64)
            .map(|it| it.wrapping_mul(0x9e37_79b9_7f4a_7c15))
            .collect();
        let map = json!({
            "metadata": { "name": "a", "namespace": "default", "uid": "1", "resourceVersion": "7" },
            "data": noise,
        });
        let whole = Kept::read(&map.to_string()).expect("an object");
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
            let Ok(kept) = Kept::read(&text) else { return };
            let _ = (kept.is_whole("okt/as.demo", &body), kept.value());
            let bare = kept.bare();
            assert_eq!(bare.meta(), kept.meta());
            assert!(!bare.is_older(&kept) && bare.value().is_ok());
        });
    }
}
