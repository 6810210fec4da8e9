//! Validates the objects of kinds without a CRD, with the words of Kubernetes.
//!
//! It has what users meet daily; rarer fields are accepted as they are.

mod certificate;
mod cluster;
mod job;
mod kept;
mod part;
mod pod;
mod quota;
mod service;
mod small;
mod status;
mod webhooks;
mod workload;

use serde_json::Value;

use self::kept::check_kept_fields;
use self::part::CheckedPart;
use self::webhooks::check_webhooks;
use crate::causes::Causes;
use crate::kind::ServedKind;
use crate::object;
use crate::refusal::Refusal;
use crate::subresource::Subresource;

/// Checks what is written by an endpoint, apart from the metadata, and what an update must not change.
pub(crate) fn validate(
    kind: &ServedKind,
    endpoint: Subresource,
    old: Option<&Value>,
    object: &Value,
    causes: &mut Causes,
) {
    let Some(before) = old else {
        return validate_object(kind, None, object, causes);
    };
    let (was, is) = (&CheckedPart::root(before), &CheckedPart::root(object));
    match endpoint {
        Subresource::None | Subresource::Scale => validate_object(kind, old, object, causes),
        Subresource::Status => status::check(kind, was, is, false, causes),
        Subresource::Approval => status::check(kind, was, is, true, causes),
        Subresource::EphemeralContainers => {
            pod::check(&is.field("spec"), causes);
            pod::check_attached(was, is, causes);
        }
        Subresource::Resize => {
            pod::check(&is.field("spec"), causes);
            pod::check_resized(was, is, causes);
        }
    }
}

/// Checks what a server must know of a new object before it allocates addresses for it.
pub(crate) fn before_allocation(kind: &ServedKind, object: &Value) -> Result<(), Refusal> {
    let mut causes = Causes::default();
    if kind.is("", "services") {
        let spec = CheckedPart::root(object).field("spec");
        service::check_addresses(&spec, true, &mut causes);
    }
    if causes.is_empty() {
        return Ok(());
    }
    Err(Refusal::invalid(
        kind.subject(object::name(object)),
        &causes,
    ))
}

/// Checks a whole object, apart from its status.
fn validate_object(kind: &ServedKind, old: Option<&Value>, object: &Value, causes: &mut Causes) {
    // In this order a server checks these.
    let first = ["ConfigMap", "DaemonSet", "IngressClass", "Secret"];
    if let Some(old) = old
        && first.contains(&kind.kind.as_str())
    {
        check_kept_fields(kind, old, object, causes);
        return check_fields(kind, object, false, causes);
    }
    check_fields(kind, object, old.is_none(), causes);
    if let Some(old) = old {
        check_kept_fields(kind, old, object, causes);
    }
}

/// Checks a name of which those of Pods or Jobs are made.
fn check_name_of_pods(kind: &ServedKind, object: &CheckedPart<'_>, causes: &mut Causes) {
    let name = object.field("metadata.name");
    if kind.is("apps", "statefulsets") {
        if name.text().contains('.') {
            name.invalid("must not contain dots", causes);
        } else if name.text().len() > 63 {
            name.invalid("must be no more than 63 characters", causes);
        }
    }
    // Eleven characters are left for the time in the name of a Job.
    if kind.is("batch", "cronjobs") && name.text().len() > 52 {
        name.invalid("must be no more than 52 characters", causes);
    }
}

fn check_fields(kind: &ServedKind, object: &Value, is_new: bool, causes: &mut Causes) {
    let object = &CheckedPart::root(object);
    let spec = &object.field("spec");
    if is_new {
        check_name_of_pods(kind, object, causes);
    }
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "Pod") => {
            pod::check(spec, causes);
            let ephemeral = spec.field("ephemeralContainers");
            if is_new && !ephemeral.is_empty() {
                ephemeral.forbid("cannot be set on create", causes);
            }
        }
        ("", "PodTemplate") => pod::check_template(&object.field("template"), causes),
        ("", "ReplicationController") => workload::replication_controller(spec, causes),
        ("", "Service") => service::check(spec, causes),
        ("", "PersistentVolumeClaim") => small::claim(spec, causes),
        ("", "PersistentVolume") => cluster::volume(spec, causes),
        ("", "Node") => cluster::node(object, causes),
        ("", "Endpoints") => cluster::endpoints(object, causes),
        ("", "LimitRange") => cluster::limit_range(spec, causes),
        ("", "ResourceQuota") => quota::quota(spec, causes),
        ("" | "events.k8s.io", "Event") => cluster::event(object, !kind.group.is_empty(), causes),
        ("apps", "ControllerRevision") => cluster::controller_revision(object, causes),
        ("coordination.k8s.io", "Lease") => cluster::lease(spec, causes),
        ("discovery.k8s.io", "EndpointSlice") => cluster::endpoint_slice(object, causes),
        ("networking.k8s.io", "IngressClass") => cluster::ingress_class(spec, causes),
        ("node.k8s.io", "RuntimeClass") => cluster::runtime_class(object, causes),
        ("", "ConfigMap") => small::config_map(object, causes),
        ("", "Secret") => small::secret(object, causes),
        ("apps", "Deployment") => workload::deployment(spec, causes),
        ("apps", "ReplicaSet") => workload::replica_set(spec, causes),
        ("apps", "StatefulSet") => workload::stateful_set(spec, causes),
        ("apps", "DaemonSet") => workload::daemon_set(spec, causes),
        ("batch", "Job") => job::job(object, is_new, causes),
        ("batch", "CronJob") => job::cron_job(spec, causes),
        ("autoscaling", "HorizontalPodAutoscaler") => small::autoscaler(spec, causes),
        ("networking.k8s.io", "Ingress") => service::ingress(object, is_new, causes),
        ("networking.k8s.io", "NetworkPolicy") => service::network_policy(spec, causes),
        ("policy", "PodDisruptionBudget") => small::disruption_budget(spec, causes),
        ("rbac.authorization.k8s.io", "Role" | "ClusterRole") => {
            small::role(object, kind.namespaced, causes);
            cluster::role_aggregation(object, causes);
        }
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => {
            small::role_binding(object, kind.namespaced, causes);
        }
        ("scheduling.k8s.io", "PriorityClass") => small::priority_class(object, causes),
        ("certificates.k8s.io", "CertificateSigningRequest") => {
            certificate::request(object, causes);
        }
        ("storage.k8s.io", "StorageClass") => small::storage_class(object, causes),
        ("admissionregistration.k8s.io", _) => check_webhooks(kind, object.value, causes),
        _ => {}
    }
}
