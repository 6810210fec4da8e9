//! The printed policies on a real API server.

use expect_test::expect;
use k8s_openapi::NamespaceResourceScope;
use kube::api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::{Api, Client, CustomResource, Resource};
use okt::{Action, Application, Desired, Failure, LifecycleSpec, Status, lifecycle_graph};
use okt_tests::{Database, Databases, Mill, Mills, Served, assert_contains, until};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
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

/// Binds roles to a user, and returns the objects of a kind as that user sees them.
async fn objects_of<K>(client: &Client, user: &str, roles: &[&str]) -> Api<K>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
{
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

/// The answer to a user who lacks the verb.
const LACKS: &str = "to approve a plan, you need the verb `approve` on mills.demo.okt.dev";

fn refused<T: std::fmt::Debug>(answer: kube::Result<T>) {
    let error = answer.expect_err("without the verb");
    let kube::Error::Api(status) = &error else {
        panic!("{error}");
    };
    assert_eq!(status.code, 403, "{status:?}");
    assert_contains(&status.message, LACKS);
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
        let editor: Api<Mill> = objects_of(client, "edda", &[&view, &edit]).await;
        let approver: Api<Mill> = objects_of(client, "anna", &[&view, &edit, &approve]).await;
        let operator: Api<Mill> = objects_of(client, "operator", &[&role("operator")]).await;
        let (now, patching) = (PostParams::default(), PatchParams::default());

        // The server takes some seconds to enforce a policy.
        let approval = Patch::Merge(json!({ "spec": { "lifecycle": { "approve": "12345678" } } }));
        until("the policy is enforced", async || {
            let trial = PatchParams::default().dry_run();
            let refused = editor.patch("m", &trial, &approval).await;
            refused.is_err_and(|why| why.to_string().contains(LACKS))
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

/// The name of the account of the operator, as the API server knows it.
const OPERATOR: &str = "system:serviceaccount:ops:databases";

/// Tries writes of a database as a user, without storing any; returns a line for each: what, and the answer.
async fn tried(databases: &Api<Database>, user: &str) -> String {
    let (create, patch) = (
        PostParams {
            dry_run: true,
            ..PostParams::default()
        },
        PatchParams::default().dry_run(),
    );
    let mut lines = String::new();
    let mut note = |what: &str, answer: kube::Result<Database>| {
        let answer = match answer {
            Ok(_) => "may".to_owned(),
            Err(kube::Error::Api(status)) => status.message,
            Err(error) => error.to_string(),
        };
        lines.push_str(&format!("{user}: {what}: {answer}\n"));
    };
    for (what, lifecycle) in [
        ("creates", json!({})),
        ("creates an ended one", json!({ "state": "End" })),
    ] {
        let new = json!({
            "apiVersion": "demo.okt.dev/v1", "kind": "Database", "metadata": { "name": "new" },
            "spec": { "storage": "1Gi", "lifecycle": lifecycle },
        });
        let new = serde_json::from_value(new).expect("a database");
        note(what, databases.create(&create, &new).await);
    }
    let annotated = |key: &str| json!({ "metadata": { "annotations": { key: "true" } } });
    for (what, change) in [
        (
            "changes the storage",
            json!({ "spec": { "storage": "2Gi" } }),
        ),
        (
            "asks for End",
            json!({ "spec": { "lifecycle": { "state": "End" } } }),
        ),
        (
            "asks again",
            json!({ "spec": { "lifecycle": { "request": "again" } } }),
        ),
        (
            "visits Servicing",
            json!({ "spec": { "lifecycle": { "visit": { "state": "Servicing", "request": "a" } } } }),
        ),
        ("pauses", annotated("okt.dev/paused")),
        ("abandons", annotated("okt.dev/abandon")),
    ] {
        note(
            what,
            databases.patch("d", &patch, &Patch::Merge(change)).await,
        );
    }
    let status = Patch::Merge(json!({ "status": { "observedGeneration": 1 } }));
    note(
        "writes the status",
        databases.patch_status("d", &patch, &status).await,
    );
    lines
}

/// Applies the printed roles and policies of databases.
async fn apply_roles_and_policies(client: &Client) {
    let roles = okt::rbac::<Databases>(&[""; 0], None).expect("roles");
    let (roles, verbs) = (roles.objects(), okt::verb_roles::<Databases>().objects());
    let account = "ops/databases".parse().expect("an account");
    let policies = [
        okt::verb_policy::<Databases>(),
        okt::status_policy::<Databases>(&account),
    ];
    let objects = [roles.expect("JSON"), verbs.expect("JSON")];
    for object in objects.iter().chain(&policies).flatten() {
        apply(client, object).await;
    }
}

#[tokio::test]
#[ignore = "needs a real API server; run with --include-ignored"]
async fn users_may_do_what_their_roles_say_and_are_told_which_verb_they_lack() {
    on_kubernetes("the policies of verbs", async |place| {
        let client = &place.client;
        let cluster: okt_tests::Cluster<Databases> = place.cluster();
        cluster.define(okt::crd::<Database>().expect("a CRD")).await;
        cluster.create_with("d", json!({ "storage": "1Gi" })).await;
        apply_roles_and_policies(client).await;
        // In this order: the last one is known last.
        let users = [
            ("edda", &["view", "edit"][..]),
            ("ursula", &["use", "view", "edit"]),
            ("olga", &["operate", "view", "edit"]),
            ("root", &["cluster-admin"]),
            (OPERATOR, &["operator"]),
        ];
        let mut all = String::new();
        for (user, names) in users {
            let names = names.iter().map(|name| match *name {
                "cluster-admin" => (*name).to_owned(),
                name => format!("databases.demo.okt.dev:{name}"),
            });
            let names: Vec<String> = names.collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let databases: Api<Database> = objects_of(client, user, &names).await;
            let trial = PatchParams::default().dry_run();
            let change = async |change: Value| {
                let changed = databases.patch("d", &trial, &Patch::Merge(change)).await;
                changed.is_ok()
            };
            until("the roles are known", async || {
                change(json!({ "metadata": { "labels": { "a": "b" } } })).await
            })
            .await;
            if user == "edda" {
                let end = json!({ "spec": { "lifecycle": { "state": "End" } } });
                until("the policy is enforced", async || {
                    !change(end.clone()).await
                })
                .await;
            }
            if user == "root" {
                let status = Patch::Merge(json!({ "status": { "observedGeneration": 1 } }));
                until("the policy is enforced", async || {
                    databases.patch_status("d", &trial, &status).await.is_err()
                })
                .await;
            }
            all.push_str(&tried(&databases, user).await);
        }
        expect![[r#"
            edda: creates: may
            edda: creates an ended one: databases.demo.okt.dev "new" is forbidden: ValidatingAdmissionPolicy 'databases-verbs.demo.okt.dev' with binding 'databases-verbs.demo.okt.dev' denied request: to ask for End, you need the verb `go-end` on databases.demo.okt.dev
            edda: changes the storage: may
            edda: asks for End: databases.demo.okt.dev "d" is forbidden: ValidatingAdmissionPolicy 'databases-verbs.demo.okt.dev' with binding 'databases-verbs.demo.okt.dev' denied request: to ask for End, you need the verb `go-end` on databases.demo.okt.dev
            edda: asks again: databases.demo.okt.dev "d" is forbidden: ValidatingAdmissionPolicy 'databases-verbs.demo.okt.dev' with binding 'databases-verbs.demo.okt.dev' denied request: to ask for Running, you need the verb `go-running` on databases.demo.okt.dev
            edda: visits Servicing: databases.demo.okt.dev "d" is forbidden: ValidatingAdmissionPolicy 'databases-verbs.demo.okt.dev' with binding 'databases-verbs.demo.okt.dev' denied request: to ask for a visit to Servicing, you need the verb `visit-servicing` on databases.demo.okt.dev
            edda: pauses: databases.demo.okt.dev "d" is forbidden: ValidatingAdmissionPolicy 'databases-verbs.demo.okt.dev' with binding 'databases-verbs.demo.okt.dev' denied request: to pause an object, or to let it go on, you need the verb `pause` on databases.demo.okt.dev
            edda: abandons: databases.demo.okt.dev "d" is forbidden: ValidatingAdmissionPolicy 'databases-verbs.demo.okt.dev' with binding 'databases-verbs.demo.okt.dev' denied request: to abandon an object, you need the verb `abandon` on databases.demo.okt.dev
            edda: writes the status: databases.demo.okt.dev "d" is forbidden: User "edda" cannot patch resource "databases/status" in API group "demo.okt.dev" in the namespace "default"
            ursula: creates: may
            ursula: creates an ended one: may
            ursula: changes the storage: may
            ursula: asks for End: may
            ursula: asks again: may
            ursula: visits Servicing: may
            ursula: pauses: databases.demo.okt.dev "d" is forbidden: ValidatingAdmissionPolicy 'databases-verbs.demo.okt.dev' with binding 'databases-verbs.demo.okt.dev' denied request: to pause an object, or to let it go on, you need the verb `pause` on databases.demo.okt.dev
            ursula: abandons: databases.demo.okt.dev "d" is forbidden: ValidatingAdmissionPolicy 'databases-verbs.demo.okt.dev' with binding 'databases-verbs.demo.okt.dev' denied request: to abandon an object, you need the verb `abandon` on databases.demo.okt.dev
            ursula: writes the status: databases.demo.okt.dev "d" is forbidden: User "ursula" cannot patch resource "databases/status" in API group "demo.okt.dev" in the namespace "default"
            olga: creates: may
            olga: creates an ended one: may
            olga: changes the storage: may
            olga: asks for End: may
            olga: asks again: may
            olga: visits Servicing: may
            olga: pauses: may
            olga: abandons: may
            olga: writes the status: databases.demo.okt.dev "d" is forbidden: User "olga" cannot patch resource "databases/status" in API group "demo.okt.dev" in the namespace "default"
            root: creates: may
            root: creates an ended one: may
            root: changes the storage: may
            root: asks for End: may
            root: asks again: may
            root: visits Servicing: may
            root: pauses: may
            root: abandons: may
            root: writes the status: databases.demo.okt.dev "d" is forbidden: ValidatingAdmissionPolicy 'databases-status.demo.okt.dev' with binding 'databases-status.demo.okt.dev' denied request: only system:serviceaccount:ops:databases writes the status of databases.demo.okt.dev
            system:serviceaccount:ops:databases: creates: databases.demo.okt.dev is forbidden: User "system:serviceaccount:ops:databases" cannot create resource "databases" in API group "demo.okt.dev" in the namespace "default"
            system:serviceaccount:ops:databases: creates an ended one: databases.demo.okt.dev is forbidden: User "system:serviceaccount:ops:databases" cannot create resource "databases" in API group "demo.okt.dev" in the namespace "default"
            system:serviceaccount:ops:databases: changes the storage: may
            system:serviceaccount:ops:databases: asks for End: databases.demo.okt.dev "d" is forbidden: ValidatingAdmissionPolicy 'databases-verbs.demo.okt.dev' with binding 'databases-verbs.demo.okt.dev' denied request: to ask for End, you need the verb `go-end` on databases.demo.okt.dev
            system:serviceaccount:ops:databases: asks again: databases.demo.okt.dev "d" is forbidden: ValidatingAdmissionPolicy 'databases-verbs.demo.okt.dev' with binding 'databases-verbs.demo.okt.dev' denied request: to ask for Running, you need the verb `go-running` on databases.demo.okt.dev
            system:serviceaccount:ops:databases: visits Servicing: databases.demo.okt.dev "d" is forbidden: ValidatingAdmissionPolicy 'databases-verbs.demo.okt.dev' with binding 'databases-verbs.demo.okt.dev' denied request: to ask for a visit to Servicing, you need the verb `visit-servicing` on databases.demo.okt.dev
            system:serviceaccount:ops:databases: pauses: databases.demo.okt.dev "d" is forbidden: ValidatingAdmissionPolicy 'databases-verbs.demo.okt.dev' with binding 'databases-verbs.demo.okt.dev' denied request: to pause an object, or to let it go on, you need the verb `pause` on databases.demo.okt.dev
            system:serviceaccount:ops:databases: abandons: databases.demo.okt.dev "d" is forbidden: ValidatingAdmissionPolicy 'databases-verbs.demo.okt.dev' with binding 'databases-verbs.demo.okt.dev' denied request: to abandon an object, you need the verb `abandon` on databases.demo.okt.dev
            system:serviceaccount:ops:databases: writes the status: may
        "#]].assert_eq(&all);
    })
    .await;
}

/// The life of a hut.
#[lifecycle_graph]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HutState {
    #[entry]
    #[rest(idle)]
    #[was("Free")]
    #[child(Cleaning)]
    #[child(Heating)]
    #[child(Shut)]
    Open,
    #[visit]
    #[child(Open)]
    Cleaning,
    #[visit]
    #[child(Open)]
    Heating,
    #[rest(idle)]
    #[no_route(Open, Cleaning, Heating, reason = "it is a ruin by then")]
    #[child(Gone)]
    Shut,
    #[leaf(idle)]
    Gone,
}

/// A hut, which stays where it is.
#[derive(CustomResource, LifecycleSpec, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "demo.okt.dev",
    version = "v1",
    kind = "Hut",
    namespaced,
    status = "Status<HutState>"
)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HutSpec {
    #[serde(default)]
    lifecycle: Desired<HutState>,
    #[lifecycle(immutable)]
    mountain_side: String,
    #[serde(default, rename = "seaLevel", skip_serializing_if = "Option::is_none")]
    #[lifecycle(immutable)]
    height: Option<u32>,
    #[serde(default)]
    beds: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[lifecycle(default = "object.spec.beds > 8 ? 2 : 1")]
    wardens: Option<u32>,
}

#[derive(Clone, Default)]
struct Huts;

impl HutStateHandler for Huts {
    type Context = Action<Hut>;
    type Error = Failure;

    async fn cleaning(&self, _: &Action<Hut>) -> Result<hut_state::AfterCleaning, Failure> {
        Ok(hut_state::AfterCleaning::Open)
    }

    async fn heating(&self, _: &Action<Hut>) -> Result<hut_state::AfterHeating, Failure> {
        Ok(hut_state::AfterHeating::Open)
    }
}

impl Application for Huts {
    type Resource = Hut;
}

impl Served for Huts {}

#[tokio::test]
#[ignore = "needs a real API server; run with --include-ignored"]
async fn what_an_object_may_not_become_is_refused_before_it_is_stored() {
    on_kubernetes("the policy of rules", async |place| {
        let client = &place.client;
        let cluster: okt_tests::Cluster<Huts> = place.cluster();
        cluster.define(okt::crd::<Hut>().expect("a CRD")).await;
        for object in okt::rule_policy::<Huts>() {
            apply(client, &object).await;
        }
        let huts: Api<Hut> = Api::default_namespaced(client.clone());
        let (patch, trial) = (PatchParams::default(), PatchParams::default().dry_run());
        for (name, state) in [("open", "Free"), ("shut", "Shut")] {
            let hut = json!({
                "apiVersion": "demo.okt.dev/v1", "kind": "Hut", "metadata": { "name": name, "finalizers": ["okt.dev/lifecycle"] },
                "spec": { "mountainSide": "north", "lifecycle": { "state": state } },
            });
            let hut = serde_json::from_value(hut).expect("a hut");
            let created = huts.create(&PostParams::default(), &hut).await;
            created.expect("it is accepted");
            let visit = json!({ "state": "Heating", "request": "a", "transition": 1, "outcome": "Pending" });
            let status = json!({ "status": { "lifecycle": {
                "state": state, "transition": 1, "jumps": 1, "trail": "", "visit": visit,
            } } });
            let written = huts.patch_status(name, &patch, &Patch::Merge(status)).await;
            written.expect("it is accepted");
        }
        let change = async |name: &str, spec: Value| {
            let changed = Patch::Merge(json!({ "spec": spec }));
            huts.patch(name, &trial, &changed).await
        };
        until("the policy is enforced", async || {
            change("open", json!({ "mountainSide": "south" })).await.is_err()
        })
        .await;
        let state = |state: &str| json!({ "lifecycle": { "state": state } });
        let visit = |state: &str| json!({ "lifecycle": { "visit": { "state": state, "request": "b" } } });
        let mut lines = String::new();
        for (what, name, spec) in [
            ("more beds", "open", json!({ "beds": 4 })),
            ("another side", "open", json!({ "mountainSide": "south" })),
            ("a height", "open", json!({ "seaLevel": 2000 })),
            ("to be shut", "open", state("Shut")),
            ("another visit", "open", visit("Cleaning")),
            ("to be open", "shut", state("Open")),
            ("to be free", "shut", state("Free")),
            ("a visit", "shut", visit("Heating")),
            ("to be gone", "shut", state("Gone")),
        ] {
            let answer = match change(name, spec).await {
                Ok(_) => "may".to_owned(),
                Err(kube::Error::Api(status)) => format!("{} {}", status.code, status.message),
                Err(error) => error.to_string(),
            };
            lines.push_str(&format!("{name}: {what}: {answer}\n"));
        }
        expect![[r#"
            open: more beds: may
            open: another side: 422 huts.demo.okt.dev "open" is forbidden: ValidatingAdmissionPolicy 'huts-rules.demo.okt.dev' with binding 'huts-rules.demo.okt.dev' denied request: spec.mountainSide stays as it is once it is set
            open: a height: may
            open: to be shut: may
            open: another visit: 422 huts.demo.okt.dev "open" is forbidden: ValidatingAdmissionPolicy 'huts-rules.demo.okt.dev' with binding 'huts-rules.demo.okt.dev' denied request: the visit to Heating is still to be made: take it back first
            shut: to be open: 422 huts.demo.okt.dev "shut" is forbidden: ValidatingAdmissionPolicy 'huts-rules.demo.okt.dev' with binding 'huts-rules.demo.okt.dev' denied request: no route leads from Shut to Open
            shut: to be free: 422 huts.demo.okt.dev "shut" is forbidden: ValidatingAdmissionPolicy 'huts-rules.demo.okt.dev' with binding 'huts-rules.demo.okt.dev' denied request: no route leads from Shut to Open
            shut: a visit: 422 huts.demo.okt.dev "shut" is forbidden: ValidatingAdmissionPolicy 'huts-rules.demo.okt.dev' with binding 'huts-rules.demo.okt.dev' denied request: no route leads from Shut to Heating
            shut: to be gone: may
        "#]].assert_eq(&lines);
        // An object that is being deleted is not asked about.
        huts.delete("open", &DeleteParams::default()).await.expect("it is accepted");
        let moved = change("open", json!({ "mountainSide": "south" })).await;
        moved.expect("it is accepted");
        let free = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
        for name in ["open", "shut"] {
            huts.patch(name, &patch, &free).await.expect("it is accepted");
        }
    })
    .await;
}

#[tokio::test]
#[ignore = "needs a real API server; run with --include-ignored"]
async fn what_is_left_out_is_filled_in_by_the_printed_policy() {
    on_kubernetes("the policy of defaults", async |place| {
        let client = &place.client;
        let server = client.apiserver_version().await.expect("a version");
        if server
            .minor
            .trim_end_matches('+')
            .parse::<u32>()
            .is_ok_and(|minor| minor < 36)
        {
            eprintln!(
                "skipped: Kubernetes 1.{} has no MutatingAdmissionPolicy in admissionregistration.k8s.io/v1",
                server.minor
            );
            return;
        }
        let cluster: okt_tests::Cluster<Huts> = place.cluster();
        cluster.define(okt::crd::<Hut>().expect("a CRD")).await;
        for object in okt::default_policy::<Huts>() {
            apply(client, &object).await;
        }
        let huts: Api<Hut> = Api::default_namespaced(client.clone());
        let trial = PostParams {
            dry_run: true,
            ..PostParams::default()
        };
        let wardens = async |spec: Value| {
            let hut = json!({
                "apiVersion": "demo.okt.dev/v1", "kind": "Hut", "metadata": { "name": "new" },
                "spec": spec,
            });
            let hut = serde_json::from_value(hut).expect("a hut");
            let created = huts.create(&trial, &hut).await;
            created.expect("it is accepted").spec.wardens
        };
        until("the policy is enforced", async || {
            wardens(json!({ "mountainSide": "north" })).await == Some(1)
        })
        .await;
        let large = json!({ "mountainSide": "north", "beds": 20 });
        assert_eq!(wardens(large).await, Some(2));
        let own = json!({ "mountainSide": "north", "beds": 20, "wardens": 7 });
        assert_eq!(wardens(own).await, Some(7));
    })
    .await;
}
