//! The rules for a CRD apart from those for its schema.

use std::{collections::BTreeSet, sync::LazyLock};

use regex::Regex;
use serde_json::Value;

use super::version::is;
use crate::causes::Causes;
use crate::client_config::{ClientConfig, known_version};
use crate::object::{self, text};
use crate::schema::{Schema, Type};

const LABEL: &str = "[a-z]([-a-z0-9]*[a-z0-9])?";
const COLUMN_TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
const COLUMN_FORMATS: [&str; 8] = [
    "byte",
    "date",
    "date-time",
    "double",
    "float",
    "int32",
    "int64",
    "password",
];
const SELECTABLE_LIMIT: usize = 8;
/// The fields that are allowed at the root of a schema with a status subresource.
const ROOT_FIELDS: [&str; 22] = [
    "description",
    "type",
    "format",
    "title",
    "maximum",
    "exclusiveMaximum",
    "minimum",
    "exclusiveMinimum",
    "maxLength",
    "minLength",
    "pattern",
    "maxItems",
    "minItems",
    "uniqueItems",
    "multipleOf",
    "required",
    "items",
    "properties",
    "externalDocs",
    "example",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-validations",
];

static IS_LABEL: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(&format!("^(?:{LABEL})$")).expect("the pattern of a label is valid")
});

/// Checks what a CRD says of its conversion webhook.
fn check_conversion(crd: &Value, is_wanted: bool, causes: &mut Causes) {
    let path = "spec.conversion.webhookClientConfig";
    let given = |path: &[&str]| object::at(crd, path).filter(|value| !value.is_null());
    let config = given(&["spec", "conversion", "webhook", "clientConfig"]);
    if !is_wanted {
        if config.is_some() {
            let detail = "should not be set when strategy is not set to Webhook";
            causes.forbidden(path, detail);
        }
        if given(&["spec", "conversion", "webhook", "conversionReviewVersions"]).is_some() {
            let path = "spec.conversion.conversionReviewVersions";
            causes.forbidden(
                path,
                "should not be set when strategy is not set to Webhook",
            );
        }
        return;
    }
    match config {
        Some(config) => ClientConfig::check(config, path, causes),
        None => causes.required(path, "required when strategy is set to Webhook"),
    }
    let versions = ["spec", "conversion", "webhook", "conversionReviewVersions"];
    let versions = object::texts(crd, &versions);
    let field = "spec.conversion.conversionReviewVersions";
    if versions.is_empty() {
        causes.required(field, "");
    } else if known_version(&versions).is_none() {
        let detail = "must include at least one of v1, v1beta1";
        causes.invalid(field, versions, detail);
    }
}

/// Checks the names and the switches of a CRD.
pub(super) fn check_spec(crd: &Value, causes: &mut Causes) {
    let names = object::at(crd, &["spec", "names"])
        .cloned()
        .unwrap_or_default();
    for key in ["singular", "kind", "listKind"] {
        let name = text(&names, &[key]);
        let prefix = if key == "singular" {
            ""
        } else {
            "may have mixed case, but should otherwise match: "
        };
        let checked = if key == "singular" {
            name.to_owned()
        } else {
            name.to_lowercase()
        };
        check_label(&format!("spec.names.{key}"), name, &checked, prefix, causes);
    }
    for key in ["shortNames", "categories"] {
        for (index, name) in object::items(&names, &[key]).iter().enumerate() {
            let name = name.as_str().unwrap_or_default();
            let field = format!("spec.names.{key}[{index}]");
            check_label(&field, name, name, "", causes);
        }
    }
    let kind = text(&names, &["kind"]);
    if !kind.is_empty() && kind == text(&names, &["listKind"]) {
        let detail = "kind and listKind may not be the same";
        causes.invalid("spec.names.listKind", kind, detail);
    }
    let strategy = text(crd, &["spec", "conversion", "strategy"]);
    if !matches!(strategy, "" | "None" | "Webhook") {
        causes.unsupported("spec.conversion.strategy", strategy, &["None", "Webhook"]);
    }
    check_conversion(crd, strategy == "Webhook", causes);
    if object::at(crd, &["spec", "preserveUnknownFields"]) == Some(&true.into()) {
        let detail = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
        causes.invalid("spec.preserveUnknownFields", true, detail);
    }
    let versions = object::items(crd, &["spec", "versions"]);
    for (index, version) in versions.iter().enumerate() {
        let name = text(version, &["name"]);
        let path = format!("spec.versions[{index}]");
        check_label(&format!("{path}.name"), name, name, "", causes);
        let warning = version
            .get("deprecationWarning")
            .filter(|given| !given.is_null());
        if let (Some(warning), None | Some(Value::Bool(false))) =
            (warning, version.get("deprecated"))
        {
            causes.invalid(
                format!("{path}.deprecationWarning"),
                warning,
                "can only be set for deprecated versions",
            );
        }
    }
}

fn check_label(field: &str, shown: &str, name: &str, prefix: &str, causes: &mut Causes) {
    if name.is_empty() || IS_LABEL.is_match(name) {
        return;
    }
    let detail = format!(
        "{prefix}a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '{LABEL}')"
    );
    causes.invalid(field, shown, &detail);
}

/// Checks the root of a schema with a status subresource.
pub(super) fn check_root(openapi: &Value, path: &str, causes: &mut Causes) {
    let other = openapi
        .as_object()
        .into_iter()
        .flatten()
        .find(|(key, value)| {
            !(ROOT_FIELDS.contains(&key.as_str()) || *key == "nullable" || value.is_null())
        });
    if let Some((key, _)) = other {
        causes.invalid(
            path,
            openapi,
            &format!(
                "only {ROOT_FIELDS:?} fields are allowed at the root of the schema if the status subresource is enabled, and not {key}"
            ),
        );
    }
}

/// Checks that the versions have unique names and one storage version.
pub(super) fn check_versions(versions: &[Value], causes: &mut Causes) {
    let names = versions.iter().map(|version| text(version, &["name"]));
    let unique: BTreeSet<_> = names.collect();
    let mut refuse = |detail| causes.invalid("spec.versions", versions, detail);
    if unique.len() < versions.len() {
        refuse("must contain unique version names");
    }
    let is_storage = |version: &&Value| is(version, "storage");
    if versions.iter().filter(is_storage).count() != 1 {
        refuse("must have exactly one version marked as storage version");
    }
}

/// Checks that no version was removed in which objects may be stored.
pub(super) fn check_stored(crd: &Value, versions: &[Value], causes: &mut Causes) {
    let stored = object::items(crd, &["status", "storedVersions"]);
    for (index, name) in stored.iter().enumerate() {
        if versions
            .iter()
            .any(|version| version.get("name") == Some(name))
        {
            continue;
        }
        let gone = name.as_str().unwrap_or_default();
        let detail = format!(
            "missing from spec.versions; {gone} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in {gone} and removes {gone} from status.storedVersions"
        );
        let field = format!("status.storedVersions[{index}]");
        causes.invalid(field, name, &detail);
    }
}

/// Checks the columns, selectable fields and the scale of a version.
///
/// `place` returns the path of each of them, or `None` if it was checked before.
pub(super) fn check_version(
    version: &Value,
    place: impl Fn(&str) -> Option<String>,
    schema: Option<&Schema>,
    causes: &mut Causes,
) {
    if let Some(scale) = object::at(version, &["subresources", "scale"])
        && let Some(place) = place("subresources")
    {
        check_scale(scale, &place, causes);
    }
    if let Some(place) = place("additionalPrinterColumns") {
        for (index, column) in object::items(version, &["additionalPrinterColumns"])
            .iter()
            .enumerate()
        {
            check_column(column, &format!("{place}[{index}]"), causes);
        }
    }
    if let (Some(schema), Some(place)) = (schema, place("selectableFields")) {
        check_selectable(version, &place, schema, causes);
    }
}

fn check_selectable(version: &Value, place: &str, schema: &Schema, causes: &mut Causes) {
    let mut seen = BTreeSet::new();
    for (index, entry) in object::items(version, &["selectableFields"])
        .iter()
        .enumerate()
    {
        let field = format!("{place}[{index}].jsonPath");
        let path = text(entry, &["jsonPath"]);
        if path.is_empty() {
            causes.required(field, "");
            continue;
        }
        // The schema that the server checks has no fields of `metadata`.
        let found = Some(path)
            .filter(|path| !path.starts_with(".metadata"))
            .and_then(|path| schema.at_path(path));
        let Some(found) = found else {
            causes.invalid(
                field,
                path,
                "is an invalid path: does not refer to a valid field",
            );
            continue;
        };
        if !matches!(
            found.kind,
            Some(Type::String | Type::Boolean | Type::Integer)
        ) {
            let detail = "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.";
            causes.invalid(field.clone(), path, detail);
        }
        if !seen.insert(path) {
            causes.duplicate(field, path);
        }
    }
    if seen.len() > SELECTABLE_LIMIT {
        causes.too_many(place, seen.len(), SELECTABLE_LIMIT as u64);
    }
}

fn check_column(column: &Value, path: &str, causes: &mut Causes) {
    if text(column, &["name"]).is_empty() {
        causes.required(format!("{path}.name"), "");
    }
    let kind = text(column, &["type"]);
    let detail = format!("must be one of {}", COLUMN_TYPES.join(","));
    if kind.is_empty() {
        causes.required(format!("{path}.type"), &detail);
    } else if !COLUMN_TYPES.contains(&kind) {
        causes.invalid(format!("{path}.type"), kind, &detail);
    }
    let format = text(column, &["format"]);
    if !format.is_empty() && !COLUMN_FORMATS.contains(&format) {
        let detail = format!("must be one of {}", COLUMN_FORMATS.join(","));
        causes.invalid(format!("{path}.format"), format, &detail);
    }
    let field = format!("{path}.JSONPath");
    match text(column, &["jsonPath"]) {
        "" => causes.required(field, ""),
        json_path => {
            check_path(field, json_path, causes);
        }
    }
}

fn check_path(field: String, path: &str, causes: &mut Causes) -> bool {
    let holds = path.starts_with('.');
    if !holds {
        causes.invalid(field, path, "must be a simple json path starting with .");
    }
    holds
}

fn check_scale(scale: &Value, place: &str, causes: &mut Causes) {
    for (key, parents, under) in [
        ("specReplicasPath", &[".spec."][..], "under .spec"),
        ("statusReplicasPath", &[".status."], "under .status"),
        (
            "labelSelectorPath",
            &[".spec.", ".status."],
            "under either .spec or .status",
        ),
    ] {
        let field = format!("{place}.scale.{key}");
        let path = text(scale, &[key]);
        if path.is_empty() {
            if key != "labelSelectorPath" {
                causes.required(field, "");
            }
            continue;
        }
        if check_path(field.clone(), path, causes)
            && !parents.iter().any(|parent| path.starts_with(parent))
        {
            let detail = format!("should be a json path {under}");
            causes.invalid(field, path, &detail);
        }
    }
}
