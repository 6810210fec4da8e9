//! The operator as a program.

use std::io::{BufRead, BufReader};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use okt_tests::{DatabaseState, Databases, Rig, SiteState, Sites};
use serde_json::json;

fn databases(arguments: &[&str], kubeconfig: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_databases"))
        .args(arguments)
        .env("KUBECONFIG", kubeconfig)
        .env_remove("KUBERNETES_SERVICE_HOST")
        .env("RUST_BACKTRACE", "0")
        .output()
        .expect("it starts")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_missing_kubeconfig_is_one_clear_line() {
    let output = databases(&["run"], "/nowhere/kubeconfig");
    assert_eq!(output.status.code(), Some(1));
    let said = said(&output);
    assert!(said.starts_with("error: cannot find a cluster: "), "{said}");
    assert!(said.contains("/nowhere/kubeconfig"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}

#[test]
fn a_cluster_that_is_not_there_is_waited_for_and_named() {
    let directory = tempfile::tempdir().expect("a directory");
    let kubeconfig = directory.path().join("kubeconfig");
    let text = "{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: 'http://127.0.0.1:9'}}], contexts: [{name: c, context: {cluster: c, user: u}}], users: [{name: u, user: {}}]}";
    std::fs::write(&kubeconfig, text).expect("a file");
    let mut program = Command::new(env!("CARGO_BIN_EXE_databases"))
        .arg("run")
        .env("KUBECONFIG", &kubeconfig)
        .env("RUST_LOG", "okt_runtime=info")
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let said = BufReader::new(program.stderr.take().expect("it is piped"));
    let mut lines = said.lines().map(|line| line.expect("text"));
    let starts = lines.next().expect("it says that it starts");
    // Where it fails, the line after this one does not come.
    let waits: Vec<_> = lines.by_ref().take(2).collect();
    program.kill().expect("it still tries");
    program.wait().expect("it ends");
    assert!(starts.contains("http://127.0.0.1:9/"), "{starts}");
    assert_eq!(waits.len(), 2, "{waits:?}");
    for wait in waits {
        assert!(wait.contains("WARN"), "{wait}");
        assert!(wait.contains("cannot reach the Kubernetes API: "), "{wait}");
        assert!(wait.contains("Connection refused"), "{wait}");
    }
}

#[test]
fn the_definition_is_printed() {
    let output = databases(&["crd"], "/nowhere/kubeconfig");
    assert!(output.status.success());
    let yaml = String::from_utf8_lossy(&output.stdout);
    assert_eq!(yaml, include_str!("database.crd.yaml"));
}

#[test]
fn the_roles_are_printed() {
    let arguments = [
        "rbac",
        "--namespace",
        "team-a",
        "--service-account",
        "ops/databases",
    ];
    let output = databases(&arguments, "/nowhere/kubeconfig");
    assert!(output.status.success());
    let yaml = String::from_utf8_lossy(&output.stdout);
    assert_eq!(yaml, include_str!("database.rbac.yaml"));
}

#[test]
fn a_service_account_that_is_none_is_one_clear_line() {
    let output = databases(&["rbac", "--service-account", "databases"], "/nowhere");
    assert_eq!(output.status.code(), Some(2));
    let said = said(&output);
    assert!(
        said.contains("a service account is written NAMESPACE/NAME"),
        "{said}"
    );
}

#[test]
fn roles_in_a_namespace_for_a_kind_that_lives_in_none_are_refused() {
    let output = Command::new(env!("CARGO_BIN_EXE_databases-and-sites"))
        .args(["rbac", "--namespace", "team-a"])
        .output()
        .expect("it starts");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        said(&output),
        "error: cannot look at Site in some namespaces only: it is cluster-scoped\n"
    );
    assert!(output.stdout.is_empty());
}

#[test]
fn without_a_subcommand_it_says_what_there_is() {
    let output = databases(&[], "/nowhere/kubeconfig");
    assert_eq!(output.status.code(), Some(2));
    let said = said(&output);
    assert!(said.contains("run") && said.contains("crd"), "{said}");
}

#[test]
fn a_program_of_two_operators_prints_two_definitions() {
    let output = Command::new(env!("CARGO_BIN_EXE_databases-and-sites"))
        .arg("crd")
        .output()
        .expect("it starts");
    let yaml = String::from_utf8_lossy(&output.stdout).into_owned();
    let documents: Vec<_> = yaml.split("---\n").collect();
    assert_eq!(documents.len(), 2);
    assert_eq!(documents[0], include_str!("database.crd.yaml"));
    assert!(documents[1].contains("name: sites.demo.okt.dev"));
}

#[tokio::test]
async fn a_program_of_two_operators_serves_both_and_ends_well_at_sigterm() {
    let databases = Rig::<Databases>::without_operator().await;
    let sites = Rig::<Sites>::beside(&databases).await;
    let served = databases.server.serve().await.expect("a socket");
    let kubeconfig = std::env::temp_dir().join(format!("okt-tests-two-{}", std::process::id()));
    served.write_kubeconfig(&kubeconfig).expect("a file");
    let mut program = Command::new(env!("CARGO_BIN_EXE_databases-and-sites"))
        .arg("run")
        .env("KUBECONFIG", &kubeconfig)
        .env("RUST_LOG", "error")
        .stdin(Stdio::null())
        .spawn()
        .expect("it starts");
    databases.create("db", json!({})).await;
    sites.create("s", json!({})).await;
    let both = async {
        databases.until_ready("db", DatabaseState::Running).await;
        sites.until_ready("s", SiteState::Online).await;
    };
    let in_time = tokio::time::timeout(Duration::from_secs(20), both).await;
    let pid = program.id().to_string();
    let told = Command::new("kill").arg(&pid).status().expect("kill");
    assert!(told.success());
    let ended = tokio::task::spawn_blocking(move || program.wait());
    let ended = tokio::time::timeout(Duration::from_secs(20), ended).await;
    std::fs::remove_file(&kubeconfig).expect("it was there");
    in_time.expect("both were served");
    let ended = ended
        .expect("it ends")
        .expect("no panic")
        .expect("a status");
    assert_eq!(ended.code(), Some(0));
}
