//! The printed policy of approvals on a real API server.

use kube::api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::{Api, Client};
use okt_tests::{Mill, Mills, assert_contains, until};
use serde_json::{Value, json};

use crate::{SERVER, on_kubernetes};

/// Applies an object of the whole cluster.
async fn apply(client: &Client, object: &Value) {
    let text = |field: &str| object[field].as_str().expect("text").to_owned();
    let (group, version) = text("apiVersion")
        .split_once('/')
        .map(|(group, version)| (group.to_owned(), version.to_owned()))
        .expect("a group");
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(&group, &version, &text("kind")));
    let name = object["metadata"]["name"].as_str().expect("a name");
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    let parameters = PatchParams::apply("okt-tests").force();
    let applied = api.patch(name, &parameters, &Patch::Apply(object)).await;
    applied.unwrap_or_else(|error| panic!("{name}: {error}"));
}

/// Binds roles to a user, and returns the mills as that user sees them.
async fn mills_of(client: &Client, user: &str, roles: &[&str]) -> Api<Mill> {
    for role in roles {
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": { "name": format!("okt-tests:{user}:{role}") },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role },
            "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user }],
        });
        apply(client, &binding).await;
    }
    let server = SERVER.get().and_then(Option::as_ref).expect("it runs");
    let mut config = server.config();
    config.auth_info.impersonate = Some(user.to_owned());
    Api::default_namespaced(Client::try_from(config).expect("a client"))
}

/// Returns a mill with these names and an approval.
fn approved(metadata: &Value) -> Value {
    json!({
        "apiVersion": "demo.okt.dev/v1",
        "kind": "Mill",
        "metadata": metadata,
        "spec": { "lifecycle": { "approve": "12345678" } },
    })
}

fn refused<T: std::fmt::Debug>(answer: kube::Result<T>) {
    let error = answer.expect_err("without the verb");
    let kube::Error::Api(status) = &error else {
        panic!("{error}");
    };
    assert_eq!(status.code, 403, "{status:?}");
    assert_contains(
        &status.message,
        "to approve a plan, you need the verb `approve` on mills.demo.okt.dev",
    );
}

/// The acceptance case A9.
#[tokio::test]
#[ignore = "needs a real API server; run with --include-ignored"]
async fn who_may_edit_but_not_approve_is_refused_by_the_printed_policy() {
    on_kubernetes("the policy of approvals", async |place| {
        let client = &place.client;
        let cluster: okt_tests::Cluster<Mills> = place.cluster();
        cluster.define(okt::crd::<Mill>().expect("a CRD")).await;
        let roles = okt::rbac::<Mills>(&[""; 0], None).expect("roles");
        let roles = roles.objects().expect("JSON");
        for object in roles.iter().chain(&okt::approval_policy::<Mills>()) {
            apply(client, object).await;
        }
        cluster.create_with("m", json!({ "version": "1" })).await;
        let role = |name: &str| format!("mills.demo.okt.dev:{name}");
        let (view, edit, approve) = (role("view"), role("edit"), role("approve"));
        let editor = mills_of(client, "edda", &[&view, &edit]).await;
        let approver = mills_of(client, "anna", &[&view, &edit, &approve]).await;
        let operator = mills_of(client, "operator", &[&role("operator")]).await;
        let (now, patching) = (PostParams::default(), PatchParams::default());

        // The server takes some seconds to enforce a policy.
        let approval = Patch::Merge(json!({ "spec": { "lifecycle": { "approve": "12345678" } } }));
        until("the policy is enforced", async || {
            let trial = PatchParams::default().dry_run();
            editor.patch("m", &trial, &approval).await.is_err()
        })
        .await;
        refused(editor.patch("m", &patching, &approval).await);
        let applying = PatchParams::apply("edda").force();
        let whole = Patch::Apply(approved(&json!({ "name": "m" })));
        refused(editor.patch("m", &applying, &whole).await);
        for metadata in [json!({ "name": "new" }), json!({ "generateName": "new-" })] {
            let new = serde_json::from_value(approved(&metadata)).expect("a mill");
            refused(editor.create(&now, &new).await);
        }
        let mut edited = editor.get("m").await.expect("a mill");
        edited.spec.lifecycle.approve = Some("12345678".to_owned());
        refused(editor.replace("m", &now, &edited).await);

        // Everything else is theirs to change, also once a plan is approved; and so is the removal of an approval.
        let change = |version: &str| Patch::Merge(json!({ "spec": { "version": version } }));
        let changed = editor.patch("m", &patching, &change("2")).await;
        changed.expect("an editor");
        let given = approver.patch("m", &patching, &approval).await;
        given.expect("an approver");
        let changed = editor.patch("m", &patching, &change("3")).await;
        changed.expect("the approval stays");
        let removal = Patch::Merge(json!({ "spec": { "lifecycle": { "approve": null } } }));
        let removed = editor.patch("m", &patching, &removal).await;
        removed.expect("a removal");
        approver.patch("m", &patching, &approval).await.expect("m");

        // The operator has no such verb, and its writes are not evaluated.
        let status = json!({ "status": { "observedGeneration": 1 } });
        let status = Patch::Merge(status);
        let written = operator.patch_status("m", &patching, &status).await;
        written.expect("a status");
        let finalizer = json!({ "metadata": { "finalizers": ["okt.dev/lifecycle"] } });
        let finalizer = Patch::Merge(finalizer);
        let written = operator.patch("m", &patching, &finalizer).await;
        written.expect("a finalizer");
    })
    .await;
}
