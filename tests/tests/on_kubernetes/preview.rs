//! `preview` against a real API server: it tries changes, asks for rights, and changes nothing.

use std::process::{Command, Output, Stdio};

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use kube::api::{DeleteParams, ListParams};
use kube::{Api, Client};
use okt::crd;
use okt_testing::Kubernetes;
use okt_tests::Served;
use okt_tests::lamps::first::{Lamp, LampState, Lamps};
use serde_json::json;

use crate::{PATIENCE, SERVER, on_kubernetes};

/// The program, which is the second release.
const LAMPS: &str = env!("CARGO_BIN_EXE_lamps");

/// The namespace of the service account, which is named after the program.
const HOME: &str = "lamps-system";

fn preview(server: &Kubernetes) -> Output {
    let mut program = Command::new(LAMPS);
    let program = program
        .arg("preview")
        .env("KUBECONFIG", server.kubeconfig());
    program.output().expect("it runs")
}

/// Applies what the program prints with kubectl.
fn apply(server: &Kubernetes, arguments: &[&str]) {
    let mut printed = Command::new(LAMPS)
        .args(arguments)
        .stdout(Stdio::piped())
        .spawn()
        .expect("it runs");
    let mut kubectl = server.kubectl().expect("it was there a moment ago");
    let kubectl = kubectl.args(["apply", "-f", "-"]);
    let kubectl = kubectl.stdin(printed.stdout.take().expect("it is piped"));
    let applied = kubectl.output().expect("kubectl starts");
    assert!(printed.wait().expect("it ends").success());
    let said = String::from_utf8_lossy(&applied.stderr);
    assert!(applied.status.success(), "{said}");
    // For example `unrecognized format`.
    assert!(!said.contains("Warning"), "{said}");
}

/// Returns the names and versions of the owned objects.
async fn versions(client: &Client) -> Vec<(Option<String>, Option<String>)> {
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let owned = ListParams::default().labels(okt::OWNER_LABEL);
    let maps = maps.list(&owned).await.expect("a list").items;
    let of = |map: ConfigMap| (map.metadata.name, map.metadata.resource_version);
    maps.into_iter().map(of).collect()
}

#[tokio::test]
#[ignore = "needs a real API server; run with --include-ignored"]
async fn a_preview_names_what_would_change_and_the_rights_that_are_lacking_and_changes_nothing() {
    on_kubernetes("the preview of a release", async |place| {
        let server = SERVER.get().and_then(Option::as_ref).expect("it runs");
        let client = place.client.clone();
        let cluster = place.cluster::<Lamps>();
        cluster.define(crd::<Lamp>().expect("a definition")).await;
        let operator = place.operate(Lamps);
        cluster.create_ready("hall", LampState::Lit).await;
        cluster.create_ready("cellar", LampState::Lit).await;
        cluster
            .ask_for("cellar", json!({ "state": "Checked" }))
            .await;
        cluster.until_ready("cellar", LampState::Checked).await;
        operator.kill().await;
        let before = (
            versions(&client).await,
            Lamps::api(client.clone())
                .list(&ListParams::default())
                .await,
        );

        let output = preview(server);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        println!("{text}{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(4));
        for words in [
            "Lamp default/cellar: it is in Checked, which the graph does not have",
            "ConfigMap default/hall of Lamp default/hall would be changed",
            "+  bulb: led",
            "ConfigMap default/hall-warranty of Lamp default/hall would be deleted",
            "removed state `Checked`",
            "changed name of the state `Low`, was `Dimmed`",
            "  patch lamps.demo.okt.dev/status\n",
            "  create, delete, get, list, patch, watch secrets\n",
            "  create, delete, list, patch, watch leases.coordination.k8s.io in the namespace lamps-system\n",
        ] {
            assert!(text.contains(words), "{words:?} is not in {text}");
        }

        cluster.create_namespace(HOME).await;
        apply(
            server,
            &["rbac", "--service-account", &format!("{HOME}/lamps")],
        );
        // The API server takes a moment to know a role that is bound.
        let since = std::time::Instant::now();
        let text = loop {
            let output = preview(server);
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            if !text.contains("Rights that") || since.elapsed() > PATIENCE {
                break text;
            }
        };
        clean(&client).await;
        assert!(!text.contains("Rights that"), "{text}");
        let after = (
            versions(&client).await,
            Lamps::api(client.clone())
                .list(&ListParams::default())
                .await,
        );
        assert_eq!(before.0, after.0);
        let version = |lamps: kube::Result<kube::core::ObjectList<Lamp>>| {
            let lamps = lamps.expect("a list").items.into_iter();
            lamps
                .map(|lamp| lamp.metadata.resource_version)
                .collect::<Vec<_>>()
        };
        assert_eq!(version(before.1), version(after.1));
    })
    .await;
}

/// Removes the roles.
async fn clean(client: &Client) {
    let now = DeleteParams::default();
    let operator = "lamps.demo.okt.dev:operator";
    let roles: Api<ClusterRole> = Api::all(client.clone());
    for name in ["operator", "view", "edit"] {
        let _ = roles
            .delete(&format!("lamps.demo.okt.dev:{name}"), &now)
            .await;
    }
    let bindings: Api<ClusterRoleBinding> = Api::all(client.clone());
    let _ = bindings.delete(operator, &now).await;
    let roles: Api<Role> = Api::namespaced(client.clone(), HOME);
    let _ = roles.delete("lamps:leases", &now).await;
    let bindings: Api<RoleBinding> = Api::namespaced(client.clone(), HOME);
    let _ = bindings.delete("lamps:leases", &now).await;
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let _ = namespaces.delete(HOME, &now).await;
}
