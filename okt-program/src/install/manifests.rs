//! The manifests of an operator in addition to its CRDs and roles: namespace, service account, Deployment, disruption
//! budget, and the Service of its metrics.

use std::time::Duration;

use okt_runtime::__program::SHUTDOWN_LIMIT;
use serde_json::{Value, json};

use crate::install::account::ServiceAccount;
use crate::install::webhooks::{WEBHOOKS_PORT, WebhookService};

/// The time that a process takes to end, in addition to the shutdown limit.
const ENDING: Duration = Duration::from_secs(10);

/// The level of the Pod Security Standards that the Deployment complies with.
const LEVEL: &str = "restricted";

/// The default ports.
pub(crate) const HEALTH_PORT: u16 = 8081;
const METRICS_PORT: u16 = 8080;
const SECURE_METRICS_PORT: u16 = 8443;

/// Returns the default port of the metrics, over TLS or not.
pub(crate) const fn metrics_port(secure: bool) -> u16 {
    if secure {
        SECURE_METRICS_PORT
    } else {
        METRICS_PORT
    }
}

/// The installation of an operator in a cluster.
#[derive(Clone)]
pub(crate) struct Installation<'a> {
    /// The service account of the operator, in the namespace of the operator; the Deployment has its name.
    pub(crate) account: &'a ServiceAccount,
    /// The image that has the program as its entry point.
    pub(crate) image: &'a str,
    /// The namespaces that `run` watches; none means the whole cluster.
    pub(crate) namespaces: &'a [String],
    pub(crate) replicas: u16,
    /// How many replicas act at the same time, as `run` reads it.
    pub(crate) shards: String,
    /// Whether the program serves metrics and health.
    pub(crate) serves: bool,
    /// Whether the metrics are served over TLS, to those whom the API server permits.
    pub(crate) secure: bool,
    /// The Service of the webhooks, if there are any.
    pub(crate) webhooks: Option<WebhookService>,
}

impl Installation<'_> {
    /// Returns the namespace for the operator alone.
    pub(crate) fn namespace(&self) -> Value {
        json!({
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {
                "name": self.account.namespace,
                "labels": {
                    "pod-security.kubernetes.io/enforce": LEVEL,
                    // Without this label a change of the Deployment that violates the level causes no warning.
                    "pod-security.kubernetes.io/warn": LEVEL,
                },
            },
        })
    }

    pub(crate) fn service_account(&self) -> Value {
        json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": self.metadata() })
    }

    /// Returns the disruption budget, so that a drained node takes one replica at a time. One replica has none: it
    /// would keep its node from being drained.
    pub(crate) fn disruption_budget(&self) -> Option<Value> {
        (self.replicas > 1).then(|| {
            json!({
                "apiVersion": "policy/v1",
                "kind": "PodDisruptionBudget",
                "metadata": self.metadata(),
                "spec": { "maxUnavailable": 1, "selector": { "matchLabels": self.labels() } },
            })
        })
    }

    /// Returns the Service by which metrics are found; each replica has metrics of its own.
    pub(crate) fn metrics_service(&self) -> Option<Value> {
        self.serves.then(|| {
            json!({
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": self.metrics_metadata(),
                "spec": {
                    "clusterIP": "None",
                    // A replica that is not ready is the one to look at.
                    "publishNotReadyAddresses": true,
                    "selector": self.labels(),
                    "ports": [{ "name": "metrics", "port": metrics_port(self.secure), "targetPort": "metrics" }],
                },
            })
        })
    }

    /// Returns the Service by which the API server finds the webhooks.
    pub(crate) fn webhook_service(&self) -> Option<Value> {
        self.webhooks.as_ref().map(|service| {
            json!({
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {
                    "name": service.name,
                    "namespace": service.namespace,
                    "labels": self.labels(),
                },
                "spec": {
                    // A replica that waits for its definition is not ready, and converts objects.
                    "publishNotReadyAddresses": true,
                    "selector": self.labels(),
                    "ports": [{ "name": "webhooks", "port": 443, "targetPort": "webhooks" }],
                },
            })
        })
    }

    /// Returns the `ServiceMonitor` for the Prometheus Operator.
    pub(crate) fn service_monitor(&self) -> Option<Value> {
        let mut endpoint = json!({ "port": "metrics" });
        if self.secure {
            endpoint["scheme"] = json!("https");
            // The token of Prometheus' own service account.
            endpoint["bearerTokenFile"] =
                json!("/var/run/secrets/kubernetes.io/serviceaccount/token");
            // The operator signs its certificate itself.
            endpoint["tlsConfig"] = json!({ "insecureSkipVerify": true });
        }
        self.serves.then(|| {
            json!({
                "apiVersion": "monitoring.coreos.com/v1",
                "kind": "ServiceMonitor",
                "metadata": self.metrics_metadata(),
                "spec": {
                    "selector": { "matchLabels": self.labels() },
                    "endpoints": [endpoint],
                },
            })
        })
    }

    /// Returns the policy by which nobody reaches the operator, except its metrics and its webhooks. The probes come
    /// from the node, which no policy keeps away.
    pub(crate) fn network_policy(&self) -> Option<Value> {
        let mut allowed = vec![json!({ "ports": [{ "port": "metrics" }] })];
        allowed.extend(
            self.webhooks
                .iter()
                .map(|_| json!({ "ports": [{ "port": "webhooks" }] })),
        );
        self.serves.then(|| {
            json!({
                "apiVersion": "networking.k8s.io/v1",
                "kind": "NetworkPolicy",
                "metadata": self.metadata(),
                "spec": {
                    "podSelector": { "matchLabels": self.labels() },
                    "policyTypes": ["Ingress"],
                    "ingress": allowed,
                },
            })
        })
    }

    fn metrics_metadata(&self) -> Value {
        json!({
            "name": format!("{}-metrics", self.account.name),
            "namespace": self.account.namespace,
            "labels": self.labels(),
        })
    }

    /// Returns the operator's container.
    fn container(&self) -> Value {
        let mut arguments = vec!["run".to_owned()];
        if self.shards != "1" {
            arguments.push(format!("--shards={}", self.shards));
        }
        if self.secure {
            arguments.push("--metrics-secure".to_owned());
        }
        let namespaces = self.namespaces.iter();
        arguments.extend(namespaces.map(|namespace| format!("--namespace={namespace}")));
        let mut container = json!({
            "name": "operator",
            "image": self.image,
            "args": arguments,
            "resources": {
                "requests": { "cpu": "10m", "memory": "64Mi" },
                // No CPU limit: a throttled operator misses its deadlines.
                "limits": { "memory": "256Mi" },
            },
            "securityContext": {
                "allowPrivilegeEscalation": false,
                "capabilities": { "drop": ["ALL"] },
                "readOnlyRootFilesystem": true,
            },
        });
        if self.serves {
            let probe = |path: &str| json!({ "httpGet": { "path": path, "port": "health" } });
            container["ports"] = json!([
                { "name": "metrics", "containerPort": metrics_port(self.secure) },
                { "name": "health", "containerPort": HEALTH_PORT },
            ]);
            if self.webhooks.is_some()
                && let Some(ports) = container["ports"].as_array_mut()
            {
                ports.push(json!({ "name": "webhooks", "containerPort": WEBHOOKS_PORT }));
            }
            container["livenessProbe"] = probe("/livez");
            container["readinessProbe"] = probe("/readyz");
        }
        container
    }

    /// Returns the Deployment. A new replica starts before an old one stops, so that there is always one to take over.
    pub(crate) fn deployment(&self) -> Value {
        let labels = self.labels();
        json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": self.metadata(),
            "spec": {
                "replicas": self.replicas,
                "strategy": {
                    "type": "RollingUpdate",
                    "rollingUpdate": { "maxSurge": 1, "maxUnavailable": 0 },
                },
                "selector": { "matchLabels": labels },
                "template": {
                    "metadata": { "labels": labels },
                    "spec": {
                        "serviceAccountName": self.account.name,
                        "topologySpreadConstraints": [{
                            "maxSkew": 1,
                            "topologyKey": "kubernetes.io/hostname",
                            "whenUnsatisfiable": "ScheduleAnyway",
                            "labelSelector": { "matchLabels": labels },
                        }],
                        "terminationGracePeriodSeconds": SHUTDOWN_LIMIT.saturating_add(ENDING).as_secs(),
                        "securityContext": {
                            "runAsNonRoot": true,
                            "seccompProfile": { "type": "RuntimeDefault" },
                        },
                        "containers": [self.container()],
                    },
                },
            },
        })
    }

    fn labels(&self) -> Value {
        json!({ "app.kubernetes.io/name": self.account.name })
    }

    fn metadata(&self) -> Value {
        json!({
            "name": self.account.name,
            "namespace": self.account.namespace,
            "labels": { "app.kubernetes.io/name": self.account.name },
        })
    }
}
