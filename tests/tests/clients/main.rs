//! Runs test suites of other projects, in Go, Python and Java, on the double and on a real API server, and compares
//! the results test by test; and operators of other frameworks on the double, with faults ([`lives`]).
//! `tests/clients/README.md` says what each needs; everything else is installed below `target/clients`.
//!
//! ```sh
//! cargo test -p okt-tests --test clients -- --include-ignored --nocapture --test-threads 1 helm
//! ```

mod lives;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use okt_testing::{ApiServer, Kubernetes, controllers};
use tokio::process;
use tokio::time::timeout;

/// The limit of a suite on one server. Its tests have limits of their own; the downloads and the build before have none.
const LIMIT: Duration = Duration::from_mins(20);

/// A suite of `tests/clients`.
struct Suite {
    name: &'static str,
    arguments: &'static [&'static str],
    /// Workloads come to ready, which no real server without a kubelet does.
    has_controllers: bool,
    /// The tests that pass on a real server and fail on the double, with the reason.
    known: &'static [(&'static str, &'static str)],
}

impl Suite {
    const fn of(name: &'static str) -> Self {
        Self {
            name,
            arguments: &[],
            has_controllers: false,
            known: &[],
        }
    }
}

/// Whether each test passes, by its name.
type Results = BTreeMap<String, bool>;

/// Runs a suite on both servers, and fails if a test passes on the real one only and is not known to.
async fn compare(suite: Suite) {
    let name = suite.name;
    let started = Kubernetes::start_or_skip(&format!("the suite {name}")).await;
    let Some(kubernetes) = started.expect("the real server starts") else {
        return;
    };
    let kubectl = kubernetes.kubectl();
    let real = run(&suite, kubernetes.kubeconfig(), kubectl.as_ref()).await;
    kubernetes.stop().await;

    let server = ApiServer::new();
    let served = server.serve_tls_on(0).await.expect("a port");
    let folder = tempfile::tempdir().expect("a folder");
    let kubeconfig = folder.path().join("kubeconfig");
    served
        .write_kubeconfig(&kubeconfig)
        .expect("the kubeconfig is written");
    if suite.has_controllers {
        for controller in [
            controllers::kubelet(),
            controllers::deployment_controller(),
            controllers::job_controller(),
        ] {
            tokio::spawn(controller.run(server.client_named("controllers")));
        }
    }
    let double = run(&suite, &kubeconfig, kubectl.as_ref()).await;

    let passed = |results: &Results| results.values().filter(|passes| **passes).count();
    println!(
        "{name}: the double {}/{}, kube-apiserver {}/{}",
        passed(&double),
        double.len(),
        passed(&real),
        real.len()
    );
    let passes = |results: &Results, test: &str| results.get(test).copied().unwrap_or(false);
    let mut unknown = Vec::new();
    for test in real
        .keys()
        .filter(|test| passes(&real, test) && !passes(&double, test))
    {
        let reason = suite.known.iter().find(|(known, _)| known == test);
        println!(
            "  fails on the double only: {test}: {}",
            reason.map_or("?", |(_, reason)| reason)
        );
        if reason.is_none() {
            unknown.push(test);
        }
    }
    for test in double
        .keys()
        .filter(|test| passes(&double, test) && !passes(&real, test))
    {
        println!("  passes on the double only: {test}");
    }
    assert!(
        unknown.is_empty(),
        "{} tests fail on the double only: {unknown:#?}",
        unknown.len()
    );
}

/// Runs a suite and returns its results.
async fn run(suite: &Suite, kubeconfig: &Path, kubectl: Option<&Command>) -> Results {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let work = root.join("../target/clients");
    std::fs::create_dir_all(&work).expect("a folder");
    let mut command = process::Command::new(root.join("clients").join(suite.name).join("run"));
    command
        .arg(work.canonicalize().expect("it exists"))
        .args(suite.arguments)
        .env("KUBECONFIG", kubeconfig)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .kill_on_drop(true);
    if let Some(kubectl) = kubectl {
        let words = std::iter::once(kubectl.get_program()).chain(kubectl.get_args());
        let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
        command.env("KUBECTL", words.join(" "));
    }
    let output = timeout(LIMIT, command.output()).await;
    let output = output.expect("the script ends");
    let output = output.expect("the script starts");
    assert!(output.status.success(), "{} cannot be run", suite.name);
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    let results = lines.lines().filter_map(|line| line.split_once(' '));
    results
        .map(|(result, test)| (test.to_owned(), result == "pass"))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes 8 minutes, and needs Go"]
async fn controller_runtime_passes_as_on_a_real_server() {
    compare(Suite::of("controller-runtime")).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes a minute, and needs Go"]
async fn an_operator_of_kubebuilder_passes_as_on_a_real_server() {
    compare(Suite::of("kubebuilder")).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes 2 minutes, and needs Go"]
async fn helm_passes_as_on_a_real_server() {
    compare(Suite::of("helm")).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes 2 minutes, and needs Python"]
async fn the_python_client_passes_as_on_a_real_server() {
    let known = &[(
        "client/test_client.py::test_token_review",
        "every token is good unless the test says otherwise",
    )];
    compare(Suite {
        known,
        ..Suite::of("python")
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes 6 minutes, and needs Python"]
async fn kopf_passes_as_on_a_real_server() {
    compare(Suite::of("kopf")).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes 3 minutes, and needs Java and Maven"]
async fn fabric8_and_an_operator_of_josdk_pass_as_on_a_real_server() {
    compare(Suite::of("fabric8")).await;
}
