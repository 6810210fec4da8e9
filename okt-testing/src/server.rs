//! This file takes a request to the part that answers it.
//!
//! In-process clients and HTTP connections both end here, on one store behind one lock.

use std::{
    convert::Infallible,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Method, Request, Response,
    header::{ACCEPT, CONTENT_TYPE, USER_AGENT, WARNING},
};
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use serde_json::{Value, json};

use crate::{
    apply::{Manager, Operation},
    builtin, delete,
    delete::{Deletion, Propagation},
    discovery,
    kind::{Kind, KindId, Origin},
    object, patch,
    path::{Query, ResourcePath, Target},
    read::{self, Form},
    record::{RequestRecord, Verb},
    refusal::Refusal,
    selector::Selector,
    store::{Key, Store},
    watch::Watch,
    write::{self, Door, Precondition, Subresource, UnknownFields, Written},
};

pub(crate) type Body = UnsyncBoxBody<Bytes, Infallible>;

/// A body of more bytes is not read.
const BODY_LIMIT: usize = 3 * 1024 * 1024;

/// What all clients share.
pub(crate) struct Shared {
    store: Mutex<Store>,
    requests: Mutex<Vec<RequestRecord>>,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

impl Shared {
    pub(crate) fn new() -> Self {
        Self {
            store: Mutex::new(Store::new()),
            requests: Mutex::new(Vec::new()),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Store> {
        // A change is complete before the lock is released, so a panic elsewhere spoils nothing.
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn requests(&self) -> MutexGuard<'_, Vec<RequestRecord>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request, read.
struct Call {
    method: Method,
    path: String,
    query: Query,
    headers: HeaderMap,
    body: Bytes,
}

/// An answer before it is put into HTTP.
pub(crate) enum Answer {
    Object {
        code: u16,
        body: Value,
        warnings: Vec<String>,
    },
    Text(&'static str),
    Typed {
        content_type: &'static str,
        body: Value,
    },
    Watch(Box<Watch>),
}

impl Answer {
    pub(crate) fn ok(body: Value) -> Self {
        Self::Object {
            code: 200,
            body,
            warnings: Vec::new(),
        }
    }
}

/// Answers a request and records it.
pub(crate) async fn handle<B>(shared: &Arc<Shared>, request: Request<B>) -> Response<Body>
where
    B: http_body::Body,
    B::Error: Into<tower::BoxError>,
{
    let (parts, body) = request.into_parts();
    let mut record = RequestRecord {
        verb: Verb::Get,
        path: parts.uri.path().to_owned(),
        group: String::new(),
        version: String::new(),
        resource: String::new(),
        subresource: None,
        namespace: None,
        name: None,
        field_manager: None,
        dry_run: false,
        status: 0,
    };
    let answer = match collect(body).await {
        Ok(body) => {
            let call = Call {
                method: parts.method,
                path: parts.uri.path().to_owned(),
                query: Query::parse(parts.uri.query().unwrap_or_default()),
                headers: parts.headers,
                body,
            };
            answer(shared, &call, &mut record)
        }
        Err(refusal) => Err(refusal),
    };
    let response = respond(answer);
    record.status = response.status().as_u16();
    tracing::debug!(verb = %record.verb, path = record.path, status = record.status, "answered");
    shared.requests().push(record);
    response
}

async fn collect<B>(body: B) -> Result<Bytes, Refusal>
where
    B: http_body::Body,
    B::Error: Into<tower::BoxError>,
{
    let body = http_body_util::Limited::new(body, BODY_LIMIT);
    match body.collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(_) => Err(Refusal::new(
            413,
            "RequestEntityTooLarge",
            format!("Request entity too large: limit is {BODY_LIMIT}"),
        )),
    }
}

fn respond(answer: Result<Answer, Refusal>) -> Response<Body> {
    let (code, content_type, body, warnings) = match answer {
        Ok(Answer::Object {
            code,
            body,
            warnings,
        }) => (code, "application/json", bytes_of(&body), warnings),
        Ok(Answer::Typed { content_type, body }) => {
            (200, content_type, bytes_of(&body), Vec::new())
        }
        Ok(Answer::Text(text)) => (
            200,
            "text/plain; charset=utf-8",
            Bytes::from_static(text.as_bytes()),
            Vec::new(),
        ),
        Ok(Answer::Watch(watch)) => {
            let body = StreamBody::new(watch.stream()).boxed_unsync();
            let mut response = Response::new(body);
            let json = HeaderValue::from_static("application/json");
            response.headers_mut().insert(CONTENT_TYPE, json);
            return response;
        }
        Err(refusal) => (
            refusal.code,
            "application/json",
            bytes_of(&refusal.body()),
            Vec::new(),
        ),
    };
    let mut response = Response::new(Full::new(body).boxed_unsync());
    *response.status_mut() =
        http::StatusCode::from_u16(code).unwrap_or(http::StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    for warning in warnings {
        if let Ok(value) = HeaderValue::from_str(&format!("299 - {}", Value::from(warning))) {
            headers.append(WARNING, value);
        }
    }
    response
}

fn bytes_of(body: &Value) -> Bytes {
    Bytes::from(body.to_string())
}

fn answer(
    shared: &Arc<Shared>,
    call: &Call,
    record: &mut RequestRecord,
) -> Result<Answer, Refusal> {
    match Target::parse(&call.path) {
        Target::Resource(path) => answer_resource(shared, call, path, record),
        Target::Other(segments) => {
            if !matches!(call.method, Method::GET | Method::HEAD) {
                return Err(Refusal::method_not_allowed());
            }
            let segments: Vec<_> = segments.iter().map(String::as_str).collect();
            discovery::answer(&shared.lock(), &segments, &call.header(ACCEPT))
        }
    }
}

impl Call {
    fn header(&self, name: http::HeaderName) -> String {
        let values: Vec<_> = self
            .headers
            .get_all(name)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .collect();
        values.join(",")
    }

    fn media(&self) -> String {
        let value = self.header(CONTENT_TYPE);
        value
            .split(';')
            .next()
            .unwrap_or_default()
            .trim()
            .to_owned()
    }

    fn verb(&self, has_name: bool) -> Result<Verb, Refusal> {
        Ok(match (&self.method, has_name) {
            (&Method::GET | &Method::HEAD, true) => Verb::Get,
            (&Method::GET | &Method::HEAD, false) if self.query.flag("watch") => Verb::Watch,
            (&Method::GET | &Method::HEAD, false) => Verb::List,
            (&Method::POST, false) => Verb::Create,
            (&Method::PUT, true) => Verb::Update,
            (&Method::PATCH, true) if self.media() == patch::APPLY => Verb::Apply,
            (&Method::PATCH, true) => Verb::Patch,
            (&Method::DELETE, true) => Verb::Delete,
            (&Method::DELETE, false) => Verb::DeleteCollection,
            _ => return Err(Refusal::method_not_allowed()),
        })
    }

    /// Reads a body of JSON, or of YAML where the client says so.
    fn parse(&self, accepted: &[&str]) -> Result<Value, Refusal> {
        let media = self.media();
        if media == "application/vnd.kubernetes.protobuf" {
            return Err(Refusal::not_served(
                "a body in protobuf, as `kubectl create` sends it for built-in kinds; `kubectl apply -f` sends JSON",
            ));
        }
        if !media.is_empty() && !accepted.contains(&media.as_str()) {
            return Err(Refusal::unsupported_media_type(accepted));
        }
        match serde_json::from_slice(&self.body) {
            Ok(value) => Ok(value),
            Err(_) if media.ends_with("yaml") => serde_saphyr::from_slice(&self.body)
                .map_err(|error| Refusal::bad_request(format!("error decoding YAML: {error}"))),
            Err(error) => Err(Refusal::bad_request(format!(
                "the object provided is unrecognized (must be of type JSON): {error}"
            ))),
        }
    }

    /// Reads an object of a kind.
    fn object(&self, kind: &Kind) -> Result<Value, Refusal> {
        let body = self.parse(&["application/json", "application/yaml"])?;
        check_object(kind, &body)?;
        Ok(body)
    }

    fn selector(&self, kind: &Kind) -> Result<Selector, Refusal> {
        Selector::parse(
            kind,
            self.query.text("labelSelector"),
            self.query.text("fieldSelector"),
        )
    }

    fn dry_run(&self) -> Result<bool, Refusal> {
        match self.query.text("dryRun") {
            "" => Ok(false),
            "All" => Ok(true),
            other => Err(Refusal::bad_request(format!(
                "dryRun: Unsupported value: \"{other}\": supported values: \"All\""
            ))),
        }
    }

    fn manager(&self, operation: Operation, subresource: &str) -> Result<Manager, Refusal> {
        let named = self.query.text("fieldManager");
        if named.len() > 128 {
            return Err(Refusal::bad_request(
                "fieldManager: Too long: may not be more than 128 bytes",
            ));
        }
        let agent = self.header(USER_AGENT);
        let agent = agent.split('/').next().unwrap_or_default();
        let name = [named, agent, "unknown"]
            .into_iter()
            .find(|name| !name.is_empty())
            .unwrap_or_default();
        Ok(Manager {
            operation,
            name: name.to_owned(),
            subresource: subresource.to_owned(),
        })
    }

    fn door(
        &self,
        kind: &Arc<Kind>,
        subresource: Subresource,
        operation: Operation,
    ) -> Result<Door, Refusal> {
        let name = match subresource {
            Subresource::None => "",
            Subresource::Status => "status",
            Subresource::Scale => "scale",
        };
        Ok(Door {
            kind: Arc::clone(kind),
            subresource,
            manager: self.manager(operation, name)?,
            dry_run: self.dry_run()?,
            unknown_fields: match self.query.text("fieldValidation") {
                "Ignore" => UnknownFields::Ignore,
                "Strict" => UnknownFields::Refuse,
                _ => UnknownFields::Warn,
            },
        })
    }
}

/// Whether a body is an object of this kind, with metadata of the right types.
fn check_object(kind: &Kind, body: &Value) -> Result<(), Refusal> {
    let Some(fields) = body.as_object() else {
        return Err(Refusal::bad_request("the body of the request is no object"));
    };
    let given = |key: &str| fields.get(key).and_then(Value::as_str).unwrap_or_default();
    if given("kind").is_empty() {
        return Err(Refusal::bad_request(format!(
            "Object 'Kind' is missing in '{}'",
            excerpt(body)
        )));
    }
    if given("apiVersion").is_empty() {
        return Err(Refusal::bad_request(format!(
            "Object 'apiVersion' is missing in '{}'",
            excerpt(body)
        )));
    }
    if given("apiVersion") != kind.api_version() || given("kind") != kind.kind {
        return Err(Refusal::bad_request(format!(
            "the API version and kind in the data ({}, {}) do not match the expected ones ({}, {})",
            given("apiVersion"),
            given("kind"),
            kind.api_version(),
            kind.kind
        )));
    }
    let metadata = fields.get("metadata").unwrap_or(&Value::Null);
    let mut causes = Vec::new();
    if let (Some(schema), false) = (kind.schema.properties.get("metadata"), metadata.is_null()) {
        schema.check_types(metadata, "metadata", &mut causes);
    }
    match causes.first() {
        None => Ok(()),
        Some(cause) => Err(Refusal::bad_request(format!(
            "{} in version \"{}\" cannot be handled as a {}: {}: {}",
            kind.kind, kind.version, kind.kind, cause.field, cause.message
        ))),
    }
}

fn excerpt(body: &Value) -> String {
    body.to_string().chars().take(200).collect()
}

fn answer_resource(
    shared: &Arc<Shared>,
    call: &Call,
    path: ResourcePath,
    record: &mut RequestRecord,
) -> Result<Answer, Refusal> {
    record.group.clone_from(&path.group);
    record.version.clone_from(&path.version);
    record.resource.clone_from(&path.plural);
    record.subresource.clone_from(&path.subresource);
    record.namespace.clone_from(&path.namespace);
    record.name.clone_from(&path.name);
    record.dry_run = call.query.text("dryRun") == "All";
    let manager = call.query.text("fieldManager");
    record.field_manager = (!manager.is_empty()).then(|| manager.to_owned());
    record.verb = call.verb(path.name.is_some())?;

    let mut store = shared.lock();
    let kind = find(&store, &path)?;
    let scope = Scope {
        namespace: path.namespace.filter(|_| kind.namespaced),
        name: path.name,
    };
    let subresource = match path.subresource.as_deref() {
        None => Subresource::None,
        Some("status") if kind.has_status => Subresource::Status,
        Some("scale") if kind.scale.is_some() => Subresource::Scale,
        Some(other) if kind.origin == Origin::BuiltIn => {
            return Err(Refusal::not_served(format!(
                "the subresource {other} of {}",
                kind.plural
            )));
        }
        Some(_) => return Err(Refusal::unknown_path()),
    };
    let form = Form::accepted(&call.header(ACCEPT), &call.query)?;
    let written = match record.verb {
        Verb::List => {
            let selector = call.selector(&kind)?;
            let namespace = scope.namespace.as_deref();
            let list = read::list(&store, &kind, namespace, &selector, &call.query, form)?;
            return Ok(Answer::ok(list));
        }
        Verb::Watch => {
            let selector = call.selector(&kind)?;
            let watch = Watch::start(
                shared,
                &mut store,
                &kind,
                scope.namespace.as_deref(),
                selector,
                &call.query,
                form,
            )?;
            return Ok(Answer::Watch(Box::new(watch)));
        }
        Verb::DeleteCollection => {
            let deletion = deletion(call)?;
            record.dry_run = deletion.dry_run;
            let namespace = scope.namespace.as_deref();
            return delete_collection(&mut store, call, &kind, namespace, &deletion);
        }
        Verb::Create => create(&mut store, call, &kind, &scope)?,
        Verb::Get => {
            let object = read::get(&store, &kind, &scope.key(&kind)?)?;
            let shown = match (&kind.scale, subresource) {
                (Some(scale), Subresource::Scale) => scale.of(&object),
                _ => form.show(&kind, &object, &store),
            };
            return Ok(Answer::ok(shown));
        }
        Verb::Delete if subresource == Subresource::None => {
            let deletion = deletion(call)?;
            record.dry_run = deletion.dry_run;
            let left = delete::delete(&mut store, &kind, &scope.key(&kind)?, &deletion)?;
            return Ok(Answer::ok(left));
        }
        Verb::Delete => return Err(Refusal::method_not_allowed()),
        Verb::Update => {
            let key = scope.key(&kind)?;
            let door = call.door(&kind, subresource, Operation::Update)?;
            if subresource == Subresource::Scale {
                let body = call.parse(&["application/json", "application/yaml"])?;
                return rescale(&mut store, &door, &key, |scale| {
                    scale.clone_from(&body);
                    Ok(())
                });
            }
            let body = call.object(&kind)?;
            write::replace(&mut store, &door, &key, body)?
        }
        Verb::Patch => {
            let key = scope.key(&kind)?;
            let door = call.door(&kind, subresource, Operation::Update)?;
            if subresource == Subresource::Scale {
                return rescale(&mut store, &door, &key, |scale| {
                    apply_patch(call, None, scale)
                });
            }
            change(&mut store, call, &door, &key)?
        }
        Verb::Apply => {
            let key = scope.key(&kind)?;
            if call.query.text("fieldManager").is_empty() {
                return Err(Refusal::new(
                    422,
                    "Invalid",
                    "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch",
                ));
            }
            let door = call.door(&kind, subresource, Operation::Apply)?;
            let config = call.parse(&[patch::APPLY])?;
            check_object(&kind, &config)?;
            write::apply(&mut store, &door, &key, config, call.query.flag("force"))?
        }
    };
    let name = object::name(&written.object);
    record.name = (!name.is_empty()).then(|| name.to_owned());
    Ok(Answer::Object {
        code: if written.created { 201 } else { 200 },
        body: form.show(&kind, &written.object, &store),
        warnings: written.warnings,
    })
}

/// The part of a path that picks objects of a kind.
struct Scope {
    namespace: Option<String>,
    name: Option<String>,
}

impl Scope {
    fn key(&self, kind: &Kind) -> Result<Key, Refusal> {
        if kind.namespaced && self.namespace.is_none() {
            return Err(Refusal::unknown_path());
        }
        Ok(Key {
            namespace: self.namespace.clone().unwrap_or_default(),
            name: self.name.clone().unwrap_or_default(),
        })
    }
}

fn find(store: &Store, path: &ResourcePath) -> Result<Arc<Kind>, Refusal> {
    let id = KindId {
        group: path.group.clone(),
        plural: path.plural.clone(),
    };
    match store.kind(&id) {
        Some(kind) if kind.version == path.version => {
            if path.namespace.is_some() && !kind.namespaced {
                return Err(Refusal::unknown_path());
            }
            Ok(Arc::clone(kind))
        }
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
    kind: &Arc<Kind>,
    scope: &Scope,
) -> Result<Written, Refusal> {
    let door = call.door(kind, Subresource::None, Operation::Update)?;
    let body = call.object(kind)?;
    let namespace = match (&scope.namespace, kind.namespaced) {
        (Some(namespace), _) => namespace.as_str(),
        (None, false) => "",
        (None, true) => {
            return Err(Refusal::bad_request(
                "an empty namespace may not be set during creation",
            ));
        }
    };
    write::create(store, &door, namespace, body)
}

/// Patches an object, but for server-side apply.
fn change(store: &mut Store, call: &Call, door: &Door, key: &Key) -> Result<Written, Refusal> {
    let kind = &*door.kind;
    let Some(old) = write::current(store, kind, key) else {
        return Err(Refusal::not_found(kind.subject(&key.name)));
    };
    let mut new = Value::clone(&old);
    apply_patch(call, Some(kind), &mut new)?;
    check_object(kind, &new)?;
    if object::name(&new) != key.name || object::namespace(&new) != key.namespace {
        return Err(Refusal::bad_request(
            "the name or the namespace of the object does not match the one on the URL",
        ));
    }
    Precondition::of(&new).check(kind, &old)?;
    write::update(store, door, &old, new)
}

/// `kind` is none for objects that are no resource of their own (scale).
fn apply_patch(call: &Call, kind: Option<&Kind>, target: &mut Value) -> Result<(), Refusal> {
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
        patch::STRATEGIC => {
            patch::strategic(kind.map(|kind| &kind.schema), target, &body);
            Ok(())
        }
        patch::MERGE if body.is_object() => {
            patch::merge(target, &body);
            Ok(())
        }
        patch::MERGE => Err(Refusal::bad_request("a merge patch must be an object")),
        _ => Err(Refusal::not_served("server-side apply of a scale")),
    }
}

/// Writes the replicas of an object through its scale.
fn rescale(
    store: &mut Store,
    door: &Door,
    key: &Key,
    edit: impl FnOnce(&mut Value) -> Result<(), Refusal>,
) -> Result<Answer, Refusal> {
    let kind = &*door.kind;
    let Some(scale) = &kind.scale else {
        return Err(Refusal::unknown_path());
    };
    let Some(old) = write::current(store, kind, key) else {
        return Err(Refusal::not_found(kind.subject(&key.name)));
    };
    let mut shown = scale.of(&old);
    edit(&mut shown)?;
    Precondition::of(&shown).check(kind, &old)?;
    let replicas = object::at(&shown, &["spec", "replicas"]).cloned();
    let replicas = replicas.unwrap_or_else(|| json!(0));
    if !replicas.as_i64().is_some_and(|replicas| replicas >= 0) {
        return Err(Refusal::bad_request(
            "spec.replicas must be an integer that is not negative",
        ));
    }
    let path: Vec<_> = scale.spec_replicas.iter().map(String::as_str).collect();
    let mut new = Value::clone(&old);
    object::put(&mut new, &path, replicas);
    let written = write::update(store, door, &old, new)?;
    Ok(Answer::ok(scale.of(&written.object)))
}

fn deletion(call: &Call) -> Result<Deletion, Refusal> {
    let options = if call.body.is_empty() {
        Value::Null
    } else {
        call.parse(&["application/json", "application/yaml"])?
    };
    let from_body = object::text(&options, &["propagationPolicy"]).to_owned();
    let from_query = call.query.text("propagationPolicy");
    let policy = if from_query.is_empty() {
        &from_body
    } else {
        from_query
    };
    let propagation = match policy {
        "" | "Background" => Propagation::Background,
        "Foreground" => Propagation::Foreground,
        "Orphan" => Propagation::Orphan,
        other => {
            return Err(Refusal::bad_request(format!(
                "propagationPolicy: Unsupported value: \"{other}\": supported values: \"Background\", \"Foreground\", \"Orphan\""
            )));
        }
    };
    let dry_run = options
        .get("dryRun")
        .and_then(Value::as_array)
        .is_some_and(|list| list.iter().any(|value| value == "All"));
    Ok(Deletion {
        precondition: Precondition {
            version: object::text(&options, &["preconditions", "resourceVersion"]).to_owned(),
            uid: object::text(&options, &["preconditions", "uid"]).to_owned(),
        },
        propagation,
        dry_run: dry_run || call.dry_run()?,
    })
}

fn delete_collection(
    store: &mut Store,
    call: &Call,
    kind: &Arc<Kind>,
    namespace: Option<&str>,
    deletion: &Deletion,
) -> Result<Answer, Refusal> {
    let selector = call.selector(kind)?;
    let id = write::stored_id(kind);
    let mut items = Vec::new();
    let keys: Vec<_> = store
        .list(&id, namespace)
        .map(|(key, _)| key.clone())
        .collect();
    for key in keys {
        let Some(object) = write::current(store, kind, &key) else {
            continue;
        };
        if selector.matches(&object) {
            delete::delete(store, kind, &key, deletion)?;
            items.push(Value::clone(&object));
        }
    }
    Ok(Answer::ok(json!({
        "kind": kind.list_kind,
        "apiVersion": kind.api_version(),
        "metadata": { "resourceVersion": store.version().to_string() },
        "items": items,
    })))
}
