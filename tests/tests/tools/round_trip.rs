//! A chart is installed, upgraded, rolled back and uninstalled on a real API server, and loses no object.

use std::process::Command;

use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DynamicObject, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::runtime::wait::{await_condition, conditions};
use kube::{Api, Client};
use okt_testing::Kubernetes;
use serde_json::{Value, json};

use super::helm::helm;
use super::{IMAGE, manifests, run, write_chart};

const HOME: &str = "databases-system";
const TEAM: &str = "team-a";

/// Returns an object of a real server, if there is one.
async fn found(client: &Client, kind: [&str; 3], place: (&str, &str)) -> Option<Value> {
    let [group, version, kind] = kind;
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    let api: Api<DynamicObject> = match place.0 {
        "" => Api::all_with(client.clone(), &resource),
        namespace => Api::namespaced_with(client.clone(), namespace, &resource),
    };
    let found = api.get_opt(place.1).await.expect("an answer");
    found.map(|object| serde_json::to_value(object).expect("JSON"))
}

/// Returns the image of the operator, and whether it is limited to the namespace of the team.
async fn installed(client: &Client) -> (String, bool) {
    let deployment = found(client, ["apps", "v1", "Deployment"], (HOME, "databases")).await;
    let deployment = deployment.expect("a Deployment");
    let image = deployment.pointer("/spec/template/spec/containers/0/image");
    let image = image.and_then(Value::as_str).expect("an image").to_owned();
    let role = ["rbac.authorization.k8s.io", "v1", "Role"];
    let role = found(client, role, (TEAM, "databases.demo.okt.dev:operator")).await;
    (image, role.is_some())
}

async fn create(client: &Client, resource: &ApiResource, namespace: &str, object: Value) {
    let api: Api<DynamicObject> = match namespace {
        "" => Api::all_with(client.clone(), resource),
        namespace => Api::namespaced_with(client.clone(), namespace, resource),
    };
    let object = serde_json::from_value(object).expect("an object");
    let made = api.create(&PostParams::default(), &object).await;
    made.expect("it is accepted");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "builds helm, which takes a minute or two"]
async fn a_release_is_installed_upgraded_rolled_back_and_uninstalled_and_loses_no_object() {
    let started = Kubernetes::start_or_skip("a chart on a real server").await;
    let Some(kubernetes) = started.expect("the server starts") else {
        return;
    };
    let client = kubernetes.client();
    let folder = tempfile::tempdir().expect("a folder");
    let chart = folder.path().join("chart");
    write_chart(env!("CARGO_BIN_EXE_databases"), &chart, &[]);
    let chart = chart.to_str().expect("UTF-8");
    let helm_in = |arguments: &[&str]| {
        let mut command = helm(arguments);
        command
            .args(["--namespace", HOME])
            .env("KUBECONFIG", kubernetes.kubeconfig())
            .env("HELM_CACHE_HOME", folder.path().join("cache"))
            .env("HELM_CONFIG_HOME", folder.path().join("config"))
            .env("HELM_DATA_HOME", folder.path().join("data"));
        command
    };
    let step = |arguments: &[&str]| run(&mut helm_in(arguments));
    let namespaces = ApiResource::erase::<Namespace>(&());
    let team = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": TEAM } });
    create(&client, &namespaces, "", team).await;

    let limited = format!("namespaces={{{TEAM}}}");
    let install = [
        "install",
        "databases",
        chart,
        "--create-namespace",
        "--set",
        &limited,
    ];
    let said = step(&install);
    assert!(
        said.contains("databases runs in the namespace databases-system"),
        "{said}"
    );
    assert_eq!(installed(&client).await, (IMAGE.to_owned(), true));
    let kind = GroupVersionKind::gvk("demo.okt.dev", "v1", "Database");
    let databases = ApiResource::from_gvk(&kind);
    let database = json!({
        "apiVersion": "demo.okt.dev/v1", "kind": "Database",
        "metadata": { "name": "db" }, "spec": { "storage": "1Gi" },
    });
    let served = async || found(&client, ["demo.okt.dev", "v1", "Database"], (TEAM, "db")).await;
    established(&client).await;
    create(&client, &databases, TEAM, database).await;
    let definitions = ["apiextensions.k8s.io", "v1", "CustomResourceDefinition"];
    let definition = ("", "databases.demo.okt.dev");

    step(&["upgrade", "databases", chart, "--set", "image.tag=1.3"]);
    let next = IMAGE.replace(":1.2", ":1.3");
    assert_eq!(installed(&client).await, (next, false));
    step(&["rollback", "databases", "1"]);
    assert_eq!(installed(&client).await, (IMAGE.to_owned(), true));
    step(&["uninstall", "databases"]);
    let deployment = found(&client, ["apps", "v1", "Deployment"], (HOME, "databases")).await;
    assert_eq!(deployment, None);
    assert!(found(&client, definitions, definition).await.is_some());
    assert!(served().await.is_some(), "the objects stay");
    // The next release takes over the definitions that stayed.
    step(&install);
    assert!(served().await.is_some());
    step(&["uninstall", "databases"]);
    kubernetes.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "starts a real API server"]
async fn kubectl_applies_the_base_and_the_overlays_of_kustomize() {
    let started = Kubernetes::start_or_skip("kustomize on a real server").await;
    let Some(kubernetes) = started.expect("the server starts") else {
        return;
    };
    let client = kubernetes.client();
    let folder = tempfile::tempdir().expect("a folder");
    let kustomize = folder.path().to_str().expect("UTF-8");
    manifests(env!("CARGO_BIN_EXE_databases"), &["--kustomize", kustomize]);
    if let Some(kubectl) = kubernetes.kubectl() {
        let kubectl = |arguments: &[&str]| {
            let mut command = Command::new(kubectl.get_program());
            command.args(kubectl.get_args()).args(arguments);
            command.env("KUBECONFIG", kubernetes.kubeconfig());
            command
        };
        let base = run(&mut kubectl(&["kustomize", &format!("{kustomize}/base")]));
        let wanted = manifests(env!("CARGO_BIN_EXE_databases"), &[]);
        super::assert_same(&super::objects(&base), &super::objects(&wanted), "the base");
        for overlay in ["development", "production"] {
            let overlay = format!("{kustomize}/overlays/{overlay}");
            let arguments = [
                "apply",
                "--server-side",
                "--force-conflicts",
                "-k",
                &overlay,
            ];
            run(&mut kubectl(&arguments));
            let expected = if overlay.ends_with("development") {
                "dev"
            } else {
                "1.2"
            };
            let (image, _) = installed(&client).await;
            assert_eq!(image.rsplit(':').next(), Some(expected));
        }
        let budget = found(
            &client,
            ["policy", "v1", "PodDisruptionBudget"],
            (HOME, "databases"),
        )
        .await;
        assert!(budget.is_some(), "of the second overlay");
    }
    kubernetes.stop().await;
}

/// Waits until the API server serves databases.
async fn established(client: &Client) {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let served = conditions::is_crd_established();
    let waited = await_condition(definitions, "databases.demo.okt.dev", served).await;
    waited.expect("a watch");
}
