//! The operator as a program.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use okt_testing::{Fault, Served, Verb};
use okt_tests::{
    Charts, Database, DatabaseState, Databases, Objects, Rig, Served as _, SiteState, Sites,
    assert_contains, in_time,
};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

fn databases(arguments: &[&str], kubeconfig: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_databases"))
        .args(arguments)
        .env("KUBECONFIG", kubeconfig)
        .env_remove("KUBERNETES_SERVICE_HOST")
        .env("RUST_BACKTRACE", "0")
        .output()
        .expect("it starts")
}

fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_missing_kubeconfig_is_reported_in_one_line() {
    let output = databases(&["run"], "/nowhere/kubeconfig");
    assert_eq!(output.status.code(), Some(1));
    let printed = printed(&output);
    assert!(
        printed.starts_with("error: cannot find a cluster: "),
        "{printed}"
    );
    assert!(printed.contains("/nowhere/kubeconfig"), "{printed}");
    assert_eq!(printed.lines().count(), 1, "{printed}");
}

#[test]
fn an_unreachable_cluster_is_waited_for_and_reported_with_its_url() {
    let directory = tempfile::tempdir().expect("a directory");
    let kubeconfig = directory.path().join("kubeconfig");
    let text = "{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: 'http://127.0.0.1:9'}}], contexts: [{name: c, context: {cluster: c, user: u}}], users: [{name: u, user: {}}]}";
    std::fs::write(&kubeconfig, text).expect("a file");
    let mut program = Command::new(env!("CARGO_BIN_EXE_databases"))
        .arg("run")
        .env("KUBECONFIG", &kubeconfig)
        .env("RUST_LOG", "okt=info")
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let printed = BufReader::new(program.stderr.take().expect("it is piped"));
    let mut lines = printed.lines().map(|line| line.expect("text"));
    let starts = lines.next().expect("a log line about the start");
    // If it fails, the next line does not follow.
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
    expect_test::expect_file!["database.rbac.yaml"].assert_eq(&yaml);
}

#[test]
fn an_invalid_service_account_is_reported_in_one_line() {
    let output = databases(&["rbac", "--service-account", "databases"], "/nowhere");
    assert_eq!(output.status.code(), Some(2));
    let printed = printed(&output);
    assert_contains(&printed, "a service account is written NAMESPACE/NAME");
}

#[test]
fn the_install_manifests_are_printed_without_what_exists_already() {
    let install = |more: &[&str]| {
        let image = ["manifests", "--image", "registry.example/databases:1"];
        let output = databases(&[&image[..], more].concat(), "/nowhere/kubeconfig");
        assert!(output.status.success(), "{}", printed(&output));
        let yaml = String::from_utf8(output.stdout).expect("text");
        yaml.split("---\n").map(str::to_owned).collect::<Vec<_>>()
    };
    let documents = install(&["--namespace", "team-a"]);
    // The definition and the roles have snapshots of their own.
    let is_other = |it: &&String| it.contains("CustomResourceDefinition") || it.contains("rbac");
    let own: Vec<_> = (documents.iter())
        .filter(|it| !is_other(it))
        .map(String::as_str)
        .collect();
    expect_test::expect_file!["database.manifests.yaml"].assert_eq(&own.join("---\n"));
    assert_eq!(documents[2], include_str!("database.crd.yaml"));
    let roles = include_str!("database.rbac.yaml");
    let roles = roles.replace("namespace: ops", "namespace: databases-system");
    let printed: Vec<_> = documents[3..].iter().filter(is_other).cloned().collect();
    assert_eq!(printed.join("---\n"), roles);

    let elsewhere = install(&["--service-account", "ops/databases"]);
    assert_eq!(
        elsewhere[0],
        own[1].replace("namespace: databases-system", "namespace: ops")
    );
}

#[test]
fn an_invalid_image_namespace_or_account_is_reported_before_anything_is_printed() {
    for (arguments, why) in [
        (&["manifests"][..], "--image <IMAGE>"),
        (&["manifests", "--image", ""], "a name without spaces"),
        (&["manifests", "--image", "a b"], "a name without spaces"),
        (&["run", "--namespace", "Team_A"], "lower case letters"),
        (&["rbac", "--namespace", "a-"], "lower case letters"),
        (&["rbac", "--namespace", ""], "lower case letters"),
        (
            &[
                "manifests",
                "--image",
                "a",
                "--service-account",
                "ops/My_DB",
            ],
            "NAMESPACE/NAME",
        ),
    ] {
        let output = databases(arguments, "/nowhere/kubeconfig");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(printed(&output).contains(why), "{}", printed(&output));
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
}

#[test]
fn a_cluster_scoped_kind_gets_a_cluster_role_next_to_a_namespaced_kind() {
    let output = Command::new(env!("CARGO_BIN_EXE_three-operators"))
        .args(["rbac", "--namespace", "team-a"])
        .output()
        .expect("it starts");
    assert!(output.status.success(), "{}", printed(&output));
    let yaml = String::from_utf8_lossy(&output.stdout).into_owned();
    let granting = |resource: &str| {
        let what = format!("  - {resource}\n  verbs:\n  - list\n  - watch\n  - patch\n");
        let documents: Vec<_> = yaml
            .split("---\n")
            .filter(|it| it.contains(&what))
            .collect();
        assert_eq!(documents.len(), 1, "{yaml}");
        documents[0].to_owned()
    };
    assert!(granting("databases").contains("kind: Role\n"));
    assert!(granting("databases").contains("namespace: team-a\n"));
    assert!(granting("sites").contains("kind: ClusterRole\n"));
}

#[test]
fn without_a_subcommand_the_program_lists_its_subcommands() {
    let output = databases(&[], "/nowhere/kubeconfig");
    assert_eq!(output.status.code(), Some(2));
    let printed = printed(&output);
    assert!(
        printed.contains("run") && printed.contains("crd"),
        "{printed}"
    );
}

#[test]
fn a_program_of_three_operators_prints_three_definitions() {
    let output = Command::new(env!("CARGO_BIN_EXE_three-operators"))
        .arg("crd")
        .output()
        .expect("it starts");
    let yaml = String::from_utf8_lossy(&output.stdout).into_owned();
    let documents: Vec<_> = yaml.split("---\n").collect();
    assert_eq!(documents.len(), 3);
    assert_eq!(documents[0], include_str!("database.crd.yaml"));
    assert!(documents[1].contains("name: sites.demo.okt.dev"));
    assert!(documents[2].contains("name: charts.demo.okt.dev"));
}

/// A program of three operators against the API in this process; dropping this value kills it.
pub(crate) struct Three {
    program: Child,
    log: Option<Box<dyn Iterator<Item = String>>>,
    _kubeconfig: tempfile::NamedTempFile,
    _served: Served,
}

impl Three {
    pub(crate) async fn run(rig: &Rig<Databases>, arguments: &[&str]) -> Self {
        let served = rig.server.serve().await.expect("a socket");
        let kubeconfig = tempfile::NamedTempFile::new().expect("a file");
        served.write_kubeconfig(kubeconfig.path()).expect("a file");
        let program = Command::new(env!("CARGO_BIN_EXE_three-operators"))
            .arg("run")
            .args(arguments)
            .env("KUBECONFIG", kubeconfig.path())
            .env("RUST_LOG", "okt=info")
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        Self {
            program,
            log: None,
            _kubeconfig: kubeconfig,
            _served: served,
        }
    }

    /// Returns the standard error output.
    /// Starts the program, and waits until it has logged that it serves something, and at which address.
    pub(crate) async fn serving(
        rig: &Rig<Databases>,
        arguments: &[&str],
        what: &str,
    ) -> (Self, String) {
        let mut three = Self::run(rig, arguments).await;
        let stderr = three.program.stderr.take().expect("it is piped");
        let mut lines = BufReader::new(stderr).lines().map_while(Result::ok);
        let line = lines.find(|line| line.contains(what)).expect("it serves");
        let (_, address) = line.split_once("address=").expect("an address");
        let address = address.to_owned();
        // A program whose log nobody can read any more would end.
        three.log = Some(Box::new(lines));
        (three, address)
    }

    /// Sends SIGTERM; returns the exit code and the standard error output.
    async fn stop(self) -> (Option<i32>, String) {
        let pid = self.program.id().to_string();
        let killed = Command::new("kill").arg(&pid).status().expect("kill");
        assert!(killed.success());
        self.end().await
    }

    /// Waits until the program has ended; returns the exit code and the standard error output.
    async fn end(mut self) -> (Option<i32>, String) {
        let mut stderr = self.program.stderr.take().expect("it is piped");
        let printed = tokio::task::spawn_blocking(move || {
            let mut printed = String::new();
            stderr.read_to_string(&mut printed).expect("text");
            printed
        });
        let printed = in_time("it has ended", printed).await.expect("no panic");
        let status = self.program.wait().expect("a status");
        (status.code(), printed)
    }
}

impl Drop for Three {
    fn drop(&mut self) {
        // Most often it has ended already.
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

#[tokio::test]
async fn a_program_of_three_operators_serves_all_and_exits_with_0_at_sigterm() {
    let databases = Rig::<Databases>::without_operator().await;
    let sites = Rig::<Sites>::beside(&databases).await;
    let charts = Rig::<Charts>::beside(&databases).await;
    let three = Three::run(&databases, &[]).await;
    databases.create("db", json!({})).await;
    sites.create("s", json!({})).await;
    charts.create("chart", json!({})).await;
    let all = async {
        databases.until_ready("db", DatabaseState::Running).await;
        sites.until_ready("s", SiteState::Online).await;
        charts.until_reason("chart", "Ready", "Complete").await;
    };
    in_time("all are served", all).await;
    let (code, _) = three.stop().await;
    assert_eq!(code, Some(0));
}

/// Returns the body of an answer.
pub(crate) fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").expect("a body").1
}

/// Sends a GET request (HTTP/1.0, so that the body is in one piece); returns the status code, the headers and the body.
pub(crate) async fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).await.expect("it listens");
    let request = format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n");
    (stream.write_all(request.as_bytes()).await).expect("it reads");
    let mut answer = String::new();
    (stream.read_to_string(&mut answer).await).expect("it answers");
    answer
}

/// Sends GET requests until the answer contains these words; returns it.
async fn until_answer(address: &str, path: &str, words: &str) -> String {
    let answer = async {
        loop {
            let answer = get(address, path).await;
            if answer.contains(words) {
                return answer;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    in_time(&format!("{path} says {words:?}"), answer).await
}

#[tokio::test]
async fn a_program_serves_its_metrics_and_its_health() {
    let databases = Rig::<Databases>::without_operator().await;
    let any = "127.0.0.1:0";
    let arguments = ["--metrics-address", any, "--health-address", ""];
    let (three, address) = Three::serving(&databases, &arguments, "serves metrics").await;
    // Its first request was answered.
    let answer = until_answer(&address, "/metrics", "\nrest_client_requests_total{").await;
    assert!(answer.starts_with("HTTP/1.0 200 OK"), "{answer}");
    assert!(answer.contains("application/openmetrics-text"), "{answer}");
    let durations = "\nrest_client_request_duration_seconds_bucket{";
    assert!(answer.contains(durations), "{answer}");
    assert!(answer.ends_with("# EOF\n"), "{answer}");
    assert!(get(&address, "/livez").await.starts_with("HTTP/1.0 404"));
    drop(three);

    let arguments = ["--metrics-address", "", "--health-address", any];
    let (_three, address) = Three::serving(&databases, &arguments, "serves health").await;
    assert!(get(&address, "/livez").await.ends_with("\r\n\r\nok\n"));
    // Two of the three have no CRD.
    let answer = until_answer(&address, "/readyz", "[-] site: there is no CRD").await;
    assert!(answer.starts_with("HTTP/1.0 503"), "{answer}");
    assert!(get(&address, "/statusz").await.starts_with("HTTP/1.0 200"));
    assert!(get(&address, "/metrics").await.starts_with("HTTP/1.0 404"));

    // The address is in use.
    let arguments = ["--metrics-address", &address, "--health-address", ""];
    let (code, printed) = Three::run(&databases, &arguments).await.end().await;
    assert_eq!(code, Some(1));
    assert_contains(&printed, &format!("cannot listen on {address}: "));
    assert!(printed.contains("see --metrics-address"), "{printed}");
}

#[tokio::test]
async fn a_program_serves_the_map_of_its_objects() {
    let databases = Rig::<Databases>::without_operator().await;
    databases.create("db", json!({})).await;
    let (three, address) = Three::serving(
        &databases,
        &["--map-address", "127.0.0.1:0"],
        "serves the map",
    )
    .await;
    let page = get(&address, "/").await;
    assert!(page.contains("<title>OKT map</title>"), "{page}");
    // The stream of changes has no end.
    let mut stream = TcpStream::connect(&address).await.expect("it listens");
    let request = format!("GET /events HTTP/1.0\r\nHost: {address}\r\n\r\n");
    (stream.write_all(request.as_bytes()).await).expect("it reads");
    let running = async {
        let (mut text, mut buffer) = (String::new(), [0; 4096]);
        while !text.contains(r#""name":"db""#) || !text.contains(r#""state":"Running""#) {
            let length = stream.read(&mut buffer).await.expect("it goes on");
            assert!(length > 0, "the stream has ended: {text}");
            text.push_str(&String::from_utf8_lossy(&buffer[..length]));
        }
    };
    in_time("the map shows where the database is", running).await;
    let uid = databases.get("db").await.and_then(|db| db.metadata.uid);
    // The roles of an operator have no `get`.
    let fault = Fault::forbidden().on(Verb::Get).resource("databases");
    let fault = databases.server.inject(fault);
    let details = get(&address, &format!("/objects/{}", uid.expect("a uid"))).await;
    assert!(details.contains(r#""state":"Running""#), "{details}");
    fault.end();
    drop(three);

    let everybody = Three::run(&databases, &["--map-address", ":0"]).await;
    let (code, printed) = everybody.end().await;
    assert_eq!(code, Some(1));
    assert_contains(&printed, "it needs a token; see --map-address");
}

#[tokio::test]
async fn a_limit_to_namespaces_excludes_other_namespaces_but_no_cluster_scoped_object() {
    let databases = Rig::<Databases>::without_operator().await;
    let sites = Rig::<Sites>::beside(&databases).await;
    let charts = Rig::<Charts>::beside(&databases).await;
    databases.create_namespace("team-a").await;
    let elsewhere = databases.within::<Database>("team-a");
    elsewhere.make(Databases::object("db", json!({}))).await;
    databases.create("db", json!({})).await;
    sites.create("s", json!({})).await;

    let three = Three::run(&databases, &["--namespace", "default"]).await;
    charts.create("chart", json!({})).await;
    let all = async {
        databases.until_ready("db", DatabaseState::Running).await;
        sites.until_ready("s", SiteState::Online).await;
        charts.until_reason("chart", "Ready", "Complete").await;
    };
    in_time("all are served", all).await;
    let (code, printed) = three.stop().await;
    assert_eq!(code, Some(0));
    let other = elsewhere.get("db").await.expect("it is there");
    assert!(other.status.and_then(|status| status.lifecycle).is_none());
    let whole: Vec<_> = (printed.lines())
        .filter(|line| line.contains("in the whole cluster"))
        .collect();
    assert_eq!(whole.len(), 1, "{printed}");
    assert!(whole[0].contains("sites.demo.okt.dev"), "{printed}");
}

#[test]
fn options_come_from_the_command_line_the_environment_and_a_file_in_this_order() {
    let directory = tempfile::tempdir().expect("a directory");
    let config = directory.path().join("config.yaml");
    let run = |file: &str, variables: &[(&str, &str)], arguments: &[&str]| {
        std::fs::write(&config, file).expect("a file");
        let mut program = Command::new(env!("CARGO_BIN_EXE_three-operators"));
        let output = (program
            .args(["run", "--config"])
            .arg(&config)
            .args(arguments))
        .envs(variables.iter().copied())
        .env("KUBECONFIG", "/nowhere")
        .output();
        printed(&output.expect("it starts"))
    };
    // Each value is refused, with itself in the message, so the message shows which one counts.
    assert!(run("shards: file", &[], &[]).contains("'file' for '--shards"));
    let variable = [("OKT_SHARDS", "variable")];
    assert!(run("shards: file", &variable, &[]).contains("'variable' for '--shards"));
    let line = run("shards: file", &variable, &["--shards", "line"]);
    assert!(line.contains("'line' for '--shards"), "{line}");
    // The author's own options come from the file too.
    let printed = run("greeting: good day\n", &[], &[]);
    assert!(printed.contains("cannot find a cluster"), "{printed}");
    let printed = run("greting: good day\n", &[], &[]);
    assert!(
        printed.contains("`greting` is no option of `run`"),
        "{printed}"
    );
}

#[test]
fn a_subcommand_of_the_author_runs() {
    let program = |arguments: &[&str]| {
        let mut program = Command::new(env!("CARGO_BIN_EXE_three-operators"));
        program.args(arguments).output().expect("it starts")
    };
    let output = program(&["echo", "hello"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "hello\n");
    assert_eq!(program(&["echo"]).status.code(), Some(2));
    let help = program(&["--help"]);
    let help = String::from_utf8_lossy(&help.stdout).into_owned();
    for word in [
        "run",
        "crd",
        "rbac",
        "manifests",
        "graph",
        "argo-cd",
        "echo",
    ] {
        assert!(help.contains(&format!("  {word} ")), "{help}");
    }
    assert!(help.contains("Run the operator until"), "{help}");
    let help = program(&["run", "--help"]);
    let help = String::from_utf8_lossy(&help.stdout).into_owned();
    assert!(help.starts_with("Run the operator until"), "{help}");
    assert!(help.contains("--greeting"), "{help}");
}

#[test]
fn the_graphs_are_printed() {
    let graph = |format: &str| {
        let output = databases(&["graph", "--format", format], "/nowhere");
        String::from_utf8(output.stdout).expect("text")
    };
    assert!(graph("mermaid").starts_with("stateDiagram-v2\n"));
    assert!(graph("dot").starts_with("digraph \"DatabaseState\""));
    let json: Value = serde_json::from_str(&graph("json")).expect("JSON");
    assert_eq!(json["name"], "DatabaseState");
}

#[tokio::test]
async fn two_processes_share_the_work_and_the_second_takes_over_when_the_first_is_told_to_stop() {
    let databases = Rig::<Databases>::without_operator().await;
    let charts = Rig::<Charts>::beside(&databases).await;
    let _sites = Rig::<Sites>::beside(&databases).await;
    let sharing = ["--leader-election", "--lease-duration=3s"];
    let first = Three::run(&databases, &sharing).await;
    databases.create("one", json!({})).await;
    let ready = databases.until_ready("one", DatabaseState::Running);
    in_time("the first leads", ready).await;
    let second = Three::run(&databases, &sharing).await;
    let (code, printed) = first.stop().await;
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.contains("acts on 64 of 64 ranges"), "{printed}");
    charts.create("chart", json!({})).await;
    let complete = charts.until_reason("chart", "Ready", "Complete");
    in_time("the second leads", complete).await;
    assert_eq!(second.stop().await.0, Some(0));
}
