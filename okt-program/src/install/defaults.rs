//! An admission policy that completes objects by expressions, without a server.

use kube::Resource;
use okt_runtime::Application;
use okt_wire::object::{LifecycleObject, LifecycleSpec};
use serde_json::{Value, json};

/// Returns the `MutatingAdmissionPolicy` by which the API server itself fills in fields with `#[lifecycle(default = "..")]`
/// where they are left out, and its binding; nothing if there are none.
///
/// An expression (CEL) reads the object. Servers have this kind from Kubernetes 1.36 on.
///
/// ```no_run
/// # fn example<A: okt::Application>() {
/// for object in okt::default_policy::<A>() {
///     println!("{object}");
/// }
/// # }
/// ```
pub fn default_policy<A: Application>() -> Vec<Value> {
    let defaults = <<A::Resource as LifecycleObject>::Spec as LifecycleSpec>::defaults();
    if defaults.is_empty() {
        return Vec::new();
    }
    let mutations = defaults.iter().map(|(field, value)| {
        let add = format!(
            "JSONPatch{{op: 'add', path: '/spec/' + jsonpatch.escapeKey('{field}'), value: {value}}}"
        );
        let expression = format!("object.spec[?'{field}'].hasValue() ? [] : [{add}]");
        json!({ "patchType": "JSONPatch", "jsonPatch": { "expression": expression } })
    });
    let mutations: Vec<Value> = mutations.collect();
    let (plural, group) = (A::Resource::plural(&()), A::Resource::group(&()));
    let name = format!("{plural}-defaults.{group}");
    let api_version = "admissionregistration.k8s.io/v1";
    let policy = json!({
        "apiVersion": api_version,
        "kind": "MutatingAdmissionPolicy",
        "metadata": { "name": name },
        "spec": {
            // An object of another version that cannot be converted is stored as it is.
            "failurePolicy": "Ignore",
            "reinvocationPolicy": "IfNeeded",
            "matchConstraints": { "resourceRules": [{
                "apiGroups": [group],
                "apiVersions": [A::Resource::version(&())],
                "operations": ["CREATE", "UPDATE"],
                "resources": [plural],
            }] },
            "matchConditions": [{
                "name": "it-stays",
                "expression": "!has(object.metadata.deletionTimestamp)",
            }],
            "mutations": mutations,
        },
    });
    let binding = json!({
        "apiVersion": api_version,
        "kind": "MutatingAdmissionPolicyBinding",
        "metadata": { "name": name },
        "spec": { "policyName": name },
    });
    vec![policy, binding]
}
