//! What monitors an operator: its dashboard and its rules, and a real Prometheus that reads them and the metrics.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use okt_testing::free_ports;
use okt_tests::{Database, DatabaseState::*, Databases, Rig, Served as _, definition, until};
use serde_json::{Value, json};

use crate::program::{Three, body, get};

/// Runs the subcommand `dashboards` of a program; returns what it prints.
pub(crate) fn dashboards(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program)
        .arg("dashboards")
        .args(arguments)
        .output();
    let output = output.expect("it runs");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("text")
}

pub(crate) const DATABASES: &str = env!("CARGO_BIN_EXE_databases");

#[test]
fn a_dashboard_has_the_states_of_the_graph() {
    let printed = dashboards(DATABASES, &["grafana"]);
    expect_test::expect_file!["database.dashboard.json"].assert_eq(&printed);
    let manifest = dashboards(DATABASES, &["grafana", "--manifest"]);
    let manifest: Value = serde_saphyr::from_str(&manifest).expect("YAML");
    assert_eq!(manifest["data"]["okt-databases.json"], json!(printed));
}

#[test]
fn a_dashboard_shows_who_waits_only_where_the_graph_has_gates() {
    let gates = "okt_gate_waiting{controller=\\\"mill\\\"}";
    let printed = dashboards(env!("CARGO_BIN_EXE_mills"), &["grafana"]);
    assert!(printed.contains(gates), "{printed}");
    assert!(!dashboards(DATABASES, &["grafana"]).contains("okt_gate_"));
}

#[test]
fn the_rules_have_the_passing_states_of_the_graph() {
    let printed = dashboards(DATABASES, &["rules"]);
    expect_test::expect_file!["database.rules.yaml"].assert_eq(&printed);
    let rules: Value = serde_saphyr::from_str(&printed).expect("YAML");
    let manifest = dashboards(DATABASES, &["rules", "--manifest"]);
    let manifest: Value = serde_saphyr::from_str(&manifest).expect("YAML");
    assert_eq!(manifest["spec"], rules);
}

/// The programs of Prometheus, as `tests/prometheus/install.sh` puts them.
pub(crate) fn program(name: &str) -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .parent()
        .expect("the target directory");
    let path = target.join("prometheus/usr/bin").join(name);
    assert!(
        path.exists(),
        "no {}: run tests/prometheus/install.sh",
        path.display()
    );
    path
}

/// A Prometheus; it ends with this value.
struct Prometheus {
    process: Child,
    address: String,
    _directory: tempfile::TempDir,
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Prometheus {
    /// Starts a Prometheus that reads these metrics and evaluates these rules, each second.
    async fn start(metrics: &str, rules: &str) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let file = |name: &str| directory.path().join(name);
        std::fs::write(file("rules.yaml"), rules).expect("a file");
        let checked = Command::new(program("promtool"))
            .args(["check", "rules"])
            .arg(file("rules.yaml"))
            .output();
        let checked = checked.expect("it runs");
        assert!(checked.status.success(), "{checked:?}");
        let config = json!({
            "global": { "scrape_interval": "1s", "evaluation_interval": "1s" },
            "rule_files": ["rules.yaml"],
            "scrape_configs": [{ "job_name": "databases", "static_configs": [{ "targets": [metrics] }] }],
        });
        std::fs::write(file("prometheus.yml"), config.to_string()).expect("a file");
        let [port] = free_ports().expect("a port");
        let address = format!("127.0.0.1:{port}");
        let process = Command::new(program("prometheus"))
            .arg(format!(
                "--config.file={}",
                file("prometheus.yml").display()
            ))
            .arg(format!("--storage.tsdb.path={}", file("data").display()))
            .arg(format!("--web.listen-address={address}"))
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let prometheus = Self {
            process: process.expect("it starts"),
            address,
            _directory: directory,
        };
        while std::net::TcpStream::connect(&prometheus.address).is_err() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        prometheus
    }

    /// Sends a query; returns the result, or the error.
    async fn query(&self, query: &str) -> Result<Vec<Value>, String> {
        let query: String = form_urlencoded::byte_serialize(query.as_bytes()).collect();
        let answer = get(&self.address, &format!("/api/v1/query?query={query}")).await;
        let answer: Value =
            serde_json::from_str(body(&answer)).map_err(|error| format!("{error}: {answer}"))?;
        match answer["data"]["result"].as_array() {
            Some(result) => Ok(result.clone()),
            None => Err(answer.to_string()),
        }
    }

    /// Waits until the first series of a query has such a value.
    async fn until(&self, query: &str, is_wanted: impl Fn(&str) -> bool) {
        until(query, async || {
            // It answers 503 until it has started.
            let result = self.query(query).await.unwrap_or_default();
            let first = result.first().and_then(|it| it["value"][1].as_str());
            first.is_some_and(&is_wanted)
        })
        .await;
    }
}

#[tokio::test]
#[ignore = "needs Prometheus: tests/prometheus/install.sh"]
async fn a_real_prometheus_reads_the_metrics_and_the_rules() {
    let rig = Rig::<Databases>::bare();
    // As after a rollback: a spec asks for a state of another release.
    rig.define(definition::with_schema::<Database>(definition::any_spec))
        .await;
    rig.create("db", json!({})).await;
    rig.create_raw(Databases::object("lost", json!({ "state": "Nirvana" })))
        .await;
    let arguments = ["--metrics-address", "127.0.0.1:0", "--health-address", ""];
    let (_three, address) = Three::serving(&rig, &arguments, "serves metrics").await;
    rig.until_ready("db", Running).await;
    let rules = dashboards(env!("CARGO_BIN_EXE_three-operators"), &["rules"]);
    let prometheus = Prometheus::start(&address, &rules).await;

    let running = r#"okt_objects{controller="database",state="Running"}"#;
    prometheus.until(running, |value| value == "2").await;
    prometheus.until("up", |value| value == "1").await;
    // A histogram with exemplars, a counter, and the names of controller-runtime.
    for query in [
        r#"okt_state_duration_seconds_count{state="Start"}"#,
        r#"okt_transitions_total{from="Start",to="Running"}"#,
        r#"controller_runtime_reconcile_total{controller="database",result="requeue_after"}"#,
        "process_resident_memory_bytes",
    ] {
        prometheus.until(query, |value| value != "0").await;
    }
    // The alert waits for its five minutes.
    let alert =
        r#"ALERTS{alertname="OktUnroutable",reason="UnknownDesiredState",alertstate="pending"}"#;
    prometheus.until(alert, |value| value == "1").await;
    // The health of a rule is unknown until it is evaluated.
    until("all rules are healthy", async || {
        let answer = get(&prometheus.address, "/api/v1/rules").await;
        let answer: Value = serde_json::from_str(body(&answer)).expect("JSON");
        let groups = answer["data"]["groups"].as_array().expect("groups");
        assert_eq!(groups.len(), 4, "three operators, and the replicas");
        let mut rules = groups
            .iter()
            .flat_map(|group| group["rules"].as_array().expect("rules"));
        rules.all(|rule| {
            assert_ne!(rule["health"], "err", "{rule}");
            rule["health"] == "ok"
        })
    })
    .await;
    // Every query of the dashboard is one.
    let dashboard: Value =
        serde_json::from_str(include_str!("database.dashboard.json")).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels").iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().into_iter().flatten());
    let mut queries = 0;
    for target in targets {
        let query = target["expr"].as_str().expect("a query");
        let query = query.replace("$__rate_interval", "1m");
        prometheus.query(&query).await.expect(&query);
        queries += 1;
    }
    assert!(queries > 20, "{queries}");
}
