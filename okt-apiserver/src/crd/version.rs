//! Reads one version of a CRD.

use serde_json::Value;

use crate::kind::{Origin, Scale, ServedKind, Sibling};
use crate::object::{self, text};
use crate::priority::priority;
use crate::refusal::Refusal;
use crate::schema::SharedSchema;
use crate::table::{Column, PathFault};

/// The place of a field that each version has. A server moves a field that is equal in all versions to one place above
/// them.
pub(super) enum VersionPlace {
    Above(&'static str),
    /// The place is above the versions, and was checked with the first one.
    Met,
    Here(String),
}

impl VersionPlace {
    pub(super) fn of(versions: &[Value], index: usize, key: &str) -> Self {
        let first = versions.first().and_then(|version| version.get(key));
        let differs = versions.iter().any(|version| version.get(key) != first);
        match (differs, index) {
            (true, _) => Self::Here(format!("spec.versions[{index}].{key}")),
            (false, 0) => Self::Above(match key {
                "schema" => "spec.validation",
                "subresources" => "spec.subresources",
                "selectableFields" => "spec.selectableFields",
                _ => "spec.additionalPrinterColumns",
            }),
            (false, _) => Self::Met,
        }
    }

    /// Returns the path, unless it was checked before.
    pub(super) fn look(&self) -> Option<String> {
        match self {
            Self::Above(path) => Some((*path).to_owned()),
            Self::Met => None,
            Self::Here(path) => Some(path.clone()),
        }
    }
}

/// Returns the place of selectable fields that are elsewhere than the schema, and the error of a server for it.
pub(super) fn misplaced_selectable(
    versions: &[Value],
    index: usize,
) -> Option<(String, &'static str)> {
    let key = "selectableFields";
    let given = versions.get(index)?.get(key)?.as_array()?;
    if given.is_empty() {
        return None;
    }
    let place = |key| VersionPlace::of(versions, index, key);
    match (place(key), place("schema")) {
        (VersionPlace::Here(place), VersionPlace::Above(_) | VersionPlace::Met) => Some((
            place,
            "may only be set when `version.schema.openAPIV3Schema` is not included",
        )),
        (VersionPlace::Above(place), VersionPlace::Here(_)) => Some((
            place.to_owned(),
            "may only be set when validations.schema is included",
        )),
        _ => None,
    }
}

/// The parts that all versions of a kind share.
pub(super) struct Names<'c> {
    group: &'c str,
    namespaced: bool,
    /// The accepted names, or the requested ones if none are accepted yet.
    given: &'c Value,
}

impl<'c> Names<'c> {
    pub(super) fn of(crd: &'c Value) -> Self {
        let paths = [&["status", "acceptedNames"][..], &["spec", "names"]];
        let mut given = paths.into_iter().filter_map(|path| object::at(crd, path));
        Self {
            group: text(crd, &["spec", "group"]),
            namespaced: text(crd, &["spec", "scope"]) == "Namespaced",
            given: given
                .find(|names| !text(names, &["kind"]).is_empty())
                .unwrap_or(&Value::Null),
        }
    }

    /// Returns a name, or its default if the CRD does not set it.
    fn or(&self, key: &str, other: impl FnOnce(&str) -> String) -> String {
        match text(self.given, &[key]) {
            "" => other(text(self.given, &["kind"])),
            given => given.to_owned(),
        }
    }
}

/// A version with its parsed schema.
pub(super) struct CrdVersion<'c> {
    pub(super) raw: &'c Value,
    schema: SharedSchema,
}

impl<'c> CrdVersion<'c> {
    pub(super) fn of((raw, schema): (&'c Value, SharedSchema)) -> Self {
        Self { raw, schema }
    }

    fn name(&self) -> &str {
        text(self.raw, &["name"])
    }

    fn scale(&self) -> Option<Scale> {
        object::at(self.raw, &["subresources", "scale"]).map(scale)
    }

    pub(super) fn sibling(&self, names: &Names<'_>) -> Sibling {
        Sibling {
            api_version: format!("{}/{}", names.group, self.name()),
            schema: self.schema.clone(),
            replicas: self.scale().map(|scale| scale.spec_replicas),
            is_stored: is(self.raw, "storage"),
        }
    }

    /// Returns the kind in this version.
    ///
    /// # Errors
    /// It has a column whose path this API does not support.
    pub(super) fn kind(
        &self,
        names: &Names<'_>,
        siblings: Vec<Sibling>,
        versions: &[Value],
    ) -> Result<ServedKind, Refusal> {
        let openapi = object::at(self.raw, &["schema", "openAPIV3Schema"]);
        Ok(ServedKind {
            group: names.group.to_owned(),
            version: self.name().to_owned(),
            kind: text(names.given, &["kind"]).to_owned(),
            list_kind: names.or("listKind", |kind| format!("{kind}List")),
            singular: names.or("singular", str::to_lowercase),
            plural: text(names.given, &["plural"]).to_owned(),
            short_names: words(names.given, "shortNames"),
            categories: words(names.given, "categories"),
            namespaced: names.namespaced,
            origin: Origin::Crd,
            go_type: None,
            is_action: false,
            schema: self.schema.clone(),
            openapi: openapi.cloned().unwrap_or_default(),
            has_status: has_status(self.raw),
            scale: self.scale(),
            has_generation: true,
            selectable: selectable(self.raw),
            columns: columns(self.raw)?,
            updates_unconditionally: false,
            returns_deleted: false,
            creates_on_update: false,
            was_changed: false,
            is_served: is(self.raw, "served"),
            is_stored: is(self.raw, "storage"),
            deprecation: is(self.raw, "deprecated").then(|| self.deprecation(names, versions)),
            siblings,
            conversion: None,
        })
    }

    /// Returns the deprecation warning: the one of the CRD or, by default, one that names a newer version.
    fn deprecation(&self, names: &Names<'_>, versions: &[Value]) -> String {
        if let Some(given) = self.raw.get("deprecationWarning").and_then(Value::as_str) {
            return given.to_owned();
        }
        let (group, kind, own) = (names.group, text(names.given, &["kind"]), self.name());
        let newer = versions
            .iter()
            .filter(|version| is(version, "served") && !is(version, "deprecated"))
            .map(|version| text(version, &["name"]))
            .filter(|name| priority(name) < priority(own))
            .min_by_key(|name| priority(name));
        let deprecated = format!("{group}/{own} {kind} is deprecated");
        match newer {
            Some(newer) => format!("{deprecated}; use {group}/{newer} {kind}"),
            None => deprecated,
        }
    }
}

/// Whether a version is `served`, `storage` or `deprecated`.
pub(super) fn is(version: &Value, what: &str) -> bool {
    version.get(what) == Some(&true.into())
}

pub(super) fn has_status(version: &Value) -> bool {
    object::at(version, &["subresources", "status"]).is_some()
}

/// Returns the words of a list of names.
fn words(names: &Value, key: &str) -> Vec<String> {
    let words = object::texts(names, &[key]).into_iter();
    words.map(str::to_owned).collect()
}

/// Returns the paths of the selectable fields.
fn selectable(version: &Value) -> Vec<String> {
    let entries = object::items(version, &["selectableFields"]).iter();
    entries
        .map(|entry| text(entry, &["jsonPath"]).trim_start_matches('.'))
        .filter(|path| !path.is_empty())
        .map(str::to_owned)
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

/// Returns the columns up to the first one that a server cannot read.
fn columns(version: &Value) -> Result<Vec<Column>, Refusal> {
    let given = object::items(version, &["additionalPrinterColumns"]);
    if given.is_empty() {
        return Ok(vec![Column::age()]);
    }
    let mut columns = Vec::new();
    for raw in given {
        match Column::read(raw) {
            Ok(column) => columns.push(column),
            Err(PathFault::Wrong) => break,
            Err(PathFault::Unknown) => {
                let path = text(raw, &["jsonPath"]);
                return Err(Refusal::not_served(format!(
                    "the JSON path {path} of a column"
                )));
            }
        }
    }
    Ok(columns)
}
