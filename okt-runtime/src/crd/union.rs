//! The CRD for one release of an upgrade: it accepts what the previous operator writes and what this one writes.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionVersion,
};
use okt_core::Lifecycle;
use okt_core::stored::{StoredGraph, Unread};
use okt_wire::keys::GRAPH_ANNOTATION;
use okt_wire::object::LifecycleObject;
use okt_wire::schema::rules;
use okt_wire::version::KindVersion;
use okt_wire::versions::KindVersions;
use serde_json::Value;

use crate::crd::definition::{
    CrdError, check_size, crd, graph_text, leave_out_formats, lifecycle_fields, schema_mut,
    schema_of,
};
use crate::crd::widen::{keep_fields, widen};

/// Returns the CRD of a resource, widened by the CRD in use, so that this operator and the previous one can write.
///
/// Use it for one release of an upgrade, in which both operators run alternately (rolling forward and back). Afterwards
/// apply [`crd`].
///
/// # Guarantees
///
/// Both operators are ready with it, and each can make every transition of its own graph. The API server refuses a
/// transition that is in neither graph, with two exceptions: between states that one graph distinguishes and the other
/// merges, and from a leaf to the entry of the other graph.
///
/// The desired state may be a state of either graph. `kubectl get` shows the columns of both, and the status has the
/// fields of both. The annotation [`GRAPH_ANNOTATION`] holds one graph with the states and edges of both, so each
/// operator treats unknown states as the other's and leaves objects in them alone.
///
/// Objects are stored in the version in which the old CRD stores them, so that the way back stays open.
///
/// The CRD keeps fields of the spec that only the old CRD has. The spec requires what the new one requires.
///
/// If the old CRD is that of a controller without OKT, the result is [`crd`] with the fields of spec and status that
/// only the old one has, so that the API server does not drop their values: see `docs/adopting.md`.
///
/// # Errors
///
/// [`CrdError`]; a retry helps only with another CRD or after a change of the code.
///
/// ```
/// # use okt::{CrdError, Desired, LifecycleSpec, Status, crd, lifecycle_graph};
/// # use kube::CustomResource;
/// # use schemars::JsonSchema;
/// # use serde::{Deserialize, Serialize};
/// # #[lifecycle_graph]
/// # #[derive(Clone, Copy, Debug, PartialEq, Eq)]
/// # enum LampState {
/// #     #[entry]
/// #     #[rest(idle)]
/// #     #[child(Gone)]
/// #     Lit,
/// #     #[leaf(idle)]
/// #     Gone,
/// # }
/// # #[derive(CustomResource, LifecycleSpec, Clone, Debug, Serialize, Deserialize, JsonSchema)]
/// # #[kube(group = "demo.okt.dev", version = "v1", kind = "Lamp", status = "Status<LampState>")]
/// # struct LampSpec {
/// #     #[serde(default)]
/// #     lifecycle: Desired<LampState>,
/// # }
/// let in_use = crd::<Lamp>()?;
/// assert_eq!(okt::crd_union::<Lamp>(&in_use)?, in_use);
/// # Ok::<(), CrdError>(())
/// ```
pub fn crd_union<K: LifecycleObject>(
    old: &CustomResourceDefinition,
) -> Result<CustomResourceDefinition, CrdError> {
    let mut new = crd::<K>()?;
    let (name, found) = (K::crd_name(), old.metadata.name.as_deref());
    if found != Some(name) {
        return Err(CrdError::OtherKind {
            name: name.to_owned(),
            found: found.unwrap_or_default().to_owned(),
        });
    }
    let is_adopted = has_no_lifecycle(old);
    let own = StoredGraph::of(K::State::GRAPH);
    let graph = if is_adopted {
        own
    } else {
        let before = graph_of(old)?;
        own.join(&before).map_err(|clash| CrdError::Ambiguous {
            name: clash.name,
            old: clash.old,
            new: clash.new,
        })?
    };
    let versions = KindVersions::of::<K>();
    let declared = |name: &str| versions.all().iter().find(|it| it.name == name);
    for version in &old.spec.versions {
        let same = |new: &&mut CustomResourceDefinitionVersion| new.name == version.name;
        match new.spec.versions.iter_mut().find(same) {
            Some(new) if is_adopted => keep(new, version),
            Some(new) => {
                if let Some(declared) = declared(&version.name) {
                    join(new, version, declared, &graph)?;
                }
            }
            None if version.served || is_stored(old, &version.name) => {
                return Err(CrdError::OtherVersion {
                    name: name.to_owned(),
                    version: version.name.clone(),
                });
            }
            None => {}
        }
    }
    store_as_before(&mut new, old);
    new.metadata
        .annotations
        .get_or_insert_default()
        .insert(GRAPH_ANNOTATION.to_owned(), graph.text());
    new.spec.versions.iter_mut().for_each(leave_out_formats);
    check_size(&new)?;
    Ok(new)
}

/// Lets objects be stored in the version in which they are, which both operators know.
fn store_as_before(new: &mut CustomResourceDefinition, old: &CustomResourceDefinition) {
    let stored = old.spec.versions.iter().find(|version| version.storage);
    let versions = &mut new.spec.versions;
    let is_stored = |version: &CustomResourceDefinitionVersion| {
        stored.is_some_and(|stored| stored.name == version.name)
    };
    if versions.iter().any(is_stored) {
        for version in versions {
            version.storage = is_stored(version);
        }
    }
}

/// Returns whether objects may still be stored in this version.
fn is_stored(crd: &CustomResourceDefinition, version: &str) -> bool {
    let status = crd.status.as_ref();
    let mut stored = status
        .iter()
        .flat_map(|it| it.stored_versions.iter().flatten());
    stored.any(|stored| stored == version)
}

/// Returns whether a CRD is that of a controller without OKT: it has neither a graph nor a position.
fn has_no_lifecycle(crd: &CustomResourceDefinition) -> bool {
    let has_position = |version: &CustomResourceDefinitionVersion| {
        let properties = schema_of(version, "status").and_then(|it| it.properties.as_ref());
        properties.is_some_and(|it| it.contains_key("lifecycle"))
    };
    graph_text(crd).is_none() && !crd.spec.versions.iter().any(has_position)
}

/// Adds the fields that only the same version in use has.
fn keep(new: &mut CustomResourceDefinitionVersion, old: &CustomResourceDefinitionVersion) {
    for field in ["spec", "status"] {
        if let (Some(mut own), Some(old)) = (value_of(new, field), value_of(old, field)) {
            keep_fields(&mut own, &old);
            put(new, field, own);
        }
    }
}

/// Returns the schema of `spec` or `status` as JSON.
pub(crate) fn value_of(version: &CustomResourceDefinitionVersion, field: &str) -> Option<Value> {
    serde_json::to_value(schema_of(version, field)?).ok()
}

/// Reads the graph of a CRD.
fn graph_of(crd: &CustomResourceDefinition) -> Result<StoredGraph, CrdError> {
    let name = crd.metadata.name.clone().unwrap_or_default();
    let Some(text) = graph_text(crd) else {
        return Err(CrdError::NoGraph { name });
    };
    match StoredGraph::read(text) {
        Ok(graph) => Ok(graph),
        Err(Unread::Format(format)) => Err(CrdError::UnknownFormat { name, format }),
        Err(Unread::Text(why)) => Err(CrdError::UnreadableGraph { name, why }),
    }
}

/// Widens one version of the resource by the same version in use.
fn join(
    new: &mut CustomResourceDefinitionVersion,
    old: &CustomResourceDefinitionVersion,
    declared: &KindVersion,
    graph: &StoredGraph,
) -> Result<(), CrdError> {
    let differs = |path: String| CrdError::FieldDiffers { path };
    if let (Some(mut status), Some(old)) = (value_of(new, "status"), value_of(old, "status")) {
        widen(&mut status, &old, "status").map_err(differs)?;
        status["properties"]["lifecycle"]["x-kubernetes-validations"] = rules(graph);
        put(new, "status", status);
    }
    if let (Some(mut spec), Some(old)) = (value_of(new, "spec"), value_of(old, "spec")) {
        for field in lifecycle_fields(&spec, declared) {
            let path = format!("spec.{field}");
            let (own, old) = (&mut spec["properties"][&field], &old["properties"][&field]);
            if !old.is_null() {
                widen(own, old, &path).map_err(differs)?;
            }
        }
        keep_fields(&mut spec, &old);
        put(new, "spec", spec);
    }
    let columns = new.additional_printer_columns.get_or_insert_default();
    for column in old.additional_printer_columns.iter().flatten() {
        if columns.iter().all(|own| own.name != column.name) {
            // The age comes last.
            columns.insert(columns.len().saturating_sub(1), column.clone());
        }
    }
    Ok(())
}

fn put(version: &mut CustomResourceDefinitionVersion, field: &str, schema: Value) {
    if let (Ok(schema), Some(place)) = (serde_json::from_value(schema), schema_mut(version, field))
    {
        *place = schema;
    }
}
