//! Admission policies: who may approve a plan, ask for a state, and write a status.

use kube::{CustomResourceExt, Resource};
use okt_core::{Graph, Lifecycle, Mark, State};
use okt_runtime::__program::lifecycle_field;
use okt_runtime::{Application, StateOf};
use okt_wire::keys::{ABANDON_ANNOTATION, PAUSED_ANNOTATION};
use serde_json::{Value, json};

use super::account::ServiceAccount;

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
    let variables = json!([
        { "name": "approves", "expression": approves("object") },
        {
            "name": "before",
            "expression": format!("oldObject == null ? '' : {}", approves("oldObject")),
        },
    ]);
    let validations = json!([{
        // The authorizer is asked last: each question costs a third of what an expression may.
        "expression": format!(
            "variables.approves == '' || variables.approves == variables.before || {}", asks(&format!("'{VERB}'"))
        ),
        "message": format!("to approve a plan, you need the verb `{VERB}` on {crd}"),
        "reason": "Forbidden",
    }]);
    let plural = A::Resource::plural(&());
    let scope = PolicyScope::of(&name, &plural);
    policy::<A>(&scope, &variables, &validations)
}

/// Returns the `ValidatingAdmissionPolicy` by which it takes a verb for each state to ask for it, and its binding: `go-`
/// and the name of a desired state, `visit-` and that of a state to visit, `pause` and `abandon` for these annotations.
///
/// Without it, whoever may edit an object may ask for everything. [`verb_roles`](crate::verb_roles) has roles with these
/// verbs. Who may create an object may do so in its default state. The API server does not evaluate the policy for writes
/// of the status.
///
/// Nothing for an application without a lifecycle.
///
/// ```no_run
/// # fn example<A: okt::Application>() {
/// for object in okt::verb_policy::<A>() {
///     println!("{object}");
/// }
/// # }
/// ```
pub fn verb_policy<A: Application>() -> Vec<Value> {
    let Some(field) = lifecycle_field::<A::Resource>() else {
        return Vec::new();
    };
    let changes = Changes::of(StateOf::<A>::GRAPH, A::Resource::crd_name(), &field);
    let (plural, group) = (A::Resource::plural(&()), A::Resource::group(&()));
    let name = format!("{plural}-verbs.{group}");
    policy::<A>(
        &PolicyScope::of(&name, &plural),
        &json!(changes.variables),
        &json!(changes.validations),
    )
}

/// Returns the `ValidatingAdmissionPolicy` by which only this account writes the status of objects, and its binding.
///
/// Without it, whoever may patch the status can move an object along an edge. With it, nobody else can, not even an
/// administrator: a tool that restores backups with their status has to run while the binding is away.
///
/// ```
/// # fn example<A: okt::Application>() -> Result<(), okt::ServiceAccountError> {
/// for object in okt::status_policy::<A>(&"ops/databases".parse()?) {
///     println!("{object}");
/// }
/// # Ok(())
/// # }
/// ```
pub fn status_policy<A: Application>(account: &ServiceAccount) -> Vec<Value> {
    let (plural, group) = (A::Resource::plural(&()), A::Resource::group(&()));
    let user = format!(
        "system:serviceaccount:{}:{}",
        account.namespace, account.name
    );
    let validations = json!([{
        "expression": format!("request.userInfo.username == '{user}'"),
        "message": format!("only {user} writes the status of {}", A::Resource::crd_name()),
        "reason": "Forbidden",
    }]);
    let name = format!("{plural}-status.{group}");
    let resource = format!("{plural}/status");
    policy::<A>(&PolicyScope::of(&name, &resource), &json!([]), &validations)
}

/// Returns the verbs of the states that a spec may ask for, and of the states that it may visit.
pub(crate) fn verbs(graph: &Graph<'_>) -> impl Iterator<Item = String> {
    let wanted = graph
        .iter()
        .filter(|(id, state)| !state.is_passing() && graph.may_be_desired(*id));
    let wanted = wanted.map(|(_, state)| format!("go-{}", state.name.to_ascii_lowercase()));
    let visited = graph.iter().filter(|(_, state)| is_visited(state));
    let visited = visited.map(|(_, state)| format!("visit-{}", state.name.to_ascii_lowercase()));
    wanted.chain(visited)
}

/// Returns whether a spec may ask for a visit of a state.
pub(super) fn is_visited(state: &State<'_>) -> bool {
    state.is(Mark::Visit) && !state.is(Mark::Args)
}

/// Returns an expression of the present name of the state that another expression names.
pub(super) fn present_names(graph: &Graph<'_>) -> impl Fn(&str) -> String + use<> {
    let former = graph.states.iter().flat_map(|state| {
        let former = state.was.iter();
        former.map(move |was| format!("'{was}': '{}'", state.name))
    });
    let former = former.collect::<Vec<_>>().join(", ");
    move |name: &str| match former.as_str() {
        "" => name.to_owned(),
        former => format!("{{{former}}}[?{name}].orValue({name})"),
    }
}

/// Returns the question whether the user has a verb on the kind.
fn asks(verb: &str) -> String {
    format!("authorizer.requestResource.check({verb}).allowed()")
}

/// What a policy looks at, and what it refuses.
#[derive(Default)]
struct Changes {
    variables: Vec<Value>,
    validations: Vec<Value>,
}

impl Changes {
    /// Returns what the policy of verbs looks at, and what it refuses.
    fn of(graph: &Graph<'_>, crd: &str, field: &str) -> Self {
        let home = graph.home().map_or("", |home| graph.name_of(home));
        let present = present_names(graph);
        let part = |object: &str, path: &str, otherwise: &str| {
            format!("{object}.?spec.?{field}{path}.orValue('{otherwise}')")
        };
        let mut changes = Self::default();
        changes.note("state", home, |object| {
            present(&part(object, ".?state", home))
        });
        changes.note("request", "", |object| part(object, ".?request", ""));
        changes.refuse(
        "variables.state == variables.stateBefore && variables.request == variables.requestBefore",
        "'go-' + variables.state.lowerAscii()",
        &format!("'to ask for ' + variables.state + ', you need the verb `go-' + variables.state.lowerAscii() + '` on {crd}'"),
    );
        if graph.states.iter().any(is_visited) {
            changes.note("visit", "", |object| {
                present(&part(object, ".?visit.?state", ""))
            });
            changes.note("visitRequest", "", |object| {
                part(object, ".?visit.?request", "")
            });
            changes.refuse(
            "variables.visit == '' || variables.visit == variables.visitBefore && variables.visitRequest == variables.visitRequestBefore",
            "'visit-' + variables.visit.lowerAscii()",
            &format!("'to ask for a visit to ' + variables.visit + ', you need the verb `visit-' + variables.visit.lowerAscii() + '` on {crd}'"),
        );
        }
        for (name, key, verb, what) in [
            (
                "paused",
                PAUSED_ANNOTATION,
                "pause",
                "to pause an object, or to let it go on",
            ),
            (
                "abandoned",
                ABANDON_ANNOTATION,
                "abandon",
                "to abandon an object",
            ),
        ] {
            changes.note(name, "", |object| {
                format!("{object}.metadata.?annotations[?'{key}'].orValue('')")
            });
            changes.refuse(
                &format!("variables.{name} == variables.{name}Before"),
                &format!("'{verb}'"),
                &format!("'{what}, you need the verb `{verb}` on {crd}'"),
            );
        }
        changes
    }

    /// Adds a part of an object, which has this value before there is an object.
    fn note(&mut self, name: &str, at_first: &str, of: impl Fn(&str) -> String) {
        let before = format!("oldObject == null ? '{at_first}' : {}", of("oldObject"));
        self.variables.extend([
            json!({ "name": name, "expression": of("object") }),
            json!({ "name": format!("{name}Before"), "expression": before }),
        ]);
    }

    /// Refuses all but what holds in an expression to users without a verb.
    fn refuse(&mut self, but: &str, verb: &str, why: &str) {
        self.validations.push(json!({
            // The authorizer is asked last, as above.
            "expression": format!("{but} || {}", asks(verb)),
            "messageExpression": why,
            "reason": "Forbidden",
        }));
    }
}

/// What a policy is called, and what it looks at.
pub(super) struct PolicyScope<'a> {
    pub(super) name: &'a str,
    pub(super) resource: &'a str,
    /// The version in which it looks at objects; `*` for the one of the request.
    pub(super) version: &'a str,
}

impl<'a> PolicyScope<'a> {
    const fn of(name: &'a str, resource: &'a str) -> Self {
        Self {
            name,
            resource,
            version: "*",
        }
    }
}

/// Returns a policy of a resource of the kind, and its binding.
pub(super) fn policy<A: Application>(
    PolicyScope {
        name,
        resource,
        version,
    }: &PolicyScope<'_>,
    variables: &Value,
    validations: &Value,
) -> Vec<Value> {
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": { "name": name },
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": { "resourceRules": [{
                "apiGroups": [A::Resource::group(&())],
                "apiVersions": [version],
                "operations": ["CREATE", "UPDATE"],
                "resources": [resource],
            }] },
            "variables": variables,
            "validations": validations,
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
