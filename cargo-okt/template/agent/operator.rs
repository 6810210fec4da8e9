//! The Pods of the objects: the application, and beside it the agent that does the work of each state.

use okt::k8s_openapi::api::apps::v1::StatefulSet;
use okt::k8s_openapi::api::core::v1::Service;
use okt::kube::ResourceExt;
use okt::serde_json::{self, json};
use okt::sidecar::{AgentConfigError, AgentPods, PodAgent};
use okt::{Context, Declared, Failure, Resources, Watches};

use super::resource::{Widget, WidgetState};

/// The image of the agent: `okt-sidecar/Dockerfile` of OKT makes it.
const AGENT_IMAGE: &str = "okt-sidecar:0.1.0";

/// The image of the application.
const IMAGE: &str = "nginxinc/nginx-unprivileged:stable";

/// Returns the agent of each object.
///
/// # Errors
///
/// `sidecar.yaml` has a key that follows from the Pod.
pub fn agent() -> Result<PodAgent, AgentConfigError> {
    PodAgent::new(AGENT_IMAGE, include_str!("sidecar.yaml"), "data")
}

/// The Pods.
#[derive(Clone)]
pub struct Pods {
    /// The agent in each.
    pub agent: PodAgent,
}

impl AgentPods for Pods {
    type Resource = Widget;

    fn agent(&self) -> &PodAgent {
        &self.agent
    }

    fn watches(watches: Watches<Widget>) -> Watches<Widget> {
        PodAgent::watches(watches).owns::<StatefulSet>()
    }

    async fn resources(&self, cx: &Context<Widget>, state: WidgetState) -> Result<Resources, Failure> {
        if state == WidgetState::Gone {
            return Ok(Resources::new());
        }
        let name = cx.object().name_any();
        let labels = json!({ "app.kubernetes.io/name": "widget", "app.kubernetes.io/instance": name });
        let mut set: StatefulSet = serde_json::from_value(json!({
            "metadata": { "name": name },
            "spec": {
                // An object has one agent.
                "replicas": 1,
                "serviceName": name,
                // Otherwise a Pod that cannot start is never replaced by one that can.
                "podManagementPolicy": "Parallel",
                "selector": { "matchLabels": labels },
                "template": {
                    "metadata": { "labels": labels },
                    "spec": {
                        "containers": [{
                            "name": "application",
                            "image": IMAGE,
                            // The NetworkPolicy of the agent admits what is named here.
                            "ports": [{ "name": "http", "containerPort": 8080 }],
                        }],
                    },
                },
                "volumeClaimTemplates": [{
                    "metadata": { "name": "data" },
                    "spec": {
                        "accessModes": ["ReadWriteOnce"],
                        "resources": { "requests": { "storage": "1Gi" } },
                    },
                }],
            },
        }))?;
        let service: Service = serde_json::from_value(json!({
            "metadata": { "name": name },
            "spec": {
                "clusterIP": "None",
                "selector": labels,
                "ports": [{ "name": "http", "port": 8080 }],
            },
        }))?;
        let needed = self.agent.beside(cx, &mut set.spec.template)?;
        // The Pod stays until the work on the way out is done, however the object is deleted.
        let set = Declared::of(set).unowned().during_deletion();
        Ok(needed.apply(service).with(set))
    }
}
