//! Computes the status of a Pod as `kubectl get pods` does.

use jiff::Timestamp;
use serde_json::Value;

use super::Column;
use super::cell::{NONE, integer, or, span};
use crate::object::{self, at, is_condition_true, items, text};

pub(super) fn columns() -> Vec<Column> {
    vec![
        Column::cell_of("Ready", |pod, _| {
            let view = PodView::of(pod);
            format!("{}/{}", view.ready, view.containers).into()
        }),
        Column::cell_of("Status", |pod, _| PodView::of(pod).status.into()),
        Column::cell_of("Restarts", |pod, now| {
            let view = PodView::of(pod);
            match view.restarted.filter(|_| view.restarts > 0) {
                Some(then) => format!("{} ({} ago)", view.restarts, span(then, now)).into(),
                None => view.restarts.to_string().into(),
            }
        }),
        Column::age(),
        Column::cell_of("IP", |pod, _| {
            let first = items(pod, &["status", "podIPs"]).first();
            or(first.map_or("", |ip| text(ip, &["ip"])), NONE)
        })
        .wide(),
        Column::text_or("Node", &["spec", "nodeName"], NONE).wide(),
        Column::text_or("Nominated Node", &["status", "nominatedNodeName"], NONE).wide(),
        Column::cell_of("Readiness Gates", |pod, _| {
            let gates = items(pod, &["spec", "readinessGates"]);
            if gates.is_empty() {
                return NONE.into();
            }
            let open = gates
                .iter()
                .filter(|gate| is_condition_true(pod, text(gate, &["conditionType"])))
                .count();
            format!("{open}/{}", gates.len()).into()
        })
        .wide(),
    ]
}

/// The values of the cells.
struct PodView {
    ready: usize,
    containers: usize,
    status: String,
    restarts: i64,
    /// The last time a container ended before it was restarted.
    restarted: Option<Timestamp>,
}

impl PodView {
    fn of(pod: &Value) -> Self {
        let phase = match text(pod, &["status", "phase"]) {
            // A real server sets this on creation.
            "" => "Pending",
            phase => phase,
        };
        let inits = items(pod, &["spec", "initContainers"]);
        let sidecars = inits.iter().filter(|container| is_sidecar(container));
        let mut view = Self {
            ready: 0,
            containers: items(pod, &["spec", "containers"]).len() + sidecars.count(),
            status: match text(pod, &["status", "reason"]) {
                "" => phase.to_owned(),
                reason => reason.to_owned(),
            },
            restarts: 0,
            restarted: None,
        };
        let gated = |condition: &&Value| {
            text(condition, &["type"]) == "PodScheduled"
                && text(condition, &["reason"]) == "SchedulingGated"
        };
        if items(pod, &["status", "conditions"])
            .iter()
            .any(|c| gated(&c))
        {
            "SchedulingGated".clone_into(&mut view.status);
        }
        if !view.initializing(pod) || is_condition_true(pod, "Initialized") {
            view.running(pod);
        }
        if object::is_deleting(pod) {
            if text(pod, &["status", "reason"]) == "NodeLost" {
                "Unknown".clone_into(&mut view.status);
            } else if !matches!(phase, "Succeeded" | "Failed") {
                "Terminating".clone_into(&mut view.status);
            }
        }
        view
    }

    /// Reads the init containers; returns whether they still run.
    fn initializing(&mut self, pod: &Value) -> bool {
        let wanted = items(pod, &["spec", "initContainers"]);
        let (mut restarts, mut restarted) = (0, None);
        for (index, status) in items(pod, &["status", "initContainerStatuses"])
            .iter()
            .enumerate()
        {
            let name = text(status, &["name"]);
            let sidecar = wanted
                .iter()
                .any(|container| text(container, &["name"]) == name && is_sidecar(container));
            self.count(status);
            if sidecar {
                restarts += integer(status, &["restartCount"]);
                restarted = restarted.max(ended(status));
            }
            let state = |state| at(status, &["state", state]);
            let terminated = state("terminated");
            if terminated.is_some_and(|end| integer(end, &["exitCode"]) == 0) {
                continue;
            }
            if sidecar && is_true(status, "started") {
                self.ready += usize::from(is_true(status, "ready"));
                continue;
            }
            let waits = state("waiting").map_or("", |waiting| text(waiting, &["reason"]));
            self.status = match terminated {
                Some(end) => format!("Init:{}", how_it_ended(end)),
                None if !matches!(waits, "" | "PodInitializing") => format!("Init:{waits}"),
                None => format!("Init:{index}/{}", wanted.len()),
            };
            return true;
        }
        // From here on only the restarts of sidecars count.
        (self.restarts, self.restarted) = (restarts, restarted);
        false
    }

    /// Reads the containers: the status is that of the first one with a problem.
    fn running(&mut self, pod: &Value) {
        let (mut runs, mut failure) = (false, None);
        for status in items(pod, &["status", "containerStatuses"]).iter().rev() {
            self.count(status);
            let state = |state| at(status, &["state", state]);
            let waits = state("waiting").map_or("", |waiting| text(waiting, &["reason"]));
            if !waits.is_empty() {
                waits.clone_into(&mut self.status);
            } else if let Some(end) = state("terminated") {
                self.status = how_it_ended(end);
                if integer(end, &["exitCode"]) != 0 {
                    failure = Some(self.status.clone());
                }
            } else if is_true(status, "ready") && state("running").is_some() {
                runs = true;
                self.ready += 1;
            }
        }
        if self.status == "Completed" {
            if runs && is_condition_true(pod, "Ready") {
                "Running".clone_into(&mut self.status);
            } else if let Some(failure) = failure {
                self.status = failure;
            } else if runs {
                "NotReady".clone_into(&mut self.status);
            }
        }
    }

    fn count(&mut self, status: &Value) {
        self.restarts += integer(status, &["restartCount"]);
        self.restarted = self.restarted.max(ended(status));
    }
}

fn is_true(object: &Value, key: &str) -> bool {
    object.get(key) == Some(&Value::Bool(true))
}

/// Whether an init container keeps running.
fn is_sidecar(container: &Value) -> bool {
    text(container, &["restartPolicy"]) == "Always"
}

fn ended(status: &Value) -> Option<Timestamp> {
    text(status, &["lastState", "terminated", "finishedAt"])
        .parse()
        .ok()
}

fn how_it_ended(end: &Value) -> String {
    match (text(end, &["reason"]), integer(end, &["signal"])) {
        ("", 0) => format!("ExitCode:{}", integer(end, &["exitCode"])),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::PodView;

    fn view(pod: &Value) -> String {
        let view = PodView::of(pod);
        format!(
            "{}/{} {} {}",
            view.ready, view.containers, view.status, view.restarts
        )
    }

    #[test]
    fn the_status_of_a_pod_follows_its_containers() {
        let containers = json!([{ "name": "a" }, { "name": "b" }]);
        let pod = |status: Value| json!({ "spec": { "containers": containers }, "status": status });
        let running = json!({ "ready": true, "restartCount": 1, "state": { "running": {} } });
        let ended = |code: i64| json!({ "state": { "terminated": { "exitCode": code, "reason": if code == 0 { "Completed" } else { "Error" } } } });
        for (status, shown) in [
            (json!({}), "0/2 Pending 0"),
            (
                json!({ "phase": "Running", "containerStatuses": [running, running] }),
                "2/2 Running 2",
            ),
            (
                json!({ "phase": "Running", "containerStatuses": [running, { "state": { "waiting": { "reason": "CrashLoopBackOff" } } }] }),
                "1/2 CrashLoopBackOff 1",
            ),
            (
                json!({ "phase": "Succeeded", "containerStatuses": [ended(0), ended(0)] }),
                "0/2 Completed 0",
            ),
            (
                json!({ "phase": "Failed", "containerStatuses": [ended(0), ended(1)] }),
                "0/2 Error 0",
            ),
            (
                json!({ "phase": "Running", "containerStatuses": [ended(0), running] }),
                "1/2 NotReady 1",
            ),
            (
                json!({ "phase": "Pending", "initContainerStatuses": [{ "state": { "running": {} } }] }),
                "0/2 Init:0/0 0",
            ),
        ] {
            assert_eq!(view(&pod(status.clone())), shown, "{status}");
        }
    }
}
