//! Answers requests for resources.

use std::sync::Arc;

use super::authorise::answer_review;
use super::decode::{self, Call};
use super::patches::{PreparedApply, apply_patch, patch_object};
use super::{deletion, scale};
use crate::admission::Admission;
use crate::answer::ApiAnswer;
use crate::apply::Operation;
use crate::calls::WebhookCalls;
use crate::endpoint::Endpoint;
use crate::kind::{KindId, Origin, ServedKind};
use crate::path::{RequestTarget, ResourcePath};
use crate::read::{self, Form, Selection};
use crate::record::{RequestRecord, Verb};
use crate::refusal::Refusal;
use crate::state::Shared;
use crate::store::{Key, Store};
use crate::subresource::Subresource;
use crate::watch::{Audience, Watch};
use crate::write::{Moment, Write, WriteParams, WrittenObject};
use crate::{builtin, delete, object, table};
use http::Method;
use http::header::ACCEPT;

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
        // The reviewer may use the server.
        let is_allowed = answer_review(&self.endpoint.shared, self.call, self.record);
        let mut store = self.endpoint.shared.lock();
        let before = store.version();
        let kind = find(&store, self.path)?;
        let answer = match self.act(&mut store, &kind, is_allowed) {
            Some(answer) => answer,
            None if kind.is_action => Err(Refusal::method_not_allowed()),
            None => self.answer_from(&mut store, &kind, prepared.as_mut()),
        };
        self.record.committed = (store.version() > before).then(|| store.version());
        let leaves_work = !store.cleanup.is_empty();
        // The rest of what was prepared is dropped with the store unlocked.
        drop(store);
        if leaves_work {
            delete::clean_up_soon(&self.endpoint.shared);
        }
        warned(&kind, self.calls, answer)
    }

    fn answer_from(
        &mut self,
        store: &mut Store,
        kind: &Arc<ServedKind>,
        prepared: Option<&mut PreparedApply>,
    ) -> Result<ApiAnswer, Refusal> {
        let subresource = subresource(kind, self.path)?;
        if self.call.method == Method::HEAD && kind.is_built_in() {
            return Err(Refusal::method_not_allowed());
        }
        let form = Form::accepted(&self.call.header(ACCEPT), &self.call.query, kind)?;
        match self.record.verb {
            Verb::List => {
                let selection = self.selection(kind, form)?;
                let seen = self.endpoint.replica_view.version(store);
                read::list(store, self.calls, seen, &selection, &self.call.query)
                    .map(ApiAnswer::json)
            }
            Verb::Watch => self.watch(store, kind, form),
            Verb::Get => self.get(store, kind, subresource, form),
            // A server deletes one namespace at a time.
            Verb::DeleteCollection if kind.is("", "namespaces") => {
                Err(Refusal::method_not_allowed())
            }
            Verb::DeleteCollection => {
                let namespace = self.namespace(kind);
                deletion::of_collection(store, self.calls, self.call, kind, namespace, self.record)
            }
            Verb::Delete if subresource == Subresource::None => {
                let key = key(kind, self.path)?;
                deletion::of_object(store, self.calls, self.call, kind, &key, self.record)
            }
            Verb::Delete => Err(Refusal::method_not_allowed()),
            Verb::Create if self.path.name.is_some() => Err(Refusal::method_not_allowed()),
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
                Write::decode(params, body)?.create(store, namespace.unwrap_or_default())
            }
            Verb::Apply => {
                let key = key(kind, self.path)?;
                if let Some(prepared) = prepared
                    && prepared.moment.holds(store, kind, &key)
                {
                    return prepared.write.commit(store);
                }
                let unprepared = self.unprepared(store, kind, subresource, &key);
                PreparedApply::of(unprepared, call, &key)?
                    .write
                    .commit(store)
            }
            verb => {
                let key = key(kind, self.path)?;
                let params = self.params(store, kind, &key, subresource, Operation::Update);
                if verb == Verb::Patch {
                    return patch_object(store, call, params, &key);
                }
                Write::decode(params, call.object(kind)?)?.replace(store, &key)
            }
        }
    }

    fn write_scale(&self, store: &mut Store, kind: &Arc<ServedKind>) -> Result<ApiAnswer, Refusal> {
        let (call, key) = (self.call, key(kind, self.path)?);
        if self.record.verb == Verb::Apply {
            let params = self.params(store, kind, &key, Subresource::Scale, Operation::Apply);
            return scale::apply(store, call, params, &key);
        }
        let params = self.params(store, kind, &key, Subresource::Scale, Operation::Update);
        let body = match self.record.verb {
            Verb::Patch => None,
            _ => Some(call.parse(&decode::accepted(kind))?),
        };
        scale::write(store, call, params, &key, |scale| match body {
            None => apply_patch(call, None, scale).map(drop),
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
        Some("approval") if kind.plural == "certificatesigningrequests" => Subresource::Approval,
        Some("ephemeralcontainers") if kind.is("", "pods") => Subresource::EphemeralContainers,
        Some("resize") if kind.is("", "pods") => Subresource::Resize,
        Some("scale") if kind.scale.is_some() => Subresource::Scale,
        Some(other) if kind.is_built_in() => {
            let resource = format!("{}/{other}", kind.plural);
            return Err(unknown(&kind.group, &kind.version, &resource));
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
    Err(unknown(&path.group, &path.version, &path.plural))
}

/// Returns the refusal of a resource that is not served: whether a real server serves it makes the difference.
fn unknown(group: &str, version: &str, resource: &str) -> Refusal {
    if !builtin::MISSING.contains(&(group, version, resource)) {
        return builtin::unknown(group);
    }
    Refusal::not_served(match group {
        "" => format!("{resource} of {version}"),
        group => format!("{resource} of {group}/{version}"),
    })
}
