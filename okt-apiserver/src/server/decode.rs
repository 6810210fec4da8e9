//! Reads the parts of a request: parameters, headers and body.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, UPGRADE, USER_AGENT};
use http::{HeaderMap, Method};
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use crate::admission::{Admission, RequestOptions};
use crate::apply::{Manager, Operation};
use crate::endpoint::Endpoint;
use crate::kind::ServedKind;
use crate::object::{self, json_type};
use crate::path::{Query, RequestTarget, ResourcePath};
use crate::record::{RequestRecord, Verb};
use crate::refusal::Refusal;
use crate::selector::Selector;
use crate::subresource::Subresource;
use crate::types::{self, GoType, PROTOBUF};
use crate::write::{UnknownFields, WriteParams};
use crate::{duplicate_fields, patch};

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
            RequestTarget::Resource(path) => self.verb(path),
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

    pub(super) fn wants_web_socket(&self) -> bool {
        self.header(UPGRADE).eq_ignore_ascii_case("websocket")
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
    fn verb(&self, path: &ResourcePath) -> Option<Verb> {
        let has_name = path.name.is_some();
        let is_action = matches!(
            path.subresource.as_deref(),
            Some("binding" | "eviction" | "token")
        );
        Some(match (&self.method, has_name) {
            (&Method::GET | &Method::HEAD, true) => Verb::Get,
            (&Method::GET | &Method::HEAD, false) if self.query.flag("watch") => Verb::Watch,
            (&Method::GET | &Method::HEAD, false) => Verb::List,
            (&Method::POST, false) => Verb::Create,
            (&Method::POST, true) if is_action => Verb::Create,
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
        self.parse_or(accepted, &|why| Refusal::bad_request(why))
    }

    /// Parses a body; `unread` is the refusal of one that is no JSON.
    fn parse_or(
        &self,
        accepted: &[&str],
        unread: &dyn Fn(String) -> Refusal,
    ) -> Result<Value, Refusal> {
        let media = self.media();
        if media == PROTOBUF && accepted.contains(&PROTOBUF) {
            return types::from_protobuf(&self.body).map_err(Refusal::bad_request);
        }
        if !media.is_empty() && !accepted.contains(&media.as_str()) {
            return Err(Refusal::unsupported_media_type(accepted));
        }
        if !media.ends_with("yaml") {
            return self.parse_json().map_err(|why| unread(unread_kind(&why)));
        }
        serde_json::from_slice(&self.body)
            .or_else(|_| serde_saphyr::from_slice(&self.body))
            .map(|mut value| {
                object::whole_numbers(&mut value);
                value
            })
            .map_err(|error| Refusal::bad_request(format!("error decoding YAML: {error}")))
    }

    /// Parses a body of JSON.
    ///
    /// # Errors
    /// What is wrong, in the words of Go where the body ends too early.
    pub(super) fn parse_json(&self) -> Result<Value, String> {
        serde_json::from_slice(&self.body).map_err(|error| {
            if error.is_eof() {
                "unexpected end of JSON input".to_owned()
            } else {
                error.to_string()
            }
        })
    }

    /// Parses an object of a kind.
    pub(super) fn object(&self, kind: &ServedKind) -> Result<Value, Refusal> {
        let unrecognised = |why: String| {
            let (kind, summary) = (&kind.kind, summary(&self.body));
            Refusal::bad_request(format!(
                "the object provided is unrecognized (must be of type {kind}): {why} ({summary})"
            ))
        };
        if self.body.is_empty() {
            return Err(unrecognised(unread_kind("unexpected end of JSON input")));
        }
        let mut body = self.parse_or(&accepted(kind), &unrecognised)?;
        if let Some(why) = unreadable(&body) {
            return Err(unrecognised(why));
        }
        if kind.is_built_in() {
            fill_in_kind(kind, &mut body);
        }
        check_object(kind, &body)?;
        Ok(body)
    }

    /// Parses an object of any kind.
    pub(super) fn any_object(&self) -> Result<Value, Refusal> {
        self.parse(&["application/json", "application/yaml", PROTOBUF])
    }

    /// Parses an object that is not stored, with fields of the right types.
    pub(super) fn typed_object(&self, kind: &ServedKind) -> Result<Value, Refusal> {
        let body = self.object(kind)?;
        check_types(kind, &body)?;
        Ok(body)
    }

    /// Parses the body of a subresource, which has a kind of its own.
    pub(super) fn body_of(&self, api_version: &str, kind: &str) -> Result<Value, Refusal> {
        let mut body = self.any_object()?;
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let go_type = GoType::of_kind(group, version, kind).ok_or_else(Refusal::unknown_path)?;
        types::decode(go_type, &mut body).map_err(|why| {
            Refusal::bad_request(format!(
                "{kind} in version \"{version}\" cannot be handled as a {kind}: {why}"
            ))
        })?;
        let fields = object::fields(&mut body);
        fields.insert("kind".to_owned(), kind.into());
        fields.insert("apiVersion".to_owned(), api_version.into());
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

/// Returns the content types of the bodies of a kind.
pub(super) fn accepted(kind: &ServedKind) -> Vec<&'static str> {
    let mut accepted = vec!["application/json", "application/yaml"];
    if kind.is_built_in() {
        accepted.push(PROTOBUF);
    }
    accepted
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

/// Returns the error of a body whose version and kind cannot be read.
fn unread_kind(why: &str) -> String {
    format!("couldn't get version/kind; json parse error: {why}")
}

/// Returns why the version and the kind of a body cannot be read, if they cannot.
pub(super) fn unreadable(body: &Value) -> Option<String> {
    if !(body.is_object() || body.is_null()) {
        let go = r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;
        let found = json_type(body);
        let why = format!("json: cannot unmarshal {found} into Go value of type {go}");
        return Some(unread_kind(&why));
    }
    let wrong = ["kind", "apiVersion"].into_iter().find_map(|name| {
        let value = body.get(name)?;
        (!value.is_string() && !value.is_null()).then(|| {
            let found = json_type(value);
            format!("json: cannot unmarshal {found} into Go struct field .{name} of type string")
        })
    });
    wrong.map(|why| unread_kind(&why))
}

/// Returns the beginning of a body as messages show it: what is no JSON object in hexadecimal digits.
fn summary(body: &[u8]) -> String {
    const SHOWN: usize = 30;
    let (start, more) = match body.get(..SHOWN) {
        Some(start) if body.len() > SHOWN => (start, " ..."),
        _ => (body, ""),
    };
    match start.first() {
        None => "<empty>".to_owned(),
        Some(b'{') => format!("{}{more}", String::from_utf8_lossy(start)),
        Some(_) => {
            let digits: Vec<_> = start.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("{}{more}", digits.concat())
        }
    }
}

/// Returns the error of a kind that a version does not have.
pub(super) fn not_registered(kind: &str, version: &str) -> String {
    format!(
        "no kind \"{kind}\" is registered for version \"{version}\" in scheme \"pkg/runtime/scheme.go:111\""
    )
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
    let (found, version) = (given("kind"), given("apiVersion"));
    if kind.is_built_in() && (found != kind.kind || version != kind.api_version()) {
        let (group, name) = version.split_once('/').unwrap_or(("", version));
        let own = kind.group.split('.').next().filter(|it| !it.is_empty());
        let why = match GoType::of_kind(group, name, found) {
            Some(_) => format!(
                "converting ({name}.{found}) to ({}.{}): unknown conversion",
                own.unwrap_or("core"),
                kind.kind
            ),
            None => not_registered(found, version),
        };
        return Err(Refusal::bad_request(format!(
            "{found} in version \"{name}\" cannot be handled as a {}: {why}",
            kind.kind
        )));
    }
    // The kind of a custom resource is checked later, with the rest of it.
    if version != kind.api_version() {
        return Err(Refusal::bad_request(format!(
            "the API version in the data ({version}) does not match the expected API version ({})",
            kind.api_version()
        )));
    }
    if kind.is_built_in() {
        // It is decoded with its metadata.
        return Ok(());
    }
    match types::mistyped_metadata(body) {
        None => Ok(()),
        Some(why) => Err(kind.cannot_handle(&why)),
    }
}

/// Checks that the fields of an object of a kind without a CRD have the right types.
fn check_types(kind: &ServedKind, object: &Value) -> Result<(), Refusal> {
    let Some(go_type) = kind.go_type else {
        return Ok(());
    };
    let decoded = types::decode(go_type, &mut object.clone());
    decoded.map(drop).map_err(|why| kind.cannot_handle(&why))
}

fn unrecognised(kind: &ServedKind, body: &Value, missing: &str) -> Refusal {
    let excerpt: String = body.to_string().chars().take(200).collect();
    Refusal::bad_request(format!(
        "the object provided is unrecognized (must be of type {}): Object '{missing}' is missing in '{excerpt}' ({excerpt})",
        kind.kind
    ))
}
