//! Reads and checks a `CustomResourceDefinition`.

mod names;
mod rules;
mod version;

use serde_json::{Value, json};

pub(crate) use self::names::{accept, is_established, reconsider, terminate};
use self::version::{CrdVersion, Names, VersionPlace, is};
use crate::causes::Causes;
use crate::client_config::ConversionWebhook;
use crate::kind::{KindId, ServedKind};
use crate::object::{self, text};
use crate::refusal::{Refusal, Subject};
use crate::schema::{Schema, SharedSchema};

pub(crate) const GROUP: &str = "apiextensions.k8s.io";
pub(crate) const PLURAL: &str = "customresourcedefinitions";
/// The fields that each CRD has and that do not change.
const IDENTITY: [&[&str]; 4] = [
    &["spec", "group"],
    &["spec", "scope"],
    &["spec", "names", "plural"],
    &["spec", "names", "kind"],
];

/// Reads the kinds that a CRD declares, one for each version that is served or stored; the storage version comes first.
///
/// # Errors
/// A real server refuses the CRD, or this API does not implement a part of it.
pub(crate) fn read(crd: &Value) -> Result<Vec<ServedKind>, Refusal> {
    let subject = Subject {
        group: GROUP,
        kind: "CustomResourceDefinition",
        plural: PLURAL,
        name: object::name(crd),
    };
    let invalid = |causes: &Causes| Refusal::invalid(subject, causes);
    let mut causes = check_names(crd);
    rules::check_spec(crd, &mut causes);
    let raw = raw_versions(crd);
    rules::check_versions(raw, &mut causes);
    if raw.iter().filter(|version| is(version, "storage")).count() != 1 {
        return Err(invalid(&causes));
    }
    let schemas = read_schemas(raw, &mut causes);
    for (index, (version, schema)) in raw.iter().zip(&schemas).enumerate() {
        let place = |key: &str| VersionPlace::of(raw, index, key).look();
        let misplaced = version::misplaced_selectable(raw, index);
        let schema = schema.as_deref().filter(|_| misplaced.is_none());
        if let Some((place, detail)) = misplaced {
            causes.invalid(place, "", detail);
        }
        rules::check_version(version, place, schema, &mut causes);
    }
    rules::check_stored(crd, raw, &mut causes);
    if let Some(cause) = causes.iter().find(|cause| cause.is_not_served()) {
        return Err(Refusal::not_served(&cause.message));
    }
    let schemas: Option<Vec<_>> = schemas.into_iter().collect();
    let (Some(schemas), true) = (schemas, causes.is_empty()) else {
        return Err(invalid(&causes));
    };
    let names = Names::of(crd);
    let versions: Vec<_> = raw.iter().zip(schemas).map(CrdVersion::of).collect();
    let conversion = ConversionWebhook::of(crd);
    let mut kinds = Vec::new();
    for (index, version) in versions.iter().enumerate() {
        if is(version.raw, "served") || is(version.raw, "storage") {
            let siblings = versions
                .iter()
                .enumerate()
                .filter(|(other, _)| *other != index)
                .map(|(_, other)| other.sibling(&names))
                .collect();
            let mut kind = version.kind(&names, siblings, raw)?;
            kind.conversion.clone_from(&conversion);
            kinds.push(kind);
        }
    }
    kinds.sort_by_key(|kind| !kind.is_stored);
    Ok(kinds)
}

fn raw_versions(crd: &Value) -> &[Value] {
    object::items(crd, &["spec", "versions"])
}

/// Reads the schemas of the versions; `None` for an invalid one.
fn read_schemas(raw: &[Value], causes: &mut Causes) -> Vec<Option<SharedSchema>> {
    let openapi = |version| object::at(version, &["schema", "openAPIV3Schema"]);
    for (index, version) in raw.iter().enumerate() {
        if !openapi(version).is_some_and(Value::is_object) {
            let field = format!("spec.versions[{index}].schema.openAPIV3Schema");
            causes.required(field, "");
        }
    }
    let mut schemas: Vec<Option<SharedSchema>> = Vec::new();
    for (index, version) in raw.iter().enumerate() {
        let place = VersionPlace::of(raw, index, "schema");
        let schema = match (place.look(), openapi(version)) {
            (Some(path), Some(openapi)) if openapi.is_object() => {
                let path = format!("{path}.openAPIV3Schema");
                let parsed = Schema::parse_root(openapi, &path)
                    .map_err(|mut found| causes.append(&mut found))
                    .ok();
                let has_status = match place {
                    VersionPlace::Here(_) => version::has_status(version),
                    VersionPlace::Above(_) | VersionPlace::Met => {
                        raw.iter().any(version::has_status)
                    }
                };
                if has_status {
                    rules::check_root(openapi, &path, causes);
                }
                parsed.map(SharedSchema::from)
            }
            (None, _) => schemas.first().cloned().flatten(),
            (Some(_), _) => None,
        };
        schemas.push(schema);
    }
    schemas
}

/// Checks that an update leaves the names of a CRD as they are.
pub(crate) fn check_identity(kind: &ServedKind, old: &Value, new: &Value) -> Result<(), Refusal> {
    for path in IDENTITY {
        let value = object::at(new, path).cloned().unwrap_or_default();
        if object::at(old, path) != Some(&value) {
            let subject = kind.subject(object::name(old));
            let detail = "field is immutable";
            return Err(Refusal::invalid_field(
                subject,
                path.join("."),
                &value,
                detail,
            ));
        }
    }
    Ok(())
}

/// Returns the id of the kind that a CRD declares.
pub(crate) fn declared_id(crd: &Value) -> KindId {
    let group = text(crd, &["spec", "group"]);
    KindId::new(group, text(crd, &["spec", "names", "plural"]))
}

/// Fills in the fields that the API server itself sets in a CRD, except for the accepted names.
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
    if let Some(service) = crd.pointer_mut("/spec/conversion/webhook/clientConfig/service") {
        object::fields(service).entry("port").or_insert(443.into());
    }
    note_stored(crd);
}

/// Sets `status.storedVersions`; an empty list stands for the current storage version.
pub(crate) fn set_stored(crd: &mut Value, given: Value) {
    let is_empty = given.as_array().is_none_or(Vec::is_empty);
    let versions = if is_empty { json!([]) } else { given };
    object::put(crd, &["status", "storedVersions"], versions);
    if is_empty {
        note_stored(crd);
    }
}

/// Adds the current storage version to `status.storedVersions`.
pub(crate) fn note_stored(crd: &mut Value) {
    let stored = raw_versions(crd)
        .iter()
        .filter(|version| is(version, "storage"))
        .map(|version| text(version, &["name"]).into())
        .collect::<Vec<Value>>();
    let mut versions = object::items(crd, &["status", "storedVersions"]).to_vec();
    for new in stored {
        if !versions.contains(&new) {
            versions.push(new);
        }
    }
    object::put(crd, &["status", "storedVersions"], versions.into());
}

fn check_names(crd: &Value) -> Causes {
    let mut causes = Causes::default();
    for path in IDENTITY {
        if text(crd, path).is_empty() {
            causes.required(path.join("."), "");
        }
    }
    let scope = text(crd, &["spec", "scope"]);
    if !matches!(scope, "" | "Namespaced" | "Cluster") {
        causes.unsupported("spec.scope", scope, &["Cluster", "Namespaced"]);
    }
    let plural = text(crd, &["spec", "names", "plural"]);
    let group = text(crd, &["spec", "group"]);
    if !group.is_empty() && !group.contains('.') {
        let detail = "should be a domain with at least one dot";
        causes.invalid("spec.group", group, detail);
    }
    let name = object::name(crd);
    if !plural.is_empty() && name != format!("{plural}.{group}") {
        let detail = "must be spec.names.plural+\".\"+spec.group";
        causes.invalid("metadata.name", name, detail);
    }
    if group.ends_with(".k8s.io")
        && object::at(
            crd,
            &["metadata", "annotations", "api-approved.kubernetes.io"],
        )
        .is_none()
    {
        let detail = "protected groups must have approval annotation \"api-approved.kubernetes.io\", see https://github.com/kubernetes/enhancements/pull/1111";
        causes.required("metadata.annotations[api-approved.kubernetes.io]", detail);
    }
    causes
}
