//! The defaults that Kubernetes sets in code, and that no `OpenAPI` document has: the functions `SetDefaults_*` of
//! `pkg/apis` in kubernetes/kubernetes.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Map, Value, json};

use crate::object;

type Fields = Map<String, Value>;

/// The fields of each type that have a constant default, as JSON.
pub(super) const CONSTANT: &[(&str, &[(&str, &str)])] = &[
    (
        "admissionregistration.v1.MatchResources",
        &[
            ("matchPolicy", r#""Equivalent""#),
            ("namespaceSelector", "{}"),
            ("objectSelector", "{}"),
        ],
    ),
    (
        "admissionregistration.v1.MutatingAdmissionPolicySpec",
        &[("failurePolicy", r#""Fail""#)],
    ),
    (
        "admissionregistration.v1.MutatingWebhook",
        &[
            ("failurePolicy", r#""Fail""#),
            ("matchPolicy", r#""Equivalent""#),
            ("namespaceSelector", "{}"),
            ("objectSelector", "{}"),
            ("timeoutSeconds", "10"),
            ("reinvocationPolicy", r#""Never""#),
        ],
    ),
    (
        "admissionregistration.v1.RuleWithOperations",
        &[("scope", r#""*""#)],
    ),
    (
        "admissionregistration.v1.NamedRuleWithOperations",
        &[("scope", r#""*""#)],
    ),
    (
        "admissionregistration.v1.ServiceReference",
        &[("port", "443")],
    ),
    (
        "admissionregistration.v1.ValidatingAdmissionPolicySpec",
        &[("failurePolicy", r#""Fail""#)],
    ),
    (
        "admissionregistration.v1.ValidatingWebhook",
        &[
            ("failurePolicy", r#""Fail""#),
            ("matchPolicy", r#""Equivalent""#),
            ("namespaceSelector", "{}"),
            ("objectSelector", "{}"),
            ("timeoutSeconds", "10"),
        ],
    ),
    ("apiregistration.v1.ServiceReference", &[("port", "443")]),
    ("apps.v1.DaemonSetSpec", &[("revisionHistoryLimit", "10")]),
    (
        "apps.v1.DaemonSetUpdateStrategy",
        &[("type", r#""RollingUpdate""#)],
    ),
    (
        "apps.v1.DeploymentSpec",
        &[
            ("replicas", "1"),
            ("revisionHistoryLimit", "10"),
            ("progressDeadlineSeconds", "600"),
        ],
    ),
    (
        "apps.v1.DeploymentStrategy",
        &[("type", r#""RollingUpdate""#)],
    ),
    ("apps.v1.ReplicaSetSpec", &[("replicas", "1")]),
    (
        "apps.v1.StatefulSetPersistentVolumeClaimRetentionPolicy",
        &[
            ("whenDeleted", r#""Retain""#),
            ("whenScaled", r#""Retain""#),
        ],
    ),
    (
        "apps.v1.StatefulSetSpec",
        &[
            ("replicas", "1"),
            ("revisionHistoryLimit", "10"),
            ("podManagementPolicy", r#""OrderedReady""#),
        ],
    ),
    (
        "autoscaling.v2.HorizontalPodAutoscalerSpec",
        &[("minReplicas", "1")],
    ),
    (
        "batch.v1.CronJobSpec",
        &[
            ("concurrencyPolicy", r#""Allow""#),
            ("suspend", "false"),
            ("successfulJobsHistoryLimit", "3"),
            ("failedJobsHistoryLimit", "1"),
        ],
    ),
    (
        "batch.v1.PodFailurePolicyOnPodConditionsPattern",
        &[("status", r#""True""#)],
    ),
    ("core.v1.ConfigMapVolumeSource", &[("defaultMode", "420")]),
    (
        "core.v1.Container",
        &[
            ("terminationMessagePath", r#""/dev/termination-log""#),
            ("terminationMessagePolicy", r#""File""#),
        ],
    ),
    ("core.v1.DownwardAPIVolumeSource", &[("defaultMode", "420")]),
    ("core.v1.EndpointPort", &[("protocol", r#""TCP""#)]),
    (
        "core.v1.EphemeralContainer",
        &[
            ("terminationMessagePath", r#""/dev/termination-log""#),
            ("terminationMessagePolicy", r#""File""#),
        ],
    ),
    ("core.v1.GRPCAction", &[("service", r#""""#)]),
    (
        "core.v1.HTTPGetAction",
        &[("path", r#""/""#), ("scheme", r#""HTTP""#)],
    ),
    ("core.v1.HostPathVolumeSource", &[("type", r#""""#)]),
    (
        "core.v1.ISCSIVolumeSource",
        &[("iscsiInterface", r#""default""#)],
    ),
    ("core.v1.NamespaceStatus", &[("phase", r#""Active""#)]),
    ("core.v1.ObjectFieldSelector", &[("apiVersion", r#""v1""#)]),
    (
        "core.v1.PersistentVolumeClaimSpec",
        &[("volumeMode", r#""Filesystem""#)],
    ),
    (
        "core.v1.PersistentVolumeClaimStatus",
        &[("phase", r#""Pending""#)],
    ),
    (
        "core.v1.PersistentVolumeSpec",
        &[
            ("persistentVolumeReclaimPolicy", r#""Retain""#),
            ("volumeMode", r#""Filesystem""#),
        ],
    ),
    (
        "core.v1.PersistentVolumeStatus",
        &[("phase", r#""Pending""#)],
    ),
    (
        "core.v1.PodSpec",
        &[
            ("dnsPolicy", r#""ClusterFirst""#),
            ("restartPolicy", r#""Always""#),
            ("securityContext", "{}"),
            ("terminationGracePeriodSeconds", "30"),
            ("schedulerName", r#""default-scheduler""#),
        ],
    ),
    (
        "core.v1.Probe",
        &[
            ("timeoutSeconds", "1"),
            ("periodSeconds", "10"),
            ("successThreshold", "1"),
            ("failureThreshold", "3"),
        ],
    ),
    ("core.v1.ProjectedVolumeSource", &[("defaultMode", "420")]),
    ("core.v1.ReplicationControllerSpec", &[("replicas", "1")]),
    ("core.v1.Secret", &[("type", r#""Opaque""#)]),
    ("core.v1.SecretVolumeSource", &[("defaultMode", "420")]),
    (
        "core.v1.ServiceAccountTokenProjection",
        &[("expirationSeconds", "3600")],
    ),
    (
        "core.v1.ServiceSpec",
        &[("sessionAffinity", r#""None""#), ("type", r#""ClusterIP""#)],
    ),
    (
        "discovery.v1.EndpointPort",
        &[("name", r#""""#), ("protocol", r#""TCP""#)],
    ),
    (
        "flowcontrol.v1.ExemptPriorityLevelConfiguration",
        &[("nominalConcurrencyShares", "0"), ("lendablePercent", "0")],
    ),
    (
        "flowcontrol.v1.FlowSchemaSpec",
        &[("matchingPrecedence", "1000")],
    ),
    (
        "flowcontrol.v1.LimitedPriorityLevelConfiguration",
        &[("nominalConcurrencyShares", "30"), ("lendablePercent", "0")],
    ),
    (
        "flowcontrol.v1.QueuingConfiguration",
        &[
            ("handSize", "8"),
            ("queues", "64"),
            ("queueLengthLimit", "50"),
        ],
    ),
    (
        "networking.v1.IngressClassParametersReference",
        &[("scope", r#""Cluster""#)],
    ),
    (
        "networking.v1.NetworkPolicyPort",
        &[("protocol", r#""TCP""#)],
    ),
    (
        "rbac.v1.RoleRef",
        &[("apiGroup", r#""rbac.authorization.k8s.io""#)],
    ),
    (
        "scheduling.v1.PriorityClass",
        &[("preemptionPolicy", r#""PreemptLowerPriority""#)],
    ),
    (
        "storage.v1.CSIDriverSpec",
        &[
            ("attachRequired", "true"),
            ("podInfoOnMount", "false"),
            ("storageCapacity", "false"),
            ("fsGroupPolicy", r#""ReadWriteOnceWithFSType""#),
            ("volumeLifecycleModes", r#"["Persistent"]"#),
            ("requiresRepublish", "false"),
            ("seLinuxMount", "false"),
        ],
    ),
    (
        "storage.v1.StorageClass",
        &[
            ("reclaimPolicy", r#""Delete""#),
            ("volumeBindingMode", r#""Immediate""#),
        ],
    ),
];

/// Sets the defaults of a struct that depend on its other fields.
pub(super) fn complete(struct_name: &str, fields: &mut Fields) {
    match struct_name.split('.').next() {
        Some("core") => complete_core(struct_name, fields),
        Some("apps") => complete_apps(struct_name, fields),
        _ => complete_other(struct_name, fields),
    }
}

fn complete_core(struct_name: &str, fields: &mut Fields) {
    match struct_name {
        "core.v1.Container" | "core.v1.EphemeralContainer" => {
            let policy = pull_policy(fields.get("image").and_then(Value::as_str).unwrap_or(""));
            set_default(fields, "imagePullPolicy", policy);
        }
        "core.v1.Volume" if fields.keys().all(|key| key == "name") => {
            fields.insert("emptyDir".to_owned(), json!({}));
        }
        "core.v1.ImageVolumeSource" => {
            let policy = pull_policy(
                fields
                    .get("reference")
                    .and_then(Value::as_str)
                    .unwrap_or(""),
            );
            set_default(fields, "pullPolicy", policy);
        }
        // Each of these names is the other's, for old clients.
        "core.v1.PodSpec" => {
            for (from, to) in [
                ("serviceAccountName", "serviceAccount"),
                ("serviceAccount", "serviceAccountName"),
            ] {
                if let Some(name) = fields.get(from).cloned() {
                    set_default(fields, to, name);
                }
            }
        }
        "core.v1.ServiceSpec" => complete_service(fields),
        "core.v1.Service" => complete_balanced(fields),
        "core.v1.Pod" => complete_pod(fields),
        "core.v1.NodeStatus" => {
            if let Some(capacity) = fields.get("capacity").cloned() {
                set_default(fields, "allocatable", capacity);
            }
        }
        "core.v1.LimitRangeItem" if fields.get("type") == Some(&json!("Container")) => {
            for (from, to) in [
                ("max", "default"),
                ("default", "defaultRequest"),
                ("min", "defaultRequest"),
            ] {
                set_all(fields, from, to);
            }
        }
        "core.v1.ReplicationController" => {
            let labels = template_labels(fields);
            if let Some(labels) = labels {
                let spec = object::fields(fields.entry("spec").or_insert(Value::Null));
                set_default(spec, "selector", labels.clone());
                set_labels(fields, labels);
            }
        }
        _ => {}
    }
}

fn complete_apps(struct_name: &str, fields: &mut Fields) {
    match struct_name {
        "apps.v1.DeploymentStrategy" if fields.get("type") == Some(&json!("RollingUpdate")) => {
            let rolling = default_object(fields, "rollingUpdate");
            set_default(rolling, "maxUnavailable", "25%");
            set_default(rolling, "maxSurge", "25%");
        }
        "apps.v1.DaemonSetUpdateStrategy"
            if fields.get("type") == Some(&json!("RollingUpdate")) =>
        {
            let rolling = default_object(fields, "rollingUpdate");
            set_default(rolling, "maxUnavailable", 1);
            set_default(rolling, "maxSurge", 0);
        }
        "apps.v1.StatefulSetUpdateStrategy" => {
            if !fields.get("type").is_some_and(|it| *it != "") {
                fields.insert("type".to_owned(), "RollingUpdate".into());
                default_object(fields, "rollingUpdate");
            }
            let is_rolling = fields.get("type") == Some(&json!("RollingUpdate"));
            if let Some(Value::Object(rolling)) = fields.get_mut("rollingUpdate")
                && is_rolling
            {
                set_default(rolling, "partition", 0);
            }
        }
        "apps.v1.StatefulSetSpec" => {
            let policy = default_object(fields, "persistentVolumeClaimRetentionPolicy");
            set_default(policy, "whenDeleted", "Retain");
            set_default(policy, "whenScaled", "Retain");
            let claims = fields.get_mut("volumeClaimTemplates");
            for claim in claims.and_then(Value::as_array_mut).into_iter().flatten() {
                claim["apiVersion"] = "v1".into();
                claim["kind"] = "PersistentVolumeClaim".into();
            }
        }
        _ => {}
    }
}

fn complete_other(struct_name: &str, fields: &mut Fields) {
    match struct_name {
        "batch.v1.Job" => {
            complete_job(object::fields(fields.entry("spec").or_insert(Value::Null)));
            if let Some(labels) = template_labels(fields) {
                set_labels(fields, labels);
            }
        }
        "autoscaling.v2.HorizontalPodAutoscalerSpec" => complete_autoscaler(fields),
        "networking.v1.NetworkPolicySpec" => {
            let types = match fields.get("egress") {
                Some(_) => json!(["Ingress", "Egress"]),
                None => json!(["Ingress"]),
            };
            set_default(fields, "policyTypes", types);
        }
        "rbac.v1.Subject" => {
            if matches!(
                fields.get("kind").and_then(Value::as_str),
                Some("User" | "Group")
            ) {
                set_default(fields, "apiGroup", "rbac.authorization.k8s.io");
            }
        }
        "resource.v1.ExactDeviceRequest" | "resource.v1.DeviceSubRequest" => {
            set_default(fields, "allocationMode", "ExactCount");
            if fields.get("allocationMode") == Some(&json!("ExactCount")) {
                set_default(fields, "count", 1);
            }
        }
        _ => {}
    }
}

/// Sets a field that is missing.
fn set_default(fields: &mut Fields, key: &str, value: impl Into<Value>) {
    let found = fields.entry(key).or_insert(Value::Null);
    if found.is_null() {
        *found = value.into();
    }
}

fn default_object<'f>(fields: &'f mut Fields, key: &str) -> &'f mut Fields {
    object::fields(fields.entry(key).or_insert(Value::Null))
}

/// Copies the entries of a map that another map lacks.
fn set_all(fields: &mut Fields, from: &str, to: &str) {
    let source = fields.get(from).and_then(Value::as_object).cloned();
    let target = default_object(fields, to);
    for (key, value) in source.into_iter().flatten() {
        target.entry(key).or_insert(value);
    }
    if target.is_empty() {
        fields.remove(to);
    }
}

/// Returns the policy for an image: one without a tag, or with the tag `latest`, is always pulled.
fn pull_policy(image: &str) -> &'static str {
    static REFERENCE: LazyLock<Regex> = LazyLock::new(|| {
        let part = "[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*";
        let domain = "(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::[0-9]+)?/)?";
        let pattern = format!(r"^{domain}{part}(?:/{part})*(?::([\w][\w.-]{{0,127}}))?(@.+)?$");
        Regex::new(&pattern).expect("the pattern is valid")
    });
    let Some(found) = REFERENCE.captures(image) else {
        return "IfNotPresent";
    };
    match found.get(1).map(|tag| tag.as_str()) {
        Some("latest") => "Always",
        None if found.get(2).is_none() => "Always",
        Some(_) | None => "IfNotPresent",
    }
}

fn template_labels(workload: &Fields) -> Option<Value> {
    let labels = workload.get("spec")?.pointer("/template/metadata/labels")?;
    labels.is_object().then(|| labels.clone())
}

/// Labels an object that has no labels.
fn set_labels(fields: &mut Fields, labels: Value) {
    let metadata = object::fields(fields.entry("metadata").or_insert(Value::Null));
    let found = metadata.entry("labels").or_insert(Value::Null);
    if found.as_object().is_none_or(Fields::is_empty) {
        *found = labels;
    }
}

fn complete_service(spec: &mut Fields) {
    let kind = spec
        .get("type")
        .and_then(Value::as_str)
        .unwrap_or("")
        .to_owned();
    match spec.get("sessionAffinity").and_then(Value::as_str) {
        Some("None") => {
            spec.remove("sessionAffinityConfig");
        }
        Some("ClientIP") => {
            let config = default_object(spec, "sessionAffinityConfig");
            set_default(default_object(config, "clientIP"), "timeoutSeconds", 10_800);
        }
        _ => {}
    }
    let ports = spec.get_mut("ports").and_then(Value::as_array_mut);
    for port in ports.into_iter().flatten() {
        let number = port["port"].clone();
        let target = &mut port["targetPort"];
        if *target == 0 || *target == "" {
            *target = number;
        }
    }
    let has_external_address = spec.contains_key("externalIPs") && kind == "ClusterIP";
    if matches!(kind.as_str(), "NodePort" | "LoadBalancer") || has_external_address {
        set_default(spec, "externalTrafficPolicy", "Cluster");
    }
    if matches!(kind.as_str(), "NodePort" | "LoadBalancer" | "ClusterIP") {
        set_default(spec, "internalTrafficPolicy", "Cluster");
    }
    if kind == "LoadBalancer" {
        set_default(spec, "allocateLoadBalancerNodePorts", true);
    }
}

/// Sets how the addresses of a load balancer are used.
fn complete_balanced(service: &mut Fields) {
    if service["spec"]["type"] != "LoadBalancer" {
        return;
    }
    let addresses = service
        .get_mut("status")
        .and_then(|status| status.pointer_mut("/loadBalancer/ingress"));
    for address in addresses
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        if let Value::Object(address) = address
            && address.contains_key("ip")
        {
            set_default(address, "ipMode", "VIP");
        }
    }
}

fn complete_pod(pod: &mut Fields) {
    let spec = object::fields(pod.entry("spec").or_insert(Value::Null));
    set_default(spec, "enableServiceLinks", true);
    let on_host = spec.get("hostNetwork") == Some(&Value::Bool(true));
    for key in ["containers", "initContainers"] {
        let containers = spec.get_mut(key).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            if let Some(Value::Object(resources)) = container.get_mut("resources")
                && resources.contains_key("limits")
            {
                set_all(resources, "limits", "requests");
            }
            let ports = container.get_mut("ports").and_then(Value::as_array_mut);
            for port in ports.into_iter().flatten().filter(|_| on_host) {
                let number = port["containerPort"].clone();
                set_default(object::fields(port), "hostPort", number);
            }
        }
    }
}

fn complete_job(spec: &mut Fields) {
    set_default(spec, "completionMode", "NonIndexed");
    set_default(spec, "suspend", false);
    set_default(spec, "manualSelector", false);
    if !spec.contains_key("completions") && !spec.contains_key("parallelism") {
        spec.insert("completions".to_owned(), 1.into());
    }
    set_default(spec, "parallelism", 1);
    let limit = if spec.contains_key("backoffLimitPerIndex") {
        i32::MAX
    } else {
        6
    };
    set_default(spec, "backoffLimit", limit);
    let replacement = if spec.contains_key("podFailurePolicy") {
        "Failed"
    } else {
        "TerminatingOrFailed"
    };
    set_default(spec, "podReplacementPolicy", replacement);
}

fn complete_autoscaler(spec: &mut Fields) {
    let cpu = json!([{
        "type": "Resource",
        "resource": { "name": "cpu", "target": { "type": "Utilization", "averageUtilization": 80 } },
    }]);
    set_default(spec, "metrics", cpu);
    let Some(Value::Object(behavior)) = spec.get_mut("behavior") else {
        return;
    };
    let percent = json!({ "type": "Percent", "value": 100, "periodSeconds": 15 });
    let pods = json!({ "type": "Pods", "value": 4, "periodSeconds": 15 });
    let up = default_object(behavior, "scaleUp");
    set_default(up, "stabilizationWindowSeconds", 0);
    set_default(up, "selectPolicy", "Max");
    set_default(up, "policies", json!([pods, percent]));
    let down = default_object(behavior, "scaleDown");
    set_default(down, "selectPolicy", "Max");
    set_default(down, "policies", json!([percent]));
}
