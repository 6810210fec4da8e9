//! Writes: a creation, a replacement, a patch, an apply and a write through a scale go through the same stages, each a
//! file.
//!
//! ```text
//! decode ── account | apply ── admit ── complete ── validate ── commit
//! ```
//!
//! Of an update, only `commit` needs the store, so that an apply is prepared with the store unlocked.

mod apply;
mod commit;
mod complete;
mod decode;
mod parameters;
mod precondition;
mod shown;
mod validate;

pub(crate) use self::apply::Moment;
pub(crate) use self::parameters::{UnknownFields, WriteParams};
pub(crate) use self::precondition::Precondition;

use std::sync::Arc;

use serde_json::{Value, json};

use crate::apply as managed;
use crate::causes::Causes;
use crate::convert::current;
use crate::kind::ServedKind;
use crate::object;
use crate::refusal::{Refusal, Subject};
use crate::store::{Key, Store};
use crate::stored::StoredObject;
use crate::subresource::Subresource;

/// A write on its way through the stages.
#[derive(Debug)]
pub(crate) struct Write {
    params: WriteParams,
    /// The object before; `None` if the write creates it.
    old: Option<Value>,
    new: Value,
    /// What the client is warned of, however the write ends.
    warnings: Vec<String>,
    /// A field that counts for the generation was written in another form than it is stored.
    rewritten: bool,
    /// The kinds that a new CRD declares.
    declared: Option<Vec<ServedKind>>,
    outcome: WriteOutcome,
}

/// What is left to commit.
#[derive(Clone, Copy, Debug, Default)]
struct WriteOutcome {
    /// The new state equals the old one.
    same: bool,
    /// The object is removed.
    removes: bool,
    /// The written form differs from the one that is read.
    hides: bool,
}

/// The result of a write.
#[derive(Debug)]
pub(crate) struct WrittenObject {
    pub(crate) name: String,
    pub(crate) object: Arc<StoredObject>,
    pub(crate) created: bool,
    pub(crate) warnings: Vec<String>,
}

impl Write {
    /// Returns the write of an object that is decoded already.
    pub(crate) fn of(params: WriteParams, new: Value) -> Self {
        Self {
            params,
            old: None,
            new,
            warnings: Vec::new(),
            rewritten: false,
            declared: None,
            outcome: WriteOutcome::default(),
        }
    }

    /// Creates the object in a namespace (empty for cluster-scoped kinds).
    pub(crate) fn create(
        mut self,
        store: &mut Store,
        namespace: &str,
    ) -> Result<WrittenObject, Refusal> {
        self.warned(|write| {
            check_namespace(&write.params.kind, namespace, &write.new)?;
            place(&write.params.kind, namespace, &mut write.new);
            write.account(store)?;
            write.prepare()?;
            write.commit(store)
        })
    }

    /// Replaces the object at a key, or creates it where the kind allows that.
    pub(crate) fn replace(
        mut self,
        store: &mut Store,
        key: &Key,
    ) -> Result<WrittenObject, Refusal> {
        let old = self.warned(|write| write.replaced(store, key))?;
        match old {
            Some(old) => self.update(store, old),
            None => self.create(store, &key.namespace),
        }
    }

    /// Returns the object that is replaced; `None` if it is created.
    fn replaced(&mut self, store: &Store, key: &Key) -> Result<Option<Value>, Refusal> {
        let (kind, dry_run) = (&self.params.kind, self.params.dry_run);
        check_address(kind, key, &self.new)?;
        check_named(key, &self.new)?;
        place(kind, &key.namespace, &mut self.new);
        let precondition = Precondition::of(&self.new);
        let Some(stored) = current(self.params.calls(), store, kind, key)? else {
            if !kind.creates_on_update {
                return Err(Refusal::not_found(kind.subject(&key.name)));
            }
            let nothing = json!({ "metadata": { "name": key.name, "namespace": key.namespace } });
            precondition.check_uid(kind, dry_run, &nothing)?;
            if !dry_run {
                object::metadata(&mut self.new).remove("resourceVersion");
            }
            return Ok(None);
        };
        let old = stored.read();
        precondition.check_uid(kind, dry_run, &old)?;
        if !kind.updates_unconditionally && matches!(precondition.version.as_str(), "" | "0") {
            // Here a server names the resource instead of the kind.
            let subject = Subject {
                kind: &kind.plural,
                ..kind.subject(&key.name)
            };
            let detail = "must be specified for an update";
            let field = "metadata.resourceVersion";
            return Err(Refusal::invalid_field(subject, field, 0, detail));
        }
        precondition.check_version(kind, &old)?;
        Ok(Some(old))
    }

    /// Updates an object to what a patch has made of it.
    pub(crate) fn patch(
        mut self,
        store: &mut Store,
        key: &Key,
        old: Value,
    ) -> Result<WrittenObject, Refusal> {
        self.warned(|write| {
            let (kind, new) = (&write.params.kind, &mut write.new);
            check_address(kind, key, new)?;
            check_named(key, new)?;
            place(kind, &key.namespace, new);
            Precondition::of(new).check_version(kind, &old)?;
            check_api_version(kind, new)
        })?;
        self.update(store, old)
    }

    /// Updates an existing object by any method but server-side apply.
    pub(crate) fn update(
        mut self,
        store: &mut Store,
        old: Value,
    ) -> Result<WrittenObject, Refusal> {
        self.old = Some(old);
        self.warned(|write| {
            write.account(store)?;
            write.prepare()?;
            write.commit(store)
        })
    }

    /// Does the stages that need no store: all but the last of an update, and the first of a creation.
    pub(crate) fn prepare(&mut self) -> Result<(), Refusal> {
        let Self {
            params, old, new, ..
        } = self;
        params.admission.mutate(old.as_ref(), new)?;
        if self.old.is_none() {
            return Ok(());
        }
        self.complete_update()?;
        self.validate()?;
        self.convert()
    }

    /// Does the rest of the stages.
    ///
    /// The caller can drop the rest of the write after it unlocks the store.
    pub(crate) fn commit(&mut self, store: &mut Store) -> Result<WrittenObject, Refusal> {
        let created = self.old.is_none();
        let object = if created {
            self.complete_new(store)?;
            self.validate()?;
            self.convert()?;
            self.commit_new(store)?
        } else {
            self.commit_update(store)?
        };
        Ok(WrittenObject {
            name: object::name(self.old.as_ref().unwrap_or(&self.new)).to_owned(),
            object,
            created,
            warnings: std::mem::take(&mut self.warnings),
        })
    }

    /// Adds the warnings to a refusal.
    fn warned<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        let done = work(self);
        done.map_err(|refusal| refusal.warned(&self.warnings))
    }

    /// Records who has written which field.
    fn account(&mut self, store: &Store) -> Result<(), Refusal> {
        let Self {
            params, old, new, ..
        } = self;
        let kind = &*params.kind;
        let is_status = params.subresource.is_status();
        kind.check_floats(new, is_status)?;
        for (key, value) in object::fields(new) {
            // A value written as `1.0` is stored as `1`, so it counts as a change each time.
            let found = object::whole_numbers(value);
            self.rewritten |= found && params.subresource == Subresource::None && kind.counts(key);
        }
        let now = params.calls().once("now", || store.clock.text());
        let scene = params.scene(&now);
        match (params.subresource, &kind.scale, old) {
            (Subresource::Scale, Some(scale), Some(old)) => {
                let path = &scale.spec_replicas;
                managed::account_scale(scene, old, new, &params.manager, path);
            }
            (_, _, old) => managed::account(scene, old.as_ref(), new, &params.manager),
        }
        Ok(())
    }
}

/// Refuses a custom resource of another version than that of the path.
fn check_api_version(kind: &ServedKind, object: &Value) -> Result<(), Refusal> {
    let version = object::text(object, &["apiVersion"]);
    if kind.is_built_in() || version.is_empty() || kind.is_in(version) {
        return Ok(());
    }
    let found = object::text(object, &["kind"]);
    let mut causes = Causes::default();
    for (field, found, must) in [
        ("kind", found, &kind.kind),
        ("apiVersion", version, &kind.api_version()),
    ] {
        if found != must {
            causes.invalid(field, found, &format!("must be {must}"));
        }
    }
    let (group, _) = version.split_once('/').unwrap_or_default();
    let subject = Subject {
        group,
        kind: found,
        ..kind.subject(object::name(object))
    };
    Err(Refusal::invalid(subject, &causes))
}

/// Sets the namespace of an object to that of the path.
fn place(kind: &ServedKind, namespace: &str, object: &mut Value) {
    let namespace = kind.namespaced.then(|| namespace.into());
    object::set(object::metadata(object), "namespace", namespace);
}

/// Checks that an object has a name.
fn check_named(key: &Key, object: &Value) -> Result<(), Refusal> {
    if !object::name(object).is_empty() {
        return Ok(());
    }
    Err(Refusal::bad_request(format!(
        "the name of the object ({} based on URL) was undeterminable: name must be provided",
        key.name
    )))
}

/// Checks that the name and the namespace of an object, if set, match the path.
pub(crate) fn check_address(kind: &ServedKind, key: &Key, object: &Value) -> Result<(), Refusal> {
    check_namespace(kind, &key.namespace, object)?;
    let name = object::name(object);
    if name.is_empty() || name == key.name {
        return Ok(());
    }
    Err(Refusal::bad_request(format!(
        "the name of the object ({name}) does not match the name on the URL ({})",
        key.name
    )))
}

fn check_namespace(kind: &ServedKind, namespace: &str, object: &Value) -> Result<(), Refusal> {
    let given = object::namespace(object);
    if !given.is_empty() && given != namespace && kind.namespaced {
        return Err(Refusal::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    Ok(())
}
