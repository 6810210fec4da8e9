//! The custom resource definition of an operator: what kube derives, completed by what the lifecycle needs.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceColumnDefinition, CustomResourceDefinition, JSON, JSONSchemaProps,
};
use okt_core::{Lifecycle, draw};
use schemars::{Schema, SchemaGenerator};
use serde_json::{Value, json};

use crate::desired::Desired;
use crate::object::LifecycleObject;

/// The annotation of a CRD that carries the graph as JSON (the format of [`okt_core::draw::json`]).
pub const GRAPH_ANNOTATION: &str = "okt.dev/graph";

/// Why a CRD cannot be written.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CrdError {
    /// What the application adds to the status has a field that OKT writes itself; rename it.
    #[error("the status of {kind} cannot add the field `{field}`: OKT writes it; rename yours")]
    FieldTaken {
        /// The kind of the resource.
        kind: String,
        /// The field of `Extra`.
        field: String,
    },
    /// What the application adds to the status is no struct, so it has no fields to stand beside the others.
    #[error("what {kind} adds to its status must be a struct with named fields, or `()`")]
    NoStruct {
        /// The kind of the resource.
        kind: String,
    },
    /// The schema has no status: `#[kube(status = "Status<..>")]` is missing.
    #[error("{kind} has no status in its schema; add `status = \"Status<..>\"` to `#[kube(..)]`")]
    NoStatus {
        /// The kind of the resource.
        kind: String,
    },
}

/// The CRD of a resource with a lifecycle.
///
/// Beside what `#[derive(CustomResource)]` makes it has a default for the status, so that a fresh object
/// never reads as done, the columns of `kubectl get`, and the graph in the annotation [`GRAPH_ANNOTATION`].
/// The graph's rules are part of the schema of [`Status`](crate::Status).
///
/// # Errors
///
/// [`CrdError`] where the declaration cannot work; only a change of the code helps.
pub fn crd<K: LifecycleObject>() -> Result<CustomResourceDefinition, CrdError> {
    let mut crd = K::crd();
    let kind = crd.spec.names.kind.clone();
    let extra = SchemaGenerator::default().into_root_schema_for::<K::Extra>();
    if !is_struct(&extra) {
        return Err(CrdError::NoStruct { kind });
    }
    if let Some(field) = taken(&extra) {
        return Err(CrdError::FieldTaken { kind, field });
    }
    crd.metadata
        .annotations
        .get_or_insert_default()
        .insert(GRAPH_ANNOTATION.to_owned(), draw::json(K::State::GRAPH));
    for version in &mut crd.spec.versions {
        let mut properties = version
            .schema
            .as_mut()
            .and_then(|schema| schema.open_api_v3_schema.as_mut())
            .and_then(|schema| schema.properties.as_mut());
        let status = properties
            .as_mut()
            .and_then(|properties| properties.get_mut("status"))
            .ok_or_else(|| CrdError::NoStatus { kind: kind.clone() })?;
        complete(status);
        if let Some(spec) = properties.and_then(|properties| properties.get_mut("spec")) {
            leave_lifecycle_unset::<K>(spec);
        }
        let columns = version.additional_printer_columns.get_or_insert_default();
        let own = std::mem::take(columns);
        let (mut before, age) = self::columns();
        before.extend(own);
        before.push(age);
        *columns = before;
    }
    Ok(crd)
}

/// A fresh object reads as not yet seen; kstatus would take one without a status for done.
fn complete(status: &mut JSONSchemaProps) {
    // On the status itself: a default of the property alone does nothing while there is no status.
    status.default = Some(JSON(json!({ "observedGeneration": -1 })));
    // kube makes it nullable, which a CRD with rules on it must not be.
    status.nullable = None;
}

/// A wish that nobody made has no owner: `#[serde(default)]` would have the creator of every object own an empty one.
fn leave_lifecycle_unset<K: LifecycleObject>(spec: &mut JSONSchemaProps) {
    let schema = SchemaGenerator::default().into_root_schema_for::<Desired<K::State>>();
    let lifecycle: Option<JSONSchemaProps> = serde_json::from_value(schema.to_value()).ok();
    let Some(lifecycle) = lifecycle else {
        return;
    };
    for field in spec
        .properties
        .iter_mut()
        .flat_map(|fields| fields.values_mut())
    {
        if field.properties == lifecycle.properties {
            field.default = None;
        }
    }
}

/// Whether the fields of `Extra` can stand beside others; `()` has none.
fn is_struct(schema: &Schema) -> bool {
    let kind = schema.get("type").and_then(Value::as_str);
    kind == Some("null") || (kind == Some("object") && schema.get("properties").is_some())
}

/// The first field of `Extra` that is OKT's own.
fn taken(schema: &Schema) -> Option<String> {
    let properties = schema.get("properties").and_then(Value::as_object)?;
    ["observedGeneration", "lifecycle", "conditions"]
        .into_iter()
        .find(|own| properties.contains_key(*own))
        .map(str::to_owned)
}

/// What `kubectl get` shows, and the age that comes last.
fn columns() -> (
    Vec<CustomResourceColumnDefinition>,
    CustomResourceColumnDefinition,
) {
    let column = |name: &str, type_: &str, path: &str, wide: bool| CustomResourceColumnDefinition {
        name: name.to_owned(),
        type_: type_.to_owned(),
        json_path: path.to_owned(),
        priority: wide.then_some(1),
        ..CustomResourceColumnDefinition::default()
    };
    let ready = |field: &str| format!(".status.conditions[?(@.type==\"Ready\")].{field}");
    (
        vec![
            column("State", "string", ".status.lifecycle.state", false),
            column("Since", "date", ".status.lifecycle.since", false),
            column(
                "Desired",
                "string",
                ".status.lifecycle.desired.state",
                false,
            ),
            column("Ready", "string", &ready("status"), false),
            column("Reason", "string", &ready("reason"), false),
            column("Visit", "string", ".status.lifecycle.visit.outcome", true),
            column(
                "Transition",
                "integer",
                ".status.lifecycle.transition",
                true,
            ),
        ],
        column("Age", "date", ".metadata.creationTimestamp", false),
    )
}
