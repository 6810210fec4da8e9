//! Which certificates the definitions of a program trust.

use std::pin::pin;
use std::time::Duration;

use futures::StreamExt;
use futures::future::join_all;
use k8s_openapi::ByteString;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, ServiceReference,
};
use kube::api::{Patch, PatchParams};
use kube::runtime::watcher::Config;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, ResourceExt};
use okt_serve::tls::warn_once;
use okt_wire::texts::{api_message, watch_message};
use serde_json::json;
use tokio::sync::watch;
use tokio::time::sleep;

use crate::install::webhooks::{WebhookService, client_config};

/// How long after a definition could not be changed it is tried again.
const AGAIN: Duration = Duration::from_secs(10);

/// Lets the definitions trust the present authorities, where they name the Service of the program: whenever one of
/// them changes. Ends when nobody gives authorities any more.
pub(super) async fn keep_trusted(
    client: &Client,
    crds: &[&str],
    at: &WebhookService,
    authorities: &watch::Receiver<Vec<u8>>,
) {
    let each = crds
        .iter()
        .map(|name| keep_one(client, name, at, authorities.clone()));
    join_all(each).await;
}

async fn keep_one(
    client: &Client,
    name: &str,
    at: &WebhookService,
    mut authorities: watch::Receiver<Vec<u8>>,
) {
    let config = Config::default().fields(&format!("metadata.name={name}"));
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let mut definitions = pin!(
        watcher(definitions, config)
            .default_backoff()
            .applied_objects()
    );
    let (mut found, mut failed, mut logged) = (None, false, String::new());
    loop {
        tokio::select! {
            Some(definition) = definitions.next() => match definition {
                Ok(definition) => found = Some(definition),
                // The watch begins again by itself.
                Err(error) => {
                    let why = watch_message(&error);
                    warn_once(&mut logged, Err(cannot(name, "watch", &why)));
                    continue;
                }
            },
            changed = authorities.changed() => if changed.is_err() { return },
            () = sleep(AGAIN), if failed => {}
        }
        let trusted = authorities.borrow_and_update().clone();
        if let Some(crd) = found.clone().filter(|_| !trusted.is_empty()) {
            let trusts = trust(client, crd, at, &trusted).await;
            failed = trusts.is_err();
            warn_once(&mut logged, trusts);
        }
    }
}

/// Lets a definition trust these authorities.
///
/// # Errors
///
/// Why it does not, as a sentence for the log; a retry helps once the API server permits it.
async fn trust(
    client: &Client,
    mut crd: CustomResourceDefinition,
    at: &WebhookService,
    authorities: &[u8],
) -> Result<(), String> {
    let name = &crd.name_any();
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
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
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
        // Somebody else has changed it, so it comes once more.
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
        Err(error) => Err(cannot(name, "change", &api_message(&error))),
    }
}

fn cannot(name: &str, what: &str, why: &str) -> String {
    format!(
        "cannot {what} the customresourcedefinition {name}, which has to trust the webhook: {why}"
    )
}
