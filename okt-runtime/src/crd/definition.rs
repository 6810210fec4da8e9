//! Builds the custom resource definition of an operator: the one that kube derives, with additions for the lifecycle.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceColumnDefinition, CustomResourceConversion, CustomResourceDefinition,
    CustomResourceDefinitionVersion, JSON, JSONSchemaProps, ServiceReference, WebhookClientConfig,
    WebhookConversion,
};
use okt_core::{Graph, Lifecycle};
use okt_wire::keys::GRAPH_ANNOTATION;
use okt_wire::object::LifecycleObject;
use okt_wire::version::KindVersion;
use okt_wire::versions::KindVersions;
use schemars::{Schema, SchemaGenerator};
use serde_json::{Value, json};

/// The error of building a CRD.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CrdError {
    /// `Extra` has a field that OKT writes itself; rename yours.
    #[error("the status of {kind} cannot add the field `{field}`: OKT writes it; rename yours")]
    FieldTaken {
        /// The kind of the resource.
        kind: String,
        /// The field of `Extra`.
        field: String,
    },
    /// `Extra` is not a struct, so it has no fields to add to the status.
    #[error("what {kind} adds to its status must be a struct with named fields, or `()`")]
    NoStruct {
        /// The kind of the resource.
        kind: String,
    },
    /// `Memory` is not a struct, so a release could not add a field to it.
    #[error("what the handlers of {kind} remember must be a struct with named fields, or `()`")]
    MemoryIsNoStruct {
        /// The kind of the resource.
        kind: String,
    },
    /// The arguments or the result of a request make no schema; another type helps.
    #[error("the arguments or the result of {kind} make no schema that a CRD can have: {why}")]
    NoSchema {
        /// The kind of the request.
        kind: String,
        /// The cause.
        why: String,
    },
    /// The schema has no status: `#[kube(status = "Status<..>")]` is missing.
    #[error("{kind} has no status in its schema; add `status = \"Status<..>\"` to `#[kube(..)]`")]
    NoStatus {
        /// The kind of the resource.
        kind: String,
    },
    /// A rule is longer than an API server accepts; only fewer edges or shorter names help.
    #[error(
        "the rule of {name} about its edges has {size} characters, and an API server takes {RULE_LIMIT}: declare fewer edges or shorter names"
    )]
    RuleTooLong {
        /// The name of the CRD.
        name: String,
        /// The length of the rule, in characters.
        size: usize,
    },
    /// The annotations are larger than an API server accepts; fewer states or shorter texts help.
    #[error(
        "the annotations of {name}, the graph among them, have {size} bytes, and an API server takes {ANNOTATIONS_LIMIT}: declare fewer states or write shorter comments on them"
    )]
    AnnotationsTooLarge {
        /// The name of the CRD.
        name: String,
        /// The size of the annotations, in bytes.
        size: usize,
    },
    /// The CRD in use belongs to another resource; give [`crd_union`](crate::crd_union) the one of this resource.
    #[error("the CRD in use is that of {found}, not of {name}")]
    OtherKind {
        /// The name of the CRD of this resource.
        name: String,
        /// The name of the CRD in use.
        found: String,
    },
    /// The CRD in use has no graph, so OKT did not generate it.
    #[error(
        "the CRD {name} in use has no annotation {GRAPH_ANNOTATION}: no operator of OKT made it"
    )]
    NoGraph {
        /// The name of the CRD.
        name: String,
    },
    /// The graph of the CRD in use cannot be read.
    #[error("cannot read the annotation {GRAPH_ANNOTATION} of the CRD {name} in use: {why}")]
    UnreadableGraph {
        /// The name of the CRD.
        name: String,
        /// The cause.
        why: String,
    },
    /// The graph of the CRD in use has the format of another OKT version; let the newer operator print the union.
    #[error(
        "the graph of the CRD {name} in use has format {format}, and this operator knows {}: have the newer operator print the union",
        Graph::JSON_FORMAT
    )]
    UnknownFormat {
        /// The name of the CRD.
        name: String,
        /// The format of the CRD in use.
        format: u64,
    },
    /// The CRD in use serves a version that the new one does not; serve it for another release.
    #[error(
        "the CRD {name} in use has the version {version}, which this operator does not know: name it with `#[lifecycle(previous(..))]`, or bring all objects to another version and let the CRD serve it no more"
    )]
    OtherVersion {
        /// The name of the CRD.
        name: String,
        /// The version of the CRD in use.
        version: String,
    },
    /// A version that `#[lifecycle(previous(..))]` names is none of this kind; name another one.
    #[error(
        "the version {version} of {kind} {what}: `#[lifecycle(previous(..))]` names another version of the same kind"
    )]
    VersionDiffers {
        /// The kind of the resource.
        kind: String,
        /// The version.
        version: String,
        /// What is wrong with it.
        what: String,
    },
    /// A field has another type in the CRD in use, so that no schema accepts both; rename it.
    #[error("the field {path} is of another type in the CRD in use; give it another name")]
    FieldDiffers {
        /// The path of the field.
        path: String,
    },
    /// A name means one state to the previous operator and another to this one; choose another name.
    #[error(
        "`{name}` is {new} to this operator, and to the one before it would be {old}: choose another name, or let a release without this one lie between"
    )]
    Ambiguous {
        /// The ambiguous name.
        name: String,
        /// The state that the graph in use means, by its present name.
        old: String,
        /// The state that the new graph means.
        new: String,
    },
}

/// The category of every kind with a graph, for `kubectl get okt`.
const CATEGORY: &str = "okt";

/// The longest CEL expression that an API server accepts, in characters (the parser of cel-go).
const RULE_LIMIT: usize = 100_000;

/// The largest size of the annotations of one object, in bytes (names and values).
const ANNOTATIONS_LIMIT: usize = 256 * 1024;

/// Returns the CRD of a resource with a lifecycle.
///
/// It adds to the CRD of `#[derive(CustomResource)]`: a default for the status, so that a new object never counts as
/// complete; the columns of `kubectl get`; the category `okt`; and the graph in the annotation [`GRAPH_ANNOTATION`].
/// The graph's rules are part of the schema of [`Status`](crate::Status).
///
/// It has all versions that `#[lifecycle(previous(..))]` names, and stores the one of this resource. Where their schemas
/// differ, the API server asks the operator to convert objects.
///
/// # Errors
///
/// [`CrdError`] if the declaration cannot work; only a change of the code helps.
pub fn crd<K: LifecycleObject>() -> Result<CustomResourceDefinition, CrdError> {
    let versions = KindVersions::of::<K>();
    let mut crd = K::crd();
    let kind = crd.spec.names.kind.clone();
    let extra = SchemaGenerator::default().into_root_schema_for::<K::Extra>();
    if !is_struct(&extra) {
        return Err(CrdError::NoStruct { kind });
    }
    let memory = SchemaGenerator::default().into_root_schema_for::<K::Memory>();
    if !is_struct(&memory) {
        return Err(CrdError::MemoryIsNoStruct { kind });
    }
    if let Some(field) = taken(&extra) {
        return Err(CrdError::FieldTaken { kind, field });
    }
    crd.metadata
        .annotations
        .get_or_insert_default()
        .insert(GRAPH_ANNOTATION.to_owned(), K::State::GRAPH.json());
    let categories = crd.spec.names.categories.get_or_insert_default();
    if !categories.iter().any(|category| category == CATEGORY) {
        categories.push(CATEGORY.to_owned());
    }
    let earlier = versions.all().iter().skip(1);
    for version in earlier {
        let other = (version.definition)();
        is_same_kind(&crd, &other, version)?;
        crd.spec.versions.extend(other.spec.versions);
    }
    for (version, declared) in crd.spec.versions.iter_mut().zip(versions.all()) {
        version.storage = declared.name == K::version(&());
        let status = schema_mut(version, "status");
        complete(status.ok_or_else(|| CrdError::NoStatus { kind: kind.clone() })?);
        complete_version(version, declared);
    }
    crd.spec.versions.iter_mut().for_each(leave_out_formats);
    if differ(&crd) {
        crd.spec.conversion = Some(conversion(&crd));
    }
    check_size(&crd)?;
    Ok(crd)
}

/// Gives a version the columns of `kubectl get`, and leaves its desired state unset.
fn complete_version(version: &mut CustomResourceDefinitionVersion, declared: &KindVersion) {
    if let Some(spec) = schema_mut(version, "spec") {
        leave_lifecycle_unset(spec, declared);
    }
    let columns = version.additional_printer_columns.get_or_insert_default();
    let own = std::mem::take(columns);
    let (mut before, age) = self::columns(!declared.graph.states.is_empty());
    before.extend(own);
    before.push(age);
    *columns = before;
}

/// Removes the formats of integers that only Rust has: an API server warns of each, and does nothing about them.
pub(crate) fn leave_out_formats(version: &mut CustomResourceDefinitionVersion) {
    let schema = version
        .schema
        .as_mut()
        .and_then(|it| it.open_api_v3_schema.as_mut());
    let Some(schema) = schema else { return };
    if let Ok(mut value) = serde_json::to_value(&*schema) {
        leave_out_formats_of(&mut value);
        if let Ok(plain) = serde_json::from_value(value) {
            *schema = plain;
        }
    }
}

fn leave_out_formats_of(schema: &mut Value) {
    let Some(keywords) = schema.as_object_mut() else {
        return;
    };
    let is_of_rust = |format: &str| {
        format.starts_with("uint") || matches!(format, "int" | "int8" | "int16" | "int128")
    };
    if keywords
        .get("format")
        .and_then(Value::as_str)
        .is_some_and(is_of_rust)
    {
        keywords.remove("format");
    }
    for (keyword, value) in keywords {
        match (keyword.as_str(), value) {
            ("properties", Value::Object(fields)) => {
                fields.values_mut().for_each(leave_out_formats_of);
            }
            ("items" | "additionalProperties" | "not", inner) => leave_out_formats_of(inner),
            ("allOf" | "anyOf" | "oneOf", Value::Array(inner)) => {
                inner.iter_mut().for_each(leave_out_formats_of);
            }
            _ => {}
        }
    }
}

/// Checks that a version is one of the same kind, and is not there yet.
fn is_same_kind(
    crd: &CustomResourceDefinition,
    other: &CustomResourceDefinition,
    version: &KindVersion,
) -> Result<(), CrdError> {
    let (own, its) = (&crd.spec, &other.spec);
    let what = if crd.metadata.name != other.metadata.name || own.names.kind != its.names.kind {
        format!(
            "is of {}",
            other.metadata.name.as_deref().unwrap_or_default()
        )
    } else if own.scope != its.scope {
        format!("is {}", its.scope)
    } else if own.versions.iter().any(|it| it.name == version.name) {
        "is there twice".to_owned()
    } else {
        return Ok(());
    };
    Err(CrdError::VersionDiffers {
        kind: own.names.kind.clone(),
        version: version.name.clone(),
        what,
    })
}

/// Returns whether versions differ in anything that a schema sees: then an object has to be converted.
fn differ(crd: &CustomResourceDefinition) -> bool {
    let schemas: Vec<_> = crd
        .spec
        .versions
        .iter()
        .map(|version| ["spec", "status"].map(|part| schema_of(version, part)))
        .collect();
    schemas.windows(2).any(|pair| pair[0] != pair[1])
}

/// Returns the conversion by the operator, at a Service that is named after the kind: programs name their own.
fn conversion(crd: &CustomResourceDefinition) -> CustomResourceConversion {
    let service = ServiceReference {
        name: format!("{}-webhook", crd.spec.names.plural),
        namespace: "default".to_owned(),
        path: Some(format!(
            "/convert/{}.{}",
            crd.spec.names.plural, crd.spec.group
        )),
        port: Some(443),
    };
    CustomResourceConversion {
        strategy: "Webhook".to_owned(),
        webhook: Some(WebhookConversion {
            client_config: Some(WebhookClientConfig {
                service: Some(service),
                ..WebhookClientConfig::default()
            }),
            conversion_review_versions: vec!["v1".to_owned()],
        }),
    }
}

/// Checks that an API server accepts a CRD of this size.
pub(crate) fn check_size(crd: &CustomResourceDefinition) -> Result<(), CrdError> {
    let name = || crd.metadata.name.clone().unwrap_or_default();
    let annotations = crd.metadata.annotations.iter().flatten();
    let size = annotations
        .map(|(key, value)| key.len() + value.len())
        .sum();
    if size > ANNOTATIONS_LIMIT {
        return Err(CrdError::AnnotationsTooLarge { name: name(), size });
    }
    let versions = crd.spec.versions.iter();
    let statuses = versions.filter_map(|version| schema_of(version, "status"));
    let lifecycles = statuses.filter_map(|it| it.properties.as_ref()?.get("lifecycle"));
    let rules =
        lifecycles.flat_map(|lifecycle| lifecycle.x_kubernetes_validations.iter().flatten());
    let longest = rules.map(|rule| rule.rule.chars().count()).max();
    match longest {
        Some(size) if size > RULE_LIMIT => Err(CrdError::RuleTooLong { name: name(), size }),
        _ => Ok(()),
    }
}

/// Returns the schema of `spec` or `status`.
pub(crate) fn schema_of<'a>(
    version: &'a CustomResourceDefinitionVersion,
    field: &str,
) -> Option<&'a JSONSchemaProps> {
    let schema = version.schema.as_ref()?.open_api_v3_schema.as_ref()?;
    schema.properties.as_ref()?.get(field)
}

/// Returns the schema of `spec` or `status`, to change it.
pub(crate) fn schema_mut<'a>(
    version: &'a mut CustomResourceDefinitionVersion,
    field: &str,
) -> Option<&'a mut JSONSchemaProps> {
    let schema = version.schema.as_mut()?.open_api_v3_schema.as_mut()?;
    schema.properties.as_mut()?.get_mut(field)
}

/// Returns the annotation that holds the graph of a CRD.
pub(crate) fn graph_text(crd: &CustomResourceDefinition) -> Option<&str> {
    let annotations = crd.metadata.annotations.as_ref()?;
    annotations.get(GRAPH_ANNOTATION).map(String::as_str)
}

/// Gives a new object a status which shows that it was not reconciled yet.
///
/// kstatus would take an object without a status for complete.
fn complete(status: &mut JSONSchemaProps) {
    // On the status itself: a default on the property does nothing while there is no status.
    status.default = Some(JSON(json!({ "observedGeneration": -1 })));
    // kube makes it nullable, which a CRD with rules on it must not be.
    status.nullable = None;
}

/// Removes the defaults of lifecycle fields, so that an unset desired state has no field manager.
///
/// With the default of `#[serde(default)]` the creator of every object would own an empty desired state.
fn leave_lifecycle_unset(spec: &mut JSONSchemaProps, version: &KindVersion) {
    let fields = serde_json::to_value(&*spec).map(|spec| lifecycle_fields(&spec, version));
    for name in fields.unwrap_or_default() {
        let field = spec
            .properties
            .as_mut()
            .and_then(|properties| properties.get_mut(&name));
        if let Some(field) = field {
            field.default = None;
        }
    }
}

/// Returns the field of a spec that holds the desired state, if there is one.
pub fn lifecycle_field<K: LifecycleObject>() -> Option<String> {
    let crd = serde_json::to_value(K::crd()).ok()?;
    let spec = crd.pointer("/spec/versions/0/schema/openAPIV3Schema/properties/spec")?;
    lifecycle_fields(spec, &KindVersion::of::<K>())
        .into_iter()
        .next()
}

/// Returns the fields of a spec that hold a desired state.
pub(crate) fn lifecycle_fields(spec: &Value, version: &KindVersion) -> Vec<String> {
    let desired = (version.desired)();
    let fields = spec.get("properties").and_then(Value::as_object);
    fields
        .into_iter()
        .flatten()
        .filter(|(_, field)| field.get("properties") == desired.get("properties"))
        .map(|(name, _)| name.clone())
        .collect()
}

/// Returns whether a type is a struct, whose fields the status can have, or `()`.
fn is_struct(schema: &Schema) -> bool {
    let kind = schema.get("type").and_then(Value::as_str);
    kind == Some("null") || (kind == Some("object") && schema.get("properties").is_some())
}

/// Returns the first field of `Extra` that OKT writes itself.
fn taken(schema: &Schema) -> Option<String> {
    let properties = schema.get("properties").and_then(Value::as_object)?;
    ["observedGeneration", "lifecycle", "conditions"]
        .into_iter()
        .find(|own| properties.contains_key(*own))
        .map(str::to_owned)
}

/// Returns the columns of `kubectl get`, and the age column, which comes last.
fn columns(
    has_lifecycle: bool,
) -> (
    Vec<CustomResourceColumnDefinition>,
    CustomResourceColumnDefinition,
) {
    let column =
        |(name, type_, path, wide): (&str, &str, &str, bool)| CustomResourceColumnDefinition {
            name: name.to_owned(),
            type_: type_.to_owned(),
            json_path: path.to_owned(),
            priority: wide.then_some(1),
            ..CustomResourceColumnDefinition::default()
        };
    let ready = r#".status.conditions[?(@.type=="Ready")].status"#;
    let reason = r#".status.conditions[?(@.type=="Ready")].reason"#;
    let all = [
        ("State", "string", ".status.lifecycle.state", false),
        ("Since", "date", ".status.lifecycle.since", false),
        (
            "Desired",
            "string",
            ".status.lifecycle.desired.state",
            false,
        ),
        ("Ready", "string", ready, false),
        ("Reason", "string", reason, false),
        ("Visit", "string", ".status.lifecycle.visit.outcome", true),
        (
            "Transition",
            "integer",
            ".status.lifecycle.transition",
            true,
        ),
    ];
    let is_shown = |path: &str| has_lifecycle || !path.starts_with(".status.lifecycle");
    let shown = all.into_iter().filter(|(_, _, path, _)| is_shown(path));
    let age = column(("Age", "date", ".metadata.creationTimestamp", false));
    (shown.map(column).collect(), age)
}
