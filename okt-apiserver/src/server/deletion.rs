//! Answers deletions of an object or of a collection.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::decode::{Call, not_registered, unreadable};
use crate::admission::{Admission, RequestOptions};
use crate::answer::ApiAnswer;
use crate::calls::WebhookCalls;
use crate::convert;
use crate::delete::{self, AllowedDeletion, Deletion, Manner, Propagation};
use crate::kind::ServedKind;
use crate::object::{json_type, text};
use crate::options::DeleteOptions;
use crate::read;
use crate::record::RequestRecord;
use crate::refusal::Refusal;
use crate::selector::Selector;
use crate::store::{Key, Store};
use crate::stored::StoredObject;
use crate::subresource::Subresource;
use crate::types::PROTOBUF;

pub(super) fn of_object(
    store: &mut Store,
    calls: &Arc<WebhookCalls>,
    call: &Call,
    kind: &Arc<ServedKind>,
    key: &Key,
    record: &mut RequestRecord,
) -> Result<ApiAnswer, Refusal> {
    let (deletion, orphans) = asked(call)?;
    record.dry_run = deletion.dry_run;
    let admission = Admission::of(store, calls, kind, key, told(call, record));
    let allowed = delete::allow(store, &admission, kind, key, &deletion)?;
    let deleted = delete::delete(store, kind, allowed, &deletion);
    // Only a client that uses `orphanDependents` gets this code.
    let mut answer = ApiAnswer::ok(deleted.answer);
    answer.warnings.extend(warning_of(kind, &deletion));
    // The deletion is accepted, but not completed.
    if deleted.waits && orphans == Some(false) {
        answer.code = 202;
    }
    Ok(answer)
}

/// Returns the warning of a deletion that leaves the Pods of a Job without saying so.
fn warning_of(kind: &ServedKind, deletion: &Deletion) -> Option<String> {
    let is_silent = deletion.manner.propagation.is_none();
    (is_silent && kind.is("batch", "jobs")).then(|| {
        "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning".to_owned()
    })
}

/// Checks that a Pod may be evicted, and returns its deletion with the options of the eviction.
pub(super) fn of_eviction(
    store: &Store,
    calls: &Arc<WebhookCalls>,
    call: &Call,
    kind: &Arc<ServedKind>,
    key: &Key,
    options: &Value,
    record: &RequestRecord,
) -> Result<(AllowedDeletion, Deletion), Refusal> {
    let (deletion, _) = deletion_of(read(options)?)?;
    let admission = Admission::of(store, calls, kind, key, told(call, record));
    let allowed = delete::allow(store, &admission, kind, key, &deletion)?;
    Ok((allowed, deletion))
}

/// Returns what webhooks are told of a deletion.
fn told(call: &Call, record: &RequestRecord) -> RequestOptions {
    RequestOptions {
        dry_run: record.dry_run,
        options: given_options(call),
        ..call.admission_options(record, Subresource::None)
    }
}

pub(super) fn of_collection(
    store: &mut Store,
    calls: &Arc<WebhookCalls>,
    call: &Call,
    kind: &Arc<ServedKind>,
    namespace: Option<&str>,
    record: &mut RequestRecord,
) -> Result<ApiAnswer, Refusal> {
    if kind.namespaced && namespace.is_none() {
        // A server has no path for a deletion in all namespaces.
        return Err(Refusal::method_not_allowed());
    }
    let selector = call.selector(kind)?;
    let (deletion, _) = asked(call)?;
    record.dry_run = deletion.dry_run;
    let selected = selected(store, calls, kind, namespace, &selector)?;
    // Webhooks are asked about all before the first one is deleted, which cannot be done anew.
    let mut checked = Ok(());
    let told = told(call, record);
    for (key, _) in &selected {
        let nameless = Key::new(&key.namespace, "");
        let admission = Admission::of(store, calls, kind, &nameless, told.clone());
        let allowed = delete::allow(store, &admission, kind, key, &deletion);
        checked = checked.and(allowed.map(drop));
    }
    checked?;
    let now = calls.once("now", || store.clock.text());
    for (_, object) in &selected {
        delete::delete_shown(store, kind, object, &now, &deletion);
    }
    let deleted = selected.iter().map(|(_, object)| read::item(kind, object));
    let mut metadata = json!({ "resourceVersion": store.version().to_string() });
    if !kind.is_built_in() {
        metadata["continue"] = "".into();
    } else if let Some(shards) = selector.shards() {
        metadata["shardInfo"] = json!({ "selector": shards.to_string() });
    }
    let head = json!({
        "kind": kind.list_kind,
        "apiVersion": kind.api_version(),
        "metadata": metadata,
    });
    Ok(ApiAnswer::json(read::whole_list(
        kind,
        &head,
        deleted.into_iter(),
    )))
}

/// Returns the objects that a selector selects, in the version of the request.
fn selected(
    store: &Store,
    calls: &WebhookCalls,
    kind: &Arc<ServedKind>,
    namespace: Option<&str>,
    selector: &Selector,
) -> Result<Vec<(Key, Arc<StoredObject>)>, Refusal> {
    let id = convert::stored_id(kind);
    let all = store.list(&id, namespace);
    let shown = all.map(|(key, stored)| Ok((key, convert::present(calls, kind, stored)?)));
    // Each one is asked for before the first failure is returned.
    let shown: Vec<Result<_, Refusal>> = shown.collect();
    let mut selected = Vec::new();
    for shown in shown {
        let (key, object) = shown?;
        if selector.selects(key, &object) {
            selected.push((key.clone(), object));
        }
    }
    Ok(selected)
}

/// Returns the options of a deletion as they were given: those of the body, if there is one.
fn given_options(call: &Call) -> Map<String, Value> {
    if !call.body.is_empty() {
        let body = call.parse(&["application/json", "application/yaml"]);
        let mut given = body.ok().and_then(|body| body.as_object().cloned());
        return given.take().unwrap_or_default();
    }
    let mut given = Map::new();
    if call.query.has("propagationPolicy") {
        let policy = call.query.text("propagationPolicy");
        given.insert("propagationPolicy".to_owned(), policy.into());
    }
    if call.dry_run() {
        given.insert("dryRun".to_owned(), json!(["All"]));
    }
    given
}

/// Returns the requested deletion and the deprecated `orphanDependents`.
///
/// If there is a body, a server ignores the query, even `dryRun`.
fn asked(call: &Call) -> Result<(Deletion, Option<bool>), Refusal> {
    let options = if call.body.is_empty() {
        DeleteOptions::of(&call.query)?
    } else {
        let accepted = ["application/json", "application/yaml", PROTOBUF];
        read(&call.parse(&accepted)?)?
    };
    deletion_of(options)
}

fn deletion_of(options: DeleteOptions) -> Result<(Deletion, Option<bool>), Refusal> {
    options.check()?;
    let propagation = match (options.propagation.as_deref(), options.orphans) {
        (Some("Foreground"), _) => Some(Propagation::Foreground),
        (Some("Orphan"), _) | (None, Some(true)) => Some(Propagation::Orphan),
        (Some(_), _) | (None, Some(false)) => Some(Propagation::Background),
        (None, None) => None,
    };
    let deletion = Deletion {
        uid: options.uid,
        version: options.version,
        manner: Manner {
            propagation,
            grace_period: options.grace_period,
        },
        dry_run: !options.dry_run.is_empty(),
    };
    Ok((deletion, options.orphans))
}

/// Reads `DeleteOptions` as a server does: refuses fields of a wrong type, and ignores unknown fields.
fn read(body: &Value) -> Result<DeleteOptions, Refusal> {
    check_kind(body)?;
    let place = "DeleteOptions";
    let grace_period = field(body, place, "gracePeriodSeconds", "int64", Value::is_i64)?;
    let ignores = "ignoreStoreReadErrorWithClusterBreakingPotential";
    field(body, place, ignores, "bool", Value::is_boolean)?;
    let go = "v1.DeletionPropagation";
    let policy = field(body, place, "propagationPolicy", go, Value::is_string)?;
    let orphans = field(body, place, "orphanDependents", "bool", Value::is_boolean)?;
    let dry_run = field(body, place, "dryRun", "[]string", Value::is_array)?;
    let words = dry_run.and_then(Value::as_array).into_iter().flatten();
    let kind = "v1.Preconditions";
    let preconditions = field(body, place, "preconditions", kind, Value::is_object)?;
    let conditions = preconditions.unwrap_or(&Value::Null);
    let place = "Preconditions.preconditions";
    let uid = field(conditions, place, "uid", "types.UID", Value::is_string)?;
    let name = "resourceVersion";
    let version = field(conditions, place, name, "string", Value::is_string)?;
    let owned = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Ok(DeleteOptions {
        dry_run: words
            .map(|word| match word {
                Value::String(_) | Value::Null => Ok(owned(word)),
                other => Err(mistyped(
                    other,
                    "Go struct field DeleteOptions.dryRun",
                    "string",
                )),
            })
            .collect::<Result<_, _>>()?,
        propagation: policy.map(owned),
        orphans: orphans.and_then(Value::as_bool),
        grace_period: grace_period.and_then(Value::as_i64),
        uid: uid.map(owned),
        version: version.map(owned),
    })
}

/// Checks that a body may be `DeleteOptions`; the kind may be missing, and the version may be any.
fn check_kind(body: &Value) -> Result<(), Refusal> {
    if let Some(why) = unreadable(body) {
        return Err(Refusal::bad_request(why));
    }
    let (kind, version) = (text(body, &["kind"]), text(body, &["apiVersion"]));
    if version.matches('/').count() > 1 {
        let why = format!("unexpected GroupVersion string: {version}");
        return Err(Refusal::bad_request(why));
    }
    if matches!(kind, "" | "DeleteOptions") {
        return Ok(());
    }
    let version = if version.is_empty() {
        "meta.k8s.io/v1"
    } else {
        version
    };
    Err(Refusal::bad_request(not_registered(kind, version)))
}

/// Returns a field if it has the right type; `None` if it is missing.
fn field<'a>(
    object: &'a Value,
    place: &str,
    name: &str,
    go: &str,
    is_right: impl Fn(&Value) -> bool,
) -> Result<Option<&'a Value>, Refusal> {
    match object.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) if is_right(value) => Ok(Some(value)),
        Some(value) => Err(mistyped(
            value,
            &format!("Go struct field {place}.{name}"),
            go,
        )),
    }
}

fn mistyped(value: &Value, place: &str, go: &str) -> Refusal {
    let mut found = json_type(value).to_owned();
    if value.is_number() && go == "int64" {
        found = format!("number {value}");
    }
    Refusal::bad_request(format!(
        "json: cannot unmarshal {found} into {place} of type {go}"
    ))
}
