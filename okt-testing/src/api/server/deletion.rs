//! Answers deletions of an object or of a collection.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::call::Call;
use crate::api::admission::{Admission, RequestOptions};
use crate::api::answer::ApiAnswer;
use crate::api::calls::WebhookCalls;
use crate::api::convert;
use crate::api::delete::{self, Deletion, Propagation};
use crate::api::kind::ServedKind;
use crate::api::object::{json_type, text};
use crate::api::options::DeleteOptions;
use crate::api::read;
use crate::api::record::RequestRecord;
use crate::api::refusal::Refusal;
use crate::api::selector::Selector;
use crate::api::store::{Key, Store};
use crate::api::stored::StoredObject;
use crate::api::write::Subresource;

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
    // The deletion is accepted, but not completed.
    if deleted.waits && orphans == Some(false) {
        answer.code = 202;
    }
    Ok(answer)
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
        propagation,
        dry_run: !options.dry_run.is_empty(),
    };
    Ok((deletion, options.orphans))
}

/// Listed for clients as accepted, but [`Call::parse`] refuses it as not implemented.
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// Reads `DeleteOptions` as a server does: refuses fields of a wrong type, and ignores unknown fields.
fn read(body: &Value) -> Result<DeleteOptions, Refusal> {
    check_kind(body)?;
    let place = "DeleteOptions";
    field(body, place, "gracePeriodSeconds", "int64", Value::is_i64)?;
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
        uid: uid.map(owned),
        version: version.map(owned),
    })
}

/// Checks that a body may be `DeleteOptions`; the kind may be missing, and the version may be any.
fn check_kind(body: &Value) -> Result<(), Refusal> {
    let unread = |refusal: String| {
        Refusal::bad_request(format!(
            "couldn't get version/kind; json parse error: {refusal}"
        ))
    };
    if !(body.is_object() || body.is_null()) {
        let go = r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;
        let found = json_type(body);
        let why = format!("json: cannot unmarshal {found} into Go value of type {go}");
        return Err(unread(why));
    }
    for name in ["kind", "apiVersion"] {
        if let Some(value) = body.get(name)
            && !(value.is_string() || value.is_null())
        {
            let found = json_type(value);
            let why = format!(
                "json: cannot unmarshal {found} into Go struct field .{name} of type string"
            );
            return Err(unread(why));
        }
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
    Err(Refusal::bad_request(format!(
        "no kind \"{kind}\" is registered for version \"{version}\" in scheme \"pkg/runtime/scheme.go:111\""
    )))
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
