//! Tests that a real API server starts, is isolated, and leaves nothing behind.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::PostParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Config};
use okt_testing::{FeatureGate, Kubernetes};
use serde_json::json;
use tempfile::TempDir;

const LIMIT: Duration = Duration::from_mins(10);

/// Starts a new server; `None` if nothing here can run one.
async fn start(what: &str) -> Option<Kubernetes> {
    Kubernetes::start_or_skip(what).await.unwrap()
}

/// Waits until a condition holds.
async fn eventually(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let since = Instant::now();
    while !is_so().await {
        assert!(since.elapsed() < LIMIT, "not within {LIMIT:?}: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Returns whether a gate of a server is on.
async fn is_on(kubernetes: &Kubernetes, gate: FeatureGate) -> bool {
    let metrics = http::Request::get("/metrics").body(Vec::new()).unwrap();
    let metrics = kubernetes.client().request_text(metrics).await.unwrap();
    let start = format!("kubernetes_feature_enabled{{name=\"{gate}\",");
    let mut lines = metrics.lines();
    let line = lines.find(|line| line.starts_with(&start));
    line.expect("the server knows the gate").ends_with(" 1")
}

#[tokio::test]
#[ignore = "needs a real API server; run with --include-ignored"]
async fn servers_run_in_parallel_and_leave_nothing_behind() {
    let what = "two servers at once";
    let (one, other) = tokio::join!(start(what), start(what));
    let (Some(one), Some(other)) = (one, other) else {
        return;
    };
    assert!(one.version().starts_with("v1."), "{}", one.version());
    assert!(!is_on(&one, FeatureGate::ShardedListAndWatch).await);
    let mut map = ConfigMap::default();
    map.metadata.name = Some("only-here".to_owned());
    let maps: Api<ConfigMap> = Api::default_namespaced(one.client());
    maps.create(&PostParams::default(), &map).await.unwrap();
    let elsewhere: Api<ConfigMap> = Api::default_namespaced(other.client());
    assert!(elsewhere.get_opt("only-here").await.unwrap().is_none());

    let left = [Traces::of(&one), Traces::of(&other)];
    assert!(left.iter().all(Traces::are_there));
    one.stop().await;
    drop(other);
    for traces in left {
        assert!(!traces.are_there(), "{traces:?}");
    }
}

#[tokio::test]
#[ignore = "needs a real API server; run with --include-ignored"]
async fn dependents_are_deleted_with_their_owner_even_of_a_new_kind() {
    let Some(kubernetes) = start("garbage collection").await else {
        return;
    };
    assert!(kubernetes.collects_garbage());
    let kubectl = |arguments: &[&str]| {
        let output = kubernetes.kubectl()?.args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        Some(String::from_utf8(output.stdout).unwrap())
    };
    let file = kubernetes.kubeconfig().with_file_name("crd.json");
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "kettles.demo.okt.dev" },
        "spec": {
            "group": "demo.okt.dev",
            "scope": "Namespaced",
            "names": { "plural": "kettles", "kind": "Kettle" },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object" } },
            }],
        },
    });
    fs::write(&file, crd.to_string()).unwrap();
    kubectl(&["apply", "-f", file.to_str().unwrap()]);
    kubectl(&[
        "wait",
        "--for=condition=Established",
        "crd/kettles.demo.okt.dev",
    ]);
    let kettle = json!({
        "apiVersion": "demo.okt.dev/v1", "kind": "Kettle", "metadata": { "name": "red" },
    });
    fs::write(&file, kettle.to_string()).unwrap();
    // A kind is in the discovery a moment after it is established.
    eventually("the kind is in the discovery", async || {
        let mut apply = kubernetes.kubectl().unwrap();
        let output = apply.args(["apply", "-f"]).arg(&file).output();
        output.unwrap().status.success()
    })
    .await;
    let uid = kubectl(&["get", "kettle", "red", "-o", "jsonpath={.metadata.uid}"]).unwrap();
    let maps: Api<ConfigMap> = Api::default_namespaced(kubernetes.client());
    let map = json!({ "metadata": { "name": "water", "ownerReferences": [
        { "apiVersion": "demo.okt.dev/v1", "kind": "Kettle", "name": "red", "uid": uid },
    ] } });
    let map = serde_json::from_value(map).unwrap();
    maps.create(&PostParams::default(), &map).await.unwrap();

    kubectl(&["delete", "kettle", "red"]);
    eventually("the dependent is gone", async || {
        maps.get_opt("water").await.unwrap().is_none()
    })
    .await;
}

#[tokio::test]
#[ignore = "needs a real API server; run with --include-ignored"]
async fn a_killed_test_process_leaves_nothing_behind() {
    let Some(kubernetes) = start("a killed test process").await else {
        return;
    };
    // A server that this process can start, the other process can start as well.
    kubernetes.stop().await;
    let (mut holder, kubeconfig) = hold(&mut holder());
    let traces = Traces::at(&kubeconfig).await;
    assert!(traces.are_there());
    holder.kill().unwrap();
    holder.wait().unwrap();
    eventually("all traces are gone", async || !traces.are_there()).await;
}

#[tokio::test]
#[ignore = "needs a real API server; run with --include-ignored"]
async fn a_killed_server_comes_back_as_it_was() {
    let gate = FeatureGate::ShardedListAndWatch;
    let options = Kubernetes::options().feature_gate(gate, true);
    let started = options.start_or_skip("a killed server").await;
    let Some(mut kubernetes) = started.unwrap() else {
        return;
    };
    let traces = Traces::of(&kubernetes);
    let maps: Api<ConfigMap> = Api::default_namespaced(kubernetes.client());
    for round in 0..2 {
        let mut written = Vec::new();
        for number in 0..50 {
            let mut map = ConfigMap::default();
            map.metadata.name = Some(format!("map-{round}-{number}"));
            written.push(maps.create(&PostParams::default(), &map).await.unwrap());
        }
        // The kill follows without a pause: the server keeps every answered write.
        kubernetes.kill().unwrap();
        assert!(maps.get("map-0-0").await.is_err(), "it is dead");
        assert!(traces.directory.exists());
        kubernetes.restart().await.unwrap();
        for map in written {
            let name = map.metadata.name.as_deref().unwrap();
            assert_eq!(maps.get(name).await.unwrap(), map);
        }
        assert!(is_on(&kubernetes, gate).await);
    }
    kubernetes.stop().await;
    assert!(!traces.are_there(), "{traces:?}");
}

#[tokio::test]
#[ignore = "needs a real API server; run with --include-ignored"]
async fn a_killed_server_of_a_killed_test_leaves_nothing_behind() {
    let Some(kubernetes) = start("a killed server of a killed test").await else {
        return;
    };
    kubernetes.stop().await;
    let (mut holder, kubeconfig) = hold(holder().arg("killed"));
    let directory = kubeconfig.parent().unwrap();
    assert!(directory.exists());
    holder.kill().unwrap();
    holder.wait().unwrap();
    eventually("its directory is gone", async || !directory.exists()).await;
}

#[tokio::test]
#[ignore = "needs a real API server; run with --include-ignored"]
async fn a_server_from_elsewhere_is_not_killed() {
    let Some(kubernetes) = start("a server from KUBECONFIG").await else {
        return;
    };
    let mut command = holder();
    command
        .arg("killed")
        .env("KUBECONFIG", kubernetes.kubeconfig());
    let output = command.output().unwrap();
    assert!(!output.status.success());
    assert!(
        error(&output).contains("was not started here"),
        "{}",
        error(&output)
    );
    let namespaces: Api<Namespace> = Api::all(kubernetes.client());
    assert!(namespaces.get_opt("default").await.unwrap().is_some());
}

#[tokio::test]
#[ignore = "needs a real API server; run with --include-ignored"]
async fn a_running_server_on_this_machine_is_taken_and_left_running() {
    let Some(kubernetes) = start("a server from KUBECONFIG").await else {
        return;
    };
    let mut command = holder();
    command
        .arg("gated")
        .env("KUBECONFIG", kubernetes.kubeconfig());
    let output = command.output().unwrap();
    assert!(!output.status.success(), "its gate is off");
    let message = "the test needs the feature gate ShardedListAndWatch=true";
    assert!(error(&output).contains(message), "{}", error(&output));
    let mut command = holder();
    command.env("KUBECONFIG", kubernetes.kubeconfig());
    let (mut holder, kubeconfig) = hold(&mut command);
    assert_ne!(kubeconfig, kubernetes.kubeconfig(), "it has a copy");
    let taken = Traces::at(&kubeconfig).await;
    assert_eq!(taken.address, Traces::of(&kubernetes).address);
    holder.kill().unwrap();
    holder.wait().unwrap();
    let copy = kubeconfig.parent().unwrap();
    eventually("its copy is gone", async || !copy.exists()).await;
    let namespaces: Api<Namespace> = Api::all(kubernetes.client());
    assert!(namespaces.get_opt("default").await.unwrap().is_some());
}

#[test]
#[ignore = "needs a real API server; run with --include-ignored"]
fn an_unknown_cluster_is_not_used_and_the_reason_is_printed() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = without_go(&directory);
    command.env("KUBECONFIG", foreign(&directory));
    let output = command.output().unwrap();
    assert!(output.status.success(), "skipped: {output:?}");
    let printed = error(&output);
    assert!(
        printed.contains("leads to https://prod.example.com, which is not known"),
        "{printed}"
    );
}

#[test]
#[ignore = "needs a real API server; run with --include-ignored"]
fn without_go_a_test_is_skipped_but_not_in_ci() {
    let directory = tempfile::tempdir().unwrap();
    let output = without_go(&directory).output().unwrap();
    assert!(output.status.success());
    assert!(error(&output).starts_with("skipped: a server to look at: there is no Kubernetes"));
    let output = without_go(&directory).env("CI", "true").output().unwrap();
    assert!(!output.status.success());
    assert!(error(&output).contains("there is no Kubernetes"));
}

#[test]
#[ignore = "needs a real API server; run with --include-ignored"]
fn errors_of_go_are_printed() {
    use std::os::unix::fs::PermissionsExt;

    let directory = tempfile::tempdir().unwrap();
    let go = directory.path().join("go");
    fs::write(&go, "#!/bin/sh\necho 'go: no such module' >&2\nexit 1\n").unwrap();
    fs::set_permissions(&go, fs::Permissions::from_mode(0o755)).unwrap();
    let output = without_go(&directory).output().unwrap();
    assert!(!output.status.success());
    let printed = error(&output);
    assert!(
        printed.contains("building a Kubernetes API server"),
        "{printed}"
    );
    assert!(printed.contains("go: no such module"), "{printed}");
}

/// Returns the program that runs a server: the one that is in the cache already, whatever else is set.
fn holder() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubernetes"));
    for name in ["KUBECONFIG", "KUBEBUILDER_ASSETS", "OKT_TEST_CONTEXT"] {
        command.env_remove(name);
    }
    command
}

/// Returns the program with only the programs in `directory`, and with an empty cache.
fn without_go(directory: &TempDir) -> Command {
    let mut command = holder();
    command.env_remove("CI");
    command.env("PATH", directory.path());
    command.env("XDG_CACHE_HOME", directory.path());
    command
}

/// Starts the program, and waits until it prints the kubeconfig.
fn hold(command: &mut Command) -> (Child, PathBuf) {
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    output.read_line(&mut line).unwrap();
    assert!(!line.is_empty(), "it printed no kubeconfig");
    (child, PathBuf::from(line.trim_end()))
}

fn foreign(directory: &TempDir) -> PathBuf {
    let file = directory.path().join("foreign");
    let kubeconfig = json!({
        "clusters": [{ "name": "prod", "cluster": { "server": "https://prod.example.com" } }],
        "contexts": [{ "name": "prod", "context": { "cluster": "prod" } }],
        "current-context": "prod",
    });
    fs::write(&file, kubeconfig.to_string()).unwrap();
    file
}

fn error(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The traces of a server: its directory, its socket, and the processes that name the directory.
#[derive(Debug)]
struct Traces {
    directory: PathBuf,
    address: String,
}

impl Traces {
    fn of(kubernetes: &Kubernetes) -> Self {
        Self::new(kubernetes.kubeconfig(), &kubernetes.config())
    }

    async fn at(kubeconfig: &Path) -> Self {
        let read = Kubeconfig::read_from(kubeconfig).unwrap();
        let options = KubeConfigOptions::default();
        let config = Config::from_custom_kubeconfig(read, &options).await;
        Self::new(kubeconfig, &config.unwrap())
    }

    fn new(kubeconfig: &Path, config: &Config) -> Self {
        Self {
            directory: kubeconfig.parent().unwrap().to_owned(),
            address: config.cluster_url.authority().unwrap().to_string(),
        }
    }

    /// Whether any trace exists.
    fn are_there(&self) -> bool {
        self.directory.exists() || TcpStream::connect(&self.address).is_ok() || self.has_process()
    }

    /// Searches the processes of Linux; on other systems the check of the socket must do.
    fn has_process(&self) -> bool {
        let Ok(processes) = fs::read_dir("/proc") else {
            return false;
        };
        let directory = self.directory.to_str().unwrap();
        processes
            .filter_map(|process| fs::read(process.ok()?.path().join("cmdline")).ok())
            .any(|line| String::from_utf8_lossy(&line).contains(directory))
    }
}
