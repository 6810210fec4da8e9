//! Records which manager set which field (`metadata.managedFields`) and implements server-side apply.
//!
//! The algorithm is that of structured-merge-diff. Fields that Kubernetes itself sets, and fields that an endpoint
//! ignores, have no owner.

mod account;
mod conflict;
mod context;
mod fields;
mod reserved;
mod scale;
mod shares;
mod typed;
mod versions;

pub(crate) use self::account::{account, account_scale};
pub(crate) use self::context::Scene;
pub(crate) use self::reserved::BareFields;
pub(crate) use self::scale::apply_scale;
pub(crate) use self::shares::{Manager, Operation};

use serde_json::{Value, json};

use self::account::take;
use self::conflict::settle;
use self::reserved::{own, writable};
use self::shares::{FieldShare, read_entries, write};
use self::typed::DuplicateFields;
use self::versions::Changes;
use crate::refusal::Refusal;
use crate::{object, types};

/// The manager of the fields that were written before ownership was recorded.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// Applies a configuration to the live object; `None` if there is none yet.
///
/// # Errors
/// The configuration does not fit the schema, or other managers own some of its fields.
pub(crate) fn apply(
    scene: Scene<'_>,
    live: Option<&BareFields>,
    config: Value,
    manager: &Manager,
    force: bool,
) -> Result<Value, Refusal> {
    let shape = Some(scene.schema());
    let empty = json!({});
    let live_bare = live.map_or(&empty, |live| &live.object);
    let mut shares = live
        .and_then(|live| read_entries(live.entries()))
        .unwrap_or_default();
    let is_first = shares.is_empty();
    if let Some(live) = live.filter(|_| is_first) {
        let errors = typed::check(shape, live_bare, DuplicateFields::Allowed);
        if !errors.is_empty() {
            let what = identify(scene, live.namespace(), live_bare);
            let errors = typed::list(&errors);
            return Err(Refusal::unexplained(format!(
                "failed to create manager for existing fields: failed to convert new object ({what}) to smd typed: {errors}"
            )));
        }
    }
    check_config(scene, &config)?;
    if live.is_some() && is_first {
        let first = Manager {
            operation: Operation::Update,
            name: BEFORE_FIRST_APPLY.to_owned(),
            api_version: scene.kind.api_version(),
            subresource: manager.subresource.clone(),
        };
        let blank = scene.kind.blank();
        take(scene, &blank, live_bare, &mut shares, &first).map_err(Refusal::unexplained)?;
    }
    versions::check(scene, &shares, live_bare).map_err(Refusal::unexplained)?;
    let config = BareFields::of(config);
    let given = &config.object;
    let mut merged = typed::merge(shape, live_bare, given);
    let wanted = writable(scene, &manager.subresource, typed::fields_of(shape, given));
    let last = shares.remove(manager);
    let time = last.as_ref().and_then(|share| share.time.clone());
    let share = FieldShare {
        fields: wanted,
        api_version: scene.kind.api_version(),
        time,
    };
    shares.insert(manager.clone(), share);
    // A manager that sets the same fields as last time may still give up fields that an emptied list leaves out.
    if let Some(last) = last {
        merged = versions::prune(scene, merged, &shares, last)
            .map_err(|why| Refusal::unexplained(format!("failed to prune fields: {why}")))?;
    }
    let changes =
        Changes::find(scene, manager, &shares, live_bare, &merged).map_err(Refusal::unexplained)?;
    settle(&mut shares, manager, &changes, force)?;
    if let Some(share) = shares.get_mut(manager) {
        share.fields = own(std::mem::take(&mut share.fields));
        if live.is_none_or(|live| live.differs_in_system(&config))
            || !typed::same(live_bare, &merged)
        {
            share.time = Some(scene.now.to_owned());
        }
    }

    // Fields that no schema declares stay as they are in the live object.
    let mut new = match merged {
        Value::Object(fields) => Value::Object(fields),
        _ => json!({}),
    };
    if let Some(live) = live {
        live.lend(&mut new);
    }
    for key in ["apiVersion", "kind"] {
        if let Some(value) = given.get(key) {
            object::fields(&mut new).insert(key.to_owned(), value.clone());
        }
    }
    write(&mut new, shares);
    Ok(new)
}

/// Checks that a configuration fits the schema and sets no field twice.
fn check_config(scene: Scene<'_>, config: &Value) -> Result<(), Refusal> {
    let errors = typed::check(Some(scene.schema()), config, DuplicateFields::Refused);
    if errors.is_empty() {
        return Ok(());
    }
    let errors = typed::list(&errors);
    let what = identify(scene, object::namespace(config), config);
    Err(Refusal::unexplained(format!(
        "failed to create typed patch object ({what}): {errors}"
    )))
}

/// Returns the refusal of an object with values that its Go type cannot hold, for this reason.
pub(crate) fn inconvertible(
    scene: Scene<'_>,
    namespace: &str,
    object: &Value,
    why: &str,
) -> Refusal {
    let what = identify(scene, namespace, object);
    let (group, version) = (&scene.kind.group, &scene.kind.version);
    let kind = format!("{group}/{version}, Kind={}", scene.kind.kind);
    // The schema knows all types but the form of texts and numbers, and what may be either.
    let why = match why.split_once(" into Go struct field ") {
        Some((start, field)) if !start.ends_with(char::is_numeric) => {
            let wanted = field.rsplit(' ').next().unwrap_or_default();
            format!("{start} into Go value of type {wanted}")
        }
        _ => types::as_conversion(why),
    };
    Refusal::unexplained(format!(
        "failed to convert new object ({what}) to proper version: unable to convert unstructured object to {kind}: {why}"
    ))
}

fn identify(scene: Scene<'_>, namespace: &str, object: &Value) -> String {
    let (group, version) = (&scene.kind.group, &scene.kind.version);
    format!(
        "{namespace}/{}; {group}/{version}, Kind={}",
        object::name(object),
        object::text(object, &["kind"])
    )
}
