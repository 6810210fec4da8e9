//! A game day: each alert is provoked, `kubectl okt why` names the cause as the page of the alerts says, what it names is
//! done, and the alert goes. Hours pass at once: the metrics of each minute are given to the rules of Prometheus by promtool.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::future::pending;
use std::process::Command;
use std::time::Duration;

use jiff::Timestamp;
use kube::api::ListParams;
use okt::view::{Kind, View, Why};
use okt::{
    Answer, Delivery, Group, Lifecycle, Membership, Monitoring, Operator, Shards, TransitionEvent,
    Undelivered,
};
use okt_testing::Fault;
use okt_tests::{
    Database, DatabaseState::*, Databases, Reply, Rig, Served as _, Sight, assert_contains,
    definition,
};
use parking_lot::Mutex;
use serde_json::json;

use crate::dashboards::{DATABASES, dashboards, program};

/// The metrics of a cluster, minute by minute, and what fires in it.
struct Day {
    rig: Rig<Databases>,
    monitoring: Monitoring,
    /// The value of each series in each minute in which it was there.
    series: BTreeMap<String, BTreeMap<usize, String>>,
    minutes: usize,
    /// What fires at the end of which minute: the alerts.
    expected: Vec<(usize, Vec<&'static str>)>,
}

impl Day {
    /// Begins a day in a cluster with the CRD, and without an operator.
    async fn new() -> Self {
        Self::of(Rig::without_operator().await)
    }

    fn of(rig: Rig<Databases>) -> Self {
        Self {
            rig,
            monitoring: Monitoring::new(),
            series: BTreeMap::new(),
            minutes: 0,
            expected: Vec::new(),
        }
    }

    /// Begins a day with an operator.
    async fn with_operator() -> Self {
        let day = Self::new().await;
        day.start();
        day
    }

    fn start(&self) {
        let monitoring = self.monitoring.clone();
        self.rig
            .start_with(|operator| operator.monitoring(&monitoring));
    }

    /// Lets minutes pass, after which these alerts fire, and no other.
    async fn fires(&mut self, minutes: usize, alerts: &[&'static str]) {
        for _ in 0..minutes {
            self.rig.pass(Duration::from_mins(1)).await;
            let text = self.monitoring.metrics();
            let samples = text.lines().filter(|line| !line.starts_with('#'));
            for sample in samples {
                let sample = sample.split(" # ").next().unwrap_or_default();
                if let Some((series, value)) = sample.rsplit_once(' ') {
                    let values = self.series.entry(series.to_owned()).or_default();
                    values.insert(self.minutes, value.to_owned());
                }
            }
            self.minutes += 1;
        }
        self.expected.push((self.minutes - 1, alerts.to_vec()));
    }

    /// Returns what `kubectl okt why` says about an object, with what would move it.
    async fn why(&self, name: &str) -> String {
        let client = &self.rig.client;
        let kinds = Kind::all(client).await.expect("kinds");
        let kind = kinds.first().expect("the kind");
        let all = kind.list(client, None, ListParams::default()).await;
        let mut all = all.expect("a list").into_iter();
        let object = all.find(|it| it.metadata.name.as_deref() == Some(name));
        let view = View::of(kind, object.expect("the object"));
        let why = Why::of(client, &view, Timestamp::now()).await;
        let causes = why.causes.iter();
        let causes = causes.map(|it| format!("{}\n{}", it.what, it.remedies.join("\n")));
        causes.collect::<Vec<_>>().join("\n")
    }

    /// Asks promtool whether the alerts fired, and no others.
    fn end(self) {
        let directory = tempfile::tempdir().expect("a directory");
        let rules = dashboards(DATABASES, &["rules"]);
        std::fs::write(directory.path().join("rules.yaml"), rules).expect("a file");
        let value = |values: &BTreeMap<usize, String>| {
            // A series that is no longer there ends at once, as it does for Prometheus.
            let missing = |minute: usize| match minute.checked_sub(1) {
                Some(before) if values.contains_key(&before) => "stale",
                _ => "_",
            };
            let each = (0..self.minutes)
                .map(|minute| values.get(&minute).map_or(missing(minute), String::as_str));
            each.collect::<Vec<_>>().join(" ")
        };
        let series = self.series.iter();
        let series: Vec<_> = series
            .map(|(series, values)| json!({ "series": series, "values": value(values) }))
            .collect();
        let fire = self.expected.iter().map(|(minute, alerts)| {
            let samples = alerts
                .iter()
                .map(|alert| json!({ "labels": format!("{{alertname=\"{alert}\"}}"), "value": 1 }));
            json!({
                "expr": "count by (alertname) (ALERTS{alertstate=\"firing\"}) > bool 0",
                "eval_time": format!("{minute}m"),
                "exp_samples": samples.collect::<Vec<_>>(),
            })
        });
        let test = json!({
            "rule_files": ["rules.yaml"],
            "evaluation_interval": "1m",
            "tests": [{
                "interval": "1m",
                "input_series": series,
                "promql_expr_test": fire.collect::<Vec<_>>(),
            }],
        });
        std::fs::write(directory.path().join("test.yaml"), test.to_string()).expect("a file");
        let tested = Command::new(program("promtool"))
            .args(["test", "rules", "test.yaml"])
            .current_dir(directory.path())
            .output()
            .expect("it runs");
        let mut printed = String::from_utf8_lossy(&tested.stdout).into_owned();
        let _ = write!(printed, "{}", String::from_utf8_lossy(&tested.stderr));
        assert!(tested.status.success(), "{printed}");
    }
}

#[tokio::test(start_paused = true)]
#[ignore = "needs Prometheus: tests/prometheus/install.sh"]
async fn okt_operator_absent() {
    let mut day = Day::new().await;
    day.rig.create("db", json!({})).await;
    day.fires(20, &["OktOperatorAbsent"]).await;
    assert_contains(
        &day.why("db").await,
        "No operator has reported on the object.",
    );
    day.start();
    day.fires(2, &[]).await;
    day.end();
}

#[tokio::test(start_paused = true)]
#[ignore = "needs Prometheus: tests/prometheus/install.sh"]
async fn okt_reconcile_errors() {
    let mut day = Day::with_operator().await;
    day.fires(2, &[]).await;
    let refused = day.rig.inject(Fault::forbidden().on_writes());
    day.rig.create("db", json!({})).await;
    day.fires(60, &["OktReconcileErrors"]).await;
    assert_contains(
        &day.why("db").await,
        "No operator has reported on the object.",
    );
    refused.end();
    day.fires(40, &[]).await;
    day.rig.until_ready("db", Running).await;
    day.end();
}

#[tokio::test(start_paused = true)]
#[ignore = "needs Prometheus: tests/prometheus/install.sh"]
async fn okt_stuck_in_state() {
    let mut day = Day::with_operator().await;
    // The usual time in the state.
    for number in 0..5 {
        day.rig.create(&format!("db-{number}"), json!({})).await;
        day.fires(1, &[]).await;
    }
    let waits = Reply::Answer(Answer::Wait(Duration::from_mins(5)));
    day.rig.app.next_times(6, Start, &waits);
    day.rig.create("slow", json!({})).await;
    day.fires(25, &["OktStuckInState"]).await;
    assert_contains(&day.why("slow").await, "The work of Start");
    day.fires(10, &[]).await;
    day.rig.until_ready("slow", Running).await;
    day.end();
}

#[tokio::test(start_paused = true)]
#[ignore = "needs Prometheus: tests/prometheus/install.sh"]
async fn okt_unroutable() {
    let rig = Rig::<Databases>::bare();
    // As after a rollback: a spec asks for a state of another release.
    rig.define(definition::with_schema::<Database>(definition::any_spec))
        .await;
    let mut day = Day::of(rig);
    day.start();
    let lost = Databases::object("lost", json!({ "state": "Nirvana" }));
    day.rig.create_raw(lost).await;
    day.fires(10, &["OktUnroutable"]).await;
    assert_contains(&day.why("lost").await, "kubectl okt go");
    day.rig.ask_for("lost", json!({ "state": "Running" })).await;
    day.fires(2, &[]).await;
    day.end();
}

#[tokio::test(start_paused = true)]
#[ignore = "needs Prometheus: tests/prometheus/install.sh"]
async fn okt_writes_refused() {
    let mut day = Day::with_operator().await;
    // A role that lacks the right to patch the objects, but not their statuses.
    let writes = Fault::forbidden().resource("databases").on_writes();
    let refused = day
        .rig
        .inject(writes.matching(|request| request.subresource.is_none()));
    day.rig.create("db", json!({})).await;
    day.fires(20, &["OktReconcileErrors", "OktWritesRefused"])
        .await;
    assert_contains(&day.why("db").await, "`rbac`");
    refused.end();
    day.fires(20, &[]).await;
    day.rig.until_ready("db", Running).await;
    day.end();
}

#[tokio::test(start_paused = true)]
#[ignore = "needs Prometheus: tests/prometheus/install.sh"]
async fn okt_stalled() {
    let mut day = Day::with_operator().await;
    day.rig
        .app
        .next_time(Start, Reply::FailPermanently("the disk is broken"));
    day.rig.create("db", json!({})).await;
    day.fires(15, &["OktStalled"]).await;
    assert_contains(&day.why("db").await, "kubectl okt retry");
    day.rig
        .ask_for("db", json!({ "request": "once more" }))
        .await;
    day.fires(2, &[]).await;
    day.rig.until_ready("db", Running).await;
    day.end();
}

#[tokio::test(start_paused = true)]
#[ignore = "needs Prometheus: tests/prometheus/install.sh"]
async fn okt_watch_silent() {
    let mut day = Day::with_operator().await;
    day.rig.create_ready("db", Running).await;
    let away = day
        .rig
        .inject(Fault::no_answer().on_reads().resource("databases"));
    day.rig.server.end_watches();
    day.fires(15, &["OktWatchSilent"]).await;
    assert_contains(
        &day.monitoring
            .readiness()
            .expect_err("it knows nothing new"),
        "the API server has not served the watch of",
    );
    away.end();
    day.fires(5, &[]).await;
    day.end();
}

#[tokio::test(start_paused = true)]
#[ignore = "needs Prometheus: tests/prometheus/install.sh"]
async fn okt_loop() {
    let mut day = Day::with_operator().await;
    let back = Reply::Answer(Answer::To(Servicing.id()));
    day.rig.app.next_times(10_000, Running, &back);
    day.rig.create("db", json!({})).await;
    day.fires(60, &["OktLoop"]).await;
    assert_contains(&day.why("db").await, "It repeats transitions");
    day.rig.app.forget_replies();
    day.rig
        .ask_for("db", json!({ "state": "Running", "request": "mended" }))
        .await;
    day.fires(2, &[]).await;
    day.end();
}

#[tokio::test(start_paused = true)]
#[ignore = "needs Prometheus: tests/prometheus/install.sh"]
async fn okt_unreachable() {
    let mut day = Day::with_operator().await;
    day.rig.create_ready("db", Running).await;
    day.rig.app.sees("db", Sight::Unreachable);
    day.fires(20, &["OktUnreachable"]).await;
    assert_contains(&day.why("db").await, "cannot reach the application");
    day.rig.app.sees("db", Sight::In(Running));
    day.fires(5, &[]).await;
    day.end();
}

/// A receiver, with its answer.
#[derive(Clone, Default)]
struct Receiver(std::sync::Arc<Mutex<Option<Undelivered>>>);

impl Delivery for Receiver {
    async fn deliver(&self, _: &TransitionEvent) -> Result<(), Undelivered> {
        self.0.lock().clone().map_or(Ok(()), Err)
    }
}

#[tokio::test(start_paused = true)]
#[ignore = "needs Prometheus: tests/prometheus/install.sh"]
async fn okt_deliveries_behind_and_lost() {
    let mut day = Day::new().await;
    let receiver = Receiver::default();
    *receiver.0.lock() = Some(Undelivered::retry("503 Service Unavailable"));
    let monitoring = day.monitoring.clone();
    day.rig
        .start_with(|operator| operator.monitoring(&monitoring).deliver(receiver.clone()));
    day.rig.create_ready("db", Running).await;
    day.fires(40, &["OktDeliveriesBehind"]).await;
    *receiver.0.lock() = None;
    day.fires(20, &[]).await;
    *receiver.0.lock() = Some(Undelivered::refused("400 Bad Request"));
    day.rig.visit("db", "Servicing", "nightly").await;
    day.fires(5, &["OktDeliveriesLost"]).await;
    *receiver.0.lock() = None;
    day.fires(90, &[]).await;
    day.end();
}

#[tokio::test(start_paused = true)]
#[ignore = "needs Prometheus: tests/prometheus/install.sh"]
async fn okt_no_leader() {
    let mut day = Day::new().await;
    let leases = Fault::forbidden().resource("leases");
    let refused = day.rig.server.inject(leases);
    let group = Group::new("databases", "default")
        .replica("a")
        .virtual_time();
    let membership = Membership::join(day.rig.client.clone(), group);
    let monitoring = day.monitoring.clone();
    day.rig
        .start_with(|operator| operator.monitoring(&monitoring).replicas(&membership));
    day.rig.create("db", json!({})).await;
    day.fires(5, &["OktNoLeader"]).await;
    assert_contains(
        &day.why("db").await,
        "No operator has reported on the object.",
    );
    refused.end();
    day.fires(5, &[]).await;
    day.rig.until_ready("db", Running).await;
    day.end();
}

#[tokio::test(start_paused = true)]
#[ignore = "needs Prometheus: tests/prometheus/install.sh"]
async fn okt_ranges_without_holder() {
    let mut day = Day::new().await;
    let join = |replica| {
        let group = Group::new("databases", "default").shards(Shards::Auto);
        let group = group.replica(replica).virtual_time();
        Membership::join(day.rig.client.clone(), group)
    };
    let (here, other) = (join("a"), join("b"));
    let monitoring = day.monitoring.clone();
    day.rig
        .start_with(|operator| operator.monitoring(&monitoring).replicas(&here));
    let beside = Operator::new(day.rig.client.clone(), day.rig.app.clone()).virtual_time();
    tokio::spawn(beside.replicas(&other).run(pending()));
    // The other replica holds its ranges, and Prometheus does not reach it.
    day.fires(10, &["OktRangesWithoutHolder"]).await;
    other.leave().await;
    day.fires(5, &[]).await;
    day.end();
}

#[test]
fn every_alert_has_its_part_of_the_day() {
    let page = include_str!("../../../okt/src/alerts.md");
    let alerts: BTreeSet<&str> = page
        .lines()
        .filter_map(|it| it.strip_prefix("## "))
        .collect();
    let here = include_str!("game_day.rs");
    let missing: Vec<_> = alerts
        .into_iter()
        .filter(|alert| !here.contains(&format!("\"{alert}\"")))
        .collect();
    assert!(missing.is_empty(), "{missing:?} is never provoked");
}
