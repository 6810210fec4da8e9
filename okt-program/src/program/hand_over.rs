//! Whether the objects of a kind go back to an earlier version, on which another release acts.

use futures::StreamExt;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::PartialObjectMeta;
use kube::runtime::watcher::Config;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, ResourceExt};
use okt_wire::keys::HANDED_OVER_ANNOTATION;
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

/// Follows a definition, whose annotation says so.
pub(super) struct HandOver {
    is_handed_over: watch::Receiver<bool>,
    _following: AbortOnDropHandle<()>,
}

impl HandOver {
    /// Follows the definition of a kind, for a release that acts on this version.
    pub(super) fn follow(client: Client, name: &'static str, version: String) -> Self {
        let (send, is_handed_over) = watch::channel(false);
        let following = tokio::spawn(async move {
            let crds: Api<PartialObjectMeta<CustomResourceDefinition>> = Api::all(client);
            let config = Config::default().fields(&format!("metadata.name={name}"));
            let definitions = watcher(crds, config).default_backoff();
            let mut definitions = Box::pin(definitions.applied_objects());
            while let Some(definition) = definitions.next().await {
                // The watch begins again by itself.
                let Ok(definition) = definition else { continue };
                let to = definition.annotations().get(HANDED_OVER_ANNOTATION);
                send.send_replace(to.is_some_and(|to| *to != version));
            }
        });
        Self {
            is_handed_over,
            _following: AbortOnDropHandle::new(following),
        }
    }

    /// Waits until the objects go back to an earlier version, or do so no more.
    pub(super) fn until(&self, is: bool) -> impl Future<Output = ()> + Send + use<> {
        let mut is_handed_over = self.is_handed_over.clone();
        async move {
            // Nobody follows the definition any more if the sender is gone, so nothing changes.
            if is_handed_over.wait_for(|it| *it == is).await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}
