//! This file tests the API on a socket, with kube and with kubectl.

use std::process::Output;

use futures::StreamExt;
use kube::{
    Client, Config,
    api::{ListParams, WatchParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use okt_testing::{ApiServer, Served};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::support::{apply_status, create, get, server, widget_crd, widgets};

async fn over_http(served: &Served) -> Client {
    let kubeconfig = Kubeconfig::from_yaml(&served.kubeconfig()).unwrap();
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .unwrap();
    Client::try_from(config).unwrap()
}

#[tokio::test]
async fn a_socket_leads_to_the_same_store() {
    let (server, client) = server().await;
    let served = server.serve().await.unwrap();
    let remote = over_http(&served).await;
    assert_eq!(remote.default_namespace(), "default");
    create(&client, "a", json!({})).await;
    assert_eq!(get(&remote, "a").await, get(&client, "a").await);
    let api = widgets(&remote);
    let mut watch = Box::pin(api.watch(&WatchParams::default(), "0").await.unwrap());
    watch.next().await.unwrap().unwrap();
    create(&client, "b", json!({})).await;
    watch.next().await.unwrap().unwrap();
    served.shutdown().await;
    assert!(
        api.list(&ListParams::default()).await.is_err(),
        "nobody listens"
    );
    get(&client, "b").await;
}

#[tokio::test]
async fn the_version_and_the_groups_are_told() {
    let (_server, client) = server().await;
    assert_eq!(client.apiserver_version().await.unwrap().minor, "36");
    let groups = client.list_api_groups().await.unwrap();
    assert!(
        groups
            .groups
            .iter()
            .any(|group| group.name == "demo.okt.dev")
    );
    let discovery = kube::Discovery::new(client.clone()).run().await.unwrap();
    let group = discovery.get("demo.okt.dev").unwrap();
    let (resource, capabilities) = group.recommended_kind("Widget").unwrap();
    assert_eq!(resource.plural, "widgets");
    assert_eq!(capabilities.subresources.len(), 2);
    let aggregated = kube::Discovery::new(client).run_aggregated().await.unwrap();
    assert!(aggregated.get("apps").is_some());
}

/// A server, its kubeconfig in a file, and kubectl to talk to it.
struct Kubectl {
    server: ApiServer,
    client: Client,
    _served: Served,
    directory: tempfile::TempDir,
}

impl Kubectl {
    /// `None` where there is no kubectl on this machine.
    async fn start() -> Option<Self> {
        if Command::new("kubectl")
            .args(["version", "--client"])
            .output()
            .await
            .is_err()
        {
            eprintln!("there is no kubectl here: not tested");
            return None;
        }
        let (server, client) = server().await;
        let served = server.serve().await.unwrap();
        let directory = tempfile::tempdir().unwrap();
        served
            .write_kubeconfig(directory.path().join("config"))
            .unwrap();
        Some(Self {
            server,
            client,
            _served: served,
            directory,
        })
    }

    async fn try_run(&self, arguments: &[&str]) -> Output {
        Command::new("kubectl")
            .env("KUBECONFIG", self.directory.path().join("config"))
            .env("HOME", self.directory.path())
            .args(["--request-timeout=20s"])
            .args(arguments)
            .output()
            .await
            .unwrap()
    }

    /// What kubectl prints; it must succeed.
    async fn run(&self, arguments: &[&str]) -> String {
        let output = self.try_run(arguments).await;
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "kubectl {arguments:?}: {error}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn file(&self, name: &str, content: &Value) -> String {
        let path = self.directory.path().join(name);
        std::fs::write(&path, content.to_string()).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kubectl_gets_tables_with_the_columns_of_the_crd() {
    let Some(kubectl) = Kubectl::start().await else {
        return;
    };
    create(&kubectl.client, "a", json!({ "replicas": 3 })).await;
    let status = json!({ "phase": "Up", "conditions": [{ "type": "Ready", "status": "True" }] });
    apply_status(&kubectl.client, "m", "a", status)
        .await
        .unwrap();
    let table = kubectl.run(&["get", "wd"]).await;
    let mut lines = table
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>());
    assert_eq!(lines.next().unwrap(), ["NAME", "PHASE", "READY", "AGE"]);
    assert_eq!(lines.next().unwrap()[..3], ["a", "Up", "True"]);
    let wide = kubectl.run(&["get", "widgets", "-o", "wide"]).await;
    assert!(wide.contains("REPLICAS"), "{wide}");
    let yaml = kubectl
        .run(&["get", "widget", "a", "-o", "yaml", "--show-managed-fields"])
        .await;
    assert!(yaml.contains("f:phase"), "{yaml}");
    let all = kubectl
        .run(&["get", "widgets", "-A", "-l", "no=thing"])
        .await;
    assert_eq!(all, "");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kubectl_applies() {
    let Some(kubectl) = Kubectl::start().await else {
        return;
    };
    let widget = |color: &str| {
        json!({
            "apiVersion": "demo.okt.dev/v1",
            "kind": "Widget",
            "metadata": { "name": "a" },
            "spec": { "color": color },
        })
    };
    let file = kubectl.file("widget.json", &widget("red"));
    assert!(
        kubectl
            .run(&["apply", "-f", &file])
            .await
            .contains("created")
    );
    assert!(
        kubectl
            .run(&["apply", "-f", &file])
            .await
            .contains("unchanged")
    );
    kubectl.file("widget.json", &widget("blue"));
    assert!(
        kubectl
            .run(&["apply", "-f", &file])
            .await
            .contains("configured")
    );
    assert!(kubectl.run(&["diff", "-f", &file]).await.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kubectl_is_told_of_unknown_fields() {
    let Some(kubectl) = Kubectl::start().await else {
        return;
    };
    let bogus = json!({
        "apiVersion": "demo.okt.dev/v1", "kind": "Widget",
        "metadata": { "name": "a" }, "spec": { "bogus": 1 },
    });
    let bogus = kubectl.file("bogus.json", &bogus);
    let output = kubectl.try_run(&["apply", "-f", &bogus]).await;
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("unknown field \"spec.bogus\""), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kubectl_describes_waits_patches_and_deletes() {
    let Some(kubectl) = Kubectl::start().await else {
        return;
    };
    create(&kubectl.client, "a", json!({})).await;
    let widget = json!({
        "apiVersion": "demo.okt.dev/v1", "kind": "Widget",
        "metadata": { "name": "a" }, "spec": { "color": "blue" },
    });
    let file = kubectl.file("widget.json", &widget);
    assert!(
        kubectl
            .run(&["describe", "widget", "a"])
            .await
            .contains("Events:")
    );
    let status = json!({
        "observedGeneration": 2,
        "conditions": [{ "type": "Ready", "status": "True" }],
    });
    apply_status(&kubectl.client, "m", "a", status)
        .await
        .unwrap();
    kubectl
        .run(&["wait", "--for=condition=Ready", "widget/a", "--timeout=10s"])
        .await;
    kubectl
        .run(&[
            "patch",
            "widget",
            "a",
            "--type=merge",
            "-p",
            "{\"spec\":{\"replicas\":2}}",
        ])
        .await;
    kubectl.run(&["scale", "widget", "a", "--replicas=4"]).await;
    assert_eq!(get(&kubectl.client, "a").await.data["spec"]["replicas"], 4);
    kubectl.run(&["label", "widget", "a", "x=y"]).await;
    kubectl.run(&["annotate", "widget", "a", "x=y"]).await;
    kubectl
        .run(&[
            "patch",
            "widget",
            "a",
            "--subresource=status",
            "--type=merge",
            "-p",
            "{\"status\":{\"phase\":\"Up\"}}",
        ])
        .await;
    let sets = kubectl
        .run(&[
            "apply",
            "--server-side",
            "--field-manager=x",
            "--force-conflicts",
            "-f",
            &file,
        ])
        .await;
    assert!(sets.contains("serverside-applied"), "{sets}");
    assert!(
        kubectl
            .run(&["explain", "widget.spec.color"])
            .await
            .contains("color")
    );
    kubectl.run(&["delete", "widget", "a"]).await;
    assert!(
        kubectl
            .run(&["get", "widgets", "-o", "name"])
            .await
            .is_empty()
    );
    assert!(!kubectl.server.requests().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kubectl_works_with_built_in_kinds() {
    let Some(kubectl) = Kubectl::start().await else {
        return;
    };
    let namespace =
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "other" } });
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "c", "namespace": "other" }, "data": { "k": "v" },
    });
    let deployment = |image: &str| {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": { "name": "d" },
            "spec": {
                "selector": { "matchLabels": { "a": "b" } },
                "template": {
                    "metadata": { "labels": { "a": "b" } },
                    "spec": { "containers": [{ "name": "x", "image": image }, { "name": "y", "image": "y" }] },
                },
            },
        })
    };
    let file = kubectl.file("d.json", &deployment("one"));
    for object in [namespace, map] {
        let file = kubectl.file("o.json", &object);
        assert!(
            kubectl
                .run(&["apply", "-f", &file])
                .await
                .contains("created")
        );
        assert!(
            kubectl
                .run(&["apply", "-f", &file])
                .await
                .contains("unchanged")
        );
    }
    assert!(
        kubectl
            .run(&["apply", "-f", &file])
            .await
            .contains("created")
    );
    kubectl.file("d.json", &deployment("two"));
    assert!(
        kubectl
            .run(&["apply", "-f", &file])
            .await
            .contains("configured")
    );
    kubectl
        .run(&["scale", "deployment", "d", "--replicas=3"])
        .await;
    kubectl.run(&["set", "image", "deployment/d", "y=z"]).await;
    let images = "jsonpath={.spec.template.spec.containers[*].image}";
    assert_eq!(
        kubectl.run(&["get", "deployment", "d", "-o", images]).await,
        "two z"
    );
    let output = kubectl.try_run(&["create", "configmap", "e"]).await;
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() || error.contains("a body in protobuf"),
        "{error}"
    );
    let all = kubectl.run(&["get", "all,cm,secrets,crd"]).await;
    assert!(all.contains("deployment.apps/d"), "{all}");
    assert!(kubectl.run(&["api-resources"]).await.contains("widgets"));
    let crd = kubectl.file("crd.json", &widget_crd());
    kubectl
        .run(&["apply", "--server-side", "--force-conflicts", "-f", &crd])
        .await;
    kubectl
        .run(&[
            "wait",
            "--for=condition=Established",
            "crd/widgets.demo.okt.dev",
        ])
        .await;
    kubectl.run(&["delete", "namespace", "other"]).await;
    kubectl.run(&["get", "events"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kubectl_watches_tables() {
    let Some(kubectl) = Kubectl::start().await else {
        return;
    };
    create(&kubectl.client, "a", json!({})).await;
    let watch = kubectl.try_run(&["get", "widgets", "-w", "--request-timeout=3s"]);
    let change = async {
        tokio::time::sleep(std::time::Duration::from_secs(2)).await;
        apply_status(&kubectl.client, "m", "a", json!({ "phase": "Up" }))
            .await
            .unwrap();
    };
    let (output, ()) = tokio::join!(watch, change);
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(
        printed
            .lines()
            .any(|line| line.starts_with('a') && line.contains("Up")),
        "{printed}"
    );
}
