//! Answers requests for resources.

use std::sync::Arc;

use http::Method;
use http::header::ACCEPT;
use serde_json::Value;

use super::call::{Call, check_object, mistyped_metadata};
use super::{deletion, scale};
use crate::api::answer::ApiAnswer;
use crate::api::apply::Operation;
use crate::api::kind::{KindId, Origin, ServedKind};
use crate::api::path::{RequestTarget, ResourcePath};
use crate::api::read::{self, Form};
use crate::api::record::{RequestRecord, Verb};
use crate::api::refusal::{Refusal, RefusalCause, Subject};
use crate::api::replica_view::ReplicaView;
use crate::api::state::Shared;
use crate::api::store::{Key, Store};
use crate::api::watch::{Audience, Watch};
use crate::api::write::{self, Moment, Precondition, Subresource, WriteParams, WrittenObject};
use crate::api::{builtin, convert, object, patch};

pub(super) fn answer(
    shared: &Arc<Shared>,
    replica_view: &Arc<ReplicaView>,
    call: &Call,
    path: &ResourcePath,
    record: &mut RequestRecord,
) -> Result<ApiAnswer, Refusal> {
    if record.verb == Verb::Apply
        && let Some(answer) = apply_beside(shared, call, path, record)?
    {
        return Ok(answer);
    }
    let mut store = shared.lock();
    let before = store.version();
    let answer = answer_from(&mut store, shared, replica_view, call, path, record);
    record.committed = (store.version() > before).then(|| store.version());
    answer
}

fn answer_from(
    store: &mut Store,
    shared: &Arc<Shared>,
    replica_view: &Arc<ReplicaView>,
    call: &Call,
    path: &ResourcePath,
    record: &mut RequestRecord,
) -> Result<ApiAnswer, Refusal> {
    let kind = find(store, path)?;
    let answer = answer_of(store, shared, replica_view, call, path, &kind, record);
    warned(&kind, answer)
}

/// Adds the deprecation warning of the kind's version to the answer.
fn warned(kind: &ServedKind, answer: Result<ApiAnswer, Refusal>) -> Result<ApiAnswer, Refusal> {
    match &kind.deprecation {
        None => answer,
        Some(warning) => answer
            .map(|answer| answer.warned(warning))
            .map_err(|refusal| refusal.warned_first(warning)),
    }
}

fn answer_of(
    store: &mut Store,
    shared: &Arc<Shared>,
    replica_view: &Arc<ReplicaView>,
    call: &Call,
    path: &ResourcePath,
    kind: &Arc<ServedKind>,
    record: &mut RequestRecord,
) -> Result<ApiAnswer, Refusal> {
    let scope = Scope::of(path, kind);
    let subresource = subresource(kind, path)?;
    let form = Form::accepted(&call.header(ACCEPT), &call.query)?;
    let written = match record.verb {
        Verb::List => {
            let selector = call.selector(kind)?;
            let namespace = scope.namespace.as_deref();
            let seen = replica_view.version(store);
            let list = read::list(store, seen, kind, namespace, &selector, &call.query, form)?;
            return Ok(ApiAnswer::json(list));
        }
        Verb::Watch => {
            if Form::is_yaml(&call.header(ACCEPT)) {
                return Err(Refusal::new(
                    406,
                    "NotAcceptable",
                    "only the following media types are accepted: application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch",
                ));
            }
            let audience = Audience {
                shared: Arc::clone(shared),
                replica_view: Arc::clone(replica_view),
                client: record.client.clone(),
            };
            let namespace = scope.namespace.as_deref();
            let selector = call.selector(kind)?;
            let query = &call.query;
            let watch = Watch::start(audience, store, kind, namespace, selector, query, form)?;
            return Ok(ApiAnswer::Watch {
                watch: Box::new(watch),
                warnings: Vec::new(),
            });
        }
        Verb::DeleteCollection => {
            let namespace = scope.namespace.as_deref();
            return deletion::of_collection(store, call, kind, namespace, record);
        }
        Verb::Create => create(store, call, kind, &scope)?,
        Verb::Get => {
            let seen = call
                .query
                .has("resourceVersion")
                .then(|| replica_view.version(store));
            let object = read::get(store, seen, kind, &scope.key(kind)?)?;
            return Ok(match (&kind.scale, subresource) {
                (Some(scale), Subresource::Scale) => {
                    let object = object.read();
                    if kind.origin == Origin::Crd && !scale.is_set(&object) {
                        return Err(scale.unset());
                    }
                    ApiAnswer::json(form.show_scale(scale.of(&object), store))
                }
                _ => ApiAnswer::json(form.show(kind, &object, store)),
            });
        }
        Verb::Delete if subresource == Subresource::None => {
            return deletion::of_object(store, call, kind, &scope.key(kind)?, record);
        }
        Verb::Delete => return Err(Refusal::method_not_allowed()),
        Verb::Update => {
            let key = scope.key(kind)?;
            let params = call.params(kind, subresource, Operation::Update);
            if subresource == Subresource::Scale {
                let body = call.parse(&["application/json", "application/yaml"])?;
                return scale::write(store, call, &params, &key, |scale| {
                    scale.clone_from(&body);
                    Ok(())
                });
            }
            let body = call.object(kind)?;
            write::replace(store, &params, &key, body)?
        }
        Verb::Patch => {
            let key = scope.key(kind)?;
            let params = call.params(kind, subresource, Operation::Update);
            if subresource == Subresource::Scale {
                let edit = |scale: &mut Value| apply_patch(call, None, scale);
                return scale::write(store, call, &params, &key, edit);
            }
            change(store, call, &params, &key)?
        }
        Verb::Apply => {
            let key = scope.key(kind)?;
            if subresource == Subresource::Scale {
                return scale::apply(store, call, kind, &key);
            }
            let (params, config) = read_apply(call, kind, subresource)?;
            write::apply(store, &params, &key, config, call.query.flag("force"))?
        }
    };
    record.name = Some(written.name.clone());
    Ok(show_written(store, kind, form, written))
}

fn show_written(store: &Store, kind: &ServedKind, form: Form, written: WrittenObject) -> ApiAnswer {
    ApiAnswer::Json {
        code: if written.created { 201 } else { 200 },
        body: form.show(kind, &written.object, store),
        warnings: written.warnings,
    }
}

/// Applies a configuration, with the store unlocked during most of the work, as on a real server.
///
/// Returns `None` if the object has changed meanwhile; then the work is repeated with the store locked. The same holds
/// for a scale, which needs little work.
fn apply_beside(
    shared: &Shared,
    call: &Call,
    path: &ResourcePath,
    record: &mut RequestRecord,
) -> Result<Option<ApiAnswer>, Refusal> {
    let store = shared.lock();
    let kind = find(&store, path)?;
    let key = Scope::of(path, &kind).key(&kind)?;
    let moment = Moment::of(&store, &kind, &key);
    drop(store);
    let answer = apply_on(&moment, shared, call, path, &kind, &key, record);
    let answer = answer.transpose().map(|answer| warned(&kind, answer));
    answer.transpose()
}

/// Applies a configuration to an earlier state of an object, unless the object has changed since.
fn apply_on(
    moment: &Moment,
    shared: &Shared,
    call: &Call,
    path: &ResourcePath,
    kind: &Arc<ServedKind>,
    key: &Key,
    record: &mut RequestRecord,
) -> Result<Option<ApiAnswer>, Refusal> {
    let subresource = subresource(kind, path)?;
    if subresource == Subresource::Scale {
        return Ok(None);
    }
    let form = Form::accepted(&call.header(ACCEPT), &call.query)?;
    if subresource == Subresource::Status && !moment.has_object() && !kind.creates_on_update {
        // The server answers this before it reads the configuration.
        return Err(Refusal::not_found(kind.subject(&key.name)));
    }
    let (params, config) = read_apply(call, kind, subresource)?;
    let mut draft = write::draft_apply(moment, &params, key, config, call.query.flag("force"))?;
    let mut store = shared.lock();
    if !moment.holds(&store, kind, key) {
        return Ok(None);
    }
    let before = store.version();
    let written = draft.commit(&mut store, &params);
    record.committed = (store.version() > before).then(|| store.version());
    Ok(Some(show_written(&store, kind, form, written?)))
}

fn read_apply(
    call: &Call,
    kind: &Arc<ServedKind>,
    subresource: Subresource,
) -> Result<(WriteParams, Value), Refusal> {
    let params = call.params(kind, subresource, Operation::Apply);
    let mut config = call.parse(&[patch::APPLY])?;
    object::whole_numbers(&mut config);
    check_applied(kind, &config)?;
    check_object(kind, &config)?;
    Ok((params, config))
}

/// Removes the name from the path of a creation: a real server creates a custom resource at the path of any object.
pub(super) fn without_name(shared: &Shared, call: &Call, target: RequestTarget) -> RequestTarget {
    match target {
        RequestTarget::Resource(path)
            if call.method == Method::POST
                && path.name.is_some()
                && path.subresource.is_none()
                && find(&shared.lock(), &path).is_ok_and(|kind| {
                    kind.origin == Origin::Crd && kind.namespaced == path.namespace.is_some()
                }) =>
        {
            RequestTarget::Resource(ResourcePath { name: None, ..path })
        }
        target => target,
    }
}

/// Returns the error of a server for a method that the path does not support.
pub(super) fn misuse(store: &Store, call: &Call, path: &ResourcePath) -> Refusal {
    let found = find(store, path).and_then(|kind| subresource(&kind, path).map(|_| kind));
    let kind = match found {
        Ok(kind) => kind,
        Err(refusal) => return refusal,
    };
    let wants_a_name = path.name.is_none() && matches!(call.method, Method::PUT | Method::PATCH);
    match kind.origin {
        Origin::Crd if kind.namespaced && path.namespace.is_none() => Refusal::unknown_path(),
        Origin::Crd if wants_a_name => Refusal::bad_request("name must be provided"),
        Origin::Crd if call.method == Method::POST => Refusal::cannot_create(kind.subject("")),
        Origin::Crd | Origin::BuiltIn => Refusal::method_not_allowed(),
    }
}

fn subresource(kind: &ServedKind, path: &ResourcePath) -> Result<Subresource, Refusal> {
    Ok(match path.subresource.as_deref() {
        None => Subresource::None,
        Some("status") if kind.has_status => Subresource::Status,
        Some("scale") if kind.scale.is_some() => Subresource::Scale,
        Some(other) if kind.origin == Origin::BuiltIn => {
            return Err(Refusal::not_served(format!(
                "the subresource {other} of {}",
                kind.plural
            )));
        }
        Some(_) => {
            let name = path.name.as_deref().unwrap_or_default();
            return Err(Refusal::not_found(kind.subject(name)));
        }
    })
}

/// The part of a path that selects objects of a kind.
struct Scope {
    namespace: Option<String>,
    name: Option<String>,
}

impl Scope {
    fn of(path: &ResourcePath, kind: &ServedKind) -> Self {
        Self {
            namespace: path.namespace.clone().filter(|_| kind.namespaced),
            name: path.name.clone(),
        }
    }

    fn key(&self, kind: &ServedKind) -> Result<Key, Refusal> {
        if kind.namespaced && self.namespace.is_none() {
            return Err(Refusal::unknown_path());
        }
        Ok(Key {
            namespace: self.namespace.clone().unwrap_or_default(),
            name: self.name.clone().unwrap_or_default(),
        })
    }
}

fn find(store: &Store, path: &ResourcePath) -> Result<Arc<ServedKind>, Refusal> {
    let id = KindId {
        group: path.group.clone(),
        plural: path.plural.clone(),
    };
    if let Some(kind) = store.served(&id, &path.version) {
        if path.namespace.is_some() && !kind.namespaced {
            return Err(Refusal::unknown_path());
        }
        return Ok(Arc::clone(kind));
    }
    match store.kind(&id) {
        Some(kind) if kind.origin == Origin::Crd => Err(Refusal::unknown_path()),
        _ if builtin::is_known_elsewhere(&path.group) => Err(Refusal::not_served(format!(
            "the resource {} of {}/{}",
            path.plural, path.group, path.version
        ))),
        _ => Err(Refusal::unknown_path()),
    }
}

fn create(
    store: &mut Store,
    call: &Call,
    kind: &Arc<ServedKind>,
    scope: &Scope,
) -> Result<WrittenObject, Refusal> {
    let params = call.params(kind, Subresource::None, Operation::Update);
    let body = call.object(kind)?;
    let namespace = match (&scope.namespace, kind.namespaced) {
        (Some(namespace), _) => namespace.as_str(),
        (None, false) => "",
        (None, true) => {
            return Err(Refusal::unknown_path());
        }
    };
    write::create(store, &params, namespace, body)
}

/// Checks that a configuration is one of this kind.
fn check_applied(kind: &ServedKind, config: &Value) -> Result<(), Refusal> {
    let (found, version) = (
        object::text(config, &["kind"]),
        object::text(config, &["apiVersion"]),
    );
    if found.is_empty()
        || version.is_empty()
        || (found == kind.kind && version == kind.api_version())
    {
        return Ok(());
    }
    let version = if version.contains('/') {
        version.to_owned()
    } else {
        format!("/{version}")
    };
    Err(Refusal::bad_request(format!(
        "invalid object type: {version}, Kind={found}"
    )))
}

/// Patches an object by any method but server-side apply.
fn change(
    store: &mut Store,
    call: &Call,
    params: &WriteParams,
    key: &Key,
) -> Result<WrittenObject, Refusal> {
    let kind = &*params.kind;
    let Some(old) = convert::current(store, kind, key) else {
        return Err(Refusal::not_found(kind.subject(&key.name)));
    };
    let old = old.read();
    let mut new = old.clone();
    apply_patch(call, Some(kind), &mut new)?;
    let strategic = call.media() == patch::STRATEGIC;
    if strategic || (kind.origin == Origin::BuiltIn && object::text(&new, &["kind"]).is_empty()) {
        // Such a patch need not name the kind.
        object::fields(&mut new).insert("kind".to_owned(), kind.kind.clone().into());
    }
    let found = object::text(&new, &["kind"]);
    if kind.origin == Origin::BuiltIn && found != kind.kind {
        return Err(Refusal::undecodable_patch(&new, "it is of another kind"));
    }
    if let Some(cause) = mistyped_metadata(kind, &new) {
        let why = format!("{}: {}", cause.field, cause.message);
        return Err(Refusal::undecodable_patch(&new, &why));
    }
    if kind.origin == Origin::BuiltIn
        && !strategic
        && let Some(why) = builtin::check_integers(&kind.kind, &new)
    {
        return Err(Refusal::undecodable_patch(&new, &why));
    }
    let another = another_version(kind, &new);
    if another.is_none() {
        check_object(kind, &new)?;
    }
    write::check_address(kind, key, &new)
        .and_then(|()| Precondition::of(&new).check_version(kind, &old))
        .and_then(|()| another.map_or(Ok(()), Err))
        .map_err(|refusal| write::warn(params, &new, refusal))?;
    write::update(store, params, &old, new)
}

/// Returns the error for a patch that changes the version of a custom resource.
fn another_version(kind: &ServedKind, patched: &Value) -> Option<Refusal> {
    let version = object::text(patched, &["apiVersion"]);
    if kind.origin == Origin::BuiltIn || version.is_empty() || kind.is_in(version) {
        return None;
    }
    let found = object::text(patched, &["kind"]);
    let differs = |field: &str, found: &str, must: &str| {
        let cause = RefusalCause::invalid(field, &found.into(), &format!("must be {must}"));
        (found != must).then_some(cause)
    };
    let causes: Vec<_> = [
        differs("kind", found, &kind.kind),
        differs("apiVersion", version, &kind.api_version()),
    ]
    .into_iter()
    .flatten()
    .collect();
    let (group, _) = version.split_once('/').unwrap_or_default();
    let subject = Subject {
        group,
        kind: found,
        ..kind.subject(object::name(patched))
    };
    Some(Refusal::invalid(subject, &causes))
}

/// Applies a patch to a document. `kind` is `None` for a scale, which is no kind of its own.
fn apply_patch(call: &Call, kind: Option<&ServedKind>, target: &mut Value) -> Result<(), Refusal> {
    let strategic = kind.is_none_or(|kind| kind.origin == Origin::BuiltIn);
    let mut accepted = vec![patch::JSON, patch::MERGE];
    if strategic {
        accepted.push(patch::STRATEGIC);
    }
    accepted.push(patch::APPLY);
    let media = call.media();
    if media.is_empty() {
        return Err(Refusal::unsupported_media_type(&accepted));
    }
    let body = call.parse(&accepted)?;
    match media.as_str() {
        patch::JSON => patch::json(target, &body),
        patch::STRATEGIC if body.is_null() => Ok(()),
        patch::STRATEGIC if !body.is_object() => Err(Refusal::bad_request(format!(
            "json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            object::json_type(&body)
        ))),
        patch::STRATEGIC => {
            patch::strategic(kind.map(|kind| &*kind.schema), target, &body);
            Ok(())
        }
        patch::MERGE if body.is_object() => {
            patch::merge(target, &body);
            Ok(())
        }
        patch::MERGE => Err(Refusal::bad_request(format!(
            "error decoding patch: json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            object::json_type(&body)
        ))),
        _ => Err(Refusal::not_served("server-side apply of a scale")),
    }
}
