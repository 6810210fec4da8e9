//! What installs an operator beside its CRDs and roles: where it lives, as whom it runs, and the Deployment that runs it.

use std::time::Duration;

use serde_json::{Value, json};

use crate::operator::SHUTDOWN_LIMIT;
use crate::program::rbac::ServiceAccount;

/// What a process takes to end beside the work that it waits for.
const ENDING: Duration = Duration::from_secs(10);

/// The level of the Pod Security Standards that the Deployment keeps.
const LEVEL: &str = "restricted";

/// An operator in a cluster.
pub(crate) struct Installation<'a> {
    /// As whom it runs, and where; the Deployment has its name.
    pub(crate) account: &'a ServiceAccount,
    /// What holds the program, as its entry point.
    pub(crate) image: &'a str,
    /// What `run` is told to look at; none is the whole cluster.
    pub(crate) namespaces: &'a [String],
}

impl Installation<'_> {
    /// A namespace for the operator alone.
    pub(crate) fn namespace(&self) -> Value {
        json!({
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {
                "name": self.account.namespace,
                "labels": {
                    "pod-security.kubernetes.io/enforce": LEVEL,
                    // Only so does a change of the Deployment that breaks the level say so.
                    "pod-security.kubernetes.io/warn": LEVEL,
                },
            },
        })
    }

    pub(crate) fn service_account(&self) -> Value {
        json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": self.metadata() })
    }

    /// One replica, never two at once: without leadership a second one would repeat work, under the same ids.
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
                                // No limit of CPU: an operator that is slowed down misses its deadlines.
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
