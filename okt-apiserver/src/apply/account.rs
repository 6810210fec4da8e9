//! Records the field ownership of writes other than apply.

use serde_json::{Map, Value};

use super::Scene;
use super::fields::FieldSet;
use super::reserved::{own, strip};
use super::shares::{FieldShare, Manager, Shares, cap, read, write};
use super::typed::{self, DuplicateFields};
use super::versions::Changes;
use crate::object;

/// Records the ownership of a write other than apply: the changed fields belong to `manager`.
pub(crate) fn account(scene: Scene<'_>, old: Option<&Value>, new: &mut Value, manager: &Manager) {
    let given = if manager.subresource.is_empty() {
        given(scene, new)
    } else {
        // A client cannot change the ownership through a subresource.
        GivenFields::Nothing
    };
    object::metadata(new).remove("managedFields");
    let mut shares = match given {
        GivenFields::Reset => Shares::new(),
        GivenFields::Shares(shares) => shares,
        GivenFields::Nothing => old.and_then(read).unwrap_or_default(),
    };
    if old.is_some() && shares.is_empty() {
        // No ownership was recorded so far, so none is recorded now.
        return;
    }
    if object::text(new, &["kind"]) != scene.kind.kind
        || !typed::check(Some(scene.schema()), new, DuplicateFields::Allowed).is_empty()
    {
        // The ownership of an object whose types differ from its schema is no longer recorded.
        return;
    }
    let bare = match old {
        Some(old) => strip(old),
        None => scene.kind.blank(),
    };
    // The same holds for an object that does not fit a version in which a manager owns fields.
    if take(scene, &bare, &strip(new), &mut shares, manager).is_ok() {
        write(new, shares);
    }
}

/// Records the ownership of a write through the scale of an object.
///
/// As on a server, the first writer of the replicas is not recorded.
pub(crate) fn account_scale(
    scene: Scene<'_>,
    old: &Value,
    new: &mut Value,
    manager: &Manager,
    replicas: &[String],
) {
    let entries = object::at(old, &["metadata", "managedFields"]).cloned();
    object::set(object::metadata(new), "managedFields", entries);
    let field = FieldSet::of_field(replicas);
    // In another version the replicas may have another path.
    let field_of = |share: &FieldShare| match scene.kind.sibling(&share.api_version) {
        Some(sibling) => FieldSet::of_field(sibling.replicas.as_deref().unwrap_or_default()),
        None => field.clone(),
    };
    let keys: Vec<_> = replicas.iter().map(String::as_str).collect();
    let mut shares = read(old).unwrap_or_default();
    let holds = |share: &FieldShare| !share.fields.intersection(&field_of(share)).is_empty();
    let changed = object::at(old, &keys) != object::at(new, &keys);
    if !changed || !shares.values().any(holds) {
        return;
    }
    for (other, share) in &mut shares {
        if other != manager {
            share.fields.subtract(&field_of(share));
        }
    }
    let replicas = object::at(new, &keys).and_then(Value::as_i64);
    if replicas == Some(0) {
        // For a scale, zero replicas are the same as unset replicas, which have no owner.
        if let Some(share) = shares.get_mut(manager) {
            share.fields.subtract(&field);
        }
    } else {
        // The manager that scales gets a new entry, without a time.
        let share = FieldShare {
            fields: field.clone(),
            api_version: scene.kind.api_version(),
            time: None,
        };
        shares.insert(manager.clone(), share);
    }
    write(new, shares);
}

/// The ownership that a client sends.
enum GivenFields {
    Nothing,
    Reset,
    Shares(Shares),
}

fn given(scene: Scene<'_>, object: &Value) -> GivenFields {
    match object::at(object, &["metadata", "managedFields"]).and_then(Value::as_array) {
        // The server drops an empty list from a custom resource before it reads it.
        Some(list) if list.is_empty() && scene.kind.is_built_in() => GivenFields::Reset,
        Some(list) if list.len() == 1 && list[0].as_object().is_some_and(Map::is_empty) => {
            GivenFields::Reset
        }
        Some(_) => match read(object) {
            Some(shares) if !shares.is_empty() => GivenFields::Shares(shares),
            _ => GivenFields::Nothing,
        },
        None => GivenFields::Nothing,
    }
}

/// Moves the ownership of the changed fields to the manager of the update.
///
/// # Errors
/// The object does not fit a version in which a manager owns fields.
pub(super) fn take(
    scene: Scene<'_>,
    old: &Value,
    new: &Value,
    shares: &mut Shares,
    manager: &Manager,
) -> Result<(), String> {
    let changes = Changes::find(scene, manager, shares, old, new)?;
    for share in shares.values_mut() {
        changes.take_from(share);
    }
    shares.retain(|_, share| !share.fields.is_empty());
    let taken = own(changes.own.set);
    if !taken.is_empty() {
        let share = shares.entry(manager.clone()).or_insert_with(|| FieldShare {
            fields: FieldSet::default(),
            api_version: String::new(),
            time: None,
        });
        share.fields.add(&taken);
        share.api_version = scene.kind.api_version();
        share.time = Some(scene.now.to_owned());
    }
    cap(shares);
    Ok(())
}
