//! The Prometheus rules of a program: one group for each operator, made from its graph, and one for the replicas.
//!
//! `okt/src/alerts.md` says what each alert means and what to do; a test compares the two.

use okt_core::{Graph, reasons};
use serde_json::{Value, json};

use okt_sharding::ranges::RANGES;

/// The page about the alerts.
const PAGE: &str = "https://docs.rs/okt/latest/okt/alerts/index.html";

/// An operator, as its metrics name it.
pub(crate) struct Monitored {
    /// The label `controller`: the kind in lower case.
    pub(crate) controller: String,
    /// The graph of its lifecycle, if it has one.
    pub(crate) graph: Option<&'static Graph<'static>>,
}

/// An alert.
struct Alert {
    name: &'static str,
    expression: String,
    /// How long it must be so.
    lasts: &'static str,
    severity: &'static str,
    /// What happens, with values of labels.
    summary: String,
}

impl Alert {
    fn rule(&self) -> Value {
        let anchor = self.name.to_lowercase();
        json!({
            "alert": self.name,
            "expr": self.expression,
            "for": self.lasts,
            "labels": { "severity": self.severity },
            "annotations": {
                "summary": self.summary,
                "runbook_url": format!("{PAGE}#{anchor}"),
            },
        })
    }
}

/// Returns the rules, as a file of Prometheus.
pub(crate) fn rules(operators: &[Monitored]) -> Value {
    let group = |name: String, alerts: Vec<Alert>| {
        let rules: Vec<_> = alerts.iter().map(Alert::rule).collect();
        json!({ "name": name, "rules": rules })
    };
    let mut groups: Vec<_> = operators
        .iter()
        .enumerate()
        .map(|(number, it)| {
            // The names of groups differ, even if kinds of two API groups have the same name, and share their metrics.
            let is_same = |other: &Monitored| other.controller == it.controller;
            let name = match operators.iter().position(is_same) {
                Some(first) if first < number => format!("okt-{}-{number}", it.controller),
                _ => format!("okt-{}", it.controller),
            };
            group(name, of_operator(it))
        })
        .collect();
    groups.push(group("okt-replicas".to_owned(), of_replicas()));
    json!({ "groups": groups })
}

/// Returns the rules as a `PrometheusRule` of the Prometheus Operator.
pub(crate) fn prometheus_rule(name: &str, operators: &[Monitored]) -> Value {
    json!({
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": { "name": name },
        "spec": rules(operators),
    })
}

/// The reasons that only a change of the spec or of the graph mends.
const UNROUTABLE: [&str; 3] = [
    reasons::NO_ROUTE,
    reasons::UNKNOWN_DESIRED_STATE,
    reasons::UNKNOWN_STATE,
];

/// The reasons by which the API server refuses what the operator writes.
const REFUSED: [&str; 5] = [
    reasons::REFUSED,
    reasons::FORBIDDEN,
    reasons::WRITE_FAILED,
    reasons::resources::REFUSED,
    reasons::resources::FORBIDDEN,
];

fn of_operator(operator: &Monitored) -> Vec<Alert> {
    let controller = &operator.controller;
    let of = format!("controller=\"{controller}\"");
    let mut alerts = vec![
        Alert {
            name: "OktOperatorAbsent",
            expression: format!("absent(controller_runtime_max_concurrent_reconciles{{{of}}})"),
            lasts: "10m",
            severity: "critical",
            summary: format!(
                "no operator of {controller} is running, or Prometheus does not reach it"
            ),
        },
        Alert {
            name: "OktReconcileErrors",
            expression: format!(
                "sum by (controller) (rate(controller_runtime_reconcile_errors_total{{{of}}}[10m])) > 0.1 * \
                 sum by (controller) (rate(controller_runtime_reconcile_total{{{of}}}[10m])) \
                 or sum by (controller) (increase(controller_runtime_terminal_reconcile_errors_total{{{of}}}[15m])) > 0"
            ),
            lasts: "15m",
            severity: "warning",
            summary: format!(
                "more than a tenth of the reconciliations of {controller} fail, or some fail in a way that no retry mends"
            ),
        },
    ];
    alerts.push(Alert {
        name: "OktWatchSilent",
        expression: format!(
            "max by (controller, kind) (okt_watch_silence_seconds{{{of}}}) > 300"
        ),
        lasts: "5m",
        severity: "critical",
        summary: format!(
            "the API server has not served the watch of {{{{ $labels.kind }}}} for {{{{ $value | humanizeDuration }}}}: \
             the operator of {controller} knows nothing newer"
        ),
    });
    if let Some(graph) = operator.graph {
        alerts.extend(stuck(controller, &of, graph));
    }
    alerts.extend(of_conditions(controller, &of));
    if operator.graph.is_some() {
        alerts.extend(of_deliveries(controller, &of));
    }
    alerts
}

/// Returns the alert about objects that are longer in a passing state than usual: three times as long as 99 of a hundred
/// objects of the last week, and at least ten minutes; or a day, since a state that no object has left has no usual time.
fn stuck(controller: &str, of: &str, graph: &Graph<'_>) -> Option<Alert> {
    let passing_states = graph.states.iter().filter(|state| state.is_passing());
    let passing: Vec<_> = passing_states.map(|state| state.name).collect();
    let of = format!("{of},state=~\"{}\"", passing.join("|"));
    let longest = format!("max by (controller, state) (okt_longest_in_state_seconds{{{of}}})");
    let usual = format!(
        "histogram_quantile(0.99, sum by (controller, state, le) \
         (increase(okt_state_duration_seconds_bucket{{{of}}}[7d])))"
    );
    (!passing.is_empty()).then(|| Alert {
        name: "OktStuckInState",
        expression: format!(
            "({longest} > 600 and {longest} > 3 * {usual}) or {longest} > 86400"
        ),
        lasts: "5m",
        severity: "warning",
        summary: format!(
            "a {controller} has been in {{{{ $labels.state }}}} for {{{{ $value | humanizeDuration }}}}, \
             longer than usual"
        ),
    })
}

/// Returns the alerts about the reasons of `Stalled` and `Reconciling`.
fn of_conditions(controller: &str, of: &str) -> Vec<Alert> {
    let others = [UNROUTABLE.as_slice(), REFUSED.as_slice()].concat();
    let unobserved = [reasons::UNREACHABLE, reasons::OBSERVATION_FAILED];
    let alert =
        |name, severity, lasts, (condition, is, reasons): (&str, &str, &[&str]), what: &str| {
            let reasons = reasons.join("|");
            Alert {
                name,
                expression: format!(
                    "sum by (controller, reason) \
                 ({{__name__=~\"okt_({condition})_objects\",{of},reason{is}\"{reasons}\"}}) > 0"
                ),
                lasts,
                severity,
                summary: format!(
                    "{{{{ $value }}}} objects of {controller} {what}: {{{{ $labels.reason }}}}"
                ),
            }
        };
    vec![
        alert(
            "OktUnroutable",
            "warning",
            "5m",
            ("stalled", "=~", &UNROUTABLE),
            "have no route to the desired state",
        ),
        alert(
            "OktWritesRefused",
            "critical",
            "5m",
            ("stalled|reconciling", "=~", &REFUSED),
            "cannot be written, because the API server refuses it",
        ),
        alert(
            "OktStalled",
            "warning",
            "10m",
            ("stalled", "!~", &others),
            "have stalled",
        ),
        alert(
            "OktLoop",
            "warning",
            "10m",
            ("reconciling", "=~", &[reasons::LOOP_DETECTED]),
            "make transition after transition without coming to rest",
        ),
        alert(
            "OktUnreachable",
            "warning",
            "15m",
            ("reconciling", "=~", &unobserved),
            "cannot be observed",
        ),
    ]
}

/// Returns the alerts about `CloudEvents`; without them there are no such metrics.
fn of_deliveries(controller: &str, of: &str) -> [Alert; 2] {
    [
        Alert {
            name: "OktDeliveriesBehind",
            // There is something to deliver, and for fifteen minutes the receiver has taken nothing.
            expression: format!(
                "sum by (controller) (okt_deliveries_pending{{{of}}}) > 0 unless \
                 sum by (controller) (increase(okt_deliveries_total{{{of},result=\"delivered\"}}[15m])) > 0"
            ),
            lasts: "15m",
            severity: "warning",
            summary: format!(
                "{{{{ $value }}}} transitions of {controller} are not delivered: the receiver takes nothing"
            ),
        },
        Alert {
            name: "OktDeliveriesLost",
            expression: format!(
                "sum by (controller, result) \
                 (increase(okt_deliveries_total{{{of},result=~\"dropped|refused\"}}[1h])) > 0"
            ),
            lasts: "0m",
            severity: "warning",
            summary: format!(
                "transitions of {controller} are never delivered: {{{{ $labels.result }}}}"
            ),
        },
    ]
}

fn of_replicas() -> Vec<Alert> {
    vec![
        Alert {
            name: "OktNoLeader",
            expression: "sum by (namespace, name) (okt_ranges_held) == 0".to_owned(),
            lasts: "1m",
            severity: "critical",
            summary: "no replica of {{ $labels.name }} acts on anything".to_owned(),
        },
        Alert {
            name: "OktRangesWithoutHolder",
            expression: format!("sum by (namespace, name) (okt_ranges_held) < {RANGES} > 0"),
            lasts: "2m",
            severity: "critical",
            summary: format!(
                "only {{{{ $value }}}} of the {RANGES} ranges of {{{{ $labels.name }}}} have a replica"
            ),
        },
    ]
}

#[cfg(test)]
mod tests {
    use okt_core::Lifecycle;
    use okt_macros::lifecycle_graph;

    use super::*;

    /// A short life.
    #[lifecycle_graph(crate(okt_core))]
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Life {
        /// It passes.
        #[entry]
        #[child(Over)]
        Passing,
        /// It is over.
        #[leaf(idle)]
        Over,
    }

    #[test]
    fn kinds_of_one_name_have_groups_of_their_own_and_a_pass_alone_has_alerts_about_conditions() {
        let [one, other] = [Some(Life::GRAPH), None].map(|graph| Monitored {
            controller: "database".to_owned(),
            graph,
        });
        let rules = rules(&[one, other]);
        let groups = rules["groups"].as_array().expect("groups");
        let names: Vec<_> = groups.iter().map(|group| &group["name"]).collect();
        assert_eq!(names, ["okt-database", "okt-database-1", "okt-replicas"]);
        let of_pass = groups[1]["rules"].as_array().expect("rules");
        let has = |name: &str| of_pass.iter().any(|rule| rule["alert"] == name);
        assert!(has("OktStalled") && has("OktWritesRefused"));
        assert!(!has("OktStuckInState") && !has("OktDeliveriesLost"));
    }

    #[test]
    fn the_page_has_each_alert_and_no_other() {
        let operator = Monitored {
            controller: "database".to_owned(),
            graph: Some(Life::GRAPH),
        };
        let alerts = of_operator(&operator).into_iter().chain(of_replicas());
        let mut names: Vec<_> = alerts.map(|alert| alert.name).collect();
        let page = include_str!("../../../okt/src/alerts.md");
        let mut described: Vec<_> = page
            .lines()
            .filter_map(|it| it.strip_prefix("## "))
            .collect();
        names.sort_unstable();
        described.sort_unstable();
        assert_eq!(names, described);
    }
}
