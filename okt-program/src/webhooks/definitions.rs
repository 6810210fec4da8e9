//! Which certificates the objects trust by which the API server finds the webhooks: definitions, and configurations of
//! admission webhooks.

use std::pin::pin;
use std::time::Duration;

use futures::StreamExt;
use futures::future::join_all;
use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DynamicObject, Patch};
use kube::core::ApiResource;
use kube::runtime::watcher::Config;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client};
use okt_serve::tls::warn_once;
use okt_wire::scope::merge_by;
use okt_wire::texts::{api_message, watch_message};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::sleep;

use super::kinds::HookedKind;
use crate::install::webhooks::WebhookService;

/// The name under which the certificate is noted.
const MANAGER: &str = "okt-webhooks";

/// How long after an object could not be changed it is tried again.
const AGAIN: Duration = Duration::from_secs(10);

/// Lets the definitions trust these authorities from now on.
pub(super) fn take(trusted: &watch::Sender<Vec<u8>>, authorities: &[u8]) {
    trusted.send_if_modified(|before| {
        let differs = before != authorities;
        if differs {
            authorities.clone_into(before);
        }
        differs
    });
}

/// An object by which the API server finds webhooks.
struct Trusting<'a> {
    kind: ApiResource,
    /// What the API server asks, as the paths of the webhooks begin.
    task: &'static str,
    name: &'a str,
    at: &'a WebhookService,
}

/// Lets all objects that lead to the webhooks trust the present authorities, where they name the Service of the program:
/// whenever one of them changes. Ends when nobody gives authorities any more.
pub(super) async fn keep_trusted(
    client: &Client,
    kinds: &[HookedKind],
    at: &WebhookService,
    authorities: &watch::Receiver<Vec<u8>>,
) {
    let each = kinds.iter().flat_map(|kind| {
        let admission = kind.admission.as_ref();
        let converts = kind.versions.is_some();
        let validates = admission.is_some_and(|it| it.validates);
        let completes = admission.is_some_and(|it| it.completes);
        let objects = [
            (
                converts,
                "convert",
                ApiResource::erase::<CustomResourceDefinition>(&()),
            ),
            (
                validates,
                "validate",
                ApiResource::erase::<ValidatingWebhookConfiguration>(&()),
            ),
            (
                completes,
                "complete",
                ApiResource::erase::<MutatingWebhookConfiguration>(&()),
            ),
        ];
        let wanted = objects.into_iter().filter(|(is_wanted, ..)| *is_wanted);
        wanted.map(|(_, task, object)| Trusting {
            kind: object,
            task,
            name: kind.crd,
            at,
        })
    });
    join_all(each.map(|it| it.keep(client, authorities.clone()))).await;
}

impl Trusting<'_> {
    async fn keep(self, client: &Client, mut authorities: watch::Receiver<Vec<u8>>) {
        let config = Config::default().fields(&format!("metadata.name={}", self.name));
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &self.kind);
        let objects = watcher(api.clone(), config).default_backoff();
        let mut objects = pin!(objects.applied_objects());
        let (mut found, mut failed, mut logged) = (None, false, String::new());
        loop {
            tokio::select! {
                Some(object) = objects.next() => match object {
                    Ok(object) => found = Some(object),
                    // The watch begins again by itself.
                    Err(error) => {
                        let why = watch_message(&error);
                        warn_once(&mut logged, Err(self.cannot("watch", &why)));
                        continue;
                    }
                },
                changed = authorities.changed() => if changed.is_err() { return },
                () = sleep(AGAIN), if failed => {}
            }
            let trusted = authorities.borrow_and_update().clone();
            if let Some(object) = found.clone().filter(|_| !trusted.is_empty()) {
                let trusts = self.trust(&api, object, trusted).await;
                failed = trusts.is_err();
                warn_once(&mut logged, trusts);
            }
        }
    }

    /// Lets the object trust these authorities.
    ///
    /// # Errors
    ///
    /// Why it does not, as a sentence for the log; a retry helps once the API server permits it.
    async fn trust(
        &self,
        api: &Api<DynamicObject>,
        mut object: DynamicObject,
        authorities: Vec<u8>,
    ) -> Result<(), String> {
        let bundle = json!(ByteString(authorities));
        let mut changed = false;
        for config in client_configs(&mut object.data) {
            if self.is_own(config) && config["caBundle"] != bundle {
                config["caBundle"] = bundle.clone();
                changed = true;
            }
        }
        if !changed {
            return Ok(());
        }
        let mut patch =
            json!({ "metadata": { "resourceVersion": object.metadata.resource_version } });
        match object.data.get("webhooks") {
            Some(webhooks) => patch["webhooks"] = webhooks.clone(),
            None => patch["spec"]["conversion"] = object.data["spec"]["conversion"].clone(),
        }
        match api
            .patch(self.name, &merge_by(MANAGER), &Patch::Merge(patch))
            .await
        {
            Ok(_) => {
                let (kind, name) = (&self.kind.kind, self.name);
                tracing::info!(kind, name, "trusts the certificate of the webhooks");
                Ok(())
            }
            // Somebody else has changed it, so it comes once more.
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
            Err(error) => Err(self.cannot("change", &api_message(&error))),
        }
    }

    /// Returns whether the API server is led to the Service of the program.
    fn is_own(&self, config: &Value) -> bool {
        let service = &config["service"];
        // A person lets the API server reach a program outside of the cluster by a URL.
        let url = config["url"].as_str();
        let is_here =
            || url.is_some_and(|url| url.ends_with(&format!("/{}/{}", self.task, self.name)));
        service["name"] == self.at.name && service["namespace"] == self.at.namespace || is_here()
    }

    fn cannot(&self, what: &str, why: &str) -> String {
        let kind = self.kind.kind.to_lowercase();
        format!(
            "cannot {what} the {kind} {}, which has to trust the webhooks: {why}",
            self.name
        )
    }
}

/// Returns how the API server reaches the webhooks of a definition, or of a configuration.
fn client_configs(object: &mut Value) -> Vec<&mut Value> {
    if object.get("webhooks").is_some() {
        let webhooks = object["webhooks"].as_array_mut();
        let configs = webhooks.into_iter().flatten();
        return configs
            .filter_map(|it| it.get_mut("clientConfig"))
            .collect();
    }
    let config = object.pointer_mut("/spec/conversion/webhook/clientConfig");
    config.into_iter().collect()
}
