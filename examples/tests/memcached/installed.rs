//! The operator as a process on a real API server, installed with the manifests and roles that it prints.

use std::io::{self, Write};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Container};
use kube::api::ListParams;
use kube::{Api, Client};
use okt_testing::Kubernetes;
use serde_json::{Value, json};

use crate::stage::{self, Stage, Tally};
use crate::story;

const PROGRAM: &str = env!("CARGO_BIN_EXE_memcached");
/// The namespace of the operator, named after the program.
const HOME: &str = "memcached-system";
/// The namespace that it watches.
const TEAM: &str = "okt-tests-memcached";

/// The objects and the process of this test; the drop removes them.
struct Installed<'a> {
    server: &'a Kubernetes,
    manifests: String,
    operator: Option<Child>,
}

impl<'a> Installed<'a> {
    fn on(server: &'a Kubernetes) -> Self {
        let printed = Command::new(PROGRAM)
            .args(["manifests", "--image", "registry.example/memcached:1"])
            .args(["--namespace", TEAM])
            .output()
            .expect("it starts");
        let installed = Self {
            server,
            manifests: text(&printed),
            operator: None,
        };
        let team = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": TEAM } });
        installed.kubectl(&["apply", "-f", "-"], &team.to_string());
        let applied = installed.kubectl(&["apply", "-f", "-"], &installed.manifests);
        // The server warns about doubtful manifests.
        assert_eq!(String::from_utf8_lossy(&applied.stderr), "");
        text(&applied);
        installed
    }

    fn kubectl(&self, arguments: &[&str], input: &str) -> Output {
        self.try_kubectl(arguments, input).expect("kubectl works")
    }

    fn try_kubectl(&self, arguments: &[&str], input: &str) -> io::Result<Output> {
        let mut kubectl = self.server.kubectl().ok_or(io::ErrorKind::NotFound)?;
        let kubectl = kubectl.args(arguments).stdin(Stdio::piped());
        let mut kubectl = kubectl
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let mut stdin = kubectl.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
        // A kubectl that ends before it has read all of it prints the reason.
        let _ = stdin.write_all(input.as_bytes());
        drop(stdin);
        kubectl.wait_with_output()
    }

    /// Runs the program with the arguments of the Deployment.
    fn run(&mut self, container: &Container, kubeconfig: &Path) {
        let operator = Command::new(PROGRAM)
            .args(container.args.iter().flatten())
            .env("KUBECONFIG", kubeconfig)
            .stdin(Stdio::null())
            .spawn();
        self.operator = Some(operator.expect("it starts"));
    }
}

impl Drop for Installed<'_> {
    fn drop(&mut self) {
        if let Some(operator) = &mut self.operator {
            // It may have ended on its own.
            let _ = operator.kill();
            let _ = operator.wait();
        }
        // After a failed test a cache may be left, and no operator removes its finalizer; otherwise this patch is
        // refused.
        let free = ["patch", "memcached", stage::NAME, "--namespace", TEAM];
        let free = [&free[..], &["--type", "merge", "-p"]].concat();
        let finalizers = r#"{"metadata":{"finalizers":null}}"#;
        let delete = ["delete", "--ignore-not-found", "--wait=false"];
        for (arguments, input) in [
            (&[&free[..], &[finalizers]].concat()[..], ""),
            (&[&delete[..], &["-f", "-"]].concat(), &*self.manifests),
            (&[&delete[..], &["namespace", TEAM]].concat(), ""),
        ] {
            // The test may have failed because kubectl does not work.
            let _ = self.try_kubectl(arguments, input);
        }
    }
}

/// Returns the output of a program that succeeded.
fn text(output: &Output) -> String {
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{printed}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Returns a kubeconfig of the same server with which every user is the account of the operator.
fn kubeconfig(server: &Kubernetes, account: &str) -> tempfile::NamedTempFile {
    let text = std::fs::read_to_string(server.kubeconfig()).expect("a kubeconfig");
    let mut config: Value = serde_saphyr::from_str(&text).expect("YAML");
    for user in config["users"].as_array_mut().into_iter().flatten() {
        user["user"]["as"] = json!(format!("system:serviceaccount:{HOME}:{account}"));
    }
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), config.to_string()).expect("it is written");
    file
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a real API server; run with --include-ignored"]
async fn the_printed_manifests_install_an_operator_that_keeps_a_cache_on_a_real_api_server() {
    let what = "the operator of caches on a real API server";
    let Some(server) = Kubernetes::start_or_skip(what).await.expect("a server") else {
        return;
    };
    if server.kubectl().is_none() {
        eprintln!("skipped: {what}: there is no kubectl");
        return;
    }
    let mut installed = Installed::on(&server);
    let client = server.client();
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), HOME);
    let deployment = deployments.get("memcached").await.expect("it is there");
    let pod = deployment.spec.template.spec.expect("a pod");
    let account = pod.service_account_name.expect("an account");
    let kubeconfig = kubeconfig(&server, &account);
    installed.run(&pod.containers[0], kubeconfig.path());

    let stage = Stage::of(&client, TEAM, Tally::Counted(client.clone()));
    story::of_a_cache(&stage).await;
    its_roles_lead_nowhere_else(&server, &account).await;
    stage.create(&json!({})).await.expect("it is accepted");
    let scale = [
        "scale",
        "memcached",
        stage::NAME,
        "--namespace",
        TEAM,
        "--replicas=4",
    ];
    text(&installed.kubectl(&scale, ""));
    story::until_replicas(&stage, 4).await;
    drop(installed);
    server.stop().await;
}

async fn its_roles_lead_nowhere_else(server: &Kubernetes, account: &str) {
    let mut config = server.config();
    config.auth_info.impersonate = Some(format!("system:serviceaccount:{HOME}:{account}"));
    let client = Client::try_from(config).expect("a client");
    let elsewhere: Api<ConfigMap> = Api::namespaced(client, "default");
    match elsewhere.list(&ListParams::default()).await {
        Err(kube::Error::Api(status)) => assert_eq!(status.code, 403),
        other => panic!("it may read what is not its own: {other:?}"),
    }
}
