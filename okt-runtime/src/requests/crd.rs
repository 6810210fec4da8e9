//! Builds the CRDs of requests, and of their schedules.

use std::any::TypeId;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::core::schema::StructuralSchemaRewriter;
use kube::{CustomResourceExt, Resource};
use okt_core::names::STATE_LIMIT;
use okt_core::{Lifecycle, Serves};
use okt_wire::desired::REQUEST_LIMIT;
use okt_wire::keys::{REQUEST_OF_ANNOTATION, REQUEST_STATE_ANNOTATION, SCHEDULE_OF_ANNOTATION};
use okt_wire::limits::ID_LIMIT;
use okt_wire::object::LifecycleObject;
use okt_wire::request::{Request, RequestObject, ResultOf, ScheduleObject, plural};
use okt_wire::schema::conditions;
use okt_wire::versions::KindVersions;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use crate::crd::definition::{CrdError, leave_out_formats};
use crate::resources::ResourceKind;

/// The longest name of a schedule, as a `CronJob` has it.
const SCHEDULE_NAME_LIMIT: usize = 52;

/// Returns the CRD of the requests with these arguments, and that of their schedules if there are any.
///
/// # Errors
///
/// [`CrdError`] if the arguments or the result make no schema that a CRD can have; only a change of the code helps.
pub(super) fn crds<A: Request>() -> Result<Vec<CustomResourceDefinition>, CrdError> {
    let mut crds = vec![of_requests::<A>()?];
    if A::SCHEDULED {
        crds.push(of_schedules::<A>()?);
    }
    Ok(crds)
}

fn of_requests<A: Request>() -> Result<CustomResourceDefinition, CrdError> {
    let mut status = json!({
        "type": "object",
        "properties": {
            "outcome": { "type": "string", "maxLength": STATE_LIMIT },
            "transition": { "type": "integer", "format": "int64", "minimum": 0 },
            "action": { "type": "string", "maxLength": ID_LIMIT },
            "conditions": conditions(),
        },
    });
    if TypeId::of::<ResultOf<A>>() != TypeId::of::<()>() {
        status["properties"]["result"] = schema_of::<ResultOf<A>>();
    }
    let mut spec = spec::<A>();
    spec["properties"]["startBefore"] = json!({
        "type": "string",
        "format": "date-time",
        "description": "A request that has not begun by then is not served.",
    });
    spec["x-kubernetes-validations"] = json!([{
        "rule": "self == oldSelf",
        "message": "a request cannot be changed: delete it and make another one",
        "reason": "FieldValueForbidden",
    }]);
    let columns = json!([
        { "name": "Target", "type": "string", "jsonPath": ".spec.target.name" },
        { "name": "Outcome", "type": "string", "jsonPath": ".status.outcome" },
        { "name": "Reason", "type": "string", "jsonPath": ".status.conditions[?(@.status==\"True\")].reason", "priority": 1 },
        { "name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp" },
    ]);
    let parts = json!({ "spec": spec, "status": status });
    let annotations = json!({
        REQUEST_OF_ANNOTATION: A::Target::crd_name(),
        REQUEST_STATE_ANNOTATION: serving::<A>(),
    });
    definition::<A>(A::KIND, &annotations, &parts, &columns, None)
}

fn of_schedules<A: Request>() -> Result<CustomResourceDefinition, CrdError> {
    let time = json!({ "type": "string", "format": "date-time" });
    let count = json!({ "type": "integer", "format": "int32", "minimum": 0 });
    let text = json!({ "type": "string", "maxLength": 1024 });
    let parts = json!({
        "spec": schedule_spec::<A>(),
        "status": {
            "type": "object",
            "properties": {
                "last": time,
                "next": time,
                "base": time,
                "skipped": count,
                "suspended": { "type": "boolean" },
                "calendar": text,
                "problem": text,
            },
        },
    });
    let columns = json!([
        { "name": "Schedule", "type": "string", "jsonPath": ".spec.schedule" },
        { "name": "Zone", "type": "string", "jsonPath": ".spec.timeZone" },
        { "name": "Suspend", "type": "boolean", "jsonPath": ".spec.suspend" },
        { "name": "Last", "type": "date", "jsonPath": ".status.last" },
        { "name": "Next", "type": "string", "jsonPath": ".status.next" },
        { "name": "Problem", "type": "string", "jsonPath": ".status.problem" },
    ]);
    // The names of its requests end with a time, and a label has its name.
    let rules = json!([{
        "rule": format!("size(self.metadata.name) <= {SCHEDULE_NAME_LIMIT}"),
        "message": format!("a schedule has a name of at most {SCHEDULE_NAME_LIMIT} characters"),
    }]);
    let kind = ScheduleObject::<A>::kind(&());
    let requests = format!("{}.{}", plural(A::KIND), RequestObject::<A>::group(&()));
    let annotations = json!({ SCHEDULE_OF_ANNOTATION: requests });
    definition::<A>(&kind, &annotations, &parts, &columns, Some(rules))
}

/// Returns the schema of when a schedule makes which requests.
fn schedule_spec<A: Request>() -> Value {
    json!({
        "type": "object",
        "required": ["schedule", "template"],
        "properties": {
            "schedule": {
                "type": "string",
                "description": "Minute, hour, day of the month, month, day of the week.",
                "maxLength": 256,
                "pattern": r"^\s*\S+(\s+\S+){4}\s*$",
            },
            "timeZone": { "type": "string", "maxLength": 64, "default": "Etc/UTC", "description": "The time zone of the schedule." },
            "suspend": { "type": "boolean", "default": false, "description": "Nothing is made, and nothing is made up for later." },
            "catchUp": { "type": "string", "enum": ["Latest", "None"], "default": "Latest", "description": "What happens about times at which no operator ran." },
            "startWithin": { "type": "string", "maxLength": 32, "default": "1h", "description": "The age up to which a missed time is made up for." },
            "template": spec::<A>(),
            "keep": {
                "type": "object",
                "description": "How many finished requests of the schedule are kept.",
                "default": {},
                "properties": {
                    "reached": { "type": "integer", "format": "int32", "minimum": 0, "default": 3 },
                    "failed": { "type": "integer", "format": "int32", "minimum": 0, "default": 1 },
                },
            },
        },
    })
}

/// Returns the schema of what requests and the template of a schedule have in common.
fn spec<A: Request>() -> Value {
    json!({
        "type": "object",
        "required": ["target", "args"],
        "properties": {
            "target": {
                "type": "object",
                "description": "The object that is to serve it, in the same namespace.",
                "required": ["name"],
                "properties": { "name": {
                    "type": "string",
                    "maxLength": REQUEST_LIMIT,
                    "pattern": "^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$",
                } },
            },
            "args": schema_of::<A>(),
            "ttlSecondsAfterFinished": {
                "type": "integer",
                "format": "int32",
                "minimum": 0,
                "description": "How long the request is kept after it has finished.",
            },
        },
    })
}

/// Returns the CRD of a kind beside that of the objects that serve requests, in the same versions. They differ in nothing, so
/// nobody converts them.
fn definition<A: Request>(
    kind: &str,
    annotations: &Value,
    parts: &Value,
    columns: &Value,
    rules: Option<Value>,
) -> Result<CustomResourceDefinition, CrdError> {
    let (group, plural) = (RequestObject::<A>::group(&()), plural(kind));
    let is_namespaced = ResourceKind::of::<RequestObject<A>>().namespaced;
    let mut schema = json!({ "type": "object", "required": ["spec"], "properties": parts });
    if let Some(rules) = rules {
        schema["x-kubernetes-validations"] = rules;
    }
    let versions = KindVersions::of::<A::Target>();
    let versions = versions.all().iter().enumerate().map(|(index, version)| {
        json!({
            "name": version.name,
            "served": version.is_served(),
            // The newest is the first.
            "storage": index == 0,
            "subresources": { "status": {} },
            "additionalPrinterColumns": columns,
            "schema": { "openAPIV3Schema": schema },
        })
    });
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.{group}"), "annotations": annotations },
        "spec": {
            "group": group,
            "names": { "kind": kind, "plural": plural, "singular": kind.to_lowercase() },
            "scope": if is_namespaced { "Namespaced" } else { "Cluster" },
            "versions": versions.collect::<Value>(),
        },
    });
    let no_schema = |error: serde_json::Error| CrdError::NoSchema {
        kind: kind.to_owned(),
        why: error.to_string(),
    };
    let mut crd: CustomResourceDefinition = serde_json::from_value(crd).map_err(no_schema)?;
    crd.spec.versions.iter_mut().for_each(leave_out_formats);
    Ok(crd)
}

/// Returns the name of the state that serves requests.
fn serving<A: Request>() -> &'static str {
    let state = <<A::Target as LifecycleObject>::State as Serves<A>>::STATE;
    <A::Target as LifecycleObject>::State::GRAPH.name_of(state)
}

/// Returns the schema of a type, in the form that CRDs have.
fn schema_of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::openapi3().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut generator = settings
        .with_transform(StructuralSchemaRewriter)
        .into_generator();
    let mut schema = generator.root_schema_for::<T>();
    schema.remove("title");
    schema.to_value()
}
