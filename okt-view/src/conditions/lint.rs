//! Checks the schema of a CRD.

use serde_json::{Value, json};

use super::{Context, Violation};

/// The limits of texts in a condition, as in metav1: rule, field, maximum length, needs a pattern.
const TEXTS: [(&str, &str, u64, bool); 3] = [
    ("S03", "type", 316, true),
    ("S04", "reason", 1024, true),
    ("S05", "message", 32_768, false),
];

/// Checks a CRD against the rules for schemas; `previous` is the CRD of the last release.
///
/// Versions that are not served are not checked.
///
/// # Examples
///
/// ```
/// use kube::{CustomResource, CustomResourceExt};
/// use okt_view::conditions::{Context, lint};
/// use schemars::JsonSchema;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
/// #[kube(group = "demo.okt.dev", version = "v1", kind = "Kettle", namespaced)]
/// struct KettleSpec {
///     litres: u8,
/// }
///
/// let crd = serde_json::to_value(Kettle::crd())?;
/// let found = lint(None, &crd, &Context::new());
/// assert_eq!(found[0].to_string(), "S01 v1: there is no status.conditions");
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn lint(previous: Option<&Value>, crd: &Value, context: &Context) -> Vec<Violation> {
    let mut found = Vec::new();
    let kind = crd.pointer("/spec/names/kind").and_then(Value::as_str);
    for version in served(crd) {
        let name = version["name"].as_str().unwrap_or_default();
        let mut breaks = |id: &str, path: &str, what: &str| {
            let about = if path.is_empty() {
                name.to_owned()
            } else {
                format!("{name} {path}")
            };
            found.push(Violation::new(id, about, what));
        };
        let schema = &version["schema"]["openAPIV3Schema"];
        conditions(schema, context, &mut breaks);
        status(version, schema, &mut breaks);
        for declared in &context.declared {
            type_name(declared, kind.unwrap_or_default(), &mut breaks);
        }
        let before = previous.into_iter().flat_map(served);
        for before in before.filter(|before| before["name"] == version["name"]) {
            let spec = "/schema/openAPIV3Schema/properties/spec";
            if let (Some(was), Some(is)) = (before.pointer(spec), version.pointer(spec)) {
                kept_values(was, is, "spec", &mut breaks);
            }
        }
    }
    context.leave_out(&mut found);
    found
}

fn served(crd: &Value) -> impl Iterator<Item = &Value> {
    let list = crd.pointer("/spec/versions").and_then(Value::as_array);
    let versions = list.into_iter().flatten();
    versions.filter(|version| version["served"] != false)
}

fn conditions(schema: &Value, context: &Context, breaks: &mut impl FnMut(&str, &str, &str)) {
    let status = &schema["properties"]["status"];
    let conditions = &status["properties"]["conditions"];
    if conditions.is_null() {
        breaks("S01", "", "there is no status.conditions");
        return;
    }
    let path = "status.conditions";
    if conditions["x-kubernetes-list-type"] != "map"
        || conditions["x-kubernetes-list-map-keys"] != json!(["type"])
    {
        breaks(
            "S01",
            path,
            "is no map list by `type`: who applies one condition takes all",
        );
    }
    if requires(status, "conditions") {
        breaks("S01", path, "is required: an object cannot be made without");
    }
    match conditions["maxItems"].as_u64() {
        None => breaks("S07", path, "has no maxItems"),
        Some(limit) if limit < context.declared.len() as u64 => {
            let what = format!(
                "has room for {limit}, and {} are declared",
                context.declared.len()
            );
            breaks("S07", path, &what);
        }
        Some(_) => {}
    }
    let item = &conditions["items"];
    for key in ["type", "status", "reason", "message", "lastTransitionTime"] {
        if !requires(item, key) {
            breaks("S02", path, &format!("does not require `{key}`"));
        }
    }
    let field = |key: &str| &item["properties"][key];
    let seen = field("observedGeneration");
    if seen["type"] != "integer"
        || seen["format"] != "int64"
        || seen["minimum"].as_f64() != Some(0.0)
    {
        breaks(
            "S02",
            path,
            "has no observedGeneration that is an int64 from 0",
        );
    }
    for (id, key, limit, has_pattern) in TEXTS {
        let text = field(key);
        let path = format!("{path}[].{key}");
        if text["maxLength"]
            .as_u64()
            .is_none_or(|longest| longest > limit)
        {
            breaks(id, &path, &format!("may be longer than {limit}"));
        }
        if has_pattern && text["pattern"].is_null() {
            breaks(id, &path, "has no pattern");
        }
        if !text["enum"].is_null() {
            breaks(id, &path, "is an enum: no value of it can ever go");
        }
    }
    if field("reason")["minLength"].as_u64().unwrap_or(0) < 1 {
        breaks("S04", &format!("{path}[].reason"), "may be empty");
    }
    let mut values: Vec<_> = field("status")["enum"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    values.sort_by_key(Value::to_string);
    if values != ["False", "True", "Unknown"] {
        let path = format!("{path}[].status");
        breaks(
            "S05",
            &path,
            "may be something else than True, False and Unknown",
        );
    }
    if field("lastTransitionTime")["format"] != "date-time" {
        let path = format!("{path}[].lastTransitionTime");
        breaks("S05", &path, "may be no time");
    }
}

fn requires(schema: &Value, key: &str) -> bool {
    let required = schema["required"].as_array().into_iter().flatten();
    required.into_iter().any(|required| required == key)
}

fn status(version: &Value, schema: &Value, breaks: &mut impl FnMut(&str, &str, &str)) {
    if version.pointer("/subresources/status").is_none() {
        breaks(
            "S08",
            "",
            "the status is no subresource: users write it, and operators the spec",
        );
    }
    let status = &schema["properties"]["status"];
    let seen = &status["properties"]["observedGeneration"];
    if seen["type"] != "integer" || seen["format"] != "int64" {
        breaks("S08", "status.observedGeneration", "is no int64");
    }
    let columns = version["additionalPrinterColumns"].as_array();
    let columns = || columns.into_iter().flatten();
    let shows = |path: &str| {
        columns().any(|column| {
            column["jsonPath"]
                .as_str()
                .is_some_and(|shown| shown.contains(path))
        })
    };
    if !shows("Ready") {
        breaks("S08", "", "no column shows Ready");
    }
    if !shows(".metadata.creationTimestamp") {
        breaks("S08", "", "no column shows the age");
    }
    enums_of_states(status, "status", breaks);
}

/// Reports states and phases that are enums, to which only a change of the CRD can add values.
fn enums_of_states(schema: &Value, path: &str, breaks: &mut impl FnMut(&str, &str, &str)) {
    for (key, below) in schema["properties"].as_object().into_iter().flatten() {
        if path == "status" && key == "conditions" {
            continue;
        }
        let path = format!("{path}.{key}");
        if matches!(key.as_str(), "state" | "phase") && !below["enum"].is_null() {
            breaks(
                "S10",
                &path,
                "is an enum: an older client cannot read a newer state",
            );
        }
        enums_of_states(below, &path, breaks);
    }
    if !schema["items"].is_null() {
        enums_of_states(&schema["items"], &format!("{path}[]"), breaks);
    }
}

fn type_name(name: &str, kind: &str, breaks: &mut impl FnMut(&str, &str, &str)) {
    let (domain, bare) = match name.split_once('/') {
        Some((domain, bare)) => (Some(domain), bare),
        None => (None, name),
    };
    if !bare.starts_with(|char: char| char.is_ascii_uppercase()) || bare.contains(['-', '_', '.']) {
        breaks("S06", name, "is not in PascalCase");
    }
    if domain.is_none() && !kind.is_empty() && bare.len() > kind.len() && bare.starts_with(kind) {
        breaks("S06", name, "repeats the kind");
    }
}

/// Reports enum values that were removed from the spec.
fn kept_values(was: &Value, is: &Value, path: &str, breaks: &mut impl FnMut(&str, &str, &str)) {
    if let (Some(was), Some(is)) = (was["enum"].as_array(), is["enum"].as_array()) {
        for gone in was.iter().filter(|value| !is.contains(value)) {
            let what = format!("{gone} is gone: objects that say it can no longer be written");
            breaks("S09", path, &what);
        }
    }
    for (key, was) in was["properties"].as_object().into_iter().flatten() {
        let is = &is["properties"][key];
        kept_values(was, is, &format!("{path}.{key}"), breaks);
    }
    if let (Some(was), Some(is)) = (was.get("items"), is.get("items")) {
        kept_values(was, is, &format!("{path}[]"), breaks);
    }
}
