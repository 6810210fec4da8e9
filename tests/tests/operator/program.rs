//! The operator as a program.

use std::process::{Command, Output};

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
fn a_cluster_that_is_not_there_is_one_clear_line() {
    let directory = std::env::temp_dir().join(format!("okt-tests-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory");
    let kubeconfig = directory.join("kubeconfig");
    let text = "{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: 'http://127.0.0.1:9'}}], contexts: [{name: c, context: {cluster: c, user: u}}], users: [{name: u, user: {}}]}";
    std::fs::write(&kubeconfig, text).expect("a file");
    let output = databases(&["run"], &kubeconfig.to_string_lossy());
    std::fs::remove_dir_all(&directory).expect("it was there");
    assert_eq!(output.status.code(), Some(1));
    let said = said(&output);
    let last = said.lines().last().unwrap_or_default();
    assert!(
        last.starts_with("error: cannot reach the Kubernetes API at http://127.0.0.1:9/: "),
        "{said}"
    );
}

#[test]
fn the_definition_is_printed() {
    let output = databases(&["crd"], "/nowhere/kubeconfig");
    assert!(output.status.success());
    let yaml = String::from_utf8_lossy(&output.stdout);
    assert_eq!(yaml, include_str!("database.crd.yaml"));
}

#[test]
fn without_a_subcommand_it_says_what_there_is() {
    let output = databases(&[], "/nowhere/kubeconfig");
    assert_eq!(output.status.code(), Some(2));
    let said = said(&output);
    assert!(said.contains("run") && said.contains("crd"), "{said}");
}
