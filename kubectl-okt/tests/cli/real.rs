//! The program against a real API server, as users with few rights.

use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{DynamicObject, PostParams};
use kube::discovery::ApiResource;
use okt_apiserver::Kubernetes;
use okt_tests::{Databases, Served, until};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::world;

/// Runs the program as a user; returns its exit code and what it prints.
pub(crate) async fn run(
    server: &Kubernetes,
    user: &str,
    arguments: &[&str],
) -> (Option<i32>, String) {
    let user: &[&str] = if user.is_empty() {
        &[]
    } else {
        &["--as", user]
    };
    let output = world::run(server.kubeconfig(), &[user, arguments].concat()).await;
    let text = [output.stdout, output.stderr].concat();
    (
        output.status.code(),
        String::from_utf8_lossy(&text).into_owned(),
    )
}

/// Runs the program until it ends as wanted, because the server learns of many things a moment later; returns what it
/// prints.
pub(crate) async fn run_until(
    server: &Kubernetes,
    user: &str,
    arguments: &[&str],
    is_wanted: impl Fn(Option<i32>, &str) -> bool,
) -> String {
    let mut printed = String::new();
    until(&arguments.join(" "), async || {
        let (code, now) = run(server, user, arguments).await;
        if printed != now {
            println!("{user} {arguments:?}: {code:?} {now}");
        }
        printed = now;
        is_wanted(code, &printed)
    })
    .await;
    printed
}

fn of<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("an object")
}

#[tokio::test]
#[ignore = "needs a real API server; run with --include-ignored"]
async fn who_may_view_sees_and_who_may_not_reads_what_to_ask_for() {
    let Some(server) = Kubernetes::start_or_skip("users of kubectl okt")
        .await
        .expect("a server")
    else {
        return;
    };
    let client = server.client();
    let now = PostParams::default();
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    let crd = okt::crd::<okt_tests::Database>().expect("a definition");
    crds.create(&now, &crd).await.expect("it is defined");
    let roles: Api<ClusterRole> = Api::all(client.clone());
    for role in okt::rbac::<Databases>(&[] as &[&str], None)
        .expect("roles")
        .cluster_roles
    {
        roles.create(&now, &role).await.expect("a role");
    }
    let graphs = of(json!({
        "metadata": { "name": "graphs" },
        "rules": [{ "apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"], "verbs": ["get", "list"] }],
    }));
    roles.create(&now, &graphs).await.expect("a role");
    let bindings: Api<ClusterRoleBinding> = Api::all(client.clone());
    for (user, role) in [
        ("viewer", "databases.demo.okt.dev:view"),
        ("reader", "databases.demo.okt.dev:view"),
        ("reader", "graphs"),
    ] {
        let binding = of(json!({
            "metadata": { "name": format!("{user}-{}", role.replace(':', "-")) },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role },
            "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user }],
        }));
        bindings.create(&now, &binding).await.expect("a binding");
    }
    let resource = ApiResource::erase::<okt_tests::Database>(&());
    let databases: Api<DynamicObject> = Api::default_namespaced_with(client, &resource);
    let orders: DynamicObject = of(Databases::object("orders", json!({})));
    // A kind is served a moment after its definition.
    until("the kind is served", async || {
        match databases.create(&now, &orders).await {
            Ok(_) => true,
            Err(kube::Error::Api(status)) if status.code == 404 => false,
            Err(error) => panic!("{error}"),
        }
    })
    .await;

    let rows = r#"
        viewer | list -A | 0 | Database   orders
        reader | list -A | 0 | Database   orders
        reader | get orders | 0 | Running
        viewer | get orders | 0 | The graph is left out: its CRD cannot be read
        reader | why orders | 0 | No operator has reported on the object.
        reader | why orders | 0 | Not looked at: the leases of operators
        reader | pause orders | 1 | you may not: databases.demo.okt.dev "orders" is forbidden
        nobody | list -A | 1 | cannot list databases.demo.okt.dev: you may not
        nobody | list -A | 1 | ask an administrator for the cluster role
    "#;
    for row in rows.trim().lines() {
        let [user, words, expected, part] = row.trim().split(" | ").collect::<Vec<_>>()[..] else {
            panic!("no row: {row}");
        };
        let words: Vec<&str> = words.split(' ').collect();
        let expected = expected.parse().ok();
        let is_wanted = |code, printed: &str| code == expected && printed.contains(part);
        let printed = run_until(&server, user, &words, is_wanted).await;
        assert!(
            user != "nobody" || printed.lines().count() == 1,
            "{printed}"
        );
    }
    server.stop().await;
}
