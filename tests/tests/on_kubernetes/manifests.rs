//! These tests apply the printed manifests of an operator with kubectl, and run its replicas as they specify.

use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Container, Pod, PodSpec, ServiceAccount};
use kube::api::{ListParams, PostParams};
use kube::{Api, Client};
use okt_testing::Kubernetes;
use okt_tests::{Database, Databases, Objects, Served, https_get, until};
use serde_json::{Value, json};
use tempfile::NamedTempFile;

use crate::{SERVER, on_kubernetes};

/// The namespace of the operator, which is named after the program.
const HOME: &str = "databases-system";
/// The namespace that the operator watches.
const TEAM: &str = "okt-tests-team-a";

/// The binding of those who read the metrics.
const READERS: &str = "okt-tests-metrics-readers";

const ARGUMENTS: [&str; 6] = [
    "manifests",
    "--image",
    "registry.example/databases:1",
    "--namespace",
    TEAM,
    "--metrics-secure",
];

/// The installed objects and the replicas of this test; all are removed when this value is dropped.
struct Installed<'a> {
    server: &'a Kubernetes,
    manifests: String,
    replicas: Vec<Child>,
}

impl<'a> Installed<'a> {
    fn by(server: &'a Kubernetes, manifests: String) -> Self {
        let installed = Self {
            server,
            manifests,
            replicas: Vec::new(),
        };
        let team = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": TEAM } });
        accepted(&installed.kubectl(&["apply", "-f", "-"], &team.to_string()));
        let applied = installed.kubectl(&["apply", "-f", "-"], &installed.manifests);
        accepted(&applied);
        // A server that would refuse such a pod here prints a warning.
        assert_eq!(String::from_utf8_lossy(&applied.stderr), "");
        installed
    }

    fn kubectl(&self, arguments: &[&str], input: &str) -> Output {
        let mut kubectl = self.server.kubectl().expect("it was there a moment ago");
        let kubectl = kubectl.args(arguments).stdin(Stdio::piped());
        let mut kubectl = (kubectl.stdout(Stdio::piped()).stderr(Stdio::piped()))
            .spawn()
            .expect("kubectl starts");
        let mut stdin = kubectl.stdin.take().expect("it is piped");
        stdin.write_all(input.as_bytes()).expect("it reads");
        drop(stdin);
        kubectl.wait_with_output().expect("it ends")
    }

    /// Runs a replica with the settings of the Deployment; returns the file of its log.
    fn run(&mut self, container: &Container, kubeconfig: &Path) -> NamedTempFile {
        let log = NamedTempFile::new().expect("a file");
        let environment = container.env.iter().flatten();
        let environment = environment.map(|env| (&env.name, env.value.clone().unwrap_or_default()));
        let operator = Command::new(env!("CARGO_BIN_EXE_databases"))
            .args(container.args.iter().flatten())
            .envs(environment)
            .env("KUBECONFIG", kubeconfig)
            // As in a pod: leader election is on, and a file says which namespace this is.
            .env("KUBERNETES_SERVICE_HOST", "kubernetes.default")
            .env("OKT_LEASE_NAMESPACE", HOME)
            // The replicas share a host here.
            .env("OKT_METRICS_ADDRESS", "127.0.0.1:0")
            .env("OKT_HEALTH_ADDRESS", "")
            .stdin(Stdio::null())
            .stderr(log.reopen().expect("a file"))
            .spawn();
        self.replicas.push(operator.expect("it starts"));
        log
    }
}

impl Drop for Installed<'_> {
    fn drop(&mut self) {
        for replica in &mut self.replicas {
            // The process may have ended already.
            let _ = replica.kill();
            let _ = replica.wait();
        }
        let delete = ["delete", "--ignore-not-found", "--wait=false"];
        self.kubectl(&[&delete[..], &["-f", "-"]].concat(), &self.manifests);
        self.kubectl(&[&delete[..], &["namespace", TEAM]].concat(), "");
        self.kubectl(
            &[&delete[..], &["clusterrolebinding", READERS]].concat(),
            "",
        );
    }
}

fn accepted(output: &Output) {
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{printed}");
}

/// Returns a kubeconfig of the same server that impersonates the account.
fn as_account(server: &Kubernetes, name: &str) -> String {
    let text = std::fs::read_to_string(server.kubeconfig()).expect("a kubeconfig");
    let mut config: Value = serde_saphyr::from_str(&text).expect("YAML");
    for user in config["users"].as_array_mut().into_iter().flatten() {
        user["user"]["as"] = json!(format!("system:serviceaccount:{HOME}:{name}"));
    }
    config.to_string()
}

/// Returns a pod of the Deployment, as its controller would create it.
fn pod(template: PodSpec) -> Pod {
    Pod {
        metadata: serde_json::from_value(json!({ "name": "operator" })).expect("metadata"),
        spec: Some(template),
        ..Pod::default()
    }
}

#[tokio::test]
#[ignore = "needs a real API server; run with --include-ignored"]
async fn the_manifests_install_replicas_that_work_in_a_restricted_namespace() {
    let what = "the manifests of an operator";
    on_kubernetes(what, async |place| {
        let server = SERVER.get().and_then(Option::as_ref).expect("it runs");
        if server.kubectl().is_none() {
            eprintln!("skipped: {what}: there is no kubectl");
            return;
        }
        let printed = Command::new(env!("CARGO_BIN_EXE_databases"))
            .args(ARGUMENTS)
            .output()
            .expect("it starts");
        accepted(&printed);
        let manifests = String::from_utf8(printed.stdout).expect("text");
        let mut installed = Installed::by(server, manifests);

        let deployments: Api<Deployment> = Api::namespaced(place.client.clone(), HOME);
        let deployment = deployments.read("databases").await;
        let wanted = deployment.spec;
        let template = wanted.template.spec.expect("a template");
        only_restricted_pods_are_let_in(&place.client, &template).await;

        let account = template.service_account_name.expect("an account");
        let kubeconfig = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(kubeconfig.path(), as_account(server, &account)).expect("it is written");
        let logs: Vec<_> = (0..wanted.replicas.expect("a number"))
            .map(|_| installed.run(&template.containers[0], kubeconfig.path()))
            .collect();
        lives_and_goes(&place.client).await;
        only_permitted_accounts_read_the_metrics(&place.client, &installed, &logs[0]).await;

        let leases: Api<Lease> = Api::namespaced(place.client.clone(), HOME);
        let count = async || {
            leases
                .list(&ListParams::default())
                .await
                .expect("a list")
                .items
                .len()
        };
        until("each replica has a lease beside the table", async || {
            count().await == 3
        })
        .await;
        for replica in &installed.replicas {
            let killed = Command::new("kill").arg(replica.id().to_string()).status();
            assert!(killed.expect("kill").success());
        }
        for replica in &mut installed.replicas {
            let ended = async || replica.try_wait().expect("a process").is_some();
            until("the replica has ended", ended).await;
            assert_eq!(code(replica), Some(0));
        }
        until("a replica that stops deletes its lease", async || {
            count().await == 1
        })
        .await;
    })
    .await;
}

fn code(ended: &mut Child) -> Option<i32> {
    ended.wait().ok()?.code()
}

/// Checks that the namespace admits the pod of the Deployment, but none with more permissions.
async fn only_restricted_pods_are_let_in(client: &Client, template: &PodSpec) {
    let pods: Api<Pod> = Api::namespaced(client.clone(), HOME);
    let trial = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let let_in = pods.create(&trial, &pod(template.clone())).await;
    let_in.expect("a restricted pod");
    let unlimited = PodSpec {
        security_context: None,
        ..template.clone()
    };
    match pods.create(&trial, &pod(unlimited)).await {
        Err(kube::Error::Api(status)) => {
            assert!(status.message.contains("violates PodSecurity"), "{status}");
        }
        other => panic!("the namespace is not restricted: {other:?}"),
    }
}

/// Reads the metrics of a replica as two service accounts, one of which has the printed role of readers.
async fn only_permitted_accounts_read_the_metrics(
    client: &Client,
    installed: &Installed<'_>,
    log: &NamedTempFile,
) {
    let served = || {
        let log = std::fs::read_to_string(log.path()).expect("text");
        let mut lines = log.lines().map(str::to_owned);
        lines.find(|line| line.contains("serves metrics with TLS"))
    };
    // The other replica alone may have done the work so far.
    until("it says where it serves metrics", async || {
        served().is_some()
    })
    .await;
    let line = served().expect("it said so");
    let (_, address) = line.split_once("address=").expect("an address");
    let address: SocketAddr = address.trim().parse().expect("an address");
    let reader = json!({
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": "reader", "namespace": HOME },
    });
    accepted(&installed.kubectl(&["apply", "-f", "-"], &reader.to_string()));
    let (role, account) = (
        "--clusterrole=databases:metrics-reader",
        format!("--serviceaccount={HOME}:reader"),
    );
    let bind = ["create", "clusterrolebinding", READERS, role, &account];
    accepted(&installed.kubectl(&bind, ""));
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), HOME);
    let get = async |account: &str| {
        let (params, wanted) = (PostParams::default(), TokenRequest::default());
        let token = accounts.create_token_request(account, &params, &wanted);
        let token = token.await.expect("a token").status.and_then(|it| it.token);
        let token = token.expect("a token");
        let headers = format!("Authorization: Bearer {token}\r\n");
        let answer = https_get(address, "/metrics", &headers, None).await;
        answer.expect("an answer")
    };
    // The role is bound a moment before the API server knows it.
    until("the reader reads", async || {
        get("reader").await.starts_with("HTTP/1.0 200")
    })
    .await;
    // Who asked too often with unknown tokens is answered 401 for a while.
    until("the other account is refused", async || {
        get("databases").await.starts_with("HTTP/1.0 403")
    })
    .await;
    let none = https_get(address, "/metrics", "", None).await;
    assert!(none.expect("an answer").starts_with("HTTP/1.0 401"));
}

/// Creates and deletes an object in the namespace that the operator watches.
async fn lives_and_goes(client: &Client) {
    let databases: Api<Database> = Api::namespaced(client.clone(), TEAM);
    let database = serde_json::from_value(Databases::object("db", json!({}))).expect("a database");
    until("the kind is served", async || {
        let made = databases.create(&PostParams::default(), &database).await;
        made.is_ok()
    })
    .await;
    until("it is ready", async || {
        let status = databases.read("db").await.status;
        let conditions = status.map(|status| status.conditions).unwrap_or_default();
        (conditions.iter())
            .any(|condition| condition.type_ == "Ready" && condition.status == "True")
    })
    .await;
    databases.remove("db").await;
    until("it is gone", async || {
        let database = databases.get_opt("db").await.expect("an answer");
        database.is_none()
    })
    .await;
}
