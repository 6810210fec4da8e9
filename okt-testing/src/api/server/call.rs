//! Reads the parts of a request: parameters, headers and body.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, Method};
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use crate::api::admission::{Admission, RequestOptions};
use crate::api::apply::{Manager, Operation};
use crate::api::causes::{Causes, RefusalCause};
use crate::api::endpoint::Endpoint;
use crate::api::kind::ServedKind;
use crate::api::path::{Query, RequestTarget, ResourcePath};
use crate::api::record::{RequestRecord, Verb};
use crate::api::refusal::Refusal;
use crate::api::selector::Selector;
use crate::api::write::{Subresource, UnknownFields, WriteParams};
use crate::api::{builtin, duplicate_fields, object, patch};

/// A parsed request.
pub(super) struct Call {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) query: Query,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Call {
    /// Returns the record of the request before its execution, and its verb if there is one.
    pub(super) fn record(
        &self,
        endpoint: &Endpoint,
        target: &RequestTarget,
    ) -> (RequestRecord, Option<Verb>) {
        let named = match target {
            RequestTarget::Resource(path) => path.clone(),
            RequestTarget::Other(_) => ResourcePath::default(),
        };
        let verb = match target {
            RequestTarget::Resource(path) => self.verb(path.name.is_some()),
            RequestTarget::Other(_) => Some(Verb::Get),
        };
        let manager = self.query.text("fieldManager");
        let record = RequestRecord {
            at: Instant::now(),
            client: match endpoint.name() {
                "" => self.agent(),
                name => name.to_owned(),
            },
            replica: endpoint.replica_view.name().to_owned(),
            verb: verb.unwrap_or(Verb::Get),
            path: self.path.clone(),
            group: named.group,
            version: named.version,
            resource: named.plural,
            subresource: named.subresource,
            namespace: named.namespace,
            name: named.name,
            field_manager: (!manager.is_empty()).then(|| manager.to_owned()),
            shard_selector: None,
            dry_run: self.query.text("dryRun") == "All",
            status: 0,
            committed: None,
            faults: Vec::new(),
        };
        (record, verb)
    }

    /// Returns the name of the object in the body.
    pub(super) fn name_in_body(&self) -> Option<String> {
        let body: Value = serde_json::from_slice(&self.body).ok()?;
        let name = object::name(&body);
        (!name.is_empty()).then(|| name.to_owned())
    }

    /// Returns the first word of the user agent (e.g. `kubectl`).
    fn agent(&self) -> String {
        let agent = self.header(USER_AGENT);
        agent.split('/').next().unwrap_or_default().to_owned()
    }

    pub(super) fn header(&self, name: http::HeaderName) -> String {
        let values: Vec<_> = self
            .headers
            .get_all(name)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .collect();
        values.join(",")
    }

    pub(super) fn media(&self) -> String {
        let value = self.header(CONTENT_TYPE);
        value
            .split(';')
            .next()
            .unwrap_or_default()
            .trim()
            .to_owned()
    }

    /// Returns the verb; `None` if no kind supports the method.
    fn verb(&self, has_name: bool) -> Option<Verb> {
        Some(match (&self.method, has_name) {
            (&Method::GET | &Method::HEAD, true) => Verb::Get,
            (&Method::GET | &Method::HEAD, false) if self.query.flag("watch") => Verb::Watch,
            (&Method::GET | &Method::HEAD, false) => Verb::List,
            (&Method::POST, false) => Verb::Create,
            (&Method::PUT, true) => Verb::Update,
            (&Method::PATCH, true) if self.media() == patch::APPLY => Verb::Apply,
            (&Method::PATCH, true) => Verb::Patch,
            (&Method::DELETE, true) => Verb::Delete,
            (&Method::DELETE, false) => Verb::DeleteCollection,
            _ => return None,
        })
    }

    /// Parses a body of JSON, or of YAML if that is the content type.
    pub(super) fn parse(&self, accepted: &[&str]) -> Result<Value, Refusal> {
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
            parsed if media.ends_with("yaml") => parsed
                .or_else(|_| serde_saphyr::from_slice(&self.body))
                .map(|mut value| {
                    object::whole_numbers(&mut value);
                    value
                })
                .map_err(|error| Refusal::bad_request(format!("error decoding YAML: {error}"))),
            Ok(value) => Ok(value),
            Err(error) => Err(Refusal::bad_request(format!(
                "the object provided is unrecognized (must be of type JSON): {error}"
            ))),
        }
    }

    /// Parses an object of a kind.
    pub(super) fn object(&self, kind: &ServedKind) -> Result<Value, Refusal> {
        if self.body.is_empty() {
            return Err(Refusal::bad_request(format!(
                "the object provided is unrecognized (must be of type {}): couldn't get version/kind; json parse error: unexpected end of JSON input (<empty>)",
                kind.kind
            )));
        }
        let mut body = self.parse(&["application/json", "application/yaml"])?;
        if kind.is_built_in() {
            fill_in_kind(kind, &mut body);
        }
        check_object(kind, &body)?;
        if kind.is_built_in()
            && !self.media().ends_with("yaml")
            && let Some(why) = builtin::check_integers(&kind.kind, &body)
        {
            return Err(kind.cannot_handle(&why));
        }
        Ok(body)
    }

    pub(super) fn selector(&self, kind: &ServedKind) -> Result<Selector, Refusal> {
        Selector::parse(kind, &self.query)
    }

    pub(super) fn dry_run(&self) -> bool {
        self.query.text("dryRun") == "All"
    }

    fn manager(&self, kind: &ServedKind, operation: Operation, subresource: &str) -> Manager {
        let named = self.query.text("fieldManager");
        let agent = self.agent();
        let name = [named, &agent, "unknown"]
            .into_iter()
            .find(|name| !name.is_empty())
            .unwrap_or_default();
        Manager {
            operation,
            name: name.to_owned(),
            api_version: match operation {
                Operation::Apply => String::new(),
                Operation::Update => kind.api_version(),
            },
            subresource: subresource.to_owned(),
        }
    }

    /// Returns what webhooks are told of the request besides the object.
    pub(super) fn admission_options(
        &self,
        record: &RequestRecord,
        subresource: Subresource,
    ) -> RequestOptions {
        let mut options = Map::new();
        for name in ["fieldManager", "fieldValidation"] {
            if self.query.has(name) {
                options.insert(name.to_owned(), self.query.text(name).into());
            }
        }
        if self.dry_run() {
            options.insert("dryRun".to_owned(), json!(["All"]));
        }
        RequestOptions {
            user: record.client.clone(),
            subresource: subresource.name(),
            dry_run: self.dry_run(),
            options,
        }
    }

    pub(super) fn params(
        &self,
        kind: &Arc<ServedKind>,
        subresource: Subresource,
        operation: Operation,
        admission: Admission,
    ) -> WriteParams {
        let unknown_fields = match self.query.text("fieldValidation") {
            "Ignore" => UnknownFields::Ignore,
            "Strict" => UnknownFields::Refuse,
            _ => UnknownFields::Warn,
        };
        // The parser of an apply refuses duplicate fields itself.
        let counts = operation == Operation::Update && unknown_fields != UnknownFields::Ignore;
        WriteParams {
            kind: Arc::clone(kind),
            subresource,
            manager: self.manager(kind, operation, subresource.name()),
            admission,
            dry_run: self.dry_run(),
            is_patch: self.method == Method::PATCH,
            unknown_fields,
            duplicates: if counts {
                duplicate_fields::find(&self.body)
            } else {
                Vec::new()
            },
        }
    }
}

/// Fills in `kind` and `apiVersion`, which an object of a built-in kind may omit.
fn fill_in_kind(kind: &ServedKind, body: &mut Value) {
    if body.is_null() {
        *body = Value::Object(Map::new());
    }
    let Some(fields) = body.as_object_mut() else {
        return;
    };
    for (name, text) in [("kind", &kind.kind), ("apiVersion", &kind.api_version())] {
        let field = fields.entry(name).or_insert(Value::Null);
        if field.is_null() || *field == "" {
            *field = text.clone().into();
        }
    }
}

/// Checks that a body is an object of this kind, with metadata of the right types.
pub(super) fn check_object(kind: &ServedKind, body: &Value) -> Result<(), Refusal> {
    let Some(fields) = body.as_object() else {
        return Err(Refusal::bad_request("the body of the request is no object"));
    };
    let given = |key: &str| fields.get(key).and_then(Value::as_str).unwrap_or_default();
    if given("kind").is_empty() {
        return Err(unrecognised(kind, body, "Kind"));
    }
    if given("apiVersion").is_empty() {
        return Err(unrecognised(kind, body, "apiVersion"));
    }
    if given("apiVersion") != kind.api_version() {
        return Err(Refusal::bad_request(format!(
            "the API version in the data ({}) does not match the expected API version ({})",
            given("apiVersion"),
            kind.api_version()
        )));
    }
    // The kind of a custom resource is checked later, with the rest of it.
    if given("kind") != kind.kind && kind.is_built_in() {
        let (found, version) = (given("kind"), kind.api_version());
        return Err(Refusal::bad_request(format!(
            "{found} in version \"{}\" cannot be handled as a {}: no kind \"{found}\" is registered for version \"{version}\" in scheme \"pkg/runtime/scheme.go:111\"",
            kind.version, kind.kind
        )));
    }
    match mistyped_metadata(kind, body) {
        None => Ok(()),
        Some(why) => Err(kind.cannot_handle(&why)),
    }
}

/// Returns the error of the first field of the metadata with a wrong type.
pub(super) fn mistyped_metadata(kind: &ServedKind, body: &Value) -> Option<String> {
    let metadata = body.get("metadata").filter(|value| !value.is_null())?;
    let mut causes = Causes::default();
    let schema = kind.schema.properties.get("metadata")?;
    schema.check_types(metadata, "metadata", &mut causes);
    causes.first().map(RefusalCause::text)
}

fn unrecognised(kind: &ServedKind, body: &Value, missing: &str) -> Refusal {
    let excerpt: String = body.to_string().chars().take(200).collect();
    Refusal::bad_request(format!(
        "the object provided is unrecognized (must be of type {}): Object '{missing}' is missing in '{excerpt}' ({excerpt})",
        kind.kind
    ))
}
