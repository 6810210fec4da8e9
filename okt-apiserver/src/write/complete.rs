//! The stage after admission: the server sets its own fields, and resets those that the endpoint does not write.

use serde_json::{Map, Value};

use super::{Write, WriteParams};
use crate::kind::{Origin, ServedKind};
use crate::refusal::Refusal;
use crate::store::{Key, Store};
use crate::subresource::Subresource;
use crate::{builtin, crd, delete, object, strategy, types, validate};

/// The number of bytes of `generateName` that a generated name begins with.
const GENERATED_START: usize = 58;

impl Write {
    /// Sets the server's fields of a new object.
    pub(super) fn complete_new(&mut self, store: &mut Store) -> Result<(), Refusal> {
        let Self { params, new, .. } = self;
        let kind = &*params.kind;
        generate_name(store, params, new);
        let key = Key::of(new);
        delete::check_creatable(store, kind, &key)?;
        let calls = params.calls();
        let now = calls.once("now", || store.clock.text());
        let uid = calls.once("uid", || store.new_uid());
        // A kubelet registers its node with a status.
        if !kind.is("", "nodes") {
            if kind.has_status {
                object::fields(new).remove("status");
            }
            if let Some(go_type) = kind.go_type {
                types::reset_status(go_type, new);
            }
        }
        let metadata = object::metadata(new);
        for key in [
            "selfLink",
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
        ] {
            metadata.remove(key);
        }
        metadata.insert("uid".to_owned(), uid.into());
        metadata.insert("creationTimestamp".to_owned(), now.clone().into());
        if kind.has_generation {
            metadata.insert("generation".to_owned(), 1.into());
        }
        validate::before_allocation(kind, new)?;
        strategy::complete_new(store, kind, new)?;
        if kind.is(crd::GROUP, crd::PLURAL) {
            let declared = crd::read(new)?;
            crd::complete(new);
            crd::accept(store, new, &now);
            self.declared = Some(declared).filter(|_| crd::is_established(new));
        }
        Ok(())
    }

    /// Sets the server's fields of an object that changes.
    pub(super) fn complete_update(&mut self) -> Result<(), Refusal> {
        let Self { params, new, .. } = self;
        let Some(old) = &self.old else { return Ok(()) };
        let kind = &*params.kind;
        isolate(kind, params.subresource, old, new);
        keep_metadata(old, new);
        if kind.is(crd::GROUP, crd::PLURAL) {
            crd::check_identity(kind, old, new)?;
            // Only `storedVersions` of the status can be written; the server sets the rest.
            let stored = object::at(new, &["status", "storedVersions"]).cloned();
            let status = old.get("status").cloned();
            object::set(object::fields(new), "status", status);
            if params.subresource.is_status() {
                crd::set_stored(new, stored.unwrap_or_default());
            } else {
                crd::note_stored(new);
                crd::read(new)?;
                crd::complete(new);
            }
        }
        let counted =
            self.rewritten || !kind.same_content(old, new) || is_counted(params, old, new);
        if kind.has_generation && counted {
            object::raise_generation(new);
        }
        Ok(())
    }
}

/// Names an object that has only the beginning of a name; a range of limits needs none.
fn generate_name(store: &mut Store, params: &WriteParams, object: &mut Value) {
    let mut generate = object::text(object, &["metadata", "generateName"]).to_owned();
    if !object::name(object).is_empty() {
        return;
    }
    let name = if !generate.is_empty() {
        while generate.len() > GENERATED_START {
            generate.pop();
        }
        let suffix = params.calls().once("suffix", || store.new_suffix());
        format!("{generate}{suffix}")
    } else if params.kind.is("", "limitranges") {
        params.calls().once("name", || store.new_uid())
    } else {
        return;
    };
    object::metadata(object).insert("name".to_owned(), name.into());
}

/// Resets the fields that this endpoint does not write.
fn isolate(kind: &ServedKind, subresource: Subresource, old: &Value, new: &mut Value) {
    match subresource {
        Subresource::None if kind.has_status => {
            let status = old.get("status").cloned();
            object::set(object::fields(new), "status", status);
            strategy::keep(kind, old, new);
        }
        Subresource::Status | Subresource::Approval => {
            if let Some(metadata) = old.get("metadata") {
                let entries = object::metadata(new).remove("managedFields");
                match kind.origin {
                    Origin::Crd => take_over(metadata, object::metadata(new), &["managedFields"]),
                    Origin::BuiltIn => {
                        for &key in builtin::kept_by_status(&kind.kind) {
                            object::set(object::metadata(new), key, metadata.get(key).cloned());
                        }
                    }
                }
                object::set(object::metadata(new), "managedFields", entries);
            }
            take_over(old, object::fields(new), &["metadata", "status"]);
            if kind.is_built_in() {
                strategy::keep_in_status(kind, subresource, old, new);
            }
        }
        Subresource::EphemeralContainers => {
            let containers = object::at(new, &["spec", "ephemeralContainers"]).cloned();
            keep_but(old, new, |pod| {
                object::set(
                    object::fields(&mut pod["spec"]),
                    "ephemeralContainers",
                    containers,
                );
            });
        }
        Subresource::Resize => {
            let resized = new["spec"].clone();
            keep_but(old, new, |pod| resize(&mut pod["spec"], &resized));
        }
        Subresource::None | Subresource::Scale => {}
    }
}

/// Resets an object to the old one, except for its managed fields and for one change.
fn keep_but(old: &Value, new: &mut Value, change: impl FnOnce(&mut Value)) {
    let entries = object::metadata(new).remove("managedFields");
    new.clone_from(old);
    object::set(object::metadata(new), "managedFields", entries);
    change(new);
}

/// Takes over the resources of the Pod and of its containers. Other containers are taken over whole, for the validation to refuse them.
fn resize(spec: &mut Value, resized: &Value) {
    object::set(
        object::fields(spec),
        "resources",
        resized.get("resources").cloned(),
    );
    for list in ["containers", "initContainers"] {
        let names = |spec: &Value| -> Vec<Value> {
            let all = object::items(spec, &[list]).iter();
            all.map(|container| container["name"].clone()).collect()
        };
        if names(spec) != names(resized) {
            let others = resized.get(list).cloned();
            object::set(object::fields(spec), list, others);
            continue;
        }
        let containers = spec.get_mut(list).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            let mut all = object::items(resized, &[list]).iter();
            if let Some(other) = all.find(|other| other["name"] == container["name"]) {
                for key in ["resources", "resizePolicy"] {
                    object::set(object::fields(container), key, other.get(key).cloned());
                }
            }
        }
    }
}

/// Resets all fields to the old ones, except for those left out. Most are equal already and are not copied.
fn take_over(old: &Value, new: &mut Map<String, Value>, left_out: &[&str]) {
    let left_out = |key: &str| left_out.contains(&key);
    new.retain(|key, _| left_out(key) || old.get(key).is_some());
    for (key, value) in old.as_object().into_iter().flatten() {
        if !left_out(key) && new.get(key) != Some(value) {
            new.insert(key.clone(), value.clone());
        }
    }
}

/// Restores the metadata that a client cannot change or may omit.
fn keep_metadata(old: &Value, new: &mut Value) {
    let metadata = object::metadata(new);
    metadata.remove("selfLink");
    for key in ["generation", "creationTimestamp", "resourceVersion"] {
        let value = object::at(old, &["metadata", key]).cloned();
        object::set(metadata, key, value);
    }
    for key in ["uid", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        let given = metadata.contains_key(key) && key != "deletionTimestamp";
        if let (Some(value), false) = (object::at(old, &["metadata", key]), given) {
            metadata.insert(key.to_owned(), value.clone());
        }
    }
}

/// Whether metadata change that count for the generation.
fn is_counted(params: &WriteParams, old: &Value, new: &Value) -> bool {
    let key = match params.kind.kind.as_str() {
        "Deployment" => "annotations",
        "EndpointSlice" => "labels",
        _ => return false,
    };
    let path = ["metadata", key];
    params.kind.is_built_in()
        && params.subresource == Subresource::None
        && object::at(old, &path) != object::at(new, &path)
}
