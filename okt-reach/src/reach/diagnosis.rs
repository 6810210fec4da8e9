//! Explains from the status of a pod why it could not be reached: the node's own error is seldom clear.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ContainerState, ContainerStatus, Pod, PodStatus};
use kube::Api;

use super::error::ReachError;

/// The timeout of reading the pod; after it, the first error stands.
const LIMIT: Duration = Duration::from_secs(5);

/// Returns the same error, or a clearer one from the status of the pod.
///
/// `container` is the requested container, if any.
/// If a command may have started, the result is never that it did not.
pub(super) async fn explained(
    pods: &Api<Pod>,
    name: &str,
    container: Option<&str>,
    error: ReachError,
) -> ReachError {
    let what = match &error {
        ReachError::Refused { what, .. }
        | ReachError::TargetNotFound { what, .. }
        | ReachError::ConnectionLost { what, .. } => what.clone(),
        _ => return error,
    };
    let Ok(Ok(pod)) = tokio::time::timeout(LIMIT, pods.get_opt(name)).await else {
        return error;
    };
    let found = pod.map(|pod| trouble(what, &pod, container));
    match (error, found) {
        (ReachError::TargetNotFound { what, .. }, None) => ReachError::TargetNotFound {
            what,
            why: "there is no such pod".to_owned(),
        },
        (ReachError::Refused { what, why }, None) => ReachError::TargetNotRunning {
            what,
            why: format!("the pod is gone: {why}"),
        },
        (ReachError::ConnectionLost { what, why }, None) => ReachError::ConnectionLost {
            what,
            why: format!("{why}: the pod is gone"),
        },
        (
            ReachError::ConnectionLost { what, why: lost },
            Some(Some(
                ReachError::TargetNotRunning { why, .. } | ReachError::TargetNotFound { why, .. },
            )),
        ) => ReachError::ConnectionLost {
            what,
            why: format!("{lost}: {why}"),
        },
        (_, Some(Some(better))) => better,
        (error, _) => error,
    }
}

/// Returns the problem of a pod according to its status; none if it runs.
fn trouble(what: String, pod: &Pod, container: Option<&str>) -> Option<ReachError> {
    let spec = pod.spec.as_ref()?;
    let main = spec.containers.iter().map(|it| it.name.as_str());
    let init = spec.init_containers.iter().flatten();
    let passing = spec.ephemeral_containers.iter().flatten();
    let names: Vec<_> = main
        .chain(init.map(|it| it.name.as_str()))
        .chain(passing.map(|it| it.name.as_str()))
        .collect();
    let container = match container {
        Some(container) if !names.contains(&container) => {
            let why = format!(
                "the pod has no container `{container}`, only {}",
                names.join(", ")
            );
            return Some(ReachError::TargetNotFound { what, why });
        }
        Some(container) => Some(container),
        None => match spec.containers.as_slice() {
            [only] => Some(only.name.as_str()),
            _ => None,
        },
    };
    let status = pod.status.as_ref()?;
    let of_container = container
        .and_then(|name| statuses(status).find(|it| it.name == name))
        .and_then(|it| Some((it.name.as_str(), it.state.as_ref()?)));
    let why = if let Some((name, state)) = of_container {
        format!("container `{name}` {}", not_running(state)?)
    } else {
        let phase = status.phase.as_deref().unwrap_or("Unknown");
        if phase == "Running" {
            return None;
        }
        let reason = status.reason.as_deref().unwrap_or_default();
        format!("the pod is {}", joined(&[phase, reason]))
    };
    Some(ReachError::TargetNotRunning { what, why })
}

fn statuses(status: &PodStatus) -> impl Iterator<Item = &ContainerStatus> {
    status
        .container_statuses
        .iter()
        .flatten()
        .chain(status.init_container_statuses.iter().flatten())
        .chain(status.ephemeral_container_statuses.iter().flatten())
}

/// Describes why a container does not run; none if it runs.
fn not_running(state: &ContainerState) -> Option<String> {
    if let Some(waiting) = &state.waiting {
        let reason = waiting.reason.as_deref().unwrap_or_default();
        let message = waiting.message.as_deref().unwrap_or_default();
        Some(joined(&["is waiting", reason, message]))
    } else {
        let ended = state.terminated.as_ref()?;
        let reason = ended.reason.as_deref().unwrap_or_default();
        let code = format!("exit code {}", ended.exit_code);
        Some(joined(&["has ended", reason, &code]))
    }
}

/// Joins the texts that are not empty.
fn joined(parts: &[&str]) -> String {
    let parts: Vec<_> = parts.iter().copied().filter(|it| !it.is_empty()).collect();
    parts.join(": ")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn why(containers: &[&str], status: &Value, container: Option<&str>) -> Option<String> {
        let containers: Vec<_> = containers
            .iter()
            .map(|name| json!({ "name": name }))
            .collect();
        let pod = json!({ "spec": { "containers": containers }, "status": status });
        let pod = serde_json::from_value(pod).expect("a pod");
        trouble("exec".to_owned(), &pod, container).map(|error| error.to_string())
    }

    #[test]
    fn the_status_of_a_pod_explains_why_its_container_does_not_run() {
        let crashes = json!({ "phase": "Running", "containerStatuses": [
            { "name": "app", "image": "", "imageID": "", "ready": false, "restartCount": 1,
              "state": { "waiting": { "reason": "CrashLoopBackOff", "message": "back-off 10s" } } },
            { "name": "side", "image": "", "imageID": "", "ready": true, "restartCount": 1,
              "state": { "running": {} } },
        ] });
        let ended = json!({ "phase": "Succeeded", "containerStatuses": [
            { "name": "app", "image": "", "imageID": "", "ready": false, "restartCount": 1,
              "state": { "terminated": { "reason": "Completed", "exitCode": 0 } } },
        ] });
        let both = &["app", "side"][..];
        for (containers, status, container, expected) in [
            (both, &crashes, Some("side"), None),
            (
                both,
                &crashes,
                Some("app"),
                Some("exec: container `app` is waiting: CrashLoopBackOff: back-off 10s"),
            ),
            (
                both,
                &crashes,
                Some("db"),
                Some("exec: the pod has no container `db`, only app, side"),
            ),
            // The API server itself asks which container is meant.
            (both, &crashes, None, None),
            (
                &["app"],
                &ended,
                None,
                Some("exec: container `app` has ended: Completed: exit code 0"),
            ),
            (
                &["app"],
                &json!({ "phase": "Failed", "reason": "Evicted" }),
                None,
                Some("exec: the pod is Failed: Evicted"),
            ),
        ] {
            assert_eq!(why(containers, status, container).as_deref(), expected);
        }
    }
}
