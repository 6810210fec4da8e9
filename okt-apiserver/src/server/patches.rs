//! Decodes patches: what they make of an object, and the configurations of applies.

use serde_json::{Map, Value};

use super::decode::{Call, check_object, not_registered};
use crate::kind::{ServedKind, in_go};
use crate::refusal::Refusal;
use crate::store::{Key, Store};
use crate::subresource::Subresource;
use crate::write::{Moment, Write, WriteParams, WrittenObject};
use crate::{convert, object, patch, types};

/// An apply that only needs to be committed, if its object is still as it was.
pub(super) struct PreparedApply {
    pub(super) moment: Moment,
    pub(super) write: Write,
}

impl PreparedApply {
    pub(super) fn of(
        (moment, params): (Moment, WriteParams),
        call: &Call,
        key: &Key,
    ) -> Result<Self, Refusal> {
        let kind = &*params.kind;
        if params.subresource == Subresource::Status
            && !moment.has_object()
            && !kind.creates_on_update
        {
            // The server answers this before it reads the configuration.
            return Err(Refusal::not_found(kind.subject(&key.name)));
        }
        let config = configuration(call, (&kind.api_version(), &kind.kind))?;
        let write = Write::apply(&moment, params, key, config, call.query.flag("force"))?;
        Ok(Self { moment, write })
    }
}

/// Reads a configuration, which has to be one of this version and this kind.
pub(super) fn configuration(call: &Call, wanted: (&str, &str)) -> Result<Value, Refusal> {
    let mut config = call.parse(&[patch::APPLY])?;
    object::whole_numbers(&mut config);
    if config.is_null() {
        config = Value::Object(Map::new());
    }
    if !config.is_object() {
        let found = object::json_type(&config);
        return Err(Refusal::bad_request(format!(
            "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"
        )));
    }
    let found = (
        object::text(&config, &["apiVersion"]),
        object::text(&config, &["kind"]),
    );
    if found == wanted {
        return Ok(config);
    }
    let (version, kind) = found;
    let slash = if version.contains('/') { "" } else { "/" };
    Err(Refusal::bad_request(format!(
        "invalid object type: {slash}{version}, Kind={kind}"
    )))
}

/// Patches an object by any method but server-side apply.
pub(super) fn patch_object(
    store: &mut Store,
    call: &Call,
    params: WriteParams,
    key: &Key,
) -> Result<WrittenObject, Refusal> {
    let kind = &*params.kind;
    let Some(stored) = convert::current(params.calls(), store, &params.kind, key)? else {
        return Err(Refusal::not_found(kind.subject(&key.name)));
    };
    let old = stored.read();
    let mut new = old.clone();
    let body = apply_patch(call, Some(kind), &mut new)?;
    let strategic = call.media() == patch::STRATEGIC;
    if strategic || (kind.is_built_in() && object::text(&new, &["kind"]).is_empty()) {
        // Such a patch need not name the kind.
        object::fields(&mut new).insert("kind".to_owned(), kind.kind.clone().into());
    }
    let (found, version) = (
        object::text(&new, &["kind"]),
        object::text(&new, &["apiVersion"]),
    );
    if kind.is_built_in() && (found != kind.kind || version != kind.api_version()) {
        let why = not_registered(found, version);
        return Err(Refusal::undecodable_patch(new.to_string(), &why));
    }
    if let Some(go_type) = kind.go_type.filter(|_| strategic) {
        // Here a server converts a value, reads `1.0` as an integer, and shows the patch.
        object::whole_numbers(&mut new);
        let decoded = types::decode(go_type, &mut new.clone());
        decoded
            .map_err(|why| Refusal::undecodable_patch(in_go(&body), &types::as_conversion(&why)))?;
    }
    if let Some(why) = types::mistyped_metadata(&new).filter(|_| !kind.is_built_in()) {
        return Err(Refusal::undecodable_patch(new.to_string(), &why));
    }
    if !is_another_version(kind, &new) {
        check_object(kind, &new)?;
    }
    Write::decode(params, new)?.patch(store, key, old)
}

/// Whether a patch has made a custom resource one of another version.
fn is_another_version(kind: &ServedKind, patched: &Value) -> bool {
    let version = object::text(patched, &["apiVersion"]);
    !(kind.is_built_in() || version.is_empty() || kind.is_in(version))
}

/// Applies a patch to a document, and returns the patch. `kind` is `None` for a scale, which is no kind of its own.
pub(super) fn apply_patch(
    call: &Call,
    kind: Option<&ServedKind>,
    target: &mut Value,
) -> Result<Value, Refusal> {
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
    if !accepted.contains(&media.as_str()) {
        // The routes of built-in kinds know their media types.
        return Err(match kind {
            Some(kind) if !kind.is_built_in() => Refusal::unsupported_media_type(&accepted),
            _ => Refusal::new(415, "UnsupportedMediaType", "415: Unsupported Media Type"),
        });
    }
    let wrong = |why: &str| {
        let decoding = if media == patch::STRATEGIC {
            ""
        } else {
            "error decoding patch: "
        };
        Refusal::bad_request(format!("{decoding}{why}"))
    };
    let body = call.parse_json().map_err(|why| wrong(&why))?;
    let no_map = || {
        let found = object::json_type(&body);
        wrong(&format!(
            "json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"
        ))
    };
    match media.as_str() {
        patch::JSON => patch::json(target, &body)?,
        patch::STRATEGIC if body.is_null() => {}
        patch::MERGE if body.is_null() => return Err(Refusal::bad_request("Invalid JSON Patch")),
        patch::STRATEGIC | patch::MERGE if !body.is_object() => return Err(no_map()),
        patch::STRATEGIC => {
            let schema = kind.map(|kind| &*kind.schema);
            patch::strategic(schema, target, &body).map_err(Refusal::unexplained)?;
        }
        patch::MERGE => patch::merge(target, &body),
        _ => return Err(Refusal::not_served("server-side apply of a scale")),
    }
    Ok(body)
}
