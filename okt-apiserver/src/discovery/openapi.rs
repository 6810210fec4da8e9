//! Publishes the parts of the `OpenAPI` documents that kubectl reads.

use serde_json::{Map, Value, json};

use super::protobuf;
use crate::{answer::ApiAnswer, kind::ServedKind, refusal::Refusal, store::Store};

/// The media type that a real server answers with.
const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// Returns the index of the `OpenAPI` v3 documents, by group and version.
pub(crate) fn index(store: &Store) -> Value {
    let mut paths = Map::new();
    for kind in store.kinds() {
        let path = path(&kind.group, &kind.version);
        let url = format!("/openapi/v3/{path}");
        paths.insert(path, json!({ "serverRelativeURL": url }));
    }
    json!({ "paths": paths })
}

/// Returns one document of `OpenAPI` v3.
pub(crate) fn v3(
    store: &Store,
    group: &str,
    version: &str,
    accept: &str,
) -> Result<ApiAnswer, Refusal> {
    refuse_protobuf(accept)?;
    let mut schemas = Map::new();
    let mut paths = Map::new();
    for kind in store.kinds() {
        if kind.group == group && kind.version == version {
            schemas.insert(definition_name(kind), definition(kind));
            let parameters = ["dryRun", "fieldManager", "fieldValidation", "force"]
                .map(|name| json!({ "name": name, "in": "query", "schema": { "type": "string" } }));
            let patch = json!({
                "patch": {
                    "parameters": parameters,
                    "responses": { "200": { "description": "OK" } },
                    "x-kubernetes-action": "patch",
                    "x-kubernetes-group-version-kind": gvk(kind),
                },
            });
            let namespace = if kind.namespaced {
                "/namespaces/{namespace}"
            } else {
                ""
            };
            let path = path(group, version);
            paths.insert(
                format!("/{path}{namespace}/{}/{{name}}", kind.plural),
                patch,
            );
        }
    }
    if schemas.is_empty() {
        return Err(Refusal::unknown_path());
    }
    Ok(ApiAnswer::ok(json!({
        "openapi": "3.0.0",
        "info": { "title": "okt-apiserver", "version": "v1.36.1" },
        "paths": paths,
        "components": { "schemas": schemas },
    })))
}

/// Returns the document of `OpenAPI` v2.
pub(crate) fn v2(store: &Store, accept: &str) -> Result<ApiAnswer, Refusal> {
    let mut definitions = Map::new();
    for kind in store.kinds() {
        definitions.insert(definition_name(kind), definition(kind));
    }
    if !takes_json(accept) && accept.contains("application/com.github.proto-openapi.spec.v2") {
        let document = protobuf::document(&definitions);
        return Ok(ApiAnswer::of_type(PROTOBUF, document.into()));
    }
    refuse_protobuf(accept)?;
    Ok(ApiAnswer::ok(json!({
        "swagger": "2.0",
        "info": { "title": "okt-apiserver", "version": "v1.36.1" },
        "paths": {},
        "definitions": definitions,
    })))
}

fn takes_json(accept: &str) -> bool {
    accept.is_empty() || accept.contains("json") || accept.contains("*/*")
}

/// Refuses a client that does not accept JSON.
fn refuse_protobuf(accept: &str) -> Result<(), Refusal> {
    if takes_json(accept) {
        Ok(())
    } else {
        Err(Refusal::new(
            406,
            "NotAcceptable",
            "okt-apiserver serves OpenAPI documents as JSON only",
        ))
    }
}

fn definition(kind: &ServedKind) -> Value {
    let mut schema = kind.openapi.clone();
    crate::object::fields(&mut schema).insert(
        "x-kubernetes-group-version-kind".to_owned(),
        json!([gvk(kind)]),
    );
    let text = json!({ "type": "string" });
    for key in ["apiVersion", "kind"] {
        if schema["properties"].get(key).is_none() {
            schema["properties"][key] = text.clone();
        }
    }
    if schema["properties"].get("metadata").is_none() {
        schema["properties"]["metadata"] = json!({ "type": "object" });
    }
    schema
}

fn gvk(kind: &ServedKind) -> Value {
    json!({ "group": kind.group, "version": kind.version, "kind": kind.kind })
}

/// Returns a name such as `dev.okt.demo.v1.Database`.
fn definition_name(kind: &ServedKind) -> String {
    let mut parts: Vec<_> = kind.group.split('.').rev().collect();
    parts.push(&kind.version);
    parts.push(&kind.kind);
    parts.retain(|part| !part.is_empty());
    parts.join(".")
}

fn path(group: &str, version: &str) -> String {
    if group.is_empty() {
        format!("api/{version}")
    } else {
        format!("apis/{group}/{version}")
    }
}
