//! kube-state-metrics with the configuration that a program prints.

use std::collections::BTreeSet;
use std::future::pending;
use std::process::{Command, Stdio};
use std::time::Duration;
use std::{fs, io};

use kube::Api;
use kube::api::PostParams;
use kube::runtime::wait::await_condition;
use okt::{Operator, crd};
use okt_testing::{ApiServer, free_ports};
use okt_tests::{Database, Databases};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::process;

use super::{go_program, run};

/// Lines that are there, without the labels that all have.
const LINES: [&str; 8] = [
    "okt_object_state{state=\"Running\"} 1",
    "okt_object_state{state=\"Failed\"} 0",
    "okt_object_desired_state{state=\"Running\"} 1",
    "okt_object_condition{reason=\"Running\",type=\"Ready\"} 1",
    "okt_object_condition{reason=\"NotPaused\",type=\"Paused\"} 0",
    "okt_object_generation{} 1",
    "okt_object_observed_generation{} 1",
    "okt_object_transitions{} 2",
];

fn is_ready(object: Option<&Database>) -> bool {
    let status = object.and_then(|object| object.status.as_ref());
    let mut conditions = status.into_iter().flat_map(|status| &status.conditions);
    conditions.any(|it| it.type_ == "Ready" && it.status == "True")
}

/// Returns a line without the labels that all have.
fn without_names(line: &str) -> String {
    let mut line = line.to_owned();
    for label in [
        "customresource_group=\"demo.okt.dev\"",
        "customresource_kind=\"Database\"",
        "customresource_version=\"v1\"",
        "name=\"db\"",
        "namespace=\"default\"",
    ] {
        line = line.replace(&format!("{label},"), "").replace(label, "");
    }
    line.replace(",}", "}")
}

/// Returns the names of the metrics on a page.
fn names(page: &str) -> BTreeSet<&str> {
    let names = page.lines().filter(|line| line.starts_with("okt_"));
    names.filter_map(|line| line.split('{').next()).collect()
}

/// Returns the names in the table of the documentation.
fn documented() -> BTreeSet<&'static str> {
    let page = include_str!("../../../docs/monitoring.md");
    let words = page.split('`').skip(1).step_by(2);
    words
        .filter(|word| word.starts_with("okt_object_"))
        .collect()
}

/// Reads the page with the metrics, once the program serves it.
async fn get_metrics(port: u16) -> io::Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
    let request = b"GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n";
    stream.write_all(request).await?;
    let mut text = String::new();
    stream.read_to_string(&mut text).await?;
    Ok(text)
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "builds kube-state-metrics, which takes a minute or two"]
async fn kube_state_metrics_tells_the_state_and_the_conditions_of_each_object() {
    let server = ApiServer::new();
    let client = server.client();
    let definition = crd::<Database>().expect("a CRD");
    let made = Api::all(client.clone())
        .create(&PostParams::default(), &definition)
        .await;
    made.expect("it is accepted");
    let operator = Operator::new(server.client_named("operator"), Databases::default());
    tokio::spawn(operator.run(pending()));
    let databases: Api<Database> = Api::default_namespaced(client);
    let object = json!({
        "apiVersion": "demo.okt.dev/v1", "kind": "Database",
        "metadata": { "name": "db" }, "spec": { "storage": "1Gi" },
    });
    let object = serde_json::from_value(object).expect("a database");
    let made = databases.create(&PostParams::default(), &object).await;
    made.expect("it is accepted");
    await_condition(databases, "db", is_ready)
        .await
        .expect("a watch");

    let folder = tempfile::tempdir().expect("a folder");
    let (kubeconfig, configuration) = (folder.path().join("kubeconfig"), folder.path().join("c"));
    let served = server.serve_on(0).await.expect("a port");
    served.write_kubeconfig(&kubeconfig).expect("a kubeconfig");
    let mut print = Command::new(env!("CARGO_BIN_EXE_databases"));
    let printed = run(print.args(["dashboards", "kube-state-metrics"]));
    fs::write(&configuration, printed).expect("a file");
    let program = go_program("kube-state-metrics", "k8s.io/kube-state-metrics/v2");
    let [metrics, telemetry] = free_ports().expect("two ports");
    let mut state_metrics = process::Command::new(program);
    state_metrics
        .arg("--custom-resource-state-only")
        .arg("--custom-resource-state-config-file")
        .arg(&configuration)
        .arg("--kubeconfig")
        .arg(&kubeconfig)
        .args(["--host=127.0.0.1", "--telemetry-host=127.0.0.1"])
        .arg(format!("--port={metrics}"))
        .arg(format!("--telemetry-port={telemetry}"))
        .stdout(Stdio::null())
        .stderr(Stdio::inherit())
        .kill_on_drop(true);
    let mut state_metrics = state_metrics.spawn().expect("it starts");
    loop {
        if let Some(ended) = state_metrics.try_wait().expect("a process") {
            panic!("it ended: {ended}");
        }
        let text = get_metrics(metrics).await.unwrap_or_default();
        // It knows all of an object at once.
        if !text.contains("okt_object_generation{") {
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        }
        let lines: Vec<_> = text.lines().map(without_names).collect();
        for line in LINES {
            assert!(lines.iter().any(|it| it == line), "{line} of {lines:#?}");
        }
        assert_eq!(names(&text), documented());
        return;
    }
}
