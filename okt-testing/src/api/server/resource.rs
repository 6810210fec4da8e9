//! Answers requests for resources.

use std::sync::Arc;

use http::Method;
use http::header::ACCEPT;
use serde_json::Value;

use super::call::{Call, check_object, mistyped_metadata};
use super::{deletion, scale};
use crate::api::admission::Admission;
use crate::api::answer::ApiAnswer;
use crate::api::apply::Operation;
use crate::api::calls::WebhookCalls;
use crate::api::causes::Causes;
use crate::api::endpoint::Endpoint;
use crate::api::kind::{KindId, Origin, ServedKind};
use crate::api::path::{RequestTarget, ResourcePath};
use crate::api::read::{self, Form, Selection};
use crate::api::record::{RequestRecord, Verb};
use crate::api::refusal::{Refusal, Subject};
use crate::api::state::Shared;
use crate::api::store::{Key, Store};
use crate::api::watch::{Audience, Watch};
use crate::api::write::{
    self, Draft, Moment, Precondition, Subresource, WriteParams, WrittenObject,
};
use crate::api::{builtin, convert, object, patch, table};

/// A request for a resource.
pub(super) struct ResourceRequest<'r> {
    pub(super) endpoint: &'r Endpoint,
    pub(super) call: &'r Call,
    pub(super) path: &'r ResourcePath,
    pub(super) record: &'r mut RequestRecord,
    pub(super) calls: &'r Arc<WebhookCalls>,
}

impl<'r> ResourceRequest<'r> {
    pub(super) fn answer(mut self) -> Result<ApiAnswer, Refusal> {
        let mut prepared = self.prepare();
        self.calls.check_made()?;
        let mut store = self.endpoint.shared.lock();
        let before = store.version();
        let kind = find(&store, self.path)?;
        let answer = self.answer_from(&mut store, &kind, prepared.as_mut());
        self.record.committed = (store.version() > before).then(|| store.version());
        // The rest of what was prepared is dropped with the store unlocked.
        drop(store);
        warned(&kind, self.calls, answer)
    }

    fn answer_from(
        &mut self,
        store: &mut Store,
        kind: &Arc<ServedKind>,
        prepared: Option<&mut PreparedApply>,
    ) -> Result<ApiAnswer, Refusal> {
        let subresource = subresource(kind, self.path)?;
        let form = Form::accepted(&self.call.header(ACCEPT), &self.call.query)?;
        match self.record.verb {
            Verb::List => {
                let selection = self.selection(kind, form)?;
                let seen = self.endpoint.replica_view.version(store);
                read::list(store, self.calls, seen, &selection, &self.call.query)
                    .map(ApiAnswer::json)
            }
            Verb::Watch => self.watch(store, kind, form),
            Verb::Get => self.get(store, kind, subresource, form),
            Verb::DeleteCollection => {
                let namespace = self.namespace(kind);
                deletion::of_collection(store, self.calls, self.call, kind, namespace, self.record)
            }
            Verb::Delete if subresource == Subresource::None => {
                let key = key(kind, self.path)?;
                deletion::of_object(store, self.calls, self.call, kind, &key, self.record)
            }
            Verb::Delete => Err(Refusal::method_not_allowed()),
            Verb::Create | Verb::Update | Verb::Patch | Verb::Apply => {
                if subresource == Subresource::Scale {
                    return self.write_scale(store, kind);
                }
                let written = self.write(store, kind, subresource, prepared)?;
                self.record.name = Some(written.name);
                let mut answer = ApiAnswer::json(form.show(kind, &written.object, store));
                if written.created {
                    answer.code = 201;
                }
                answer.warnings = written.warnings;
                Ok(answer)
            }
        }
    }

    fn watch(
        &self,
        store: &mut Store,
        kind: &Arc<ServedKind>,
        form: Form,
    ) -> Result<ApiAnswer, Refusal> {
        if Form::is_yaml(&self.call.header(ACCEPT)) {
            return Err(Refusal::new(
                406,
                "NotAcceptable",
                "only the following media types are accepted: application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch",
            ));
        }
        let audience = Audience {
            shared: Arc::clone(&self.endpoint.shared),
            replica_view: Arc::clone(&self.endpoint.replica_view),
            client: self.record.client.clone(),
        };
        let selection = self.selection(kind, form)?;
        let watch = Watch::start(audience, store, self.calls, selection, &self.call.query)?;
        Ok(ApiAnswer::watch(watch))
    }

    fn get(
        &self,
        store: &Store,
        kind: &Arc<ServedKind>,
        subresource: Subresource,
        form: Form,
    ) -> Result<ApiAnswer, Refusal> {
        let takes_cached = self.call.query.has("resourceVersion");
        let seen = takes_cached.then(|| self.endpoint.replica_view.version(store));
        let object = read::get(store, self.calls, seen, kind, &key(kind, self.path)?)?;
        Ok(ApiAnswer::json(match (&kind.scale, subresource) {
            (Some(scale), Subresource::Scale) => {
                let object = object.read();
                if !kind.is_built_in() && !scale.is_set(&object) {
                    return Err(scale.unset());
                }
                form.show_with(&table::scale_columns(), scale.of(&object), store)
            }
            _ => form.show(kind, &object, store),
        }))
    }

    fn write(
        &self,
        store: &mut Store,
        kind: &Arc<ServedKind>,
        subresource: Subresource,
        prepared: Option<&mut PreparedApply>,
    ) -> Result<WrittenObject, Refusal> {
        let call = self.call;
        match self.record.verb {
            Verb::Create => {
                let body = call.object(kind)?;
                let namespace = self.namespace(kind);
                let key = Key::new(namespace.unwrap_or_default(), object::name(&body));
                let params = self.params(store, kind, &key, Subresource::None, Operation::Update);
                if kind.namespaced && namespace.is_none() {
                    return Err(Refusal::unknown_path());
                }
                write::create(store, &params, namespace.unwrap_or_default(), body)
            }
            Verb::Apply => {
                let key = key(kind, self.path)?;
                if let Some(prepared) = prepared
                    && prepared.moment.holds(store, kind, &key)
                {
                    return prepared.draft.commit(store, &prepared.params);
                }
                let mut prepared =
                    PreparedApply::of(self.unprepared(store, kind, subresource, &key), call, &key)?;
                prepared.draft.commit(store, &prepared.params)
            }
            verb => {
                let key = key(kind, self.path)?;
                let params = self.params(store, kind, &key, subresource, Operation::Update);
                if verb == Verb::Patch {
                    return change(store, call, &params, &key);
                }
                write::replace(store, &params, &key, call.object(kind)?)
            }
        }
    }

    fn write_scale(&self, store: &mut Store, kind: &Arc<ServedKind>) -> Result<ApiAnswer, Refusal> {
        let (call, key) = (self.call, key(kind, self.path)?);
        if self.record.verb == Verb::Apply {
            let params = self.params(store, kind, &key, Subresource::Scale, Operation::Apply);
            return scale::apply(store, call, &params, &key);
        }
        let params = self.params(store, kind, &key, Subresource::Scale, Operation::Update);
        let body = match self.record.verb {
            Verb::Patch => None,
            _ => Some(call.parse(&["application/json", "application/yaml"])?),
        };
        scale::write(store, call, &params, &key, |scale| match body {
            None => apply_patch(call, None, scale),
            Some(body) => {
                *scale = body;
                Ok(())
            }
        })
    }

    /// Returns the namespace of the path; `None` for a cluster-scoped kind.
    fn namespace(&self, kind: &ServedKind) -> Option<&'r str> {
        let namespace = self.path.namespace.as_deref();
        namespace.filter(|_| kind.namespaced)
    }

    fn selection(&self, kind: &Arc<ServedKind>, form: Form) -> Result<Selection, Refusal> {
        Ok(Selection {
            kind: Arc::clone(kind),
            namespace: self.namespace(kind).map(str::to_owned),
            selector: self.call.selector(kind)?,
            form,
        })
    }

    /// Prepares an apply with the store unlocked, as a real server does most of the work.
    ///
    /// Returns `None` for another request, and for an apply that fails: its error is that of the locked store. A scale
    /// needs little work.
    fn prepare(&self) -> Option<PreparedApply> {
        if self.record.verb != Verb::Apply {
            return None;
        }
        let store = self.endpoint.shared.lock();
        let kind = find(&store, self.path).ok()?;
        let key = key(&kind, self.path).ok()?;
        let subresource = subresource(&kind, self.path).ok()?;
        if subresource == Subresource::Scale {
            return None;
        }
        let unprepared = self.unprepared(&store, &kind, subresource, &key);
        drop(store);
        PreparedApply::of(unprepared, self.call, &key).ok()
    }

    /// Returns what an apply needs of the store before it is prepared.
    fn unprepared(
        &self,
        store: &Store,
        kind: &Arc<ServedKind>,
        subresource: Subresource,
        key: &Key,
    ) -> (Moment, WriteParams) {
        let params = self.params(store, kind, key, subresource, Operation::Apply);
        (Moment::of(store, self.calls, kind, key), params)
    }

    fn params(
        &self,
        store: &Store,
        kind: &Arc<ServedKind>,
        key: &Key,
        subresource: Subresource,
        operation: Operation,
    ) -> WriteParams {
        let options = self.call.admission_options(self.record, subresource);
        let admission = Admission::of(store, self.calls, kind, key, options);
        self.call.params(kind, subresource, operation, admission)
    }
}

/// An apply that only needs to be committed, if its object is still as it was.
struct PreparedApply {
    moment: Moment,
    params: WriteParams,
    draft: Draft,
}

impl PreparedApply {
    fn of(
        (moment, params): (Moment, WriteParams),
        call: &Call,
        key: &Key,
    ) -> Result<Self, Refusal> {
        let kind = &params.kind;
        if params.subresource == Subresource::Status
            && !moment.has_object()
            && !kind.creates_on_update
        {
            // The server answers this before it reads the configuration.
            return Err(Refusal::not_found(kind.subject(&key.name)));
        }
        let mut config = call.parse(&[patch::APPLY])?;
        object::whole_numbers(&mut config);
        check_applied(kind, &config)?;
        check_object(kind, &config)?;
        let draft = write::draft_apply(&moment, &params, key, config, call.query.flag("force"))?;
        Ok(Self {
            moment,
            params,
            draft,
        })
    }
}

/// Adds the deprecation warning of the kind's version to the answer, before all others, and the warnings of webhooks.
fn warned(
    kind: &ServedKind,
    calls: &WebhookCalls,
    mut answer: Result<ApiAnswer, Refusal>,
) -> Result<ApiAnswer, Refusal> {
    let warnings = match &mut answer {
        Ok(answer) => &mut answer.warnings,
        Err(refusal) => &mut refusal.warnings,
    };
    warnings.splice(0..0, kind.deprecation.clone());
    warnings.extend(calls.warnings());
    answer
}

/// Removes the name from the path of a creation: a real server creates a custom resource at the path of any object.
pub(super) fn without_name(shared: &Shared, call: &Call, target: RequestTarget) -> RequestTarget {
    match target {
        RequestTarget::Resource(path)
            if call.method == Method::POST
                && path.name.is_some()
                && path.subresource.is_none()
                && find(&shared.lock(), &path).is_ok_and(|kind| {
                    !kind.is_built_in() && kind.namespaced == path.namespace.is_some()
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
        Some(other) if kind.is_built_in() => {
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

/// Returns the key of the object at a path.
fn key(kind: &ServedKind, path: &ResourcePath) -> Result<Key, Refusal> {
    if kind.namespaced && path.namespace.is_none() {
        return Err(Refusal::unknown_path());
    }
    let namespace = path.namespace.as_deref().filter(|_| kind.namespaced);
    let name = path.name.as_deref().unwrap_or_default();
    Ok(Key::new(namespace.unwrap_or_default(), name))
}

fn find(store: &Store, path: &ResourcePath) -> Result<Arc<ServedKind>, Refusal> {
    let id = KindId::new(&path.group, &path.plural);
    if let Some(kind) = store.served(&id, &path.version) {
        if path.namespace.is_some() && !kind.namespaced {
            return Err(Refusal::unknown_path());
        }
        return Ok(Arc::clone(kind));
    }
    match store.kind(&id) {
        Some(kind) if !kind.is_built_in() => Err(Refusal::unknown_path()),
        _ if builtin::is_known_elsewhere(&path.group) => Err(Refusal::not_served(format!(
            "the resource {} of {}/{}",
            path.plural, path.group, path.version
        ))),
        _ => Err(Refusal::unknown_path()),
    }
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
    let Some(stored) = convert::current(params.calls(), store, &params.kind, key)? else {
        return Err(Refusal::not_found(kind.subject(&key.name)));
    };
    let old = stored.read();
    let mut new = old.clone();
    apply_patch(call, Some(kind), &mut new)?;
    let strategic = call.media() == patch::STRATEGIC;
    if strategic || (kind.is_built_in() && object::text(&new, &["kind"]).is_empty()) {
        // Such a patch need not name the kind.
        object::fields(&mut new).insert("kind".to_owned(), kind.kind.clone().into());
    }
    let found = object::text(&new, &["kind"]);
    if kind.is_built_in() && found != kind.kind {
        return Err(Refusal::undecodable_patch(&new, "it is of another kind"));
    }
    if let Some(why) = mistyped_metadata(kind, &new) {
        return Err(Refusal::undecodable_patch(&new, &why));
    }
    if kind.is_built_in()
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
    if kind.is_built_in() || version.is_empty() || kind.is_in(version) {
        return None;
    }
    let found = object::text(patched, &["kind"]);
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
        ..kind.subject(object::name(patched))
    };
    Some(Refusal::invalid(subject, &causes))
}

/// Applies a patch to a document. `kind` is `None` for a scale, which is no kind of its own.
fn apply_patch(call: &Call, kind: Option<&ServedKind>, target: &mut Value) -> Result<(), Refusal> {
    let strategic = kind.is_none_or(ServedKind::is_built_in);
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
