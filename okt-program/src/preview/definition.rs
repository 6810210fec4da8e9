//! The custom resource definition of a release, compared with the one in the cluster.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use okt_core::evolution::changes;
use okt_view::Kind;
use serde_json::{Value, json};

use super::difference::between;
use crate::migrate::{outdated, stored_version};

/// Returns what a release would change of the spec, in lines; none if nothing.
pub(super) fn difference(
    before: &CustomResourceDefinition,
    after: &CustomResourceDefinition,
) -> Option<String> {
    between(&spec_of(before), &spec_of(after))
}

/// Returns the versions in which objects are stored and that a release does not have: the API server refuses its
/// definition then.
pub(super) fn lacking_versions(
    before: &CustomResourceDefinition,
    after: &CustomResourceDefinition,
) -> Vec<String> {
    let status = before.status.as_ref();
    let stored = status.and_then(|it| it.stored_versions.as_ref());
    let has = |version: &&String| after.spec.versions.iter().any(|it| it.name == **version);
    let lacking = stored.into_iter().flatten().filter(|it| !has(it));
    let words = lacking.map(|version| {
        format!(
            "objects were stored as {version}, which it does not have: keep that version with `served: false` until status.storedVersions lacks it"
        )
    });
    words.collect()
}

/// Returns what is left to do for the versions in which objects are stored, in the order in which it is done.
pub(super) fn next_steps(
    before: &CustomResourceDefinition,
    after: &CustomResourceDefinition,
) -> Vec<String> {
    let (stored, wanted) = (stored_version(before), stored_version(after));
    let [Some(stored), Some(wanted)] = [stored, wanted] else {
        return Vec::new();
    };
    if stored != wanted {
        let mut versions = before.spec.versions.iter();
        let is_served = versions.any(|it| it.served && it.name == wanted);
        let union =
            format!("apply the output of `crd --union`, with which {stored} is stored as before");
        let union = (!is_served).then_some(union).into_iter();
        let then = [
            "let all replicas be of this release".to_owned(),
            format!("apply the output of `crd`, with which {wanted} is stored"),
            "run `migrate`".to_owned(),
        ];
        return union.chain(then).collect();
    }
    let outdated = outdated(before);
    let step = format!(
        "run `migrate`: objects may be stored as {}",
        outdated.join(" or ")
    );
    (!outdated.is_empty()).then_some(step).into_iter().collect()
}

/// Returns what a release would change of the graph, in words.
pub(super) fn graph_changes(before: &Kind, after: &Kind) -> Vec<String> {
    let (Ok(before), Ok(after)) = (&before.graph, &after.graph) else {
        return Vec::new();
    };
    let changes = changes(before, after).into_iter();
    let words = changes.map(|change| match change.risk {
        Some(risk) => format!("{change}: {risk}"),
        None => change.to_string(),
    });
    words.collect()
}

/// Returns the spec of a definition without what the API server adds by itself.
fn spec_of(crd: &CustomResourceDefinition) -> Value {
    let mut spec = serde_json::to_value(&crd.spec).unwrap_or_default();
    let kind = crd.spec.names.kind.clone();
    let added = [
        ("/names/listKind", json!(format!("{kind}List"))),
        ("/names/singular", json!(kind.to_lowercase())),
        ("/conversion", json!({ "strategy": "None" })),
        ("/preserveUnknownFields", json!(false)),
    ];
    for (path, value) in added {
        let (of, name) = path.rsplit_once('/').unwrap_or(("", path));
        if let Some(Value::Object(fields)) = spec.pointer_mut(of)
            && fields.get(name) == Some(&value)
        {
            fields.remove(name);
        }
    }
    for version in spec["versions"].as_array_mut().into_iter().flatten() {
        // Its rules express in CEL what the changes of the graph express in words.
        let path = "/schema/openAPIV3Schema/properties/status/properties/lifecycle";
        if let Some(Value::Object(lifecycle)) = version.pointer_mut(path) {
            lifecycle.remove("x-kubernetes-validations");
        }
    }
    without_empty(&mut spec);
    spec
}

/// Removes empty lists, which the API server does not store.
fn without_empty(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.values_mut().for_each(without_empty);
            fields.retain(|_, it| !it.is_null() && it.as_array().is_none_or(|it| !it.is_empty()));
        }
        Value::Array(items) => items.iter_mut().for_each(without_empty),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_in_which_objects_are_stored_may_not_go() {
        let definition = |versions: &[&str], stored: &[&str]| -> CustomResourceDefinition {
            let version = |name: &&str| json!({ "name": name, "served": true, "storage": true });
            let versions: Vec<Value> = versions.iter().map(version).collect();
            let names = json!({ "kind": "Lamp", "plural": "lamps" });
            let spec = json!({
                "group": "demo.okt.dev", "names": names, "scope": "Namespaced", "versions": versions,
            });
            let names = json!({ "kind": "Lamp", "plural": "lamps" });
            let status =
                json!({ "acceptedNames": names, "storedVersions": stored, "conditions": [] });
            serde_json::from_value(json!({ "metadata": {}, "spec": spec, "status": status }))
                .expect("a definition")
        };
        let before = definition(&["v1alpha1", "v1"], &["v1alpha1", "v1"]);
        assert_eq!(lacking_versions(&before, &before), [""; 0]);
        let lacking = lacking_versions(&before, &definition(&["v1"], &[]));
        assert_eq!(
            lacking,
            [
                "objects were stored as v1alpha1, which it does not have: keep that version with `served: false` until status.storedVersions lacks it"
            ]
        );
    }
}
