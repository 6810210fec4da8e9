//! Which certificates the definitions of a program trust.

use k8s_openapi::ByteString;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, ServiceReference,
};
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use okt_wire::scope::with_name;
use okt_wire::texts::api_message;
use serde_json::json;

use crate::install::webhooks::{WebhookService, client_config};

/// Lets the definitions trust these authorities, where they name the Service of the program.
///
/// # Errors
///
/// Why one does not, as a sentence for the log; a retry helps once the API server permits it.
pub(super) async fn trust(
    client: &Client,
    crds: &[&str],
    at: &WebhookService,
    authorities: &[u8],
) -> Result<(), String> {
    for name in crds {
        trust_one(client, name, at, authorities).await?;
    }
    Ok(())
}

async fn trust_one(
    client: &Client,
    name: &str,
    at: &WebhookService,
    authorities: &[u8],
) -> Result<(), String> {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let cannot = |what: &str, error: &kube::Error| {
        format!(
            "cannot {what} the customresourcedefinition {name}, which has to trust the webhook: {}",
            api_message(error)
        )
    };
    let found = api.list(&with_name(name)).await;
    let found = found.map_err(|error| cannot("read", &error))?;
    let Some(mut crd) = found.items.into_iter().next() else {
        return Ok(());
    };
    let version = crd.metadata.resource_version.clone();
    let Some(config) = client_config(&mut crd) else {
        return Ok(());
    };
    let is_own = |it: &ServiceReference| it.name == at.name && it.namespace == at.namespace;
    // A person lets the API server reach a program outside of the cluster by a URL.
    let is_here = |url: &String| url.ends_with(&format!("/convert/{name}"));
    let is_own =
        config.service.as_ref().is_some_and(is_own) || config.url.as_ref().is_some_and(is_here);
    let trusted = config
        .ca_bundle
        .as_ref()
        .map_or(&[][..], |ByteString(it)| it);
    if !is_own || trusted == authorities {
        return Ok(());
    }
    let bundle = ByteString(authorities.to_vec());
    let patch = Patch::Merge(json!({
        "metadata": { "resourceVersion": version },
        "spec": { "conversion": { "webhook": { "clientConfig": { "caBundle": bundle } } } },
    }));
    match api.patch(name, &PatchParams::default(), &patch).await {
        Ok(_) => {
            tracing::info!(
                crd = name,
                "the definition trusts the certificate of the webhook"
            );
            Ok(())
        }
        // Somebody else changed it: the next time.
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
        Err(error) => Err(cannot("change", &error)),
    }
}
