//! A port of a Service or a pod by name, and the pod that serves it.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Pod, Service, ServicePort};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};

use super::diagnosis::explained;
use super::error::ReachError;

/// The timeout of finding the pod of a target and opening a connection to it.
pub(super) const LIMIT: Duration = Duration::from_secs(15);

/// A port of a Service or a pod in the cluster.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct ReachTarget {
    kind: TargetKind,
    namespace: String,
    name: String,
    port: u16,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum TargetKind {
    Service,
    Pod,
}

/// A port of a pod, which can be forwarded.
pub(super) struct PodPort {
    pub(super) pod: String,
    pub(super) port: u16,
}

impl ReachTarget {
    pub(super) fn service(
        namespace: String,
        service: String,
        port: u16,
    ) -> Result<Self, ReachError> {
        Self::of(TargetKind::Service, namespace, service, port)
    }

    pub(super) fn pod(namespace: String, pod: String, port: u16) -> Result<Self, ReachError> {
        Self::of(TargetKind::Pod, namespace, pod, port)
    }

    fn of(
        kind: TargetKind,
        namespace: String,
        name: String,
        port: u16,
    ) -> Result<Self, ReachError> {
        let target = Self {
            kind,
            namespace,
            name,
            port,
        };
        checked(&target.what(), &[&target.namespace, &target.name])?;
        Ok(target)
    }

    /// Returns the target of a host name of the cluster: `<service>.<namespace>.svc`, optionally with a pod in front;
    /// none for any other name.
    pub(super) fn named(host: &str, port: u16) -> Option<Self> {
        let lowercase = host.to_ascii_lowercase();
        let name = lowercase.strip_suffix('.').unwrap_or(&lowercase);
        let local_name = name.strip_suffix(".cluster.local").unwrap_or(name);
        let labels: Vec<_> = local_name.strip_suffix(".svc")?.split('.').collect();
        let made = match labels.as_slice() {
            [service, namespace] => {
                Self::service((*namespace).to_owned(), (*service).to_owned(), port)
            }
            [pod, _, namespace] => Self::pod((*namespace).to_owned(), (*pod).to_owned(), port),
            _ => return None,
        };
        made.ok()
    }

    /// Returns the host name of a Service inside the cluster.
    pub(super) fn host(&self) -> String {
        format!("{}.{}.svc", self.name, self.namespace)
    }

    pub(super) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Describes the target for messages.
    pub(super) fn what(&self) -> String {
        let kind = match self.kind {
            TargetKind::Service => "Service",
            TargetKind::Pod => "pod",
        };
        let Self {
            namespace,
            name,
            port,
            ..
        } = self;
        format!("port {port} of {kind} {namespace}/{name}")
    }

    /// Returns the IP address of the pod.
    pub(super) async fn address(&self, client: &Client) -> Result<String, ReachError> {
        let pods: Api<Pod> = Api::namespaced(client.clone(), &self.namespace);
        let what = self.what();
        let reading = async {
            let pod = pods.get(&self.name).await;
            pod.map_err(|error| ReachError::of(&what, error))
        };
        let pod = ReachError::within(LIMIT, self.what(), reading).await?;
        let status = pod.status.unwrap_or_default();
        let ended = matches!(status.phase.as_deref(), Some("Succeeded" | "Failed"));
        match status.pod_ip.filter(|ip| !ended && !ip.is_empty()) {
            Some(address) => Ok(address),
            None => Err(ReachError::TargetNotRunning {
                what: self.what(),
                why: format!(
                    "the pod is {}",
                    status.phase.as_deref().unwrap_or("Unknown")
                ),
            }),
        }
    }

    /// Returns the pod that serves the target now, and its port.
    pub(super) async fn pod_port(&self, client: &Client) -> Result<PodPort, ReachError> {
        match self.kind {
            TargetKind::Pod => Ok(PodPort {
                pod: self.name.clone(),
                port: self.port,
            }),
            TargetKind::Service => self.ready_pod(client).await,
        }
    }

    async fn ready_pod(&self, client: &Client) -> Result<PodPort, ReachError> {
        let refused = |error| ReachError::of(&self.what(), error);
        let services: Api<Service> = Api::namespaced(client.clone(), &self.namespace);
        let service = services.get(&self.name).await.map_err(refused)?;
        let spec = service.spec.unwrap_or_default();
        let ports = spec.ports.unwrap_or_default();
        let Some(port) = ports.iter().find(|it| it.port == i32::from(self.port)) else {
            let there: Vec<_> = ports.iter().map(|it| it.port.to_string()).collect();
            return Err(ReachError::TargetNotFound {
                what: self.what(),
                why: format!("the Service has no such port, only [{}]", there.join(", ")),
            });
        };
        let selector = spec.selector.unwrap_or_default();
        if selector.is_empty() {
            return Err(ReachError::Refused {
                what: self.what(),
                why: "the Service selects no pods, so nothing can be forwarded to it".to_owned(),
            });
        }
        let labels: Vec<_> = selector
            .iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        let pods: Api<Pod> = Api::namespaced(client.clone(), &self.namespace);
        let selected = ListParams::default().labels(&labels.join(","));
        let pods = pods.list(&selected).await.map_err(refused)?;
        ready(pods.items, port).ok_or_else(|| ReachError::TargetNotRunning {
            what: self.what(),
            why: "no pod of the Service is ready".to_owned(),
        })
    }

    /// Returns a clearer error if the status of the pod explains it.
    pub(super) async fn explained(
        &self,
        client: &Client,
        pod: &str,
        error: ReachError,
    ) -> ReachError {
        let pods: Api<Pod> = Api::namespaced(client.clone(), &self.namespace);
        explained(&pods, pod, None, error).await
    }
}

/// Returns the first pod by name that is ready and has the port.
fn ready(mut pods: Vec<Pod>, port: &ServicePort) -> Option<PodPort> {
    pods.retain(|pod| pod.metadata.deletion_timestamp.is_none() && is_ready(pod));
    pods.sort_by_key(ResourceExt::name_any);
    pods.into_iter().find_map(|pod| {
        let port = match &port.target_port {
            None => port.port,
            Some(IntOrString::Int(number)) => *number,
            Some(IntOrString::String(name)) => port_named(&pod, name)?,
        };
        Some(PodPort {
            pod: pod.name_any(),
            port: u16::try_from(port).ok()?,
        })
    })
}

fn is_ready(pod: &Pod) -> bool {
    let lists = pod.status.iter().filter_map(|it| it.conditions.as_ref());
    let mut conditions = lists.flatten();
    conditions.any(|it| it.type_ == "Ready" && it.status == "True")
}

fn port_named(pod: &Pod, name: &str) -> Option<i32> {
    let spec = pod.spec.as_ref()?;
    let mut containers = spec
        .containers
        .iter()
        .chain(spec.init_containers.iter().flatten());
    containers.find_map(|container| {
        let mut ports = container.ports.iter().flatten();
        let port = ports.find(|it| it.name.as_deref() == Some(name))?;
        Some(port.container_port)
    })
}

/// Checks that these can be names of objects: the client puts them into the path of a URL unchanged.
pub(super) fn checked(what: &str, names: &[&str]) -> Result<(), ReachError> {
    let is_name = |name: &str| {
        let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-.".contains(&b);
        let ends = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphanumeric);
        let bytes = name.as_bytes();
        bytes.iter().copied().all(allowed)
            && ends(bytes.first())
            && ends(bytes.last())
            && name.len() <= 253
    };
    match names.iter().find(|name| !is_name(name)) {
        None => Ok(()),
        Some(name) => Err(ReachError::Unaskable {
            what: what.to_owned(),
            why: format!("`{name}` is no name of an object"),
        }),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn cluster_host_names_are_recognized_and_others_are_not() {
        let service = ReachTarget::service("team-a".to_owned(), "db".to_owned(), 80).ok();
        let pod = ReachTarget::pod("team-a".to_owned(), "db-0".to_owned(), 80).ok();
        for (host, expected) in [
            ("db.team-a.svc", &service),
            ("DB.team-a.svc.cluster.local.", &service),
            ("db-0.db.team-a.svc", &pod),
            ("db.team-a", &None),
            ("a.b.c.d.svc", &None),
            ("svc", &None),
            (".svc", &None),
            ("..svc", &None),
            ("db.svc.example.com", &None),
            ("10.0.0.1", &None),
        ] {
            assert_eq!(&ReachTarget::named(host, 80), expected, "{host}");
        }
    }

    #[test]
    fn what_is_no_name_is_not_put_into_a_path() {
        for wrong in ["", "..", "../secrets", "a/b", "a?x", "-a", "A", "ä", "a%2f"] {
            assert!(checked("it", &["fine", wrong]).is_err(), "{wrong}");
        }
        assert!(checked("it", &["a.b-c", "0"]).is_ok());
    }

    #[test]
    fn the_pod_of_a_service_is_ready_and_has_the_port() {
        let pod = |name: &str, ready: &str, port: &str| {
            let ports = json!([{ "name": port, "containerPort": 8443 }]);
            let pod = json!({
                "metadata": { "name": name },
                "spec": { "containers": [{ "name": "a" }, { "name": "b", "ports": ports }] },
                "status": { "conditions": [{ "type": "Ready", "status": ready }] },
            });
            serde_json::from_value::<Pod>(pod).expect("a pod")
        };
        let mut going = pod("a-0", "True", "web");
        going.metadata.deletion_timestamp =
            serde_json::from_value(json!("2026-01-01T00:00:00Z")).expect("a time");
        let pods = vec![
            pod("d", "True", "web"),
            pod("c", "True", "web"),
            pod("b", "True", "other"),
            pod("a", "False", "web"),
            going,
            Pod::default(),
        ];
        for (target, expected) in [
            (json!("web"), Some(("c", 8443))),
            (json!(99), Some(("b", 99))),
            (json!(null), Some(("b", 80))),
            (json!("none"), None),
            (json!(70_000), None),
        ] {
            let port = json!({ "port": 80, "targetPort": target });
            let port = serde_json::from_value(port).expect("a port");
            let choice = ready(pods.clone(), &port);
            let found = choice.as_ref().map(|it| (it.pod.as_str(), it.port));
            assert_eq!(found, expected, "{target}");
        }
    }
}
