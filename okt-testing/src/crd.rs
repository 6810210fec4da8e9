//! This file reads a `CustomResourceDefinition`: what it declares, and what is wrong with it.

mod names;
mod rules;

use serde_json::{Value, json};

pub(crate) use self::names::{accept, is_established, reconsider};
use crate::{
    kind::{Kind, Origin, Scale},
    object::{self, text},
    refusal::{Cause, Refusal, Subject},
    schema::Schema,
    table::{Column, Fault},
};

pub(crate) const GROUP: &str = "apiextensions.k8s.io";
pub(crate) const PLURAL: &str = "customresourcedefinitions";

/// Reads the kind that a CRD declares.
///
/// # Errors
/// What a server refuses, and what this double does not do.
pub(crate) fn read(crd: &Value) -> Result<Kind, Refusal> {
    let subject = Subject {
        group: GROUP,
        kind: "CustomResourceDefinition",
        plural: PLURAL,
        name: object::name(crd),
    };
    let invalid = |causes: &[Cause]| Refusal::invalid(subject, causes);
    let mut causes = check_names(crd);
    rules::check_spec(crd, &mut causes);
    let version = pick_version(crd, &mut causes)?;
    let Some(version) = version else {
        return Err(invalid(&causes));
    };
    if text(crd, &["spec", "conversion", "strategy"]) == "Webhook" {
        return Err(Refusal::not_served("conversion webhooks of a CRD"));
    }
    let null = Value::Null;
    let openapi = object::at(version, &["schema", "openAPIV3Schema"]).unwrap_or(&null);
    let schema = if openapi.is_object() {
        match Schema::parse_root(openapi) {
            Ok(schema) => Some(schema),
            Err(found) => {
                causes.extend(found);
                None
            }
        }
    } else {
        causes.push(Cause::required(
            "spec.versions[0].schema.openAPIV3Schema",
            "",
        ));
        None
    };
    let has_status = object::at(version, &["subresources", "status"]).is_some();
    if has_status {
        rules::check_root(openapi, &mut causes);
    }
    rules::check_version(version, schema.as_ref(), &mut causes);
    let selectable = paths(version.get("selectableFields"), "jsonPath");
    if let Some(cause) = causes.iter().find(|cause| cause.is_not_served()) {
        return Err(Refusal::not_served(&cause.message));
    }
    let (Some(schema), true) = (schema, causes.is_empty()) else {
        return Err(invalid(&causes));
    };
    let accepted = ["status", "acceptedNames"];
    let given = [&accepted[..], &["spec", "names"]]
        .into_iter()
        .filter_map(|path| object::at(crd, path))
        .find(|names| !text(names, &["kind"]).is_empty())
        .unwrap_or(&null);
    let names = |key: &str| text(given, &[key]).to_owned();
    let or = |given: String, other: String| if given.is_empty() { other } else { given };
    let kind = names("kind");
    Ok(Kind {
        group: text(crd, &["spec", "group"]).to_owned(),
        version: text(version, &["name"]).to_owned(),
        list_kind: or(names("listKind"), format!("{kind}List")),
        singular: or(names("singular"), kind.to_lowercase()),
        plural: names("plural"),
        short_names: words(given, "shortNames"),
        categories: words(given, "categories"),
        namespaced: text(crd, &["spec", "scope"]) == "Namespaced",
        origin: Origin::Crd,
        schema,
        openapi: openapi.clone(),
        has_status,
        scale: object::at(version, &["subresources", "scale"]).map(scale),
        has_generation: true,
        selectable,
        columns: columns(version)?,
        updates_unconditionally: false,
        creates_on_update: false,
        was_changed: false,
        kind,
    })
}

/// What the API server itself writes into a CRD, but for who has which names.
pub(crate) fn complete(crd: &mut Value) {
    let mut names = object::at(crd, &["spec", "names"])
        .cloned()
        .unwrap_or_default();
    let kind = text(&names, &["kind"]).to_owned();
    let fields = object::fields(&mut names);
    fields
        .entry("singular")
        .or_insert_with(|| kind.to_lowercase().into());
    fields
        .entry("listKind")
        .or_insert_with(|| format!("{kind}List").into());
    object::put(crd, &["spec", "names"], names);
    if object::at(crd, &["spec", "conversion"]).is_none() {
        object::put(crd, &["spec", "conversion"], json!({ "strategy": "None" }));
    }
    let stored = object::at(crd, &["spec", "versions"])
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter(|version| version.get("storage") == Some(&true.into()))
        .map(|version| text(version, &["name"]).into())
        .collect::<Vec<Value>>();
    let mut versions = object::at(crd, &["status", "storedVersions"])
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    let new = stored.into_iter().filter(|new| !versions.contains(new));
    let new: Vec<_> = new.collect();
    versions.extend(new);
    object::put(crd, &["status", "storedVersions"], versions.into());
}

fn check_names(crd: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    for path in [
        &["spec", "group"][..],
        &["spec", "scope"],
        &["spec", "names", "plural"],
        &["spec", "names", "kind"],
    ] {
        if text(crd, path).is_empty() {
            causes.push(Cause::required(path.join("."), ""));
        }
    }
    let scope = text(crd, &["spec", "scope"]);
    if !matches!(scope, "" | "Namespaced" | "Cluster") {
        causes.push(Cause::unsupported(
            "spec.scope",
            &scope.into(),
            &["Cluster".into(), "Namespaced".into()],
        ));
    }
    let plural = text(crd, &["spec", "names", "plural"]);
    let group = text(crd, &["spec", "group"]);
    if !group.is_empty() && !group.contains('.') {
        causes.push(Cause::invalid(
            "spec.group",
            &group.into(),
            "should be a domain with at least one dot",
        ));
    }
    let name = object::name(crd);
    if !plural.is_empty() && name != format!("{plural}.{group}") {
        causes.push(Cause::invalid(
            "metadata.name",
            &name.into(),
            "must be spec.names.plural+\".\"+spec.group",
        ));
    }
    if group.ends_with(".k8s.io")
        && object::at(
            crd,
            &["metadata", "annotations", "api-approved.kubernetes.io"],
        )
        .is_none()
    {
        causes.push(Cause::required(
            "metadata.annotations[api-approved.kubernetes.io]",
            "protected groups must have approval annotation \"api-approved.kubernetes.io\", see https://github.com/kubernetes/enhancements/pull/1111",
        ));
    }
    causes
}

fn pick_version<'a>(crd: &'a Value, causes: &mut Vec<Cause>) -> Result<Option<&'a Value>, Refusal> {
    let versions = object::at(crd, &["spec", "versions"])
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    let is = |version: &&Value, key: &str| version.get(key) == Some(&true.into());
    let served: Vec<_> = versions
        .iter()
        .filter(|version| is(version, "served"))
        .collect();
    if versions
        .iter()
        .filter(|version| is(version, "storage"))
        .count()
        != 1
    {
        causes.push(Cause::invalid(
            "spec.versions",
            &object::at(crd, &["spec", "versions"])
                .cloned()
                .unwrap_or_default(),
            "must have exactly one version marked as storage version",
        ));
        return Ok(None);
    }
    match served.as_slice() {
        [] => Err(Refusal::not_served("a CRD without a served version")),
        [one] if is(one, "storage") => Ok(Some(one)),
        _ => Err(Refusal::not_served(
            "a CRD with more than one served version, or one whose served version is not the stored one",
        )),
    }
}

fn words(names: &Value, key: &str) -> Vec<String> {
    names
        .get(key)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

fn paths(list: Option<&Value>, key: &str) -> Vec<String> {
    list.and_then(Value::as_array)
        .into_iter()
        .flatten()
        .map(|entry| text(entry, &[key]).trim_start_matches('.').to_owned())
        .filter(|path| !path.is_empty())
        .collect()
}

fn scale(raw: &Value) -> Scale {
    let path = |key: &str| -> Vec<String> {
        text(raw, &[key])
            .split('.')
            .filter(|key| !key.is_empty())
            .map(str::to_owned)
            .collect()
    };
    let selector = path("labelSelectorPath");
    Scale {
        spec_replicas: path("specReplicasPath"),
        status_replicas: path("statusReplicasPath"),
        selector: (!selector.is_empty()).then_some(selector),
    }
}

/// The columns up to the first one that a server cannot read.
fn columns(version: &Value) -> Result<Vec<Column>, Refusal> {
    let given = version
        .get("additionalPrinterColumns")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    if given.is_empty() {
        return Ok(vec![Column::age()]);
    }
    let mut columns = Vec::new();
    for raw in given {
        match Column::read(raw) {
            Ok(column) => columns.push(column),
            Err(Fault::Wrong) => break,
            Err(Fault::Unknown) => {
                let path = text(raw, &["jsonPath"]);
                return Err(Refusal::not_served(format!(
                    "the JSON path {path} of a column"
                )));
            }
        }
    }
    Ok(columns)
}
