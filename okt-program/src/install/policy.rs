//! The admission policy of approvals: who may approve a plan.

use kube::{CustomResourceExt, Resource};
use okt_core::Lifecycle;
use okt_runtime::__program::lifecycle_field;
use okt_runtime::{Application, StateOf};
use serde_json::{Value, json};

/// The verb that approves plans.
pub(crate) const VERB: &str = "approve";

/// Returns the name of the policy of an application, and of its binding.
pub(crate) fn policy_name<A: Application>() -> String {
    let (plural, group) = (A::Resource::plural(&()), A::Resource::group(&()));
    format!("{plural}-approvals.{group}")
}

/// Returns the `ValidatingAdmissionPolicy` by which only those approve plans who have the verb `approve` on the kind, and
/// its binding; nothing for an application without `#[approval(..)]`.
///
/// Without it, whoever may edit an object may approve its plans. [`rbac`](crate::rbac) has a role with the verb. The API
/// server evaluates the policy for objects, not for their statuses, so it is never asked about a write of the operator.
///
/// ```no_run
/// # fn example<A: okt::Application>() {
/// for object in okt::approval_policy::<A>() {
///     println!("{object}");
/// }
/// # }
/// ```
pub fn approval_policy<A: Application>() -> Vec<Value> {
    let Some(field) =
        lifecycle_field::<A::Resource>().filter(|_| StateOf::<A>::GRAPH.has_approvals())
    else {
        return Vec::new();
    };
    let (name, crd) = (policy_name::<A>(), A::Resource::crd_name());
    let approves = |object: &str| format!("{object}.?spec.?{field}.?approve.orValue('')");
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": { "name": name },
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": { "resourceRules": [{
                "apiGroups": [A::Resource::group(&())],
                "apiVersions": ["*"],
                "operations": ["CREATE", "UPDATE"],
                "resources": [A::Resource::plural(&())],
            }] },
            "variables": [
                { "name": "approves", "expression": approves("object") },
                {
                    "name": "before",
                    "expression": format!("oldObject == null ? '' : {}", approves("oldObject")),
                },
            ],
            "validations": [{
                // The authorizer is asked last: each question costs a third of what an expression may.
                "expression": format!(
                    "variables.approves == '' || variables.approves == variables.before || authorizer.requestResource.check('{VERB}').allowed()"
                ),
                "message": format!("to approve a plan, you need the verb `{VERB}` on {crd}"),
                "reason": "Forbidden",
            }],
        },
    });
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": { "name": name },
        "spec": { "policyName": name, "validationActions": ["Deny"] },
    });
    vec![policy, binding]
}
