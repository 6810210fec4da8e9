//! The kinds of the operations.

use serde_json::{Map, Value, json};

/// A kind of object that both servers have.
#[derive(Clone, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    clippy::struct_field_names,
    reason = "what a kind has or has not is independent, and the names are those of a CRD"
)]
pub(crate) struct Kind {
    pub(crate) plural: String,
    pub(crate) kind: String,
    pub(crate) api_version: String,
    pub(crate) namespaced: bool,
    pub(crate) built_in: bool,
    pub(crate) status: bool,
    pub(crate) scale: bool,
    /// The fields that change, as a schema of the whole object.
    pub(crate) schema: Value,
    /// The fields that are always present.
    pub(crate) base: Value,
    /// The paths that a field selector may name, with values that occur.
    pub(crate) selectable: Vec<(&'static str, &'static str)>,
    pub(crate) weight: usize,
}

impl Kind {
    /// Returns the path of the collection.
    pub(crate) fn path(&self, namespace: &str) -> String {
        let root = match self.api_version.split_once('/') {
            Some(_) => format!("/apis/{}", self.api_version),
            None => format!("/api/{}", self.api_version),
        };
        if self.namespaced {
            format!("{root}/namespaces/{namespace}/{}", self.plural)
        } else {
            format!("{root}/{}", self.plural)
        }
    }

    /// Returns an object of this kind with only its required fields.
    pub(crate) fn bare(&self) -> Value {
        let mut bare = self.base.clone();
        bare["apiVersion"] = self.api_version.clone().into();
        bare["kind"] = self.kind.clone().into();
        bare
    }
}

/// Returns the CRDs for both servers.
pub(crate) fn crds() -> Vec<Value> {
    include_str!("crds.yaml")
        .split("\n---\n")
        .map(|text| serde_saphyr::from_str(text).expect("the CRDs are YAML"))
        .collect()
}

/// Returns the kinds of a run: all, or those that `OKT_KINDS` names.
pub(crate) fn all() -> Vec<Kind> {
    let wanted = std::env::var("OKT_KINDS").ok();
    let mut kinds = every();
    if let Some(wanted) = &wanted {
        kinds.retain(|kind| wanted.split(',').any(|plural| plural == kind.plural));
    }
    kinds
}

pub(crate) fn every() -> Vec<Kind> {
    let mut kinds: Vec<_> = crds().iter().map(custom).collect();
    let built_in: Vec<Value> =
        serde_saphyr::from_str(include_str!("builtins.yaml")).expect("the kinds are YAML");
    kinds.extend(built_in.iter().map(from_line));
    kinds
}

fn custom(crd: &Value) -> Kind {
    let version = &crd["spec"]["versions"][0];
    let plural = text(&crd["spec"]["names"]["plural"]);
    let (weight, base) = match plural.as_str() {
        "things" => (12, json!({})),
        "plains" => (4, json!({ "spec": { "name": "x" } })),
        "ledgers" => (5, json!({})),
        _ => (2, json!({})),
    };
    Kind {
        kind: text(&crd["spec"]["names"]["kind"]),
        api_version: format!("{}/{}", text(&crd["spec"]["group"]), text(&version["name"])),
        namespaced: crd["spec"]["scope"] == "Namespaced",
        built_in: false,
        status: version.pointer("/subresources/status").is_some(),
        scale: version.pointer("/subresources/scale").is_some(),
        schema: version["schema"]["openAPIV3Schema"].clone(),
        base,
        selectable: if plural == "things" {
            vec![("spec.color", "red"), ("spec.size", "3")]
        } else {
            Vec::new()
        },
        weight,
        plural,
    }
}

fn from_line(line: &Value) -> Kind {
    let mut schema = Map::new();
    schema.insert("type".to_owned(), "object".into());
    schema.insert("properties".to_owned(), line["schema"].clone());
    Kind {
        plural: text(&line["plural"]),
        kind: text(&line["kind"]),
        api_version: text(&line["apiVersion"]),
        namespaced: true,
        built_in: true,
        status: line["status"] == true,
        scale: line["scale"] == true,
        schema: schema.into(),
        base: line["base"].clone(),
        selectable: Vec::new(),
        weight: usize::try_from(line["weight"].as_u64().unwrap_or(1)).unwrap_or(1),
    }
}

fn text(value: &Value) -> String {
    value.as_str().expect("it is a text").to_owned()
}
