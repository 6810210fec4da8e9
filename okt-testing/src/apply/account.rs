//! This file keeps account of writes that are no applies.

use serde_json::{Map, Value, json};

use super::{
    Scene,
    fields::FieldSet,
    reserved::{own, strip},
    shares::{Manager, Share, Shares, cap, read, write},
    typed::{self, Twins},
    versions::Changes,
};
use crate::{builtin, object};

/// Accounts for a write that is no apply: what changed belongs to `manager`.
pub(crate) fn account(scene: Scene<'_>, old: Option<&Value>, new: &mut Value, manager: &Manager) {
    let given = if manager.subresource.is_empty() {
        given(scene, new)
    } else {
        // Through a subresource nobody changes who owns what by hand.
        Given::Nothing
    };
    object::metadata(new).remove("managedFields");
    let mut shares = match given {
        Given::Reset => Shares::new(),
        Given::Shares(shares) => shares,
        Given::Nothing => old.and_then(read).unwrap_or_default(),
    };
    if old.is_some() && shares.is_empty() {
        // Nobody kept account from the beginning, so nobody begins now.
        return;
    }
    if object::text(new, &["kind"]) != scene.kind
        || !typed::check(Some(scene.schema), new, Twins::Allowed).is_empty()
    {
        // What has not the types of its schema is no longer accounted for.
        return;
    }
    let bare = match old {
        Some(old) => strip(old),
        None if scene.built_in => builtin::blank(scene.kind),
        None => json!({}),
    };
    // What does not fit into a version of those who set fields is no longer accounted for either.
    if take(scene, &bare, &strip(new), &mut shares, manager).is_ok() {
        write(new, shares);
    }
}

/// Accounts for a write through the scale of an object.
///
/// Who is the first to write the replicas is not accounted for, as on a server.
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
    // In another version the replicas may be elsewhere.
    let field_of = |share: &Share| match scene.sibling(&share.api_version) {
        Some(sibling) => FieldSet::of_field(sibling.replicas.as_deref().unwrap_or_default()),
        None => field.clone(),
    };
    let keys: Vec<_> = replicas.iter().map(String::as_str).collect();
    let mut shares = read(old).unwrap_or_default();
    let holds = |share: &Share| !share.fields.intersection(&field_of(share)).is_empty();
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
        // To none is, for a scale, the same as to leave it out: nobody owns that.
        if let Some(share) = shares.get_mut(manager) {
            share.fields.subtract(&field);
        }
    } else {
        // Whoever scales is listed anew, without a time.
        let share = Share {
            fields: field.clone(),
            api_version: scene.api_version.to_owned(),
            time: None,
        };
        shares.insert(manager.clone(), share);
    }
    write(new, shares);
}

/// What a client says about who owns what.
enum Given {
    Nothing,
    Reset,
    Shares(Shares),
}

fn given(scene: Scene<'_>, object: &Value) -> Given {
    match object::at(object, &["metadata", "managedFields"]).and_then(Value::as_array) {
        // An empty list is dropped from a custom resource before anybody looks at it.
        Some(list) if list.is_empty() && scene.built_in => Given::Reset,
        Some(list) if list.len() == 1 && list[0].as_object().is_some_and(Map::is_empty) => {
            Given::Reset
        }
        Some(_) => match read(object) {
            Some(shares) if !shares.is_empty() => Given::Shares(shares),
            _ => Given::Nothing,
        },
        None => Given::Nothing,
    }
}

/// Gives what an update changes to its manager.
///
/// # Errors
/// The object does not fit into a version in which somebody owns fields.
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
        let share = shares.entry(manager.clone()).or_insert_with(|| Share {
            fields: FieldSet::default(),
            api_version: String::new(),
            time: None,
        });
        share.fields.add(&taken);
        scene.api_version.clone_into(&mut share.api_version);
        share.time = Some(scene.now.to_owned());
    }
    cap(shares);
    Ok(())
}
