//! A Grafana dashboard of a program: a row for each operator, made from its graph, and rows for replicas, requests and
//! the process.
//!
//! The JSON is the one that Grafana 10 and later import (schema version 39); `tests/grafana` checks it against the types
//! that Grafana publishes.

use okt_core::{Graph, Mark, State};
use okt_wire::texts::cut;
use serde_json::{Value, json};

use super::alerts::Monitored;

/// The version of Grafana's schema.
const SCHEMA: u32 = 39;

/// The longest uid of a dashboard, in bytes.
const UID_LIMIT: usize = 40;

/// The width of a dashboard, and the height of a panel.
const WIDTH: u32 = 24;
const HEIGHT: u32 = 8;

/// Returns the dashboard of a program.
pub(crate) fn dashboard(program: &str, operators: &[Monitored]) -> Value {
    let mut page = Page::default();
    for operator in operators {
        page.operator(operator);
    }
    page.process(operators);
    json!({
        "uid": cut(&format!("okt-{program}"), UID_LIMIT),
        "title": format!("OKT: {program}"),
        "tags": ["okt"],
        "timezone": "browser",
        "schemaVersion": SCHEMA,
        "editable": true,
        "refresh": "30s",
        "time": { "from": "now-6h", "to": "now" },
        "annotations": { "list": [] },
        "templating": { "list": [{
            "name": "datasource",
            "label": "Prometheus",
            "type": "datasource",
            "query": "prometheus",
        }] },
        "panels": page.panels,
    })
}

/// Returns the dashboard in a `ConfigMap` with the label by which Grafana's sidecar finds it.
pub(crate) fn config_map(program: &str, operators: &[Monitored]) -> Value {
    let dashboard = format!("{:#}\n", dashboard(program, operators));
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": format!("{program}-dashboard"),
            "labels": { "grafana_dashboard": "1" },
        },
        "data": { format!("okt-{program}.json"): dashboard },
    })
}

/// A panel with its queries, each with a legend.
struct Panel {
    title: &'static str,
    about: &'static str,
    kind: &'static str,
    unit: &'static str,
    width: u32,
    queries: Vec<(String, &'static str)>,
    /// The colors of series by their names.
    colors: Vec<(&'static str, &'static str)>,
    stacks: bool,
}

impl Panel {
    fn new(title: &'static str, unit: &'static str, width: u32) -> Self {
        Self {
            title,
            about: "",
            kind: "timeseries",
            unit,
            width,
            queries: Vec::new(),
            colors: Vec::new(),
            stacks: false,
        }
    }

    fn about(mut self, about: &'static str) -> Self {
        self.about = about;
        self
    }

    fn query(mut self, expression: impl Into<String>, legend: &'static str) -> Self {
        self.queries.push((expression.into(), legend));
        self
    }

    fn stat(mut self) -> Self {
        self.kind = "stat";
        self
    }

    fn states(mut self, graph: &'static Graph<'static>) -> Self {
        self.colors = graph.states.iter().map(|it| (it.name, color(it))).collect();
        self
    }

    fn stacked(mut self) -> Self {
        self.stacks = true;
        self
    }

    fn json(&self, id: u32, x: u32, y: u32) -> Value {
        let source = json!({ "type": "prometheus", "uid": "${datasource}" });
        let queries = self.queries.iter().zip('A'..='Z');
        let targets: Vec<_> = queries
            .map(|((expression, legend), reference)| {
                json!({
                    "refId": reference.to_string(),
                    "datasource": source,
                    "expr": expression,
                    "legendFormat": legend,
                })
            })
            .collect();
        let overrides: Vec<_> = self
            .colors
            .iter()
            .map(|(series, color)| {
                json!({
                    "matcher": { "id": "byName", "options": series },
                    "properties": [{
                        "id": "color",
                        "value": { "mode": "fixed", "fixedColor": color },
                    }],
                })
            })
            .collect();
        let mut defaults = json!({ "unit": self.unit, "min": 0 });
        if self.stacks {
            defaults["custom"] = json!({
                "fillOpacity": 30,
                "stacking": { "mode": "normal", "group": "A" },
            });
        }
        json!({
            "id": id,
            "type": self.kind,
            "title": self.title,
            "description": self.about,
            "datasource": source,
            "gridPos": { "x": x, "y": y, "w": self.width, "h": HEIGHT },
            "targets": targets,
            "fieldConfig": { "defaults": defaults, "overrides": overrides },
        })
    }
}

/// Returns the color of a state: one where an object may stay, one that it passes, one that waits for a person, a last one.
fn color(state: &State<'_>) -> &'static str {
    if state.is(Mark::Leaf) {
        "text"
    } else if state.is(Mark::Hold) {
        "red"
    } else if state.is(Mark::Rest) {
        "green"
    } else {
        "blue"
    }
}

/// Panels, from left to right and from top to bottom.
#[derive(Default)]
struct Page {
    panels: Vec<Value>,
    last_id: u32,
    x: u32,
    y: u32,
}

impl Page {
    fn id(&mut self) -> u32 {
        self.last_id = self.last_id.saturating_add(1);
        self.last_id
    }

    /// Begins a new line of panels.
    fn wrap(&mut self) {
        if self.x > 0 {
            (self.x, self.y) = (0, self.y.saturating_add(HEIGHT));
        }
    }

    fn row(&mut self, title: &str) {
        self.wrap();
        let id = self.id();
        self.panels.push(json!({
            "id": id,
            "type": "row",
            "title": title,
            "collapsed": false,
            "gridPos": { "x": 0, "y": self.y, "w": WIDTH, "h": 1 },
            "panels": [],
        }));
        self.y = self.y.saturating_add(1);
    }

    fn add(&mut self, panel: &Panel) {
        if self.x.saturating_add(panel.width) > WIDTH {
            self.wrap();
        }
        let id = self.id();
        self.panels.push(panel.json(id, self.x, self.y));
        self.x = self.x.saturating_add(panel.width);
    }

    fn operator(&mut self, operator: &Monitored) {
        let of = format!("controller=\"{}\"", operator.controller);
        if let Some(graph) = operator.graph {
            self.row(&format!("{}: {}", operator.controller, graph.name));
            self.lifecycle(&of, graph);
            if !graph.gates.is_empty() {
                self.gates(&of);
            }
        }
        self.row(&format!("{}: reconciliations", operator.controller));
        self.reconciliations(&of);
    }

    fn lifecycle(&mut self, of: &str, graph: &'static Graph<'static>) {
        let quantile = |quantile: &str, metric: &str| {
            format!(
                "histogram_quantile({quantile}, sum by (le, state) (rate({metric}_bucket{{{of}}}[$__rate_interval])))"
            )
        };
        for panel in [
            Panel::new("Objects by state", "short", 12)
                .query(format!("sum by (state) (okt_objects{{{of}}})"), "{{state}}")
                .states(graph)
                .stacked(),
            Panel::new("Transitions per minute", "short", 12).query(
                format!("60 * sum by (from, to) (rate(okt_transitions_total{{{of}}}[$__rate_interval]))"),
                "{{from}} → {{to}}",
            ),
            Panel::new("Stalled objects", "short", 6)
                .about("They stay as they are until a person changes the spec or the cluster.")
                .query(format!("sum by (reason) (okt_stalled_objects{{{of}}})"), "{{reason}}")
                .stacked(),
            Panel::new("Objects on their way", "short", 6)
                .query(format!("sum by (reason) (okt_reconciling_objects{{{of}}})"), "{{reason}}")
                .stacked(),
            Panel::new("Longest in a state", "s", 6)
                .about("How long the object that has been longest in the state has been there.")
                .query(format!("max by (state) (okt_longest_in_state_seconds{{{of}}})"), "{{state}}")
                .states(graph),
            Panel::new("Time in a state, 95th percentile", "s", 6)
                .query(quantile("0.95", "okt_state_duration_seconds"), "{{state}}")
                .states(graph),
            Panel::new("Attempts of actions per minute", "short", 6).query(
                format!(
                    "60 * sum by (state, result) (rate(okt_action_attempts_total{{{of}}}[$__rate_interval]))"
                ),
                "{{state}}: {{result}}",
            ),
            Panel::new("Running actions", "short", 6)
                .query(format!("sum by (state) (okt_actions_running{{{of}}})"), "{{state}}")
                .states(graph)
                .stacked(),
            Panel::new("Time of an action, 95th percentile", "s", 6)
                .query(quantile("0.95", "okt_action_duration_seconds"), "{{state}}")
                .states(graph),
            Panel::new("Writes per transition", "short", 6)
                .about("1 is the least; more if actions end at rest, or objects are made and deleted.")
                .query(
                    format!(
                        "sum(rate(okt_writes_total{{{of}}}[$__rate_interval])) / \
                         sum(rate(okt_transitions_total{{{of}}}[$__rate_interval]))"
                    ),
                    "writes",
                ),
        ] {
            self.add(&panel);
        }
    }

    fn gates(&mut self, of: &str) {
        let sum = |metric: &str| format!("sum by (gate, group) ({metric}{{{of}}})");
        let gates = Panel::new("At the gates", "short", 12)
            .about("Objects in the states of a gate, and those that wait before it.")
            .query(sum("okt_gate_inside"), "{{gate}} {{group}} inside")
            .query(sum("okt_gate_waiting"), "{{gate}} {{group}} waiting");
        self.add(&gates);
    }

    fn reconciliations(&mut self, of: &str) {
        let quantile = |metric: &str| {
            format!(
                "histogram_quantile(0.99, sum by (le) (rate({metric}_bucket{{{of}}}[$__rate_interval])))"
            )
        };
        for panel in [
            Panel::new("Reconciliations per second", "short", 6).query(
                format!("sum by (result) (rate(controller_runtime_reconcile_total{{{of}}}[$__rate_interval]))"),
                "{{result}}",
            ),
            Panel::new("Time of a reconciliation, 99th percentile", "s", 6)
                .query(quantile("controller_runtime_reconcile_time_seconds"), "99 %"),
            Panel::new("Due objects", "short", 6).query(
                format!("sum by (priority) (workqueue_depth{{{of}}})"),
                "priority {{priority}}",
            ),
            Panel::new("Wait in the queue, 99th percentile", "s", 6)
                .query(quantile("workqueue_queue_duration_seconds"), "99 %"),
        ] {
            self.add(&panel);
        }
    }

    /// Adds the panels about what all operators of the program share: only series of its processes.
    fn process(&mut self, operators: &[Monitored]) {
        self.row("Replicas, requests and processes");
        let names = operators.iter().map(|it| it.controller.as_str());
        let controllers = names.collect::<Vec<_>>().join("|");
        let of = format!(
            "and on (job, instance) controller_runtime_max_concurrent_reconciles{{controller=~\"{controllers}\"}}"
        );
        for panel in [
            Panel::new("Ranges held", "short", 6)
                .about("All replicas together hold 64.")
                .query(format!("okt_ranges_held {of}"), "{{pod}} {{instance}}")
                .stacked(),
            Panel::new("Acting replicas", "short", 6)
                .query(format!("sum by (name) (leader_election_master_status {of})"), "{{name}}")
                .stat(),
            Panel::new("Requests to the API server per second", "reqps", 6).query(
                format!("sum by (method, code) (rate(rest_client_requests_total[$__rate_interval]) {of})"),
                "{{method}} {{code}}",
            ),
            Panel::new("Time of a request, 99th percentile", "s", 6).query(
                format!(
                    "histogram_quantile(0.99, sum by (le, verb) \
                     (rate(rest_client_request_duration_seconds_bucket[$__rate_interval]) {of}))"
                ),
                "{{verb}}",
            ),
            Panel::new("Transitions to be delivered", "short", 6)
                .about("CloudEvents that the receiver has not taken.")
                .query(
                    format!("sum by (controller) (okt_deliveries_pending{{controller=~\"{controllers}\"}})"),
                    "{{controller}}",
                ),
            Panel::new("CPU", "percentunit", 6).query(
                format!("rate(process_cpu_seconds_total[$__rate_interval]) {of}"),
                "{{pod}} {{instance}}",
            ),
            Panel::new("Memory", "bytes", 6).query(
                format!("process_resident_memory_bytes {of}"),
                "{{pod}} {{instance}}",
            ),
            Panel::new("Open files", "short", 6)
                .query(format!("process_open_fds {of}"), "{{pod}} {{instance}}"),
        ] {
            self.add(&panel);
        }
    }
}
