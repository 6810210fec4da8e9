//! Answers gets and lists, in the format that a client accepts.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use bytes::Bytes;
use serde_json::{Value, json};
use std::sync::Arc;

use crate::calls::WebhookCalls;
use crate::convert::{self, current, stored_id};
use crate::kind::{KindId, Origin, ServedKind};
use crate::object;
use crate::path::Query;
use crate::record::Verb;
use crate::refusal::Refusal;
use crate::selector::Selector;
use crate::store::{Key, Objects, Store};
use crate::stored::StoredObject;
use crate::table::{self, Column, Include};
use crate::types::{self, PROTOBUF};

const JSON: &str = "application/json";
const YAML: &str = "application/yaml";

/// The format of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Whole,
    Metadata,
    Table(Include),
}

impl Form {
    /// Returns the first supported format of an Accept header. Who accepts protobuf, which custom resources do not have,
    /// gets JSON.
    pub(crate) fn accepted(
        accept: &str,
        query: &Query,
        kind: &ServedKind,
    ) -> Result<Self, Refusal> {
        let is_known = |media: &str| match media {
            "" | "*/*" | "application/*" | JSON | YAML => true,
            PROTOBUF => kind.is_built_in(),
            _ => false,
        };
        for range in accept.split(',') {
            let mut parts = range.split(';').map(str::trim);
            let media = parts.next().unwrap_or_default();
            let parts: Vec<_> = parts.collect();
            let of = |name: &str| parts.iter().find_map(|part| part.strip_prefix(name));
            if !is_known(media) || of("v=").is_some_and(|it| !matches!(it, "v1" | "v1beta1")) {
                continue;
            }
            match of("as=").unwrap_or_default() {
                "" => return Ok(Self::Whole),
                "PartialObjectMetadata" | "PartialObjectMetadataList" => return Ok(Self::Metadata),
                "Table" => {
                    let include = match query.text("includeObject") {
                        "None" => Include::Nothing,
                        "Object" => Include::Object,
                        _ => Include::Metadata,
                    };
                    return Ok(Self::Table(include));
                }
                _ => {}
            }
        }
        let protobuf = if kind.is_built_in() {
            ", application/vnd.kubernetes.protobuf"
        } else {
            ""
        };
        let message = format!(
            "only the following media types are accepted: application/json, application/yaml{protobuf}"
        );
        Err(Refusal::new(406, "NotAcceptable", message))
    }

    /// Whether the first supported format of an Accept header is YAML, which holds for errors too.
    pub(crate) fn is_yaml(accept: &str) -> bool {
        let media = accept
            .split(',')
            .map(|range| range.split(';').next().unwrap_or_default().trim());
        let mut known =
            media.filter(|media| matches!(*media, "*/*" | "application/*" | JSON | YAML));
        known.next() == Some(YAML)
    }

    /// Formats an object of a kind.
    pub(crate) fn show(self, kind: &ServedKind, object: &StoredObject, store: &Store) -> Bytes {
        match self {
            Self::Whole => object.json().clone(),
            _ => self.show_with(&kind.columns, object.read(), store),
        }
    }

    /// Formats an object, with these columns in a table.
    pub(crate) fn show_with(self, columns: &[Column], object: Value, store: &Store) -> Bytes {
        let shown = match self {
            Self::Whole => object,
            Self::Metadata => table::only_metadata(&object),
            Self::Table(include) => {
                let metadata = json!({ "resourceVersion": object::version(&object) });
                table::table(columns, [&object], &metadata, include, store.clock.now())
            }
        };
        Bytes::from(shown.to_string())
    }
}

/// Gets an object in its current state, or as a cache saw it at a version.
pub(crate) fn get(
    store: &Store,
    calls: &WebhookCalls,
    seen: Option<u64>,
    kind: &Arc<ServedKind>,
    key: &Key,
) -> Result<Arc<StoredObject>, Refusal> {
    let object = match seen {
        Some(version) if version < store.version() => store
            .get_then(&stored_id(kind), key, version)?
            .map(|object| convert::present(calls, kind, object))
            .transpose()?,
        _ => current(calls, store, kind, key)?,
    };
    object.ok_or_else(|| Refusal::not_found(kind.subject(&key.name)))
}

/// Returns the version that a read must wait for, because it accepts no older one.
pub(crate) fn awaited_version(verb: Verb, query: &Query) -> Result<Option<u64>, Refusal> {
    let waits = match verb {
        Verb::Get => true,
        Verb::List => query.text("continue").is_empty() && !is_exact(query),
        Verb::Watch => query.flag("sendInitialEvents"),
        _ => false,
    };
    if !waits {
        return Ok(None);
    }
    let text = query.text("resourceVersion");
    let version = match verb {
        // The handler of gets passes the error on as it is.
        Verb::Get if !text.is_empty() => {
            let parsed = text.parse();
            parsed.map_err(|_| Refusal::unexplained(no_version(text)))?
        }
        _ => parse_version(text)?,
    };
    Ok((version > 0).then_some(version))
}

/// Whether a list asks for exactly one version.
fn is_exact(query: &Query) -> bool {
    match query.text("resourceVersionMatch") {
        "Exact" => true,
        // The legacy meaning of a limit with a version.
        "" => query.number("limit").is_some_and(|limit| limit > 0),
        _ => false,
    }
}

/// The objects that a list or a watch shows, and the form in which it shows them.
pub(crate) struct Selection {
    pub(crate) kind: Arc<ServedKind>,
    /// `None` for the objects of all namespaces.
    pub(crate) namespace: Option<String>,
    pub(crate) selector: Selector,
    pub(crate) form: Form,
}

impl Selection {
    pub(crate) fn covers(&self, key: &Key) -> bool {
        let namespace = self.namespace.as_ref();
        namespace.is_none_or(|namespace| *namespace == key.namespace)
    }
}

/// The part of a list that a request asks for.
struct Page {
    version: u64,
    /// The last object of the page before.
    after: Option<Key>,
    limit: Option<usize>,
    is_from_cache: bool,
}

impl Page {
    /// Reads the page from a query; `seen` is the version that the cache has reached.
    fn read(store: &Store, seen: u64, query: &Query) -> Result<Self, Refusal> {
        let next = next_page(query)?;
        let wanted = requested_version(store, query)?;
        let limit = query
            .number("limit")
            .and_then(|limit| usize::try_from(limit).ok())
            .filter(|&limit| limit > 0)
            // A list of any version has no pages.
            .filter(|_| next.is_some() || query.text("resourceVersion") != "0");
        let is_from_cache = wanted.is_none() && !query.text("resourceVersion").is_empty();
        let (version, after) = match next {
            Some((version, key)) => (version, Some(key)),
            None if is_from_cache => (seen, None),
            None => (wanted.unwrap_or(store.version()), None),
        };
        Ok(Self {
            version,
            after,
            limit,
            is_from_cache,
        })
    }

    /// Returns the objects of an earlier version, or `None` for those of the store.
    fn earlier(&self, store: &Store, id: &KindId) -> Result<Option<Objects>, Refusal> {
        if self.version == store.version() {
            return Ok(None);
        }
        if self.is_from_cache && self.after.is_none() {
            return store.list_then(id, self.version).map(Some);
        }
        let objects = store.list_at(id, self.version);
        objects.map(Some).map_err(|refusal| match self.after {
            None => Refusal::expired("The resourceVersion for the provided list is too old."),
            Some(_) => refusal,
        })
    }
}

/// Lists the objects of a kind; `seen` is the version that the cache has reached.
pub(crate) fn list(
    store: &Store,
    calls: &WebhookCalls,
    seen: u64,
    selection: &Selection,
    query: &Query,
) -> Result<Bytes, Refusal> {
    let Selection { kind, selector, .. } = selection;
    let id = stored_id(kind);
    let page = Page::read(store, seen, query)?;
    let earlier = page.earlier(store, &id)?;
    let all: Box<dyn Iterator<Item = (&Key, &Arc<StoredObject>)>> = match &earlier {
        None => Box::new(store.list(&id, selection.namespace.as_deref())),
        Some(objects) => Box::new(objects.iter()),
    };
    let rest = all
        .filter(|(key, _)| selection.covers(key))
        .filter(|(key, _)| page.after.as_ref().is_none_or(|after| *key > after));
    let Gathered {
        objects,
        full,
        left,
    } = gather(rest, calls, selection, page.limit)?;
    let mut metadata = json!({ "resourceVersion": page.version.to_string() });
    if !kind.is_built_in() {
        // A server writes this field into every list of custom resources.
        metadata["continue"] = "".into();
    }
    if let Some((last, seen)) = full.filter(|_| left > 0) {
        // The rest may contain nothing that is selected: then the next page is empty.
        metadata["continue"] = write_token(page.version, last).into();
        if !selector.reads_objects() {
            // With shards this is too many: a server counts all objects of this page and the rest.
            metadata["remainingItemCount"] = (seen + left - objects.len()).into();
        }
    }
    Ok(show_list(store, selection, &objects, metadata))
}

/// The objects of a page.
struct Gathered<'s> {
    objects: Vec<Arc<StoredObject>>,
    /// The last object of a full page, and the number of objects up to it.
    full: Option<(&'s Key, usize)>,
    /// How many objects come after the page.
    left: usize,
}

/// Gathers the selected objects up to a limit.
fn gather<'s>(
    rest: impl Iterator<Item = (&'s Key, &'s Arc<StoredObject>)>,
    calls: &WebhookCalls,
    Selection { kind, selector, .. }: &Selection,
    limit: Option<usize>,
) -> Result<Gathered<'s>, Refusal> {
    let mut rest = rest.enumerate();
    let (mut objects, mut full) = (Vec::new(), None);
    let (mut failure, mut unread) = (None, 0);
    for (index, (key, object)) in rest.by_ref() {
        match convert::present(calls, kind, object) {
            Ok(object) if selector.selects(key, &object) => objects.push(object),
            Ok(_) => {}
            Err(refusal) => {
                // The calls for all others of the page are noted before the list is given up.
                failure.get_or_insert(refusal);
                unread += usize::from(!selector.reads_objects());
            }
        }
        if limit == Some(objects.len() + unread) {
            full = Some((key, index + 1));
            break;
        }
    }
    let left = rest.count();
    failure.map_or(
        Ok(Gathered {
            objects,
            full,
            left,
        }),
        Err,
    )
}

/// Formats objects as a list.
fn show_list(
    store: &Store,
    selection: &Selection,
    objects: &[Arc<StoredObject>],
    mut metadata: Value,
) -> Bytes {
    let Selection { kind, selector, .. } = selection;
    let read = objects.iter().map(|object| object.read());
    let shown = match selection.form {
        Form::Table(include) => {
            let objects: Vec<_> = read.collect();
            let now = store.clock.now();
            table::table(&kind.columns, &objects, &metadata, include, now)
        }
        Form::Metadata => {
            let items: Vec<_> = read.map(|object| table::only_metadata(&object)).collect();
            json!({
                "kind": "PartialObjectMetadataList",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": metadata,
                "items": items,
            })
        }
        Form::Whole => {
            if let (Some(shards), Origin::BuiltIn) = (selector.shards(), kind.origin) {
                metadata["shardInfo"] = json!({ "selector": shards.to_string() });
            }
            let head = json!({
                "kind": kind.list_kind,
                "apiVersion": kind.api_version(),
                "metadata": metadata,
            });
            return whole_list(kind, &head, objects.iter().map(|object| item(kind, object)));
        }
    };
    Bytes::from(shown.to_string())
}

/// Returns the version and the last object of the page before, if the list continues one.
fn next_page(query: &Query) -> Result<Option<(u64, Key)>, Refusal> {
    let token = query.text("continue");
    if token.is_empty() {
        return Ok(None);
    }
    let page = read_token(token)?;
    match query.text("resourceVersion") {
        "" | "0" => Ok(Some(page)),
        _ => Err(Refusal::bad_request(
            "specifying resource version is not allowed when using continue",
        )),
    }
}

/// Builds the list as text from items that are texts already.
pub(crate) fn whole_list(
    kind: &ServedKind,
    head: &Value,
    items: impl Iterator<Item = Bytes>,
) -> Bytes {
    // The lists of custom resources are sorted by name, like everything in them.
    let (before, after): (&[&str], &[&str]) = if kind.is_built_in() {
        (&["kind", "apiVersion", "metadata"], &[])
    } else {
        (&["apiVersion"], &["kind", "metadata"])
    };
    let mut text = Vec::from(b"{");
    for key in before {
        text.extend_from_slice(format!("\"{key}\":{},", head[key]).as_bytes());
    }
    text.extend_from_slice(b"\"items\":[");
    for (n, item) in items.enumerate() {
        if n > 0 {
            text.push(b',');
        }
        text.extend_from_slice(&item);
    }
    text.push(b']');
    for key in after {
        text.extend_from_slice(format!(",\"{key}\":{}", head[key]).as_bytes());
    }
    text.push(b'}');
    Bytes::from(text)
}

/// Returns an object within a list; objects of built-in kinds have no `apiVersion` and `kind` there.
pub(crate) fn item(kind: &ServedKind, object: &StoredObject) -> Bytes {
    if !kind.is_built_in() {
        return object.json().clone();
    }
    let mut item = object.read();
    let fields = object::fields(&mut item);
    fields.remove("apiVersion");
    fields.remove("kind");
    Bytes::from(types::text_of(kind.go_type, &item))
}

/// Returns the version that a list asks for exactly; `None` for the newest.
fn requested_version(store: &Store, query: &Query) -> Result<Option<u64>, Refusal> {
    let text = query.text("resourceVersion");
    let version = parse_version(text)?;
    if version > store.version() {
        return Err(Refusal::too_large_version(version, store.version()));
    }
    Ok((version > 0 && is_exact(query)).then_some(version))
}

/// Parses a resource version; an empty one is 0.
pub(crate) fn parse_version(text: &str) -> Result<u64, Refusal> {
    if text.is_empty() {
        return Ok(0);
    }
    text.parse().map_err(|_| {
        Refusal::bad_request(format!("invalid resource version: {}", no_version(text)))
    })
}

/// Returns the reason why a text is no resource version.
pub(crate) fn no_version(text: &str) -> String {
    let value = Value::from(text);
    format!(
        "resourceVersion: Invalid value: {value}: strconv.ParseUint: parsing {value}: invalid syntax"
    )
}

fn write_token(version: u64, last: &Key) -> String {
    let token = json!([version, last.namespace, last.name]);
    BASE64_URL_SAFE_NO_PAD.encode(token.to_string())
}

fn read_token(token: &str) -> Result<(u64, Key), Refusal> {
    let wrong = |why: &str| {
        Refusal::bad_request(format!(
            "invalid continue token: continue key is not valid: {why}"
        ))
    };
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(token);
    let bytes = bytes.map_err(|_| wrong("illegal base64 data at input byte 0"))?;
    let read = serde_json::from_slice(&bytes);
    let (version, namespace, name) = read.map_err(|error| wrong(&error.to_string()))?;
    Ok((version, Key { namespace, name }))
}
