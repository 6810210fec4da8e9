//! Where the API server finds the webhooks of a program.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, WebhookClientConfig,
};

/// The port of the webhooks in a pod.
pub(crate) const WEBHOOKS_PORT: u16 = 9443;

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
pub(crate) fn client_config(
    crd: &mut CustomResourceDefinition,
) -> Option<&mut WebhookClientConfig> {
    let webhook = crd.spec.conversion.as_mut()?.webhook.as_mut()?;
    webhook.client_config.as_mut()
}
