//! Where the API server finds the webhooks of a program, and what it asks them.

#![cfg_attr(
    not(feature = "cli"),
    expect(dead_code, reason = "the command line prints what installs them")
)]

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, WebhookClientConfig,
};
use kube::{CustomResourceExt, Resource};
use okt_runtime::{Admission, Application, crd};
use okt_wire::versions::KindVersions;
use serde_json::{Value, json};

/// The port of the webhooks in a pod.
pub(crate) const WEBHOOKS_PORT: u16 = 9443;

/// How long the API server waits for an answer before it stores an object, in seconds.
const TIMEOUT_SECONDS: u8 = 5;

/// What the API server asks a program about the objects of a kind: [`webhook_roles`](crate::webhook_roles) takes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KindWebhooks {
    /// The name of the definition, and of the configurations of the webhooks.
    pub(crate) crd: &'static str,
    group: String,
    /// All versions.
    versions: Vec<String>,
    plural: String,
    /// To convert them between versions.
    pub(crate) converts: bool,
    /// To check them.
    pub(crate) validates: bool,
    /// To complete them.
    pub(crate) completes: bool,
}

impl KindWebhooks {
    /// Returns what the API server asks about the objects of an application.
    pub fn of<A: Application>() -> Self {
        let admission = A::admission(Admission::default());
        let versions = KindVersions::of::<A::Resource>();
        Self {
            crd: A::Resource::crd_name(),
            group: A::Resource::group(&()).into_owned(),
            versions: versions.all().iter().map(|it| it.name.clone()).collect(),
            plural: A::Resource::plural(&()).into_owned(),
            converts: crd::<A::Resource>().is_ok_and(|crd| crd.spec.conversion.is_some()),
            validates: admission.validates(),
            completes: admission.completes(),
        }
    }

    /// Returns whether it asks at all.
    pub fn are_needed(&self) -> bool {
        self.converts || self.validates || self.completes
    }

    /// Returns the configurations of the webhooks that check and complete objects, in these namespaces or in all.
    pub(crate) fn configurations(&self, at: &WebhookService, namespaces: &[String]) -> Vec<Value> {
        let both = [
            (self.completes, "Mutating", "complete"),
            (self.validates, "Validating", "validate"),
        ];
        let wanted = both.into_iter().filter(|(is_wanted, ..)| *is_wanted);
        let configurations = wanted.map(|(_, kind, task)| {
            json!({
                "apiVersion": "admissionregistration.k8s.io/v1",
                "kind": format!("{kind}WebhookConfiguration"),
                "metadata": { "name": self.crd },
                "webhooks": [self.configuration(task, at, namespaces)],
            })
        });
        configurations.collect()
    }

    fn configuration(&self, task: &str, at: &WebhookService, namespaces: &[String]) -> Value {
        let mut webhook = json!({
            "name": format!("{task}.{}", self.crd),
            "clientConfig": { "service": {
                "name": at.name,
                "namespace": at.namespace,
                "path": format!("/{task}/{}", self.crd),
                "port": 443,
            } },
            "rules": [{
                "apiGroups": [self.group],
                "apiVersions": self.versions,
                "operations": ["CREATE", "UPDATE"],
                "resources": [self.plural],
            }],
            // The program itself converts other versions: where the API server cannot, it refuses the write, whatever
            // the failure policy says.
            "matchPolicy": "Exact",
            // Labels, finalizers and a deletion pass without a question.
            "matchConditions": [{
                "name": "its-spec-is-new",
                "expression": "!has(object.metadata.deletionTimestamp) && (oldObject == null || object.?spec != oldObject.?spec)",
            }],
            // Nobody is locked out while no replica answers: the operator itself checks and completes what it reads.
            "failurePolicy": "Ignore",
            "timeoutSeconds": TIMEOUT_SECONDS,
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        });
        if !namespaces.is_empty() {
            webhook["namespaceSelector"] = json!({ "matchExpressions": [{
                "key": "kubernetes.io/metadata.name", "operator": "In", "values": namespaces,
            }] });
        }
        if task == "complete" {
            // Another webhook may change what is completed by.
            webhook["reinvocationPolicy"] = json!("IfNeeded");
        }
        webhook
    }
}

/// The Service of the webhooks of a program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct WebhookService {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl WebhookService {
    /// Returns the Service of a program in its namespace.
    pub(crate) fn of(program: &str, namespace: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: format!("{program}-webhook"),
        }
    }

    /// Lets a definition name the Service; it stays as it is if its objects need no conversion.
    pub(crate) fn name_in(&self, crd: &mut CustomResourceDefinition) {
        if let Some(service) = client_config(crd).and_then(|it| it.service.as_mut()) {
            service.name.clone_from(&self.name);
            service.namespace.clone_from(&self.namespace);
        }
    }
}

/// Returns how the API server reaches the webhook that converts objects, if they need one.
fn client_config(crd: &mut CustomResourceDefinition) -> Option<&mut WebhookClientConfig> {
    let webhook = crd.spec.conversion.as_mut()?.webhook.as_mut()?;
    webhook.client_config.as_mut()
}
