//! The manifests of an operator in addition to its CRDs and roles: namespace, service account and Deployment.

use std::time::Duration;

use serde_json::{Value, json};

use crate::operator::SHUTDOWN_LIMIT;
use crate::program::rbac::ServiceAccount;

/// The time that a process takes to end, in addition to the shutdown limit.
const ENDING: Duration = Duration::from_secs(10);

/// The level of the Pod Security Standards that the Deployment complies with.
const LEVEL: &str = "restricted";

/// The installation of an operator in a cluster.
pub(crate) struct Installation<'a> {
    /// The service account of the operator, in the namespace of the operator; the Deployment has its name.
    pub(crate) account: &'a ServiceAccount,
    /// The image that has the program as its entry point.
    pub(crate) image: &'a str,
    /// The namespaces that `run` watches; none means the whole cluster.
    pub(crate) namespaces: &'a [String],
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

    /// Returns the Deployment: one replica, never two at once. Without leader election a second one would repeat work
    /// under the same ids.
    pub(crate) fn deployment(&self) -> Value {
        let labels = json!({ "app.kubernetes.io/name": self.account.name });
        let namespaces = self.namespaces.iter();
        let limits = namespaces.map(|namespace| format!("--namespace={namespace}"));
        let arguments: Vec<_> = std::iter::once("run".to_owned()).chain(limits).collect();
        json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": self.metadata(),
            "spec": {
                "replicas": 1,
                "strategy": { "type": "Recreate" },
                "selector": { "matchLabels": labels },
                "template": {
                    "metadata": { "labels": labels },
                    "spec": {
                        "serviceAccountName": self.account.name,
                        "terminationGracePeriodSeconds": SHUTDOWN_LIMIT.saturating_add(ENDING).as_secs(),
                        "securityContext": {
                            "runAsNonRoot": true,
                            "seccompProfile": { "type": "RuntimeDefault" },
                        },
                        "containers": [{
                            "name": "operator",
                            "image": self.image,
                            "args": arguments,
                            "env": [{ "name": "RUST_LOG", "value": "info" }],
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
                        }],
                    },
                },
            },
        })
    }

    fn metadata(&self) -> Value {
        json!({
            "name": self.account.name,
            "namespace": self.account.namespace,
            "labels": { "app.kubernetes.io/name": self.account.name },
        })
    }
}
